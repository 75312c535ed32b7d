use super::{Doubts, Failure, MAX_HELD};
use crate::delta::Delta;
use crate::envelope;
use crate::key::Key;
use crate::version::Version;

fn listed(name: &str, version: u64) -> Delta {
    let json =
        format!(r#"{{"metadata":{{"name":"{name}","uid":"u","resourceVersion":"{version}"}}}}"#);
    Delta::Listed(envelope::open(json.as_bytes()).unwrap())
}

fn gone(name: &str) -> Delta {
    Delta::Gone {
        key: Key::new(None, name),
        last: None,
        version: None,
    }
}

fn names(deltas: &[Delta]) -> Vec<&str> {
    deltas.iter().map(|delta| delta.key().name()).collect()
}

#[test]
fn an_item_that_had_ended_by_what_is_known_waits_for_the_version_of_the_list() {
    let mut doubts = Doubts::new(Some(Version::new("10")));
    assert!(doubts.take(listed("stored", 5), true).unwrap().is_some());
    assert!(doubts.take(listed("new", 11), false).unwrap().is_some());
    assert!(doubts.take(listed("absent", 10), false).unwrap().is_none());
    assert_eq!(names(&doubts.proved()), ["absent"]);
}

#[test]
fn what_is_told_of_an_item_later_replaces_what_was_held_back() {
    let mut doubts = Doubts::new(Some(Version::new("10")));
    for name in ["changed", "deleted", "same"] {
        assert!(doubts.take(listed(name, 9), false).unwrap().is_none());
    }
    assert!(doubts.take(listed("changed", 12), false).unwrap().is_some());
    assert!(doubts.take(gone("deleted"), false).unwrap().is_some());
    assert_eq!(names(&doubts.proved()), ["same"]);
}

#[test]
fn a_list_of_nothing_but_doubtful_items_is_given_up() {
    let mut doubts = Doubts::new(Some(Version::new("10")));
    for number in 0..MAX_HELD {
        let item = listed(&number.to_string(), 1);
        assert!(doubts.take(item, false).unwrap().is_none());
    }
    let one_more = doubts.take(listed("one more", 1), false);
    assert_eq!(one_more.err(), Some(Failure::UnknownAge));
}

#[test]
fn while_nothing_is_known_nothing_is_held_back() {
    let mut doubts = Doubts::new(None);
    assert!(doubts.take(listed("a", 1), false).unwrap().is_some());
}
