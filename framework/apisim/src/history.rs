//! The window of recent changes that watches are served from.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, OnceLock},
};

use bytes::Bytes;

use crate::model::object::{Key, Object};

/// One committed write.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) version: u64,
    /// The state before; `None` when the object was created.
    pub(crate) old: Option<Arc<Object>>,
    /// The state after; for a deletion the last state, at the version of the deletion.
    pub(crate) new: Arc<Object>,
    pub(crate) deleted: bool,
    /// The event as it goes over the wire to a watch without selectors, encoded once for all of them.
    pub(crate) line: OnceLock<Bytes>,
}

/// The asked version is older than what is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too old resource version: {asked} ({oldest})")]
pub(crate) struct Expired {
    pub(crate) asked: u64,
    pub(crate) oldest: u64,
}

/// Invariants: 1. versions rise strictly; 2. every change above `floor` is present.
#[derive(Clone, Debug)]
pub(crate) struct History {
    changes: VecDeque<Arc<Change>>,
    floor: u64,
    window: usize,
}

impl History {
    pub(crate) fn new(window: usize) -> Self {
        Self {
            changes: VecDeque::new(),
            floor: 0,
            window: window.max(1),
        }
    }

    pub(crate) fn push(&mut self, change: Change) {
        self.changes.push_back(Arc::new(change));
        if self.changes.len() > self.window
            && let Some(gone) = self.changes.pop_front()
        {
            self.floor = gone.version;
        }
    }

    /// Forgets every change up to and including `version`. Whoever has seen them all is not affected.
    pub(crate) fn compact(&mut self, version: u64) {
        let gone = self
            .changes
            .partition_point(|change| change.version <= version);
        if let Some(last) = self.changes.drain(..gone).next_back() {
            self.floor = last.version;
        }
    }

    /// Whether everything after `version` is still remembered.
    ///
    /// # Errors
    /// [`Expired`] if not.
    pub(crate) fn reaches(&self, version: u64) -> Result<(), Expired> {
        match version < self.floor {
            true => Err(Expired {
                asked: version,
                oldest: self.floor,
            }),
            false => Ok(()),
        }
    }

    /// The changes after `version`, oldest first; none when `version` lies in the future.
    ///
    /// # Errors
    /// [`Expired`] when some of them are forgotten.
    pub(crate) fn since(
        &self,
        version: u64,
    ) -> Result<impl DoubleEndedIterator<Item = &Arc<Change>>, Expired> {
        self.reaches(version)?;
        let first = self
            .changes
            .partition_point(|change| change.version <= version);
        Ok(self.changes.range(first..))
    }

    /// What must be undone to see the collection as it was at `version`: the state of each object changed since.
    ///
    /// # Errors
    /// [`Expired`] when it cannot be told any more.
    pub(crate) fn undo(&self, version: u64) -> Result<BTreeMap<Key, Option<Arc<Object>>>, Expired> {
        let changes = self.since(version)?.rev();
        Ok(changes
            .map(|change| (change.new.key.clone(), change.old.clone()))
            .collect())
    }
}

#[cfg(test)]
mod tests;
