//! A cached object: parsed identity, the rest as bytes until asked for.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::key::Key;
use crate::redact::describe;
use crate::store::body::Body;
use crate::store::memo::{Decoded, Memo, Outcome};

mod cut;
mod meta;
mod path;
#[cfg(test)]
mod tests;

pub use meta::{Meta, Uid};
pub use path::Path;

/// An object as the server sent it, but for what its informer was told to leave out: `managedFields` by default.
///
/// A clone costs one reference count, and nothing of it can be changed. How the bytes are kept is not part of the interface.
#[derive(Clone)]
pub struct Object(Arc<Inner>);

struct Inner {
    key: Key,
    meta: Meta,
    body: Body,
    recall: Recall,
    /// Whether the memo knows this object.
    noted: AtomicBool,
    /// Only identity and metadata are left of it.
    thin: bool,
}

/// What becomes of the outcome of a decoding.
#[derive(Clone)]
pub(crate) enum Recall {
    /// It is for the one who asked.
    Never,
    /// It is remembered while there is room.
    Memo(Arc<Memo>),
    /// It was decoded once and for all.
    Pinned(Arc<Outcome>),
}

impl Drop for Inner {
    fn drop(&mut self) {
        let address = std::ptr::from_ref(self) as usize;
        if let (Recall::Memo(memo), true) = (&self.recall, self.noted.load(Ordering::Relaxed)) {
            memo.forget(address);
        }
    }
}

/// An owner named by an object.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerRef {
    /// Group and version the owner was named with.
    pub api_version: String,
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner, in the object's own namespace or in none.
    pub name: String,
    /// Incarnation of the owner.
    pub uid: String,
    /// Whether this owner is the one that manages the object.
    #[serde(default)]
    pub controller: bool,
}

impl Object {
    pub(crate) fn new(key: Key, meta: Meta, body: Body, recall: Recall) -> Self {
        Self(Arc::new(Inner {
            key,
            meta,
            body,
            recall,
            noted: AtomicBool::new(false),
            thin: false,
        }))
    }

    /// What is left of an object when its insides are dropped, which this was read from.
    pub(crate) fn thinned(self) -> Self {
        Self(Arc::new(Inner {
            key: self.key().clone(),
            meta: self.meta().clone(),
            body: Body::plain(self.json().to_vec()),
            recall: Recall::Never,
            noted: AtomicBool::new(false),
            thin: true,
        }))
    }

    /// Whether only identity and metadata without annotations are left of this past state, because its subscriber was too far behind.
    #[must_use]
    pub fn is_thin(&self) -> bool {
        self.0.thin
    }

    /// The same object kept in another way, under a `key` that is equal to its own.
    pub(crate) fn kept(&self, key: &Key, body: Body, recall: Recall) -> Self {
        Self::new(key.clone(), self.meta().clone(), body, recall)
    }

    pub(crate) fn body(&self) -> &Body {
        &self.0.body
    }

    pub(crate) fn recall(&self) -> &Recall {
        &self.0.recall
    }

    /// Whether both are one in memory.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Namespace and name.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.0.key
    }

    /// Uid, version, generation and deletion time.
    #[must_use]
    pub fn meta(&self) -> &Meta {
        &self.0.meta
    }

    /// The object as JSON, as it is kept.
    #[must_use]
    pub fn json(&self) -> Bytes {
        self.0.body.json()
    }

    /// Bytes this object keeps, without what was decoded from it.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.body.size()
    }

    /// Whether both are the same incarnation in the same state.
    #[must_use]
    pub fn is_same_state(&self, other: &Self) -> bool {
        let (mine, theirs) = (&self.0.meta, &other.0.meta);
        self.is_same(other)
            || (mine.uid == theirs.uid && mine.resource_version == theirs.resource_version)
    }

    /// The first string, number or boolean at `path`, as text; nothing else of the object is parsed. See [`Path`] for the notation.
    #[must_use]
    pub fn path(&self, path: &str) -> Option<String> {
        self.values(&Path::new(path)).into_iter().next()
    }

    /// Every string, number or boolean at `path`, as text.
    #[must_use]
    pub fn values(&self, path: &Path) -> Vec<String> {
        self.0.body.read(|json| path.values(json))
    }

    /// Labels; empty if the object has none.
    #[must_use]
    pub fn labels(&self) -> BTreeMap<String, String> {
        self.metadata("labels")
    }

    /// Annotations; empty if the object has none.
    #[must_use]
    pub fn annotations(&self) -> BTreeMap<String, String> {
        self.metadata("annotations")
    }

    /// Owners; empty if the object has none.
    #[must_use]
    pub fn owner_refs(&self) -> Vec<OwnerRef> {
        self.metadata("ownerReferences")
    }

    /// Finalizers; empty if the object has none.
    #[must_use]
    pub fn finalizers(&self) -> Vec<String> {
        self.metadata("finalizers")
    }

    /// Parses one part of the metadata; what no server would have accepted counts as absent.
    fn metadata<T: DeserializeOwned + Default>(&self, part: &'static str) -> T {
        let found = |json: &[u8]| path::member(json, &["metadata", part]);
        self.0.body.read(found).unwrap_or_default()
    }

    /// The object as a `K`. An object that is read often is decoded once: its informer remembers the outcomes of recent reads, within a bound, and so
    /// does one that was told to decode every object when it arrives. Those of Secrets are never kept.
    ///
    /// # Errors
    ///
    /// When the bytes are no `K`; the error quotes no value of the object.
    pub fn decode<K: DeserializeOwned + Send + Sync + 'static>(
        &self,
    ) -> Result<Arc<K>, DecodeError> {
        let kind = TypeId::of::<K>();
        let decoded = match &self.0.recall {
            Recall::Memo(memo) => {
                self.0.noted.store(true, Ordering::Relaxed);
                let size = self.0.body.json_size();
                memo.recall(Arc::as_ptr(&self.0) as usize, kind, size, || {
                    self.parse::<K>().map(|object| object as Decoded)
                })?
            }
            Recall::Pinned(pinned) if pinned.0 == kind => pinned.1.clone()?,
            Recall::Pinned(_) | Recall::Never => return self.parse(),
        };
        match decoded.downcast() {
            Ok(object) => Ok(object),
            Err(_) => self.parse(),
        }
    }

    pub(crate) fn parse<K: DeserializeOwned>(&self) -> Result<Arc<K>, DecodeError> {
        self.0.body.read(|json| {
            // the path of an error costs time to keep track of, so only an object that fails is read a second time for it
            serde_json::from_slice(json).map(Arc::new).map_err(|error| {
                let path = serde_path_to_error::deserialize::<_, K>(
                    &mut serde_json::Deserializer::from_slice(json),
                )
                .err();
                let path = path.map_or_else(|| ".".to_owned(), |error| error.path().to_string());
                DecodeError {
                    key: self.key().clone(),
                    reason: format!("{path}: {}", describe(&error)).into(),
                }
            })
        })
    }
}

impl fmt::Debug for Object {
    /// Identity only: what an object contains may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.key(), self.meta().resource_version)
    }
}

/// An object that is no value of the type it was asked as.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("object {key} does not decode: {reason}")]
pub struct DecodeError {
    /// The object's key.
    pub key: Key,
    /// What is wrong and where; quotes no value.
    pub reason: Arc<str>,
}
