//! The objects of a store: found by hash, gone through by key.

use std::collections::BTreeSet;
use std::hash::BuildHasher as _;
use std::ops::Bound;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::key::Key;
use crate::object::Object;
use crate::table::is_too_large;

#[cfg(test)]
mod tests;

pub(super) struct Entry {
    pub(super) object: Object,
    /// The last list, or the list before the last watch event, that had the key.
    pub(super) stamp: u64,
}

/// Objects by key, each key once.
///
/// A read looks at one place of a table. In the order of keys alone it would compare a dozen texts, each of them far from the processor in a large store.
#[derive(Default)]
pub(super) struct Objects {
    table: HashTable<Entry>,
    order: BTreeSet<Key>,
    hasher: RandomState,
}

impl Objects {
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Entry> {
        self.table.find(self.hasher.hash_one(key), is(key))
    }

    pub(super) fn get_mut(&mut self, key: &Key) -> Option<&mut Entry> {
        self.table.find_mut(self.hasher.hash_one(key), is(key))
    }

    /// Adds an object whose key there is none of.
    pub(super) fn add(&mut self, entry: Entry) {
        let Self {
            table,
            order,
            hasher,
        } = self;
        let hash = |entry: &Entry| hasher.hash_one(entry.object.key());
        order.insert(entry.object.key().clone());
        table.insert_unique(hash(&entry), entry, hash);
    }

    pub(super) fn remove(&mut self, key: &Key) -> Option<Entry> {
        let Self {
            table,
            order,
            hasher,
        } = self;
        let found = table.find_entry(hasher.hash_one(key), is(key)).ok()?;
        let (entry, _) = found.remove();
        order.remove(key);
        // by itself it keeps the places of the most objects there ever were
        if is_too_large(table.len(), table.capacity()) {
            let hash = |entry: &Entry| hasher.hash_one(entry.object.key());
            table.shrink_to(table.len() * 2, hash);
        }
        Some(entry)
    }

    /// All of them, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.table.iter()
    }

    /// In the order of their keys.
    pub(super) fn sorted(&self, from: Bound<&Key>) -> impl Iterator<Item = &Object> {
        let keys = self.order.range((from, Bound::Unbounded));
        keys.filter_map(|key| Some(&self.get(key)?.object))
    }
}

fn is(key: &Key) -> impl FnMut(&Entry) -> bool {
    move |entry| entry.object.key() == key
}
