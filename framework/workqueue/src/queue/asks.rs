//! How a queue is asked for runs: now, anew, at a time.

use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, Hash};
use std::mem::take;
use std::time::Instant;

use super::{Added, Queue, When, waiting};
use crate::cell::{Appointment, Fate, State, Then, Work};
use crate::time::Moment;
use crate::{Fault, Lane, Merge, Streak, Wait, shrink};

impl<K: Clone + Eq + Hash, C: Merge + Clone, S: BuildHasher> Queue<K, C, S> {
    /// Asks for a run of `key` that starts after this call: its object changed.
    pub fn add(&mut self, key: K, lane: Lane, cause: C, now: Instant) -> Added {
        let now = self.time.told(now);
        let later = Work::asked(lane, cause);
        let mut entry = match self.cells.entry(key) {
            Entry::Occupied(entry) => entry,
            Entry::Vacant(entry) => {
                let key = entry.key().clone();
                let state = State::Queued(later);
                entry.insert(self.orders.enter(key, Streak::default(), state, now));
                return Added::Queued;
            }
        };
        let cell = entry.get_mut();
        let state = match &mut cell.state {
            State::Queued(_) => {
                self.orders.merge(cell, later);
                return Added::Coalesced;
            }
            State::Running { then, .. } => return add_to(then, later),
            State::Held { work, .. } => {
                work.merge(later);
                return Added::Backoff;
            }
            State::Waiting {
                until, why, work, ..
            } => {
                work.join(later);
                // one whose time is over only stands in line for its retry, and news is none
                if !why.yields() && *until > now {
                    return Added::Backoff;
                }
                State::Queued(take(work))
            }
            State::Parked(parked) => {
                let mut work = take(&mut parked.work);
                work.merge(later);
                let rested = parked.since + self.parked_rest;
                waiting(rested, Wait::Backoff(Fault::Object), work, now)
            }
        };
        let key = entry.key().clone();
        let cell = entry.get_mut();
        self.orders.shift(key, cell, state, now);
        cell.delay(&self.time).map_or(Added::Woken, Added::Delayed)
    }

    /// Asks for a run of `key` that starts after this call, and forgives all before it: the object
    /// it was about is gone, or another has taken its name. A wait ends, a parked key is queued at
    /// once, and how a run under way ends says nothing about the key any more. A key that is held
    /// stays held.
    pub fn renew(&mut self, key: K, lane: Lane, cause: C, now: Instant) -> Added {
        let Some(cell) = self.cells.get_mut(&key) else {
            return self.add(key, lane, cause, now);
        };
        let now = self.time.told(now);
        let later = Work::asked(lane, cause);
        cell.streak = Streak::default();
        match &mut cell.state {
            State::Queued(_) => {
                self.orders.merge(cell, later);
                return Added::Coalesced;
            }
            State::Running { run, then } => {
                if run.fate == Fate::Counts {
                    run.fate = Fate::Renewed;
                }
                return add_to(then, later);
            }
            State::Held { work, .. } => {
                work.merge(later);
                return Added::Backoff;
            }
            State::Waiting { work, .. } => work.join(later),
            State::Parked(parked) => parked.work.join(later),
        }
        self.orders.rouse(key, cell, lane, now);
        Added::Woken
    }

    /// Asks for a run of `key` at `until`, by a timer of somebody's own; [`When`] decides between
    /// this time and one the key waits for already. A time that is not in the future is an
    /// [`add`](Queue::add).
    ///
    /// What runs before then uses the request up; it is told the cause. After a failure the key runs
    /// when its backoff is over, and while it looks again at what was not ready, at the earlier
    /// time, whatever the rule. A parked key stays parked.
    pub fn schedule(
        &mut self,
        key: K,
        lane: Lane,
        cause: C,
        until: Instant,
        when: When,
        now: Instant,
    ) -> Added {
        if until <= now {
            return self.add(key, lane, cause, now);
        }
        let (now, until) = (self.time.told(now), self.time.moment(until));
        let later = Work::asked(lane, cause);
        let mut entry = match self.cells.entry(key) {
            Entry::Occupied(entry) => entry,
            Entry::Vacant(entry) => {
                let key = entry.key().clone();
                let state = waiting(until, Wait::Requeue, later, now);
                let cell = self.orders.enter(key, Streak::default(), state, now);
                let delay = cell.delay(&self.time);
                entry.insert(cell);
                return delay.map_or(Added::Queued, Added::Delayed);
            }
        };
        let cell = entry.get_mut();
        let state = match &mut cell.state {
            State::Queued(_) => {
                self.orders.merge(cell, later);
                return Added::Coalesced;
            }
            State::Running { then, .. } => return appoint(then, until, when, later),
            State::Held { work, .. } => {
                work.merge(later);
                return Added::Backoff;
            }
            State::Parked(parked) => {
                parked.work.merge(later);
                return Added::Backoff;
            }
            State::Waiting {
                until: present,
                why,
                work,
                ..
            } => {
                work.join(later);
                let until = match why {
                    Wait::Requeue => when.of(*present, until),
                    Wait::NotReady => until.min(*present),
                    Wait::Backoff(_) | Wait::Conflict | Wait::Lost => return Added::Backoff,
                };
                if until == *present {
                    return Added::Coalesced;
                }
                waiting(until, *why, take(work), now)
            }
        };
        let key = entry.key().clone();
        let cell = entry.get_mut();
        self.orders.shift(key, cell, state, now);
        cell.delay(&self.time).map_or(Added::Woken, Added::Delayed)
    }

    /// Takes back a time that was asked for: ends the wait a key asked for itself, or that was
    /// [scheduled](Queue::schedule). Never ends a backoff, nor what waits for something to become
    /// ready. Returns whether there was one; a timer set for it is void.
    pub fn cancel(&mut self, key: &K) -> bool {
        let Some(cell) = self.cells.get_mut(key) else {
            return false;
        };
        match &mut cell.state {
            State::Running { then, .. } if matches!(then.as_deref(), Some(Then::At(_))) => {
                *then = None;
                true
            }
            State::Waiting {
                why: Wait::Requeue, ..
            } => {
                self.orders.leave(cell);
                self.cells.remove(key);
                shrink(&mut self.cells);
                true
            }
            _ => false,
        }
    }
}

/// One more run after the present one, for `later` too.
fn add_to<C: Merge>(then: &mut Option<Box<Then<C>>>, later: Work<C>) -> Added {
    let Some(next) = then.as_deref_mut() else {
        *then = Some(Box::new(Then::Now(later)));
        return Added::Dirty;
    };
    match next {
        Then::Now(work) => {
            work.merge(later);
            Added::Coalesced
        }
        Then::At(appointment) => {
            let mut work = take(&mut appointment.work);
            work.merge(later);
            *next = Then::Now(work);
            Added::Dirty
        }
    }
}

/// One more run at `until`, unless one follows at once.
fn appoint<C: Merge>(
    then: &mut Option<Box<Then<C>>>,
    until: Moment,
    when: When,
    later: Work<C>,
) -> Added {
    match then.as_deref_mut() {
        None => {
            let appointment = Appointment {
                until,
                when,
                work: later,
            };
            *then = Some(Box::new(Then::At(appointment)));
            return Added::Dirty;
        }
        Some(Then::Now(work)) => work.merge(later),
        Some(Then::At(present)) => {
            present.until = when.of(present.until, until);
            present.when = when;
            present.work.merge(later);
        }
    }
    Added::Coalesced
}
