use std::sync::Arc;

use super::{InformerCore, Permit};
use crate::delta::{Cause, Change, Delta, Trust};
use crate::delta_fifo::state::{Fifo, Replace};
use crate::key::Key;
use crate::kind::{Kind, Scope};
use crate::object::Object;
use crate::version::Version;

mod bytes;
mod hand;
mod interleavings;
mod voyage;
mod waiting;

fn core() -> Arc<InformerCore> {
    let kind = Kind {
        group: String::new(),
        version: "v1".into(),
        kind: "Pod".into(),
        plural: "pods".into(),
        namespaced: true,
    };
    InformerCore::new(kind, Scope::All)
}

fn object(name: &str, uid: u64, version: u64) -> Object {
    let json = serde_json::json!({"metadata": {"name": name, "uid": uid.to_string(), "resourceVersion": version.to_string()}, "spec": {"on": name}});
    crate::envelope::open(json.to_string().as_bytes()).unwrap()
}

fn key(name: &str) -> Key {
    Key::new(None, name)
}

fn gone(name: &str, uid: u64, version: u64) -> Delta {
    Delta::Gone {
        key: key(name),
        last: Some(object(name, uid, version)),
        version: Some(Version::new(&version.to_string())),
    }
}

/// Takes everything that is pending and commits it.
fn commit_all(core: &InformerCore, fifo: &mut Fifo<Permit>) {
    while let Some(batch) = fifo.pop(usize::MAX) {
        core.hand_over(batch);
        core.commit_in_hand();
    }
}

/// Hands a complete list over.
fn list(core: &InformerCore, fifo: &mut Fifo<Permit>, version: u64, objects: &[Object]) {
    let cause = if core.synced() {
        Cause::Relist
    } else {
        Cause::Initial
    };
    fifo.replace_begin(Replace::new(core.next_epoch(), Trust::Cached, cause));
    for object in objects {
        fifo.push(Delta::Listed(object.clone()), None);
    }
    fifo.replace_end(Version::new(&version.to_string()), true);
}

fn told(subscription: &crate::Subscription) -> Vec<String> {
    let Some(batch) = subscription.take(usize::MAX) else {
        return Vec::new();
    };
    let told = batch
        .changes()
        .iter()
        .map(|(change, cause)| format!("{cause:?}: {change:?}"))
        .collect();
    batch.ack();
    told
}

#[test]
fn unchanged_objects_in_a_relist_change_nothing_and_tell_nobody() {
    let (core, mut fifo) = (core(), Fifo::new(None, 0));
    let subscription = core.subscribe("test", || {});
    list(
        &core,
        &mut fifo,
        10,
        &[object("a", 1, 3), object("b", 2, 4)],
    );
    commit_all(&core, &mut fifo);
    assert_eq!(
        told(&subscription),
        ["Initial: created a@3", "Initial: created b@4"]
    );
    let before = core.get(&key("a")).unwrap();
    list(
        &core,
        &mut fifo,
        20,
        &[object("a", 1, 3), object("b", 2, 4)],
    );
    commit_all(&core, &mut fifo);
    assert!(told(&subscription).is_empty());
    assert_eq!(
        core.get(&key("a")).unwrap().json().as_ptr(),
        before.json().as_ptr(),
        "the stored object is not even rewritten"
    );
    assert_eq!(core.low_water(), Some(Version::new("20")));
    assert_eq!(core.status(std_now()).counters.unchanged, 2);
}

#[test]
fn a_key_queued_when_a_list_lacks_it_is_deleted_and_no_ghost_stays() {
    let (core, mut fifo) = (core(), Fifo::new(None, 0));
    let subscription = core.subscribe("test", || {});
    list(&core, &mut fifo, 10, &[object("a", 1, 3)]);
    commit_all(&core, &mut fifo);
    // queued, not yet stored, and gone before the list is read
    fifo.push(Delta::Seen(object("x", 9, 11)), None);
    list(&core, &mut fifo, 20, &[object("a", 1, 3)]);
    commit_all(&core, &mut fifo);
    assert_eq!(core.get(&key("x")).map(|object| object.key().clone()), None);
    assert_eq!(
        told(&subscription),
        ["Initial: created a@3"],
        "nobody had heard of it"
    );
}

#[test]
fn a_list_that_is_cut_off_deletes_nothing() {
    let (core, mut fifo) = (core(), Fifo::new(None, 0));
    list(
        &core,
        &mut fifo,
        10,
        &[object("a", 1, 3), object("b", 2, 4)],
    );
    commit_all(&core, &mut fifo);
    fifo.replace_begin(Replace::new(
        core.next_epoch(),
        Trust::Quorum,
        Cause::Relist,
    ));
    fifo.push(Delta::Listed(object("a", 1, 15)), None);
    fifo.replace_abort();
    commit_all(&core, &mut fifo);
    assert!(core.get(&key("b")).is_some());
    assert_eq!(
        core.low_water(),
        Some(Version::new("10")),
        "what the list said of its version does not count either"
    );
}

#[test]
fn a_list_with_items_nobody_can_be_named_for_deletes_nothing() {
    let (core, mut fifo) = (core(), Fifo::new(None, 0));
    list(
        &core,
        &mut fifo,
        10,
        &[object("a", 1, 3), object("b", 2, 4)],
    );
    commit_all(&core, &mut fifo);
    fifo.replace_begin(Replace::new(
        core.next_epoch(),
        Trust::Quorum,
        Cause::Relist,
    ));
    fifo.push(Delta::Listed(object("a", 1, 15)), None);
    fifo.replace_end(Version::new("20"), false);
    commit_all(&core, &mut fifo);
    assert!(core.get(&key("b")).is_some());
    assert_eq!(core.low_water(), Some(Version::new("20")));
}

#[test]
fn an_unreadable_object_keeps_its_key_through_a_list_until_it_is_readable_or_gone() {
    let (core, mut fifo) = (core(), Fifo::new(None, 0));
    let unreadable = |version: &str| Delta::Unreadable {
        key: key("a"),
        version: Some(Version::new(version)),
        reason: "broken".into(),
    };
    list(&core, &mut fifo, 10, &[object("a", 1, 3)]);
    fifo.push(unreadable("11"), None);
    commit_all(&core, &mut fifo);
    assert_eq!(core.status(std_now()).unreadable.len(), 1);

    fifo.replace_begin(Replace::new(
        core.next_epoch(),
        Trust::Cached,
        Cause::Relist,
    ));
    fifo.push(unreadable("11"), None);
    fifo.replace_end(Version::new("20"), true);
    commit_all(&core, &mut fifo);
    assert!(core.get(&key("a")).is_some());
    assert_eq!(core.status(std_now()).unreadable.len(), 1);

    fifo.push(Delta::Seen(object("a", 1, 21)), None);
    commit_all(&core, &mut fifo);
    assert!(core.status(std_now()).unreadable.is_empty());

    fifo.push(unreadable("22"), None);
    commit_all(&core, &mut fifo);
    list(&core, &mut fifo, 30, &[]);
    commit_all(&core, &mut fifo);
    assert!(core.status(std_now()).unreadable.is_empty() && core.get(&key("a")).is_none());
}

#[test]
fn the_low_water_mark_stays_behind_what_is_pending() {
    let (core, mut fifo) = (core(), Fifo::new(None, 0));
    list(&core, &mut fifo, 10, &[]);
    commit_all(&core, &mut fifo);
    for (name, version) in [("a", 11), ("b", 12), ("a", 13)] {
        fifo.push(Delta::Seen(object(name, 1, version)), None);
    }
    fifo.bookmark(Version::new("20"));
    core.hand_over(fifo.pop(1).unwrap());
    core.commit_in_hand();
    assert_eq!(
        core.get(&key("a")).unwrap().meta().resource_version,
        Version::new("13")
    );
    assert_eq!(core.low_water(), Some(Version::new("11")), "12 is pending");
    commit_all(&core, &mut fifo);
    assert_eq!(core.low_water(), Some(Version::new("20")));
}

#[test]
fn what_the_server_tells_again_after_a_crash_brings_no_deleted_object_back() {
    let (core, mut fifo) = (core(), Fifo::new(None, 0));
    let subscription = core.subscribe("test", || {});
    list(&core, &mut fifo, 10, &[object("a", 1, 3)]);
    commit_all(&core, &mut fifo);
    told(&subscription);
    fifo.push(Delta::Seen(object("a", 1, 11)), None);
    fifo.push(Delta::Seen(object("b", 2, 12)), None);
    fifo.push(gone("a", 1, 13), None);
    core.hand_over(fifo.pop(1).unwrap());
    core.commit_in_hand();
    assert_eq!(told(&subscription), ["Watch: deleted a@13"]);

    let mut fifo = Fifo::new(core.low_water(), core.epoch());
    for (step, delta) in [
        Delta::Seen(object("a", 1, 11)),
        Delta::Seen(object("b", 2, 12)),
        gone("a", 1, 13),
    ]
    .into_iter()
    .enumerate()
    {
        fifo.push(delta, None);
        commit_all(&core, &mut fifo);
        assert!(core.get(&key("a")).is_none(), "step {step}");
    }
    assert_eq!(told(&subscription), ["Watch: created b@12"]);
    assert_eq!(core.status(std_now()).counters.stale, 1);
}

#[test]
fn a_state_from_before_the_low_water_mark_brings_no_deleted_object_back() {
    let (core, mut fifo) = (core(), Fifo::new(None, 0));
    list(&core, &mut fifo, 10, &[object("a", 1, 3)]);
    fifo.push(gone("a", 1, 13), None);
    commit_all(&core, &mut fifo);
    fifo.push(Delta::Seen(object("a", 1, 11)), None);
    commit_all(&core, &mut fifo);
    assert!(core.get(&key("a")).is_none());
}

#[test]
fn a_cached_list_does_not_delete_what_is_newer_than_itself() {
    let (core, mut fifo) = (core(), Fifo::new(None, 0));
    let subscription = core.subscribe("test", || {});
    list(&core, &mut fifo, 10, &[object("a", 1, 3)]);
    commit_all(&core, &mut fifo);
    told(&subscription);
    for delta in [
        gone("a", 1, 11),
        Delta::Seen(object("b", 2, 12)),
        Delta::Seen(object("a", 3, 13)),
    ] {
        fifo.push(delta, None);
    }
    core.hand_over(fifo.pop(1).unwrap());
    core.commit_in_hand();
    assert_eq!(
        told(&subscription),
        ["Watch: deleted a@11", "Watch: created a@13"]
    );

    // the queue is lost, and the list that follows is of a time at which the name was free
    let mut fifo = Fifo::new(core.low_water(), core.epoch());
    list(&core, &mut fifo, 12, &[object("b", 2, 12)]);
    commit_all(&core, &mut fifo);
    assert_eq!(told(&subscription), ["Relist: created b@12"]);
    assert_eq!(
        core.get(&key("a")).unwrap().meta().resource_version,
        Version::new("13")
    );
}

#[test]
fn a_server_set_back_in_time_is_followed_by_an_authoritative_list_only() {
    let (core, mut fifo) = (core(), Fifo::new(None, 0));
    let subscription = core.subscribe("test", || {});
    list(
        &core,
        &mut fifo,
        100,
        &[object("a", 1, 90), object("b", 2, 95)],
    );
    commit_all(&core, &mut fifo);
    told(&subscription);
    fifo.push(Delta::Seen(object("a", 1, 50)), None);
    commit_all(&core, &mut fifo);
    assert!(told(&subscription).is_empty());

    fifo.replace_begin(Replace::new(
        core.next_epoch(),
        Trust::Quorum,
        Cause::Relist,
    ));
    fifo.push(Delta::Listed(object("a", 1, 50)), None);
    fifo.replace_end(Version::new("60"), true);
    fifo.push(Delta::Seen(object("c", 3, 61)), None);
    commit_all(&core, &mut fifo);
    assert_eq!(
        told(&subscription),
        [
            "Relist: updated a@50 from 90",
            "Relist: vanished b@95",
            "Watch: created c@61"
        ]
    );
    assert_eq!(core.low_water(), Some(Version::new("61")));
}

#[test]
fn a_subscriber_that_comes_late_is_told_everything_and_one_that_left_costs_nothing() {
    let (core, mut fifo) = (core(), Fifo::new(None, 0));
    for number in 0..1000 {
        drop(core.subscribe(format!("gone-{number}"), || {}));
    }
    list(&core, &mut fifo, 10, &[object("a", 1, 3)]);
    commit_all(&core, &mut fifo);
    let late = core.subscribe("late", || {});
    assert_eq!(core.status(std_now()).subscribers.len(), 1);
    assert_eq!(super::lock(&core.book).subscribers.len(), 1);
    assert_eq!(
        (late.initial(), told(&late)),
        (1, vec!["Initial: created a@3".to_owned()])
    );
    assert_eq!(late.initial(), 0);
    late.resync();
    assert_eq!(told(&late), ["Resync: updated a@3 from 3"]);
}

#[tokio::test(start_paused = true)]
async fn a_write_is_waited_for_by_its_version() {
    let (core, mut fifo) = (core(), Fifo::new(None, 0));
    let waiter = tokio::spawn({
        let core = core.clone();
        async move {
            core.wait_synced().await;
            core.wait_for(&key("a"), &Version::new("12")).await.unwrap();
        }
    });
    list(&core, &mut fifo, 10, &[object("a", 1, 3)]);
    commit_all(&core, &mut fifo);
    fifo.push(Delta::Seen(object("a", 1, 11)), None);
    commit_all(&core, &mut fifo);
    tokio::task::yield_now().await;
    assert!(!waiter.is_finished());
    fifo.push(Delta::Seen(object("a", 1, 12)), None);
    commit_all(&core, &mut fifo);
    waiter.await.unwrap();
    assert!(!core.has_reached(&key("a"), &Version::new("opaque")));
}

fn std_now() -> std::time::Instant {
    boatswain_supervision::Clock::system().now()
}
