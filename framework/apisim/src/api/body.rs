//! Bodies between the client's form and the stored one.

use serde_json::Value;

use crate::{
    failure::Failure,
    model::{
        object::{Body, Key, at, finalizers, meta_mut, terminating, text},
        served::Served,
    },
    store::Refusal,
};

/// Metadata that only the server writes.
const OWN: [&str; 7] = [
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "generateName",
];

/// A refusal of the store as the client hears it.
pub(super) fn refused(served: &Served, key: &Key, refusal: &Refusal) -> Failure {
    let name = &key.name;
    match refusal {
        Refusal::Exists => Failure::already_exists(served, name),
        Refusal::Absent => Failure::not_found(served, name),
        Refusal::OtherVersion { .. } => Failure::stale(served, name),
        Refusal::OtherUid { .. } => {
            let group = if served.custom {
                format!("{}/", served.group)
            } else {
                String::new()
            };
            let path = [key.namespace.as_str(), name]
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join("/");
            let place = format!("/registry/{group}{}/{path}", served.plural);
            let what =
                format!("StorageError: invalid object, Code: 4, Key: {place}, ResourceVersion: 0");
            Failure::conflict(
                served,
                name,
                format!("{what}, AdditionalErrorMsg: {refusal}"),
            )
        }
    }
}

/// Whether an object is being deleted and nothing holds it any more.
pub(super) fn released(body: &Body) -> bool {
    let own = at(body, &["spec", "finalizers"]).and_then(Value::as_array);
    terminating(body) && finalizers(body).next().is_none() && own.is_none_or(Vec::is_empty)
}

/// Takes `kind` and `apiVersion` off a body, and converts it to what is stored.
pub(super) fn accept(served: &Served, body: Value) -> Result<Body, Failure> {
    let text = body.to_string();
    let Value::Object(mut body) = body else {
        return Err(Failure::bad_request(
            "the body of the request is not an object",
        ));
    };
    let mut part = |name: &str| {
        body.remove(name)
            .and_then(|v| v.as_str().map(str::to_owned))
            .filter(|t| !t.is_empty())
    };
    let (kind, api_version) = (part("kind"), part("apiVersion"));
    let (expected, own) = (served.api_version(), &served.kind);
    if served.custom && kind.is_none() {
        let start: String = text.chars().take(30).collect();
        return Err(Failure::bad_request(format!(
            "the object provided is unrecognized (must be of type {own}): Object 'Kind' is missing in '{text}' ({start} ...)"
        )));
    }
    let (kind, api_version) = (
        kind.unwrap_or_else(|| own.clone()),
        api_version.unwrap_or_else(|| expected.clone()),
    );
    if kind != *own || api_version != expected {
        let version = &served.version;
        return Err(Failure::bad_request(format!(
            "{kind} in version \"{version}\" cannot be handled as a {own}: no kind \"{kind}\" is registered for version \"{api_version}\""
        )));
    }
    Ok(served.stored(body))
}

pub(super) fn settle_namespace(
    served: &Served,
    namespace: &str,
    body: &mut Body,
) -> Result<(), Failure> {
    let given = text(body, &["metadata", "namespace"]).unwrap_or_default();
    if !served.namespaced {
        meta_mut(body).remove("namespace");
        return Ok(());
    }
    if !given.is_empty() && given != namespace {
        return Err(Failure::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    meta_mut(body).insert("namespace".into(), namespace.into());
    Ok(())
}

/// Restores what a client cannot change.
pub(super) fn keep_own(old: &Body, body: &mut Body) {
    for name in OWN {
        let value = at(old, &["metadata", name]).cloned();
        let meta = meta_mut(body);
        match value {
            Some(value) => meta.insert(name.into(), value),
            None => meta.remove(name),
        };
    }
    // an empty list is no list
    for name in ["finalizers", "ownerReferences", "labels", "annotations"] {
        let meta = meta_mut(body);
        if meta.get(name).is_some_and(|v| {
            v.is_null()
                || v.as_array().is_some_and(Vec::is_empty)
                || v.as_object().is_some_and(|m| m.is_empty())
        }) {
            meta.remove(name);
        }
    }
}

pub(super) fn content(body: &Body, without_status: bool) -> impl PartialEq {
    let keep = |name: &str| name != "metadata" && !(without_status && name == "status");
    body.iter()
        .filter(|(name, _)| keep(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect::<Vec<_>>()
}

pub(super) fn add_finalizer(body: &mut Body, finalizer: &str) {
    if !finalizers(body).any(|f| f == finalizer) {
        let meta = meta_mut(body);
        let list = meta
            .entry("finalizers")
            .or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(list) = list {
            list.push(finalizer.into());
        }
    }
}

pub(crate) fn drop_finalizer(body: &mut Body, finalizer: &str) {
    let meta = meta_mut(body);
    if let Some(Value::Array(list)) = meta.get_mut("finalizers") {
        list.retain(|f| f != finalizer);
        if list.is_empty() {
            meta.remove("finalizers");
        }
    }
}
