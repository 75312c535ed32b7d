use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use boatswain_supervision::Clock;

use proptest::prelude::*;

use super::backlog::Backlog;
use super::resync::Schedule;
use crate::delta::{Cause, Change};
use crate::key::Key;
use crate::object::Object;

fn object(name: &str, uid: u64, version: u64) -> Object {
    let json = serde_json::json!({"metadata": {"name": name, "uid": uid.to_string(), "resourceVersion": version.to_string()}});
    crate::envelope::open(json.to_string().as_bytes()).unwrap()
}

fn backlog() -> Backlog {
    Backlog::new(usize::MAX)
}

fn created(uid: u64, version: u64) -> Change {
    Change::Created(object("a", uid, version))
}

fn updated(uid: u64, from: u64, to: u64) -> Change {
    Change::Updated {
        old: object("a", uid, from),
        new: object("a", uid, to),
    }
}

fn deleted(uid: u64, version: u64) -> Change {
    Change::Deleted {
        last: object("a", uid, version),
        certain: true,
    }
}

/// What a subscriber hears who had heard of `before` when the changes happened.
fn net(before: &[Change], changes: &[Change]) -> Vec<String> {
    let mut backlog = backlog();
    for change in before {
        backlog.push(change, Cause::Watch, None);
        let (ticket, _) = backlog.take(9).unwrap();
        backlog.ack(ticket);
    }
    for change in changes {
        backlog.push(change, Cause::Watch, None);
    }
    backlog
        .take(9)
        .map(|(_, told)| {
            told.iter()
                .map(|(change, _)| format!("{change:?}"))
                .collect()
        })
        .unwrap_or_default()
}

#[test]
fn changes_of_a_key_become_one() {
    assert_eq!(
        net(&[], &[created(1, 1), updated(1, 1, 2)]),
        ["created a@2"]
    );
    assert_eq!(
        net(&[created(1, 1)], &[updated(1, 1, 2), updated(1, 2, 3)]),
        ["updated a@3 from 1"]
    );
    assert_eq!(
        net(&[created(1, 1)], &[updated(1, 1, 2), deleted(1, 3)]),
        ["deleted a@3"]
    );
}

#[test]
fn an_incarnation_nobody_heard_of_is_left_out_and_one_that_was_heard_of_never_is() {
    assert!(net(&[], &[created(1, 1), updated(1, 1, 2), deleted(1, 3)]).is_empty());
    assert_eq!(
        net(
            &[created(1, 1)],
            &[deleted(1, 2), created(2, 3), updated(2, 3, 4)]
        ),
        ["deleted a@2", "created a@4"]
    );
    assert_eq!(
        net(
            &[created(1, 1)],
            &[deleted(1, 2), created(2, 3), deleted(2, 4)]
        ),
        ["deleted a@2"]
    );
    assert_eq!(
        net(
            &[created(1, 1)],
            &[deleted(1, 2), created(2, 3), deleted(2, 4), created(3, 5)]
        ),
        ["deleted a@2", "created a@5"]
    );
}

#[test]
fn what_was_in_hand_and_not_acknowledged_may_have_been_heard() {
    let mut backlog = backlog();
    backlog.push(&created(1, 1), Cause::Watch, None);
    let (ticket, _) = backlog.take(9).unwrap();
    backlog.push(&deleted(1, 2), Cause::Watch, None);
    assert!(backlog.take(9).is_none(), "one batch at a time");
    backlog.nack(ticket);
    let (_, told) = backlog.take(9).unwrap();
    assert_eq!(format!("{told:?}"), "[(deleted a@2, Watch)]");
}

#[test]
fn a_ticket_counts_once() {
    let mut backlog = backlog();
    backlog.push(&created(1, 1), Cause::Watch, None);
    let (ticket, _) = backlog.take(9).unwrap();
    backlog.nack(ticket);
    backlog.ack(ticket);
    assert_eq!((backlog.depth(), backlog.in_hand()), (1, 0));
}

#[test]
fn a_subscriber_that_sleeps_costs_one_entry_per_live_key() {
    let mut backlog = backlog();
    for number in 0..10_000_u64 {
        let name = format!("pod-{number}");
        backlog.push(
            &Change::Created(object(&name, number, 2 * number)),
            Cause::Watch,
            None,
        );
        backlog.push(
            &Change::Deleted {
                last: object(&name, number, 2 * number + 1),
                certain: true,
            },
            Cause::Watch,
            None,
        );
        backlog.push(
            &if number == 0 {
                created(1, 1)
            } else {
                updated(1, number, number + 1)
            },
            Cause::Watch,
            None,
        );
    }
    assert_eq!((backlog.depth(), backlog.high_water()), (1, 2));
}

#[derive(Clone, Debug)]
enum Op {
    Put(u8),
    Delete(u8),
    Resync(u8),
    Take(usize),
    Ack,
    Nack,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0_u8..3).prop_map(Op::Put),
        3 => (0_u8..3).prop_map(Op::Delete),
        1 => (0_u8..3).prop_map(Op::Resync),
        3 => (1_usize..3).prop_map(Op::Take),
        2 => Just(Op::Ack),
        1 => Just(Op::Nack),
    ]
}

proptest! {
    #[test]
    fn a_subscriber_that_hears_everything_knows_the_truth(ops in prop::collection::vec(op(), 0..60), initial in any::<bool>(), max_bytes in 0_usize..400) {
        let mut backlog = Backlog::new(max_bytes);
        let first = if initial { Cause::Initial } else { Cause::Watch };
        let mut truth: BTreeMap<Key, Object> = BTreeMap::new();
        let mut told: BTreeMap<Key, Object> = BTreeMap::new();
        let (mut begun, mut ended) = (BTreeSet::new(), BTreeSet::new());
        let mut hand = None;
        let mut clock = 0;
        for op in ops.into_iter().chain([Op::Ack, Op::Take(usize::MAX), Op::Ack]) {
            clock += 1;
            match op {
                Op::Put(id) => {
                    let name = id.to_string();
                    let change = match truth.get(&Key::new(None, &name)) {
                        None => Change::Created(object(&name, clock, clock)),
                        Some(old) => {
                            let uid = old.meta().uid.to_string().parse().unwrap();
                            Change::Updated { old: old.clone(), new: object(&name, uid, clock) }
                        }
                    };
                    truth.insert(change.key().clone(), change.new().unwrap().clone());
                    let cause = if change.old().is_none() { first } else { Cause::Watch };
                    backlog.push(&change, cause, None);
                }
                Op::Delete(id) => {
                    if let Some(last) = truth.remove(&Key::new(None, &id.to_string())) {
                        backlog.push(&Change::Deleted { last, certain: true }, Cause::Watch, None);
                    }
                }
                Op::Resync(id) => if let Some(object) = truth.get(&Key::new(None, &id.to_string())) {
                    backlog.resync(object.clone(), None);
                },
                Op::Take(max) => if let Some(taken) = backlog.take(max) {
                    begun.extend(taken.1.iter().filter_map(|(change, _)| change.new()).map(|new| new.meta().uid.to_string()));
                    hand = Some(taken);
                },
                Op::Nack => if let Some((ticket, _)) = hand.take() {
                    backlog.nack(ticket);
                },
                Op::Ack => if let Some((ticket, changes)) = hand.take() {
                    for (change, _) in changes {
                        if let Some(last) = change.old().filter(|_| change.new().is_none()) {
                            prop_assert!(ended.insert(last.meta().uid.to_string()), "{change:?} told twice");
                        }
                        match change.new() {
                            Some(new) => told.insert(change.key().clone(), new.clone()),
                            None => told.remove(change.key()),
                        };
                    }
                    backlog.ack(ticket);
                },
            }
        }
        prop_assert_eq!(format!("{told:?}"), format!("{truth:?}"));
        prop_assert_eq!((backlog.depth(), backlog.initial(), backlog.bytes(), backlog.oldest()), (0, 0, 0, None));
        let alive: BTreeSet<_> = truth.values().map(|object| object.meta().uid.to_string()).collect();
        prop_assert!(begun.difference(&alive).all(|uid| ended.contains(uid)));
    }
}

/// Names in the order in which they are handed out, `max` at a time.
fn order(backlog: &mut Backlog, max: usize) -> Vec<String> {
    let mut names = Vec::new();
    while let Some((ticket, told)) = backlog.take(max) {
        names.extend(
            told.iter()
                .map(|(change, _)| change.key().name().to_owned()),
        );
        backlog.ack(ticket);
    }
    names
}

#[test]
fn fresh_news_overtake_what_merely_was_there_and_neither_holds_up_the_other() {
    for max in [1, 7, 1000] {
        let mut backlog = backlog();
        for number in 0..100 {
            let there = Change::Created(object(&format!("old-{number:02}"), number, 1));
            backlog.push(&there, Cause::Initial, None);
        }
        for number in 0..100 {
            let fresh = Change::Created(object(&format!("new-{number:02}"), number, 1));
            backlog.push(&fresh, Cause::Watch, None);
        }
        let names = order(&mut backlog, max);
        let fresh = |names: &[String]| names.iter().filter(|name| name.starts_with("new")).count();
        assert_eq!(names.len(), 200);
        assert_eq!(fresh(&names[..100]), 75, "three of four");
        assert_eq!(fresh(&names[..134]), 100, "all of them soon");
        let kept: Vec<_> = names
            .iter()
            .filter(|name| name.starts_with("old"))
            .collect();
        assert!(kept.is_sorted(), "in their own order");
    }
}

#[test]
fn news_of_a_key_that_merely_was_there_are_fresh() {
    let mut backlog = backlog();
    for name in ["a", "b", "c"] {
        backlog.push(&Change::Created(object(name, 1, 1)), Cause::Initial, None);
    }
    let news = Change::Updated {
        old: object("c", 1, 1),
        new: object("c", 1, 2),
    };
    backlog.push(&news, Cause::Watch, None);
    assert_eq!(order(&mut backlog, 1), ["c", "a", "b"]);
    assert_eq!(backlog.initial(), 0);
}

#[test]
fn a_resync_delays_no_news_and_hides_none() {
    let mut backlog = backlog();
    backlog.push(&updated(1, 1, 2), Cause::Watch, None);
    backlog.resync(object("a", 1, 2), None);
    backlog.resync(object("b", 2, 2), None);
    let (_, told) = backlog.take(9).unwrap();
    assert_eq!(
        format!("{told:?}"),
        "[(updated a@2 from 1, Watch), (updated b@2 from 2, Resync)]"
    );
}

fn big(name: &str, version: u64) -> Object {
    let json = serde_json::json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "uid": name, "resourceVersion": version.to_string(), "labels": {"app": "web"}, "annotations": {"long": "x".repeat(2000)},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "n", "controller": true}],
        },
        "spec": {"text": "y".repeat(2000)},
    });
    crate::envelope::open(json.to_string().as_bytes()).unwrap()
}

#[test]
fn a_slow_subscriber_costs_its_bound_and_little_more_and_still_hears_of_every_key() {
    let mut backlog = Backlog::new(100_000);
    for number in 0..1000 {
        let name = format!("pod-{number}");
        for version in 1..5 {
            let (old, new) = (big(&name, version), big(&name, version + 1));
            backlog.push(&Change::Updated { old, new }, Cause::Watch, None);
        }
        if number % 2 == 0 {
            let last = big(&name, 6);
            let change = Change::Deleted {
                last,
                certain: true,
            };
            backlog.push(&change, Cause::Watch, None);
        }
    }
    let thin = 1000 * 400;
    assert!(backlog.bytes() < 100_000 + thin, "{}", backlog.bytes());
    assert!(backlog.thinned() > 900);
    let (ticket, told) = backlog.take(usize::MAX).unwrap();
    assert_eq!(told.len(), 1000);
    let (last, _) = &told[998];
    assert!(matches!(last, Change::Deleted { certain: true, .. }));
    let last = last.old().unwrap();
    assert_eq!(last.meta().resource_version.to_string(), "6");
    assert_eq!(last.labels()["app"], "web");
    assert_eq!(last.owner_refs()[0].name, "n");
    assert!(
        last.annotations().is_empty() && last.size() < 400,
        "{last:?}"
    );
    let (change, _) = &told[999];
    assert!(change.new().unwrap().size() > 4000, "the newest is whole");
    assert_eq!(
        change.old().unwrap().meta().resource_version.to_string(),
        "1"
    );
    backlog.ack(ticket);
    assert_eq!(backlog.bytes(), 0);
}

#[test]
fn the_age_of_a_backlog_is_that_of_its_oldest_news() {
    let start = Clock::system().now();
    let at = |seconds| Some(start + Duration::from_secs(seconds));
    let mut backlog = backlog();
    assert_eq!(backlog.oldest(), None);
    backlog.push(&Change::Created(object("a", 1, 1)), Cause::Watch, at(1));
    backlog.push(&Change::Created(object("b", 1, 1)), Cause::Initial, at(0));
    backlog.push(&updated(1, 1, 2), Cause::Watch, at(5));
    assert_eq!(backlog.oldest(), at(0));
    let (ticket, _) = backlog.take(9).unwrap();
    backlog.push(&Change::Created(object("c", 1, 1)), Cause::Watch, at(7));
    assert_eq!(backlog.oldest(), at(0), "in hand is not handled");
    backlog.ack(ticket);
    assert_eq!(backlog.oldest(), at(7));
}

#[test]
fn every_key_is_told_again_once_a_period_and_evenly() {
    let start = Clock::system().now();
    let period = Duration::from_secs(640);
    let mut schedule = Schedule::new(period, "s");
    let keys: Vec<_> = (0..6400)
        .map(|number| Key::new(Some("default"), &format!("web-{number}")))
        .collect();
    let (due, mut next) = schedule.due(start);
    assert!(due.is_none());
    let mut told = BTreeMap::new();
    let mut most = 0;
    while next <= start + period {
        let now = next;
        let (due, later) = schedule.due(now);
        let due = due.unwrap();
        let slice: Vec<_> = keys.iter().filter(|key| due.has(key)).collect();
        most = most.max(slice.len());
        for key in slice {
            *told.entry(key).or_insert(0) += 1;
        }
        assert_eq!(later - now, period / 64);
        assert_eq!(schedule.due(now), (None, later), "not twice");
        next = later;
    }
    assert_eq!(told.len(), keys.len());
    assert!(told.values().all(|count| *count == 1));
    assert!(most < 200, "a hundred each, about: {most}");
}

#[test]
fn after_a_long_silence_every_key_is_told_again_once() {
    let start = Clock::system().now();
    let mut schedule = Schedule::new(Duration::from_secs(64), "s");
    schedule.due(start);
    let keys: Vec<_> = (0..500)
        .map(|number| Key::new(None, &number.to_string()))
        .collect();
    let late = start + Duration::from_secs(1000);
    let (due, next) = schedule.due(late);
    let due = due.unwrap();
    assert!(keys.iter().all(|key| due.has(key)));
    assert!(next > late && next <= late + Duration::from_secs(1));
    let (due, _) = schedule.due(start + Duration::from_secs(1003));
    let some = keys.iter().filter(|key| due.unwrap().has(key)).count();
    assert!(some > 0 && some < 100, "three slices of 64: {some}");
}

#[test]
fn two_subscribers_are_told_again_of_a_key_at_different_times() {
    let start = Clock::system().now();
    let keys: Vec<_> = (0..6400)
        .map(|number| Key::new(None, &number.to_string()))
        .collect();
    let first = |name| {
        let mut schedule = Schedule::new(Duration::from_secs(64), name);
        schedule.due(start);
        let (due, _) = schedule.due(start + Duration::from_secs(1));
        keys.iter()
            .filter(|key| due.unwrap().has(key))
            .collect::<BTreeSet<_>>()
    };
    let (one, other) = (first("one"), first("other"));
    assert!(one.intersection(&other).count() < one.len() / 4);
}

#[test]
fn a_backlog_that_was_long_gives_its_memory_back() {
    let mut backlog = backlog();
    let names: Vec<String> = (0..20_000).map(|number| number.to_string()).collect();
    let allocated = allocation_counter::measure(|| {
        for name in &names {
            backlog.push(&Change::Created(object(name, 1, 1)), Cause::Initial, None);
        }
        while let Some((ticket, changes)) = backlog.take(100) {
            drop(changes);
            backlog.ack(ticket);
        }
    });
    let left = allocated.bytes_current;
    assert!(left < 256 << 10, "{left} bytes are left of nothing");
}
