//! Finds objects by a value in them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::key::Key;
use crate::object::{Object, Path};
use crate::table::{Table, trim};

/// What objects are to be found by.
///
/// An index that fails or panics for an object is counted and told in the informer's status; the object is stored and found by its other
/// indexes. A closure must not call back into its informer.
#[derive(Clone)]
pub struct IndexSpec {
    name: Arc<str>,
    by: By,
}

type Values = dyn Fn(&Object) -> Result<Vec<String>, String> + Send + Sync;

#[derive(Clone)]
enum By {
    Path(Path),
    Closure(Arc<Values>),
}

impl IndexSpec {
    /// By the strings, numbers or booleans at a path such as `spec.nodeName`, which is also the index's name. Nothing is decoded. See [`Path`] for
    /// the notation.
    #[must_use]
    pub fn path(path: &str) -> Self {
        Self {
            name: path.into(),
            by: By::Path(Path::new(path)),
        }
    }

    /// By the values `of` gives for an object, under a `name` of its own. It runs on the informer's thread for every change, so it should be quick.
    #[must_use]
    pub fn closure(
        name: &str,
        of: impl Fn(&Object) -> Result<Vec<String>, String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            by: By::Closure(Arc::new(of)),
        }
    }

    /// What the index is asked by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The values of `object`; a panic of the closure ends here.
    pub(super) fn values(&self, object: &Object) -> Result<Vec<String>, String> {
        match &self.by {
            By::Path(path) => Ok(object.values(path)),
            By::Closure(of) => catch_unwind(AssertUnwindSafe(|| of(object)))
                .unwrap_or_else(|_| Err("it panicked".to_owned())),
        }
    }
}

impl fmt::Debug for IndexSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "index {}", self.name)
    }
}

/// An index and the objects it is of.
pub(crate) struct Built {
    pub(super) index: Index,
    objects: BTreeMap<Key, Object>,
    /// Objects it failed for, and why.
    failed: BTreeMap<Key, String>,
}

impl Built {
    pub(super) fn new(spec: IndexSpec) -> Self {
        Self {
            index: Index::new(spec),
            objects: BTreeMap::new(),
            failed: BTreeMap::new(),
        }
    }

    /// Makes it one of `stored`; only objects it does not have are asked about.
    pub(super) fn renew(&mut self, stored: &[Object]) {
        let mut before = std::mem::take(&mut self.objects);
        for object in stored {
            let key = object.key();
            let known = before.remove(key);
            if !known.is_some_and(|known| known.is_same_state(object)) {
                self.failed.remove(key);
                match self.index.spec.values(object) {
                    Ok(values) => self.index.set(key, &values),
                    Err(reason) => {
                        self.index.remove(key);
                        self.failed.insert(key.clone(), reason);
                    }
                }
            }
            self.objects.insert(key.clone(), object.clone());
        }
        for key in before.keys() {
            self.index.remove(key);
            self.failed.remove(key);
        }
    }

    pub(super) fn finish(self) -> (Index, Vec<(Key, Arc<str>, String)>) {
        let name: Arc<str> = self.index.spec.name().into();
        let failed = self.failed.into_iter();
        let failed = failed.map(|(key, reason)| (key, name.clone(), reason));
        (self.index, failed.collect())
    }
}

/// Keys by value, and the values of each key, so that an object can be taken out without asking the closure again.
pub(super) struct Index {
    pub(super) spec: IndexSpec,
    keys: Table<Arc<str>, BTreeSet<Key>>,
    values: Table<Key, Vec<Arc<str>>>,
}

impl Index {
    pub(super) fn new(spec: IndexSpec) -> Self {
        Self {
            spec,
            keys: Table::default(),
            values: Table::default(),
        }
    }

    pub(super) fn set(&mut self, key: &Key, values: &[String]) {
        self.remove(key);
        if values.is_empty() {
            return;
        }
        let values: Vec<Arc<str>> = values.iter().map(|value| self.intern(value)).collect();
        for value in &values {
            self.keys
                .entry(value.clone())
                .or_default()
                .insert(key.clone());
        }
        self.values.insert(key.clone(), values);
    }

    pub(super) fn remove(&mut self, key: &Key) {
        for value in self.values.remove(key).unwrap_or_default() {
            if let Some(keys) = self.keys.get_mut(&value) {
                keys.remove(key);
                if keys.is_empty() {
                    self.keys.remove(&value);
                }
            }
        }
        trim(&mut self.keys);
        trim(&mut self.values);
    }

    pub(super) fn keys(&self, value: &str) -> impl Iterator<Item = &Key> {
        self.keys.get(value).into_iter().flatten()
    }

    fn intern(&self, value: &str) -> Arc<str> {
        self.keys
            .get_key_value(value)
            .map_or_else(|| value.into(), |(value, _)| value.clone())
    }

    #[cfg(test)]
    pub(super) fn footprint(&self) -> usize {
        self.keys.len() + self.values.len()
    }
}
