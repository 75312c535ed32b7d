//! For tests of supervised actors: one thread, virtual time, a fixed seed.

use std::future::Future;
use std::time::{Duration, SystemTime};

use crate::clock::Clock;
use crate::random::Entropy;
use crate::tree::TreeOptions;

pub(crate) use census::Brood;
pub use census::{Census, assert_clean};

mod census;

/// Runs a test body inside an actix system on this thread, with paused tokio time.
///
/// Time jumps to the next timer whenever nothing else is left to do, so minutes of backoff take no time and never depend on the machine.
/// The wall clock starts at 2024-01-01T00:00:00Z. The same seed gives the same run.
///
/// There is no watchdog, because its rounds would be another timer for time to jump to: ask for one by `TreeOptions { watchdog: Some(patience), ..options }`.
///
/// Real sockets and other threads do not hold virtual time back: keep them out of the body.
///
/// No tree that the body starts may outlive it: stop it or drop it. What is left half a minute later, in virtual time, was leaked.
///
/// # Panics
/// If the runtime cannot be created, the body panics, or something of a tree is left.
#[allow(clippy::expect_used, reason = "a test that cannot begin has failed")]
pub fn run<F: Future>(seed: u64, body: impl FnOnce(TreeOptions) -> F) -> F::Output {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a current-thread runtime needs no resources that could be missing")
    };
    actix::System::with_tokio_rt(runtime).block_on(async move {
        let wall_start = SystemTime::UNIX_EPOCH + Duration::from_secs(1_704_067_200);
        let clock = Clock::paused(wall_start);
        let brood = Brood::gather();
        let output = body(TreeOptions {
            clock: clock.clone(),
            entropy: Entropy::seeded(seed),
            watchdog: None,
        })
        .await;
        brood.assert_gone(&clock).await;
        output
    })
}

#[cfg(test)]
mod tests;
