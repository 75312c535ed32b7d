//! Doubling delays per key.

use std::time::Duration;

use super::{Limiter, Retry, jitter, ratio};

/// Doubles the delay with each failure in a row: base × 2ⁿ up to a cap, then jittered, so that keys
/// at the cap do not march in step.
///
/// Default: 100 ms to 10 s, ± 20 %.
#[derive(Clone, Debug)]
pub struct Exponential {
    base: Duration,
    cap: Duration,
    jitter: f64,
}

impl Exponential {
    /// Delays from `base` to `cap`, without jitter. A cap below the base acts as the base.
    #[must_use]
    pub fn new(base: Duration, cap: Duration) -> Self {
        Exponential {
            base,
            cap: cap.max(base),
            jitter: 0.0,
        }
    }

    /// What client-go calls its item exponential limiter in the default of its controllers: 5 ms to
    /// 1000 s, without jitter.
    #[must_use]
    pub fn client_go() -> Self {
        Exponential::new(Duration::from_millis(5), Duration::from_secs(1000))
    }

    /// Spreads each delay over ± `share` of itself; 0 to 1, anything else is brought within.
    #[must_use]
    pub fn with_jitter(self, share: f64) -> Self {
        Exponential {
            jitter: ratio(share),
            ..self
        }
    }
}

impl Default for Exponential {
    fn default() -> Self {
        Exponential::new(Duration::from_millis(100), Duration::from_secs(10)).with_jitter(0.2)
    }
}

impl Limiter for Exponential {
    fn delay(&mut self, retry: Retry) -> Duration {
        let doublings = retry.failures.saturating_sub(1);
        let delay = 1_u32
            .checked_shl(doublings)
            .and_then(|factor| self.base.checked_mul(factor));
        jitter(
            delay.map_or(self.cap, |delay| delay.min(self.cap)),
            self.jitter,
            retry.chance,
        )
    }
}
