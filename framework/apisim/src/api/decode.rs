//! The JSON types of what is read from an object, as a server that decodes into Go structs insists on them.

use serde_json::Value;

use crate::{
    failure::Failure,
    model::{
        object::{Body, at},
        served::Served,
    },
};

#[derive(Clone, Copy)]
enum Go {
    Text,
    Int32,
    Bool,
    Texts,
    Struct,
    List,
}

/// Path, Go type that holds it, JSON type.
type Field = (&'static [&'static str], &'static str, Go);

const META: &[Field] = &[
    (&["metadata"], "ObjectMeta", Go::Struct),
    (&["metadata", "name"], "ObjectMeta", Go::Text),
    (&["metadata", "namespace"], "ObjectMeta", Go::Text),
    (&["metadata", "generateName"], "ObjectMeta", Go::Text),
    (&["metadata", "uid"], "ObjectMeta", Go::Text),
    (&["metadata", "resourceVersion"], "ObjectMeta", Go::Text),
    (&["metadata", "labels"], "ObjectMeta", Go::Texts),
    (&["metadata", "annotations"], "ObjectMeta", Go::Texts),
    (&["metadata", "finalizers"], "ObjectMeta", Go::List),
    (&["metadata", "ownerReferences"], "ObjectMeta", Go::List),
    (&["metadata", "managedFields"], "ObjectMeta", Go::List),
];
const WORKLOAD: &[Field] = &[
    (&["spec", "replicas"], "DeploymentSpec", Go::Int32),
    (&["spec", "minReadySeconds"], "DeploymentSpec", Go::Int32),
    (
        &["spec", "revisionHistoryLimit"],
        "DeploymentSpec",
        Go::Int32,
    ),
    (
        &["spec", "progressDeadlineSeconds"],
        "DeploymentSpec",
        Go::Int32,
    ),
    (&["spec", "paused"], "DeploymentSpec", Go::Bool),
    (&["spec", "selector"], "DeploymentSpec", Go::Struct),
    (
        &["spec", "selector", "matchLabels"],
        "LabelSelector",
        Go::Texts,
    ),
    (&["spec", "template"], "DeploymentSpec", Go::Struct),
    (
        &["spec", "template", "metadata", "labels"],
        "ObjectMeta",
        Go::Texts,
    ),
    (
        &["spec", "template", "spec", "containers"],
        "PodSpec",
        Go::List,
    ),
    (&["status", "replicas"], "DeploymentStatus", Go::Int32),
    (&["status", "readyReplicas"], "DeploymentStatus", Go::Int32),
];
const CONFIG_MAP: &[Field] = &[
    (&["data"], "ConfigMap", Go::Texts),
    (&["binaryData"], "ConfigMap", Go::Texts),
];
const SECRET: &[Field] = &[
    (&["data"], "Secret", Go::Texts),
    (&["stringData"], "Secret", Go::Texts),
    (&["type"], "Secret", Go::Text),
];
const POD: &[Field] = &[
    (&["spec", "containers"], "PodSpec", Go::List),
    (&["spec", "nodeName"], "PodSpec", Go::Text),
];
const LEASE: &[Field] = &[
    (&["spec", "holderIdentity"], "LeaseSpec", Go::Text),
    (&["spec", "leaseDurationSeconds"], "LeaseSpec", Go::Int32),
    (&["spec", "leaseTransitions"], "LeaseSpec", Go::Int32),
    (&["spec", "acquireTime"], "LeaseSpec", Go::Text),
    (&["spec", "renewTime"], "LeaseSpec", Go::Text),
];
const EVENT: &[Field] = &[
    (&["involvedObject"], "Event", Go::Struct),
    (&["reason"], "Event", Go::Text),
    (&["message"], "Event", Go::Text),
    (&["type"], "Event", Go::Text),
    (&["action"], "Event", Go::Text),
    (&["count"], "Event", Go::Int32),
    (&["series"], "Event", Go::Struct),
    (&["series", "count"], "EventSeries", Go::Int32),
    (&["source"], "Event", Go::Struct),
    (&["eventTime"], "Event", Go::Text),
    (&["reportingComponent"], "Event", Go::Text),
    (&["reportingInstance"], "Event", Go::Text),
];

/// Refuses a body whose fields are of other JSON types than the server reads; of custom resources only the metadata
/// is looked at, the rest is the schema's.
///
/// # Errors
/// A bad request that names the field.
pub(super) fn check(served: &Served, body: &Body) -> Result<(), Failure> {
    let own: &[Field] = match (served.collection.group.as_str(), served.plural.as_str()) {
        _ if served.custom => &[],
        ("apps", _) => WORKLOAD,
        ("", "configmaps") => CONFIG_MAP,
        ("", "secrets") => SECRET,
        ("", "pods") => POD,
        ("", "events") => EVENT,
        ("coordination.k8s.io", _) => LEASE,
        _ => &[],
    };
    for name in ["spec", "status"] {
        if !served.custom
            && let Some(value) = body
                .get(name)
                .filter(|value| !value.is_object() && !value.is_null())
        {
            return Err(refusal(
                served,
                kind_of(value),
                &format!("{}.{name}", served.kind),
                &format!("{}{name}", served.kind),
            ));
        }
    }
    for (path, holder, go) in META.iter().chain(own) {
        let Some(value) = at(body, path).filter(|value| !value.is_null()) else {
            continue;
        };
        if let Some((found, wanted)) = mismatch(*go, value) {
            return Err(refusal(
                served,
                &found,
                &format!("{holder}.{}", path.join(".")),
                wanted,
            ));
        }
    }
    Ok(())
}

fn refusal(served: &Served, found: &str, field: &str, wanted: &str) -> Failure {
    let (kind, version) = (&served.kind, &served.version);
    Failure::bad_request(format!(
        "{kind} in version \"{version}\" cannot be handled as a {kind}: json: cannot unmarshal {found} into Go struct field {field} of type {wanted}"
    ))
}

/// What was found and what was wanted, unless they agree.
fn mismatch(go: Go, value: &Value) -> Option<(String, &'static str)> {
    let found = || kind_of(value).to_owned();
    match go {
        Go::Text => (!value.is_string()).then(|| (found(), "string")),
        Go::Bool => (!value.is_boolean()).then(|| (found(), "bool")),
        Go::Struct => (!value.is_object()).then(|| (found(), "struct")),
        Go::List => (!value.is_array()).then(|| (found(), "slice")),
        Go::Texts => match value.as_object() {
            None => Some((found(), "map[string]string")),
            Some(map) => map
                .values()
                .find(|value| !value.is_string())
                .map(|value| (kind_of(value).to_owned(), "string")),
        },
        Go::Int32 => match value.as_i64() {
            Some(number) => i32::try_from(number)
                .is_err()
                .then(|| (format!("number {number}"), "int32")),
            None if value.is_number() => Some((format!("number {value}"), "int32")),
            None => Some((found(), "int32")),
        },
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
