//! What a queue shows of itself. Everything is read off the cells and their orders.

use std::hash::{BuildHasher, Hash};
use std::time::{Duration, Instant};

use super::Queue;
use crate::cell::State;
use crate::{CellView, Delay, Lane, Phase, RunId};

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
            .map_or(Duration::ZERO, |since| self.time.moment(now).since(since))
    }

    /// Since when the head of `lane` has been ready; `None` for an empty lane.
    #[must_use]
    pub fn oldest_since(&self, lane: Lane) -> Option<Instant> {
        self.time.instant(self.orders.lanes.oldest(lane)?)
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

    /// How many keys are held.
    #[must_use]
    pub fn held(&self) -> usize {
        self.orders.held.len()
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
            .filter_map(|key| Some((key, self.cells.get(key)?.delay(&self.time)?)))
    }

    /// Every run under way, the longest first: what whoever survives a crash has to account for.
    pub fn runs(&self) -> impl Iterator<Item = (&K, RunId)> {
        let epoch = self.epoch;
        let runs = self.orders.running.iter();
        runs.map(move |(&ticket, key)| (key, RunId { epoch, ticket }))
    }

    /// Every parked key, the longest first.
    pub fn parked_keys(&self) -> impl Iterator<Item = (&K, CellView<'_, C>)> {
        self.shown(self.orders.parked.values())
    }

    fn shown<'a>(
        &'a self,
        keys: impl Iterator<Item = &'a K>,
    ) -> impl Iterator<Item = (&'a K, CellView<'a, C>)> {
        keys.filter_map(|key| Some((key, self.state_of(key)?)))
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
            State::Running { run, then } => (
                Phase::Running {
                    dirty: then.is_some(),
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
                    until: self.time.instant(*until)?,
                    why: *why,
                },
                *since,
                work,
            ),
            State::Held { since, work } => (Phase::Held, *since, work),
            State::Parked(parked) => (
                Phase::Parked {
                    reason: &parked.reason,
                },
                parked.since,
                &parked.work,
            ),
        };
        Some(CellView {
            phase,
            since: self.time.instant(since)?,
            lane: work.lane,
            cause: work.cause.as_ref(),
            streak: cell.streak,
        })
    }

    /// Every key that is not idle: those running, the longest first; then those ready, as they
    /// stand in their lanes; then those that wait, the earliest first; then those held and
    /// those parked, the longest first.
    pub fn cells(&self) -> impl Iterator<Item = (&K, CellView<'_, C>)> {
        let orders = &self.orders;
        let keys = orders
            .running
            .values()
            .chain(orders.lanes.keys())
            .chain(orders.waiting.values())
            .chain(orders.held.values())
            .chain(orders.parked.values());
        self.shown(keys)
    }
}
