use serde_json::json;

use super::*;
use crate::{fields::managers, model::object::at, schema::Schema};

fn author<'a>(manager: &'a str, operation: &'static str) -> Author<'a> {
    Author {
        manager,
        operation,
        api_version: "apps/v1",
        subresource: "",
        now: "2024-01-01T00:00:00Z",
    }
}

fn body(value: Value) -> Body {
    value.as_object().cloned().expect("an object")
}

fn applied(live: &Body, manager: &str, config: Value) -> Body {
    apply(
        live,
        &body(config),
        Shape::Builtin(""),
        &author(manager, "Apply"),
        false,
    )
    .expect("applied")
}

fn owned(live: &Body, manager: &str) -> Value {
    let entry = managers::read(live)
        .into_iter()
        .find(|entry| entry.manager == manager);
    entry.map_or(Value::Null, |entry| entry.fields.render())
}

#[test]
fn a_field_no_longer_mentioned_is_removed_unless_someone_else_owns_it() {
    let live = applied(
        &Body::new(),
        "one",
        json!({"spec": {"replicas": 1, "paused": true}, "metadata": {"labels": {"a": "1", "b": "1"}}}),
    );
    let live = applied(&live, "two", json!({"metadata": {"labels": {"b": "1"}}}));
    let live = applied(&live, "one", json!({"spec": {"replicas": 1}}));
    assert_eq!(live["spec"], json!({"replicas": 1}));
    assert_eq!(live["metadata"]["labels"], json!({"b": "1"}));
    assert_eq!(owned(&live, "one"), json!({"f:spec": {"f:replicas": {}}}));
}

#[test]
fn the_same_value_is_shared_and_another_one_conflicts() {
    let live = applied(&Body::new(), "one", json!({"spec": {"replicas": 1}}));
    let live = applied(&live, "two", json!({"spec": {"replicas": 1}}));
    assert_eq!(owned(&live, "two"), owned(&live, "one"));
    let change = body(json!({"spec": {"replicas": 2}}));
    let refused = apply(
        &live,
        &change,
        Shape::Builtin(""),
        &author("two", "Apply"),
        false,
    )
    .expect_err("a conflict");
    assert_eq!(refused.details["causes"][0]["field"], ".spec.replicas");
    let forced = apply(
        &live,
        &change,
        Shape::Builtin(""),
        &author("two", "Apply"),
        true,
    )
    .expect("forced");
    assert_eq!(owned(&forced, "one"), Value::Null);
}

#[test]
fn an_update_takes_over_what_it_changes() {
    let live = applied(
        &Body::new(),
        "one",
        json!({"spec": {"replicas": 1, "paused": true}}),
    );
    let mut new = live.clone();
    new["spec"]["replicas"] = json!(5);
    managers::record(
        &live,
        &mut new,
        Shape::Builtin(""),
        &author("kubectl", "Update"),
    );
    assert_eq!(
        owned(&new, "kubectl"),
        json!({"f:spec": {"f:replicas": {}}})
    );
    assert_eq!(owned(&new, "one"), json!({"f:spec": {"f:paused": {}}}));
    let mut same = new.clone();
    managers::record(
        &new,
        &mut same,
        Shape::Builtin(""),
        &Author {
            now: "later",
            ..author("kubectl", "Update")
        },
    );
    assert_eq!(same, new, "nothing changed, not even a time");
}

#[test]
fn containers_are_owned_by_name() {
    let live = applied(
        &Body::new(),
        "one",
        json!({"spec": {"containers": [{"name": "a", "image": "x"}]}}),
    );
    let live = applied(
        &live,
        "two",
        json!({"spec": {"containers": [{"name": "b", "image": "y"}]}}),
    );
    assert_eq!(live["spec"]["containers"].as_array().map(Vec::len), Some(2));
    assert_eq!(
        owned(&live, "two"),
        json!({"f:spec": {"f:containers": {"k:{\"name\":\"b\"}": {".": {}, "f:image": {}, "f:name": {}}}}})
    );
    let live = applied(&live, "one", json!({"spec": {}}));
    assert_eq!(
        live["spec"]["containers"],
        json!([{"name": "b", "image": "y"}])
    );
}

#[test]
fn lists_of_custom_resources_follow_their_schema() {
    let schema = Schema::compile(
        &json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "rules": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"], "items": {"type": "object"}},
            "plain": {"type": "array", "items": {"type": "string"}},
        }}}}),
        "",
    )
    .expect("a schema");
    let shape = Shape::root(Some(&schema));
    let step = |live: &Body, manager: &str, config: Value| {
        apply(live, &body(config), shape, &author(manager, "Apply"), false)
    };
    let live = step(
        &Body::new(),
        "one",
        json!({"spec": {"rules": [{"id": 1, "v": "a"}], "plain": ["x"]}}),
    )
    .expect("applied");
    let live = step(&live, "two", json!({"spec": {"rules": [{"id": 2}]}})).expect("applied");
    assert_eq!(
        at(&live, &["spec", "rules"])
            .and_then(Value::as_array)
            .map(Vec::len),
        Some(2)
    );
    assert!(
        step(&live, "two", json!({"spec": {"plain": ["y"]}})).is_err(),
        "a plain list is one value"
    );
}
