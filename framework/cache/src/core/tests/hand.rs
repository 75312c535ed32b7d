//! The batch in hand, and the code of users around it.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::store::IndexSpec;

#[test]
fn an_index_that_fails_or_panics_for_an_object_leaves_it_stored_and_found_by_the_others() {
    let (core, mut fifo) = (core(), Fifo::new(None, 0));
    core.add_index(IndexSpec::path("spec.on"));
    core.add_index(IndexSpec::closure("picky", |object| {
        match object.key().name() {
            "fails" => Err("no".into()),
            "panics" => panic!("as asked"),
            name => Ok(vec![name.to_uppercase()]),
        }
    }));
    list(
        &core,
        &mut fifo,
        10,
        &[
            object("fails", 1, 3),
            object("panics", 2, 4),
            object("works", 3, 5),
        ],
    );
    commit_all(&core, &mut fifo);
    let found = |index: &str, value: &str| core.reader().keys_by_index(index, value).unwrap().len();
    assert_eq!(
        (
            found("spec.on", "fails"),
            found("spec.on", "panics"),
            found("picky", "WORKS")
        ),
        (1, 1, 1)
    );
    assert_eq!(core.status(std_now()).counters.unindexed, 2);
    core.add_index(IndexSpec::closure("late", |object| {
        Ok(vec![object.key().name().len().to_string()])
    }));
    assert_eq!(found("late", "5"), 2);
}

#[test]
fn an_index_function_that_hangs_holds_up_neither_readers_nor_observers_nor_the_queue() {
    let (core, mut fifo) = (core(), Fifo::new(None, 0));
    list(&core, &mut fifo, 10, &[object("a", 1, 3)]);
    commit_all(&core, &mut fifo);
    let (entered, release) = (std::sync::mpsc::channel(), std::sync::mpsc::channel::<()>());
    let hang = std::sync::Mutex::new((entered.0, release.1));
    core.add_index(IndexSpec::closure("hangs", move |object| {
        if object.key().name() == "slow" {
            let (entered, release) = &*hang.lock().unwrap();
            entered.send(()).unwrap();
            release.recv().unwrap();
        }
        Ok(Vec::new())
    }));
    fifo.push(Delta::Seen(object("slow", 2, 11)), None);
    core.hand_over(fifo.pop(1).unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| core.commit_in_hand());
        entered.1.recv().unwrap();
        assert!(!core.hand_is_free());
        assert!(core.get(&key("a")).is_some() && core.get(&key("slow")).is_none());
        assert_eq!(core.status(std_now()).objects, 1);
        let subscription = core.subscribe("meanwhile", || {});
        core.add_index(IndexSpec::path("spec.on"));
        release.0.send(()).unwrap();
        // the index that came in between asks again
        entered.1.recv().unwrap();
        release.0.send(()).unwrap();
        while !core.hand_is_free() {
            std::thread::yield_now();
        }
        assert_eq!(subscription.depth(), 2);
    });
    assert_eq!(
        core.reader().keys_by_index("spec.on", "slow").unwrap(),
        [key("slow")]
    );
}

#[test]
fn a_batch_begun_by_an_indexer_that_died_is_done_key_by_key_and_the_killer_is_set_aside() {
    let (core, mut fifo) = (core(), Fifo::new(None, 0));
    list(
        &core,
        &mut fifo,
        10,
        &[object("a", 1, 3), object("bomb", 2, 4), object("c", 3, 5)],
    );
    core.hand_over(fifo.pop(usize::MAX).unwrap());
    // as the deaths of two indexers leave it: in the whole batch, then alone on its second key
    {
        let mut hand = crate::sync::lock(&core.hand);
        let in_hand = hand.as_mut().unwrap();
        (in_hand.begun, in_hand.done) = (2, 1);
    }
    core.commit_in_hand();
    assert!(core.hand_is_free());
    assert!(core.get(&key("bomb")).is_none() && core.get(&key("c")).is_some());
    let status = core.status(std_now());
    assert_eq!(status.unreadable[0].0, key("bomb"));
    assert!(status.synced && status.counters.replays == 1);
}

#[test]
fn a_batch_replayed_as_a_whole_tells_nobody_twice() {
    let (core, mut fifo) = (core(), Fifo::new(None, 0));
    let subscription = core.subscribe("test", || {});
    list(
        &core,
        &mut fifo,
        10,
        &[object("a", 1, 3), object("b", 2, 4)],
    );
    core.hand_over(fifo.pop(usize::MAX).unwrap());
    {
        let mut hand = crate::sync::lock(&core.hand);
        let in_hand = hand.as_mut().unwrap();
        in_hand.begun = 1;
        core.commit(&in_hand.batch.steps, None);
    }
    core.commit_in_hand();
    assert_eq!(
        told(&subscription),
        ["Initial: created a@3", "Initial: created b@4"]
    );
    assert_eq!(core.low_water(), Some(Version::new("10")));
}

#[test]
fn a_notification_that_panics_harms_nobody_else() {
    let (core, mut fifo) = (core(), Fifo::new(None, 0));
    let woken = Arc::new(AtomicUsize::new(0));
    let count = woken.clone();
    let bad = core.subscribe("bad", || panic!("as asked"));
    let good = core.subscribe("good", move || {
        count.fetch_add(1, Ordering::Relaxed);
    });
    list(&core, &mut fifo, 10, &[object("a", 1, 3)]);
    commit_all(&core, &mut fifo);
    assert_eq!(
        (woken.load(Ordering::Relaxed), good.depth(), bad.depth()),
        (1, 1, 1)
    );
}

#[test]
fn a_key_replayed_with_an_end_and_a_beginning_of_an_authoritative_list_tells_nobody_twice() {
    let (core, mut fifo) = (core(), Fifo::new(None, 0));
    let subscription = core.subscribe("test", || {});
    list(&core, &mut fifo, 10, &[object("a", 1, 3)]);
    commit_all(&core, &mut fifo);
    told(&subscription);
    fifo.replace_begin(Replace::new(
        core.next_epoch(),
        Trust::Quorum,
        Cause::Relist,
    ));
    fifo.push(Delta::Listed(object("a", 1, 11)), None);
    fifo.replace_end(Version::new("11"), true);
    fifo.push(gone("a", 1, 12), None);
    fifo.push(Delta::Seen(object("a", 2, 13)), None);
    core.hand_over(fifo.pop(usize::MAX).unwrap());
    {
        let mut hand = crate::sync::lock(&core.hand);
        let in_hand = hand.as_mut().unwrap();
        in_hand.begun = 1;
        core.commit(&in_hand.batch.steps[..1], None);
    }
    core.commit_in_hand();
    assert_eq!(
        told(&subscription),
        ["Watch: deleted a@12", "Watch: created a@13"]
    );
}

#[test]
fn a_notification_that_gives_back_what_it_took_is_not_called_for_that_without_end() {
    let (core, mut fifo) = (core(), Fifo::new(None, 0));
    let own: Arc<std::sync::OnceLock<crate::Subscription>> = Arc::default();
    let calls = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let (slot, counted) = (own.clone(), calls.clone());
    let subscription = core.subscribe("test", move || {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if let Some(own) = slot.get() {
            drop(own.take(usize::MAX));
        }
    });
    own.set(subscription).unwrap();
    fifo.push(Delta::Seen(object("a", 1, 1)), None);
    commit_all(&core, &mut fifo);
    assert_eq!(calls.load(std::sync::atomic::Ordering::Relaxed), 1);
    assert_eq!(own.get().unwrap().depth(), 1, "it waits for the next");
}

#[test]
fn an_index_that_takes_its_time_over_what_is_stored_holds_up_nobody_and_misses_no_change() {
    let (core, mut fifo) = (core(), Fifo::new(None, 0));
    for name in ["a", "b", "c"] {
        fifo.push(Delta::Seen(object(name, 1, 1)), None);
    }
    commit_all(&core, &mut fifo);
    let (shared, asked) = (Arc::downgrade(&core), AtomicUsize::new(0));
    core.add_index(IndexSpec::closure("version", move |object| {
        let core = shared.upgrade().unwrap();
        if asked.fetch_add(1, Ordering::Relaxed) == 2 {
            assert!(core.book.try_lock().is_ok(), "others would wait");
            let mut fifo = Fifo::new(core.low_water(), 0);
            fifo.push(Delta::Seen(super::object("a", 1, 5)), None);
            fifo.push(gone("b", 1, 6), None);
            fifo.push(Delta::Seen(super::object("d", 1, 7)), None);
            commit_all(&core, &mut fifo);
        }
        let value = object.meta().resource_version.to_string();
        if value == "7" {
            Err("odd".into())
        } else {
            Ok(vec![value])
        }
    }));
    let found = |version| core.reader().keys_by_index("version", version).unwrap();
    assert_eq!(found("5"), [key("a")]);
    assert_eq!(found("1"), [key("c")]);
    assert!(found("7").is_empty());
    assert_eq!(core.status(std_now()).counters.unindexed, 1);
}
