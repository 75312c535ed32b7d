use std::num::NonZeroU32;

use proptest::prelude::*;

use super::*;
use crate::origin;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The `failures`-th failure in a row, undisturbed by chance.
fn nth(failures: u32) -> Retry {
    Retry {
        failures,
        chance: 0.5,
        now: origin(),
    }
}

fn small(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("the test asks for more than nothing")
}

#[test]
fn the_default_doubles_from_100_ms_to_10_s() {
    let mut limiter = Exponential::default();
    let delays: Vec<_> = (1..=9).map(|n| limiter.delay(nth(n)).as_millis()).collect();
    assert_eq!(
        delays,
        [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]
    );
}

#[test]
fn client_go_doubles_from_5_ms_to_1000_s() {
    let mut limiter = Exponential::client_go();
    let delays: Vec<_> = [1, 2, 3, 18, 19, 20]
        .map(|n| limiter.delay(nth(n)).as_millis())
        .into();
    assert_eq!(delays, [5, 10, 20, 655_360, 1_000_000, 1_000_000]);
}

#[test]
fn no_count_of_failures_and_no_length_of_delay_overflows() {
    for failures in [0, 1, 31, 32, 33, 34, u32::MAX] {
        assert!(Exponential::default().with_jitter(0.0).delay(nth(failures)) <= ms(10_000));
        let mut longest = Exponential::new(Duration::MAX, Duration::MAX).with_jitter(1.0);
        assert!(
            longest.delay(Retry {
                chance: 1.0,
                ..nth(failures)
            }) >= ms(10_000)
        );
    }
}

#[test]
fn fast_tries_come_before_slow_ones() {
    let mut limiter = FastSlow::new(ms(5), ms(10_000), 3);
    let delays: Vec<_> = (1..=5).map(|n| limiter.delay(nth(n)).as_millis()).collect();
    assert_eq!(delays, [5, 5, 5, 10_000, 10_000]);
}

#[test]
fn the_longest_delay_counts_and_none_is_none() {
    let mut limiter = MaxOf::new()
        .and(FastSlow::new(ms(5), ms(70), 1))
        .and(Exponential::new(ms(20), ms(1000)));
    assert_eq!(
        [1, 2, 3, 4].map(|n| limiter.delay(nth(n)).as_millis()),
        [20, 70, 80, 160]
    );
    assert_eq!(MaxOf::new().delay(nth(5)), Duration::ZERO);
}

#[test]
fn a_bucket_gives_its_burst_and_then_its_rate() {
    let now = origin();
    let mut bucket = Bucket::default();
    assert!((0..100).all(|_| bucket.take(now).is_ok()));
    assert_eq!(bucket.take(now), Err(ms(100)));
    assert_eq!(bucket.take(now), Err(ms(100)), "a refusal reserves nothing");
    assert_eq!(bucket.take(now + ms(99)), Err(ms(1)));
    assert_eq!(bucket.take(now + ms(100)), Ok(()));
    assert_eq!(bucket.take(now + ms(100)), Err(ms(100)));
}

#[test]
fn reservations_queue_up_behind_each_other() {
    let now = origin();
    let mut bucket = Bucket::new(small(10), small(2));
    let waits: Vec<_> = (0..5).map(|_| bucket.reserve(now).as_millis()).collect();
    assert_eq!(waits, [0, 0, 100, 200, 300]);
    assert_eq!(
        bucket.reserve(now + ms(1000)),
        Duration::ZERO,
        "what was reserved is spent, the rest has refilled"
    );
}

#[test]
fn a_bucket_survives_a_clock_that_goes_back() {
    let now = origin() + ms(1000);
    let mut bucket = Bucket::new(small(10), small(1));
    assert_eq!(bucket.take(now), Ok(()));
    assert_eq!(bucket.take(now - ms(500)), Err(ms(100)));
}

#[test]
fn client_gos_default_takes_the_longer_of_key_and_bucket() {
    let now = origin();
    let mut limiter = client_go();
    let burst: Vec<_> = (0..100)
        .map(|_| limiter.delay(Retry { now, ..nth(1) }))
        .collect();
    assert!(burst.iter().all(|&delay| delay == ms(5)));
    assert_eq!(limiter.delay(Retry { now, ..nth(1) }), ms(100));
    assert_eq!(limiter.delay(Retry { now, ..nth(10) }), ms(2560));
}

proptest! {
    #[test]
    fn jitter_stays_within_its_ratio(failures in 1_u32..40, chance in 0.0..=1.0_f64, ratio in 0.0..=1.0_f64) {
        let plain = Exponential::default().with_jitter(0.0).delay(nth(failures)).as_secs_f64();
        let delay = Exponential::default().with_jitter(ratio).delay(Retry { chance, ..nth(failures) }).as_secs_f64();
        prop_assert!((delay - plain).abs() <= plain * ratio + 1e-9, "{delay} is too far from {plain}");
    }

    #[test]
    fn the_same_chance_gives_the_same_delay_and_more_chance_a_longer_one(failures in 1_u32..40, chance in 0.0..0.99_f64) {
        let delay = |chance| Exponential::default().delay(Retry { chance, ..nth(failures) });
        prop_assert_eq!(delay(chance), delay(chance));
        prop_assert!(delay(chance) < delay(chance + 0.01));
    }

    #[test]
    fn no_span_of_time_sees_more_tokens_than_burst_and_rate_allow(
        gaps in prop::collection::vec(0_u64..300, 1..200), rate in 1_u32..50, burst in 1_u32..20
    ) {
        let start = origin();
        let mut bucket = Bucket::new(small(rate), small(burst));
        let mut now = start;
        let mut taken: Vec<Instant> = Vec::new();
        for gap in gaps {
            now += ms(gap);
            match bucket.take(now) {
                Ok(()) => taken.push(now),
                Err(wait) => {
                    now += wait;
                    prop_assert_eq!(bucket.take(now), Ok(()), "the wait it named was too short");
                    taken.push(now);
                }
            }
        }
        for (index, &from) in taken.iter().enumerate() {
            for (more, &to) in taken[index..].iter().enumerate() {
                let allowed = f64::from(burst) + (to - from).as_secs_f64() * f64::from(rate);
                prop_assert!(more as f64 + 1.0 <= allowed + 1e-6);
            }
        }
    }
}
