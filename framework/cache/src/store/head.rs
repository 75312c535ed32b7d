//! Packs an object by its neighbour.

use std::sync::Arc;

use zstd_safe::CDict;

use super::body::Packed;
use super::dictionary::{pack, packer};
use crate::key::Key;

#[cfg(test)]
mod tests;

/// The last object that was not packed by a neighbour, by which those behind it may be.
#[derive(Default)]
pub(super) struct Heads {
    last: Option<Head>,
    /// Attempts to leave out: there are kinds whose objects are alike in nothing but names.
    patience: u8,
    /// Attempts that failed one after the other.
    failures: u32,
}

struct Head {
    key: Key,
    json: Vec<u8>,
    packed: Arc<Packed>,
    /// Made when there is something to pack.
    packer: Option<CDict<'static>>,
}

impl Heads {
    /// `None` if the object is not like the last head.
    pub(super) fn pack(&mut self, key: &Key, json: &[u8]) -> Option<Packed> {
        let head = self.last.as_mut().filter(|head| is_like(&head.key, key))?;
        if self.patience > 0 {
            self.patience -= 1;
            return None;
        }
        if head.packer.is_none() {
            head.packer = packer(&head.json);
        }
        let frame = pack(json, head.packer.as_ref())?;
        if !is_worth_it(&head.packed, &frame) {
            self.failures += 1;
            // the first one behind a head that was of another origin is no sign
            let longer = 1u32 << self.failures.min(8);
            self.patience = u8::try_from(longer - 2).unwrap_or(u8::MAX);
            return None;
        }
        self.failures = 0;
        Some(Packed::like(&head.packed, frame))
    }

    /// Others may be packed by this object from now on.
    pub(super) fn lead(&mut self, key: &Key, json: &[u8], packed: &Arc<Packed>) {
        let mut copy = self.last.take().map(|head| head.json).unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(json);
        self.last = Some(Head {
            key: key.clone(),
            json: copy,
            packed: packed.clone(),
            packer: None,
        });
    }
}

/// Whether so small a frame is worth that its object cannot be read without the head.
pub(super) fn is_worth_it(head: &Packed, frame: &[u8]) -> bool {
    frame.len() * 4 <= head.size() * 3
}

/// Whether names tell that two objects are of one origin: the texts are the same for at least half of their length.
fn is_like(one: &Key, other: &Key) -> bool {
    one.namespace() == other.namespace()
        && one.common_with(other) * 2 >= one.as_str().len().max(other.as_str().len())
}
