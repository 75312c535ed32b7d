//! What an object of one kind is called.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// The namespace and name of an object of one kind: the identity under which everything here is stored, queued and looked up.
///
/// A clone costs one reference count, and the text is freed with the last holder: there is no table of names that could grow.
/// Written and parsed as `namespace/name`, or `name` alone for kinds without namespaces; Kubernetes allows no slash in either.
/// Keys of a kind sort by namespace, then by name. The uid is no part of it: two incarnations of a name share the key.
#[derive(Clone)]
pub struct Key(Arc<str>);

thread_local! {
    /// Where a key is put together: it is then allocated once.
    static TEXT: RefCell<String> = const { RefCell::new(String::new()) };
}

impl Key {
    /// The key of `name` in `namespace`, or of a cluster-wide object when `namespace` is `None` or empty.
    #[must_use]
    pub fn new(namespace: Option<&str>, name: &str) -> Self {
        match namespace.filter(|namespace| !namespace.is_empty()) {
            None => Self(Arc::from(name)),
            Some(namespace) => TEXT.with_borrow_mut(|text| {
                text.clear();
                text.push_str(namespace);
                text.push('/');
                text.push_str(name);
                Self(Arc::from(text.as_str()))
            }),
        }
    }

    /// The key of a typed or dynamic object. One without a name, such as one that no server has seen yet, has an empty name, which nothing stored has.
    #[must_use]
    pub fn of<K: kube::Resource>(object: &K) -> Self {
        let meta = object.meta();
        Self::new(
            meta.namespace.as_deref(),
            meta.name.as_deref().unwrap_or_default(),
        )
    }

    /// Reads `namespace/name` or `name`.
    ///
    /// # Errors
    ///
    /// When a part is empty or there are more than two.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let (namespace, name) = match text.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, text),
        };
        if name.is_empty() || name.contains('/') || namespace == Some("") {
            return Err(KeyError(text.to_owned()));
        }
        Ok(Self::new(namespace, name))
    }

    /// The namespace, or `None` for an object that lives in none.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.parts().0
    }

    /// The name within its namespace.
    #[must_use]
    pub fn name(&self) -> &str {
        self.parts().1
    }

    /// The key as text, `namespace/name` or `name`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether both are the same text in memory.
    pub(crate) fn is_same_text(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// How many bytes both begin with in common.
    pub(crate) fn common_with(&self, other: &Self) -> usize {
        common(self.0.as_bytes(), other.0.as_bytes())
    }

    fn parts(&self) -> (Option<&str>, &str) {
        memchr::memchr(b'/', self.0.as_bytes()).map_or((None, &self.0), |slash| {
            (
                self.0.get(..slash),
                self.0.get(slash + 1..).unwrap_or_default(),
            )
        })
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.is_same_text(other) || self.0 == other.0
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.is_same_text(other) {
            return Ordering::Equal;
        }
        let (mine, theirs) = (self.0.as_bytes(), other.0.as_bytes());
        let at = common(mine, theirs);
        // a namespace that ends comes before every one that goes on
        let rank = |text: &[u8]| match text.get(at) {
            None => 0,
            Some(b'/') => 1,
            Some(byte) => u16::from(*byte) + 2,
        };
        rank(mine).cmp(&rank(theirs))
    }
}

/// How many bytes two texts begin with in common. Names of a kind begin alike and stores compare them often, so it looks at eight at a time.
pub(crate) fn common(mine: &[u8], theirs: &[u8]) -> usize {
    let mut at = 0;
    for (one, other) in mine
        .as_chunks::<8>()
        .0
        .iter()
        .zip(theirs.as_chunks::<8>().0)
    {
        let differ = u64::from_le_bytes(*one) ^ u64::from_le_bytes(*other);
        if differ != 0 {
            return at + differ.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let rest = mine.iter().skip(at).zip(theirs.iter().skip(at));
    at + rest.take_while(|(mine, theirs)| mine == theirs).count()
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that is not a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a key: expected `name` or `namespace/name`")]
pub struct KeyError(String);
