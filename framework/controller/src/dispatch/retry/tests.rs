use boatswain_supervision::Clock;

use super::*;

fn failed(fault: Fault) -> Ended {
    Ended::Failed {
        message: "no".into(),
        fault,
    }
}

fn verdict_of(policy: RetryPolicy, ended: &Ended, streak: Streak) -> Verdict {
    Retries::from(policy).verdict(ended, streak, || 0.5, Clock::system().now())
}

fn verdict(ended: &Ended, failures: u16, strikes: u16) -> Verdict {
    let streak = Streak {
        failures,
        strikes,
        ..Streak::default()
    };
    verdict_of(RetryPolicy::default(), ended, streak)
}

fn wait(verdict: Verdict) -> Duration {
    match verdict {
        Verdict::Backoff { delay, .. }
        | Verdict::Again { delay }
        | Verdict::Lost { delay }
        | Verdict::NotReady { delay } => delay,
        other => panic!("expected a wait, got {other:?}"),
    }
}

fn delay(ended: &Ended, failures: u16) -> Duration {
    wait(verdict(ended, failures, 0))
}

/// The delays of the first ten failures in a row, in milliseconds.
fn first_ten(policy: RetryPolicy, ended: &Ended, now: Instant) -> Vec<u128> {
    let retries = Retries::from(policy);
    let delays = (0..10).map(|failures| {
        let streak = Streak {
            failures,
            ..Streak::default()
        };
        wait(retries.verdict(ended, streak, || 0.5, now)).as_millis()
    });
    delays.collect()
}

#[test]
fn each_named_policy_has_the_delays_it_is_named_for() {
    let now = Clock::system().now();
    let (error, panic) = (failed(Fault::Object), Ended::Panicked("boom".into()));
    let doubling = [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000, 10_000];
    assert_eq!(first_ten(RetryPolicy::default(), &error, now), doubling);
    let slowly = [
        1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000, 60_000,
    ];
    assert_eq!(first_ten(RetryPolicy::default(), &panic, now), slowly);
    let client_go = [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560];
    assert_eq!(first_ten(RetryPolicy::client_go(), &error, now), client_go);
    assert_eq!(first_ten(RetryPolicy::client_go(), &panic, now), client_go);
    let policy = || RetryPolicy::fast_slow(Duration::from_millis(50), Duration::from_secs(30), 3);
    let fast_slow = [
        50, 50, 50, 30_000, 30_000, 30_000, 30_000, 30_000, 30_000, 30_000,
    ];
    assert_eq!(first_ten(policy(), &error, now), fast_slow);
    assert_eq!(first_ten(policy(), &panic, now), slowly);
}

#[test]
fn client_gos_bucket_is_one_for_errors_and_crashes_of_all_keys() {
    let now = Clock::system().now();
    let retries = Retries::from(RetryPolicy::client_go());
    let ask = |ended: &Ended| wait(retries.verdict(ended, Streak::default(), || 0.5, now));
    let panic = Ended::Panicked("boom".into());
    for _ in 0..50 {
        assert_eq!(ask(&failed(Fault::Object)), Duration::from_millis(5));
        assert_eq!(ask(&panic), Duration::from_millis(5));
    }
    assert_eq!(ask(&panic), Duration::from_millis(100));
    assert_eq!(ask(&failed(Fault::Object)), Duration::from_millis(200));
}

#[test]
fn jitter_stays_within_its_share() {
    for chance in [0.0, 0.3, 1.0] {
        let streak = Streak {
            failures: 2,
            ..Streak::default()
        };
        let now = Clock::system().now();
        let retries = Retries::from(RetryPolicy::default());
        let verdict = retries.verdict(&failed(Fault::Object), streak, || chance, now);
        let (delay, ms) = (wait(verdict), Duration::from_millis);
        assert!(delay >= ms(320) && delay <= ms(480), "{delay:?}");
    }
}

#[test]
fn only_the_objects_own_fault_parks() {
    let outage = failed(Fault::Infrastructure { retry_after: None });
    assert!(matches!(
        verdict(&outage, 10_000, 10_000),
        Verdict::Backoff { .. }
    ));
    assert!(matches!(
        verdict(&failed(Fault::Conflict), 0, 10_000),
        Verdict::Again { .. }
    ));
    let retry = Ended::Outcome(Outcome::Retry);
    assert!(matches!(
        verdict(&retry, 10_000, 10_000),
        Verdict::NotReady { .. }
    ));
    assert_eq!(
        verdict(&failed(Fault::Object), 15, 15),
        Verdict::Park("no".into())
    );
    assert_eq!(
        verdict(&failed(Fault::Permanent), 0, 0),
        Verdict::Park("no".into())
    );
}

#[test]
fn the_fifteenth_retry_is_the_last_and_the_sixteenth_failure_parks() {
    let retries = Retries::from(RetryPolicy::default());
    let streak = |strikes| Streak {
        strikes,
        failures: strikes,
        ..Streak::default()
    };
    let last: Vec<_> = (0..20).filter(|&n| retries.is_last(streak(n))).collect();
    assert_eq!(last, [15, 16, 17, 18, 19], "15 failures, 15 retries");
    for ended in [failed(Fault::Object), Ended::TimedOut(Duration::ZERO)] {
        assert!(matches!(verdict(&ended, 14, 14), Verdict::Backoff { .. }));
        assert!(matches!(verdict(&ended, 15, 15), Verdict::Park(_)));
    }
    let never = RetryPolicy {
        max_retries: 0,
        ..RetryPolicy::default()
    };
    assert!(Retries::from(never).is_last(Streak::default()));
}

#[test]
fn what_is_not_ready_yet_is_asked_after_by_a_count_of_its_own() {
    let retry = Ended::Outcome(Outcome::Retry);
    assert_eq!(delay(&retry, 9), Duration::from_millis(100));
    let polls = Streak {
        polls: 3,
        ..Streak::default()
    };
    let policy = RetryPolicy::default();
    assert_eq!(
        wait(verdict_of(policy, &retry, polls)),
        Duration::from_millis(800)
    );
}

#[test]
fn a_lost_worker_costs_no_attempt_but_a_moment_until_it_happens_a_third_time() {
    let lost = |losses| {
        let streak = Streak {
            losses,
            ..Streak::default()
        };
        verdict_of(RetryPolicy::default(), &Ended::Aborted, streak)
    };
    assert_eq!(
        [lost(0), lost(1)].map(wait),
        [20, 40].map(Duration::from_millis)
    );
    assert_eq!(
        lost(2),
        Verdict::Backoff {
            delay: Duration::from_secs(1),
            fault: Blame::Object
        },
        "as one that missed its deadline"
    );
}

#[test]
fn retry_after_is_honoured_and_never_for_longer_than_five_minutes() {
    for (asked, waited) in [(7, 7), (300, 300), (86_400, 300)] {
        let asked = Some(Duration::from_secs(asked));
        let throttled = failed(Fault::Infrastructure { retry_after: asked });
        assert_eq!(delay(&throttled, 0), Duration::from_secs(waited));
    }
}

#[test]
fn a_limiter_that_panics_costs_the_default_delay_and_nothing_else() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    struct Broken;
    impl Limiter for Broken {
        fn delay(&mut self, _: Retry) -> Duration {
            std::panic::panic_any(Bomb)
        }
    }
    let policy = RetryPolicy {
        error: Limiters::new(|| Broken),
        ..RetryPolicy::default()
    };
    let retries = Retries::from(policy);
    let now = Clock::system().now();
    for _ in 0..2 {
        let verdict = retries.verdict(&failed(Fault::Object), Streak::default(), || 0.5, now);
        assert_eq!(wait(verdict), Duration::from_millis(100));
    }
}
