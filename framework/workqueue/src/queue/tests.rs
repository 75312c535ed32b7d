use std::sync::Arc;

use super::*;
use crate::{Delay, Lane, Phase, origin};

mod answers;
mod asks;
mod entry;
mod model;
mod script;
mod storm;

type Plain = Queue<&'static str, ()>;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn failed(delay: Duration) -> Verdict {
    Verdict::Backoff {
        delay,
        fault: Fault::Object,
    }
}

fn queue() -> Plain {
    Queue::new(QueueOptions::default())
}

/// Adds an idle key and starts it.
fn run(queue: &mut Plain, key: &'static str, now: Instant) -> RunId {
    let _ = queue.add(key, Lane::Normal, (), now);
    let activation = queue.start(now).expect("it was just added");
    assert_eq!(activation.key, key);
    activation.run
}

#[test]
fn any_number_of_adds_during_a_run_lead_to_one_more() {
    let now = origin();
    let mut queue = queue();
    let first = run(&mut queue, "a", now);
    assert_eq!(queue.add("a", Lane::Normal, (), now), Added::Dirty);
    assert!((0..100).all(|_| queue.add("a", Lane::Normal, (), now) == Added::Coalesced));
    assert!(queue.start(now).is_none(), "two at once");
    assert_eq!(queue.finish(&"a", first, Verdict::Done, now), Next::Queued);
    let second = queue.start(now).expect("one more");
    assert_eq!(
        queue.finish(&"a", second.run, Verdict::Done, now),
        Next::Idle
    );
    assert!(queue.is_empty());
}

#[test]
fn an_event_does_not_hurry_a_failing_key() {
    let now = origin();
    let mut queue = queue();
    let first = run(&mut queue, "a", now);
    let delay = Delay {
        until: now + ms(100),
        why: Wait::Backoff(Fault::Object),
        failures: 1,
    };
    assert_eq!(
        queue.finish(&"a", first, failed(ms(100)), now),
        Next::Waiting(delay)
    );
    assert_eq!(queue.add("a", Lane::User, (), now + ms(1)), Added::Backoff);
    assert!(queue.start(now + ms(99)).is_none());
    assert_eq!(queue.due(&"a", now + ms(99)), Due::Early(delay));
    assert_eq!(queue.due(&"a", now + ms(100)), Due::Queued);
    let second = queue.start(now + ms(100)).expect("its wait is over");
    assert_eq!((second.attempt(), second.lane), (2, Lane::User));
}

#[test]
fn an_event_uses_up_a_requeue_and_its_timer_is_void() {
    let now = origin();
    let mut queue = queue();
    let first = run(&mut queue, "a", now);
    let until = now + ms(5000);
    let delay = Delay {
        until,
        why: Wait::Requeue,
        failures: 0,
    };
    assert_eq!(
        queue.finish(&"a", first, Verdict::RequeueAfter(ms(5000)), now),
        Next::Waiting(delay)
    );
    assert_eq!(queue.add("a", Lane::Low, (), now), Added::Woken);
    let second = queue.start(now).expect("woken");
    assert_eq!(second.lane, Lane::Low, "a resync stays a resync");
    assert_eq!(
        queue.finish(&"a", second.run, Verdict::Done, now),
        Next::Idle
    );
    assert_eq!(queue.due(&"a", until), Due::Stale);
}

#[test]
fn an_event_during_the_run_goes_before_its_requeue() {
    let now = origin();
    let mut queue = queue();
    let first = run(&mut queue, "a", now);
    assert_eq!(queue.add("a", Lane::Normal, (), now), Added::Dirty);
    assert_eq!(
        queue.finish(&"a", first, Verdict::RequeueAfter(ms(5000)), now),
        Next::Queued
    );
}

#[test]
fn a_longer_requeue_survives_the_timer_of_a_shorter_one() {
    let now = origin();
    let mut queue = queue();
    let first = run(&mut queue, "a", now);
    let _ = queue.finish(&"a", first, Verdict::RequeueAfter(ms(1000)), now);
    let second = run(&mut queue, "a", now);
    let _ = queue.finish(&"a", second, Verdict::RequeueAfter(ms(9000)), now);
    let Due::Early(delay) = queue.due(&"a", now + ms(1000)) else {
        panic!("the wait was ended or lost")
    };
    assert_eq!(delay.until, now + ms(9000));
    assert_eq!(queue.due(&"a", now + ms(9000)), Due::Queued);
}

#[test]
fn outages_and_conflicts_are_no_strikes_and_success_forgives_all() {
    let now = origin();
    let mut queue = queue();
    let streak = |failures, strikes, conflicts| Streak {
        failures,
        strikes,
        conflicts,
        ..Streak::default()
    };
    let steps = [
        (Verdict::Again { delay: ms(0) }, streak(0, 0, 1)),
        (Verdict::Again { delay: ms(0) }, streak(0, 0, 2)),
        (
            Verdict::Backoff {
                delay: ms(0),
                fault: Fault::Infrastructure,
            },
            streak(1, 0, 0),
        ),
        (
            Verdict::Backoff {
                delay: ms(0),
                fault: Fault::Object,
            },
            streak(2, 1, 0),
        ),
        (Verdict::Again { delay: ms(0) }, streak(2, 1, 1)),
        (Verdict::RequeueAfter(ms(0)), streak(0, 0, 0)),
    ];
    let mut run = run(&mut queue, "a", now);
    for (verdict, expected) in steps {
        assert_eq!(queue.finish(&"a", run, verdict, now), Next::Queued);
        let activation = queue.start(now).expect("no delay was asked for");
        assert_eq!(activation.streak, expected);
        run = activation.run;
    }
}

#[test]
fn a_report_that_comes_twice_or_from_an_earlier_queue_ends_nothing() {
    let now = origin();
    let mut queue = queue();
    let first = run(&mut queue, "a", now);
    let _ = queue.add("a", Lane::Normal, (), now);
    assert_eq!(queue.finish(&"a", first, Verdict::Done, now), Next::Queued);
    let second = queue.start(now).expect("dirty").run;
    assert_eq!(
        queue.finish(&"a", first, Verdict::Done, now),
        Next::NotRunning
    );
    assert_eq!(
        queue.finish(&"b", second, Verdict::Done, now),
        Next::NotRunning
    );

    let mut rebuilt: Plain = Queue::new(QueueOptions {
        epoch: 1,
        ..QueueOptions::default()
    });
    let third = run(&mut rebuilt, "a", now);
    assert_eq!(
        rebuilt.finish(&"a", first, Verdict::Done, now),
        Next::NotRunning
    );
    assert_eq!(rebuilt.finish(&"a", third, Verdict::Done, now), Next::Idle);
    assert_eq!(queue.finish(&"a", second, Verdict::Done, now), Next::Idle);
}

#[test]
fn a_rebuilt_queue_waits_for_a_run_that_outlived_its_predecessor() {
    let now = origin();
    let mut queue = queue();
    let _ = queue.add("a", Lane::Normal, (), now);
    let run = queue.adopt("a", now).expect("it was not running");
    assert_eq!(queue.adopt("a", now), None);
    assert!(queue.start(now).is_none(), "two at once");
    assert_eq!(queue.finish(&"a", run, Verdict::Done, now), Next::Queued);
}

#[test]
fn a_parked_key_shows_its_reason_and_an_event_wakes_it() {
    let now = origin();
    let mut queue = queue();
    let first = run(&mut queue, "a", now);
    assert_eq!(
        queue.finish(&"a", first, Verdict::Park("no such class".into()), now),
        Next::Parked
    );
    let view = queue.state_of(&"a").expect("parked is not idle");
    assert_eq!(
        view.phase,
        Phase::Parked {
            reason: "no such class"
        }
    );
    assert_eq!(
        queue.add("a", Lane::Normal, (), now + ms(10_000)),
        Added::Woken
    );
}

#[test]
fn a_key_whose_own_writes_wake_it_runs_once_per_rest() {
    let start = origin();
    let mut queue = queue();
    let mut now = start;
    let mut runs = 0;
    let _ = queue.add("a", Lane::Normal, (), now);
    while now < start + ms(60_000) {
        while let Some(activation) = queue.start(now) {
            runs += 1;
            let _ = queue.add("a", Lane::Normal, (), now); // its own status write, seen at once
            let _ = queue.finish(&"a", activation.run, Verdict::Park("broken".into()), now);
            let _ = queue.add("a", Lane::Normal, (), now); // another, seen late
        }
        now += ms(100);
        let _ = queue.due(&"a", now);
    }
    assert_eq!(runs, 6);
}

#[test]
fn an_event_soon_after_parking_is_kept_until_the_key_has_rested() {
    let now = origin();
    let mut queue = queue();
    let first = run(&mut queue, "a", now);
    let _ = queue.finish(&"a", first, Verdict::Park("broken".into()), now);
    let Added::Delayed(delay) = queue.add("a", Lane::Normal, (), now + ms(1)) else {
        panic!("not delayed")
    };
    assert_eq!(delay.until, now + ms(10_000));
    assert_eq!(queue.due(&"a", delay.until), Due::Queued);
}

#[test]
fn a_hand_wakes_at_once_and_forgives() {
    let now = origin();
    let mut queue = queue();
    for key in ["a", "b", "c"] {
        let run = run(&mut queue, key, now);
        let verdict = if key == "c" {
            failed(ms(5000))
        } else {
            Verdict::Park("broken".into())
        };
        let _ = queue.finish(&key, run, verdict, now);
    }
    assert!(queue.unpark(&"a", now));
    assert!(!queue.unpark(&"a", now), "not parked any more");
    assert!(!queue.unpark(&"c", now), "waits, is not parked");
    assert!(queue.promote(&"b", Lane::User, now));
    assert!(queue.promote(&"c", Lane::User, now));
    assert!(!queue.promote(&"idle", Lane::User, now));
    let order: Vec<_> = std::iter::from_fn(|| queue.start(now))
        .map(|run| (run.key, run.attempt()))
        .collect();
    assert_eq!(order, [("b", 1), ("c", 2), ("a", 1)]);
}

#[test]
fn parked_keys_are_tried_again_by_age_with_their_streak() {
    let now = origin();
    let mut queue = queue();
    for (key, at) in [("a", 0), ("b", 10), ("c", 20)] {
        let run = run(&mut queue, key, now + ms(at));
        let _ = queue.finish(&key, run, Verdict::Park("broken".into()), now + ms(at));
    }
    assert_eq!(queue.wake_parked(now + ms(10), now + ms(30)), ["a", "b"]);
    assert_eq!((queue.depth(Lane::Low), queue.parked()), (2, 1));
    let order: Vec<_> = std::iter::from_fn(|| queue.start(now))
        .map(|run| (run.key, run.attempt()))
        .collect();
    assert_eq!(order, [("a", 2), ("b", 2)]);
}

#[test]
fn a_removed_key_still_excludes_a_second_run_but_its_verdict_is_void() {
    let now = origin();
    let mut queue = queue();
    let first = run(&mut queue, "a", now);
    let _ = queue.add("a", Lane::Normal, (), now);
    assert!(queue.remove(&"a"));
    assert!(queue.start(now).is_none(), "two at once");
    assert_eq!(queue.finish(&"a", first, failed(ms(100)), now), Next::Idle);

    let second = run(&mut queue, "a", now);
    assert!(queue.remove(&"a"));
    assert_eq!(
        queue.add("a", Lane::Normal, (), now),
        Added::Dirty,
        "born again"
    );
    assert_eq!(
        queue.finish(&"a", second, failed(ms(100)), now),
        Next::Queued
    );
    assert_eq!(queue.start(now).map(|run| run.attempt()), Some(1));
    assert!(!queue.remove(&"idle"));
}

#[test]
fn clearing_keeps_only_what_runs() {
    let now = origin();
    let mut queue = queue();
    let parked = run(&mut queue, "parked", now);
    let _ = queue.finish(&"parked", parked, Verdict::Park("broken".into()), now);
    let waiting = run(&mut queue, "waiting", now);
    let _ = queue.finish(&"waiting", waiting, failed(ms(100)), now);
    let running = run(&mut queue, "running", now);
    let _ = queue.add("queued", Lane::Normal, (), now);
    queue.clear();
    let left: Vec<_> = queue
        .cells()
        .map(|(key, view)| (*key, view.phase))
        .collect();
    assert_eq!(left, [("running", Phase::Running { dirty: false })]);
    assert_eq!(
        queue.finish(&"running", running, failed(ms(100)), now),
        Next::Idle
    );
    assert!(queue.is_empty() && queue.start(now).is_none());
}

#[test]
fn depths_ages_and_high_water_tell_what_stands_in_the_lanes() {
    let now = origin();
    let mut queue = queue();
    let _ = queue.add("low", Lane::Low, (), now);
    let _ = queue.add("normal", Lane::Normal, (), now + ms(10));
    let _ = queue.add("low", Lane::Normal, (), now + ms(20));
    assert_eq!(Lane::ALL.map(|lane| queue.depth(lane)), [0, 2, 0]);
    assert_eq!(
        queue.oldest_age(Lane::Normal, now + ms(30)),
        ms(30),
        "lifting keeps the age"
    );
    assert_eq!(queue.oldest_age(Lane::Low, now + ms(30)), ms(0));
    let _ = queue.start(now);
    assert_eq!(
        (queue.queued(), queue.running(), queue.high_water()),
        (1, 1, 2)
    );
}

#[test]
fn endless_delays_do_not_overflow() {
    let now = origin();
    let mut queue = queue();
    let first = run(&mut queue, "a", now);
    let Next::Waiting(delay) = queue.finish(&"a", first, Verdict::RequeueAfter(Duration::MAX), now)
    else {
        panic!("lost")
    };
    assert!(delay.until > now + Duration::from_secs(365 * 24 * 3600));
}

#[test]
fn memory_follows_live_keys_not_names_ever_seen() {
    let now = origin();
    let mut queue: Queue<u64, ()> = Queue::new(QueueOptions::default());
    for name in 0..50_000 {
        let _ = queue.add(name, Lane::Normal, (), now);
        let run = queue.start(now).expect("added").run;
        let _ = queue.finish(&name, run, Verdict::Done, now);
    }
    assert!(
        queue.cells.capacity() <= 64,
        "room for {} cells",
        queue.cells.capacity()
    );
    for name in 0..50_000 {
        let _ = queue.add(name, Lane::Normal, (), now);
    }
    while let Some(activation) = queue.start(now) {
        let _ = queue.finish(&activation.key, activation.run, Verdict::Done, now);
    }
    assert!(
        queue.cells.capacity() <= 128,
        "room for {} cells after the burst",
        queue.cells.capacity()
    );
}

#[test]
fn a_key_is_freed_when_it_is_idle() {
    let now = origin();
    let key: Arc<str> = "a".into();
    let mut queue: Queue<Arc<str>, ()> = Queue::new(QueueOptions::default());
    for verdict in [
        failed(ms(0)),
        Verdict::Again { delay: ms(0) },
        Verdict::Done,
    ] {
        let _ = queue.add(key.clone(), Lane::Normal, (), now);
        let run = queue.start(now).expect("added").run;
        let _ = queue.finish(&key, run, verdict, now);
    }
    assert!(queue.is_empty());
    assert_eq!(Arc::strong_count(&key), 1);
}
