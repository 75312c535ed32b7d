//! The orders in which keys leave their states: the other half of a cell.

use std::collections::BTreeMap;
use std::mem::take;
use std::time::Duration;

use crate::cell::{Cell, State, Work};
use crate::lanes::Lanes;
use crate::time::Moment;
use crate::{Lane, Merge, Streak, Wait};

/// The keys by how they leave their state. Which order holds a key, and under which number, is said
/// by its cell.
#[derive(Debug)]
pub(super) struct Orders<K> {
    pub(super) lanes: Lanes<K>,
    pub(super) running: BTreeMap<u64, K>,
    /// Those whose time is all they wait for.
    pub(super) waiting: BTreeMap<(Moment, u64), K>,
    /// Those that wait after a failure by their object's fault: retries that may be paced.
    pub(super) retries: BTreeMap<(Moment, u64), K>,
    pub(super) held: BTreeMap<u64, K>,
    pub(super) parked: BTreeMap<u64, K>,
    next: u64,
    pub(super) high_water: usize,
}

impl<K> Orders<K> {
    pub(super) fn new(ageing: Duration) -> Self {
        Orders {
            lanes: Lanes::new(ageing),
            running: BTreeMap::new(),
            waiting: BTreeMap::new(),
            retries: BTreeMap::new(),
            held: BTreeMap::new(),
            parked: BTreeMap::new(),
            next: 0,
            high_water: 0,
        }
    }

    /// Takes the key out of the order its state has it in.
    pub(super) fn leave<C>(&mut self, cell: &Cell<C>) {
        match &cell.state {
            State::Queued(work) => self.lanes.remove(work.lane, cell.ticket),
            State::Running { .. } => drop(self.running.remove(&cell.ticket)),
            State::Waiting { until, why, .. } => {
                self.waits(*why).remove(&(*until, cell.ticket));
            }
            State::Held { .. } => drop(self.held.remove(&cell.ticket)),
            State::Parked(_) => drop(self.parked.remove(&cell.ticket)),
        }
    }

    /// Puts the key into the order of `state`; the caller sees to it that it is in no other.
    pub(super) fn enter<C>(
        &mut self,
        key: K,
        streak: Streak,
        state: State<C>,
        now: Moment,
    ) -> Cell<C> {
        let ticket = self.next;
        self.next += 1;
        match &state {
            State::Queued(work) => {
                self.lanes.push(work.lane, ticket, key, now);
                self.high_water = self.high_water.max(self.lanes.len());
            }
            State::Running { .. } => drop(self.running.insert(ticket, key)),
            State::Waiting { until, why, .. } => {
                self.waits(*why).insert((*until, ticket), key);
            }
            State::Held { .. } => drop(self.held.insert(ticket, key)),
            State::Parked(_) => drop(self.parked.insert(ticket, key)),
        }
        Cell {
            ticket,
            streak,
            state,
        }
    }

    fn waits(&mut self, why: Wait) -> &mut BTreeMap<(Moment, u64), K> {
        if why.is_retry() {
            &mut self.retries
        } else {
            &mut self.waiting
        }
    }

    pub(super) fn shift<C>(&mut self, key: K, cell: &mut Cell<C>, state: State<C>, now: Moment) {
        self.leave(cell);
        *cell = self.enter(key, cell.streak, state, now);
    }

    /// Merges `later` into the work of a key that is queued; one that becomes more urgent is lifted.
    pub(super) fn merge<C: Merge>(&mut self, cell: &mut Cell<C>, later: Work<C>) {
        if let State::Queued(work) = &mut cell.state {
            let from = work.lane;
            work.merge(later);
            if work.lane != from {
                self.lanes.lift(cell.ticket, from, work.lane);
            }
        }
    }

    /// Queues a key that waits, is held or is parked, in its own lane or in `lane`, whichever is more
    /// urgent.
    pub(super) fn rouse<C>(&mut self, key: K, cell: &mut Cell<C>, lane: Lane, now: Moment) {
        let work = match &mut cell.state {
            State::Waiting { work, .. } | State::Held { work, .. } => work,
            State::Parked(parked) => &mut parked.work,
            State::Queued(_) | State::Running { .. } => return,
        };
        let mut work = take(work);
        work.lane = work.lane.max(lane);
        self.shift(key, cell, State::Queued(work), now);
    }

    /// Drops every key that is not running.
    pub(super) fn clear(&mut self) {
        self.lanes.clear();
        self.waiting.clear();
        self.retries.clear();
        self.held.clear();
        self.parked.clear();
    }
}
