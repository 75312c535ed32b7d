use super::Predicate;
use crate::delta::Change;
use crate::envelope;
use crate::object::Object;
use kube::core::{Expression, Selector};
use proptest::prelude::*;
use serde_json::{Value, json};

fn object(more: Value) -> Object {
    let mut document = json!({"metadata": {"name": "a", "namespace": "n", "uid": "u1", "resourceVersion": "1", "generation": 1}});
    merge(&mut document, more);
    envelope::open(document.to_string().as_bytes()).unwrap()
}

fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (name, value) in more {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more,
    }
}

fn at(version: u32, more: Value) -> Object {
    let mut document = json!({"metadata": {"resourceVersion": version.to_string()}});
    merge(&mut document, more);
    object(document)
}

fn updated(old: Value, new: Value) -> Change {
    Change::Updated {
        old: at(1, old),
        new: at(2, new),
    }
}

fn created() -> Change {
    Change::Created(object(json!({})))
}

fn deleted(certain: bool) -> Change {
    Change::Deleted {
        last: object(json!({})),
        certain,
    }
}

fn team(name: &'static str) -> Selector {
    Selector::from_iter([("team", name)])
}

fn differences() -> Vec<Predicate> {
    vec![
        Predicate::generation_changed(),
        Predicate::version_changed(),
        Predicate::labels_changed(),
        Predicate::annotations_changed(),
        Predicate::finalizers_changed(),
        Predicate::deletion_requested(),
        Predicate::path_changed("spec.replicas"),
    ]
}

#[test]
fn every_difference_sees_its_own_update_and_no_other() {
    let updates = [
        updated(json!({}), json!({"metadata": {"generation": 2}})),
        updated(json!({}), json!({})),
        updated(json!({}), json!({"metadata": {"labels": {"a": "b"}}})),
        updated(json!({}), json!({"metadata": {"annotations": {"a": "b"}}})),
        updated(json!({"metadata": {"finalizers": ["a/b"]}}), json!({})),
        updated(
            json!({}),
            json!({"metadata": {"deletionTimestamp": "2024-05-01T10:00:00Z"}}),
        ),
        updated(
            json!({"spec": {"replicas": 1}}),
            json!({"spec": {"replicas": 2}}),
        ),
    ];
    for (one, predicate) in differences().iter().enumerate() {
        for (other, update) in updates.iter().enumerate() {
            let every_update = one == 1;
            assert_eq!(
                predicate.passes(update),
                one == other || every_update,
                "{predicate}: {update:?} {other}"
            );
        }
    }
}

#[test]
fn deletions_and_recreations_pass_whatever_a_difference_asks_for() {
    let recreated = Change::Updated {
        old: object(json!({})),
        new: at(9, json!({"metadata": {"uid": "u2"}})),
    };
    for predicate in differences() {
        for predicate in [
            predicate.clone(),
            !predicate.clone(),
            predicate.clone().and(Predicate::generation_changed()),
            predicate.clone().or(!Predicate::path_changed("status")),
        ] {
            for change in [created(), deleted(true), deleted(false), recreated.clone()] {
                assert!(predicate.passes(&change), "{predicate}: {change:?}");
            }
        }
    }
}

#[test]
fn an_update_from_a_state_that_lost_its_insides_passes() {
    let change = Change::Updated {
        old: object(json!({})).thinned(),
        new: at(2, json!({"status": {"a": 1}})),
    };
    for predicate in differences() {
        assert!(predicate.passes(&change) && (!predicate).passes(&change));
    }
    assert!(!Predicate::namespace_in(["m"]).passes(&change));
}

#[test]
fn a_recreated_object_of_the_same_generation_is_not_ignored() {
    // the end and the new beginning arrive as two changes, and neither is compared with a memory of the other
    let predicate = Predicate::generation_changed();
    assert!(predicate.passes(&deleted(false)));
    assert!(predicate.passes(&Change::Created(at(9, json!({"metadata": {"uid": "u2"}})))));
}

#[test]
fn a_kind_that_counts_no_generations_passes_every_update_but_a_resync() {
    let config = |version| at(version, json!({"metadata": {"generation": null}}));
    let update = |old, new| Change::Updated {
        old: config(old),
        new: config(new),
    };
    assert!(Predicate::generation_changed().passes(&update(1, 2)));
    assert!(!Predicate::generation_changed().passes(&update(1, 1)));
}

#[test]
fn a_resync_is_filtered_by_differences_and_passed_by_states() {
    let state = object(json!({"metadata": {"labels": {"team": "a"}}}));
    let resync = Change::Updated {
        old: state.clone(),
        new: state,
    };
    for predicate in differences() {
        assert!(!predicate.passes(&resync), "{predicate}");
    }
    assert!(Predicate::labels_match(team("a")).passes(&resync));
    assert!(Predicate::namespace_in(["n"]).passes(&resync));
}

#[test]
fn entering_and_leaving_a_selector_both_count() {
    let predicate = Predicate::labels_match(team("a"));
    let (a, b) = (
        json!({"metadata": {"labels": {"team": "a"}}}),
        json!({"metadata": {"labels": {"team": "b"}}}),
    );
    assert!(predicate.passes(&updated(a.clone(), b.clone())));
    assert!(predicate.passes(&updated(b.clone(), a.clone())));
    assert!(!predicate.passes(&updated(b.clone(), b.clone())));
    assert!(predicate.passes(&Change::Created(object(a.clone()))));
    assert!(!predicate.passes(&deleted(true)));
    let last = object(a.clone());
    assert!(predicate.passes(&Change::Deleted {
        last,
        certain: false
    }));
    let others = !predicate;
    assert!(others.passes(&updated(a.clone(), b.clone())) && others.passes(&deleted(true)));
    assert!(!others.passes(&updated(a.clone(), a)));
    let any = Predicate::labels_match(Expression::Exists("team".into()));
    assert!(any.passes(&Change::Created(object(b))) && !any.passes(&created()));
}

#[test]
fn a_namespace_is_judged_on_creations_and_deletions_too() {
    for (predicate, passes) in [
        (Predicate::namespace_in(["n", "m"]), true),
        (Predicate::namespace_in(["m"]), false),
        (!Predicate::namespace_in(["m"]), true),
        (
            Predicate::namespace_in(["m"]).or(Predicate::generation_changed()),
            false,
        ),
        (
            Predicate::generation_changed().and(Predicate::namespace_in(["n"])),
            true,
        ),
    ] {
        assert_eq!(predicate.passes(&created()), passes, "{predicate}");
        assert_eq!(predicate.passes(&deleted(false)), passes, "{predicate}");
    }
}

#[test]
fn a_path_changes_with_whatever_is_below_it_and_not_with_how_it_is_written() {
    let spec = Predicate::path_changed("spec");
    let nested = |n: u32| json!({"spec": {"a": [{"b": n}]}});
    assert!(spec.passes(&updated(nested(1), nested(2))));
    assert!(!spec.passes(&updated(nested(1), nested(1))));
    let text = |version: u32, spec: &str| {
        let text =
            format!(r#"{{"metadata":{{"name":"a","resourceVersion":"{version}"}},"spec":{spec}}}"#);
        envelope::open(text.as_bytes()).unwrap()
    };
    let update = |old, new| Change::Updated {
        old: text(1, old),
        new: text(2, new),
    };
    assert!(!spec.passes(&update(r#"{"a":1,"b":2}"#, r#"{ "b":2, "a":1 }"#)));
    assert!(!Predicate::path_changed("spec.a").passes(&update(r#"{"a":null}"#, "{}")));
    assert!(Predicate::path_changed("spec.a").passes(&update(r#"{"a":{}}"#, "{}")));
    assert!(
        Predicate::path_changed("spec.v[*].n")
            .passes(&update(r#"{"v":[{"n":1}]}"#, r#"{"v":[{"n":2}]}"#))
    );
    let deep = "[".repeat(200) + &"]".repeat(200);
    assert!(!spec.passes(&update(&deep, &deep)) && spec.passes(&update(&deep, "{}")));
}

#[test]
fn an_empty_part_of_the_metadata_is_the_same_as_none() {
    for part in ["labels", "annotations", "finalizers"] {
        let empty = if part == "finalizers" {
            json!([])
        } else {
            json!({})
        };
        let predicate = Predicate::part_changed(part);
        assert!(!predicate.passes(&updated(json!({}), json!({"metadata": {part: empty}}))));
        assert!(!predicate.passes(&updated(json!({}), json!({"metadata": {part: null}}),)));
    }
}

#[test]
fn predicates_of_ones_own_are_told_what_they_ask_about() {
    let old_is_one = Predicate::difference("from one", |old, _| {
        old.path("spec.replicas").as_deref() == Some("1")
    });
    let one = json!({"spec": {"replicas": 1}});
    assert!(old_is_one.passes(&updated(one.clone(), json!({}))));
    assert!(!old_is_one.passes(&updated(json!({}), one)));
    let gone = Predicate::change("deletions", |change| change.new().is_none());
    assert!(gone.passes(&deleted(true)) && !gone.passes(&created()));
    let kept = !gone;
    assert!(!kept.passes(&deleted(true)) && kept.passes(&created()));
}

#[test]
fn a_predicate_says_what_it_is() {
    let all = (!Predicate::labels_match(team("a")))
        .and(Predicate::generation_changed().or(Predicate::path_changed("spec.x")))
        .and(!Predicate::version_changed().and(Predicate::namespace_in(["b", "a"])));
    assert_eq!(
        all.to_string(),
        "(not labels match team=a and (generation changed or spec.x changed)) and not (version changed and in namespace a, b)"
    );
}

proptest! {
    #[test]
    fn turning_around_what_is_joined_joins_what_is_turned_around(choice in prop::collection::vec(0_usize..10, 2), change in 0_usize..5) {
        let mut all = differences();
        all.extend([Predicate::labels_match(team("a")), Predicate::namespace_in(["n"]), Predicate::namespace_in(["m"])]);
        let (a, b) = (all[choice[0]].clone(), all[choice[1]].clone());
        let labels = json!({"metadata": {"labels": {"team": "a"}, "generation": 2}});
        let change = [created(), deleted(true), updated(json!({}), labels.clone()), updated(labels.clone(), labels), updated(json!({}), json!({}))][change].clone();
        prop_assert_eq!((!(a.clone().and(b.clone()))).passes(&change), (!a.clone()).or(!b.clone()).passes(&change));
        prop_assert_eq!((!(a.clone().or(b.clone()))).passes(&change), (!a.clone()).and(!b.clone()).passes(&change));
        prop_assert_eq!((!!a.clone()).passes(&change), a.passes(&change));
    }
}
