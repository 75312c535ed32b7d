use boatswain_supervision::Clock;
use proptest::prelude::*;

use super::*;

fn permits(limit: usize, shards: usize) -> Permits {
    Permits::new(limit, (0..shards).map(|_| Arc::default()).collect())
}

fn now() -> Instant {
    Clock::system().now()
}

#[test]
fn a_permit_that_is_given_back_is_for_whoever_waited_longest() {
    let (permits, now) = (permits(1, 3), now());
    let take = |shard| permits.take(shard, now);
    let held = take(0);
    assert!(held.is_some() && take(1).is_none() && take(2).is_none() && take(1).is_none());
    assert!(permits.are_wanted(0));
    drop(held);
    assert!(
        take(0).is_none(),
        "who has just given it back waits behind the others"
    );
    let held = take(1);
    assert!(held.is_some());
    drop(held);
    assert!(take(1).is_none());
    let held = take(2);
    drop(held);
    drop(take(0).expect("its turn"));
    drop(take(1).expect("its turn"));
    assert!(!permits.are_pressing(), "nobody waits");
}

#[test]
fn a_promise_that_is_not_kept_goes_to_whoever_can_use_it() {
    let (permits, now) = (permits(1, 3), now());
    let held = permits.take(0, now);
    assert!(permits.take(1, now).is_none());
    drop(held);
    assert!(permits.take(0, now).is_none(), "it is the other's");
    let held = permits.take(0, now + PATIENCE);
    assert!(
        held.is_some(),
        "the other does not come, its thread may be blocked"
    );
    assert!(permits.take(2, now + PATIENCE).is_none());
    drop(held);
    permits.decline(2);
    assert!(
        permits.take(1, now + PATIENCE).is_some(),
        "who declines passes it on"
    );
}

#[test]
fn a_shard_keeps_its_even_share_and_gives_back_what_is_beyond_it() {
    let (permits, now) = (permits(4, 2), now());
    let mut mine: Vec<_> = (0..4).map(|_| permits.take(0, now)).collect();
    assert!(!permits.are_wanted(0), "nobody else wants one");
    let mut other = Vec::new();
    for _ in 0..2 {
        assert!(permits.take(1, now).is_none() && permits.are_wanted(0));
        mine.pop();
        other.push(permits.take(1, now).expect("what was given back"));
    }
    assert!(permits.take(1, now).is_none());
    assert!(
        !permits.are_wanted(0) && !permits.are_wanted(1),
        "even shares"
    );
}

proptest! {
    #[test]
    fn there_are_never_more_than_the_limit_and_none_is_lost(
        limit in 1..4_usize,
        steps in prop::collection::vec((0..3_usize, 0..4_u8), 1..200),
    ) {
        let (permits, mut now) = (permits(limit, 3), now());
        let mut held: Vec<(usize, Permit)> = Vec::new();
        for (shard, what) in steps {
            match what {
                0 | 1 => held.extend(permits.take(shard, now).map(|permit| (shard, permit))),
                2 => {
                    if let Some(mine) = held.iter().position(|(who, _)| *who == shard) {
                        drop(held.swap_remove(mine));
                    }
                    permits.decline(shard);
                }
                _ => now += PATIENCE / 2,
            }
            for shard in 0..3 {
                let has = held.iter().filter(|(who, _)| *who == shard).count();
                prop_assert_eq!(permits.0.shards[shard].has.load(Relaxed), has);
            }
            let state = permits.state();
            prop_assert_eq!(state.free + state.promised.len() + held.len(), limit);
            prop_assert!(state.free == 0 || state.line.is_empty() || state.promised.is_empty());
        }
        held.clear();
        for shard in 0..3 {
            permits.decline(shard);
        }
        prop_assert_eq!(permits.state().free, limit);
        prop_assert!(!permits.are_pressing());
    }
}
