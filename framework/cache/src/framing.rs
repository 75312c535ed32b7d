//! Cuts the bytes of an answer into objects while they arrive.
//!
//! Both splitters take chunks cut anywhere, hold at most one unfinished item, and never keep more than their limit of it: what is larger is
//! handed on as [`Item::Oversized`] and skipped. They find where items end; whether an item is valid is for its reader to say.

use serde::Deserialize;

use crate::redact::describe;
use crate::version::Version;

mod lines;
mod list;
mod scan;
#[cfg(test)]
mod tests;

pub use lines::LineSplitter;
pub use list::ListSplitter;

/// Largest item kept by default, in bytes. etcd refuses objects far below it.
pub const MAX_ITEM: usize = 16 << 20;

/// Of an item that is too large this much is kept, in the hope that its name is in it.
const HEAD: usize = 64 << 10;

/// Largest `metadata` of a list; it holds a version and a token.
const MAX_LIST_META: usize = 1 << 20;

/// One item of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// All bytes of it.
    Whole(&'a [u8]),
    /// The beginning of an item above the limit.
    Oversized(&'a [u8]),
}

/// Who takes the items of a list; see [`ListSplitter::push_to`].
pub trait Sink {
    /// Is told of which kind the list says it is, if it does so before its items.
    fn kind(&mut self, _: &str) {}

    /// Takes an item.
    fn item(&mut self, item: Item<'_>);

    /// Takes the item that `bytes` begin with, if all of it is there, and returns how many bytes it has; `None` leaves it to the splitter to find its end.
    ///
    /// Finding the end of an item means looking at all of its bytes. Who parses them anyway can save half of the work.
    fn front(&mut self, bytes: &[u8]) -> Option<usize>;
}

/// What a list says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListMeta {
    /// The state the list was read at.
    pub version: Version,
    /// Where the next page begins; `None` on the last.
    pub next: Option<String>,
}

impl ListMeta {
    fn parse(json: &[u8]) -> Result<Self, FrameError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Raw {
            resource_version: Option<String>,
            #[serde(rename = "continue")]
            next: Option<String>,
        }
        let raw: Raw =
            serde_json::from_slice(json).map_err(|error| FrameError::Metadata(describe(&error)))?;
        let version = raw.resource_version.filter(|text| !text.is_empty());
        let version =
            version.ok_or_else(|| FrameError::Metadata("resourceVersion is missing".to_owned()))?;
        Ok(Self {
            version: Version::new(&version),
            next: raw.next.filter(|token| !token.is_empty()),
        })
    }
}

/// An answer that is not the body it should be. Retrying is safe: nothing was concluded from what was missing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The body ended before the list did.
    #[error("the list was cut off after {items} items and {bytes} bytes")]
    Truncated {
        /// Items that had arrived complete.
        items: u64,
        /// Bytes that had arrived.
        bytes: u64,
    },
    /// A byte that no list of objects has there.
    #[error("not a list of objects: unexpected byte 0x{byte:02x} at offset {at}")]
    Unexpected {
        /// The byte.
        byte: u8,
        /// Offset from the start of the body.
        at: u64,
    },
    /// The document has no `items`, or something else than a list by that name.
    #[error("not a list of objects: its items are missing or no list")]
    NoItems,
    /// The list does not say which state it shows.
    #[error("the list's metadata cannot be used: {0}")]
    Metadata(String),
    /// A member name or `metadata` longer than any list has.
    #[error("not a list of objects: a member outside of items exceeds {limit} bytes")]
    MemberTooLarge {
        /// The limit.
        limit: usize,
    },
}

/// Bytes of one item across chunks: borrowed while a chunk has all of it, copied only when it spans several.
#[derive(Debug)]
struct Gather {
    kept: Vec<u8>,
    total: usize,
    limit: usize,
}

impl Gather {
    fn new(limit: usize) -> Self {
        Self {
            kept: Vec::new(),
            total: 0,
            limit,
        }
    }

    fn add(&mut self, part: &[u8]) {
        self.total += part.len();
        if self.total <= self.limit {
            self.kept.extend_from_slice(part);
        } else {
            let room = HEAD.min(self.limit).saturating_sub(self.kept.len());
            self.kept.extend_from_slice(&part[..part.len().min(room)]);
            self.kept.truncate(HEAD.min(self.limit));
            self.kept.shrink_to(HEAD);
        }
    }

    /// Completes the item with its last `part` and hands it on.
    fn finish(&mut self, part: &[u8], sink: &mut dyn FnMut(Item<'_>)) {
        if self.total == 0 && part.len() <= self.limit {
            return sink(Item::Whole(part));
        }
        self.add(part);
        sink(if self.total <= self.limit {
            Item::Whole(&self.kept)
        } else {
            Item::Oversized(&self.kept)
        });
        self.clear();
    }

    fn clear(&mut self) {
        self.kept.clear();
        self.kept.shrink_to(HEAD);
        self.total = 0;
    }
}
