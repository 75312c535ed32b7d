//! Until when a leader may write, for everybody who writes in its name.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use boatswain_supervision::Clock;

/// Tells whether this process may still write as a leader: one atomic that the elector writes, and every fenced client reads last of all.
///
/// It is open from a successful claim until nine tenths of the lease's duration after the *sending* of the last successful renewal, by the clock that
/// counts suspended time. Others count the duration from when they saw that renewal, which is later.
#[derive(Clone, Default)]
pub(crate) struct Fence(Arc<AtomicU64>);

/// The lease may belong to another by now: nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not sent: this process does not hold the lease any more, and another may")]
pub struct Fenced;

impl Fence {
    /// How much longer it stays open.
    pub(crate) fn check(&self, now: Duration) -> Result<Duration, Fenced> {
        let until = Duration::from_nanos(self.0.load(SeqCst));
        match until.checked_sub(now) {
            Some(left) if !left.is_zero() => Ok(left),
            _ => Err(Fenced),
        }
    }

    /// For connections, which ask before every single write.
    pub(crate) fn gate(&self, clock: Clock) -> boatswain_cache::Gate {
        let fence = self.clone();
        Arc::new(move || fence.check(clock.boot()).is_ok())
    }

    /// Opens it until this moment of the boot clock.
    pub(crate) fn open(&self, until: Duration) {
        let until = u64::try_from(until.as_nanos()).unwrap_or(u64::MAX);
        self.0.store(until, SeqCst);
    }

    pub(super) fn close(&self) {
        self.0.store(0, SeqCst);
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let until = Duration::from_nanos(self.0.load(SeqCst));
        f.debug_tuple("Fence").field(&until).finish()
    }
}
