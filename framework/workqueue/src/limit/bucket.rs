//! A shared token bucket.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};

use super::{Limiter, Retry};

/// A token bucket: so many per second, and a burst when it is full. governor does the sums; the
/// time is told, never read.
///
/// [`take`](Bucket::take) spends a token if there is one and promises nothing if not;
/// [`reserve`](Bucket::reserve), and so the [`Limiter`], spends tokens of the future, in the order
/// of asking, as client-go's bucket does.
///
/// Default: 10 a second, burst 100. Starts full. Clones share the tokens, so that these outlive
/// whoever takes them.
#[derive(Clone)]
pub struct Bucket {
    sums: Arc<RateLimiter<NotKeyed, InMemoryState, Told, NoOpMiddleware<Nanos>>>,
    told: Told,
    /// The first time told, from which governor's nanoseconds count.
    origin: Arc<OnceLock<Instant>>,
}

/// governor's clock: shows what it was told last. Atomic because the calculator has a copy and both
/// may cross threads together.
#[derive(Clone, Debug, Default)]
struct Told(Arc<AtomicU64>);

impl Clock for Told {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        Nanos::new(self.0.load(Ordering::Relaxed))
    }
}

impl Bucket {
    /// `per_second` tokens a second, at most `burst` at once.
    #[must_use]
    pub fn new(per_second: NonZeroU32, burst: NonZeroU32) -> Self {
        let told = Told::default();
        let quota = Quota::per_second(per_second).allow_burst(burst);
        Bucket {
            sums: Arc::new(RateLimiter::direct_with_clock(quota, told.clone())),
            told,
            origin: Arc::default(),
        }
    }

    /// Spends a token.
    ///
    /// # Errors
    ///
    /// How long until there is one, if nobody else takes it; nothing was spent.
    pub fn take(&mut self, now: Instant) -> Result<(), Duration> {
        let now = self.nanos(now);
        self.take_at(now)
            .map_err(|at| Duration::from_nanos(at - now))
    }

    /// Spends the next token nobody has spent or reserved yet, and says how long until it is there.
    pub fn reserve(&mut self, now: Instant) -> Duration {
        let now = self.nanos(now);
        match self.take_at(now) {
            Ok(()) => Duration::ZERO,
            Err(at) => {
                // At the time it just named the calculator has a token, and it keeps no time but
                // the one told.
                let _spent = self.take_at(at);
                Duration::from_nanos(at - now)
            }
        }
    }

    fn take_at(&self, nanos: u64) -> Result<(), u64> {
        self.told.0.store(nanos, Ordering::Relaxed);
        self.sums
            .check()
            .map_err(|refusal| refusal.earliest_possible().as_u64().max(nanos))
    }

    fn nanos(&self, now: Instant) -> u64 {
        let origin = *self.origin.get_or_init(|| now);
        u64::try_from(now.saturating_duration_since(origin).as_nanos()).unwrap_or(u64::MAX)
    }
}

impl Default for Bucket {
    fn default() -> Self {
        const TEN: NonZeroU32 = NonZeroU32::MIN.saturating_add(9);
        const HUNDRED: NonZeroU32 = NonZeroU32::MIN.saturating_add(99);
        Bucket::new(TEN, HUNDRED)
    }
}

impl Limiter for Bucket {
    fn delay(&mut self, retry: Retry) -> Duration {
        self.reserve(retry.now)
    }
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bucket")
            .field("told", &self.told)
            .finish_non_exhaustive()
    }
}
