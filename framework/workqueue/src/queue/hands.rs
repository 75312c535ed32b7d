//! What is done to keys by hand, and by those who run them: holding back, waking, hurrying,
//! forgetting.

use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, Hash};
use std::mem::take;
use std::time::Instant;

use super::Queue;
use crate::cell::{Fate, State, Then, Work};
use crate::{Lane, Merge, RunId, Streak, shrink};

impl<K: Clone + Eq + Hash, C: Merge + Clone, S: BuildHasher> Queue<K, C, S> {
    /// Takes back a run that was started and has not begun: something has to happen first, such as
    /// the end of an earlier run or a cache that catches up. The key keeps its causes and its
    /// streak and stands in no lane until [`free`](Queue::free) lets it go; nothing else ends it
    /// but forgetting the key. Returns whether it is held now: the run may be over already, or the
    /// key forgotten.
    pub fn hold(&mut self, key: &K, run: RunId, now: Instant) -> bool {
        let Entry::Occupied(mut entry) = self.cells.entry(key.clone()) else {
            return false;
        };
        let cell = entry.get_mut();
        let current = RunId {
            epoch: self.epoch,
            ticket: cell.ticket,
        };
        let State::Running { run: held, then } = &mut cell.state else {
            return false;
        };
        if run != current {
            return false;
        }
        let then = then.take().map(|then| *then);
        let work: Option<Work<C>> = match held.fate {
            Fate::Forgotten => then.map(Then::into_work),
            Fate::Counts | Fate::Renewed => Some(take(&mut held.work).and(then)),
        };
        let Some(work) = work else {
            self.orders.leave(cell);
            entry.remove();
            shrink(&mut self.cells);
            return false;
        };
        let now = self.time.told(now);
        let state = State::Held { since: now, work };
        self.orders.shift(key.clone(), cell, state, now);
        true
    }

    /// Lets a key go that is [held](Queue::hold): it stands in its lane again. Returns whether it
    /// was held.
    pub fn free(&mut self, key: &K, now: Instant) -> bool {
        match self.cells.get_mut(key) {
            Some(cell) if matches!(cell.state, State::Held { .. }) => {
                let now = self.time.told(now);
                self.orders.rouse(key.clone(), cell, Lane::Low, now);
                true
            }
            _ => false,
        }
    }

    /// Runs a parked key again, by hand, with its streak forgiven. Returns whether it was parked.
    pub fn unpark(&mut self, key: &K, now: Instant) -> bool {
        match self.cells.get_mut(key) {
            Some(cell) if matches!(cell.state, State::Parked(_)) => {
                let now = self.time.told(now);
                cell.streak = Streak::default();
                self.orders.rouse(key.clone(), cell, Lane::Low, now);
                true
            }
            _ => false,
        }
    }

    /// Gives every key parked at or before `since` one more try, in the low lane and with its
    /// streak kept. Returns them, the longest parked first.
    pub fn wake_parked(&mut self, since: Instant, now: Instant) -> Vec<K> {
        if self.time.begins_after(since) {
            return Vec::new();
        }
        let (since, now) = (self.time.moment(since), self.time.told(now));
        let mut woken = Vec::new();
        while let Some((_, key)) = self.orders.parked.first_key_value() {
            let key = key.clone();
            let Some(cell) = self.cells.get_mut(&key) else {
                break;
            };
            match &mut cell.state {
                State::Parked(parked) if parked.since <= since => parked.work.lane = Lane::Low,
                _ => break,
            }
            self.orders.rouse(key.clone(), cell, Lane::Low, now);
            woken.push(key);
        }
        woken
    }

    /// Makes `key` as urgent as `lane` and ends any wait, by hand; a parked key's streak is
    /// forgiven. A run under way is left alone, the one that may follow it is lifted and loses its
    /// time; a key that is held stays held. Returns whether there was a cell with anything to hurry;
    /// to run an idle key, [`add`](Queue::add) it.
    pub fn promote(&mut self, key: &K, lane: Lane, now: Instant) -> bool {
        let Some(cell) = self.cells.get_mut(key) else {
            return false;
        };
        let now = self.time.told(now);
        match &mut cell.state {
            State::Queued(_) => self.orders.merge(cell, Work { lane, cause: None }),
            State::Running { then, .. } => {
                let Some(next) = then.take() else {
                    return false;
                };
                let mut work = next.into_work();
                work.lane = work.lane.max(lane);
                *then = Some(Box::new(Then::Now(work)));
            }
            State::Held { work, .. } => work.lane = work.lane.max(lane),
            State::Parked(_) => {
                cell.streak = Streak::default();
                self.orders.rouse(key.clone(), cell, lane, now);
            }
            State::Waiting { .. } => self.orders.rouse(key.clone(), cell, lane, now),
        }
        true
    }

    /// Forgets `key`: it was deleted for good, or is another's now. A run under way still excludes
    /// others until it is finished, but how it ends no longer counts; what is added meanwhile runs
    /// after it. Returns whether there was a cell.
    pub fn remove(&mut self, key: &K) -> bool {
        let Entry::Occupied(mut entry) = self.cells.entry(key.clone()) else {
            return false;
        };
        let cell = entry.get_mut();
        if !cell.forget() {
            self.orders.leave(cell);
            entry.remove();
            shrink(&mut self.cells);
        }
        true
    }

    /// Forgets every key, as [`remove`](Queue::remove) does: leadership is lost, or the controller
    /// stops.
    pub fn clear(&mut self) {
        self.orders.clear();
        self.cells.retain(|_, cell| cell.forget());
        shrink(&mut self.cells);
    }
}
