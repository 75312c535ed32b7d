//! The keys that are out of the round, for those who look.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use boatswain_cache::Key;

use crate::sync::lock;

/// A key that is parked: it failed by its object's fault too often, or its reconciler gave it up.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParkedKey {
    /// Which.
    pub key: Key,
    /// Why: the last error, in words for people.
    pub reason: String,
    /// How often it has failed in a row.
    pub failures: u32,
    /// Since when.
    pub since: jiff::Timestamp,
    /// When it is tried again although nothing has changed, within a minute.
    pub next_try: jiff::Timestamp,
}

/// The parked keys of one shard, which alone writes it.
#[derive(Clone, Default)]
pub(crate) struct ParkedView(Arc<Shown>);

#[derive(Default)]
struct Shown {
    keys: Mutex<BTreeMap<Key, ParkedKey>>,
    /// How many there are: what wakes a key need not take the lock to learn that none is.
    len: AtomicUsize,
}

impl ParkedView {
    pub(super) fn insert(&self, parked: ParkedKey) {
        let mut keys = self.keys();
        keys.insert(parked.key.clone(), parked);
        self.0.len.store(keys.len(), Relaxed);
    }

    pub(crate) fn contains(&self, key: &Key) -> bool {
        self.len() > 0 && self.keys().contains_key(key)
    }

    /// How many there are, with those that have news and rest before they run for them.
    pub(super) fn len(&self) -> usize {
        self.0.len.load(Relaxed)
    }

    /// A parked key has news: it is tried again at `next_try`.
    pub(super) fn hurry(&self, key: &Key, next_try: jiff::Timestamp) {
        if let Some(parked) = self.keys().get_mut(key) {
            parked.next_try = next_try;
        }
    }

    pub(super) fn remove(&self, key: &Key) {
        if self.len() > 0 {
            let mut keys = self.keys();
            keys.remove(key);
            self.0.len.store(keys.len(), Relaxed);
        }
    }

    pub(super) fn clear(&self) {
        self.keys().clear();
        self.0.len.store(0, Relaxed);
    }

    pub(crate) fn get(&self, key: &Key) -> Option<ParkedKey> {
        self.keys().get(key).cloned()
    }

    pub(crate) fn read(&self) -> Vec<ParkedKey> {
        self.keys().values().cloned().collect()
    }

    fn keys(&self) -> MutexGuard<'_, BTreeMap<Key, ParkedKey>> {
        lock(&self.0.keys)
    }
}
