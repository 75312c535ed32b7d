//! Reads the mirror.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::core::InformerCore;
use crate::key::Key;
use crate::object::{DecodeError, Object};
use crate::view::View;

mod query;
#[cfg(test)]
mod tests;

pub use query::{Query, Snapshot};

/// Reads objects of one kind from memory; a clone costs one reference count. No read ever touches the network.
///
/// Several informers of a kind, one per namespace, can be read as one, also while they come and go (see [`View`]); they run as long as somebody reads
/// them. A single read tells four things apart: there is such an object, there is none,
/// nobody knows yet ([`ReadError::NotSynced`]), or it lies outside of what is mirrored ([`ReadError::OutOfScope`]); and an object that is no `K` is
/// [`ReadError::Undecodable`], for its own key only.
pub struct Lister<K> {
    view: View,
    kind: PhantomData<fn() -> K>,
}

/// Why a read has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The mirror has not had the whole state yet.
    #[error("{resource} in {scope} are not synced yet")]
    NotSynced {
        /// The resource.
        resource: String,
        /// The namespace, or `*`.
        scope: String,
    },
    /// No informer of this lister mirrors the namespace.
    #[error("{what} is outside of what is mirrored ({scopes})")]
    OutOfScope {
        /// What was asked for.
        what: String,
        /// What is mirrored: namespaces, or `*`.
        scopes: String,
    },
    /// The object is there, but not what it should be. The rest of its kind can be read.
    #[error(transparent)]
    Undecodable(#[from] DecodeError),
    /// The informer has no index of this name.
    #[error("there is no index {0}; add it to the informer first")]
    NoSuchIndex(String),
}

impl<K> Lister<K> {
    /// Reads one informer.
    #[must_use]
    pub fn new(core: Arc<InformerCore>) -> Self {
        Self::over(vec![core])
    }

    /// Reads several informers of one kind, with scopes that do not overlap, as one.
    #[must_use]
    pub fn over(cores: Vec<Arc<InformerCore>>) -> Self {
        Self::of(View::over(cores.into_iter().map(Into::into).collect()))
    }

    /// Reads the informers of a view, also those that are added to it later.
    #[must_use]
    pub fn of(view: View) -> Self {
        Self {
            view,
            kind: PhantomData,
        }
    }

    /// The informers that are read, as they are now.
    #[must_use]
    pub fn cores(&self) -> Arc<[Arc<InformerCore>]> {
        self.view.cores()
    }

    /// What is read, as a view: informers added to it are read by every lister of it.
    #[must_use]
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Whether every informer is synced.
    #[must_use]
    pub fn synced(&self) -> bool {
        self.view.synced()
    }

    /// The stored object without decoding it.
    ///
    /// # Errors
    ///
    /// As [`Lister::get`], but for decoding. A state that could not be read at all is `Undecodable` here too.
    pub fn get_object(&self, key: &Key) -> Result<Option<Object>, ReadError> {
        let core = self.core_of(key.namespace(), || format!("object {key}"))?;
        core.reader().look(key).map_err(|reason| {
            let key = key.clone();
            DecodeError { key, reason }.into()
        })
    }

    /// All stored objects without decoding them, sorted by key.
    ///
    /// # Errors
    ///
    /// [`ReadError::NotSynced`].
    pub fn list_objects(&self) -> Result<Vec<Object>, ReadError> {
        self.gather(|core| Some(core.reader().list(None)), "")
    }

    /// The keys that have `value` in the index, sorted, without decoding anything.
    ///
    /// # Errors
    ///
    /// [`ReadError::NotSynced`], [`ReadError::NoSuchIndex`].
    pub fn keys_by_index(&self, index: &str, value: &str) -> Result<Vec<Key>, ReadError> {
        let mut keys = Vec::new();
        for core in self.synced_cores()?.iter() {
            let found = core.reader().keys_by_index(index, value);
            keys.extend(found.ok_or_else(|| ReadError::NoSuchIndex(index.to_owned()))?);
        }
        keys.sort_unstable();
        Ok(keys)
    }

    /// The stored objects that have `value` in the index, sorted by key, without decoding them.
    ///
    /// # Errors
    ///
    /// [`ReadError::NotSynced`], [`ReadError::NoSuchIndex`].
    pub fn objects_by_index(&self, index: &str, value: &str) -> Result<Vec<Object>, ReadError> {
        self.gather(|core| core.reader().by_index(index, value), index)
    }

    fn gather(
        &self,
        read: impl Fn(&InformerCore) -> Option<Vec<Object>>,
        index: &str,
    ) -> Result<Vec<Object>, ReadError> {
        let (mut objects, cores) = (Vec::new(), self.synced_cores()?);
        for core in cores.iter() {
            objects.extend(read(core).ok_or_else(|| ReadError::NoSuchIndex(index.to_owned()))?);
        }
        if cores.len() > 1 {
            objects.sort_unstable_by(|one, other| one.key().cmp(other.key()));
        }
        Ok(objects)
    }

    fn synced_cores(&self) -> Result<Arc<[Arc<InformerCore>]>, ReadError> {
        let cores = self.cores();
        match cores.iter().find(|core| !core.synced()) {
            Some(core) => Err(not_synced(core)),
            None => Ok(cores),
        }
    }

    fn core_of(
        &self,
        namespace: Option<&str>,
        what: impl Fn() -> String,
    ) -> Result<Arc<InformerCore>, ReadError> {
        let Some(core) = self.view.core_of(namespace) else {
            let cores = self.cores();
            let scopes: Vec<_> = cores.iter().map(|core| core.scope().to_string()).collect();
            return Err(ReadError::OutOfScope {
                what: what(),
                scopes: scopes.join(", "),
            });
        };
        if core.synced() {
            Ok(core)
        } else {
            Err(not_synced(&core))
        }
    }
}

fn not_synced(core: &InformerCore) -> ReadError {
    ReadError::NotSynced {
        resource: core.kind().resource(),
        scope: core.scope().to_string(),
    }
}

impl<K: DeserializeOwned + Send + Sync + 'static> Lister<K> {
    /// The object, or `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`ReadError::OutOfScope`], [`ReadError::NotSynced`], [`ReadError::Undecodable`].
    pub fn get(&self, key: &Key) -> Result<Option<Arc<K>>, ReadError> {
        let Some(object) = self.get_object(key)? else {
            return Ok(None);
        };
        self.decode(&object).map(Some).map_err(ReadError::from)
    }

    /// All objects, sorted by key. Those that are no `K` are left out; [`InformerStatus`](crate::InformerStatus) names them, and [`Lister::snapshot`] hands out
    /// their errors instead. Read as the wrong type, such as metadata-only objects as whole ones, that is all of them. An object whose newest
    /// state cannot be read at all is listed in its last readable one.
    ///
    /// # Errors
    ///
    /// [`ReadError::NotSynced`].
    pub fn list(&self) -> Result<Vec<Arc<K>>, ReadError> {
        Ok(self.decode_all(&self.list_objects()?))
    }

    /// The objects of one namespace, sorted by key. Those that are no `K` are left out.
    ///
    /// # Errors
    ///
    /// [`ReadError::OutOfScope`], [`ReadError::NotSynced`].
    pub fn list_namespace(&self, namespace: &str) -> Result<Vec<Arc<K>>, ReadError> {
        let core = self.core_of(Some(namespace), || format!("namespace {namespace}"))?;
        Ok(self.decode_all(&core.reader().list(Some(namespace))))
    }

    /// The objects that have `value` in the index, sorted by key. Those that are no `K` are left out.
    ///
    /// # Errors
    ///
    /// [`ReadError::NotSynced`], [`ReadError::NoSuchIndex`].
    pub fn by_index(&self, index: &str, value: &str) -> Result<Vec<Arc<K>>, ReadError> {
        Ok(self.decode_all(&self.objects_by_index(index, value)?))
    }

    fn decode_all(&self, objects: &[Object]) -> Vec<Arc<K>> {
        objects
            .iter()
            .filter_map(|object| self.decode(object).ok())
            .collect()
    }

    /// A stored object as a `K`. One that is none is named in the informer's status, as if it had been [read](Lister::get).
    ///
    /// # Errors
    ///
    /// When it is no `K`.
    pub fn decode(&self, object: &Object) -> Result<Arc<K>, DecodeError> {
        object.decode::<K>().inspect_err(|error| {
            if let Some(core) = self.view.core_of(error.key.namespace()) {
                core.note_undecodable(object, error);
            }
        })
    }
}

impl<K> Clone for Lister<K> {
    fn clone(&self) -> Self {
        Self {
            view: self.view.clone(),
            kind: PhantomData,
        }
    }
}

impl<K> fmt::Debug for Lister<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lister").field(&self.view).finish()
    }
}
