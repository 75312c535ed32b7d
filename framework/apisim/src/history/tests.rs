use serde_json::Map;

use super::*;

fn object(name: &str, version: u64) -> Arc<Object> {
    Arc::new(Object::new(Key::new("ns", name), version, Map::new()))
}

fn change(name: &str, version: u64, old: Option<u64>) -> Change {
    Change {
        version,
        old: old.map(|v| object(name, v)),
        new: object(name, version),
        deleted: false,
        line: OnceLock::new(),
    }
}

fn versions(history: &History, since: u64) -> Result<Vec<u64>, Expired> {
    history
        .since(since)
        .map(|changes| changes.map(|c| c.version).collect())
}

#[test]
fn serves_only_what_came_after_the_asked_version() {
    let mut history = History::new(10);
    for version in 1..=5 {
        history.push(change("a", version, None));
    }
    assert_eq!(versions(&history, 3), Ok(vec![4, 5]));
    assert_eq!(versions(&history, 5), Ok(vec![]));
}

#[test]
fn a_version_in_the_future_is_accepted_and_silent() {
    let mut history = History::new(10);
    history.push(change("a", 1, None));
    assert_eq!(versions(&history, 99), Ok(vec![]));
}

#[test]
fn a_version_below_the_window_is_expired() {
    let mut history = History::new(2);
    for version in 1..=5 {
        history.push(change("a", version, None));
    }
    assert_eq!(
        versions(&history, 2),
        Err(Expired {
            asked: 2,
            oldest: 3
        })
    );
    assert_eq!(versions(&history, 3), Ok(vec![4, 5]));
}

#[test]
fn compaction_expires_older_versions_and_keeps_newer_changes() {
    let mut history = History::new(10);
    for version in 1..=5 {
        history.push(change("a", version, None));
    }
    history.compact(4);
    assert!(versions(&history, 3).is_err());
    assert_eq!(versions(&history, 4), Ok(vec![5]));
}

#[test]
fn undoing_yields_the_oldest_state_of_each_changed_object() {
    let mut history = History::new(10);
    history.push(change("a", 1, None));
    history.push(change("a", 2, Some(1)));
    history.push(change("a", 3, Some(2)));
    history.push(change("b", 4, None));
    let undo = history.undo(1).expect("remembered");
    assert_eq!(
        undo[&Key::new("ns", "a")].as_ref().map(|o| o.version),
        Some(1)
    );
    assert!(undo[&Key::new("ns", "b")].is_none());
}
