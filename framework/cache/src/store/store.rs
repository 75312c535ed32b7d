//! Objects by key.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, RwLock};

use super::index::{Built, Index, IndexSpec};
use super::keeper::Keeper;
use super::objects::{Entry, Objects};
use super::settle::{Outcome, settle};
use crate::delta::{Cause, Change};
use crate::delta_fifo::state::{ListEnd, Pending, Step};
use crate::key::Key;
use crate::object::Object;
use crate::sync::{read, write};
use crate::table::{Table, trim};
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
            graves: Table::default(),
        },
        Reader(shelf),
    )
}

#[derive(Default)]
struct Shelf {
    objects: Objects,
    /// Keys whose newest state cannot be read; an older state may be stored beside it.
    unreadable: BTreeMap<Key, Unreadable>,
    indexes: Vec<Index>,
    /// Changes with the set of indexes.
    generation: u64,
    size: Size,
}

/// How much is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) objects: usize,
    /// Bytes of them as they are kept.
    pub(crate) bytes: usize,
    /// Bytes of their JSON.
    pub(crate) json_bytes: usize,
}

impl Size {
    fn add(&mut self, object: &Object) {
        self.objects += 1;
        self.bytes += object.size();
        self.json_bytes += object.body().json_size();
    }

    fn subtract(&mut self, object: &Object) {
        self.objects -= 1;
        self.bytes -= object.size();
        self.json_bytes -= object.body().json_size();
    }
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

    /// As [`get`](Self::get); or why its newest state cannot be read.
    pub(crate) fn look(&self, key: &Key) -> Result<Option<Object>, Arc<str>> {
        let shelf = read(&self.0);
        match shelf.unreadable.get(key) {
            Some(entry) => Err(entry.reason.clone()),
            None => Ok(shelf.objects.get(key).map(|entry| entry.object.clone())),
        }
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
            return shelf.objects.sorted(Bound::Unbounded).cloned().collect();
        };
        let first = Key::new(Some(namespace), "");
        let objects = shelf.objects.sorted(Bound::Included(&first));
        objects
            .take_while(|object| object.key().namespace() == Some(namespace))
            .cloned()
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

    /// Brings the states in a batch into the form they are to be kept in, and asks the indexes about them. This runs the code of users: no lock is held, and
    /// its failures are counted, not raised. States that are stored already are left alone.
    pub(crate) fn prepare<P>(&self, steps: &[Step<P>], keeper: &Keeper) -> Prepared {
        let mut prepared = Prepared::default();
        for step in steps {
            let mut ready = Ready::default();
            if let Step::Key(key, pending) = step
                && let Some(latest) = &pending.latest
            {
                let stored = self.get(key);
                if !pending.is_known(stored.as_ref()) {
                    let kept = keeper.keep(latest, stored.as_ref());
                    let failed = kept.untransformed.map(|reason| (key.clone(), reason));
                    prepared.untransformed.extend(failed);
                    ready.object = Some(kept.object);
                }
            }
            prepared.steps.push(ready);
        }
        self.index(&mut prepared);
        prepared
    }

    fn index(&self, prepared: &mut Prepared) {
        let shelf = read(&self.0);
        let specs: Vec<_> = shelf
            .indexes
            .iter()
            .map(|index| index.spec.clone())
            .collect();
        prepared.generation = shelf.generation;
        drop(shelf);
        let unindexed = &mut prepared.unindexed;
        unindexed.clear();
        for ready in &mut prepared.steps {
            let Some(object) = &ready.object else {
                continue;
            };
            let values = specs.iter().map(|spec| {
                let failed =
                    |reason| unindexed.push((object.key().clone(), spec.name().into(), reason));
                spec.values(object).map_err(failed).ok()
            });
            ready.values = values.collect();
        }
    }

    /// An index over what is stored. This runs the code of users for as long as that takes: no lock is held.
    pub(crate) fn build(&self, spec: IndexSpec) -> Built {
        let mut built = Built::new(spec);
        built.renew(&self.list(None));
        built
    }

    pub(crate) fn size(&self) -> Size {
        read(&self.0).size
    }

    /// Up to `max` objects from all over the store. Others are not touched: most of a large store is far from the processor.
    pub(crate) fn spread(&self, max: usize) -> Vec<Object> {
        let shelf = read(&self.0);
        let stride = shelf.objects.len().div_ceil(max).max(1);
        let some = shelf.objects.sorted(Bound::Unbounded).step_by(stride);
        some.cloned().collect()
    }

    /// Up to `max` objects behind `after`, by key.
    pub(crate) fn page(&self, after: Option<&Key>, max: usize) -> Vec<Object> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let shelf = read(&self.0);
        shelf.objects.sorted(from).take(max).cloned().collect()
    }
}

/// Writes the store; there is one.
pub(crate) struct Writer {
    shelf: Arc<RwLock<Shelf>>,
    low_water: Option<Version>,
    /// Keys that went later than the low-water mark: the server may tell of their earlier states once more, after a crash.
    graves: Table<Key, Version>,
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
    /// Objects a transform failed for: key, reason.
    pub(crate) untransformed: Vec<(Key, String)>,
    /// The lists that ended.
    pub(crate) lists: Vec<ListEnd>,
    /// Everything that was behind when this watch was opened is in.
    pub(crate) live: Option<u64>,
    /// Keys that left the set of unreadable ones or changed: what was noted about their decoding is void.
    pub(crate) touched: Vec<Key>,
}

/// What the code of users made of a batch.
#[derive(Default)]
pub(crate) struct Prepared {
    /// Of the set of indexes that were asked.
    generation: u64,
    steps: Vec<Ready>,
    unindexed: Vec<(Key, Arc<str>, String)>,
    untransformed: Vec<(Key, String)>,
}

#[derive(Default)]
struct Ready {
    /// The state as it is to be kept; `None` where there is none or it is known.
    object: Option<Object>,
    values: Values,
}

/// Values per index, in the order of the indexes; `None` where an index failed.
type Values = Vec<Option<Vec<String>>>;

impl Writer {
    pub(crate) fn low_water(&self) -> Option<&Version> {
        self.low_water.as_ref()
    }

    /// Adds an index; one of the same name is replaced. What changed since it was built is asked about now.
    pub(crate) fn add_index(&mut self, mut built: Built) -> Vec<(Key, Arc<str>, String)> {
        built.renew(&Reader(self.shelf.clone()).list(None));
        let (index, failed) = built.finish();
        let mut shelf = write(&self.shelf);
        shelf
            .indexes
            .retain(|other| other.spec.name() != index.spec.name());
        shelf.indexes.push(index);
        shelf.generation += 1;
        failed
    }

    /// Applies a batch as a whole. Nothing in it can fail: the code of users had its say in [`Reader::prepare`], unless an index came in between.
    pub(crate) fn apply<P>(
        &mut self,
        steps: &[Step<P>],
        mut prepared: Prepared,
        watermark: Option<&Version>,
    ) -> Applied {
        if prepared.generation != read(&self.shelf).generation {
            Reader(self.shelf.clone()).index(&mut prepared);
        }
        let mut applied = Applied {
            unindexed: prepared.unindexed,
            untransformed: prepared.untransformed,
            ..Applied::default()
        };

        let mut shelf = write(&self.shelf);
        for (step, ready) in steps.iter().zip(prepared.steps) {
            match step {
                Step::Key(key, pending) => {
                    let grave = self.graves.get(key);
                    let removed = shelf.apply(key, pending, &ready, grave, &mut applied);
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

    /// Puts objects in another form into the places of equal ones, unless they were replaced meanwhile.
    pub(crate) fn exchange(&mut self, forms: Vec<(Object, Object)>) {
        let mut shelf = write(&self.shelf);
        let Shelf { objects, size, .. } = &mut *shelf;
        for (before, after) in forms {
            let entry = objects.get_mut(before.key());
            if let Some(entry) = entry.filter(|entry| entry.object.is_same(&before)) {
                size.subtract(&before);
                size.add(&after);
                entry.object = after;
            }
        }
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
        trim(&mut self.graves);
    }
}

impl Shelf {
    /// Returns whether the key is gone now and was not before.
    fn apply<P>(
        &mut self,
        key: &Key,
        pending: &Pending<P>,
        ready: &Ready,
        grave: Option<&Version>,
        applied: &mut Applied,
    ) -> bool {
        let mut stored = self.objects.get_mut(key);
        let settled = settle(
            stored.as_ref().map(|entry| &entry.object),
            grave,
            pending.gone.as_ref(),
            ready.object.as_ref().or(pending.latest.as_ref()),
            pending.trust,
        );
        applied.stale += u64::from(settled.stale);
        applied.unchanged += u64::from(settled.changes.is_empty() && !settled.stale);
        let mut news = !settled.stale;
        if let Some(entry) = &mut stored {
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
                for (index, values) in self.indexes.iter_mut().zip(&ready.values) {
                    match values {
                        Some(values) => index.set(object.key(), values),
                        None => index.remove(key),
                    }
                }
                self.size.add(&object);
                let stamp = pending.stamp;
                match stored {
                    Some(entry) => {
                        self.size.subtract(&entry.object);
                        *entry = Entry { object, stamp };
                    }
                    None => self.objects.add(Entry { object, stamp }),
                }
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

    fn take(&mut self, key: &Key) -> Option<Object> {
        let entry = self.objects.remove(key)?;
        self.size.subtract(&entry.object);
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
            .filter(|entry| entry.stamp < list.replace.epoch && absent(&entry.object));
        let mut swept: Vec<Key> = swept.map(|entry| entry.object.key().clone()).collect();
        // told in the order of keys
        swept.sort_unstable();
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
