//! Renewals, times, holds: the facts one by one.

use super::*;

const NOT_READY: Verdict = Verdict::NotReady {
    delay: Duration::from_secs(5),
};

fn wait(until: Instant, why: Wait) -> Delay {
    Delay {
        until,
        why,
        failures: 0,
    }
}

#[test]
fn news_for_a_key_that_only_stands_in_line_for_its_retry_run_it_and_earlier_news_do_not() {
    let now = origin();
    let mut queue = queue();
    let first = run(&mut queue, "a", now);
    let _ = queue.finish(&"a", first, failed(ms(100)), now);
    assert_eq!(
        queue.add("a", Lane::Normal, (), now + ms(99)),
        Added::Backoff
    );
    assert_eq!(
        queue.add("a", Lane::Normal, (), now + ms(100)),
        Added::Woken
    );
    assert_eq!(
        queue.due(&"a", now + ms(100)),
        Due::Stale,
        "it costs no token"
    );
    assert_eq!(
        queue.start(now + ms(100)).map(|run| run.attempt()),
        Some(2),
        "the streak stands"
    );
}

#[test]
fn what_is_not_ready_is_looked_at_by_and_by_and_at_once_when_something_happens() {
    let now = origin();
    let mut queue = queue();
    let first = run(&mut queue, "a", now);
    assert_eq!(
        queue.finish(&"a", first, NOT_READY, now),
        Next::Waiting(wait(now + ms(5000), Wait::NotReady))
    );
    assert_eq!(queue.add("a", Lane::Normal, (), now + ms(1)), Added::Woken);
    let second = queue.start(now + ms(1)).expect("woken");
    assert_eq!((second.attempt(), second.streak.polls), (1, 1));
    let _ = queue.add("a", Lane::Normal, (), now + ms(1));
    assert_eq!(
        queue.finish(&"a", second.run, NOT_READY, now + ms(1)),
        Next::Queued,
        "it happened while it ran"
    );
}

#[test]
fn not_being_ready_is_no_failure_and_ends_a_row_of_them() {
    let now = origin();
    let mut queue = queue();
    let first = run(&mut queue, "a", now);
    let none = ms(0);
    let verdicts = [failed(none), Verdict::NotReady { delay: none }];
    let mut run = first;
    for verdict in verdicts.iter().cycle().take(40) {
        assert_eq!(queue.finish(&"a", run, verdict.clone(), now), Next::Queued);
        run = queue.start(now).expect("no delay").run;
    }
    let streak = queue.state_of(&"a").expect("it runs").streak;
    assert_eq!((streak.failures, streak.strikes, streak.polls), (0, 0, 20));
}

#[test]
fn another_object_under_the_name_owes_nothing_for_the_failures_of_the_first() {
    let now = origin();
    for verdict in [failed(ms(10_000)), Verdict::Park("broken".into())] {
        let mut queue = queue();
        let first = run(&mut queue, "a", now);
        let _ = queue.finish(&"a", first, verdict, now);
        assert_eq!(
            queue.renew("a", Lane::Normal, (), now + ms(1)),
            Added::Woken
        );
        let second = queue.start(now + ms(1)).expect("at once");
        assert_eq!(second.streak, Streak::default());
        assert_eq!(
            queue.finish(&"a", second.run, Verdict::Done, now),
            Next::Idle
        );
    }
}

#[test]
fn a_run_for_an_object_that_was_replaced_meanwhile_neither_parks_nor_delays_the_next() {
    let now = origin();
    for verdict in [
        failed(ms(10_000)),
        Verdict::Park("broken".into()),
        Verdict::RequeueAfter(ms(10_000)),
        NOT_READY,
    ] {
        let mut queue = queue();
        let first = run(&mut queue, "a", now);
        assert_eq!(queue.renew("a", Lane::Normal, (), now), Added::Dirty);
        assert!(queue.start(now).is_none(), "two at once");
        assert_eq!(queue.finish(&"a", first, verdict, now), Next::Queued);
        let second = queue.start(now).expect("at once");
        assert_eq!(second.streak, Streak::default());
    }
}

#[test]
fn of_two_times_the_rule_says_which_counts_and_there_is_one_run() {
    let now = origin();
    for (when, second, until) in [
        (When::Earliest, 2000, 1000),
        (When::Earliest, 500, 500),
        (When::Latest, 2000, 2000),
        (When::Latest, 500, 1000),
        (When::Replace, 2000, 2000),
        (When::Replace, 500, 500),
    ] {
        let mut queue = queue();
        let at = |at| now + ms(at);
        let first = queue.schedule("a", Lane::Normal, (), at(1000), when, now);
        assert_eq!(
            first,
            Added::Delayed(wait(at(1000), Wait::Requeue)),
            "an idle key waits"
        );
        let _ = queue.schedule("a", Lane::Normal, (), at(second), when, now);
        let waits: Vec<_> = queue.waits().map(|(_, delay)| delay.until).collect();
        assert_eq!(waits, [at(until)], "{when:?} of 1000 and {second}");
        assert_eq!(queue.due(&"a", at(until)), Due::Queued);
        assert_eq!(queue.depth(Lane::Normal), 1);
    }
}

#[test]
fn a_time_asked_for_during_a_run_outlives_the_run() {
    let now = origin();
    let mut queue = queue();
    let first = run(&mut queue, "a", now);
    let at = now + ms(1000);
    let _ = queue.schedule("a", Lane::User, (), at, When::default(), now);
    assert_eq!(
        queue.finish(&"a", first, Verdict::Done, now),
        Next::Waiting(wait(at, Wait::Requeue))
    );
    let _ = queue.due(&"a", at);
    assert_eq!(queue.start(at).map(|run| run.lane), Some(Lane::User));
}

#[test]
fn a_cancelled_time_leaves_nothing_and_a_backoff_cannot_be_cancelled() {
    let now = origin();
    let mut queue = queue();
    let _ = queue.schedule("a", Lane::Low, (), now + ms(10), When::default(), now);
    assert!(queue.cancel(&"a"));
    assert!(queue.is_empty() && !queue.cancel(&"a"));

    let first = run(&mut queue, "a", now);
    let _ = queue.schedule("a", Lane::Low, (), now + ms(10), When::default(), now);
    assert!(queue.cancel(&"a"));
    let _ = queue.finish(&"a", first, failed(ms(10)), now);
    assert!(!queue.cancel(&"a"));
    assert_eq!(queue.waiting(), 1);
}

#[test]
fn a_held_key_takes_news_and_runs_once_when_it_is_freed_and_not_before() {
    let now = origin();
    let mut queue = queue();
    let first = run(&mut queue, "a", now);
    let _ = queue.add("a", Lane::User, (), now);
    assert!(queue.hold(&"a", first, now));
    assert!(!queue.hold(&"a", first, now), "it does not run any more");
    assert_eq!(
        queue.finish(&"a", first, Verdict::Done, now),
        Next::NotRunning
    );
    assert_eq!(queue.add("a", Lane::Low, (), now), Added::Backoff);
    assert!(queue.promote(&"a", Lane::User, now));
    assert_eq!(queue.renew("a", Lane::Low, (), now), Added::Backoff);
    assert_eq!(queue.due(&"a", now + ms(100_000)), Due::Stale);
    assert!(queue.start(now).is_none(), "held");
    assert_eq!((queue.held(), queue.running(), queue.queued()), (1, 0, 0));
    assert!(queue.free(&"a", now));
    assert!(!queue.free(&"a", now));
    let second = queue.start(now).expect("freed");
    assert_eq!(second.lane, Lane::User);
    assert_eq!(
        queue.finish(&"a", second.run, Verdict::Done, now),
        Next::Idle
    );
}

#[test]
fn runs_are_named_for_whoever_has_to_account_for_them() {
    let now = origin();
    let mut queue = queue();
    let expected = ["a", "b", "c"].map(|key| (key, run(&mut queue, key, now)));
    let runs: Vec<_> = queue.runs().map(|(key, run)| (*key, run)).collect();
    assert_eq!(runs, expected);
    for (key, run) in runs {
        let lost = Verdict::Lost { delay: ms(0) };
        assert_eq!(queue.finish(&key, run, lost, now), Next::Queued);
    }
    assert_eq!(queue.start(now).map(|run| run.streak.losses), Some(1));
}

#[test]
fn counts_stay_at_their_maximum() {
    let now = origin();
    let mut queue = queue();
    let mut run = run(&mut queue, "a", now);
    for _ in 0..70_000 {
        let _ = queue.finish(&"a", run, failed(ms(0)), now);
        run = queue.start(now).expect("no delay").run;
    }
    let streak = queue.state_of(&"a").expect("it runs").streak;
    assert_eq!((streak.failures, streak.strikes), (u16::MAX, u16::MAX));
}
