//! Kinds the server does not know, and pauses it asks for.

use super::*;

#[test]
fn a_kind_that_went_missing_is_parked_and_revived_by_a_list_from_where_it_was() {
    let mut desk = watching("10");
    desk.end_after(LONG, &End::Closed);
    desk.watch();
    desk.end_after(AT_ONCE, &End::NotOpened(refused(404, "NotFound")));
    for _ in 0..20 {
        let (list, _) = desk.list();
        assert_eq!((list.at, list.reason), (at("10"), Reason::Missing));
        desk.list_fails(&refused(404, "NotFound"));
        assert!(desk.machine.is_parked());
    }
    desk.list();
    desk.machine.listed(&meta("50", None));
    assert!(!desk.machine.is_parked());
    assert_eq!(desk.watch().0, Version::new("50"));
}

#[test]
fn a_kind_that_never_was_is_waited_for_and_not_parked() {
    let mut desk = desk(None);
    desk.list();
    desk.list_fails(&refused(404, "NotFound"));
    assert!(!desk.machine.is_parked());
}

#[test]
fn a_missing_kind_is_looked_for_eagerly_for_ten_minutes_and_then_at_the_pace_of_other_failures() {
    let mut desk = desk(None);
    let (mut early, mut late) = (0, 0);
    let began = desk.now;
    while desk.now - began < Duration::from_secs(24 * 3600) {
        let (_, waited) = desk.list();
        if desk.now - began < Duration::from_secs(600) {
            assert!(waited < Duration::from_secs(10));
            early += 1;
        } else if desk.now - began > Duration::from_secs(700) {
            assert!((30.0..60.0).contains(&waited.as_secs_f64()), "{waited:?}");
            late += 1;
        }
        desk.list_fails(&refused(404, "NotFound"));
    }
    assert!((60..160).contains(&early), "{early}");
    assert!((1400..2900).contains(&late), "{late}");
}

#[test]
fn a_pause_of_hours_is_cut_to_minutes_wherever_it_is_asked_for() {
    let busy = || Failure::Refused(Status::parse(429, Some(Duration::from_secs(7200)), b""));
    let most = Duration::from_secs(300);
    let mut desk = desk(None);
    desk.list();
    desk.list_fails(&busy());
    assert_eq!(desk.list().1, most);
    desk.machine.listed(&meta("10", Some("t")));
    desk.list();
    desk.list_fails(&busy());
    assert_eq!(
        desk.list(),
        (desk.machine.list(Reason::Initial, None), most)
    );
    desk.machine.listed(&meta("10", None));
    desk.watch();
    desk.end_after(LONG, &End::NotOpened(busy()));
    assert_eq!(desk.watch().1, most);
    desk.end_after(SILENCE, &End::Silent);
    desk.next();
    desk.machine.probe_failed(&busy(), desk.now);
    assert_eq!(desk.watch().1, most);
}

#[test]
fn a_later_page_that_is_older_than_the_first_is_refused_and_one_that_is_newer_changes_nothing() {
    let mut desk = desk(None);
    desk.list();
    desk.machine.listed(&meta("10", Some("t1")));
    desk.list();
    let old = desk.machine.accept(Some(&Version::new("9")));
    assert_eq!(old, Err(Failure::Old(Version::new("9"))));
    assert_eq!(desk.machine.accept(Some(&Version::new("11"))), Ok(()));
    assert_eq!(
        desk.machine.listed(&meta("11", None)),
        Some(Version::new("10"))
    );
    // the list begins anew, by quorum
    let mut desk = super::desk(None);
    desk.list();
    desk.machine.listed(&meta("10", Some("t1")));
    desk.list();
    desk.list_fails(&Failure::Old(Version::new("9")));
    assert_eq!((desk.list().0.at, desk.list().0.token), (At::Now, None));
}
