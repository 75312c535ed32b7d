//! Watches that say nothing.

use super::*;

#[test]
fn a_silent_watch_is_probed_and_a_quiet_kind_is_probed_half_as_often() {
    let mut desk = watching("10");
    for silence in [180, 360, 720, 1440, 2880, 3600, 3600] {
        assert_eq!(desk.machine.silence(), Duration::from_secs(silence));
        desk.end_after(desk.machine.silence(), &End::Silent);
        assert_eq!(desk.next(), (Plan::Probe, AT_ONCE));
        desk.machine.probed(Version::new("30"));
        assert_eq!(desk.watch(), (Version::new("10"), AT_ONCE));
    }
    desk.machine.advanced(&Version::new("40"));
    assert_eq!(
        desk.machine.silence(),
        Duration::from_secs(3600),
        "an event after the probe proves nothing about the time before it"
    );
}

#[test]
fn a_watch_that_was_silent_though_something_had_happened_is_listened_to_more_closely_again() {
    let mut desk = watching("10");
    desk.end_after(SILENCE, &End::Silent);
    desk.next();
    desk.machine.probed(Version::new("30"));
    desk.watch();
    desk.machine.advanced(&Version::new("20"));
    assert_eq!(desk.machine.silence(), SILENCE);
}

#[test]
fn a_probe_that_finds_the_server_in_the_past_takes_its_state_as_it_is() {
    let mut desk = watching("100");
    desk.end_after(SILENCE, &End::Silent);
    desk.next();
    desk.machine.probed(Version::new("60"));
    let (list, _) = desk.list();
    assert_eq!((list.at, list.reason), (At::Now, Reason::History));
    assert_eq!(desk.machine.accept(Some(&Version::new("60"))), Ok(()));
    desk.machine.listed(&meta("60", None));
    assert_eq!(desk.watch().0, Version::new("60"));
}

#[test]
fn a_probe_that_fails_resumes_after_a_pause() {
    let mut desk = watching("10");
    desk.end_after(SILENCE, &End::Silent);
    desk.next();
    desk.machine.probe_failed(&Failure::Timeout(LONG), desk.now);
    assert!(desk.watch().1 >= Duration::from_millis(800));
}
