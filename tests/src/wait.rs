//! Waiting for conditions instead of guessing times.

use std::{fmt::Debug, future::Future, time::Duration};

use boatswain::Clock;

/// Longer than anything may take on a slow machine; a test that reaches it has failed.
const PATIENCE: Duration = Duration::from_secs(120);
/// Longer than one look may take: a client of the tests has been seen to wait for ever, without a connection, after its server was killed and came back.
const LOOK: Duration = Duration::from_secs(30);

/// Polls `look` until it gives `Ok`, and returns that.
///
/// # Panics
///
/// When it still gives an error after two minutes; the message holds the last one.
pub async fn eventually<T, E, F, Fut>(what: &str, mut look: F) -> T
where
    E: Debug,
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    let clock = Clock::system();
    let end = clock.now() + PATIENCE;
    loop {
        let looked = tokio::select! {
            looked = look() => Some(looked),
            () = clock.sleep(LOOK) => None,
        };
        match looked {
            Some(Ok(found)) => return found,
            Some(Err(missing)) if clock.now() >= end => {
                panic!("not within {PATIENCE:?}: {what}: {missing:?}")
            }
            None if clock.now() >= end => {
                panic!("not within {PATIENCE:?}: {what}: it cannot be looked at")
            }
            _ => clock.sleep(Duration::from_millis(25)).await,
        }
    }
}

/// Polls `look` for `time` and fails as soon as it finds something.
///
/// Only for the absence of an effect that is possible at any moment; whether it is seen late depends on no speed.
///
/// # Panics
///
/// When `look` finds something.
pub async fn never_within<T: Debug, F, Fut>(what: &str, time: Duration, mut look: F)
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Option<T>>,
{
    let clock = Clock::system();
    let end = clock.now() + time;
    while clock.now() < end {
        if let Some(found) = look().await {
            panic!("unexpected: {what}: {found:?}");
        }
        clock.sleep(Duration::from_millis(50)).await;
    }
}
