//! How the bytes of an object are kept.

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use zeroize::Zeroizing;

use super::dictionary::{self, Dictionary};

/// An object's JSON as it lies in memory. Only this file knows the forms; readers ask for JSON.
pub(crate) enum Body {
    /// As it is.
    Plain(Bytes),
    /// As a zstd frame.
    Packed {
        frame: Box<[u8]>,
        dictionary: Option<Arc<Dictionary>>,
    },
}

thread_local! {
    /// Where a packed body is unpacked to be looked at; taken out meanwhile, for whoever looks may look at another one.
    static UNPACKED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Buffers above this size are not kept by a thread.
const SPARE: usize = 1 << 20;

impl Body {
    pub(crate) fn plain(json: Vec<u8>) -> Self {
        Self::Plain(Bytes::from(json.into_boxed_slice()))
    }

    /// As it is, and wiped when the last reader has let go of it.
    pub(crate) fn sealed(json: Vec<u8>) -> Self {
        Self::Plain(Bytes::from_owner(Zeroizing::new(json)))
    }

    /// Packed, if that is possible and saves anything.
    pub(crate) fn packed(json: &[u8], dictionary: Option<&Arc<Dictionary>>) -> Option<Self> {
        let frame = dictionary::pack(json, dictionary.map(|dictionary| &**dictionary))?;
        (frame.len() < json.len()).then(|| Self::Packed {
            frame,
            dictionary: dictionary.cloned(),
        })
    }

    /// The JSON, to keep.
    pub(crate) fn json(&self) -> Bytes {
        match self {
            Self::Plain(bytes) => bytes.clone(),
            Self::Packed { .. } => self.read(Bytes::copy_from_slice),
        }
    }

    /// The JSON, to look at.
    pub(crate) fn read<R>(&self, look: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Self::Plain(bytes) => look(bytes),
            Self::Packed { frame, dictionary } => {
                let mut json = UNPACKED.take();
                dictionary::unpack(frame, dictionary.as_deref(), &mut json);
                let found = look(&json);
                if json.capacity() <= SPARE {
                    UNPACKED.set(json);
                }
                found
            }
        }
    }

    /// Bytes of memory this takes.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Plain(bytes) => bytes.len(),
            Self::Packed { frame, .. } => frame.len(),
        }
    }

    /// Bytes of the JSON.
    pub(crate) fn json_size(&self) -> usize {
        match self {
            Self::Plain(bytes) => bytes.len(),
            Self::Packed { frame, .. } => dictionary::unpacked_size(frame),
        }
    }

    /// The dictionary it was packed with.
    pub(crate) fn dictionary(&self) -> Option<&Arc<Dictionary>> {
        match self {
            Self::Plain(_) => None,
            Self::Packed { dictionary, .. } => dictionary.as_ref(),
        }
    }
}
