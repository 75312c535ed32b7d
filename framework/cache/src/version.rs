//! How fresh a state is, as the server numbers it.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// A `resourceVersion`: where in the server's history a state was read.
///
/// Two versions of one resource are ordered only where both are plain decimals, as every Kubernetes API server writes them (allowed by
/// its documentation since 1.35); any other text supports equality alone.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Version(Form);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Form {
    /// A canonical decimal: its text is the number's, so equality of numbers is equality of texts.
    Decimal(u64),
    Opaque(Arc<str>),
}

impl Version {
    /// Takes the text as the server wrote it.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let canonical = text.bytes().all(|byte| byte.is_ascii_digit())
            && (text == "0" || !text.starts_with('0'));
        match text.parse() {
            Ok(number) if canonical => Self(Form::Decimal(number)),
            _ => Self(Form::Opaque(Arc::from(text))),
        }
    }

    /// The state that an object is in, such as one a write was answered with; `None` for one that no server has seen yet.
    #[must_use]
    pub fn of<K: kube::Resource>(object: &K) -> Option<Self> {
        object.meta().resource_version.as_deref().map(Self::new)
    }

    /// The number that it is, if it is one.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        match self.0 {
            Form::Decimal(number) => Some(number),
            Form::Opaque(_) => None,
        }
    }

    /// The order of two versions, or `None` where only equality is known and they differ.
    #[must_use]
    pub fn cmp_known(&self, other: &Self) -> Option<Ordering> {
        match (&self.0, &other.0) {
            (Form::Decimal(mine), Form::Decimal(theirs)) => Some(mine.cmp(theirs)),
            (mine, theirs) if mine == theirs => Some(Ordering::Equal),
            _ => None,
        }
    }

    /// Whether this version is certain to be before `other`.
    #[must_use]
    pub fn is_before(&self, other: &Self) -> bool {
        self.cmp_known(other) == Some(Ordering::Less)
    }

    /// Whether this version is certain to be at or after `other`.
    #[must_use]
    pub fn has_reached(&self, other: &Self) -> bool {
        matches!(
            self.cmp_known(other),
            Some(Ordering::Equal | Ordering::Greater)
        )
    }

    /// Whether versions of this form can be ordered.
    #[must_use]
    pub fn is_ordered(&self) -> bool {
        matches!(self.0, Form::Decimal(_))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Decimal(number) => number.fmt(f),
            Form::Opaque(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<&str> for Version {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}
