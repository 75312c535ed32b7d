//! Delays: at most one deadline per key, handed out in order, exactly once.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};
use std::time::Instant;

use crate::{Seeded, shrink};

/// Deadlines of keys, one per key, for whoever owns the one timer.
///
/// An ordered map, not a wheel of slots: a slot has to be walked through again and again until the
/// far deadlines in it are due, and here nothing is touched before its time.
///
/// Nothing stale stays behind: replacing or removing a deadline takes the old entry out at once, so
/// memory follows the keys that wait and a far deadline costs what a near one costs. All operations
/// take O(log n). Keys with the same deadline come out in the order they were put in.
#[derive(Debug)]
pub struct Wheel<K, S = Seeded> {
    deadlines: HashMap<K, (Instant, u64), S>,
    /// The same entries by time; the number makes equal times distinct and keeps their order.
    order: BTreeMap<(Instant, u64), K>,
    next: u64,
}

impl<K: Clone + Eq + Hash> Wheel<K> {
    /// An empty wheel.
    #[must_use]
    pub fn new() -> Self {
        Wheel::default()
    }
}

impl<K: Clone + Eq + Hash, S: BuildHasher + Default> Default for Wheel<K, S> {
    fn default() -> Self {
        Wheel::with_hasher(S::default())
    }
}

impl<K: Clone + Eq + Hash, S: BuildHasher> Wheel<K, S> {
    /// An empty wheel with a hasher of the caller's choice; nothing but speed depends on it.
    #[must_use]
    pub fn with_hasher(hasher: S) -> Self {
        Wheel {
            deadlines: HashMap::with_hasher(hasher),
            order: BTreeMap::new(),
            next: 0,
        }
    }

    /// Asks for `key` at `until` at the latest: of two deadlines the earlier wins. Returns whether
    /// this one does.
    pub fn insert(&mut self, key: K, until: Instant) -> bool {
        let wins = self.until(&key).is_none_or(|present| until < present);
        if wins {
            self.set(key, until);
        }
        wins
    }

    /// Puts `until` in the place of whatever deadline `key` had. Right for those whose truth about
    /// the key is elsewhere.
    pub fn set(&mut self, key: K, until: Instant) {
        let at = (until, self.next);
        self.next += 1;
        if let Some(old) = self.deadlines.insert(key.clone(), at) {
            self.order.remove(&old);
        }
        self.order.insert(at, key);
    }

    /// Cancels the deadline of `key` and returns it.
    pub fn remove(&mut self, key: &K) -> Option<Instant> {
        let at = self.deadlines.remove(key)?;
        self.order.remove(&at);
        shrink(&mut self.deadlines);
        Some(at.0)
    }

    /// The deadline of `key`.
    #[must_use]
    pub fn until(&self, key: &K) -> Option<Instant> {
        self.deadlines.get(key).map(|&(until, _)| until)
    }

    /// The earliest deadline: when the one timer has to ring.
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        self.order.first_key_value().map(|(&(until, _), _)| until)
    }

    /// Takes out every key whose deadline is at or before `now`, the earliest first.
    pub fn pop_due(&mut self, now: Instant) -> Vec<K> {
        let mut due = Vec::new();
        while let Some(first) = self.order.first_entry()
            && first.key().0 <= now
        {
            let key = first.remove();
            self.deadlines.remove(&key);
            due.push(key);
        }
        shrink(&mut self.deadlines);
        due
    }

    /// How many keys have a deadline.
    #[must_use]
    pub fn len(&self) -> usize {
        self.deadlines.len()
    }

    /// Whether no key has a deadline.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.deadlines.is_empty()
    }

    /// Every key and its deadline, the earliest first.
    pub fn iter(&self) -> impl Iterator<Item = (&K, Instant)> {
        self.order.iter().map(|(&(until, _), key)| (key, until))
    }
}

#[cfg(test)]
mod tests;
