//! Lists that come as the first events of a watch.

use super::*;

fn streaming(version: Option<&str>) -> Desk {
    let mut desk = desk(version);
    desk.machine.allow_streams(true);
    desk
}

/// A desk whose watch at `version` has expired, so that a list not older than it is due.
fn expired(version: &str) -> Desk {
    let mut desk = streaming(Some(version));
    desk.watch();
    desk.end_after(LONG, &End::Error(refused(410, "Expired")));
    desk
}

#[test]
fn the_first_list_is_streamed_consistently_and_the_same_stream_goes_on_as_the_watch() {
    let mut desk = streaming(None);
    let (list, waited) = desk.stream();
    assert_eq!(
        (list.at, list.reason, waited),
        (At::Now, Reason::Initial, AT_ONCE)
    );
    assert!((300..600).contains(&list.timeout.as_secs()));
    desk.machine.streamed(&Version::new("10"), desk.now);
    desk.machine.advanced(&Version::new("12"));
    desk.end_after(LONG, &End::Closed);
    assert_eq!(desk.watch(), (Version::new("12"), AT_ONCE));
}

#[test]
fn after_an_expired_watch_the_stream_begins_not_older_than_what_is_known() {
    let mut desk = expired("10");
    let (list, _) = desk.stream();
    assert_eq!((list.at, list.reason), (at("10"), Reason::Expired));
}

#[test]
fn a_list_that_may_overrule_what_is_known_is_a_plain_one_for_a_stream_says_its_version_last() {
    let mut desk = streaming(Some("10"));
    desk.watch();
    desk.machine.asked();
    desk.end_after(LONG, &End::Asked);
    assert_eq!(desk.list().0.at, At::Now);
    // the server went back in time
    let mut desk = streaming(Some("100"));
    desk.watch();
    desk.end_after(SILENCE, &End::Silent);
    desk.next();
    desk.machine.probed(Version::new("60"));
    assert_eq!(desk.list().0.reason, Reason::History);
    // while nothing is known there is nothing to overrule
    let mut desk = streaming(None);
    desk.machine.asked();
    assert_eq!(desk.stream().0.reason, Reason::Asked);
}

#[test]
fn a_stream_that_proves_older_than_what_is_known_or_expired_or_too_new_a_version_asks_for_quorum_at_once()
 {
    for end in [
        End::NotOpened(refused(410, "Expired")),
        End::NotOpened(too_large()),
        End::Error(refused(410, "Gone")),
        End::Error(Failure::Old(Version::new("5"))),
        End::Error(Failure::UnknownAge),
    ] {
        let mut desk = expired("10");
        desk.stream();
        assert_eq!(desk.stream_ends(&end), None, "nothing against streams");
        let quorum = List {
            at: At::Now,
            limit: Some(500),
            token: None,
            reason: Reason::Expired,
        };
        assert_eq!(desk.list(), (quorum, AT_ONCE), "{end:?}");
        desk.machine.listed(&meta("20", None));
        desk.watch();
        desk.end_after(LONG, &End::Error(refused(410, "Expired")));
        assert_eq!(desk.stream().0.at, at("20"));
    }
}

#[test]
fn a_client_error_makes_the_list_a_plain_one_at_once_and_is_remembered() {
    for code in [400, 405, 406, 415, 422] {
        let mut desk = streaming(None);
        desk.stream();
        let unfit = desk.stream_ends(&End::NotOpened(refused(code, "Invalid")));
        assert_eq!(unfit, Some(format!("the server refuses it with {code}")));
        let (list, waited) = desk.list();
        assert_eq!((list.at, list.limit, waited), (At::Any, Some(500), AT_ONCE));
    }
}

#[test]
fn who_may_list_but_not_watch_gets_the_list_and_nothing_is_held_against_the_server() {
    let mut desk = streaming(None);
    desk.stream();
    assert_eq!(
        desk.stream_ends(&End::NotOpened(refused(403, "Forbidden"))),
        None
    );
    assert_eq!(desk.list().1, AT_ONCE);
    desk.list_fails(&refused(403, "Forbidden"));
    assert_eq!(desk.machine.trouble().unwrap().verb, "list");
    desk.list();
}

/// kubernetes/kubernetes#140890
#[test]
fn an_end_bookmark_that_never_comes_makes_the_list_a_plain_one_at_once_and_is_remembered() {
    let mut desk = streaming(None);
    desk.stream();
    assert!(
        desk.stream_ends(&End::Silent)
            .unwrap()
            .contains("never comes")
    );
    assert_eq!(desk.list().1, AT_ONCE);
}

#[test]
fn a_stream_cut_off_before_its_end_is_tried_once_more_with_a_pause_and_then_given_up() {
    let mut desk = expired("10");
    desk.stream();
    assert_eq!(desk.stream_ends(&End::Closed), None);
    let (list, waited) = desk.stream();
    assert_eq!(list.at, at("10"), "nothing of it counts");
    assert!(waited >= Duration::from_millis(800));
    assert!(desk.stream_ends(&End::Closed).is_some());
    assert_eq!(desk.list().1, AT_ONCE);
}

#[test]
fn a_server_that_fails_or_is_away_is_left_alone_for_a_while_and_only_answers_count_against_streams()
{
    let away = Failure::Transport("connection refused".into());
    let mut desk = streaming(None);
    for _ in 0..10 {
        desk.stream();
        assert_eq!(desk.stream_ends(&End::NotOpened(away.clone())), None);
        assert!(matches!(desk.machine.plan(desk.now), Plan::Wait(_)));
        assert_eq!(
            desk.machine.trouble(),
            Some(Trouble {
                verb: "list",
                cause: TroubleCause::Unreachable
            })
        );
    }
    for failure in [refused(500, "InternalError"), Failure::Timeout(LONG)] {
        let mut desk = streaming(None);
        for _ in 0..2 {
            desk.stream();
            assert_eq!(desk.stream_ends(&End::NotOpened(failure.clone())), None);
        }
        let (_, waited) = desk.list();
        assert!(
            waited >= Duration::from_millis(1600),
            "{failure}: {waited:?}"
        );
        desk.machine.listed(&meta("10", None));
        desk.watch();
        desk.end_after(LONG, &End::Error(refused(410, "Expired")));
        desk.stream();
    }
}

#[test]
fn a_busy_server_is_asked_for_a_stream_again_after_the_time_it_asked_for() {
    let busy = Failure::Refused(Status::parse(429, Some(Duration::from_secs(17)), b""));
    let mut desk = streaming(None);
    for end in [End::NotOpened(busy.clone()), End::Error(busy)] {
        desk.stream();
        assert_eq!(desk.stream_ends(&end), None);
        assert_eq!(
            desk.machine.trouble().unwrap().cause,
            TroubleCause::Throttled
        );
    }
    assert!(desk.stream().1 >= Duration::from_secs(17));
}

#[test]
fn a_server_known_not_to_stream_is_asked_for_pages() {
    let mut desk = streaming(None);
    desk.stream();
    desk.machine.not_streamed();
    assert_eq!(desk.list().0.at, At::Any);
    desk.machine.listed(&meta("10", None));
    desk.watch();
    desk.end_after(LONG, &End::Error(refused(410, "Expired")));
    desk.stream();
}

#[test]
fn a_stream_that_ends_right_behind_its_list_is_resumed_with_a_pause() {
    let mut desk = streaming(None);
    desk.stream();
    desk.machine.streamed(&Version::new("10"), desk.now);
    desk.end_after(AT_ONCE, &End::Closed);
    let (version, waited) = desk.watch();
    assert_eq!(version, Version::new("10"));
    assert!(waited >= Duration::from_millis(800));
}
