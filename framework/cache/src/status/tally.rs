//! Numbers that are summed up where they arise, and read at a scrape.

use std::time::Duration;

use serde::Serialize;

/// How often something was measured, and the sum of what was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// How often.
    pub count: u64,
    /// The sum.
    pub sum: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, value: u64) {
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
    }

    pub(crate) fn add_micros(&mut self, took: Duration) {
        self.add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }
}

/// Upper bounds in microseconds: from a millisecond to ten seconds, as client-go has them.
const BOUNDS: [u64; 12] = [
    1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 5_000_000,
    10_000_000,
];

/// How long something took, each time it was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Latency {
    micros: Tally,
    /// How many ended within each bound and above the one before it.
    within: [u64; BOUNDS.len()],
}

impl Latency {
    pub(crate) fn add(&mut self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.micros.add(micros);
        if let Some(place) = BOUNDS.iter().position(|bound| micros <= *bound) {
            self.within[place] += 1;
        }
    }

    /// How often it was done.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.micros.count
    }

    /// How long it took in all.
    #[must_use]
    pub fn sum(&self) -> Duration {
        Duration::from_micros(self.micros.sum)
    }

    /// Upper bounds in seconds, from 0.001 to 10, each with how often it took no longer.
    pub fn buckets(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let mut sum = 0;
        BOUNDS.iter().zip(self.within).map(move |(bound, within)| {
            sum += within;
            (*bound as f64 / 1e6, sum)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, Latency, Tally};

    #[test]
    fn a_bucket_counts_all_that_took_no_longer() {
        let mut latency = Latency::default();
        for micros in [0, 1_000, 1_001, 9_999_999, 10_000_001] {
            latency.add(Duration::from_micros(micros));
        }
        let buckets: Vec<_> = latency.buckets().collect();
        assert_eq!(buckets[0], (0.001, 2));
        assert_eq!(buckets[1], (0.0025, 3));
        assert_eq!(buckets[11], (10.0, 4));
        assert_eq!(latency.count(), 5);
    }

    #[test]
    fn a_tally_never_wraps() {
        let mut tally = Tally::default();
        tally.add(u64::MAX);
        tally.add_micros(Duration::MAX);
        assert_eq!((tally.count, tally.sum), (2, u64::MAX));
    }
}
