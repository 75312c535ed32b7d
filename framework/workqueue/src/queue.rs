//! The whole queue: cells, and the orders in which they leave their states.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, Hash};
use std::mem::take;
use std::time::{Duration, Instant};

use crate::cell::{Cell, Fate, Parked, Run, State, Then, Work};
use crate::time::{Moment, Timeline};
use crate::{Fault, Lane, Merge, RunId, Seeded, Streak, Wait, shrink};
use orders::Orders;

mod answers;
mod asks;
mod hands;
mod orders;
mod view;

pub use answers::{Activation, Added, Due, Next, QueueOptions, Verdict, When};

/// The queue of one shard. See the [crate documentation](crate) for what it promises.
///
/// Operations on one key take O(log n) of the keys in the same state.
#[derive(Debug)]
pub struct Queue<K, C, S = Seeded> {
    cells: HashMap<K, Cell<C>, S>,
    orders: Orders<K>,
    time: Timeline,
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
            time: Timeline::default(),
            parked_rest: options.parked_rest,
            epoch: options.epoch,
        }
    }

    /// Takes the key whose turn it is and marks it running; `None` when none is ready.
    pub fn start(&mut self, now: Instant) -> Option<Activation<K, C>> {
        let now = self.time.told(now);
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
            fate: Fate::Counts,
        };
        *cell = self.orders.enter(
            standing.key.clone(),
            cell.streak,
            State::Running { run, then: None },
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
            queued_at: self.time.instant(standing.since)?,
            lane,
        })
    }

    /// Marks `key` as running without starting it: a rebuilt queue learns of a run that outlived
    /// its predecessor. What the key had pending comes after.
    ///
    /// `None` when the key is running already.
    pub fn adopt(&mut self, key: K, now: Instant) -> Option<RunId> {
        let now = self.time.told(now);
        let run = Run {
            work: Work::default(),
            since: now,
            fate: Fate::Counts,
        };
        let ticket = match self.cells.entry(key) {
            Entry::Vacant(entry) => {
                let state = State::Running { run, then: None };
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
                    | State::Held { work, .. } => work.clone(),
                    State::Parked(parked) => parked.work.clone(),
                };
                let then = Some(Box::new(Then::Now(pending)));
                self.orders
                    .shift(key, cell, State::Running { run, then }, now);
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
        let State::Running { run: ended, then } = &mut cell.state else {
            return Next::NotRunning;
        };
        if run != current {
            return Next::NotRunning;
        }
        let now = self.time.told(now);
        let (fate, work) = (ended.fate, take(&mut ended.work));
        let then = then.take().map(|then| *then);
        let state = match fate {
            Fate::Counts => {
                cell.streak = cell.streak.after(&verdict);
                follow(verdict, work, then, self.parked_rest, now)
            }
            Fate::Renewed if !verdict.settles() => Some(State::Queued(work.and(then))),
            Fate::Renewed | Fate::Forgotten => {
                follow(Verdict::Done, work, then, self.parked_rest, now)
            }
        };
        let Some(state) = state else {
            self.orders.leave(cell);
            entry.remove();
            shrink(&mut self.cells);
            return Next::Idle;
        };
        self.orders.shift(key.clone(), cell, state, now);
        match cell.state {
            State::Parked(_) => Next::Parked,
            _ => cell.delay(&self.time).map_or(Next::Queued, Next::Waiting),
        }
    }

    /// The timer rang for `key`: ends its wait, if it has one and it is over by `now`.
    pub fn due(&mut self, key: &K, now: Instant) -> Due {
        let Some(cell) = self.cells.get_mut(key) else {
            return Due::Stale;
        };
        let Some(delay) = cell.delay(&self.time) else {
            return Due::Stale;
        };
        if delay.until > now {
            return Due::Early(delay);
        }
        let now = self.time.told(now);
        self.orders.rouse(key.clone(), cell, Lane::Low, now);
        Due::Queued
    }
}

/// What becomes of a key whose run for `work` ended so; `None` when there is nothing left to do.
fn follow<C: Merge>(
    verdict: Verdict,
    work: Work<C>,
    then: Option<Then<C>>,
    parked_rest: Duration,
    now: Moment,
) -> Option<State<C>> {
    let again = |delay, why, work| Some(waiting(now + delay, why, work, now));
    match (verdict, then) {
        (Verdict::Done, None) => None,
        (Verdict::Done, Some(Then::At(next))) => {
            Some(waiting(next.until, Wait::Requeue, next.work, now))
        }
        (Verdict::Done | Verdict::RequeueAfter(_), Some(Then::Now(next))) => {
            Some(State::Queued(next))
        }
        (Verdict::RequeueAfter(delay), None) => again(delay, Wait::Requeue, Work::default()),
        (Verdict::RequeueAfter(delay), Some(Then::At(next))) => {
            let until = next.when.of(now + delay, next.until);
            Some(waiting(until, Wait::Requeue, next.work, now))
        }
        (Verdict::NotReady { .. }, then @ Some(Then::Now(_))) => {
            Some(State::Queued(work.and(then)))
        }
        (Verdict::NotReady { delay }, Some(Then::At(next))) => {
            let until = next.until.min(now + delay);
            let work = work.and(Some(Then::At(next)));
            Some(waiting(until, Wait::NotReady, work, now))
        }
        (Verdict::NotReady { delay }, None) => again(delay, Wait::NotReady, work),
        (Verdict::Backoff { delay, fault }, then) => {
            again(delay, Wait::Backoff(fault), work.and(then))
        }
        (Verdict::Again { delay }, then) => again(delay, Wait::Conflict, work.and(then)),
        (Verdict::Lost { delay }, then) => again(delay, Wait::Lost, work.and(then)),
        // A change during the run may be the cure: it is tried once the key has rested.
        (Verdict::Park(_), then @ Some(Then::Now(_))) => {
            again(parked_rest, Wait::Backoff(Fault::Object), work.and(then))
        }
        (Verdict::Park(reason), then) => Some(State::Parked(Box::new(Parked {
            reason,
            since: now,
            work: work.and(then),
        }))),
    }
}

/// A wait that ends now is none.
fn waiting<C>(until: Moment, why: Wait, work: Work<C>, now: Moment) -> State<C> {
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
