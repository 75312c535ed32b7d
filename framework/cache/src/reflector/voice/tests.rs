use std::time::Duration;

use boatswain_supervision::Clock;

use super::{Line, Voice};

#[test]
fn a_trouble_is_told_when_it_begins_and_when_it_ends() {
    let (mut voice, now) = (Voice::new(), Clock::system().now());
    assert_eq!(voice.hear(None, now), None);
    assert_eq!(voice.hear(Some("list 403"), now), Some(Line::Trouble));
    assert_eq!(voice.hear(Some("list 403"), now), None);
    assert_eq!(voice.hear(Some("list 404"), now), Some(Line::Trouble));
    assert_eq!(voice.hear(None, now), Some(Line::Recovery));
    assert_eq!(voice.hear(None, now), None);
}

/// Lines written in a day of attempts every 7 seconds.
fn lines_of_a_day(trouble: impl Fn(u32) -> Option<&'static str>) -> usize {
    let (mut voice, start) = (Voice::new(), Clock::system().now());
    (0..12_342)
        .filter(|attempt| {
            let now = start + Duration::from_secs(7) * *attempt;
            voice.hear(trouble(*attempt), now).is_some()
        })
        .count()
}

/// kubernetes/kubernetes#79610
#[test]
fn a_crd_deleted_for_a_day_costs_a_dozen_lines_not_one_per_attempt() {
    assert_eq!(lines_of_a_day(|_| Some("list 404")), 12);
}

#[test]
fn a_trouble_that_comes_and_goes_all_day_is_told_as_rarely() {
    assert_eq!(
        lines_of_a_day(|attempt| (attempt % 2 == 0).then_some("watch 500")),
        24
    );
    let change = |attempt| Some(["list 404", "watch 404", "list 429"][attempt as usize % 3]);
    assert_eq!(lines_of_a_day(change), 36);
}

#[test]
fn a_trouble_that_returns_after_a_quiet_time_is_told_at_once() {
    let (mut voice, now) = (Voice::new(), Clock::system().now());
    voice.hear(Some(1), now);
    voice.hear(None, now);
    // its next line would be due after a minute, and the one after that two minutes later
    let later = now + Duration::from_secs(120);
    assert_eq!(voice.hear(Some(1), later), Some(Line::Trouble));
    assert_eq!(voice.hear(Some(1), later + Duration::from_secs(59)), None);
}
