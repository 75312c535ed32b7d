//! How long a failed key waits: limiters, the defaults, and the seeds of the trade under their
//! names.
//!
//! The cell counts failures, so no limiter keeps state per key, and there is nothing to forget when
//! a key succeeds or is deleted.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

mod bucket;
mod exponential;
mod fast_slow;
mod max_of;

pub use bucket::Bucket;
pub use exponential::Exponential;
pub use fast_slow::FastSlow;
pub use max_of::MaxOf;

/// A retry about which a limiter is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retry {
    /// Failed runs in a row, this one included: 1 for the first. (Zero is taken for one.)
    pub failures: u32,
    /// A random number from 0 to 1, drawn by the caller so that a run can be repeated; 0.5 gives
    /// the undisturbed delay.
    pub chance: f64,
    /// The time of asking.
    pub now: Instant,
}

/// Says how long a failed key waits before its next try.
pub trait Limiter {
    /// The delay from [`now`](Retry::now) on. Some limiters, such as a bucket, spend something on
    /// each answer: ask once per retry.
    fn delay(&mut self, retry: Retry) -> Duration;
}

impl<L: Limiter + ?Sized> Limiter for Box<L> {
    fn delay(&mut self, retry: Retry) -> Duration {
        (**self).delay(retry)
    }
}

/// A choice of limiter, which makes as many as are needed; for settings, which are cloned.
///
/// ```
/// use std::time::Duration;
/// use boatswain_workqueue::limit::{Bucket, Exponential, FastSlow, Limiters, MaxOf};
///
/// let doubling: Limiters = Exponential::default().into();
/// let at_least_a_second = Limiters::new(|| {
///     let second = Duration::from_secs(1);
///     MaxOf::new().and(Exponential::default()).and(FastSlow::new(second, second, 0))
/// });
/// # let _ = (doubling, at_least_a_second);
/// ```
#[derive(Clone)]
pub struct Limiters(Arc<dyn Fn() -> Box<dyn Limiter + Send> + Send + Sync>);

impl Limiters {
    /// Limiters as `make` makes them.
    pub fn new<L: Limiter + Send + 'static>(make: impl Fn() -> L + Send + Sync + 'static) -> Self {
        Limiters(Arc::new(move || Box::new(make())))
    }

    /// One of them.
    #[must_use]
    pub fn make(&self) -> Box<dyn Limiter + Send> {
        (self.0)()
    }

    /// Whether both are clones of one value.
    #[must_use]
    pub fn is(&self, other: &Limiters) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<L: Limiter + Clone + Send + Sync + 'static> From<L> for Limiters {
    fn from(limiter: L) -> Self {
        Limiters::new(move || limiter.clone())
    }
}

impl fmt::Debug for Limiters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiters").finish_non_exhaustive()
    }
}

/// client-go's default for controllers: the longer of 5 ms × 2ⁿ up to 1000 s for the key, without
/// jitter, and a reservation in a bucket of 10/s, burst 100, shared by all keys. For those who move
/// over and want the same delays; the defaults here are [`Exponential::default`] and a
/// [`Pacer`](crate::Pacer), which does not let many failing keys push out the retry of one that
/// failed for the first time.
#[must_use]
pub fn client_go() -> MaxOf {
    MaxOf::new()
        .and(Exponential::client_go())
        .and(Bucket::default())
}

/// `share` as one of jitter: from 0 to 1.
fn ratio(share: f64) -> f64 {
    if share.is_nan() {
        0.0
    } else {
        share.clamp(0.0, 1.0)
    }
}

/// `delay` spread evenly over ± `ratio` of itself.
fn jitter(delay: Duration, ratio: f64, chance: f64) -> Duration {
    let factor = 1.0 + ratio * (2.0 * chance.clamp(0.0, 1.0) - 1.0);
    Duration::try_from_secs_f64(delay.as_secs_f64() * factor).unwrap_or(delay)
}

#[cfg(test)]
mod tests;
