use std::sync::Arc;

use serde_json::json;

use super::*;

/// Objects by name, all of one collection; the name is the uid.
#[derive(Default)]
struct World {
    owners: Owners,
    objects: BTreeMap<String, Arc<Object>>,
}

fn place(name: &str) -> Place {
    (Collection::new("", "things"), Key::new("ns", name))
}

impl World {
    fn put(&mut self, name: &str, owners: &[&str], finalizers: &[&str]) {
        let refs: Vec<_> = owners
            .iter()
            .map(|uid| json!({"uid": uid, "blockOwnerDeletion": true}))
            .collect();
        let mut body =
            json!({"metadata": {"uid": name, "ownerReferences": refs, "finalizers": finalizers}});
        if !finalizers.is_empty() {
            body["metadata"]["deletionTimestamp"] = "2024-01-01T00:00:00Z".into();
        }
        let object = Arc::new(Object::new(
            Key::new("ns", name),
            1,
            body.as_object().cloned().expect("an object"),
        ));
        let old = self.objects.insert(name.into(), object.clone());
        self.owners.observe(
            &Collection::new("", "things"),
            old.as_deref(),
            Some(&object),
        );
    }

    fn remove(&mut self, name: &str) {
        let old = self.objects.remove(name);
        self.owners
            .observe(&Collection::new("", "things"), old.as_deref(), None);
    }

    /// Everything the collector would do now.
    fn actions(&mut self) -> Vec<Action> {
        let mut all = Vec::new();
        while let Some(place) = self.owners.suspect() {
            all.extend(
                self.owners
                    .judge(&place, |(_, key)| self.objects.get(&key.name).cloned()),
            );
        }
        all
    }
}

fn delete(name: &str, foreground: bool) -> Action {
    Action::Delete {
        place: place(name),
        uid: name.into(),
        foreground,
    }
}

#[test]
fn an_object_goes_when_its_last_owner_has_gone() {
    let mut world = World::default();
    world.put("owner", &[], &[]);
    world.put("other", &[], &[]);
    world.put("child", &["owner", "other"], &[]);
    assert_eq!(world.actions(), []);
    world.remove("owner");
    assert_eq!(
        world.actions(),
        [Action::Disown {
            place: place("child"),
            owner: "owner".into()
        }]
    );
    world.remove("other");
    assert_eq!(world.actions(), [delete("child", false)]);
}

#[test]
fn an_object_born_to_an_absent_owner_goes() {
    let mut world = World::default();
    world.put("child", &["never"], &[]);
    assert_eq!(world.actions(), [delete("child", false)]);
}

#[test]
fn an_owner_without_dependents_is_left_alone() {
    let mut world = World::default();
    world.put("owner", &[], &[]);
    assert_eq!(world.actions(), []);
}

#[test]
fn a_foreground_deletion_waits_for_the_dependents() {
    let mut world = World::default();
    world.put("owner", &[], &[]);
    world.put("child", &["owner"], &[]);
    world.actions();
    world.put("owner", &[], &[FOREGROUND]);
    assert_eq!(world.actions(), [delete("child", true)]);
    world.remove("child");
    assert_eq!(
        world.actions(),
        [Action::Release {
            place: place("owner"),
            finalizer: FOREGROUND
        }]
    );
}

#[test]
fn an_orphaning_deletion_frees_the_dependents_first() {
    let mut world = World::default();
    world.put("owner", &[], &[]);
    world.put("child", &["owner"], &[]);
    world.actions();
    world.put("owner", &[], &[ORPHAN]);
    let expected = [
        Action::Disown {
            place: place("child"),
            owner: "owner".into(),
        },
        Action::Release {
            place: place("owner"),
            finalizer: ORPHAN,
        },
    ];
    assert_eq!(world.actions(), expected);
}
