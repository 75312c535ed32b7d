//! The journals of a controller's shards, for all who read them.

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Instant,
};

use boatswain_cache::Key;

use super::journal::{Failing, Journal};
use crate::{dispatch::ShardView, sync::lock};

/// One journal for each shard; a clone is the same ones. They outlive the workers that write them.
#[derive(Clone)]
pub(crate) struct Journals(Arc<[Mutex<Journal>]>);

impl Journals {
    /// Empty ones.
    pub(crate) fn new(shards: usize) -> Self {
        Self((0..shards).map(|_| Mutex::default()).collect())
    }

    /// That of one shard; whoever has it keeps the shard's runs from ending.
    pub(crate) fn of(&self, shard: usize) -> MutexGuard<'_, Journal> {
        lock(&self.0[shard])
    }

    /// Each of them, one after the other.
    pub(crate) fn all(&self) -> impl Iterator<Item = MutexGuard<'_, Journal>> {
        self.0.iter().map(lock)
    }

    /// The keys that have been failing since `then` at least, are still to be run and are not parked; `views` are those of the same shards.
    pub(crate) fn failing_since(&self, then: Instant, views: &[ShardView]) -> Vec<(Key, Failing)> {
        let mut all = Vec::new();
        for (view, journal) in views.iter().zip(&*self.0) {
            let mut failing = lock(journal).failing_since(then);
            if !failing.is_empty() {
                // one that is idle has gone, or there was nothing to do any more
                view.look(|queue| failing.retain(|(key, _)| queue.state_of(key).is_some()));
                failing.retain(|(key, _)| !view.parked.contains(key));
            }
            all.append(&mut failing);
        }
        all
    }
}
