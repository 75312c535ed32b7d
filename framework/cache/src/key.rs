//! What an object of one kind is called.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// The namespace and name of an object of one kind: the identity under which everything here is stored, queued and looked up.
///
/// A clone costs one reference count. Written and parsed as `namespace/name`, or `name` alone for kinds without namespaces.
/// Keys sort by namespace, then by name. The uid is no part of it: two incarnations of a name share the key.
#[derive(Clone)]
pub struct Key {
    text: Arc<str>,
    /// Bytes of the namespace; the slash follows it unless there is none.
    namespace: u32,
}

impl Key {
    /// The key of `name` in `namespace`, or of a cluster-wide object when `namespace` is `None` or empty.
    #[must_use]
    pub fn new(namespace: Option<&str>, name: &str) -> Self {
        match namespace.filter(|namespace| !namespace.is_empty()) {
            Some(namespace) => Self {
                text: Arc::from(format!("{namespace}/{name}")),
                namespace: u32::try_from(namespace.len()).unwrap_or(u32::MAX),
            },
            None => Self {
                text: Arc::from(name),
                namespace: 0,
            },
        }
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
        match self.namespace {
            0 => None,
            length => self.text.get(..length as usize),
        }
    }

    /// The name within its namespace.
    #[must_use]
    pub fn name(&self) -> &str {
        match self.namespace {
            0 => &self.text,
            length => self.text.get(length as usize + 1..).unwrap_or_default(),
        }
    }

    /// The key as text, `namespace/name` or `name`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.text, &other.text)
            || (self.namespace == other.namespace && self.text == other.text)
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.namespace(), self.name()).cmp(&(other.namespace(), other.name()))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A text that is not a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a key: expected `name` or `namespace/name`")]
pub struct KeyError(String);
