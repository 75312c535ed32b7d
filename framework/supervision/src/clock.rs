//! The one source of time.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime};

use tokio::time::Sleep;

/// The one source of time: monotonic, boot and wall time, and sleeping.
///
/// Everything that waits or measures takes a `Clock`, so that a test can run hours of backoff in
/// milliseconds and two runs from one seed see the same times.
///
/// [`Clock::system`] is real time. [`Clock::paused`] belongs to a current-thread runtime whose tokio
/// time is paused: it follows that runtime's clock, which jumps to the next timer whenever nothing
/// else is left to do.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    Paused {
        origin: Instant,
        wall_start: SystemTime,
    },
}

impl Clock {
    /// Real time.
    #[must_use]
    pub fn system() -> Clock {
        Clock(Source::System)
    }

    /// Virtual time for a runtime with paused tokio time; wall time starts at `wall_start`, boot time at zero.
    ///
    /// To be created, and read, on the thread of that runtime: other threads have no paused clock and would read the real one.
    #[must_use]
    pub fn paused(wall_start: SystemTime) -> Clock {
        Clock(Source::Paused {
            origin: tokio_now(),
            wall_start,
        })
    }

    pub(crate) fn is_paused(&self) -> bool {
        matches!(self.0, Source::Paused { .. })
    }

    /// Monotonic time, for measuring and for deadlines within this process.
    #[must_use]
    pub fn now(&self) -> Instant {
        tokio_now()
    }

    /// Time since the machine was started, including time spent suspended.
    ///
    /// For promises made to others, such as a lease: [`Clock::now`] stands still while the machine sleeps and would
    /// let an expired lease look alive. On systems without such a clock it is monotonic time since the first call.
    #[must_use]
    pub fn boot(&self) -> Duration {
        match self.0 {
            Source::System => boot_time(),
            Source::Paused { origin, .. } => self.now().saturating_duration_since(origin),
        }
    }

    /// Time of day, for what people and other machines read. It may jump in either direction.
    #[must_use]
    pub fn wall(&self) -> SystemTime {
        match self.0 {
            Source::System => system_wall(),
            Source::Paused { origin, wall_start } => {
                wall_start + self.now().saturating_duration_since(origin)
            }
        }
    }

    /// Waits for `duration`; returns at once for zero, where tokio's own sleep takes a millisecond.
    ///
    /// # Cancellation safety
    /// Dropping the future forgets the wait; nothing is lost.
    ///
    /// # Panics
    /// If polled outside a tokio runtime with time enabled.
    pub async fn sleep(&self, duration: Duration) {
        self.sleep_until(later(self.now(), duration)).await;
    }

    /// Waits until `at`; returns at once if that is not in the future.
    ///
    /// # Cancellation safety
    /// Dropping the future forgets the wait; nothing is lost.
    ///
    /// # Panics
    /// If polled outside a tokio runtime with time enabled.
    pub async fn sleep_until(&self, at: Instant) {
        if at > self.now() {
            tokio_sleep(at).await;
        }
    }
}

/// `now` plus `duration`; decades ahead, where the sum is beyond what the clock can count.
pub(crate) fn later(now: Instant, duration: Duration) -> Instant {
    const DECADES: Duration = Duration::from_secs(30 * 365 * 24 * 3600);
    now.checked_add(duration).unwrap_or_else(|| now + DECADES)
}

/// A wait whose end can be moved: one timer for any number of due times.
#[derive(Default)]
pub(crate) struct Alarm {
    sleep: Option<Pin<Box<Sleep>>>,
    set_for: Option<Instant>,
}

impl Alarm {
    /// Ready once `due` has come. Wakes the task then; with `due` absent it never does.
    pub(crate) fn poll(&mut self, due: Option<Instant>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(due) = due else {
            *self = Alarm::default();
            return Poll::Pending;
        };
        if self.set_for != Some(due) {
            self.set_for = Some(due);
            match &mut self.sleep {
                Some(sleep) => sleep.as_mut().reset(due.into()),
                None => self.sleep = Some(Box::pin(tokio_sleep(due))),
            }
        }
        match &mut self.sleep {
            Some(sleep) => sleep.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }
}

// tokio's clock is the real one unless this thread's runtime is paused, so `now` and `sleep` always agree.
#[allow(
    clippy::disallowed_methods,
    reason = "the one place that reads the clocks"
)]
fn tokio_now() -> Instant {
    tokio::time::Instant::now().into_std()
}

#[allow(
    clippy::disallowed_methods,
    reason = "the one place that reads the clocks"
)]
fn system_wall() -> SystemTime {
    SystemTime::now()
}

#[allow(clippy::disallowed_methods, reason = "the one place that sleeps")]
fn tokio_sleep(at: Instant) -> Sleep {
    tokio::time::sleep_until(at.into())
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn boot_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    // the kernel never returns negative fields for this clock
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn boot_time() -> Duration {
    static FIRST: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    tokio_now().saturating_duration_since(*FIRST.get_or_init(tokio_now))
}

#[cfg(test)]
mod tests;
