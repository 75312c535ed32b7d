//! Reads some of the objects: by namespace, labels and indexed values.

use std::fmt;
use std::sync::Arc;

use kube::core::{Expression, SelectorExt};
use serde::de::DeserializeOwned;

use super::{Lister, ReadError};
use crate::core::InformerCore;
use crate::object::{DecodeError, Object};

/// Which of the mirrored objects are wanted; all conditions must hold.
///
/// Where there is a condition on an indexed value only the objects in that index are looked at; conditions on labels read the labels of every
/// object that is left, some 3 µs each for an object that is packed. A label that is asked for often deserves an
/// [index](crate::IndexSpec::path), such as `metadata.labels.app`.
///
/// ```
/// use boatswain_cache::Query;
/// use kube::core::Expression;
///
/// let query = Query::all()
///     .namespace("harbour")
///     .labels(Expression::Equal("app".into(), "crane".into()))
///     .indexed("spec.nodeName", "node-1");
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a query says what is wanted; a lister finds it"]
pub struct Query {
    namespace: Option<String>,
    labels: Vec<Expression>,
    indexed: Vec<(String, String)>,
}

impl Query {
    /// All objects.
    pub fn all() -> Self {
        Self::default()
    }

    /// Those in `namespace`.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Those that meet `conditions` on their labels: an [`Expression`], or a [`Selector`](kube::core::Selector) of several.
    pub fn labels(mut self, conditions: impl IntoIterator<Item = Expression>) -> Self {
        self.labels.extend(conditions);
        self
    }

    /// Those that have `value` in `index`.
    pub fn indexed(mut self, index: &str, value: &str) -> Self {
        self.indexed.push((index.to_owned(), value.to_owned()));
        self
    }

    /// The objects of one informer, by key.
    fn read(&self, core: &InformerCore) -> Result<Vec<Object>, ReadError> {
        let reader = core.reader();
        let namespace = self.namespace.as_deref();
        let mut indexes = self.indexed.iter();
        let mut found = match indexes.next() {
            None => reader.list(namespace),
            Some((index, value)) => reader
                .by_index(index, value)
                .ok_or_else(|| ReadError::NoSuchIndex(index.clone()))?,
        };
        for (index, value) in indexes {
            let keys = reader
                .keys_by_index(index, value)
                .ok_or_else(|| ReadError::NoSuchIndex(index.clone()))?;
            found.retain(|object| keys.binary_search(object.key()).is_ok());
        }
        found.retain(|object| self.accepts(object));
        Ok(found)
    }

    fn accepts(&self, object: &Object) -> bool {
        let namespace = self.namespace.as_deref();
        if namespace.is_some() && object.key().namespace() != namespace {
            return false;
        }
        if self.labels.is_empty() {
            return true;
        }
        let labels = object.labels();
        self.labels
            .iter()
            .all(|condition| condition.matches(&labels))
    }
}

impl<K> Lister<K> {
    /// The stored objects that meet `query`, sorted by key, without decoding them.
    ///
    /// # Errors
    ///
    /// [`ReadError::NotSynced`]; [`ReadError::OutOfScope`] for a namespace that is not mirrored; [`ReadError::NoSuchIndex`].
    pub fn select_objects(&self, query: &Query) -> Result<Vec<Object>, ReadError> {
        if let Some(namespace) = &query.namespace {
            let core = self.core_of(Some(namespace), || format!("namespace {namespace}"))?;
            return query.read(&core);
        }
        let mut objects = Vec::new();
        for core in self.synced_cores()?.iter() {
            objects.extend(query.read(core)?);
        }
        objects.sort_unstable_by(|one, other| one.key().cmp(other.key()));
        Ok(objects)
    }
}

impl<K: DeserializeOwned + Send + Sync + 'static> Lister<K> {
    /// The objects that meet `query`, sorted by key. Those that are no `K` are left out.
    ///
    /// # Errors
    ///
    /// As [`Lister::select_objects`].
    pub fn select(&self, query: &Query) -> Result<Vec<Arc<K>>, ReadError> {
        Ok(self.decode_all(&self.select_objects(query)?))
    }

    /// The objects that meet `query` as they are at this moment, sorted by key, to be gone through at leisure: each is decoded when its turn comes, and
    /// what happens meanwhile is not seen. Costs a pointer an object; none is copied.
    ///
    /// # Errors
    ///
    /// As [`Lister::select_objects`].
    pub fn snapshot(&self, query: &Query) -> Result<Snapshot<K>, ReadError> {
        Ok(Snapshot {
            objects: self.select_objects(query)?.into_iter(),
            lister: self.clone(),
        })
    }
}

/// Objects as they were at a moment; see [`Lister::snapshot`].
pub struct Snapshot<K> {
    objects: std::vec::IntoIter<Object>,
    lister: Lister<K>,
}

impl<K: DeserializeOwned + Send + Sync + 'static> Iterator for Snapshot<K> {
    type Item = Result<Arc<K>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let object = self.objects.next()?;
        Some(self.lister.decode(&object))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.objects.size_hint()
    }
}

impl<K: DeserializeOwned + Send + Sync + 'static> ExactSizeIterator for Snapshot<K> {}

impl<K> fmt::Debug for Snapshot<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Snapshot({} objects left)", self.objects.len())
    }
}
