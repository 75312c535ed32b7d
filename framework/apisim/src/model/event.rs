//! Events seen through two versions of the API: stored as core/v1, served as events.k8s.io/v1 too.

use serde_json::{Map, Value, json};

use super::object::Body;

const RENAMED: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("count", "deprecatedCount"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
];

/// events.k8s.io/v1 to core/v1.
pub(crate) fn to_core(mut body: Body) -> Body {
    for (core, new) in RENAMED {
        if let Some(value) = body.remove(*new) {
            body.insert((*core).into(), value);
        }
    }
    // what core/v1 always writes, set or not
    for (name, empty) in [
        ("involvedObject", json!({})),
        ("source", json!({})),
        ("firstTimestamp", Value::Null),
        ("lastTimestamp", Value::Null),
        ("eventTime", Value::Null),
        ("reportingComponent", json!("")),
        ("reportingInstance", json!("")),
    ] {
        body.entry(name).or_insert(empty);
    }
    body
}

/// core/v1 to events.k8s.io/v1.
pub(crate) fn from_core(mut body: Body) -> Body {
    for (core, new) in RENAMED {
        if let Some(value) = body.remove(*core).filter(|value| *value != json!("")) {
            body.insert((*new).into(), value);
        }
    }
    if body
        .get("reportingInstance")
        .is_some_and(|value| *value == json!(""))
    {
        body.remove("reportingInstance");
    }
    body.entry("eventTime").or_insert(Value::Null);
    body
}

/// Gives a core/v1 Event the fields that version always writes.
pub(crate) fn complete(body: Body) -> Body {
    to_core(body)
}

/// Both versions agree on where an Event must live: with the object it is about, `default` for cluster-scoped ones.
pub(crate) fn involved_namespace(body: &Body) -> &str {
    let involved = body.get("involvedObject").and_then(Value::as_object);
    involved
        .and_then(|o: &Map<String, Value>| o.get("namespace"))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
