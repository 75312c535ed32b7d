//! What follows from how a run ended: done, again, later, parked.

use std::{
    fmt::Display,
    num::NonZeroU32,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use boatswain_workqueue::{
    Fault as Blame, Streak, Verdict,
    limit::{Bucket, Exponential, FastSlow, Limiter, Limiters, Retry, client_go},
};

use crate::{
    reconcile::{Fault, Outcome},
    sync::lock,
    trigger::guarded,
};

/// Runs of a key that may be lost, since it last succeeded, before each further one counts against it.
const LOSSES: u16 = 2;
/// The jitter of delays, so that keys that failed together do not march in step.
const JITTER: f64 = 0.2;

/// How keys of a controller that fail are retried.
///
/// Delays are chosen by [`Limiters`]: those of [`limit`](crate::limit), combined by [`MaxOf`](crate::limit::MaxOf), or of your own. A controller makes
/// one limiter of each, for all of its keys; fields set to clones of one value share it. A limiter of your own is asked by one shard at a time, and the
/// others wait for it: it computes and does not block.
///
/// ```
/// # use std::time::Duration;
/// # use boatswain::{Controller, RetryPolicy, limit::Exponential};
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// let (ms, s) = (Duration::from_millis, Duration::from_secs);
/// let patient = RetryPolicy {
///     error: Exponential::new(s(1), s(300)).with_jitter(0.2).into(),
///     max_retries: 30,
///     ..RetryPolicy::default()
/// };
/// let patient = Controller::<ConfigMap>::named("patient").retry(patient);
/// let moved_over = Controller::<ConfigMap>::named("moved-over").retry(RetryPolicy::client_go());
/// let hasty = Controller::<ConfigMap>::named("hasty").retry(RetryPolicy::fast_slow(ms(50), s(30), 5));
/// ```
#[derive(Clone, Debug)]
pub struct RetryPolicy {
    /// The delays after errors and `Retry`: 100 ms doubling to 10 s, ± 20 %, by default.
    pub error: Limiters,
    /// The delays after a panic or a missed deadline: 1 s doubling to 60 s, ± 20 %, by default.
    pub crash: Limiters,
    /// The waits after a write conflict, and after a run that was lost: 20 ms doubling to 1 s, ± 50 %, by default.
    pub conflict: Limiters,
    /// How many retries of all keys together are let through: 10 a second, burst 100, by default. Those after faults of the infrastructure are not counted.
    pub pace: Pace,
    /// A key that has failed by its object's fault is retried so often in a row, and parked when the last of these retries fails, too: 15 by
    /// default, which are 16 failures.
    pub max_retries: u32,
    /// A parked key is tried again after this time even if nothing changed: 30 minutes by default. Looked for once a minute.
    pub unpark_after: Duration,
}

/// How many retries of all keys of a controller are let through in a second.
///
/// A key whose own delay is over stands in line; tokens go in turn to the one with the fewest failures and to the one that has stood longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// So many a second, and a burst at first.
    Bucket {
        /// In the long run.
        per_second: NonZeroU32,
        /// At most at once.
        burst: NonZeroU32,
    },
    /// All whose own delay is over.
    Unpaced,
}

impl Default for Pace {
    fn default() -> Self {
        let some = |n| NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
        Self::Bucket {
            per_second: some(10),
            burst: some(100),
        }
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        let (ms, s) = (Duration::from_millis, Duration::from_secs);
        Self {
            error: Exponential::default().into(),
            crash: Exponential::new(s(1), s(60)).with_jitter(JITTER).into(),
            conflict: Exponential::new(ms(20), s(1)).with_jitter(0.5).into(),
            pace: Pace::default(),
            max_retries: 15,
            unpark_after: s(30 * 60),
        }
    }
}

impl RetryPolicy {
    /// The delays of client-go's controllers, for those who move over: 5 ms doubling to 1000 s for each key, without jitter, or a reservation in a
    /// bucket of 10 a second, burst 100, whichever is longer; after panics and missed deadlines, too. Keys are parked all the same.
    #[must_use]
    pub fn client_go() -> Self {
        let all = Limiters::new(client_go);
        Self {
            error: all.clone(),
            crash: all,
            pace: Pace::Unpaced,
            ..Self::default()
        }
    }

    /// Retries the first `tries` failures in a row after `fast`, and all later ones after `slow`; both ± 20 %.
    #[must_use]
    pub fn fast_slow(fast: Duration, slow: Duration, tries: u32) -> Self {
        Self {
            error: FastSlow::new(fast, slow, tries).with_jitter(JITTER).into(),
            ..Self::default()
        }
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ended {
    Outcome(Outcome),
    Failed {
        message: String,
        fault: Fault,
    },
    Panicked(String),
    TimedOut(Duration),
    /// The object does not decode to the controller's type; only a change can help.
    Undecodable(String),
    /// A stop or a pause came before the reconciler was called.
    NotBegun,
    /// The worker was stopped or lost before it could say how the run ended.
    Aborted,
}

/// A retry policy at work; it outlives the actors that ask it, so that what its limiters and its bucket have spent stays spent.
pub(crate) struct Retries {
    error: Shared,
    crash: Shared,
    conflict: Shared,
    bucket: Option<Bucket>,
    max_retries: u32,
    pub(crate) unpark_after: Duration,
}

/// One limiter for all keys of a controller. Only failures ask it.
type Shared = Arc<Mutex<Box<dyn Limiter + Send>>>;

impl From<RetryPolicy> for Retries {
    fn from(policy: RetryPolicy) -> Self {
        let make = |limiters: &Limiters| Arc::new(Mutex::new(limiters.make()));
        let error = make(&policy.error);
        let crash = if policy.crash.is(&policy.error) {
            error.clone()
        } else {
            make(&policy.crash)
        };
        let conflict = if policy.conflict.is(&policy.error) {
            error.clone()
        } else if policy.conflict.is(&policy.crash) {
            crash.clone()
        } else {
            make(&policy.conflict)
        };
        Self {
            error,
            crash,
            conflict,
            bucket: match policy.pace {
                Pace::Bucket { per_second, burst } => Some(Bucket::new(per_second, burst)),
                Pace::Unpaced => None,
            },
            max_retries: policy.max_retries,
            unpark_after: policy.unpark_after,
        }
    }
}

impl Retries {
    /// What paces retries; clones share the tokens.
    pub(crate) fn bucket(&self) -> Option<Bucket> {
        self.bucket.clone()
    }

    /// Whether a key that fails by its object's fault in its next run is parked.
    pub(crate) fn is_last(&self, streak: Streak) -> bool {
        u32::from(streak.strikes) >= self.max_retries
    }

    /// What becomes of a key that ended a run so, having done as `streak` says before it; `chance` draws the number from 0 to 1 that decides the
    /// jitter.
    pub(crate) fn verdict(
        &self,
        ended: &Ended,
        streak: Streak,
        chance: impl Fn() -> f64,
        now: Instant,
    ) -> Verdict {
        let after = |limiter: &Shared, before: u16| {
            let retry = Retry {
                failures: u32::from(before) + 1,
                chance: chance(),
                now,
            };
            delay(limiter, retry)
        };
        let strike = |limiter: &Shared, reason: &dyn Display| {
            if self.is_last(streak) {
                return Verdict::Park(reason.to_string());
            }
            Verdict::Backoff {
                delay: after(limiter, streak.failures),
                fault: Blame::Object,
            }
        };
        match ended {
            Ended::Outcome(Outcome::Done) | Ended::Undecodable(_) => Verdict::Done,
            Ended::Outcome(Outcome::RequeueAfter(wait)) => Verdict::RequeueAfter(*wait),
            Ended::Outcome(Outcome::Retry) => Verdict::NotReady {
                delay: after(&self.error, streak.polls),
            },
            Ended::Outcome(Outcome::GiveUp(reason)) => Verdict::Park(reason.clone()),
            Ended::Failed {
                message,
                fault: Fault::Permanent,
            } => Verdict::Park(message.clone()),
            Ended::Failed {
                message,
                fault: Fault::Object,
            } => strike(&self.error, message),
            Ended::Failed {
                fault: Fault::Conflict,
                ..
            } => Verdict::Again {
                delay: after(&self.conflict, streak.conflicts),
            },
            Ended::Failed {
                fault: Fault::Infrastructure { retry_after },
                ..
            } => {
                let asked = retry_after.unwrap_or_default().min(Fault::LONGEST_WAIT);
                Verdict::Backoff {
                    delay: after(&self.error, streak.failures).max(asked),
                    fault: Blame::Infrastructure,
                }
            }
            // without a wait the two would take turns as fast as the thread allows
            Ended::NotBegun | Ended::Aborted if streak.losses < LOSSES => Verdict::Lost {
                delay: after(&self.conflict, streak.losses),
            },
            // a run that costs its worker its life each time is as bad as one that never ends
            Ended::NotBegun | Ended::Aborted | Ended::Panicked(_) | Ended::TimedOut(_) => {
                strike(&self.crash, ended)
            }
        }
    }
}

/// What `limiter` says; one that panics says what the default one would.
fn delay(limiter: &Shared, retry: Retry) -> Duration {
    let asked = guarded(|| lock(limiter).delay(retry));
    asked.unwrap_or_else(|panicked| {
        tracing::error!("a limiter failed: {panicked}; the default delay is taken");
        Exponential::default().delay(retry)
    })
}

#[cfg(test)]
mod tests;
