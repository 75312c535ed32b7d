use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::{Sample, Verdict, Watched};

const PATIENCE: Duration = Duration::from_secs(30);
const SECOND: Duration = Duration::from_secs(1);

#[allow(
    clippy::disallowed_methods,
    reason = "an origin for times that are all relative to it"
)]
fn origin() -> Instant {
    Instant::now()
}

/// An actor with a message, of which it has handled none.
const BUSY: Sample = Sample {
    incarnation: 1,
    turns: 2,
    handled: 0,
    inbox: 1,
    works: true,
    deadline: None,
};

/// What is said of a node that looks like `see(seconds, nudges)`, second by second, and when.
fn verdicts(seconds: u64, mut see: impl FnMut(u64, u32, Instant) -> Sample) -> Vec<(u64, Verdict)> {
    let (origin, mut watched, mut nudges) = (origin(), Watched::default(), 0);
    let mut verdicts = Vec::new();
    for second in 0..seconds {
        let sample = see(second, nudges, origin);
        let verdict = watched.look(origin + second as u32 * SECOND, PATIENCE, &sample);
        nudges += u32::from(verdict == Some(Verdict::Nudge));
        verdicts.extend(verdict.map(|verdict| (second, verdict)));
    }
    verdicts
}

#[test]
fn who_handles_nothing_though_it_has_its_turns_hangs() {
    let said = verdicts(33, |_, nudges, _| Sample {
        turns: 2 + 2 * nudges,
        ..BUSY
    });
    assert_eq!(said, [(30, Verdict::Nudge), (31, Verdict::Hung)]);
}

#[test]
fn who_waits_for_its_thread_does_not_hang() {
    let said = verdicts(600, |_, _, _| BUSY);
    assert_eq!(said, [(30, Verdict::Nudge)]);
}

#[test]
fn who_handles_a_message_now_and_then_does_not_hang() {
    let said = verdicts(600, |second, _, _| Sample {
        turns: 2 * second as u32,
        handled: second / 29,
        ..BUSY
    });
    assert_eq!(said, []);
}

#[test]
fn who_does_not_work_or_has_nothing_to_do_does_not_hang() {
    for idle in [
        Sample {
            works: false,
            ..BUSY
        },
        Sample { inbox: 0, ..BUSY },
    ] {
        let said = verdicts(600, |second, _, _| Sample {
            turns: 2 * second as u32,
            ..idle
        });
        assert_eq!(said, []);
    }
}

#[test]
fn a_new_incarnation_has_all_the_time_of_its_own() {
    let said = verdicts(600, |second, _, _| Sample {
        turns: 2 * second as u32,
        incarnation: 1 + (second / 29) as u32,
        ..BUSY
    });
    assert_eq!(said, []);
}

#[test]
fn a_declared_deadline_is_respected_and_then_enforced_whatever_else_is_handled() {
    let said = verdicts(102, |second, _, origin| Sample {
        turns: 2 * second as u32,
        handled: second,
        deadline: Some(origin + 100 * SECOND),
        ..BUSY
    });
    assert_eq!(said, [(100, Verdict::Nudge), (101, Verdict::Hung)]);
}

#[test]
fn a_long_turn_is_called_blocked_once_and_unblocked_once() {
    let said = verdicts(100, |second, _, _| Sample {
        turns: if second < 50 { 3 } else { 4 },
        ..BUSY
    });
    assert_eq!(said[0], (30, Verdict::Blocked(PATIENCE)));
    assert_eq!(said[1], (50, Verdict::Unblocked));
}

#[test]
fn a_long_turn_within_its_deadline_is_not_called_blocked() {
    let said = verdicts(100, |_, _, origin| Sample {
        turns: 3,
        deadline: Some(origin + 60 * SECOND),
        ..BUSY
    });
    assert_eq!(said, [(60, Verdict::Blocked(60 * SECOND))]);
}

#[test]
fn many_short_turns_are_not_one_long_one() {
    let said = verdicts(600, |second, _, _| Sample {
        turns: 2 * second as u32 + 1,
        inbox: 0,
        ..BUSY
    });
    assert_eq!(said, []);
}

/// A step of a node's life, as far as a watchdog could see it.
#[derive(Clone, Debug)]
struct Step {
    passed: u64,
    steps: u32,
    handled: u64,
    inbox: usize,
    works: bool,
    deadline: Option<u64>,
    died: bool,
}

fn steps() -> impl Strategy<Value = Step> {
    (
        1..20_u64,
        prop_oneof![4 => Just(0_u32), 2 => Just(1), 2 => Just(2), 1 => Just(5)],
        prop_oneof![6 => Just(0_u64), 1 => 1..3_u64],
        0..3_usize,
        prop::bool::weighted(0.95),
        prop::option::weighted(0.1, 1..60_u64),
        prop::bool::weighted(0.03),
    )
        .prop_map(
            |(passed, steps, handled, inbox, works, deadline, died)| Step {
                passed,
                steps,
                handled,
                inbox,
                works,
                deadline,
                died,
            },
        )
}

fn history(steps: &[Step]) -> Vec<(Instant, Sample)> {
    let mut now = origin();
    let mut sample = Sample { turns: 0, ..BUSY };
    let mut seen = Vec::new();
    for step in steps {
        now += u32::try_from(step.passed).unwrap() * SECOND;
        sample.turns += step.steps;
        sample.handled += step.handled;
        sample.inbox = step.inbox.max(usize::from(step.handled == 0));
        sample.works = step.works;
        sample.incarnation += u32::from(step.died);
        if let Some(deadline) = step.deadline {
            sample.deadline = Some(now + u32::try_from(deadline).unwrap() * SECOND);
        } else if step.steps == 5 {
            sample.deadline = None;
        }
        seen.push((now, sample));
    }
    seen
}

/// The looks up to `at` through which a property held without a break, latest first.
fn run<'a>(
    history: &'a [(Instant, Sample)],
    at: usize,
    held: impl Fn(&(Instant, Sample)) -> bool + 'a,
) -> impl Iterator<Item = &'a (Instant, Sample)> {
    history[..=at]
        .iter()
        .rev()
        .take_while(move |look| held(look))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(800))]

    #[test]
    fn blocked_is_exactly_who_stays_in_one_turn_too_long(steps in prop::collection::vec(steps(), 1..80)) {
        let history = history(&steps);
        let mut watched = Watched::default();
        let mut told = None;
        for (i, (now, sample)) in history.iter().enumerate() {
            let verdict = watched.look(*now, PATIENCE, sample);
            let since = run(&history, i, |(_, other)| other.turns == sample.turns).last().unwrap().0;
            let excused = sample.deadline.is_some_and(|deadline| deadline > *now);
            let long = sample.turns % 2 == 1 && *now - since >= PATIENCE && !excused;
            let ended = told.is_some_and(|turns| turns != sample.turns);
            prop_assert_eq!(verdict == Some(Verdict::Unblocked), ended);
            if ended {
                told = None;
            }
            let expected = (long && told.is_none()).then(|| Verdict::Blocked(*now - since));
            let blocked = verdict.filter(|verdict| matches!(verdict, Verdict::Blocked(_)));
            prop_assert_eq!(blocked, expected);
            if long {
                told = Some(sample.turns);
            }
            prop_assert_eq!(watched.blocked(), told.map(|_| since));
        }
    }

    #[test]
    fn hung_is_only_who_had_a_turn_after_it_was_nudged_and_was_suspicious_all_along(
        steps in prop::collection::vec(steps(), 1..80),
    ) {
        let history = history(&steps);
        let mut watched = Watched::default();
        let mut nudged: Option<(usize, u32)> = None;
        for (i, (now, sample)) in history.iter().enumerate() {
            let verdict = watched.look(*now, PATIENCE, sample);
            let overdue = |at: Instant, sample: &Sample| sample.deadline.is_some_and(|deadline| deadline <= at);
            let stalls = |(at, other): &(Instant, Sample)| {
                other.works
                    && other.inbox > 0
                    && other.deadline.is_none_or(|deadline| deadline <= *at)
                    && (other.handled, other.incarnation) == (sample.handled, sample.incarnation)
            };
            let stalled = run(&history, i, stalls).last().is_some_and(|&(since, _)| *now - since >= PATIENCE);
            match verdict {
                Some(Verdict::Nudge) => {
                    prop_assert!(sample.works && (overdue(*now, sample) || stalled));
                    nudged = Some((i, sample.turns));
                }
                Some(Verdict::Hung) => {
                    prop_assert!(sample.works && (overdue(*now, sample) || stalled));
                    let (at, turns) = nudged.take().expect("hung without a nudge");
                    prop_assert!(turns % 2 == 0 && sample.turns % 2 == 0 && turns != sample.turns);
                    prop_assert!(history[at..=i].iter().all(|(_, other)| other.works));
                }
                _ => {}
            }
        }
    }

    #[test]
    fn who_hangs_is_found_in_the_round_after_the_next_turn(
        before in prop::collection::vec(steps(), 0..40),
        pause in 1..7_u32,
    ) {
        let mut watched = Watched::default();
        let history = history(&before);
        for (now, sample) in &history {
            watched.look(*now, PATIENCE, sample);
        }
        let (mut now, last) = history.last().copied().unwrap_or((origin(), BUSY));
        let since = now;
        let mut hung = Sample { turns: last.turns + last.turns % 2 + 2, inbox: 1, works: true, deadline: None, ..last };
        loop {
            now += pause * SECOND;
            match watched.look(now, PATIENCE, &hung) {
                Some(Verdict::Nudge) => hung.turns += 2,
                Some(Verdict::Hung) => break,
                _ => {}
            }
            prop_assert!(now - since <= PATIENCE + 4 * pause * SECOND, "not found");
        }
    }
}
