//! What keys hold on the heap, counted. Their names are not: whoever stores the objects has them anyway.

#![allow(clippy::expect_used, reason = "a test that cannot begin has failed")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use allocation_counter::measure;
use boatswain_workqueue::{
    Added, Fault, Lane, Merge, Next, Pacer, Queue, QueueOptions, Verdict, When,
};

type Key = Arc<str>;

/// A set of flags, as a dispatcher has them.
#[derive(Clone, Copy, Debug)]
struct Causes(u32);

impl Merge for Causes {
    fn merge(&mut self, later: Self) {
        self.0 |= later.0;
    }
}

const COUNT: usize = 100_000;

#[expect(clippy::disallowed_methods, reason = "an origin, not a measurement")]
fn origin() -> Instant {
    Instant::now()
}

fn keys() -> Vec<Key> {
    (0..COUNT)
        .map(|n| format!("namespace/object-{n}").into())
        .collect()
}

fn queue() -> Queue<Key, Causes> {
    Queue::new(QueueOptions::default())
}

/// Bytes a key that `put` brings into a queue holds there.
fn each(put: impl Fn(&mut Queue<Key, Causes>, Key, Instant)) -> i64 {
    let (keys, now) = (keys(), origin());
    let mut kept = None;
    let held = measure(|| {
        let mut queue = queue();
        for key in &keys {
            put(&mut queue, key.clone(), now);
        }
        kept = Some(queue);
    });
    assert!(kept.is_some());
    held.bytes_current / COUNT as i64
}

/// Runs the key and ends the run so.
fn end(queue: &mut Queue<Key, Causes>, key: Key, verdict: Verdict, now: Instant) -> Next {
    let _ = queue.add(key, Lane::Normal, Causes(1), now);
    let run = queue.start(now).expect("it was just added");
    queue.finish(&run.key, run.run, verdict, now)
}

fn failed() -> Verdict {
    Verdict::Backoff {
        delay: Duration::from_secs(1),
        fault: Fault::Object,
    }
}

#[test]
fn a_key_that_is_idle_holds_nothing() {
    let held = each(|queue, key, now| {
        assert_eq!(end(queue, key, Verdict::Done, now), Next::Idle);
    });
    assert_eq!(held, 0);
}

#[test]
fn a_key_that_is_queued_fits_into_its_bytes() {
    let held = each(|queue, key, now| {
        assert_eq!(queue.add(key, Lane::Normal, Causes(1), now), Added::Queued);
    });
    assert!(held <= 150, "{held} bytes");
}

#[test]
fn a_key_that_waits_fits_into_its_bytes_and_a_far_deadline_costs_what_a_near_one_does() {
    for far in [1, 365 * 24 * 3600] {
        let held = each(|queue, key, now| {
            let until = now + Duration::from_secs(far);
            let added = queue.schedule(key, Lane::Low, Causes(1), until, When::Earliest, now);
            assert!(matches!(added, Added::Delayed(_)));
        });
        assert!(held <= 175, "{held} bytes");
    }
}

#[test]
fn a_key_that_backs_off_fits_into_its_bytes_with_its_place_at_the_pacers() {
    let (keys, now) = (keys(), origin());
    let mut kept = None;
    let held = measure(|| {
        let (mut queue, mut pacer) = (queue(), Pacer::<Key>::default());
        for key in &keys {
            if let Next::Waiting(delay) = end(&mut queue, key.clone(), failed(), now) {
                pacer.insert(key.clone(), delay);
            }
        }
        assert_eq!((queue.waiting(), pacer.len()), (COUNT, COUNT));
        kept = Some((queue, pacer));
    });
    let held = held.bytes_current / COUNT as i64;
    assert!(kept.is_some());
    assert!(held <= 360, "{held} bytes");
}

#[test]
fn a_key_that_is_parked_fits_into_its_bytes_beside_its_reason() {
    let held = each(|queue, key, now| {
        let next = end(queue, key, Verdict::Park("broken".into()), now);
        assert_eq!(next, Next::Parked);
    });
    assert!(held <= 215, "{held} bytes");
}
