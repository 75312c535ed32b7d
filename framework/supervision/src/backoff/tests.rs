use std::time::Duration;

use proptest::prelude::*;

use super::{Backoff, BackoffError};
use crate::random::Entropy;

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

#[test]
fn delays_double_up_to_the_cap() {
    let backoff = Backoff::default();
    let delays: Vec<u128> = (1..=11)
        .map(|streak| backoff.nominal(streak).as_millis())
        .collect();
    assert_eq!(
        delays,
        [
            100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000
        ]
    );
    assert_eq!(backoff.nominal(u32::MAX), Duration::from_secs(30));
}

#[test]
fn none_never_waits_and_never_grows() {
    let backoff = Backoff::none();
    assert_eq!(backoff.delay(1000, &Entropy::seeded(1)), Duration::ZERO);
    assert_eq!(backoff.next_streak(1, Duration::ZERO), 1);
    assert_eq!(backoff.longest(1000), Duration::ZERO);
}

#[test]
fn health_resets_the_streak_and_anything_less_lengthens_it() {
    let backoff = Backoff::default();
    assert_eq!(backoff.next_streak(0, Duration::ZERO), 1);
    assert_eq!(backoff.next_streak(3, millis(59_999)), 4);
    assert_eq!(backoff.next_streak(3, millis(60_000)), 1);
    assert_eq!(backoff.next_streak(u32::MAX, Duration::ZERO), u32::MAX);
}

#[test]
fn health_means_at_least_twice_the_last_delay() {
    let backoff = Backoff::default().with_reset_after(millis(10));
    assert_eq!(backoff.next_streak(1, millis(199)), 2);
    assert_eq!(backoff.next_streak(1, millis(200)), 1);
}

#[test]
fn nonsense_is_refused_with_its_reason() {
    let new = |min, max, factor, jitter| {
        Backoff::new(millis(min), millis(max), factor, jitter).unwrap_err()
    };
    assert_eq!(
        new(2, 1, 2.0, 0.2),
        BackoffError::Bounds {
            min: millis(2),
            max: millis(1)
        }
    );
    assert_eq!(new(1, 2, 0.5, 0.2), BackoffError::Factor(0.5));
    assert!(matches!(new(1, 2, f64::NAN, 0.2), BackoffError::Factor(_)));
    assert_eq!(new(1, 2, 2.0, 1.0), BackoffError::Jitter(1.0));
    assert_eq!(new(1, 2, 2.0, -0.1), BackoffError::Jitter(-0.1));
    assert!(matches!(new(1, 2, 2.0, f64::NAN), BackoffError::Jitter(_)));
    assert!(
        new(2, 1, 2.0, 0.2)
            .to_string()
            .contains("min must not exceed max")
    );
}

prop_compose! {
    fn any_backoff()(min in 0..10_000u64, more in 0..100_000u64, factor in 1.0..5.0f64, jitter in 0.0..0.99f64) -> Backoff {
        Backoff::new(millis(min), millis(min + more), factor, jitter).unwrap()
    }
}

proptest! {
    #[test]
    fn every_delay_follows_the_formula_within_its_jitter(backoff in any_backoff(), streak in 1..100u32, seed: u64) {
        let mut expected = backoff.0.min.as_secs_f64();
        for _ in 1..streak {
            expected = (expected * backoff.0.factor).min(backoff.0.max.as_secs_f64());
        }
        let delay = backoff.delay(streak, &Entropy::seeded(seed)).as_secs_f64();
        let slack = expected * backoff.0.jitter + 1e-6;
        prop_assert!((delay - expected).abs() <= slack, "{delay} is not {expected} ± {slack}");
    }

    #[test]
    fn no_row_of_delays_is_longer_than_the_longest(backoff in any_backoff(), restarts in 0..50u32, seed: u64) {
        let entropy = Entropy::seeded(seed);
        let total: Duration = (1..=restarts).map(|streak| backoff.delay(streak, &entropy)).sum();
        prop_assert!(total <= backoff.longest(restarts) + millis(1));
    }
}

#[test]
fn what_begins_with_no_delay_never_gets_one() {
    let backoff = Backoff::new(Duration::ZERO, Duration::from_secs(30), 2.0, 0.0).unwrap();
    for streak in [1, 2, 1_025, u32::MAX] {
        assert_eq!(backoff.nominal(streak), Duration::ZERO, "{streak}");
    }
}

#[test]
fn the_longest_row_of_restarts_is_reckoned_without_going_through_all_of_them() {
    for factor in [1.0, 1.0 + 1e-12, 2.0] {
        let backoff = Backoff::new(Duration::ZERO, Duration::from_secs(30), factor, 0.0).unwrap();
        assert_eq!(backoff.longest(u32::MAX), Duration::ZERO);
        let (min, max) = (Duration::from_millis(1), Duration::from_secs(3));
        let backoff = Backoff::new(min, max, factor, 0.0).unwrap();
        assert!(backoff.longest(u32::MAX) >= Duration::from_secs(4_294_967));
    }
}
