use std::time::{Duration, Instant};

use boatswain_supervision::{Clock, Entropy};
use serde_json::json;

use super::Machine;
use crate::framing::{FrameError, ListMeta};
use crate::reflector::answer::{Failure, Status};
use crate::reflector::plan::{At, End, List, Plan, Reason, StreamList};
use crate::status::{Trouble, TroubleCause};
use crate::version::Version;

mod missing;
mod silence;
mod streaming;

const SILENCE: Duration = Duration::from_secs(180);

/// A machine and its time.
struct Desk {
    machine: Machine,
    now: Instant,
}

fn desk(version: Option<&str>) -> Desk {
    let machine = Machine::new(
        version.map(Version::new),
        true,
        500,
        SILENCE,
        Entropy::seeded(3),
    );
    Desk {
        machine,
        now: Clock::system().now(),
    }
}

/// A desk whose watch is open at `version`.
fn watching(version: &str) -> Desk {
    let mut desk = desk(Some(version));
    desk.watch();
    desk
}

fn refused(code: u16, reason: &str) -> Failure {
    Failure::Refused(Status::parse(
        code,
        None,
        json!({"code": code, "reason": reason})
            .to_string()
            .as_bytes(),
    ))
}

fn too_large() -> Failure {
    let body = json!({"code": 504, "reason": "Timeout", "details": {"causes": [{"reason": "ResourceVersionTooLarge"}]}});
    Failure::Refused(Status::parse(504, None, body.to_string().as_bytes()))
}

fn meta(version: &str, next: Option<&str>) -> ListMeta {
    ListMeta {
        version: Version::new(version),
        next: next.map(str::to_owned),
    }
}

impl Desk {
    /// The next plan that is not to wait; time passes as it says.
    fn next(&mut self) -> (Plan, Duration) {
        let began = self.now;
        loop {
            match self.machine.plan(self.now) {
                Plan::Wait(until) => self.now = until,
                plan => return (plan, self.now - began),
            }
        }
    }

    fn list(&mut self) -> (List, Duration) {
        match self.next() {
            (Plan::List(list), waited) => (list, waited),
            other => panic!("{other:?}"),
        }
    }

    fn stream(&mut self) -> (StreamList, Duration) {
        match self.next() {
            (Plan::Stream(list), waited) => (list, waited),
            other => panic!("{other:?}"),
        }
    }

    /// The streamed list that was begun ends so; returns what makes the server unfit.
    fn stream_ends(&mut self, end: &End) -> Option<String> {
        self.machine.stream_ended(end, self.now)
    }

    fn watch(&mut self) -> (Version, Duration) {
        match self.next() {
            (Plan::Watch { version, .. }, waited) => {
                self.machine.opened(self.now);
                (version, waited)
            }
            other => panic!("{other:?}"),
        }
    }

    fn end_after(&mut self, lived: Duration, end: &End) {
        self.now += lived;
        self.machine.watch_ended(end, self.now);
    }

    fn list_fails(&mut self, failure: &Failure) {
        self.machine.list_failed(failure, self.now);
    }
}

const LONG: Duration = Duration::from_secs(60);
const AT_ONCE: Duration = Duration::ZERO;

fn at(text: &str) -> At {
    At::NotOlderThan(Version::new(text))
}

#[test]
fn it_lists_any_state_in_pages_and_watches_from_the_version_of_the_first() {
    let mut desk = desk(None);
    let first = List {
        at: At::Any,
        limit: Some(500),
        token: None,
        reason: Reason::Initial,
    };
    assert_eq!(desk.list().0, first);
    assert_eq!(desk.machine.listed(&meta("10", Some("t1"))), None);
    assert_eq!(
        desk.list().0,
        List {
            token: Some("t1".into()),
            ..first
        }
    );
    assert_eq!(
        desk.machine.listed(&meta("12", None)),
        Some(Version::new("10"))
    );
    assert_eq!(desk.watch(), (Version::new("10"), AT_ONCE));
}

#[test]
fn watches_are_asked_to_end_after_five_to_ten_minutes_at_random() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..50 {
        let mut machine = Machine::new(
            Some(Version::new("1")),
            true,
            500,
            SILENCE,
            Entropy::seeded(seed),
        );
        let Plan::Watch { timeout, .. } = machine.plan(Clock::system().now()) else {
            panic!()
        };
        assert!((300..600).contains(&timeout.as_secs()));
        seen.insert(timeout);
    }
    assert!(seen.len() > 10);
}

#[test]
fn a_watch_that_ends_in_good_time_resumes_at_once_from_the_last_version() {
    let mut desk = watching("10");
    desk.machine.advanced(&Version::new("15"));
    desk.machine.advanced(&Version::new("14"));
    desk.end_after(LONG, &End::Closed);
    assert_eq!(desk.watch(), (Version::new("15"), AT_ONCE));
}

#[test]
fn streams_that_end_at_once_back_off_however_politely_they_end() {
    let mut desk = watching("10");
    let mut waits = Vec::new();
    for version in 11..19 {
        // even one that told something
        desk.machine.advanced(&Version::new(&version.to_string()));
        desk.end_after(Duration::from_millis(5), &End::Closed);
        waits.push(desk.watch().1.as_secs_f64());
    }
    for (wait, base) in waits
        .iter()
        .zip([0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0])
    {
        assert!((base..2.0 * base).contains(wait), "{waits:?}");
    }
}

#[test]
fn a_server_that_was_away_for_long_is_followed_again_within_seconds_of_its_return() {
    let mut desk = watching("10");
    desk.end_after(LONG, &End::Closed);
    for _ in 0..8 {
        desk.watch();
        desk.end_after(
            AT_ONCE,
            &End::NotOpened(Failure::Transport("refused".into())),
        );
    }
    // it is back, ends the first watch as it starts, and knows no old versions
    desk.watch();
    desk.end_after(Duration::from_secs(1), &End::Closed);
    let (_, waited) = desk.watch();
    assert!(waited < Duration::from_millis(1600), "{waited:?}");
    desk.end_after(AT_ONCE, &End::Error(refused(410, "Expired")));
    let (list, waited) = desk.list();
    assert_eq!(list.reason, Reason::Expired);
    assert!(waited < Duration::from_millis(3200), "{waited:?}");
}

#[test]
fn expired_in_the_stream_lists_at_the_last_version_and_unpaged_so_that_caches_can_answer() {
    let mut desk = watching("10");
    desk.machine.advanced(&Version::new("15"));
    desk.end_after(LONG, &End::Error(refused(410, "Expired")));
    let (list, waited) = desk.list();
    assert_eq!(
        list,
        List {
            at: at("15"),
            limit: None,
            token: None,
            reason: Reason::Expired
        }
    );
    assert!(waited < Duration::from_secs(1), "spread, but not for long");
}

#[test]
fn expired_again_and_again_backs_off() {
    let mut desk = watching("10");
    desk.end_after(AT_ONCE, &End::Error(refused(410, "Expired")));
    assert!(desk.list().1 >= Duration::from_millis(800));
    desk.machine.listed(&meta("11", None));
    desk.watch();
    desk.end_after(AT_ONCE, &End::Error(refused(410, "Expired")));
    assert!(desk.list().1 >= Duration::from_millis(1600));
}

#[test]
fn expired_or_too_large_a_version_in_a_list_asks_for_quorum_at_once_and_once() {
    for failure in [
        refused(410, "Expired"),
        refused(410, "Gone"),
        too_large(),
        Failure::Old(Version::new("5")),
    ] {
        let mut desk = watching("10");
        desk.end_after(LONG, &End::Error(refused(410, "Expired")));
        assert_eq!(desk.list().0.at, at("10"));
        desk.list_fails(&failure);
        let quorum = List {
            at: At::Now,
            limit: Some(500),
            token: None,
            reason: Reason::Expired,
        };
        assert_eq!(desk.list(), (quorum, AT_ONCE), "{failure}");
        desk.list_fails(&failure);
        let (list, waited) = desk.list();
        assert_eq!(list.at, At::Now);
        assert!(waited >= Duration::from_millis(800));
        desk.machine.listed(&meta("20", None));
        desk.watch();
        desk.end_after(LONG, &End::Error(refused(410, "Expired")));
        assert_eq!(
            desk.list().0.at,
            at("20"),
            "once a list succeeded caches are asked again"
        );
    }
}

#[test]
fn a_continue_token_that_expires_begins_anew_without_pages() {
    let mut desk = desk(None);
    desk.list();
    desk.machine.listed(&meta("10", Some("t1")));
    desk.list();
    desk.list_fails(&refused(410, "Expired"));
    let (list, waited) = desk.list();
    assert_eq!(
        list,
        List {
            at: At::Any,
            limit: None,
            token: None,
            reason: Reason::Initial
        }
    );
    assert_eq!(waited, AT_ONCE);
    assert_eq!(
        desk.machine.listed(&meta("12", None)),
        Some(Version::new("12"))
    );
}

#[test]
fn a_cached_list_older_than_what_is_known_is_refused_and_a_quorum_list_is_not() {
    let mut desk = watching("10");
    desk.end_after(LONG, &End::Error(refused(410, "Expired")));
    desk.list();
    let accept = |desk: &Desk, version: Option<&str>| {
        desk.machine.accept(version.map(Version::new).as_ref())
    };
    assert_eq!(
        accept(&desk, Some("9")),
        Err(Failure::Old(Version::new("9")))
    );
    assert_eq!(accept(&desk, None), Err(Failure::UnknownAge));
    assert_eq!(accept(&desk, Some("10")), Ok(()));
    desk.list_fails(&Failure::UnknownAge);
    assert_eq!(desk.list().0.at, At::Now);
    assert_eq!(accept(&desk, Some("9")), Ok(()));
    assert_eq!(accept(&desk, None), Ok(()));
}

#[test]
fn refusals_of_a_watch_are_told_apart() {
    let resumes = |failure: Failure| {
        let mut desk = watching("10");
        desk.end_after(AT_ONCE, &End::NotOpened(failure));
        let trouble = desk.machine.trouble();
        let (version, waited) = desk.watch();
        assert_eq!(version, Version::new("10"));
        (trouble.unwrap(), waited)
    };
    for (failure, cause) in [
        (refused(401, "Unauthorized"), TroubleCause::Unauthorized),
        (refused(403, "Forbidden"), TroubleCause::Forbidden),
        (refused(429, "TooManyRequests"), TroubleCause::Throttled),
        (refused(500, "InternalError"), TroubleCause::Failing),
        (
            Failure::Transport("connection refused".into()),
            TroubleCause::Unreachable,
        ),
        (Failure::Timeout(LONG), TroubleCause::Unreachable),
    ] {
        let (trouble, waited) = resumes(failure);
        assert_eq!(
            trouble,
            Trouble {
                verb: "watch",
                cause
            }
        );
        assert!((0.8..1.6).contains(&waited.as_secs_f64()));
    }
    let relists = |failure: Failure| {
        let mut desk = watching("10");
        desk.end_after(AT_ONCE, &End::NotOpened(failure));
        let (list, _) = desk.list();
        (list.at, list.reason)
    };
    assert_eq!(relists(refused(410, "Gone")), (at("10"), Reason::Expired));
    assert_eq!(
        relists(refused(404, "NotFound")),
        (at("10"), Reason::Missing)
    );
    assert_eq!(
        relists(refused(400, "BadRequest")),
        (At::Now, Reason::Errors)
    );
    assert_eq!(relists(too_large()), (At::Now, Reason::History));
}

#[test]
fn a_delay_the_server_asks_for_is_kept() {
    let busy = Failure::Refused(Status::parse(429, Some(Duration::from_secs(17)), b""));
    let mut desk = desk(None);
    desk.list();
    desk.list_fails(&busy);
    assert_eq!(desk.list().1, Duration::from_secs(17));
    let mut desk = watching("10");
    desk.end_after(AT_ONCE, &End::Error(busy));
    assert_eq!(desk.watch().1, Duration::from_secs(17));
}

#[test]
fn a_forbidden_list_is_retried_slowly_and_a_missing_kind_within_ten_seconds() {
    for (code, range) in [(403, 30.0..60.0), (404, 5.0..10.0)] {
        let mut desk = desk(None);
        let mut waited = Duration::ZERO;
        for _ in 0..10 {
            desk.list();
            desk.list_fails(&refused(code, ""));
            waited = desk.list().1;
            assert_eq!(desk.machine.trouble().unwrap().verb, "list");
        }
        assert!(range.contains(&waited.as_secs_f64()), "{code}: {waited:?}");
        desk.machine.listed(&meta("10", None));
        assert_eq!(desk.machine.trouble(), None);
    }
}

#[test]
fn what_breaks_off_a_list_lists_again_in_the_same_way() {
    for failure in [
        Failure::Transport("connection reset".into()),
        Failure::Frame(FrameError::Truncated {
            items: 3,
            bytes: 100,
        }),
        refused(500, "InternalError"),
    ] {
        let mut desk = desk(None);
        let first = desk.list().0;
        desk.machine.listed(&meta("10", Some("t1")));
        desk.list();
        desk.list_fails(&failure);
        let (again, waited) = desk.list();
        assert_eq!(again, first);
        assert!(waited >= Duration::from_millis(800));
    }
}

#[test]
fn errors_in_the_stream_resume_a_few_times_before_they_relist() {
    let mut desk = watching("10");
    for _ in 0..4 {
        desk.end_after(LONG, &End::Error(refused(500, "InternalError")));
        desk.watch();
    }
    desk.machine.advanced(&Version::new("11"));
    for _ in 0..4 {
        desk.end_after(LONG, &End::Error(refused(500, "InternalError")));
        assert_eq!(desk.watch().0, Version::new("11"));
    }
    desk.end_after(LONG, &End::Error(refused(500, "InternalError")));
    assert_eq!(desk.list().0.reason, Reason::Errors);
}

#[test]
fn an_event_nobody_understands_lists_again() {
    let mut desk = watching("10");
    desk.end_after(LONG, &End::Unreadable);
    let (list, waited) = desk.list();
    assert_eq!((list.at, list.reason), (at("10"), Reason::Unreadable));
    assert!(waited >= Duration::from_millis(800));
}

#[test]
fn a_consistent_list_on_request_is_by_quorum_and_waits_for_the_list_that_is_being_read() {
    let mut desk = watching("10");
    desk.machine.asked();
    desk.end_after(AT_ONCE, &End::Asked);
    let (list, waited) = desk.list();
    assert_eq!(
        (list.at, list.reason, waited),
        (At::Now, Reason::Asked, AT_ONCE)
    );
    desk.machine.listed(&meta("20", Some("t")));
    desk.list();
    desk.machine.asked();
    assert_eq!(desk.list().0.token, Some("t".into()));
    desk.machine.listed(&meta("20", None));
    assert_eq!(
        desk.list().0,
        List {
            at: At::Now,
            limit: Some(500),
            token: None,
            reason: Reason::Asked
        }
    );
    desk.machine.listed(&meta("21", None));
    desk.watch();
}

#[test]
fn after_a_crash_versions_without_an_order_are_not_resumed_from() {
    let plan = |version, exact| {
        Machine::new(
            Some(Version::new(version)),
            exact,
            500,
            SILENCE,
            Entropy::seeded(1),
        )
        .plan(Clock::system().now())
    };
    assert!(matches!(plan("10", false), Plan::Watch { .. }));
    assert!(matches!(plan("opaque", true), Plan::Watch { .. }));
    assert!(matches!(
        plan("opaque", false),
        Plan::List(List {
            at: At::Now,
            reason: Reason::Restarted,
            ..
        })
    ));
}
