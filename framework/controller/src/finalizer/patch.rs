//! JSON patches (RFC 6902) that put a finalizer on an object or take it away, and that fail where it is not as it was; pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

/// Puts `finalizer` behind those that `object` has.
pub(super) fn add(object: &ObjectMeta, finalizer: &str) -> Value {
    let finalizers = object.finalizers.as_deref().unwrap_or_default();
    let same = same_object(object);
    if finalizers.is_empty() {
        // servers leave an empty list out
        return json!([
            same,
            { "op": "test", "path": "/metadata/finalizers", "value": null },
            { "op": "add", "path": "/metadata/finalizers", "value": [finalizer] },
        ]);
    }
    json!([
        same,
        { "op": "test", "path": "/metadata/finalizers", "value": finalizers },
        { "op": "add", "path": "/metadata/finalizers/-", "value": finalizer },
    ])
}

/// Takes `finalizer` away, and no other.
pub(super) fn remove(object: &ObjectMeta, finalizer: &str) -> Value {
    let finalizers = object.finalizers.as_deref().unwrap_or_default();
    let here = finalizers.iter().enumerate();
    let here = here.filter(|(_, name)| *name == finalizer);
    // from the end, so that places stay what they are
    let operations = here.rev().flat_map(|(place, name)| {
        let path = format!("/metadata/finalizers/{place}");
        [
            json!({ "op": "test", "path": path, "value": name }),
            json!({ "op": "remove", "path": path }),
        ]
    });
    [same_object(object)]
        .into_iter()
        .chain(operations)
        .collect()
}

/// Fails on another object of the name.
fn same_object(object: &ObjectMeta) -> Value {
    json!({ "op": "test", "path": "/metadata/uid", "value": object.uid })
}
