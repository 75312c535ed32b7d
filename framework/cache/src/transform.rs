//! What of an object is kept.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::Value;

use crate::object::Path;

#[cfg(test)]
mod tests;

/// What is taken out of objects or changed in them before they are kept, for less memory and fewer bytes to read.
///
/// By default `metadata.managedFields` is left out: it is often a third of an object and read by nobody. Identity and version are kept beside the
/// object, so no transform can break them: name, namespace, uid and resourceVersion are what the server said, whatever a closure does.
///
/// ```
/// use boatswain_cache::Transform;
///
/// let small = Transform::default().without("status.images").without("spec.containers[*].env").with(|object| {
///     if let Some(data) = object.get_mut("data") {
///         *data = serde_json::json!({});
///     }
///     Ok(())
/// });
/// # drop(small);
/// ```
#[derive(Clone)]
pub struct Transform {
    managed_fields: bool,
    paths: Vec<Path>,
    change: Option<Arc<Change>>,
}

type Change = dyn Fn(&mut Value) -> Result<(), String> + Send + Sync;

impl Default for Transform {
    fn default() -> Self {
        Self {
            managed_fields: true,
            ..Self::none()
        }
    }
}

impl Transform {
    /// Keeps objects whole.
    #[must_use]
    pub fn none() -> Self {
        Self {
            managed_fields: false,
            paths: Vec::new(),
            change: None,
        }
    }

    /// Leaves out the member at `path`, or every one where it has `[*]`; see [`Path`] for the notation. Each path costs
    /// one more look at the bytes of an object.
    #[must_use]
    pub fn without(mut self, path: &str) -> Self {
        self.paths.push(Path::new(path));
        self
    }

    /// Changes objects by a closure, after the paths. It runs on the informer's thread and costs a parsing and a printing of every object that changes.
    ///
    /// An object it fails or panics for is stored as it was before the closure, and counted.
    #[must_use]
    pub fn with(
        mut self,
        change: impl Fn(&mut Value) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.change = Some(Arc::new(change));
        self
    }

    pub(crate) fn drops_managed_fields(&self) -> bool {
        self.managed_fields
    }

    pub(crate) fn paths(&self) -> &[Path] {
        &self.paths
    }

    pub(crate) fn has_closure(&self) -> bool {
        self.change.is_some()
    }

    /// The object after the closure; `None` where there is none or it changed nothing.
    ///
    /// # Errors
    ///
    /// The closure's words, or that it panicked.
    pub(crate) fn apply(&self, json: &[u8]) -> Result<Option<Vec<u8>>, String> {
        let Some(change) = &self.change else {
            return Ok(None);
        };
        let before: Value =
            serde_json::from_slice(json).map_err(|error| crate::redact::describe(&error))?;
        let mut after = before.clone();
        catch_unwind(AssertUnwindSafe(|| change(&mut after)))
            .unwrap_or_else(|_| Err("it panicked".to_owned()))?;
        if after == before {
            return Ok(None);
        }
        keep_identity(&before, &mut after)?;
        serde_json::to_vec(&after)
            .map(Some)
            .map_err(|error| error.to_string())
    }
}

fn keep_identity(before: &Value, after: &mut Value) -> Result<(), String> {
    let object = after.as_object_mut().ok_or("it left no object")?;
    let metadata = object
        .entry("metadata")
        .or_insert_with(|| serde_json::json!({}));
    let metadata = metadata.as_object_mut().ok_or("it left no metadata")?;
    for name in ["name", "namespace", "uid", "resourceVersion"] {
        match before.pointer(&format!("/metadata/{name}")) {
            Some(value) => drop(metadata.insert(name.to_owned(), value.clone())),
            None => drop(metadata.remove(name)),
        }
    }
    Ok(())
}

/// Whether both leave out the same paths, in the same order, and run the same closure: a clone of one, not merely one that does the same.
impl PartialEq for Transform {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            managed_fields,
            paths,
            change,
        } = self;
        let same_change = match (change, &other.change) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        };
        *managed_fields == other.managed_fields && *paths == other.paths && same_change
    }
}

impl fmt::Debug for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transform")
            .field("managed_fields", &self.managed_fields)
            .field("without", &self.paths)
            .field("closure", &self.change.is_some())
            .finish()
    }
}
