use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::origin;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn of_two_deadlines_the_earlier_wins_and_a_set_one_replaces() {
    let now = origin();
    let mut wheel = Wheel::new();
    assert!(wheel.insert("a", now + ms(20)));
    assert!(!wheel.insert("a", now + ms(30)));
    assert!(wheel.insert("a", now + ms(10)));
    assert_eq!(wheel.until(&"a"), Some(now + ms(10)));
    wheel.set("a", now + ms(40));
    assert_eq!(wheel.next_due(), Some(now + ms(40)));
    assert_eq!(wheel.pop_due(now + ms(39)), [""; 0]);
    assert_eq!(wheel.pop_due(now + ms(40)), ["a"]);
    assert_eq!(wheel.pop_due(now + ms(40)), [""; 0]);
}

#[test]
fn replaced_and_cancelled_deadlines_leave_nothing_behind() {
    let far = origin() + Duration::from_secs(3600 * 24 * 365);
    let mut wheel = Wheel::new();
    for round in 0..3 {
        for key in 0..100_000_u32 {
            wheel.set(key, far + ms(u64::from(key % 977) + round));
        }
    }
    assert_eq!((wheel.len(), wheel.order.len()), (100_000, 100_000));
    for key in 0..99_990 {
        wheel.remove(&key);
    }
    assert_eq!((wheel.len(), wheel.order.len()), (10, 10));
    assert!(
        wheel.deadlines.capacity() < 128,
        "room for {} keys",
        wheel.deadlines.capacity()
    );
}

#[test]
fn a_key_is_freed_when_it_leaves() {
    let now = origin();
    let (popped, cancelled): (Arc<str>, Arc<str>) = ("popped".into(), "cancelled".into());
    let mut wheel = Wheel::new();
    wheel.insert(popped.clone(), now);
    wheel.insert(cancelled.clone(), now);
    wheel.remove(&cancelled);
    drop(wheel.pop_due(now));
    assert_eq!(
        (Arc::strong_count(&popped), Arc::strong_count(&cancelled)),
        (1, 1)
    );
}

#[derive(Clone, Debug)]
enum Op {
    Insert(u8, u64),
    Set(u8, u64),
    Remove(u8),
    Advance(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (0..8_u8, 0..60_u64).prop_map(|(key, in_ms)| Op::Insert(key, in_ms)),
        (0..8_u8, 0..60_u64).prop_map(|(key, in_ms)| Op::Set(key, in_ms)),
        (0..8_u8).prop_map(Op::Remove),
        (0..20_u64).prop_map(Op::Advance),
    ]
}

proptest! {
    #[test]
    fn deadlines_come_out_in_order_exactly_once_as_in_a_plain_list(ops in prop::collection::vec(op(), 1..200)) {
        let mut now = origin();
        let mut wheel = Wheel::new();
        let mut list: Vec<(Instant, u8)> = Vec::new();
        for op in ops {
            match op {
                Op::Insert(key, in_ms) => {
                    let until = now + ms(in_ms);
                    let wins = list.iter().all(|&(present, other)| other != key || until < present);
                    prop_assert_eq!(wheel.insert(key, until), wins);
                    if wins {
                        list.retain(|&(_, other)| other != key);
                        list.push((until, key));
                    }
                }
                Op::Set(key, in_ms) => {
                    wheel.set(key, now + ms(in_ms));
                    list.retain(|&(_, other)| other != key);
                    list.push((now + ms(in_ms), key));
                }
                Op::Remove(key) => {
                    let expected = list.iter().find(|&&(_, other)| other == key).map(|&(until, _)| until);
                    prop_assert_eq!(wheel.remove(&key), expected);
                    list.retain(|&(_, other)| other != key);
                }
                Op::Advance(by_ms) => {
                    now += ms(by_ms);
                    // A stable sort keeps the order of equal deadlines.
                    list.sort_by_key(|&(until, _)| until);
                    let due = list.iter().take_while(|&&(until, _)| until <= now).count();
                    let expected: Vec<u8> = list.drain(..due).map(|(_, key)| key).collect();
                    prop_assert_eq!(wheel.pop_due(now), expected);
                }
            }
            prop_assert_eq!(wheel.next_due(), list.iter().map(|&(until, _)| until).min());
            prop_assert_eq!((wheel.len(), wheel.order.len()), (list.len(), list.len()));
        }
    }
}
