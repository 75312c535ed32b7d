use super::{Outcome, settle};
use crate::delta::Trust;
use crate::delta_fifo::state::Gone;
use crate::object::{Object, Recall};
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
    trust: Trust,
) -> String {
    let settled = settle(stored.as_ref(), None, gone.as_ref(), latest.as_ref(), trust);
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
        case(None, None, at("u", "5"), Trust::Cached),
        "[created a@5], put a@5"
    );
    assert_eq!(
        case(at("u", "4"), None, at("u", "5"), Trust::Cached),
        "[updated a@5 from 4], put a@5"
    );
    assert_eq!(
        case(at("u", "5"), None, at("u", "5"), Trust::Cached),
        "[], keep"
    );
    assert_eq!(
        case(at("u", "4"), Some(gone("u", "5")), None, Trust::Cached),
        "[deleted a@5], remove"
    );
    assert_eq!(
        case(None, Some(gone("u", "5")), None, Trust::Cached),
        "[], keep"
    );
}

#[test]
fn another_uid_under_a_name_is_a_deletion_and_a_creation() {
    let at = |uid, version| Some(object(uid, version));
    assert_eq!(
        case(
            at("u", "4"),
            Some(gone("u", "5")),
            at("v", "6"),
            Trust::Cached
        ),
        "[deleted a@5, created a@6], put a@6"
    );
    assert_eq!(
        case(at("u", "4"), None, at("v", "6"), Trust::Cached),
        "[vanished a@4, created a@6], put a@6",
        "the end itself was missed"
    );
    assert_eq!(
        case(at("t", "3"), Some(gone("u", "5")), None, Trust::Cached),
        "[vanished a@3], remove",
        "nobody saw u"
    );
}

#[test]
fn what_is_older_than_what_is_stored_is_refused_unless_it_is_authoritative() {
    let at = |uid, version| Some(object(uid, version));
    assert_eq!(
        case(at("u", "9"), None, at("u", "5"), Trust::Cached),
        "[], keep, stale"
    );
    assert_eq!(
        case(at("v", "9"), None, at("u", "5"), Trust::Cached),
        "[], keep, stale"
    );
    assert_eq!(
        case(at("v", "9"), Some(gone("u", "5")), None, Trust::Cached),
        "[], keep, stale"
    );
    assert_eq!(
        case(
            at("v", "9"),
            Some(gone("u", "5")),
            at("v", "9"),
            Trust::Cached
        ),
        "[], keep, stale"
    );
    assert_eq!(
        case(at("u", "9"), None, at("u", "5"), Trust::Quorum),
        "[updated a@5 from 9], put a@5"
    );
    let grave = Version::new("9");
    let buried = settle(
        None,
        Some(&grave),
        None,
        at("u", "9").as_ref(),
        Trust::Cached,
    );
    assert!(buried.stale && buried.changes.is_empty());
    assert_eq!(
        settle(
            None,
            Some(&grave),
            None,
            at("u", "10").as_ref(),
            Trust::Cached
        )
        .changes
        .len(),
        1
    );
    assert_eq!(
        settle(
            None,
            Some(&grave),
            None,
            at("u", "5").as_ref(),
            Trust::Quorum
        )
        .changes
        .len(),
        1
    );
}

#[test]
fn a_version_used_a_second_time_hides_no_other_state_of_a_server_that_was_set_back() {
    let json = serde_json::json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "5"}, "spec": 1});
    let other = crate::envelope::open(json.to_string().as_bytes()).unwrap();
    assert_eq!(
        case(
            Some(object("u", "5")),
            None,
            Some(other.clone()),
            Trust::Restored
        ),
        "[updated a@5 from 5], put a@5"
    );
    assert_eq!(
        case(Some(object("u", "5")), None, Some(other), Trust::Cached),
        "[], keep"
    );
    assert_eq!(
        case(
            Some(object("u", "5")),
            None,
            Some(object("u", "5")),
            Trust::Restored
        ),
        "[], keep"
    );
}

#[test]
fn the_order_of_members_is_no_state() {
    let open = |json: &str| {
        let object = crate::envelope::open(json.as_bytes()).unwrap();
        // as one that is no Secret
        let memo = Recall::Memo(std::sync::Arc::new(crate::store::memo::Memo::new(1 << 20)));
        let body = crate::store::body::Body::plain(object.json().to_vec());
        object.kept(object.key(), body, memo)
    };
    let metadata = r#""metadata":{"name":"a","uid":"u","resourceVersion":"5"}"#;
    let one = open(&format!(r#"{{"kind":"K",{metadata},"spec":1}}"#));
    let other = open(&format!(r#"{{{metadata},"spec":1,"kind":"K"}}"#));
    assert_eq!(
        case(Some(one), None, Some(other), Trust::Restored),
        "[], keep"
    );
}

#[test]
fn versions_without_an_order_are_taken_as_they_come() {
    let at = |uid, version| Some(object(uid, version));
    assert_eq!(
        case(at("u", "beta"), None, at("u", "alpha"), Trust::Cached),
        "[updated a@alpha from beta], put a@alpha"
    );
    assert_eq!(
        case(at("u", "beta"), None, at("u", "beta"), Trust::Quorum),
        "[], keep"
    );
}
