//! The whole queue: cells, and the orders in which they leave their states.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, Hash};
use std::mem::take;
use std::time::{Duration, Instant};

use crate::cell::{Cell, Run, State, Work};
use crate::{Fault, Lane, Merge, RunId, Seeded, Streak, Wait, after, shrink};
use orders::Orders;

mod answers;
mod orders;
mod view;

pub use answers::{Activation, Added, Due, Next, QueueOptions, Verdict};

/// The queue of one shard. See the [crate documentation](crate) for what it promises.
///
/// Operations on one key take O(log n) of the keys in the same state.
#[derive(Debug)]
pub struct Queue<K, C, S = Seeded> {
    cells: HashMap<K, Cell<C>, S>,
    orders: Orders<K>,
    parked_rest: Duration,
    epoch: u32,
}

impl<K: Clone + Eq + Hash, C: Merge + Clone> Queue<K, C> {
    /// An empty queue.
    #[must_use]
    pub fn new(options: QueueOptions) -> Self {
        let hasher = Seeded::with_seed(options.hash_seed);
        Queue::with_hasher(options, hasher)
    }
}

impl<K: Clone + Eq + Hash, C: Merge + Clone, S: BuildHasher> Queue<K, C, S> {
    /// An empty queue with a hasher of the caller's choice; nothing but speed depends on it.
    #[must_use]
    pub fn with_hasher(options: QueueOptions, hasher: S) -> Self {
        Queue {
            cells: HashMap::with_hasher(hasher),
            orders: Orders::new(options.ageing),
            parked_rest: options.parked_rest,
            epoch: options.epoch,
        }
    }

    /// Asks for a run of `key` that starts after this call.
    pub fn add(&mut self, key: K, lane: Lane, cause: C, now: Instant) -> Added {
        let later = Work {
            lane,
            cause: Some(cause),
        };
        let mut entry = match self.cells.entry(key) {
            Entry::Occupied(entry) => entry,
            Entry::Vacant(entry) => {
                let cell = self.orders.enter(
                    entry.key().clone(),
                    Streak::default(),
                    State::Queued(later),
                    now,
                );
                entry.insert(cell);
                return Added::Queued;
            }
        };
        let state = match &mut entry.get_mut().state {
            State::Queued(work) => {
                let from = work.lane;
                work.merge(later);
                let to = work.lane;
                if to != from {
                    self.orders.lanes.lift(entry.get().ticket, from, to);
                }
                return Added::Coalesced;
            }
            State::Running {
                next: Some(next), ..
            } => {
                next.merge(later);
                return Added::Coalesced;
            }
            State::Running { next, .. } => {
                *next = Some(later);
                return Added::Dirty;
            }
            // The key's own request asked for no lane: the event says how urgent it is.
            State::Waiting {
                why: Wait::Requeue, ..
            } => State::Queued(later),
            State::Waiting { work, .. } => {
                work.merge(later);
                return Added::Backoff;
            }
            State::Parked { since, work, .. } => {
                let until = after(*since, self.parked_rest);
                let mut work = take(work);
                work.merge(later);
                waiting(until, Wait::Backoff(Fault::Object), work, now)
            }
        };
        let key = entry.key().clone();
        let cell = entry.get_mut();
        self.orders.shift(key, cell, state, now);
        cell.delay().map_or(Added::Woken, Added::Delayed)
    }

    /// Takes the key whose turn it is and marks it running; `None` when none is ready.
    pub fn start(&mut self, now: Instant) -> Option<Activation<K, C>> {
        let (_, standing) = self.orders.lanes.pop(now)?;
        let cell = self.cells.get_mut(&standing.key)?;
        let State::Queued(work) = &mut cell.state else {
            return None;
        };
        let work = take(work);
        let (lane, cause) = (work.lane, work.cause.clone());
        let run = Run {
            work,
            since: now,
            forgotten: false,
        };
        *cell = self.orders.enter(
            standing.key.clone(),
            cell.streak,
            State::Running { run, next: None },
            now,
        );
        let run = RunId {
            epoch: self.epoch,
            ticket: cell.ticket,
        };
        Some(Activation {
            key: standing.key,
            run,
            cause,
            streak: cell.streak,
            queued_at: standing.since,
            lane,
        })
    }

    /// Marks `key` as running without starting it: a rebuilt queue learns of a run that outlived
    /// its predecessor. What the key had pending comes after.
    ///
    /// `None` when the key is running already.
    pub fn adopt(&mut self, key: K, now: Instant) -> Option<RunId> {
        let run = Run {
            work: Work::default(),
            since: now,
            forgotten: false,
        };
        let ticket = match self.cells.entry(key) {
            Entry::Vacant(entry) => {
                let state = State::Running { run, next: None };
                let cell = self
                    .orders
                    .enter(entry.key().clone(), Streak::default(), state, now);
                entry.insert(cell).ticket
            }
            Entry::Occupied(mut entry) => {
                let key = entry.key().clone();
                let cell = entry.get_mut();
                let pending = match &cell.state {
                    State::Running { .. } => return None,
                    State::Queued(work)
                    | State::Waiting { work, .. }
                    | State::Parked { work, .. } => work.clone(),
                };
                self.orders.shift(
                    key,
                    cell,
                    State::Running {
                        run,
                        next: Some(pending),
                    },
                    now,
                );
                cell.ticket
            }
        };
        Some(RunId {
            epoch: self.epoch,
            ticket,
        })
    }

    /// Reports how a run ended and frees its key for the next.
    ///
    /// A retry keeps the lane and the cause of the run that failed, merged with what came since; a
    /// time the key asked for itself counts as [`Lane::Normal`]. Waits of zero are queued at once.
    pub fn finish(&mut self, key: &K, run: RunId, verdict: Verdict, now: Instant) -> Next {
        let Entry::Occupied(mut entry) = self.cells.entry(key.clone()) else {
            return Next::NotRunning;
        };
        let cell = entry.get_mut();
        let current = RunId {
            epoch: self.epoch,
            ticket: cell.ticket,
        };
        let State::Running { run: ended, next } = &mut cell.state else {
            return Next::NotRunning;
        };
        if run != current {
            return Next::NotRunning;
        }
        let verdict = if ended.forgotten {
            Verdict::Done
        } else {
            verdict
        };
        let next = next.take();
        let changed = next.is_some();
        let mut unsettled = take(&mut ended.work);
        cell.streak = cell.streak.after(&verdict);
        let state = match verdict {
            Verdict::Done => next.map(State::Queued),
            Verdict::RequeueAfter(delay) => Some(next.map_or_else(
                || delayed(delay, Wait::Requeue, Work::default(), now),
                State::Queued,
            )),
            Verdict::Backoff { delay, fault } => {
                unsettled.extend(next);
                Some(delayed(delay, Wait::Backoff(fault), unsettled, now))
            }
            Verdict::Again { delay } => {
                unsettled.extend(next);
                Some(delayed(delay, Wait::Conflict, unsettled, now))
            }
            // A change during the run may be the cure: it is tried once the key has rested.
            Verdict::Park(_) if changed => {
                unsettled.extend(next);
                Some(delayed(
                    self.parked_rest,
                    Wait::Backoff(Fault::Object),
                    unsettled,
                    now,
                ))
            }
            Verdict::Park(reason) => Some(State::Parked {
                reason,
                since: now,
                work: unsettled,
            }),
        };
        let Some(state) = state else {
            self.orders.leave(cell);
            entry.remove();
            shrink(&mut self.cells);
            return Next::Idle;
        };
        self.orders.shift(key.clone(), cell, state, now);
        match cell.state {
            State::Parked { .. } => Next::Parked,
            _ => cell.delay().map_or(Next::Queued, Next::Waiting),
        }
    }

    /// The timer rang for `key`: ends its wait, if it has one and it is over by `now`.
    pub fn due(&mut self, key: &K, now: Instant) -> Due {
        let Some(cell) = self.cells.get_mut(key) else {
            return Due::Stale;
        };
        let Some(delay) = cell.delay() else {
            return Due::Stale;
        };
        if delay.until > now {
            return Due::Early(delay);
        }
        self.orders.rouse(key.clone(), cell, Lane::Low, now);
        Due::Queued
    }

    /// Runs a parked key again, by hand, with its streak forgiven. Returns whether it was parked.
    pub fn unpark(&mut self, key: &K, now: Instant) -> bool {
        match self.cells.get_mut(key) {
            Some(cell) if matches!(cell.state, State::Parked { .. }) => {
                cell.streak = Streak::default();
                self.orders.rouse(key.clone(), cell, Lane::Low, now);
                true
            }
            _ => false,
        }
    }

    /// Gives every key parked at or before `since` one more try, in the low lane and with its
    /// streak kept. Returns how many there were.
    pub fn wake_parked(&mut self, since: Instant, now: Instant) -> usize {
        let mut woken = 0;
        while let Some((_, key)) = self.orders.parked.first_key_value() {
            let key = key.clone();
            let Some(cell) = self.cells.get_mut(&key) else {
                break;
            };
            match &mut cell.state {
                State::Parked {
                    since: parked,
                    work,
                    ..
                } if *parked <= since => work.lane = Lane::Low,
                _ => break,
            }
            self.orders.rouse(key, cell, Lane::Low, now);
            woken += 1;
        }
        woken
    }

    /// Makes `key` as urgent as `lane` and ends any wait, by hand; a parked key's streak is
    /// forgiven. A run under way is left alone, the one that may follow it is lifted. Returns
    /// whether there was a cell with anything to hurry; to run an idle key, [`add`](Queue::add) it.
    pub fn promote(&mut self, key: &K, lane: Lane, now: Instant) -> bool {
        let Some(cell) = self.cells.get_mut(key) else {
            return false;
        };
        match &mut cell.state {
            State::Queued(work) => {
                let from = work.lane;
                work.lane = from.max(lane);
                self.orders.lanes.lift(cell.ticket, from, work.lane);
            }
            State::Running { next: None, .. } => return false,
            State::Running {
                next: Some(next), ..
            } => next.lane = next.lane.max(lane),
            State::Parked { .. } => {
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

fn delayed<C>(delay: Duration, why: Wait, work: Work<C>, now: Instant) -> State<C> {
    waiting(after(now, delay), why, work, now)
}

/// A wait that ends now is none.
fn waiting<C>(until: Instant, why: Wait, work: Work<C>, now: Instant) -> State<C> {
    if until <= now {
        State::Queued(work)
    } else {
        State::Waiting {
            until,
            why,
            since: now,
            work,
        }
    }
}

#[cfg(test)]
mod tests;
