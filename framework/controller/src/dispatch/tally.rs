//! What a shard counts: how its runs ended, how long they took, how long keys stood in line.

use std::{
    array,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use super::Ended;
use crate::reconcile::{Fault, Outcome};

/// The counts of one shard. Each has one thread that writes it, and a line of its own in the cache of the processor; readers sum over shards.
#[repr(align(128))]
pub(crate) struct Tally {
    begun: AtomicU64,
    ended: [AtomicU64; Ending::ALL.len()],
    adds: AtomicU64,
    retries: AtomicU64,
    queued: Spread,
    took: Spread,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            begun: AtomicU64::new(0),
            ended: array::from_fn(|_| AtomicU64::new(0)),
            adds: AtomicU64::new(0),
            retries: AtomicU64::new(0),
            queued: Spread::new(QUEUE),
            took: Spread::new(RUN),
        }
    }
}

impl Tally {
    /// Counts a run that begins; how many there were before.
    pub(crate) fn begin(&self) -> u64 {
        self.begun.fetch_add(1, Relaxed)
    }

    /// A run ended so, and the reconciler took so long.
    pub(crate) fn ended(&self, ended: &Ended, took: Duration) {
        self.ended[Ending::of(ended) as usize].fetch_add(1, Relaxed);
        self.took.tell(took);
    }

    /// A key was queued that was not.
    pub(crate) fn added(&self) {
        self.adds.fetch_add(1, Relaxed);
    }

    /// A key is to run after a delay.
    pub(crate) fn delayed(&self) {
        self.retries.fetch_add(1, Relaxed);
    }

    /// A key was taken from its line after so long.
    pub(crate) fn queued_for(&self, waited: Duration) {
        self.queued.tell(waited);
    }
}

/// The counts of all shards together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) ended: [u64; Ending::ALL.len()],
    pub(crate) adds: u64,
    pub(crate) retries: u64,
    pub(crate) queued: Sums,
    pub(crate) took: Sums,
}

impl Totals {
    pub(crate) fn of<'a>(tallies: impl IntoIterator<Item = &'a Tally>) -> Self {
        let mut totals = Self::default();
        for tally in tallies {
            for (total, ended) in totals.ended.iter_mut().zip(&tally.ended) {
                *total += ended.load(Relaxed);
            }
            totals.adds += tally.adds.load(Relaxed);
            totals.retries += tally.retries.load(Relaxed);
            totals.queued.add(&tally.queued);
            totals.took.add(&tally.took);
        }
        totals
    }

    /// How many runs ended in one of these ways.
    pub(crate) fn ended(&self, endings: &[Ending]) -> u64 {
        endings
            .iter()
            .map(|&ending| self.ended[ending as usize])
            .sum()
    }
}

/// How runs end, as metrics tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Success,
    RequeueAfter,
    Retry,
    GiveUp,
    Conflict,
    Error,
    Permanent,
    Panic,
    Timeout,
    Undecodable,
    Aborted,
}

impl Ending {
    /// All of them, in the order of their numbers.
    pub(crate) const ALL: [Self; 11] = [
        Self::Success,
        Self::RequeueAfter,
        Self::Retry,
        Self::GiveUp,
        Self::Conflict,
        Self::Error,
        Self::Permanent,
        Self::Panic,
        Self::Timeout,
        Self::Undecodable,
        Self::Aborted,
    ];

    pub(crate) fn of(ended: &Ended) -> Self {
        match ended {
            Ended::Outcome(Outcome::Done) => Self::Success,
            Ended::Outcome(Outcome::RequeueAfter(_)) => Self::RequeueAfter,
            Ended::Outcome(Outcome::Retry) => Self::Retry,
            Ended::Outcome(Outcome::GiveUp(_)) => Self::GiveUp,
            Ended::Failed { fault, .. } => match fault {
                Fault::Conflict => Self::Conflict,
                Fault::Permanent => Self::Permanent,
                Fault::Object | Fault::Infrastructure { .. } => Self::Error,
            },
            Ended::Panicked(_) => Self::Panic,
            Ended::TimedOut(_) => Self::Timeout,
            Ended::Undecodable(_) => Self::Undecodable,
            Ended::NotBegun | Ended::Demoted | Ended::Aborted => Self::Aborted,
        }
    }

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::RequeueAfter => "requeue_after",
            Self::Retry => "retry",
            Self::GiveUp => "give_up",
            Self::Conflict => "conflict",
            Self::Error => "error",
            Self::Permanent => "permanent",
            Self::Panic => "panic",
            Self::Timeout => "timeout",
            Self::Undecodable => "undecodable",
            Self::Aborted => "aborted",
        }
    }
}

const US: u64 = 1_000;
const MS: u64 = 1_000 * US;
const S: u64 = 1_000 * MS;

/// client-go's bounds for times in a queue, in nanoseconds: tens of ten.
pub(crate) const QUEUE: &[u64] = &[
    10,
    100,
    US,
    10 * US,
    100 * US,
    MS,
    10 * MS,
    100 * MS,
    S,
    10 * S,
    100 * S,
    1000 * S,
];

/// controller-runtime's bounds for a reconcile.
#[rustfmt::skip]
pub(crate) const RECONCILE: &[u64] = &[
    5 * MS, 10 * MS, 25 * MS, 50 * MS, 100 * MS, 150 * MS, 200 * MS, 250 * MS, 300 * MS, 350 * MS, 400 * MS, 450 * MS, 500 * MS,
    600 * MS, 700 * MS, 800 * MS, 900 * MS, S, 1250 * MS, 1500 * MS, 1750 * MS, 2 * S, 2500 * MS, 3 * S, 3500 * MS, 4 * S, 4500 * MS, 5 * S,
    6 * S, 7 * S, 8 * S, 9 * S, 10 * S, 15 * S, 20 * S, 25 * S, 30 * S, 40 * S, 50 * S, 60 * S,
];

/// Both: a run is told once and shown by either.
#[rustfmt::skip]
const RUN: &[u64] = &[
    10, 100, US, 10 * US, 100 * US, MS,
    5 * MS, 10 * MS, 25 * MS, 50 * MS, 100 * MS, 150 * MS, 200 * MS, 250 * MS, 300 * MS, 350 * MS, 400 * MS, 450 * MS, 500 * MS,
    600 * MS, 700 * MS, 800 * MS, 900 * MS, S, 1250 * MS, 1500 * MS, 1750 * MS, 2 * S, 2500 * MS, 3 * S, 3500 * MS, 4 * S, 4500 * MS, 5 * S,
    6 * S, 7 * S, 8 * S, 9 * S, 10 * S, 15 * S, 20 * S, 25 * S, 30 * S, 40 * S, 50 * S, 60 * S,
    100 * S, 1000 * S,
];

/// From a watch that is ahead of the answer to the longest wait there is.
#[rustfmt::skip]
pub(crate) const BARRIER: &[u64] = &[
    MS, 2500 * US, 5 * MS, 10 * MS, 25 * MS, 50 * MS, 100 * MS, 250 * MS, 500 * MS, S, 2500 * MS, 5 * S, 10 * S,
];

/// Times, counted by the bounds they are within.
pub(crate) struct Spread {
    bounds: &'static [u64],
    /// One more than there are bounds.
    counts: Box<[AtomicU64]>,
    /// In nanoseconds; five hundred years.
    sum: AtomicU64,
}

impl Spread {
    pub(crate) fn new(bounds: &'static [u64]) -> Self {
        Self {
            bounds,
            counts: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(),
            sum: AtomicU64::new(0),
        }
    }

    pub(crate) fn tell(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let place = self.bounds.partition_point(|&bound| bound < nanos);
        self.counts[place].fetch_add(1, Relaxed);
        self.sum.fetch_add(nanos, Relaxed);
    }
}

/// What one or several [`Spread`]s of the same bounds hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sums {
    bounds: &'static [u64],
    counts: Vec<u64>,
    nanos: u64,
}

impl Sums {
    pub(crate) fn add(&mut self, spread: &Spread) {
        self.bounds = spread.bounds;
        self.counts.resize(spread.counts.len(), 0);
        for (total, count) in self.counts.iter_mut().zip(&spread.counts) {
            *total += count.load(Relaxed);
        }
        self.nanos = self.nanos.wrapping_add(spread.sum.load(Relaxed));
    }

    pub(crate) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.nanos as f64 / S as f64
    }

    /// How many were at or below each bound there is; bounds in seconds.
    pub(crate) fn cumulated(&self) -> Vec<(f64, u64)> {
        self.below(self.bounds)
    }

    /// How many were at or below each of `bounds`, which are among those it was told by; bounds in seconds.
    pub(crate) fn below(&self, bounds: &[u64]) -> Vec<(f64, u64)> {
        let below = |bound: u64| {
            let within = self.bounds.iter().zip(&self.counts);
            within
                .filter(|(edge, _)| **edge <= bound)
                .map(|(_, n)| n)
                .sum()
        };
        bounds
            .iter()
            .map(|&bound| (bound as f64 / S as f64, below(bound)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_told_once_and_shown_by_either_list_of_bounds() {
        for bounds in [QUEUE, RECONCILE] {
            assert!(bounds.iter().all(|bound| RUN.contains(bound)));
        }
        for bounds in [QUEUE, RECONCILE, RUN, BARRIER] {
            assert!(bounds.is_sorted());
        }
        let (one, other) = (Tally::default(), Tally::default());
        let ms = Duration::from_millis;
        one.ended(&Ended::Outcome(Outcome::Done), ms(10));
        one.ended(&Ended::Aborted, ms(11));
        other.ended(&Ended::Outcome(Outcome::Done), ms(2_000_000));
        let totals = Totals::of([&one, &other]);
        assert_eq!(totals.ended(&[Ending::Success]), 2);
        assert_eq!(totals.ended(&Ending::ALL), 3);
        let took = |bounds| totals.took.below(bounds);
        assert_eq!(took(QUEUE)[5..8], [(0.001, 0), (0.01, 1), (0.1, 2)]);
        assert_eq!(took(RECONCILE)[..3], [(0.005, 0), (0.01, 1), (0.025, 2)]);
        assert_eq!(took(RECONCILE).last(), Some(&(60.0, 2)));
        assert_eq!((totals.took.count(), totals.took.seconds()), (3, 2000.021));
    }

    #[test]
    fn every_ending_has_its_number_and_a_label_of_its_own() {
        let mut labels = Vec::new();
        for (number, ending) in Ending::ALL.into_iter().enumerate() {
            assert_eq!(ending as usize, number);
            assert!(!labels.contains(&ending.label()));
            labels.push(ending.label());
        }
    }
}
