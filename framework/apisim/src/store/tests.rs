use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn maps() -> Collection {
    Collection::new("", "configmaps")
}

fn key(name: &str) -> Key {
    Key::new("ns", name)
}

fn body(name: &str, value: u32) -> Body {
    let value = json!({"metadata": {"name": name, "uid": format!("uid-{name}")}, "data": value});
    value.as_object().cloned().expect("an object")
}

fn names(objects: &[Arc<Object>]) -> Vec<&str> {
    objects
        .iter()
        .map(|object| object.key.name.as_str())
        .collect()
}

#[test]
fn one_counter_orders_the_writes_of_all_collections() {
    let mut store = Store::new(10);
    let first = store.insert(&maps(), key("a"), body("a", 1)).expect("new");
    let second = store
        .insert(&Collection::new("", "pods"), key("a"), body("a", 1))
        .expect("new");
    assert_eq!(second.version, first.version + 1);
    assert_eq!(store.version(), second.version);
    assert_eq!(
        second.body["metadata"]["resourceVersion"],
        second.version.to_string()
    );
}

#[test]
fn an_equal_body_is_no_write() {
    let mut store = Store::new(10);
    let made = store.insert(&maps(), key("a"), body("a", 1)).expect("new");
    let same = store
        .replace(&maps(), &key("a"), &Precondition::default(), body("a", 1))
        .expect("there");
    assert_eq!(same.version, made.version);
    let other = store
        .replace(&maps(), &key("a"), &Precondition::default(), body("a", 2))
        .expect("there");
    assert_eq!(other.version, made.version + 1);
}

#[test]
fn preconditions_name_what_they_found() {
    let mut store = Store::new(10);
    let made = store.insert(&maps(), key("a"), body("a", 1)).expect("new");
    let uid = Precondition {
        uid: Some("x".into()),
        version: None,
    };
    let found = store
        .require(&maps(), &key("a"), &uid)
        .expect_err("another uid");
    assert_eq!(
        found,
        Refusal::OtherUid {
            wanted: "x".into(),
            found: "uid-a".into()
        }
    );
    let version = Precondition {
        uid: None,
        version: Some("1".into()),
    };
    let found = store
        .remove(&maps(), &key("a"), &version, body("a", 1))
        .expect_err("another version");
    assert_eq!(
        found,
        Refusal::OtherVersion {
            wanted: "1".into(),
            found: made.version
        }
    );
    assert_eq!(
        store.require(&maps(), &key("b"), &uid).expect_err("absent"),
        Refusal::Absent
    );
}

#[test]
fn an_earlier_moment_is_shown_as_it_was() {
    let mut store = Store::new(10);
    for name in ["a", "b", "c"] {
        store
            .insert(&maps(), key(name), body(name, 1))
            .expect("new");
    }
    let then = store.version();
    store
        .remove(&maps(), &key("b"), &Precondition::default(), body("b", 1))
        .expect("there");
    store
        .replace(&maps(), &key("c"), &Precondition::default(), body("c", 2))
        .expect("there");
    store
        .insert(&maps(), key("bb"), body("bb", 1))
        .expect("new");
    let seen = store
        .at(&maps(), "", then, Some(&key("a")))
        .expect("remembered");
    assert_eq!(names(&seen), ["b", "c"]);
    assert_eq!(seen[1].body["data"], 1);
    store.compact();
    assert!(store.at(&maps(), "", then, None).is_err());
    let now = store.version();
    assert_eq!(
        names(&store.at(&maps(), "", now, None).expect("now")),
        ["a", "bb", "c"]
    );
}

#[test]
fn a_namespace_does_not_show_its_neighbours() {
    let mut store = Store::new(10);
    for namespace in ["team", "team-a", "tea", "team0"] {
        store
            .insert(&maps(), Key::new(namespace, "x"), body("x", 1))
            .expect("new");
    }
    let found: Vec<_> = store
        .scan(&maps(), "team")
        .map(|object| object.key.namespace.as_str())
        .collect();
    assert_eq!(found, ["team"]);
}

proptest! {
    /// Whatever is written, the state at any remembered version is the state that was there at that version.
    #[test]
    fn the_past_is_what_was_seen_when_it_was_present(writes in prop::collection::vec((0_u8..4, 0_u32..3), 1..40)) {
        let mut store = Store::new(1000);
        store.insert(&maps(), key("seed"), body("seed", 0)).expect("new");
        let mut seen: BTreeMap<u64, Vec<(String, u64)>> = BTreeMap::new();
        let look = |store: &Store| store.scan(&maps(), "").map(|o| (o.key.name.clone(), o.version)).collect::<Vec<_>>();
        for (name, value) in writes {
            let name = format!("n{name}");
            let there = store.get(&maps(), &key(&name)).is_some();
            match (there, value) {
                (false, _) => drop(store.insert(&maps(), key(&name), body(&name, value))),
                (true, 0) => drop(store.remove(&maps(), &key(&name), &Precondition::default(), body(&name, 0))),
                (true, _) => drop(store.replace(&maps(), &key(&name), &Precondition::default(), body(&name, value))),
            }
            seen.insert(store.version(), look(&store));
        }
        for (version, then) in seen {
            let now: Vec<_> = store.at(&maps(), "", version, None).expect("remembered").iter().map(|o| (o.key.name.clone(), o.version)).collect();
            prop_assert_eq!(now, then);
        }
    }
}
