use std::time::Duration;

use boatswain_workqueue::Added;

use super::*;

fn key(name: &str) -> Key {
    Key::new(Some("shop"), name)
}

/// A panic of whoever has the book open.
fn crash(shelf: &Shelf) {
    let crashed = catch_unwind(AssertUnwindSafe(|| {
        let _book = shelf.open();
        panic!("in the middle of something");
    }));
    assert!(crashed.is_err());
}

fn add(shelf: &Shelf, name: &str, causes: Causes) -> Added {
    let now = shelf.clock.now();
    shelf.open().queue.add(key(name), Lane::Normal, causes, now)
}

#[test]
fn a_queue_that_broke_is_made_anew_of_what_was_in_it_and_its_runs_go_on() {
    let shelf = Shelf::new(Clock::system(), 7);
    let now = shelf.clock.now();
    let _ = add(&shelf, "runs", Causes::CREATED);
    let run = shelf.open().queue.start(now).expect("it is ready");
    let _ = add(&shelf, "ghost", Causes::EXTERNAL);
    let _ = add(&shelf, "waits", Causes::CREATED);
    let until = now + Duration::from_secs(60);
    let mut book = shelf.open();
    let waits = book.queue.start(now).expect("it is ready");
    assert_eq!(waits.key, key("ghost"));
    let after = Verdict::RequeueAfter(until - now);
    let _ = book.finish(&waits.key, waits.run, after, now);
    drop(book);

    for crashes in 1..=2 {
        crash(&shelf);
        let mut book = shelf.open();
        assert!(book.mended && book.rebuild, "after {crashes} crashes");
        assert_eq!((book.queue.running(), book.queue.queued()), (1, 2));
        book.rebuild = false;
    }
    let mut book = shelf.open();
    assert!(!book.mended);
    let first = book.queue.start(now).expect("it is ready");
    assert!(
        first.key != key("runs"),
        "two runs of one key would overlap"
    );
    assert!(
        first
            .cause
            .is_some_and(|cause| cause.contains(Causes::REBUILT))
    );
    let ended = book.finish(&key("runs"), run.run, Verdict::Done, now);
    assert_eq!(ended, Next::Idle, "it began before the crashes");
    assert_eq!(
        book.finish(&key("runs"), run.run, Verdict::Done, now),
        Next::NotRunning
    );
    assert!(book.adopted.is_empty());
}
