//! What a queue shows of itself. Everything is read off the cells and their orders.

use std::hash::{BuildHasher, Hash};
use std::time::{Duration, Instant};

use super::Queue;
use crate::cell::State;
use crate::{CellView, Delay, Lane, Phase};

impl<K: Eq + Hash, C, S: BuildHasher> Queue<K, C, S> {
    /// How many keys are not idle.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether every key is idle.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// How many keys are ready, over all lanes.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.orders.lanes.len()
    }

    /// The most keys that were ever ready at once.
    #[must_use]
    pub fn high_water(&self) -> usize {
        self.orders.high_water
    }

    /// How many keys are ready in `lane`.
    #[must_use]
    pub fn depth(&self, lane: Lane) -> usize {
        self.orders.lanes.depth(lane)
    }

    /// How long the head of `lane` has been ready; zero for an empty lane.
    #[must_use]
    pub fn oldest_age(&self, lane: Lane, now: Instant) -> Duration {
        self.orders
            .lanes
            .oldest(lane)
            .map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    /// How many keys are being run.
    #[must_use]
    pub fn running(&self) -> usize {
        self.orders.running.len()
    }

    /// How many keys wait for a time.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.orders.waiting.len()
    }

    /// How many keys are parked.
    #[must_use]
    pub fn parked(&self) -> usize {
        self.orders.parked.len()
    }

    /// Every wait, the earliest first: what a timer that lost its memory has to be told again.
    pub fn waits(&self) -> impl Iterator<Item = (&K, Delay)> {
        self.orders
            .waiting
            .values()
            .filter_map(|key| Some((key, self.cells.get(key)?.delay()?)))
    }

    /// What `key` is doing; `None` when it is idle.
    #[must_use]
    pub fn state_of(&self, key: &K) -> Option<CellView<'_, C>> {
        let cell = self.cells.get(key)?;
        let (phase, since, work) = match &cell.state {
            State::Queued(work) => (
                Phase::Queued,
                self.orders.lanes.since(work.lane, cell.ticket)?,
                work,
            ),
            State::Running { run, next } => (
                Phase::Running {
                    dirty: next.is_some(),
                },
                run.since,
                &run.work,
            ),
            State::Waiting {
                until,
                why,
                since,
                work,
            } => (
                Phase::Waiting {
                    until: *until,
                    why: *why,
                },
                *since,
                work,
            ),
            State::Parked {
                reason,
                since,
                work,
            } => (Phase::Parked { reason }, *since, work),
        };
        Some(CellView {
            phase,
            since,
            lane: work.lane,
            cause: work.cause.as_ref(),
            streak: cell.streak,
        })
    }

    /// Every key that is not idle: those running, the longest first; then those ready, as they
    /// stand in their lanes; then those that wait, the earliest first; then those parked, the
    /// longest first.
    pub fn cells(&self) -> impl Iterator<Item = (&K, CellView<'_, C>)> {
        let orders = &self.orders;
        let keys = orders
            .running
            .values()
            .chain(orders.lanes.keys())
            .chain(orders.waiting.values())
            .chain(orders.parked.values());
        keys.filter_map(|key| Some((key, self.state_of(key)?)))
    }
}
