//! Remembers what objects were decoded to, within a bound.

use std::any::{Any, TypeId};
use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::object::DecodeError;

/// A decoded object of some type.
pub(crate) type Decoded = Arc<dyn Any + Send + Sync>;

/// What an object was decoded to, for one type.
pub(crate) type Outcome = (TypeId, Result<Decoded, DecodeError>);

/// A typed tree of strings and maps takes about so many times the bytes of its JSON; 5 to 8 were measured for pods.
const TREE: usize = 8;

/// Recently decoded objects, shared by all readers of an informer. Objects that are scanned once do not push out those that are read again.
pub(crate) struct Memo(Cache<usize, Noted, Weight>);

#[derive(Clone)]
struct Noted {
    weight: u64,
    outcomes: Arc<[Outcome]>,
}

#[derive(Clone)]
struct Weight;

impl Weighter<usize, Noted> for Weight {
    fn weight(&self, _: &usize, noted: &Noted) -> u64 {
        noted.weight
    }
}

/// How well a memo does, as the informer's status shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct MemoStatus {
    /// Reads that found their object decoded.
    pub hits: u64,
    /// Reads that had to decode it.
    pub misses: u64,
    /// Decoded objects kept.
    pub objects: usize,
    /// Their estimated bytes.
    pub bytes: u64,
}

impl Memo {
    /// A memo of about `bytes`.
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Cache::with_weighter(bytes >> 15, bytes as u64, Weight))
    }

    /// What the object at `address` was decoded to as `kind`, or else what `decode` says.
    pub(crate) fn recall(
        &self,
        address: usize,
        kind: TypeId,
        json_size: usize,
        decode: impl FnOnce() -> Result<Decoded, DecodeError>,
    ) -> Result<Decoded, DecodeError> {
        let noted = self.0.get(&address);
        let outcomes = noted.as_ref().map_or(&[][..], |noted| &noted.outcomes);
        if let Some((_, outcome)) = outcomes.iter().find(|(noted, _)| *noted == kind) {
            return outcome.clone();
        }
        let outcome = decode();
        let outcomes: Arc<[_]> = outcomes
            .iter()
            .cloned()
            .chain([(kind, outcome.clone())])
            .collect();
        let trees = outcomes
            .iter()
            .filter(|(_, outcome)| outcome.is_ok())
            .count();
        let noted = Noted {
            weight: (256 + trees * json_size * TREE) as u64,
            outcomes,
        };
        self.0.insert(address, noted);
        outcome
    }

    /// The object at `address` is no more.
    pub(crate) fn forget(&self, address: usize) {
        self.0.remove(&address);
    }

    pub(crate) fn status(&self) -> MemoStatus {
        MemoStatus {
            hits: self.0.hits(),
            misses: self.0.misses(),
            objects: self.0.len(),
            bytes: self.0.weight(),
        }
    }
}
