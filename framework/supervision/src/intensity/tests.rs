use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::{Intensity, Window};
use crate::backoff::Backoff;
use crate::testing::run;

const MINUTE: Duration = Duration::from_secs(60);

fn some_instant() -> Instant {
    run(0, async |options| options.clock.now())
}

#[test]
fn one_more_than_bearable_within_the_period_is_too_many() {
    let start = some_instant();
    let mut window = Window::new(Intensity::new(2, MINUTE));
    assert!(!window.exceeded(start));
    assert!(!window.exceeded(start + MINUTE / 2));
    assert!(window.exceeded(start + MINUTE - Duration::from_nanos(1)));
}

#[test]
fn a_failure_leaves_the_window_after_exactly_one_period() {
    let start = some_instant();
    let mut window = Window::new(Intensity::new(1, MINUTE));
    assert!(!window.exceeded(start));
    assert!(!window.exceeded(start + MINUTE));
}

#[test]
fn a_maximum_of_zero_bears_nothing() {
    assert!(Window::new(Intensity::new(0, MINUTE)).exceeded(some_instant()));
}

#[test]
fn a_backoff_that_outgrows_the_window_makes_giving_up_unreachable() {
    let backoff = Backoff::default();
    assert!(Intensity::default().reachable_with(&backoff));
    assert!(
        Intensity::new(8, MINUTE).reachable_with(&backoff),
        "8 restarts take 25.5 s, with jitter 30.6 s"
    );
    assert!(
        !Intensity::new(12, MINUTE).reachable_with(&backoff),
        "12 restarts take over two minutes"
    );
    assert!(Intensity::new(1_000_000, MINUTE).reachable_with(&Backoff::none()));
}

proptest! {
    #[test]
    fn the_window_agrees_with_counting_all_failures_ever(
        max in 0..6u32,
        period in 1..1000u64,
        gaps in prop::collection::vec(0..400u64, 1..100),
    ) {
        let period = Duration::from_millis(period);
        let mut window = Window::new(Intensity::new(max, period));
        let mut now = some_instant();
        let mut all: Vec<Instant> = Vec::new();
        for gap in gaps {
            now += Duration::from_millis(gap);
            all.push(now);
            let recent = all.iter().filter(|&&at| now - at < period).count();
            prop_assert_eq!(window.exceeded(now), recent > max as usize);
            prop_assert!(window.failures.len() <= max as usize + 1);
        }
    }
}
