use serde_json::json;

use super::*;
use crate::failure::Cause;

fn compiled(properties: Value) -> Schema {
    Schema::compile(
        &json!({"type": "object", "properties": {"spec": properties}}),
        "schema",
    )
    .expect("a schema")
}

fn checked(schema: &Value, value: Value) -> Vec<String> {
    let object = json!({"spec": value});
    let causes = compiled(schema.clone()).check(object.as_object().expect("an object"));
    causes
        .into_iter()
        .map(|Cause { field, message, .. }| format!("{field}: {message}"))
        .collect()
}

#[test]
fn each_constraint_refuses_in_the_words_of_the_server() {
    for (schema, good, bad, words) in [
        (
            json!({"type": "integer"}),
            json!(3),
            json!("x"),
            "spec: Invalid value: \"string\": spec in body must be of type integer: \"string\"",
        ),
        (
            json!({"type": "integer"}),
            json!(3.0),
            json!(3.5),
            "spec: Invalid value: \"number\": spec in body must be of type integer: \"number\"",
        ),
        (
            json!({"type": "string", "enum": ["a", "b"]}),
            json!("a"),
            json!("c"),
            "spec: Unsupported value: \"c\": supported values: \"a\", \"b\"",
        ),
        (
            json!({"type": "integer", "minimum": 0}),
            json!(0),
            json!(-1),
            "spec: Invalid value: -1: spec in body should be greater than or equal to 0",
        ),
        (
            json!({"type": "integer", "maximum": 10000}),
            json!(10000),
            json!(10001),
            "spec: Invalid value: 10001: spec in body should be less than or equal to 10000",
        ),
        (
            json!({"type": "number", "minimum": 0, "exclusiveMinimum": true}),
            json!(0.1),
            json!(0),
            "spec: Invalid value: 0: spec in body should be greater than 0",
        ),
        (
            json!({"type": "integer", "multipleOf": 5}),
            json!(10),
            json!(7),
            "spec: Invalid value: 7: spec in body should be a multiple of 5",
        ),
        (
            json!({"type": "string", "maxLength": 2}),
            json!("éé"),
            json!("abc"),
            "spec: Too long: may not be more than 2 bytes",
        ),
        (
            json!({"type": "string", "minLength": 1}),
            json!("a"),
            json!(""),
            "spec: Invalid value: \"\": spec in body should be at least 1 chars long",
        ),
        (
            json!({"type": "string", "pattern": "^[a-z]+$"}),
            json!("a"),
            json!("A"),
            "spec: Invalid value: \"A\": spec in body should match '^[a-z]+$'",
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "maxItems": 1}),
            json!(["a"]),
            json!(["a", "b"]),
            "spec: Too many: 2: must have at most 1 items",
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
            json!(["a", "b"]),
            json!(["a", "a"]),
            "spec[1]: Duplicate value: \"a\"",
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"a": "b"}),
            json!({"a": 1}),
            "spec.a: Invalid value: \"integer\": spec.a in body must be of type string: \"integer\"",
        ),
        (
            json!({"type": "object", "required": ["a"]}),
            json!({"a": 1}),
            json!({}),
            "spec.a: Required value",
        ),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!("50%"),
            json!(true),
            "spec: Invalid value: \"boolean\": spec in body must be of type integer,string: \"boolean\"",
        ),
        (
            json!({"type": "string", "format": "date-time"}),
            json!("2024-01-01T00:00:00Z"),
            json!("today"),
            "spec: Invalid value: \"today\": spec in body must be of type date-time: \"today\"",
        ),
        (
            json!({"type": "integer", "format": "int32"}),
            json!(2147483647),
            json!(2147483648_i64),
            "spec: Invalid value: 2147483648: spec in body must be of type int32: \"2147483648\"",
        ),
        (
            json!({"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            json!({"b": 1}),
            json!({}),
            "spec: Invalid value: \"object\": spec in body must validate at least one schema (anyOf)",
        ),
        (
            json!({"type": "integer", "not": {"maximum": 3}}),
            json!(4),
            json!(3),
            "spec: Invalid value: \"integer\": spec in body must not validate the schema (not)",
        ),
    ] {
        assert_eq!(
            checked(&schema, good.clone()),
            Vec::<String>::new(),
            "{schema} takes {good}"
        );
        assert_eq!(checked(&schema, bad), [words], "{schema}");
    }
}

#[test]
fn an_unknown_format_lets_everything_through() {
    assert!(
        checked(
            &json!({"type": "integer", "format": "uint32"}),
            json!(4294967295_i64)
        )
        .is_empty()
    );
}

#[test]
fn null_is_only_taken_where_it_is_allowed() {
    assert!(checked(&json!({"type": "string", "nullable": true}), Value::Null).is_empty());
    assert_eq!(checked(&json!({"type": "string"}), Value::Null).len(), 1);
}

#[test]
fn defaults_fill_what_is_absent_at_any_depth() {
    let schema = compiled(json!({"type": "object", "default": {}, "properties": {
        "size": {"type": "integer", "default": 3},
        "list": {"type": "array", "items": {"type": "object", "properties": {"on": {"type": "boolean", "default": true}}}},
    }}));
    let fill = |mut value: Value| {
        schema.fill(value.as_object_mut().expect("an object"));
        value
    };
    assert_eq!(fill(json!({})), json!({"spec": {"size": 3}}));
    assert_eq!(
        fill(json!({"spec": {"size": 0, "list": [{}, {"on": false}]}})),
        json!({"spec": {"size": 0, "list": [{"on": true}, {"on": false}]}})
    );
    assert_eq!(
        fill(json!({"spec": {"list": null}})),
        json!({"spec": {"size": 3}}),
        "a null that is not allowed counts as absent"
    );
    assert_eq!(
        fill(json!({"spec": {"size": null}})),
        json!({"spec": {"size": 3}})
    );
}

#[test]
fn unknown_fields_are_pruned_except_where_they_are_preserved() {
    let schema = compiled(json!({"type": "object", "properties": {
        "known": {"type": "string"},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"typed": {"type": "object"}}},
        "items": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
        "template": {"type": "object", "x-kubernetes-embedded-resource": true},
    }}));
    let mut object = json!({
        "apiVersion": "v", "kind": "k", "metadata": {"name": "x", "anything": 1}, "other": 1,
        "spec": {
            "known": "a", "unknown": 1, "free": {"any": {"deep": 1}, "typed": {"gone": 1}}, "items": [{"a": "b", "c": "d"}],
            "template": {"kind": "Pod", "metadata": {"name": "y"}, "spec": {}},
        },
    });
    let mut dropped = schema.prune(object.as_object_mut().expect("an object"));
    dropped.sort();
    assert_eq!(
        dropped,
        [
            "other",
            "spec.free.typed.gone",
            "spec.items[0].c",
            "spec.template.spec",
            "spec.unknown"
        ]
    );
    assert_eq!(
        object["spec"]["free"],
        json!({"any": {"deep": 1}, "typed": {}})
    );
    assert_eq!(object["metadata"]["anything"], 1);
}

#[test]
fn what_is_no_schema_is_refused_with_its_place() {
    for (raw, place) in [
        (json!({"type": "text"}), "at.type"),
        (
            json!({"properties": {"a": {"pattern": "("}}}),
            "at.properties[a].pattern",
        ),
        (
            json!({"items": {"anyOf": [{"type": 3}]}}),
            "at.items.anyOf[0].type",
        ),
    ] {
        assert_eq!(
            Schema::compile(&raw, "at").expect_err("no schema").field,
            place
        );
    }
}
