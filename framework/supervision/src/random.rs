//! Seeded random numbers for jitter.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A source of random numbers for jitter: seeded, cheap to clone, shared between clones.
///
/// Clones draw from one stream, so a whole run is repeated from one number as long as it runs on one thread.
/// The generator is SplitMix64 (Steele, Lea, Flood 2014); it is not for secrets.
#[derive(Clone, Debug)]
pub struct Entropy {
    seed: u64,
    state: Arc<AtomicU64>,
}

const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

impl Entropy {
    /// A source seeded by the operating system.
    #[must_use]
    pub fn from_os() -> Entropy {
        // std keys its hash maps from the operating system's generator, the only one std reaches
        Entropy::seeded(RandomState::new().build_hasher().finish())
    }

    /// A source that yields the same numbers for the same seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Entropy {
        Entropy {
            seed,
            state: Arc::new(AtomicU64::new(seed)),
        }
    }

    /// The seed this source began with: print it where a run may have to be repeated.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The next 64 random bits.
    #[must_use]
    pub fn next(&self) -> u64 {
        let mut z = self
            .state
            .fetch_add(GOLDEN_GAMMA, Ordering::Relaxed)
            .wrapping_add(GOLDEN_GAMMA);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `[0, 1)`.
    #[must_use]
    pub fn unit(&self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number in `range`, or its start if it is empty.
    #[must_use]
    pub fn range(&self, range: Range<u64>) -> u64 {
        let width = range.end.saturating_sub(range.start);
        range.start + ((u128::from(self.next()) * u128::from(width)) >> 64) as u64
    }

    /// `base` moved by up to `ratio` of itself in either direction; a ratio of 0.2 yields 0.8 to 1.2 times `base`.
    ///
    /// A ratio below zero counts as zero, one above 1 (which would go below zero) as 1.
    #[must_use]
    pub fn jitter(&self, base: Duration, ratio: f64) -> Duration {
        let ratio = if ratio.is_nan() {
            0.0
        } else {
            ratio.clamp(0.0, 1.0)
        };
        let factor = 1.0 + ratio * (2.0 * self.unit() - 1.0);
        Duration::try_from_secs_f64(base.as_secs_f64() * factor).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests;
