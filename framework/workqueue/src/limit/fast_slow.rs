//! A few quick tries, then patience.

use std::time::Duration;

use super::{Limiter, Retry, jitter, ratio};

/// Gives the first `tries` failures in a row the fast delay and all later ones the slow.
#[derive(Clone, Debug)]
pub struct FastSlow {
    fast: Duration,
    slow: Duration,
    tries: u32,
    jitter: f64,
}

impl FastSlow {
    /// `fast` for the first `tries` failures, `slow` from then on, without jitter.
    #[must_use]
    pub fn new(fast: Duration, slow: Duration, tries: u32) -> Self {
        FastSlow {
            fast,
            slow,
            tries,
            jitter: 0.0,
        }
    }

    /// Spreads each delay over ± `share` of itself; 0 to 1, anything else is brought within.
    #[must_use]
    pub fn with_jitter(self, share: f64) -> Self {
        FastSlow {
            jitter: ratio(share),
            ..self
        }
    }
}

impl Limiter for FastSlow {
    fn delay(&mut self, retry: Retry) -> Duration {
        let delay = if retry.failures.max(1) <= self.tries {
            self.fast
        } else {
            self.slow
        };
        jitter(delay, self.jitter, retry.chance)
    }
}
