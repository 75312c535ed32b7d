//! Objects by key.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Arc, RwLock};

use super::index::{Index, IndexSpec};
use super::settle::{Outcome, settle};
use crate::delta::{Cause, Change};
use crate::delta_fifo::state::{ListEnd, Pending, Step};
use crate::key::Key;
use crate::object::Object;
use crate::sync::{read, write};
use crate::version::Version;

#[cfg(test)]
mod tests;

/// A store without objects: the one who may write, and the first of those who may read.
pub(crate) fn store() -> (Writer, Reader) {
    let shelf = Arc::new(RwLock::new(Shelf::default()));
    (
        Writer {
            shelf: shelf.clone(),
            low_water: None,
            graves: HashMap::new(),
        },
        Reader(shelf),
    )
}

#[derive(Default)]
struct Shelf {
    objects: BTreeMap<Key, Entry>,
    /// Keys whose newest state cannot be read; an older state may be stored beside it.
    unreadable: BTreeMap<Key, Unreadable>,
    indexes: Vec<Index>,
    /// Changes with the set of indexes.
    generation: u64,
    bytes: usize,
}

struct Entry {
    object: Object,
    /// The last list, or the list before the last watch event, that had the key.
    stamp: u64,
}

struct Unreadable {
    reason: Arc<str>,
    stamp: u64,
}

/// Reads the store. A clone costs one reference count; every call sees whole batches.
#[derive(Clone)]
pub(crate) struct Reader(Arc<RwLock<Shelf>>);

impl Reader {
    pub(crate) fn get(&self, key: &Key) -> Option<Object> {
        read(&self.0)
            .objects
            .get(key)
            .map(|entry| entry.object.clone())
    }

    /// Why the newest state of the key cannot be read, if so.
    pub(crate) fn unreadable(&self, key: &Key) -> Option<Arc<str>> {
        read(&self.0)
            .unreadable
            .get(key)
            .map(|entry| entry.reason.clone())
    }

    pub(crate) fn all_unreadable(&self) -> Vec<(Key, Arc<str>)> {
        read(&self.0)
            .unreadable
            .iter()
            .map(|(key, entry)| (key.clone(), entry.reason.clone()))
            .collect()
    }

    /// Objects by key, of all namespaces or of one.
    pub(crate) fn list(&self, namespace: Option<&str>) -> Vec<Object> {
        let shelf = read(&self.0);
        let Some(namespace) = namespace else {
            return shelf
                .objects
                .values()
                .map(|entry| entry.object.clone())
                .collect();
        };
        let from = Bound::Included(Key::new(Some(namespace), ""));
        let objects = shelf.objects.range((from, Bound::Unbounded));
        objects
            .take_while(|(key, _)| key.namespace() == Some(namespace))
            .map(|(_, entry)| entry.object.clone())
            .collect()
    }

    /// Objects by key that have `value` in the index, or `None` if there is no such index.
    pub(crate) fn by_index(&self, index: &str, value: &str) -> Option<Vec<Object>> {
        let shelf = read(&self.0);
        let index = shelf
            .indexes
            .iter()
            .find(|candidate| candidate.spec.name() == index)?;
        Some(
            index
                .keys(value)
                .filter_map(|key| shelf.objects.get(key))
                .map(|entry| entry.object.clone())
                .collect(),
        )
    }

    pub(crate) fn keys_by_index(&self, index: &str, value: &str) -> Option<Vec<Key>> {
        let shelf = read(&self.0);
        let index = shelf
            .indexes
            .iter()
            .find(|candidate| candidate.spec.name() == index)?;
        Some(index.keys(value).cloned().collect())
    }

    /// Asks the indexes about the states in a batch. This runs the code of users: no lock is held, and its failures are counted, not raised.
    pub(crate) fn index<P>(&self, steps: &[Step<P>]) -> Indexed {
        let shelf = read(&self.0);
        let specs: Vec<_> = shelf
            .indexes
            .iter()
            .map(|index| index.spec.clone())
            .collect();
        let generation = shelf.generation;
        drop(shelf);
        let mut failed = Vec::new();
        let mut values = |step: &Step<P>| match step {
            Step::Key(
                key,
                Pending {
                    latest: Some(object),
                    ..
                },
            ) => {
                let values = specs.iter().map(|spec| {
                    let values = spec.values(object);
                    values
                        .map_err(|reason| failed.push((key.clone(), spec.name().into(), reason)))
                        .ok()
                });
                values.collect()
            }
            _ => Values::new(),
        };
        let values = steps.iter().map(&mut values).collect();
        Indexed {
            generation,
            values,
            failed,
        }
    }

    /// Objects and their bytes.
    pub(crate) fn size(&self) -> (usize, usize) {
        let shelf = read(&self.0);
        (shelf.objects.len(), shelf.bytes)
    }
}

/// Writes the store; there is one.
pub(crate) struct Writer {
    shelf: Arc<RwLock<Shelf>>,
    low_water: Option<Version>,
    /// Keys that went later than the low-water mark: the server may tell of their earlier states once more, after a crash.
    graves: HashMap<Key, Version>,
}

/// What a batch did.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    pub(crate) changes: Vec<(Change, Cause)>,
    /// News that were older than what is known.
    pub(crate) stale: u64,
    /// News that changed nothing.
    pub(crate) unchanged: u64,
    /// Objects an index failed for: key, index, reason.
    pub(crate) unindexed: Vec<(Key, Arc<str>, String)>,
    /// The lists that ended.
    pub(crate) lists: Vec<ListEnd>,
    /// Everything that was behind when this watch was opened is in.
    pub(crate) live: Option<u64>,
    /// Keys that left the set of unreadable ones or changed: what was noted about their decoding is void.
    pub(crate) touched: Vec<Key>,
}

/// What the indexes say of a batch.
pub(crate) struct Indexed {
    generation: u64,
    values: Vec<Values>,
    failed: Vec<(Key, Arc<str>, String)>,
}

/// Values per index, in the order of the indexes; `None` where an index failed.
type Values = Vec<Option<Vec<String>>>;

impl Writer {
    pub(crate) fn low_water(&self) -> Option<&Version> {
        self.low_water.as_ref()
    }

    /// Adds an index over what is stored; one of the same name is replaced.
    pub(crate) fn add_index(&mut self, spec: IndexSpec) -> Vec<(Key, Arc<str>, String)> {
        let mut failed = Vec::new();
        let mut index = Index::new(spec);
        let objects: Vec<_> = read(&self.shelf)
            .objects
            .values()
            .map(|entry| entry.object.clone())
            .collect();
        for object in objects {
            match index.spec.values(&object) {
                Ok(values) => index.set(object.key(), &values),
                Err(reason) => {
                    failed.push((object.key().clone(), index.spec.name().into(), reason))
                }
            }
        }
        let mut shelf = write(&self.shelf);
        shelf
            .indexes
            .retain(|other| other.spec.name() != index.spec.name());
        shelf.indexes.push(index);
        shelf.generation += 1;
        failed
    }

    /// Applies a batch as a whole. Nothing in it can fail: the code of users had its say in [`Reader::index`], unless an index came in between.
    pub(crate) fn apply<P>(
        &mut self,
        steps: &[Step<P>],
        indexed: Indexed,
        watermark: Option<&Version>,
    ) -> Applied {
        let current = indexed.generation == read(&self.shelf).generation;
        let indexed = if current {
            indexed
        } else {
            Reader(self.shelf.clone()).index(steps)
        };
        let mut applied = Applied {
            unindexed: indexed.failed,
            ..Applied::default()
        };

        let mut shelf = write(&self.shelf);
        for (step, values) in steps.iter().zip(indexed.values) {
            match step {
                Step::Key(key, pending) => {
                    let grave = self.graves.get(key);
                    let removed = shelf.apply(key, pending, &values, grave, &mut applied);
                    if let (Some(version), true) = (
                        pending.gone.as_ref().and_then(|gone| gone.version.clone()),
                        removed,
                    ) && version.is_ordered()
                    {
                        self.graves.insert(key.clone(), version);
                    }
                }
                Step::End(list) => {
                    if list.complete {
                        shelf.sweep(list, &mut applied);
                    }
                    if list.replace.trust.is_final() {
                        self.graves.clear();
                        // a server restored from a backup goes back, and we with it
                        self.low_water = None;
                    }
                    applied.lists.push(list.clone());
                }
                Step::Live(watch) => applied.live = Some(*watch),
            }
        }
        drop(shelf);
        self.advance(watermark);
        applied
    }

    /// Sets a key aside: what is stored of it stays, and readers are told that it is not its newest state.
    pub(crate) fn set_aside(&mut self, key: &Key, reason: &str, stamp: u64) {
        write(&self.shelf).unreadable.insert(
            key.clone(),
            Unreadable {
                reason: reason.into(),
                stamp,
            },
        );
    }

    fn advance(&mut self, watermark: Option<&Version>) {
        let Some(watermark) = watermark else { return };
        if self
            .low_water
            .as_ref()
            .is_none_or(|low| !watermark.is_before(low))
        {
            self.low_water = Some(watermark.clone());
        }
        self.graves.retain(|_, grave| watermark.is_before(grave));
    }
}

impl Shelf {
    /// Returns whether the key is gone now and was not before.
    fn apply<P>(
        &mut self,
        key: &Key,
        pending: &Pending<P>,
        values: &Values,
        grave: Option<&Version>,
        applied: &mut Applied,
    ) -> bool {
        let stored = self.objects.get_mut(key);
        let settled = settle(
            stored.as_ref().map(|entry| &entry.object),
            grave,
            pending.gone.as_ref(),
            pending.latest.as_ref(),
            pending.trust,
        );
        applied.stale += u64::from(settled.stale);
        applied.unchanged += u64::from(settled.changes.is_empty() && !settled.stale);
        let mut news = !settled.stale;
        if let Some(entry) = stored {
            entry.stamp = pending.stamp;
            let known = &entry.object.meta().resource_version;
            news &= pending.trust.is_final()
                || !pending
                    .newest
                    .as_ref()
                    .is_some_and(|version| version.is_before(known));
        }
        match &pending.unreadable {
            Some(reason) if news => {
                self.unreadable.insert(
                    key.clone(),
                    Unreadable {
                        reason: reason.as_str().into(),
                        stamp: pending.stamp,
                    },
                );
            }
            None if news => drop(self.unreadable.remove(key)),
            _ => {}
        }
        let removed = matches!(settled.outcome, Outcome::Remove);
        match settled.outcome {
            Outcome::Keep => {}
            Outcome::Put(object) => {
                self.put(object, pending.stamp, values);
                applied.touched.push(key.clone());
            }
            Outcome::Remove => {
                self.take(key);
                applied.touched.push(key.clone());
            }
        }
        applied.changes.extend(
            settled
                .changes
                .into_iter()
                .map(|change| (change, pending.cause)),
        );
        removed
    }

    fn put(&mut self, object: Object, stamp: u64, values: &Values) {
        let key = object.key().clone();
        for (index, values) in self.indexes.iter_mut().zip(values) {
            match values {
                Some(values) => index.set(&key, values),
                None => index.remove(&key),
            }
        }
        self.bytes += object.size();
        if let Some(old) = self.objects.insert(key, Entry { object, stamp }) {
            self.bytes -= old.object.size();
        }
    }

    fn take(&mut self, key: &Key) -> Option<Object> {
        let entry = self.objects.remove(key)?;
        self.bytes -= entry.object.size();
        for index in &mut self.indexes {
            index.remove(key);
        }
        Some(entry.object)
    }

    /// Takes out what the list did not have. An object newer than the list is none of its business, unless the list is always right.
    fn sweep(&mut self, list: &ListEnd, applied: &mut Applied) {
        let absent = |object: &Object| {
            list.replace.trust.is_final()
                || !list.version.is_before(&object.meta().resource_version)
        };
        let swept = self
            .objects
            .iter()
            .filter(|(_, entry)| entry.stamp < list.replace.epoch && absent(&entry.object));
        let swept: Vec<Key> = swept.map(|(key, _)| key.clone()).collect();
        for key in swept {
            if let Some(last) = self.take(&key) {
                applied.changes.push((
                    Change::Deleted {
                        last,
                        certain: false,
                    },
                    list.replace.cause,
                ));
                applied.touched.push(key);
            }
        }
        self.unreadable
            .retain(|_, entry| entry.stamp >= list.replace.epoch);
    }
}
