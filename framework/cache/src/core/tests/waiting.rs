//! What ends a wait for the store.

use std::time::{Duration, SystemTime};

use boatswain_supervision::Clock;
use futures::FutureExt;

use super::*;
use crate::core::WaitError;
use crate::object::Uid;

fn version(number: u64) -> Version {
    Version::new(&number.to_string())
}

fn synced() -> (Arc<InformerCore>, Fifo<Permit>) {
    let (core, mut fifo) = (core(), Fifo::new(None, 0));
    list(&core, &mut fifo, 10, &[object("a", 1, 3)]);
    commit_all(&core, &mut fifo);
    (core, fifo)
}

#[test]
fn a_write_whose_object_was_deleted_meanwhile_is_reached_by_its_deletion() {
    let (core, mut fifo) = synced();
    let wait_key = key("a");
    let wanted = version(11);
    let mut wait = std::pin::pin!(core.wait_for(&wait_key, &wanted));
    assert_eq!(wait.as_mut().now_or_never(), None);
    fifo.push(gone("a", 1, 12), None);
    commit_all(&core, &mut fifo);
    assert_eq!(wait.now_or_never(), Some(Ok(())));
    assert!(core.get(&key("a")).is_none());
}

#[test]
fn a_write_whose_object_was_replaced_by_another_incarnation_is_reached_by_that() {
    let (core, mut fifo) = synced();
    fifo.push(gone("a", 1, 11), None);
    fifo.push(Delta::Seen(object("a", 2, 12)), None);
    commit_all(&core, &mut fifo);
    assert_eq!(
        core.wait_for(&key("a"), &version(11)).now_or_never(),
        Some(Ok(()))
    );
}

#[test]
fn a_deletion_is_waited_for_until_that_incarnation_is_gone() {
    let (core, mut fifo) = synced();
    let (name, uid) = (key("a"), Uid::from("1"));
    // the answer to a deletion carries the version before it, which the cache may have long shown
    assert_eq!(
        core.wait_for(&name, &version(3)).now_or_never(),
        Some(Ok(()))
    );
    let mut wait = std::pin::pin!(core.wait_gone(&name, &uid));
    assert_eq!(wait.as_mut().now_or_never(), None);
    fifo.push(gone("a", 1, 11), None);
    fifo.push(Delta::Seen(object("a", 2, 12)), None);
    commit_all(&core, &mut fifo);
    assert_eq!(wait.now_or_never(), Some(Ok(())));
}

#[test]
fn an_absence_before_the_first_list_is_no_absence() {
    let core = core();
    let (name, uid) = (key("a"), Uid::from("1"));
    assert_eq!(core.wait_gone(&name, &uid).now_or_never(), None);
}

#[test]
fn a_key_outside_of_what_is_mirrored_is_not_waited_for() {
    let core = InformerCore::new(core().kind().clone(), Scope::Namespace("mine".into()));
    let theirs = Key::new(Some("theirs"), "a");
    let answer = core.wait_for(&theirs, &version(1)).now_or_never();
    assert!(
        matches!(answer, Some(Err(WaitError::OutOfScope { .. }))),
        "{answer:?}"
    );
    let answer = core.wait_until(&theirs, |_| true).now_or_never();
    assert!(matches!(answer, Some(Err(WaitError::OutOfScope { .. }))));
}

#[test]
fn an_informer_that_ends_ends_the_waits_for_it_and_what_it_has_stays_readable() {
    let (core, _) = synced();
    let (name, wanted) = (key("a"), version(11));
    let mut wait = std::pin::pin!(core.wait_for(&name, &wanted));
    assert_eq!(wait.as_mut().now_or_never(), None);
    core.retire();
    let answer = wait.now_or_never();
    assert!(
        matches!(answer, Some(Err(WaitError::Ended { .. }))),
        "{answer:?}"
    );
    assert_eq!(
        core.wait_for(&name, &version(3)).now_or_never(),
        Some(Ok(())),
        "what is there is there"
    );
    assert!(core.retired() && !core.fresh() && core.get(&name).is_some());
}

#[test]
fn a_server_that_is_set_back_ends_the_waits_for_versions_it_has_forgotten() {
    let (core, mut fifo) = synced();
    let (name, wanted) = (key("a"), version(11));
    let mut wait = std::pin::pin!(core.wait_for(&name, &wanted));
    assert_eq!(wait.as_mut().now_or_never(), None);
    fifo.replace_begin(Replace::new(
        core.next_epoch(),
        Trust::Restored,
        Cause::Relist,
    ));
    fifo.push(Delta::Listed(object("a", 1, 2)), None);
    fifo.replace_end(version(5), true);
    commit_all(&core, &mut fifo);
    let answer = wait.now_or_never();
    assert!(
        matches!(answer, Some(Err(WaitError::SetBack { .. }))),
        "{answer:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_bounded_wait_ends_in_time_and_says_how_the_informer_was() {
    let clock = Clock::paused(SystemTime::UNIX_EPOCH);
    let (core, name, limit) = (core(), key("a"), Duration::from_secs(5));
    let begun = clock.now();
    let error = core
        .within(&clock, limit, core.wait_for(&name, &version(11)))
        .await
        .unwrap_err();
    assert_eq!(clock.now() - begun, limit);
    assert!(error.to_string().contains("pods in *") && error.to_string().contains("not synced"));
    let mut fifo = Fifo::new(None, 0);
    list(&core, &mut fifo, 10, &[]);
    commit_all(&core, &mut fifo);
    let error = core
        .within(&clock, limit, core.wait_for(&name, &version(11)))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("no watch is open"), "{error}");
    let wanted = version(9);
    let done = core.within(&clock, limit, core.wait_for(&name, &wanted));
    assert_eq!(done.await, Ok(()));
}

#[test]
fn an_event_is_a_sign_of_life_and_a_sign_of_life_is_no_event() {
    let (core, now) = (core(), std_now());
    let seconds = Duration::from_secs;
    assert_eq!(core.freshness(now).contact_age, None);
    core.note_event(now);
    core.note_contact(now + seconds(60));
    let freshness = core.freshness(now + seconds(90));
    assert_eq!(freshness.event_age, Some(seconds(90)));
    assert_eq!(freshness.contact_age, Some(seconds(30)));
    core.note_event(now + seconds(90));
    let status = core.status(now + seconds(91));
    assert_eq!(
        (status.last_event_age, status.last_contact_age),
        (Some(seconds(1)), Some(seconds(1)))
    );
}

#[test]
fn lists_and_watches_are_tallied_from_their_beginning_to_their_end() {
    let (core, now) = (core(), std_now());
    let seconds = Duration::from_secs;
    core.note_watch_ended(now);
    core.note_list_begun(now);
    core.count(|counters| counters.listed += 7);
    core.note_list_begun(now + seconds(1));
    core.count(|counters| counters.listed += 3);
    core.note_list_read(now + seconds(3));
    core.note_list_read(now + seconds(9));
    core.note_watch_opened(now);
    core.note_watch_ended(now + Duration::from_millis(500));
    core.note_watch_opened(now);
    core.count(|counters| {
        counters.events.insert("added", 2);
        counters.events.insert("bookmark", 5);
    });
    core.note_watch_ended(now + Duration::from_millis(500));
    let counters = core.status(now).counters;
    let (lists, items) = (counters.list_micros, counters.list_items);
    assert_eq!((lists.count, lists.sum), (1, 2_000_000), "one broke off");
    assert_eq!((items.count, items.sum), (1, 3));
    let (watches, events) = (counters.watch_micros, counters.watch_events);
    assert_eq!((watches.count, watches.sum), (2, 1_000_000));
    assert_eq!(
        (events.count, events.sum, counters.short_watches),
        (2, 2, 1)
    );
}
