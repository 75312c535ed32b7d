use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::Transform;
use crate::core::InformerCore;
use crate::delta::{Cause, Delta};
use crate::delta_fifo::state::Fifo;
use crate::key::Key;
use crate::kind::Kind;
use crate::object::Path;
use crate::opener::Opener;
use crate::selection::Selection;
use crate::store::StoreOptions;
use std::sync::Arc;

fn object() -> Value {
    json!({"metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "5", "managedFields": [{"x": 1}]},
        "spec": {"list": [{"x": 1, "y": 2}, {"x": 3}], "z": 1}, "status": {"s": 1}})
}

fn taken_in(transform: Transform, object: &Value) -> Value {
    let opener = Opener::new(None, transform, false, None);
    let opened = opener.open(object.to_string().as_bytes()).unwrap();
    serde_json::from_slice(&opened.json()).unwrap()
}

fn core(transform: Transform) -> Arc<InformerCore> {
    let options = StoreOptions {
        transform,
        ..StoreOptions::default()
    };
    InformerCore::with(Selection::new(kind("apps", "Deployment")), options)
}

fn kind(group: &str, kind: &str) -> Kind {
    Kind {
        group: group.into(),
        version: "v1".into(),
        kind: kind.into(),
        plural: format!("{}s", kind.to_lowercase()),
        namespaced: true,
    }
}

/// The object goes through the commit; returns what is stored of it.
fn put(core: &InformerCore, object: &Value) -> Value {
    let mut fifo = Fifo::new(None, 0);
    let opened = core.opener().open(object.to_string().as_bytes()).unwrap();
    fifo.push(Delta::Seen(opened), None);
    core.hand_over(fifo.pop(9).unwrap());
    core.commit_in_hand();
    let json = core.get(&Key::new(Some("n"), "a")).unwrap().json();
    let mut kept: Value = serde_json::from_slice(&json).unwrap();
    for member in ["apiVersion", "kind"] {
        kept.as_object_mut().unwrap().remove(member);
    }
    kept
}

#[test]
fn managed_fields_are_left_out_unless_they_are_wanted() {
    let mut expected = object();
    assert_eq!(taken_in(Transform::none(), &object()), expected);
    expected["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("managedFields");
    assert_eq!(taken_in(Transform::default(), &object()), expected);
}

#[test]
fn paths_are_left_out_of_what_is_kept() {
    let transform = Transform::none()
        .without("metadata.managedFields")
        .without("spec.list[*].x")
        .without("status")
        .without("nothing.here");
    assert_eq!(
        taken_in(transform, &object()),
        json!({"metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "5"}, "spec": {"list": [{"y": 2}, {}], "z": 1}})
    );
}

#[test]
fn a_closure_changes_what_is_kept_but_never_who_it_is() {
    let transform = Transform::default().with(|object| {
        *object = json!({"metadata": {"name": "other", "uid": "forged", "resourceVersion": "99"}, "spec": object["spec"]["z"]});
        Ok(())
    });
    let core = core(transform);
    let kept = put(&core, &object());
    assert_eq!(
        kept,
        json!({"metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "5"}, "spec": 1})
    );
    let stored = core.get(&Key::new(Some("n"), "a")).unwrap();
    assert_eq!(stored.meta().resource_version.to_string(), "5");
    assert_eq!(stored.meta().uid.to_string(), "u");
}

#[test]
fn an_object_a_closure_fails_for_is_stored_without_it_and_counted() {
    type Change = fn(&mut Value) -> Result<(), String>;
    let failing: [Change; 4] = [
        |object| {
            object["spec"] = Value::Null;
            Err("not this one".into())
        },
        |_| panic!("not this one"),
        |object| {
            *object = json!("no object");
            Ok(())
        },
        |object| {
            object["metadata"] = json!([]);
            Ok(())
        },
    ];
    for change in failing {
        let core = core(Transform::default().with(change));
        let kept = put(&core, &object());
        assert_eq!(kept["spec"], object()["spec"]);
        let status = core.status(boatswain_supervision::Clock::system().now());
        assert_eq!(status.counters.untransformed, 1);
    }
}

#[test]
fn objects_of_lists_are_told_what_they_are() {
    let opener = Opener::new(
        Some(&Selection::new(kind("apps", "Deployment"))),
        Transform::default(),
        false,
        None,
    );
    let json = |text: &str| -> Value {
        serde_json::from_slice(&opener.open(text.as_bytes()).unwrap().json()).unwrap()
    };
    let bare = json(r#" {"metadata":{"name":"a","resourceVersion":"1"}}"#);
    assert_eq!(bare["kind"], "Deployment");
    assert_eq!(bare["apiVersion"], "apps/v1");
    let told = json(
        r#"{"kind":"Deployment","apiVersion":"x/v1","metadata":{"name":"a","resourceVersion":"1"}}"#,
    );
    assert_eq!(told["apiVersion"], "x/v1", "what the server says stands");
}

#[test]
fn a_change_is_told_by_what_is_kept() {
    // what subscribers, indexes and readers see is one and the same
    let transform = Transform::default().with(|object| {
        object["spec"] = json!({"kept": true});
        Ok(())
    });
    let core = core(transform);
    core.add_index(crate::IndexSpec::path("spec.kept"));
    let told = core.subscribe("test", || {});
    put(&core, &object());
    let batch = told.take(9).unwrap();
    let (change, cause) = &batch.changes()[0];
    assert_eq!(*cause, Cause::Watch);
    assert_eq!(
        change.new().unwrap().path("spec.kept").as_deref(),
        Some("true")
    );
    assert_eq!(
        core.reader()
            .keys_by_index("spec.kept", "true")
            .unwrap()
            .len(),
        1
    );
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        "[ -~é\\\\\"]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("(a|b|c|\"|é)", inner), 0..4)
                .prop_map(|members| Value::Object(Map::from_iter(members))),
        ]
    })
}

/// Leaves out what the steps lead to, in a parsed document.
fn without(value: &mut Value, steps: &[&str]) {
    match (steps, value) {
        (["[*]"], Value::Array(list)) => list.clear(),
        (["[*]", rest @ ..], Value::Array(list)) => {
            list.iter_mut().for_each(|element| without(element, rest))
        }
        ([name], Value::Object(members)) => drop(members.remove(*name)),
        ([name, rest @ ..], Value::Object(members)) => {
            if let Some(member) = members.get_mut(*name) {
                without(member, rest);
            }
        }
        _ => {}
    }
}

proptest! {
    #[test]
    fn cutting_bytes_is_cutting_the_document(document in value(), path in prop::collection::vec("(a|b|c|é|\\[\\*\\])", 1..4), pretty: bool) {
        let bytes = if pretty { serde_json::to_vec_pretty(&document) } else { serde_json::to_vec(&document) }.unwrap();
        let steps: Vec<&str> = path.iter().map(String::as_str).collect();
        let cut = Path::new(&steps.join(".")).cut(&bytes).unwrap_or_else(|| bytes.clone());
        let mut expected = document;
        without(&mut expected, &steps);
        prop_assert_eq!(serde_json::from_slice::<Value>(&cut).unwrap(), expected, "{}", String::from_utf8_lossy(&cut));
    }
}

#[test]
fn transforms_are_equal_when_they_leave_out_the_same_and_run_the_same_closure() {
    let paths = || Transform::default().without("status").without("data");
    assert_eq!(paths(), paths());
    assert_ne!(paths(), Transform::default().without("data"));
    assert_ne!(Transform::default(), Transform::none());
    // capturing, for closures without a state may share one address
    let closure = |n: u8| paths().with(move |_| if n == 0 { Err("no".into()) } else { Ok(()) });
    let one = closure(1);
    assert_eq!(one, one.clone());
    assert_ne!(one, closure(1), "who knows whether they do the same");
    assert_ne!(one, paths());
}
