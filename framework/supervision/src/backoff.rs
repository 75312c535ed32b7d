//! How long a failing child waits before it is started again; pure.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use crate::random::Entropy;

/// How long a failing child waits before it is started again.
///
/// The n-th restart in a row waits `min * factor^(n-1)`, at most `max`, moved by up to `jitter` of itself in either direction
/// so that children that failed together do not come back together. After an incarnation that lived for
/// `reset_after`, or twice its last delay if that is longer, the count begins anew.
///
/// Default: 100 ms to 30 s, factor 2, jitter 0.2, reset after 60 s. Cheap to clone: clones share what they are.
#[derive(Clone, Debug, PartialEq)]
pub struct Backoff(Arc<Curve>);

#[derive(Clone, Debug, PartialEq)]
struct Curve {
    min: Duration,
    max: Duration,
    factor: f64,
    jitter: f64,
    reset_after: Duration,
}

/// Why a [`Backoff`] or an [`Intensity`](crate::Intensity) cannot be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BackoffError {
    /// The first delay exceeds the longest.
    #[error(
        "a backoff from {min:?} to {max:?} has its bounds the wrong way round: min must not exceed max"
    )]
    Bounds {
        /// The first delay.
        min: Duration,
        /// The longest delay.
        max: Duration,
    },
    /// Delays would shrink, or the number is none.
    #[error("a backoff factor of {0} makes delays shrink or is no number: it must be 1 or more")]
    Factor(f64),
    /// Delays would go below zero.
    #[error(
        "a backoff jitter of {0} is out of range: it is a share of the delay, from 0 up to but excluding 1"
    )]
    Jitter(f64),
}

impl Default for Backoff {
    fn default() -> Self {
        static DEFAULT: LazyLock<Backoff> = LazyLock::new(|| {
            Backoff(Arc::new(Curve {
                min: Duration::from_millis(100),
                max: Duration::from_secs(30),
                factor: 2.0,
                jitter: 0.2,
                reset_after: Duration::from_secs(60),
            }))
        });
        DEFAULT.clone()
    }
}

impl Backoff {
    /// A backoff with delays from `min` to `max`, growing by `factor`, moved by up to `jitter` of themselves; reset after 60 s.
    ///
    /// # Errors
    /// If `min` exceeds `max`, `factor` is below 1, or `jitter` is outside `[0, 1)`.
    pub fn new(
        min: Duration,
        max: Duration,
        factor: f64,
        jitter: f64,
    ) -> Result<Backoff, BackoffError> {
        if min > max {
            return Err(BackoffError::Bounds { min, max });
        }
        if !factor.is_finite() || factor < 1.0 {
            return Err(BackoffError::Factor(factor));
        }
        if !(0.0..1.0).contains(&jitter) {
            return Err(BackoffError::Jitter(jitter));
        }
        Ok(Backoff(Arc::new(Curve {
            min,
            max,
            factor,
            jitter,
            reset_after: Duration::from_secs(60),
        })))
    }

    /// No delay at all: for children whose own messages carry the backoff.
    ///
    /// A child that fails again and again is then restarted as fast as the thread allows, one restart per turn of the
    /// scheduler, so that others still get theirs.
    #[must_use]
    pub fn none() -> Backoff {
        static NONE: LazyLock<Backoff> = LazyLock::new(|| {
            Backoff(Arc::new(Curve {
                min: Duration::ZERO,
                max: Duration::ZERO,
                factor: 1.0,
                jitter: 0.0,
                reset_after: Duration::ZERO,
            }))
        });
        NONE.clone()
    }

    /// Sets how long an incarnation must live for the next delay to be the first again.
    #[must_use]
    pub fn with_reset_after(mut self, reset_after: Duration) -> Backoff {
        Arc::make_mut(&mut self.0).reset_after = reset_after;
        self
    }

    /// The delay before the `streak`-th restart in a row, counted from 1, without jitter.
    #[must_use]
    pub fn nominal(&self, streak: u32) -> Duration {
        let exponent = i32::try_from(streak.saturating_sub(1)).unwrap_or(i32::MAX);
        let seconds = self.0.min.as_secs_f64() * self.0.factor.powi(exponent);
        // beyond the cap the power may be infinite, which no Duration can hold, and of which nothing is no number
        if self.0.min.is_zero() {
            Duration::ZERO
        } else if seconds < self.0.max.as_secs_f64() {
            Duration::try_from_secs_f64(seconds).unwrap_or(self.0.max)
        } else {
            self.0.max
        }
    }

    /// The delay before the `streak`-th restart in a row, counted from 1.
    #[must_use]
    pub fn delay(&self, streak: u32, entropy: &Entropy) -> Duration {
        let nominal = self.nominal(streak);
        if nominal.is_zero() {
            nominal
        } else {
            entropy.jitter(nominal, self.0.jitter)
        }
    }

    /// The length of the row of failures after an incarnation that lived for `uptime`, when `streak` failures came before it.
    #[must_use]
    pub fn next_streak(&self, streak: u32, uptime: Duration) -> u32 {
        let healthy = if streak == 0 {
            self.0.reset_after
        } else {
            self.0
                .reset_after
                .max(self.nominal(streak).saturating_mul(2))
        };
        if uptime >= healthy {
            1
        } else {
            streak.saturating_add(1)
        }
    }

    /// The longest that `restarts` restarts in a row can take in delays alone.
    #[must_use]
    pub fn longest(&self, restarts: u32) -> Duration {
        let (min, max) = (self.0.min.as_secs_f64(), self.0.max.as_secs_f64());
        let all = f64::from(restarts);
        let total = if self.0.factor == 1.0 || min == 0.0 {
            min * all
        } else {
            // a geometric series up to the cap, and the cap from there on; `ln_1p` and `exp_m1` for factors close to 1
            let rate = (self.0.factor - 1.0).ln_1p();
            let growing = ((max / min).ln() / rate).ceil().min(all);
            min * (growing * rate).exp_m1() / (self.0.factor - 1.0) + max * (all - growing)
        };
        Duration::try_from_secs_f64(total * (1.0 + self.0.jitter)).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests;
