//! How the bytes of an object are kept.

use bytes::Bytes;

/// An object's JSON as it lies in memory. Only this file knows the forms; readers ask for JSON.
#[derive(Debug)]
pub(crate) enum Body {
    /// As it is.
    Plain(Bytes),
}

impl Body {
    pub(crate) fn keep(json: Vec<u8>) -> Self {
        Self::Plain(Bytes::from(json.into_boxed_slice()))
    }

    pub(crate) fn json(&self) -> Bytes {
        match self {
            Self::Plain(bytes) => bytes.clone(),
        }
    }

    /// Bytes of memory this takes.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Plain(bytes) => bytes.len(),
        }
    }
}
