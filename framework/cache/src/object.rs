//! A cached object: parsed identity, the rest as bytes until asked for.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::key::Key;
use crate::redact::describe;
use crate::store::layout::Body;
use crate::version::Version;

mod path;
#[cfg(test)]
mod tests;

pub use path::Path;

/// One incarnation of a name: objects of the same name created one after the other differ in it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uid(Arc<str>);

impl From<&str> for Uid {
    fn from(text: &str) -> Self {
        Self(Arc::from(text))
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The part of an object's metadata that is parsed when it arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Incarnation of the name; empty if the server gives none.
    pub uid: Uid,
    /// State of the object in the server's history.
    pub resource_version: Version,
    /// Counts changes of the desired state, for kinds that count them.
    pub generation: Option<i64>,
    /// When its deletion was asked for; it is then only waiting for finalizers.
    pub deletion_timestamp: Option<Timestamp>,
}

/// An object as the server sent it, without `managedFields`.
///
/// A clone costs one reference count, and nothing of it can be changed. How the bytes are kept is not part of the interface.
#[derive(Clone)]
pub struct Object(Arc<Inner>);

struct Inner {
    key: Key,
    meta: Meta,
    body: Body,
    decoded: OnceLock<(TypeId, Result<Decoded, DecodeError>)>,
}

type Decoded = Arc<dyn Any + Send + Sync>;

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
    pub(crate) fn new(key: Key, meta: Meta, json: Vec<u8>) -> Self {
        Self(Arc::new(Inner {
            key,
            meta,
            body: Body::keep(json),
            decoded: OnceLock::new(),
        }))
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

    /// The object as JSON without `managedFields`.
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
        Arc::ptr_eq(&self.0, &other.0)
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
        path.values(&self.json())
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
        path::member(&self.json(), &["metadata", part]).unwrap_or_default()
    }

    /// The object as a `K`. The outcome for the first type asked for is kept with the object, so that later readers do not decode again.
    ///
    /// # Errors
    ///
    /// When the bytes are no `K`; the error quotes no value of the object.
    pub fn decode<K: DeserializeOwned + Send + Sync + 'static>(
        &self,
    ) -> Result<Arc<K>, DecodeError> {
        let (kind, kept) = self.0.decoded.get_or_init(|| {
            (
                TypeId::of::<K>(),
                self.parse::<K>().map(|object| object as Decoded),
            )
        });
        if *kind != TypeId::of::<K>() {
            return self.parse();
        }
        match kept.clone()?.downcast::<K>() {
            Ok(object) => Ok(object),
            Err(_) => self.parse(),
        }
    }

    fn parse<K: DeserializeOwned>(&self) -> Result<Arc<K>, DecodeError> {
        let json = self.json();
        // the path of an error costs time to keep track of, so only an object that fails is read a second time for it
        serde_json::from_slice(&json)
            .map(Arc::new)
            .map_err(|error| {
                let path = serde_path_to_error::deserialize::<_, K>(
                    &mut serde_json::Deserializer::from_slice(&json),
                )
                .err();
                let path = path.map_or_else(|| ".".to_owned(), |error| error.path().to_string());
                DecodeError {
                    key: self.key().clone(),
                    reason: format!("{path}: {}", describe(&error)).into(),
                }
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
