use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::backlog::Backlog;
use crate::delta::{Cause, Change};
use crate::key::Key;
use crate::object::Object;

fn object(name: &str, uid: u64, version: u64) -> Object {
    let json = serde_json::json!({"metadata": {"name": name, "uid": uid.to_string(), "resourceVersion": version.to_string()}});
    crate::envelope::open(json.to_string().as_bytes()).unwrap()
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
    let mut backlog = Backlog::default();
    for change in before {
        backlog.push(change, Cause::Watch);
        let (ticket, _) = backlog.take(9).unwrap();
        backlog.ack(ticket);
    }
    for change in changes {
        backlog.push(change, Cause::Watch);
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
    let mut backlog = Backlog::default();
    backlog.push(&created(1, 1), Cause::Watch);
    let (ticket, _) = backlog.take(9).unwrap();
    backlog.push(&deleted(1, 2), Cause::Watch);
    assert!(backlog.take(9).is_none(), "one batch at a time");
    backlog.nack(ticket);
    let (_, told) = backlog.take(9).unwrap();
    assert_eq!(format!("{told:?}"), "[(deleted a@2, Watch)]");
}

#[test]
fn a_ticket_counts_once() {
    let mut backlog = Backlog::default();
    backlog.push(&created(1, 1), Cause::Watch);
    let (ticket, _) = backlog.take(9).unwrap();
    backlog.nack(ticket);
    backlog.ack(ticket);
    assert_eq!((backlog.depth(), backlog.in_hand()), (1, 0));
}

#[test]
fn a_subscriber_that_sleeps_costs_one_entry_per_live_key() {
    let mut backlog = Backlog::default();
    for number in 0..10_000_u64 {
        let name = format!("pod-{number}");
        backlog.push(
            &Change::Created(object(&name, number, 2 * number)),
            Cause::Watch,
        );
        backlog.push(
            &Change::Deleted {
                last: object(&name, number, 2 * number + 1),
                certain: true,
            },
            Cause::Watch,
        );
        backlog.push(
            &if number == 0 {
                created(1, 1)
            } else {
                updated(1, number, number + 1)
            },
            Cause::Watch,
        );
    }
    assert_eq!((backlog.depth(), backlog.high_water()), (1, 2));
}

#[derive(Clone, Debug)]
enum Op {
    Put(u8),
    Delete(u8),
    Take(usize),
    Ack,
    Nack,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0_u8..3).prop_map(Op::Put),
        3 => (0_u8..3).prop_map(Op::Delete),
        3 => (1_usize..3).prop_map(Op::Take),
        2 => Just(Op::Ack),
        1 => Just(Op::Nack),
    ]
}

proptest! {
    #[test]
    fn a_subscriber_that_hears_everything_knows_the_truth(ops in prop::collection::vec(op(), 0..60)) {
        let mut backlog = Backlog::default();
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
                    backlog.push(&change, Cause::Watch);
                }
                Op::Delete(id) => {
                    if let Some(last) = truth.remove(&Key::new(None, &id.to_string())) {
                        backlog.push(&Change::Deleted { last, certain: true }, Cause::Watch);
                    }
                }
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
        prop_assert_eq!(backlog.depth(), 0);
        let alive: BTreeSet<_> = truth.values().map(|object| object.meta().uid.to_string()).collect();
        prop_assert!(begun.difference(&alive).all(|uid| ended.contains(uid)));
    }
}
