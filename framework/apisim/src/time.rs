//! Where the server gets its time from: the only place that touches a clock or a timer.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use jiff::Timestamp;

/// A clock that can be read and waited on.
///
/// The default reads the system's clock and waits on tokio's timer, so that under tokio's paused clock waiting takes
/// no real time. A test that wants repeatable timestamps as well passes its own `now`.
#[derive(Clone)]
pub struct Time {
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    sleep: Arc<dyn Fn(Duration) -> BoxFuture<'static, ()> + Send + Sync>,
}

impl std::fmt::Debug for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Time").finish_non_exhaustive()
    }
}

impl Default for Time {
    fn default() -> Self {
        Self {
            now: Arc::new(wall),
            sleep: Arc::new(|d| Box::pin(timer(d))),
        }
    }
}

impl Time {
    /// Reads the time from `now` instead of the system's clock.
    #[must_use]
    pub fn with_now(mut self, now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.now = Arc::new(now);
        self
    }

    /// Waits with `sleep` instead of tokio's timer.
    #[must_use]
    pub fn with_sleep(
        mut self,
        sleep: impl Fn(Duration) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        self.sleep = Arc::new(sleep);
        self
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.now)()
    }

    pub(crate) fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        (self.sleep)(duration)
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "the default of an injected clock; this crate imports none that could be passed in"
)]
fn wall() -> Timestamp {
    Timestamp::now()
}

#[allow(
    clippy::disallowed_methods,
    reason = "the default of an injected timer; this crate imports none that could be passed in"
)]
fn timer(duration: Duration) -> tokio::time::Sleep {
    tokio::time::sleep(duration)
}

/// A timestamp as Kubernetes writes it: UTC, whole seconds.
pub(crate) fn seconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
