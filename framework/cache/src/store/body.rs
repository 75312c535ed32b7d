//! How the bytes of an object are kept.

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use zeroize::Zeroizing;

use super::dictionary::{self, Dictionary};
use super::edits;
use crate::spare::spare;

/// An object's JSON as it lies in memory. Only this file knows the forms; readers ask for JSON.
#[derive(Clone)]
pub(crate) enum Body {
    /// As it is.
    Plain(Bytes),
    /// Packed.
    Packed(Packed),
    /// Packed, and others refer to it.
    Head(Arc<Packed>),
}

/// What is left of an object, and what is needed to read it.
#[derive(Clone)]
pub(crate) struct Packed {
    frame: Box<[u8]>,
    by: By,
}

/// What a frame refers to.
#[derive(Clone)]
pub(crate) enum By {
    /// Nothing.
    Itself,
    /// What the objects of its kind have in common.
    Dictionary(Arc<Dictionary>),
    /// An object that it is very much like, which refers to no other one.
    Head(Arc<Packed>),
    /// The same, and the frame is none of zstd's but [edits](super::edits).
    Twin(Arc<Packed>),
}

thread_local! {
    /// Where a packed body is unpacked to be looked at; taken out meanwhile, for whoever looks may look at another one.
    static UNPACKED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// The same, of the head that it refers to.
    static HEAD: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Packed {
    /// `None` if that is not possible or saves nothing.
    pub(crate) fn new(json: &[u8], dictionary: Option<&Arc<Dictionary>>) -> Option<Self> {
        let frame = dictionary::pack(json, dictionary.map(|dictionary| dictionary.packer()))?;
        (frame.len() < json.len()).then(|| Self {
            frame,
            by: dictionary.map_or(By::Itself, |dictionary| By::Dictionary(dictionary.clone())),
        })
    }

    /// A frame that was packed by what `head` reads as.
    pub(crate) fn like(head: &Arc<Self>, frame: Box<[u8]>) -> Self {
        Self {
            frame,
            by: By::Head(head.clone()),
        }
    }

    /// What `head` reads as, with the edits of `frame`.
    pub(crate) fn edited(head: &Arc<Self>, frame: Box<[u8]>) -> Self {
        Self {
            frame,
            by: By::Twin(head.clone()),
        }
    }

    pub(crate) fn by(&self) -> &By {
        &self.by
    }

    pub(crate) fn size(&self) -> usize {
        self.frame.len()
    }

    /// Fills `json`; leaves it empty if the frame was damaged in memory.
    fn unpack(&self, json: &mut Vec<u8>) {
        match &self.by {
            By::Itself => dictionary::unpack(&self.frame, None, json),
            By::Dictionary(dictionary) => dictionary::unpack(&self.frame, Some(dictionary), json),
            By::Head(head) => head.lend(|like| dictionary::unpack_like(&self.frame, like, json)),
            By::Twin(head) => head.lend(|like| edits::apply(&self.frame, like, json)),
        }
    }

    /// What it reads as, for one that refers to it.
    fn lend(&self, read: impl FnOnce(&[u8])) {
        let mut json = HEAD.take();
        self.unpack(&mut json);
        read(&json);
        HEAD.set(spare(json));
    }

    /// Bytes of the JSON.
    fn json_size(&self) -> usize {
        match self.by {
            By::Twin(_) => edits::size(&self.frame),
            _ => dictionary::unpacked_size(&self.frame),
        }
    }
}

impl Body {
    pub(crate) fn plain(json: Vec<u8>) -> Self {
        Self::Plain(Bytes::from(json.into_boxed_slice()))
    }

    /// As it is, and wiped when the last reader has let go of it.
    pub(crate) fn sealed(json: Vec<u8>) -> Self {
        Self::Plain(Bytes::from_owner(Zeroizing::new(json)))
    }

    /// The JSON, to keep.
    pub(crate) fn json(&self) -> Bytes {
        match self {
            Self::Plain(bytes) => bytes.clone(),
            Self::Packed(_) | Self::Head(_) => self.read(Bytes::copy_from_slice),
        }
    }

    /// The JSON, to look at.
    pub(crate) fn read<R>(&self, look: impl FnOnce(&[u8]) -> R) -> R {
        match self.form() {
            Err(bytes) => look(bytes),
            Ok(packed) => {
                let mut json = UNPACKED.take();
                packed.unpack(&mut json);
                let found = look(&json);
                UNPACKED.set(spare(json));
                found
            }
        }
    }

    /// How it is packed, or its JSON.
    fn form(&self) -> Result<&Packed, &[u8]> {
        match self {
            Self::Plain(bytes) => Err(bytes),
            Self::Packed(packed) => Ok(packed),
            Self::Head(packed) => Ok(packed),
        }
    }

    /// How it is packed, if others may refer to it.
    pub(crate) fn head(&self) -> Option<&Arc<Packed>> {
        match self {
            Self::Head(head) => Some(head),
            Self::Plain(_) | Self::Packed(_) => None,
        }
    }

    /// How it is packed, if it is.
    pub(crate) fn as_packed(&self) -> Option<&Packed> {
        self.form().ok()
    }

    /// Bytes of memory this takes.
    pub(crate) fn size(&self) -> usize {
        self.form().map_or_else(<[u8]>::len, Packed::size)
    }

    /// Bytes of the JSON.
    pub(crate) fn json_size(&self) -> usize {
        self.form().map_or_else(<[u8]>::len, Packed::json_size)
    }
}
