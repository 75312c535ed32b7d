//! What follows from how a run ended: done, again, later, parked; pure.

use std::time::{Duration, Instant};

use boatswain_workqueue::{
    Fault as Blame, Streak, Verdict,
    limit::{Exponential, Limiter as _, Retry},
};

use crate::reconcile::{Fault, Outcome};

/// How keys of a controller that fail are retried.
#[derive(Clone, Debug)]
pub struct RetryPolicy {
    /// The delays after errors and `Retry`: 100 ms doubling to 10 s, ± 20 %, by default.
    pub error: Exponential,
    /// The delays after a panic or a missed deadline: 1 s doubling to 60 s, ± 20 %, by default.
    pub crash: Exponential,
    /// After so many failed attempts in a row whose fault was the object's, its key is parked: 15 by default.
    pub max_retries: u32,
    /// A parked key is tried again after this time even if nothing changed: 30 minutes by default.
    pub unpark_after: Duration,
    /// The waits after a write conflict: 20 ms doubling to 1 s, ± 50 %, by default.
    pub conflict: Exponential,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        let (ms, s) = (Duration::from_millis, Duration::from_secs);
        Self {
            error: Exponential::default(),
            crash: Exponential::new(s(1), s(60)).with_jitter(0.2),
            max_retries: 15,
            unpark_after: s(30 * 60),
            conflict: Exponential::new(ms(20), s(1)).with_jitter(0.5),
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
    /// The worker was stopped or lost before it could say how the run ended.
    Aborted,
}

impl RetryPolicy {
    /// What becomes of a key that ended a run so, having done as `streak` says before it; `chance` from 0 to 1 decides the jitter.
    pub(crate) fn verdict(
        &self,
        ended: &Ended,
        streak: Streak,
        chance: f64,
        now: Instant,
    ) -> Verdict {
        let after = |delays: &Exponential, failures: u32| {
            delays.clone().delay(Retry {
                failures: failures.saturating_add(1),
                chance,
                now,
            })
        };
        let backoff = |delays: &Exponential, fault| Verdict::Backoff {
            delay: after(delays, streak.failures),
            fault,
        };
        let strike = |delays: &Exponential, reason: &dyn std::fmt::Display| {
            if streak.strikes >= self.max_retries {
                Verdict::Park(reason.to_string())
            } else {
                backoff(delays, Blame::Object)
            }
        };
        match ended {
            Ended::Outcome(Outcome::Done) | Ended::Undecodable(_) => Verdict::Done,
            Ended::Outcome(Outcome::RequeueAfter(wait)) => Verdict::RequeueAfter(*wait),
            // "not ready yet" is nobody's fault: it never parks
            Ended::Outcome(Outcome::Retry) => backoff(&self.error, Blame::Infrastructure),
            Ended::Outcome(Outcome::GiveUp(reason)) => Verdict::Park(reason.clone()),
            Ended::Failed {
                message,
                fault: Fault::Permanent,
            } => Verdict::Park(message.clone()),
            Ended::Failed {
                message,
                fault: Fault::Object,
            } => strike(&self.error, message),
            // a worker that was lost may be lost again: without a wait the two would take turns as fast as the thread allows
            Ended::Aborted
            | Ended::Failed {
                fault: Fault::Conflict,
                ..
            } => Verdict::Again {
                delay: after(&self.conflict, streak.conflicts),
            },
            Ended::Failed {
                fault: Fault::Infrastructure { retry_after },
                ..
            } => {
                let delay =
                    after(&self.error, streak.failures).max(retry_after.unwrap_or_default());
                Verdict::Backoff {
                    delay,
                    fault: Blame::Infrastructure,
                }
            }
            Ended::Panicked(_) | Ended::TimedOut(_) => strike(&self.crash, ended),
        }
    }
}

#[cfg(test)]
mod tests {
    use boatswain_supervision::Clock;

    use super::*;

    fn failed(fault: Fault) -> Ended {
        Ended::Failed {
            message: "no".into(),
            fault,
        }
    }

    fn verdict(ended: &Ended, failures: u32, strikes: u32, chance: f64) -> Verdict {
        let streak = Streak {
            failures,
            strikes,
            conflicts: 0,
        };
        RetryPolicy::default().verdict(ended, streak, chance, Clock::system().now())
    }

    fn delay(ended: &Ended, failures: u32, chance: f64) -> Duration {
        match verdict(ended, failures, 0, chance) {
            Verdict::Backoff { delay, .. } | Verdict::Again { delay } => delay,
            other => panic!("expected a wait, got {other:?}"),
        }
    }

    #[test]
    fn delays_double_from_the_base_to_the_cap() {
        let error = failed(Fault::Object);
        assert_eq!(delay(&error, 0, 0.5), Duration::from_millis(100));
        assert_eq!(delay(&error, 3, 0.5), Duration::from_millis(800));
        assert_eq!(delay(&error, 14, 0.5), Duration::from_secs(10));
        assert_eq!(
            delay(&Ended::Panicked("boom".into()), 0, 0.5),
            Duration::from_secs(1)
        );
    }

    #[test]
    fn jitter_stays_within_its_share() {
        for chance in [0.0, 0.3, 1.0] {
            let delay = delay(&failed(Fault::Object), 2, chance);
            assert!(
                delay >= Duration::from_millis(320) && delay <= Duration::from_millis(480),
                "{delay:?}"
            );
        }
    }

    #[test]
    fn only_the_objects_own_fault_parks() {
        let outage = failed(Fault::Infrastructure { retry_after: None });
        assert!(matches!(
            verdict(&outage, 10_000, 10_000, 0.5),
            Verdict::Backoff { .. }
        ));
        assert!(matches!(
            verdict(&failed(Fault::Conflict), 0, 10_000, 0.5),
            Verdict::Again { .. }
        ));
        let retry = Ended::Outcome(Outcome::Retry);
        assert!(matches!(
            verdict(&retry, 10_000, 10_000, 0.5),
            Verdict::Backoff { .. }
        ));
        assert_eq!(
            verdict(&failed(Fault::Object), 15, 15, 0.5),
            Verdict::Park("no".into())
        );
        assert_eq!(
            verdict(&failed(Fault::Permanent), 0, 0, 0.5),
            Verdict::Park("no".into())
        );
    }

    #[test]
    fn a_lost_worker_costs_no_attempt_but_a_moment() {
        let Verdict::Again { delay } = verdict(&Ended::Aborted, 0, 0, 0.5) else {
            panic!("it is no failure of the key")
        };
        assert!(!delay.is_zero());
    }

    #[test]
    fn retry_after_is_honoured() {
        let asked = Some(Duration::from_secs(7));
        assert_eq!(
            delay(
                &failed(Fault::Infrastructure { retry_after: asked }),
                0,
                0.5
            ),
            Duration::from_secs(7)
        );
    }
}
