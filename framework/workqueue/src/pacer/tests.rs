use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::{Fault, Wait, origin};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn retry(until: Instant, failures: u16) -> Delay {
    Delay {
        until,
        why: Wait::Backoff(Fault::Object),
        failures,
    }
}

fn bucket(per_second: u32, burst: u32) -> Bucket {
    let small = |n| NonZeroU32::new(n).expect("the test asks for more than nothing");
    Bucket::new(small(per_second), small(burst))
}

/// Rings as told until nothing is left; returns who went and when.
fn drain<K: Clone + Eq + Hash>(pacer: &mut Pacer<K>) -> Vec<(K, Instant)> {
    let mut gone = Vec::new();
    while let Some(at) = pacer.next_due() {
        gone.extend(pacer.release(at).into_iter().map(|key| (key, at)));
        assert!(
            pacer.next_due().is_none_or(|next| next > at),
            "rings again at once"
        );
    }
    assert!(pacer.is_empty());
    assert!(
        pacer.retries.is_empty() && pacer.by_failures.is_empty(),
        "left behind"
    );
    assert!(
        pacer.retries.capacity() < 128,
        "room for {}",
        pacer.retries.capacity()
    );
    gone
}

#[test]
fn retries_beyond_the_burst_go_at_the_rate_of_the_bucket() {
    let now = origin();
    let mut pacer = Pacer::new(bucket(10, 3));
    for key in 0..6 {
        pacer.insert(key, retry(now, 1));
    }
    let gone = drain(&mut pacer);
    assert_eq!(
        gone,
        [
            (0, now),
            (1, now),
            (2, now),
            (3, now + ms(100)),
            (4, now + ms(200)),
            (5, now + ms(300))
        ]
    );
}

#[test]
fn what_is_no_fault_of_the_object_needs_no_token() {
    let now = origin();
    let mut pacer = Pacer::new(bucket(1, 1));
    for (key, why) in [
        Wait::Requeue,
        Wait::Conflict,
        Wait::Backoff(Fault::Infrastructure),
    ]
    .into_iter()
    .cycle()
    .take(300)
    .enumerate()
    {
        pacer.insert(
            key,
            Delay {
                until: now,
                why,
                failures: 1,
            },
        );
    }
    assert_eq!(pacer.release(now).len(), 300);
}

#[test]
fn ten_thousand_sick_keys_do_not_hold_up_a_first_failure() {
    let now = origin();
    let mut pacer = Pacer::default();
    for sick in 0..10_000 {
        pacer.insert(sick, retry(now, 15));
    }
    assert_eq!(pacer.release(now).len(), 100);
    pacer.insert(10_000, retry(now, 1));
    let gone = drain(&mut pacer);
    let (_, at) = gone
        .iter()
        .find(|(key, _)| *key == 10_000)
        .expect("every key goes");
    assert!(*at - now <= ms(200), "went after {:?}", *at - now);
}

#[test]
fn a_stream_of_first_failures_does_not_hold_up_a_sick_key() {
    let start = origin();
    let mut pacer = Pacer::new(bucket(10, 1));
    pacer.insert(0, retry(start, 1));
    assert_eq!(pacer.release(start), [0]);
    pacer.insert(1, retry(start, 15));
    let mut fresh = 2..;
    let passed_by = (1..=10_u32).take_while(|tick| {
        let now = start + ms(100) * *tick;
        for key in fresh.by_ref().take(5) {
            pacer.insert(key, retry(now, 1));
        }
        !pacer.release(now).contains(&1)
    });
    assert!(passed_by.count() <= 1);
}

#[test]
fn the_newest_word_about_a_key_counts() {
    let now = origin();
    let mut pacer = Pacer::new(bucket(10, 1));
    pacer.insert("in line", retry(now, 1));
    pacer.insert("spender", retry(now, 0));
    assert_eq!(pacer.release(now), ["spender"]);
    assert_eq!(pacer.in_line(), 1);
    pacer.insert(
        "in line",
        Delay {
            until: now + ms(500),
            why: Wait::Requeue,
            failures: 0,
        },
    );
    assert_eq!(
        (pacer.in_line(), pacer.len(), pacer.next_due()),
        (0, 1, Some(now + ms(500)))
    );
    assert_eq!(pacer.release(now + ms(500)), ["in line"]);
}

#[test]
fn a_key_that_leaves_the_line_costs_no_token_and_is_freed() {
    let now = origin();
    let [first, leaver, last]: [Arc<str>; 3] = ["first", "leaver", "last"].map(Into::into);
    let mut pacer = Pacer::new(bucket(10, 1));
    for key in [&first, &leaver, &last] {
        pacer.insert(key.clone(), retry(now, 1));
    }
    assert_eq!(pacer.release(now), std::slice::from_ref(&first));
    assert!(pacer.remove(&leaver));
    assert!(!pacer.remove(&leaver));
    assert_eq!(Arc::strong_count(&leaver), 1);
    assert_eq!(pacer.release(now + ms(100)), [last]);
    assert_eq!(pacer.next_due(), None);
}

#[test]
fn without_a_bucket_every_key_goes_when_its_time_has_come() {
    let now = origin();
    let mut pacer: Pacer<u32> = Pacer::new(None);
    for key in 0..10_000 {
        pacer.insert(key, retry(now + ms(10), 1));
    }
    assert_eq!(pacer.release(now + ms(9)), []);
    assert_eq!(pacer.release(now + ms(10)).len(), 10_000);
}

proptest! {
    #[test]
    fn every_key_goes_exactly_once_never_early_and_unpaced_ones_never_late(
        keys in prop::collection::vec((0_u64..2000, 0_u16..5, any::<bool>()), 1..100), gone_keys in prop::collection::vec(any::<prop::sample::Index>(), 0..10)
    ) {
        let start = origin();
        let mut pacer = Pacer::new(bucket(20, 3));
        for (key, &(in_ms, failures, paced)) in keys.iter().enumerate() {
            let why = if paced { Wait::Backoff(Fault::Object) } else { Wait::Requeue };
            pacer.insert(key, Delay { until: start + ms(in_ms), why, failures });
        }
        let mut expected: Vec<usize> = (0..keys.len()).collect();
        for index in gone_keys {
            let key = index.index(keys.len());
            pacer.remove(&key);
            expected.retain(|&other| other != key);
        }
        let gone = drain(&mut pacer);
        for &(key, at) in &gone {
            let (in_ms, _, paced) = keys[key];
            prop_assert!(at >= start + ms(in_ms));
            prop_assert!(paced || at == start + ms(in_ms));
        }
        let mut went: Vec<usize> = gone.into_iter().map(|(key, _)| key).collect();
        went.sort_unstable();
        prop_assert_eq!(went, expected);
    }
}
