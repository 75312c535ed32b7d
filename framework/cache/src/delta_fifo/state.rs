//! The queue of pending news, as plain data.
//!
//! 1. Per key it holds at most the deletion of what may be in the store and the newest state; incarnations that came and went between are left out.
//! 2. A key keeps its place until it is taken: keys leave in the order of their oldest news.
//! 3. The position is the version up to which everything was handed over; the watermark of a batch is the version up to which nothing is pending behind it.
//! 4. The end of a list stands in the queue behind everything that was told before it, so keys it lacks are searched in a store that lacks no queued one.

use std::collections::VecDeque;

use crate::delta::{Cause, Delta, Trust};
use crate::key::Key;
use crate::object::Object;
use crate::table::Table;
use crate::version::Version;

#[cfg(test)]
mod tests;

/// Pending news of all keys. `P` is a place in the queue, given back by its drop.
pub(crate) struct Fifo<P> {
    pending: Table<Key, Pending<P>>,
    order: VecDeque<Slot>,
    position: Option<Version>,
    /// Number of the last list begun; what arrives is stamped with it.
    epoch: u64,
    replacing: Option<Replace>,
    /// Watermark of the last batch.
    told: Option<Version>,
    high_water: usize,
}

/// A list that is being handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replace {
    /// Its number; rises by every list of an informer.
    pub(crate) epoch: u64,
    /// How it was read.
    pub(crate) trust: Trust,
    /// What changes found by it are put down to.
    pub(crate) cause: Cause,
    /// The last request for a consistent list that it answers.
    pub(crate) answers: u64,
}

impl Replace {
    pub(crate) fn new(epoch: u64, trust: Trust, cause: Cause) -> Self {
        Self {
            epoch,
            trust,
            cause,
            answers: 0,
        }
    }
}

enum Slot {
    Key(Key),
    End {
        list: ListEnd,
        before: Option<Version>,
    },
    Live(u64),
}

/// The end of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListEnd {
    pub(crate) replace: Replace,
    /// The state the list shows.
    pub(crate) version: Version,
    /// Whether absent keys are gone; not if items could not be identified.
    pub(crate) complete: bool,
}

/// Pending news of one key.
#[derive(Debug)]
pub(crate) struct Pending<P> {
    /// A deletion that happened before `latest`.
    pub(crate) gone: Option<Gone>,
    pub(crate) latest: Option<Object>,
    /// Why the newest state cannot be read.
    pub(crate) unreadable: Option<String>,
    pub(crate) cause: Cause,
    /// The most that any of it counts.
    pub(crate) trust: Trust,
    pub(crate) stamp: u64,
    /// Version of the newest of it, if that could be read.
    pub(crate) newest: Option<Version>,
    before: Option<Version>,
    /// Held for its drop.
    _permit: P,
}

#[derive(Clone, Debug)]
pub(crate) struct Gone {
    /// Final state of the first incarnation that went; the only one the store can hold.
    pub(crate) last: Option<Object>,
    /// When the last incarnation went.
    pub(crate) version: Option<Version>,
    /// How much what was pending counted when it went: a list that is read later makes old news of an end no newer.
    pub(crate) trust: Trust,
}

/// What the indexer is given at a time.
#[derive(Debug)]
pub(crate) struct Batch<P> {
    pub(crate) steps: Vec<Step<P>>,
    /// Once the batch is committed, everything up to here is.
    pub(crate) watermark: Option<Version>,
}

#[derive(Debug)]
pub(crate) enum Step<P> {
    Key(Key, Pending<P>),
    End(ListEnd),
    /// Everything that was behind when this watch was opened has been taken.
    Live(u64),
}

impl<P> Fifo<P> {
    /// An empty queue behind `position`; `epoch` is the number of the last list begun before it.
    pub(crate) fn new(position: Option<Version>, epoch: u64) -> Self {
        Self {
            pending: Table::default(),
            order: VecDeque::new(),
            told: position.clone(),
            position,
            epoch,
            replacing: None,
            high_water: 0,
        }
    }

    /// A new reflector takes over: a list that was under way is given up. Returns the position, and whether nothing newer than it was handed over.
    pub(crate) fn resume(&mut self) -> (Option<Version>, bool) {
        let clean = self.replacing.take().is_none();
        (self.position.clone(), clean)
    }

    /// Takes news of one key. False if it is no news: a state from before the position was handed over before, and may have ended since.
    pub(crate) fn push(&mut self, delta: Delta, permit: P) -> bool {
        let before = self.position.clone();
        // a list is a position only when it is complete
        if self.replacing.is_none()
            && let Some(version) = delta.version()
        {
            let old = self
                .position
                .as_ref()
                .is_some_and(|position| version.is_before(position));
            if old && !matches!(delta, Delta::Gone { .. }) {
                return false;
            }
            self.advance(version.clone());
        }
        self.merge(delta, permit, before)
    }

    /// Everything up to `version` has been handed over.
    pub(crate) fn bookmark(&mut self, version: Version) {
        self.advance(version);
    }

    /// A watch was opened; it has a number.
    pub(crate) fn live(&mut self, watch: u64) {
        self.order.push_back(Slot::Live(watch));
    }

    /// A list begins; a list under way is given up.
    pub(crate) fn replace_begin(&mut self, replace: Replace) {
        self.epoch = replace.epoch;
        self.replacing = Some(replace);
        if replace.trust == Trust::Restored {
            for pending in self.pending.values_mut() {
                // of another history: its versions say nothing about what is told from now on
                (pending.newest, pending.trust) = (None, Trust::Restored);
            }
        }
    }

    /// The list is complete, or as complete as it gets.
    pub(crate) fn replace_end(&mut self, version: Version, complete: bool) {
        let Some(replace) = self.replacing.take() else {
            return;
        };
        let before = self.position.replace(version.clone());
        self.order.push_back(Slot::End {
            list: ListEnd {
                replace,
                version,
                complete,
            },
            before,
        });
    }

    /// The list was cut off: nothing is concluded from what it lacks.
    pub(crate) fn replace_abort(&mut self) {
        self.replacing = None;
    }

    /// Takes up to `max` keys and the list ends among them. `None` when there is nothing new, not even a version.
    pub(crate) fn pop(&mut self, max: usize) -> Option<Batch<P>> {
        let mut steps = Vec::with_capacity(max.min(self.order.len()));
        let mut keys = 0;
        while keys < max {
            match self.order.pop_front() {
                Some(Slot::Key(key)) => {
                    if let Some(pending) = self.pending.remove(&key) {
                        keys += 1;
                        steps.push(Step::Key(key, pending));
                    }
                }
                Some(Slot::End { list, .. }) => steps.push(Step::End(list)),
                Some(Slot::Live(watch)) => steps.push(Step::Live(watch)),
                None => break,
            }
        }
        let watermark = self.watermark();
        if steps.is_empty() && watermark == self.told {
            return None;
        }
        self.told.clone_from(&watermark);
        Some(Batch { steps, watermark })
    }

    /// Keys with pending news.
    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }

    /// The most keys there ever were at once.
    pub(crate) fn high_water(&self) -> usize {
        self.high_water
    }

    fn watermark(&self) -> Option<Version> {
        self.order
            .iter()
            .find_map(|slot| match slot {
                Slot::Key(key) => self.pending.get(key).map(|pending| pending.before.clone()),
                Slot::End { before, .. } => Some(before.clone()),
                Slot::Live(_) => None,
            })
            .unwrap_or_else(|| self.position.clone())
    }

    fn advance(&mut self, version: Version) {
        if !self
            .position
            .as_ref()
            .is_some_and(|position| version.is_before(position))
        {
            self.position = Some(version);
        }
    }

    fn merge(&mut self, delta: Delta, permit: P, before: Option<Version>) -> bool {
        let (stamp, replacing) = (self.epoch, self.replacing);
        let listed = matches!(delta, Delta::Listed(_));
        let pending = match self.pending.get_mut(delta.key()) {
            Some(pending) => pending,
            None => {
                self.order.push_back(Slot::Key(delta.key().clone()));
                let key = delta.key().clone();
                let length = self.pending.len() + 1;
                self.high_water = self.high_water.max(length);
                self.pending.entry(key).or_insert(Pending {
                    gone: None,
                    latest: None,
                    unreadable: None,
                    cause: Cause::Watch,
                    trust: Trust::default(),
                    stamp,
                    newest: None,
                    before,
                    _permit: permit,
                })
            }
        };
        pending.stamp = stamp;
        let trust = replacing
            .filter(|_| listed)
            .map_or(Trust::Cached, |replace| replace.trust);
        if !trust.is_final() && pending.is_ahead_of(&delta) {
            return false;
        }
        pending.trust = pending.trust.max(trust);
        pending.cause = replacing
            .filter(|_| listed)
            .map_or(Cause::Watch, |replace| replace.cause);
        pending.newest = delta.version().cloned();
        match delta {
            Delta::Seen(object) | Delta::Listed(object) => {
                pending.latest = Some(object);
                pending.unreadable = None;
            }
            Delta::Gone { last, version, .. } => {
                pending.latest = None;
                pending.unreadable = None;
                let trust = pending.trust;
                match &mut pending.gone {
                    Some(gone) => (gone.version, gone.trust) = (version, trust),
                    none => {
                        *none = Some(Gone {
                            last,
                            version,
                            trust,
                        });
                    }
                }
            }
            Delta::Unreadable { reason, .. } => pending.unreadable = Some(reason),
        }
        true
    }
}

impl<P> Pending<P> {
    /// Whether all of it is what is `stored` already.
    pub(crate) fn is_known(&self, stored: Option<&Object>) -> bool {
        let same = |(stored, latest): (&Object, &Object)| stored.is_same_state(latest);
        self.gone.is_none()
            && self.trust != Trust::Restored
            && stored.zip(self.latest.as_ref()).is_some_and(same)
    }

    /// Whether this news is certain to be older than what is pending: a state is also older than the deletion at its own version.
    fn is_ahead_of(&self, delta: &Delta) -> bool {
        let (Some(newest), Some(version)) = (&self.newest, delta.version()) else {
            return false;
        };
        let ended =
            self.gone.is_some() && self.latest.is_none() && !matches!(delta, Delta::Gone { .. });
        version.is_before(newest) || (ended && newest.has_reached(version))
    }
}
