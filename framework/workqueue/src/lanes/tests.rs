use std::time::Duration;

use proptest::prelude::*;

use super::*;

const BOUND: Duration = Duration::from_secs(30);

fn lane() -> impl Strategy<Value = Lane> {
    prop_oneof![Just(Lane::User), Just(Lane::Normal), Just(Lane::Low)]
}

fn pop(lanes: &mut Lanes<&'static str>, now: Moment) -> Option<&'static str> {
    lanes.pop(now).map(|(_, standing)| standing.key)
}

#[test]
fn the_most_urgent_lane_goes_first() {
    let now = Moment::default();
    let mut lanes = Lanes::new(BOUND);
    lanes.push(Lane::Low, 0, "low", now);
    lanes.push(Lane::Normal, 1, "normal", now);
    lanes.push(Lane::User, 2, "user", now);
    let order: Vec<_> = std::iter::from_fn(|| pop(&mut lanes, now)).collect();
    assert_eq!(order, ["user", "normal", "low"]);
}

#[test]
fn a_lifted_key_takes_the_place_its_age_earns() {
    let now = Moment::default();
    let mut lanes = Lanes::new(BOUND);
    lanes.push(Lane::Normal, 0, "first", now);
    lanes.push(Lane::Low, 1, "lifted", now);
    lanes.push(Lane::Normal, 2, "last", now);
    lanes.lift(1, Lane::Low, Lane::Normal);
    let order: Vec<_> = std::iter::from_fn(|| pop(&mut lanes, now)).collect();
    assert_eq!(order, ["first", "lifted", "last"]);
}

#[test]
fn a_head_at_the_bound_goes_before_more_urgent_keys() {
    let start = Moment::default();
    let mut lanes = Lanes::new(BOUND);
    lanes.push(Lane::Low, 0, "low", start);
    let almost = start + (BOUND - Duration::from_nanos(1));
    lanes.push(Lane::User, 1, "user 1", almost);
    lanes.push(Lane::User, 2, "user 2", almost);
    assert_eq!(pop(&mut lanes, almost), Some("user 1"));
    assert_eq!(pop(&mut lanes, start + BOUND), Some("low"));
}

#[test]
fn an_old_backlog_leaves_fresh_urgent_keys_their_share() {
    let start = Moment::default();
    let mut lanes = Lanes::new(BOUND);
    for ticket in 0..1000 {
        lanes.push(Lane::Low, ticket, "old", start);
    }
    let late = start + 2 * BOUND;
    for ticket in 1000..1010 {
        lanes.push(Lane::User, ticket, "fresh", late);
    }
    let fresh = (0..20)
        .filter(|_| pop(&mut lanes, late) == Some("fresh"))
        .count();
    assert_eq!(
        fresh, 10,
        "every other start, although a thousand older keys are over the bound"
    );
}

#[test]
fn keys_that_leave_from_the_middle_and_bursts_hold_no_room() {
    let now = Moment::default();
    let mut lanes = Lanes::new(BOUND);
    lanes.push(Lane::Low, 0, "first", now);
    for ticket in 1..100_000 {
        lanes.push(Lane::Low, ticket, "passing", now);
        lanes.remove(Lane::Low, ticket);
    }
    let line = &lanes.lines[Lane::Low.index()];
    assert!(line.fifo.capacity() <= 128, "{}", line.fifo.capacity());
    for ticket in 100_000..200_000 {
        lanes.push(Lane::Low, ticket, "burst", now);
    }
    while pop(&mut lanes, now).is_some() {}
    let line = &lanes.lines[Lane::Low.index()];
    assert!(line.fifo.capacity() <= 128, "{}", line.fifo.capacity());
}

proptest! {
    /// Against lists that are searched from end to end.
    #[test]
    fn lanes_hold_what_plain_lists_do(
        steps in prop::collection::vec((0_u8..6, lane(), lane(), any::<prop::sample::Index>()), 1..300)
    ) {
        let now = Moment::default();
        let mut lanes = Lanes::new(BOUND);
        let mut list: Vec<(Lane, u64)> = Vec::new();
        for (ticket, (what, lane, other, which)) in (0_u64..).zip(steps) {
            let some = (!list.is_empty()).then(|| which.index(list.len().max(1)));
            match (what, some) {
                (0..=2, _) | (_, None) => {
                    lanes.push(lane, ticket, ticket, now);
                    list.push((lane, ticket));
                }
                (3, Some(at)) => {
                    let (from, ticket) = list[at];
                    lanes.lift(ticket, from, other);
                    list[at] = (other, ticket);
                }
                (4, Some(at)) => {
                    let (lane, ticket) = list.remove(at);
                    prop_assert_eq!(lanes.since(lane, ticket), Some(now));
                    lanes.remove(lane, ticket);
                    prop_assert_eq!(lanes.since(lane, ticket), None);
                }
                (_, Some(_)) => {
                    let first = list.iter().copied().min_by_key(|&(lane, ticket)| (lane.index(), ticket));
                    prop_assert_eq!(lanes.pop(now).map(|(ticket, _)| ticket), first.map(|(_, ticket)| ticket));
                    list.retain(|&entry| Some(entry) != first);
                }
            }
            list.sort_unstable_by_key(|&(lane, ticket)| (lane.index(), ticket));
            prop_assert!(lanes.keys().eq(list.iter().map(|(_, ticket)| ticket)));
            for lane in Lane::ALL {
                prop_assert_eq!(lanes.depth(lane), list.iter().filter(|(of, _)| *of == lane).count());
            }
        }
    }

    /// Overload of any shape: pushes outnumber pops, time passes unevenly.
    #[test]
    fn a_head_over_the_bound_leaves_within_three_pops(
        steps in prop::collection::vec((prop::collection::vec(lane(), 0..4), 0_u64..20), 1..300)
    ) {
        let mut now = Moment::default();
        let mut lanes = Lanes::new(BOUND);
        let mut tickets = 0..;
        let mut overdue_for = [0; 3];
        for (pushes, seconds) in steps {
            for lane in pushes {
                if let Some(ticket) = tickets.next() {
                    lanes.push(lane, ticket, ticket, now);
                }
            }
            now = now + Duration::from_secs(seconds);
            let heads = Lane::ALL.map(|lane| lanes.oldest(lane).filter(|&since| now.since(since) >= BOUND));
            let depths = Lane::ALL.map(|lane| lanes.depth(lane));
            lanes.pop(now);
            for (index, lane) in Lane::ALL.into_iter().enumerate() {
                let served = lanes.depth(lane) < depths[index];
                overdue_for[index] = if heads[index].is_some() && !served { overdue_for[index] + 1 } else { 0 };
                prop_assert!(overdue_for[index] < 3, "{lane:?} was passed over {} times", overdue_for[index]);
            }
        }
    }

    #[test]
    fn a_lane_is_first_in_first_out_and_urgency_rules_before_the_bound(
        pushes in prop::collection::vec((lane(), any::<bool>()), 1..200)
    ) {
        let now = Moment::default();
        let mut lanes = Lanes::new(BOUND);
        let mut left = [0; 3];
        let mut check = |lanes: &mut Lanes<(Lane, u64)>| {
            let most_urgent = Lane::ALL.into_iter().find(|&lane| lanes.depth(lane) > 0);
            let popped = lanes.pop(now).map(|(ticket, standing)| (standing.key.0, ticket));
            prop_assert_eq!(popped.map(|(lane, _)| lane), most_urgent);
            if let Some((lane, ticket)) = popped {
                prop_assert!(ticket >= left[lane.index()]);
                left[lane.index()] = ticket;
            }
            Ok(())
        };
        for (ticket, (lane, pop)) in (0_u64..).zip(pushes) {
            lanes.push(lane, ticket, (lane, ticket), now);
            if pop {
                check(&mut lanes)?;
            }
        }
        while lanes.len() > 0 {
            check(&mut lanes)?;
        }
    }
}
