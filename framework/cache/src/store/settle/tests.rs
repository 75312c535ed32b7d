use super::{Outcome, settle};
use crate::delta_fifo::state::Gone;
use crate::object::Object;
use crate::version::Version;

fn object(uid: &str, version: &str) -> Object {
    let json =
        serde_json::json!({"metadata": {"name": "a", "uid": uid, "resourceVersion": version}});
    crate::envelope::open(json.to_string().as_bytes()).unwrap()
}

fn gone(uid: &str, version: &str) -> Gone {
    Gone {
        last: Some(object(uid, version)),
        version: Some(Version::new(version)),
    }
}

/// `stored, gone, latest -> changes, outcome`.
fn case(
    stored: Option<Object>,
    gone: Option<Gone>,
    latest: Option<Object>,
    authoritative: bool,
) -> String {
    let settled = settle(
        stored.as_ref(),
        None,
        gone.as_ref(),
        latest.as_ref(),
        authoritative,
    );
    let outcome = match settled.outcome {
        Outcome::Keep => "keep".to_owned(),
        Outcome::Put(object) => format!("put {object:?}"),
        Outcome::Remove => "remove".to_owned(),
    };
    let stale = if settled.stale { ", stale" } else { "" };
    format!("{:?}, {outcome}{stale}", settled.changes)
}

#[test]
fn news_of_a_key_become_changes() {
    let at = |uid, version| Some(object(uid, version));
    assert_eq!(
        case(None, None, at("u", "5"), false),
        "[created a@5], put a@5"
    );
    assert_eq!(
        case(at("u", "4"), None, at("u", "5"), false),
        "[updated a@5 from 4], put a@5"
    );
    assert_eq!(case(at("u", "5"), None, at("u", "5"), false), "[], keep");
    assert_eq!(
        case(at("u", "4"), Some(gone("u", "5")), None, false),
        "[deleted a@5], remove"
    );
    assert_eq!(case(None, Some(gone("u", "5")), None, false), "[], keep");
}

#[test]
fn another_uid_under_a_name_is_a_deletion_and_a_creation() {
    let at = |uid, version| Some(object(uid, version));
    assert_eq!(
        case(at("u", "4"), Some(gone("u", "5")), at("v", "6"), false),
        "[deleted a@5, created a@6], put a@6"
    );
    assert_eq!(
        case(at("u", "4"), None, at("v", "6"), false),
        "[vanished a@4, created a@6], put a@6",
        "the end itself was missed"
    );
    assert_eq!(
        case(at("t", "3"), Some(gone("u", "5")), None, false),
        "[vanished a@3], remove",
        "nobody saw u"
    );
}

#[test]
fn what_is_older_than_what_is_stored_is_refused_unless_it_is_authoritative() {
    let at = |uid, version| Some(object(uid, version));
    assert_eq!(
        case(at("u", "9"), None, at("u", "5"), false),
        "[], keep, stale"
    );
    assert_eq!(
        case(at("v", "9"), None, at("u", "5"), false),
        "[], keep, stale"
    );
    assert_eq!(
        case(at("v", "9"), Some(gone("u", "5")), None, false),
        "[], keep, stale"
    );
    assert_eq!(
        case(at("v", "9"), Some(gone("u", "5")), at("v", "9"), false),
        "[], keep, stale"
    );
    assert_eq!(
        case(at("u", "9"), None, at("u", "5"), true),
        "[updated a@5 from 9], put a@5"
    );
    let grave = Version::new("9");
    let buried = settle(None, Some(&grave), None, at("u", "9").as_ref(), false);
    assert!(buried.stale && buried.changes.is_empty());
    assert_eq!(
        settle(None, Some(&grave), None, at("u", "10").as_ref(), false)
            .changes
            .len(),
        1
    );
    assert_eq!(
        settle(None, Some(&grave), None, at("u", "5").as_ref(), true)
            .changes
            .len(),
        1
    );
}

#[test]
fn versions_without_an_order_are_taken_as_they_come() {
    let at = |uid, version| Some(object(uid, version));
    assert_eq!(
        case(at("u", "beta"), None, at("u", "alpha"), false),
        "[updated a@alpha from beta], put a@alpha"
    );
    assert_eq!(
        case(at("u", "beta"), None, at("u", "beta"), false),
        "[], keep"
    );
}
