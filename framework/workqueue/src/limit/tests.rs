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
fn clones_of_a_bucket_share_its_tokens() {
    let now = origin();
    let mut one = Bucket::new(small(10), small(1));
    let mut other = one.clone();
    assert_eq!(one.take(now + ms(500)), Ok(()));
    assert_eq!(other.take(now + ms(500)), Err(ms(100)));
    drop(one);
    assert_eq!(other.take(now + ms(550)), Err(ms(50)));
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
        let steady = FastSlow::new(ms(100), ms(100), 3).with_jitter(ratio).delay(Retry { chance, ..nth(failures) }).as_secs_f64();
        prop_assert!((steady - 0.1).abs() <= 0.1 * ratio + 1e-9, "{steady} is too far from a tenth");
    }

    #[test]
    fn the_same_chance_gives_the_same_delay_and_more_chance_a_longer_one(failures in 1_u32..40, chance in 0.0..0.99_f64) {
        let delay = |chance| Exponential::default().delay(Retry { chance, ..nth(failures) });
        prop_assert_eq!(delay(chance), delay(chance));
        prop_assert!(delay(chance) < delay(chance + 0.01));
    }

    /// Counted out: a list of so many fast delays and slow ones ever after, from its start again at
    /// each success.
    #[test]
    fn fast_and_slow_delays_are_those_of_a_list_read_from_its_start_after_each_success(
        fast in 0_u64..100, slow in 0_u64..100, tries in 0_u32..5, fails in prop::collection::vec(any::<bool>(), 1..60)
    ) {
        let mut limiter = FastSlow::new(ms(fast), ms(slow), tries);
        let list = || std::iter::repeat_n(ms(fast), tries as usize).chain(std::iter::repeat(ms(slow)));
        let (mut rest, mut failures): (Box<dyn Iterator<Item = Duration>>, u32) = (Box::new(list()), 0);
        for fails in fails {
            if fails {
                failures += 1;
                prop_assert_eq!(Some(limiter.delay(nth(failures))), rest.next());
            } else {
                (rest, failures) = (Box::new(list()), 0);
            }
        }
    }

    /// Against limiters asked one by one, buckets among them, which spend something on each answer.
    #[test]
    fn the_longest_of_any_limiters_is_the_longest_of_their_own_answers(
        exponentials in prop::collection::vec((1_u64..1000, 1_u64..100_000, 0.0..1.0_f64), 0..4),
        fast_slow in (0_u64..5000, 0_u64..5000, 0_u32..6),
        bucket in prop::option::of((1_u32..20, 1_u32..5)),
        asks in prop::collection::vec((1_u32..20, 0.0..=1.0_f64, 0_u64..300), 1..40),
    ) {
        let limiters = || -> Vec<Box<dyn Limiter + Send>> {
            let mut all: Vec<Box<dyn Limiter + Send>> = Vec::new();
            for &(base, cap, jitter) in &exponentials {
                all.push(Box::new(Exponential::new(ms(base), ms(cap)).with_jitter(jitter)));
            }
            all.push(Box::new(FastSlow::new(ms(fast_slow.0), ms(fast_slow.1), fast_slow.2)));
            if let Some((rate, burst)) = bucket {
                all.push(Box::new(Bucket::new(small(rate), small(burst))));
            }
            all
        };
        let mut together = limiters().into_iter().fold(MaxOf::new(), MaxOf::and);
        let mut alone = limiters();
        let mut now = origin();
        for (failures, chance, gap) in asks {
            now += ms(gap);
            let retry = Retry { failures, chance, now };
            let mut longest = Duration::ZERO;
            for limiter in &mut alone {
                let delay = limiter.delay(retry);
                if delay > longest {
                    longest = delay;
                }
            }
            prop_assert_eq!(together.delay(retry), longest);
        }
    }

    /// Against the sum done a doubling at a time.
    #[test]
    fn exponential_delays_are_those_of_doubling_by_hand(base in 1_u64..10_000, cap in 1_u64..10_000_000, failures in 1_u32..200) {
        let mut delay = u128::from(base);
        for _ in 1..failures {
            delay = (delay * 2).min(u128::from(cap.max(base)));
        }
        prop_assert_eq!(Exponential::new(ms(base), ms(cap)).delay(nth(failures)).as_millis(), delay);
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
