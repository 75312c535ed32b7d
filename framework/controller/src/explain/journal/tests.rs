use boatswain_supervision::Clock;

use super::*;
use crate::reconcile::Outcome;

fn key(n: usize) -> Key {
    Key::new(Some("shop"), &format!("web-{n}"))
}

fn record(n: usize, ended: &Ended, seen: Option<u64>, began: Instant) -> Record {
    Record {
        key: key(n),
        id: None,
        causes: Causes::UPDATED.and(Causes::TIMER),
        attempt: 3,
        began,
        took: Duration::from_micros(1234),
        seen: seen.map(|seen| Version::new(&seen.to_string())),
        ending: Ending::of(ended),
        text: Record::text(ended),
        decided: Some(short("mind the gap ".repeat(TEXT))),
        writes: vec!["patch configmaps shop/x".into()],
        written: 9,
    }
}

const DONE: Ended = Ended::Outcome(Outcome::Done);

#[test]
fn of_a_run_long_ago_what_matters_is_known() {
    let (mut journal, now) = (Journal::default(), Clock::system().now());
    let version = u64::from(u32::MAX) + 7;
    for n in 0..WHOLE + 1 {
        let began = now + Duration::from_secs(n as u64);
        journal.ended(record(n, &DONE, Some(version), began));
    }
    let last = journal.last(&key(WHOLE)).expect("it ran");
    assert_eq!(last.writes.len(), 1);
    let decided = last.decided.expect("it said so");
    assert!(decided.starts_with("mind the gap") && decided.len() <= TEXT + 3);
    let first = journal.last(&key(0)).expect("it ran");
    assert!(first.decided.is_none(), "there is one for every object");
    assert!(first.writes.is_empty() && first.written == 9);
    assert_eq!(first.seen, Some(Version::new(&version.to_string())));
    assert_eq!(
        (first.took, first.began),
        (Duration::from_micros(1234), now)
    );
    assert_eq!(first.causes.to_string(), "updated+timer");
    assert_eq!((first.ending, first.attempt), (Ending::Success, 3));
}

#[test]
fn an_error_is_known_until_the_key_succeeds_and_texts_are_cut() {
    let (mut journal, now) = (Journal::default(), Clock::system().now());
    let failed = Ended::Panicked("ä".repeat(TEXT));
    journal.ended(record(0, &failed, Some(1), now));
    for n in 1..=WHOLE {
        journal.ended(record(n, &DONE, Some(1), now));
    }
    assert!(journal.last(&key(0)).expect("it ran").text.is_none());
    let later = now + Duration::from_secs(60);
    journal.ended(record(0, &Ended::Panicked("anew".into()), Some(1), later));
    assert!(
        journal
            .failing_since(now - Duration::from_secs(1))
            .is_empty()
    );
    let [(failing, what)] = &journal.failing_since(now)[..] else {
        panic!("one key fails");
    };
    assert_eq!(
        (failing, what.since),
        (&key(0), now),
        "since its first failure"
    );
    assert_eq!(&*what.error, "panicked: anew", "the last is told");
    journal.ended(record(0, &failed, Some(1), later));
    let error = &journal.failure(&key(0)).expect("it failed").error;
    assert!(error.starts_with("panicked: ä") && error.len() <= TEXT + 3);
    journal.ended(record(0, &DONE, Some(1), later));
    assert!(journal.failure(&key(0)).is_none());
}

#[test]
fn memory_follows_the_objects_there_are() {
    let (mut journal, now) = (Journal::default(), Clock::system().now());
    for n in 0..100_000 {
        journal.ended(record(n, &DONE, Some(1), now));
        journal.ended(record(n, &DONE, None, now));
    }
    assert_eq!(journal.past.len(), 0);
    assert!(journal.past.capacity() <= 64 && journal.whole.len() == WHOLE);
    for n in 0..2 * ERRORS {
        journal.ended(record(n, &Ended::TimedOut(Duration::ZERO), Some(1), now));
    }
    assert_eq!(journal.errors.len(), ERRORS);
}

/// A table of the standard library is 7/8 full at most, has a power of two of places, and one byte of its own for each.
#[test]
fn an_entry_of_an_idle_key_stays_below_a_hundred_bytes_at_the_worst_moment() {
    let (mut journal, now) = (Journal::default(), Clock::system().now());
    let mut worst = 0;
    for n in 1..50_000 {
        journal.ended(record(n, &DONE, Some(1), now));
        if n > 1000 {
            let places = (journal.past.capacity() * 8 / 7).next_power_of_two();
            worst = worst.max(places * (size_of::<(Key, Past)>() + 1) / n);
        }
    }
    assert!((40..100).contains(&worst), "{worst} bytes an entry");
}
