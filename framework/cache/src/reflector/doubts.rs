//! Items of a streamed list that may be ghosts, before the version of the list is known.

use std::collections::BTreeMap;

use super::answer::Failure;
use crate::delta::Delta;
use crate::key::Key;
use crate::version::Version;

#[cfg(test)]
mod tests;

/// Items that may be held back; more of them are no accident.
const MAX_HELD: usize = 1024;

/// Keeps a cached list that is older than what is known from bringing back what was deleted since.
///
/// An item that is not stored, though everything up to its version is, ended in between, unless its news is still queued: it is held back until the
/// version of the list has proved that it exists.
#[derive(Debug)]
pub(crate) struct Doubts {
    /// Everything up to here was handed over when the list began.
    known: Option<Version>,
    held: BTreeMap<Key, Delta>,
}

impl Doubts {
    pub(crate) fn new(known: Option<Version>) -> Self {
        Self {
            known,
            held: BTreeMap::new(),
        }
    }

    /// What of `delta` may be handed over now; `stored` tells whether the store has its key.
    ///
    /// # Errors
    ///
    /// When too much had to be held back.
    pub(crate) fn take(&mut self, delta: Delta, stored: bool) -> Result<Option<Delta>, Failure> {
        let doubtful = match (&delta, &self.known) {
            (Delta::Listed(object), Some(known)) if !stored => {
                known.has_reached(&object.meta().resource_version)
            }
            _ => false,
        };
        if doubtful {
            self.held.insert(delta.key().clone(), delta);
            return if self.held.len() > MAX_HELD {
                Err(Failure::UnknownAge)
            } else {
                Ok(None)
            };
        }
        if !self.held.is_empty() {
            // whatever is told of a key later replaces what was told before
            self.held.remove(delta.key());
        }
        Ok(Some(delta))
    }

    /// The list is as new as it has to be: what was held back exists.
    pub(crate) fn proved(self) -> Vec<Delta> {
        self.held.into_values().collect()
    }
}
