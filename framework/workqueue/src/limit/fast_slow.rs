//! A few quick tries, then patience.

use std::time::Duration;

use super::{Limiter, Retry};

/// Gives the first `tries` failures in a row the fast delay and all later ones the slow.
#[derive(Clone, Debug)]
pub struct FastSlow {
    fast: Duration,
    slow: Duration,
    tries: u32,
}

impl FastSlow {
    /// `fast` for the first `tries` failures, `slow` from then on.
    #[must_use]
    pub fn new(fast: Duration, slow: Duration, tries: u32) -> Self {
        FastSlow { fast, slow, tries }
    }
}

impl Limiter for FastSlow {
    fn delay(&mut self, retry: Retry) -> Duration {
        if retry.failures.max(1) <= self.tries {
            self.fast
        } else {
            self.slow
        }
    }
}
