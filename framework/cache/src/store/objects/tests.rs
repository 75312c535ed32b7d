use std::collections::BTreeMap;
use std::ops::Bound;

use proptest::prelude::*;

use super::{Entry, Objects};
use crate::key::Key;

fn entry(name: &str, stamp: u64) -> Entry {
    let json =
        serde_json::json!({"metadata": {"namespace": "n", "name": name, "resourceVersion": "1"}});
    Entry {
        object: crate::envelope::open(json.to_string().as_bytes()).unwrap(),
        stamp,
    }
}

proptest! {
    #[test]
    fn what_is_found_by_hash_is_what_stands_in_order(steps in prop::collection::vec((any::<bool>(), 0..40_u8), 0..200)) {
        let mut objects = Objects::default();
        let mut model = BTreeMap::new();
        for (stamp, (adds, number)) in (0..).zip(steps) {
            let key = Key::new(Some("n"), &format!("o{number}"));
            if !adds {
                let removed = objects.remove(&key).map(|entry| entry.stamp);
                prop_assert_eq!(removed, model.remove(&key));
            } else if let Some(present) = objects.get_mut(&key) {
                present.stamp = stamp;
                prop_assert!(model.insert(key, stamp).is_some());
            } else {
                objects.add(entry(key.name(), stamp));
                prop_assert!(model.insert(key, stamp).is_none());
            }
        }
        prop_assert_eq!(objects.len(), model.len());
        prop_assert_eq!(objects.iter().count(), model.len());
        for from in [Bound::Unbounded, Bound::Excluded(&Key::new(Some("n"), "o2"))] {
            let sorted: Vec<_> = objects.sorted(from).map(|object| object.key().clone()).collect();
            let range = model.range((from, Bound::Unbounded));
            prop_assert_eq!(sorted, range.map(|(key, _)| key.clone()).collect::<Vec<_>>());
        }
        for (key, stamp) in &model {
            prop_assert_eq!(objects.get(key).map(|entry| entry.stamp), Some(*stamp));
        }
    }
}

#[test]
fn room_of_many_objects_is_given_back_when_they_are_gone() {
    let mut objects = Objects::default();
    for number in 0..10_000 {
        objects.add(entry(&format!("o{number}"), 0));
    }
    let most = objects.table.capacity();
    for number in 100..10_000 {
        assert!(
            objects
                .remove(&Key::new(Some("n"), &format!("o{number}")))
                .is_some()
        );
    }
    assert!(
        objects.table.capacity() < most / 4,
        "{}",
        objects.table.capacity()
    );
    assert_eq!(objects.sorted(Bound::Unbounded).count(), 100);
}
