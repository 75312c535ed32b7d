//! OpenAPI documents: enough for kubectl to validate, explain and patch by.
//!
//! Custom resources are described by their own schemas; built-in kinds as objects with free fields.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::{answer::Answer, service::Asked};
use crate::model::{registry::Registry, served::Served};

/// Version 2. A client that asks for protobuf gets an empty document, which says nothing and so forbids nothing.
pub(super) fn v2(asked: &Asked<'_>) -> Answer {
    let protobuf =
        asked.accept.contains("proto-openapi") && !asked.accept.contains("application/json");
    if protobuf {
        return Answer::bytes(
            "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
            Bytes::new(),
        );
    }
    let version = asked.inner.options.version.clone();
    let document = json!({"swagger": "2.0", "info": {"title": "Kubernetes", "version": version}, "paths": {}, "definitions": {}});
    Answer::value(200, &document)
}

fn path(group: &str, version: &str) -> String {
    match group {
        "" => format!("api/{version}"),
        group => format!("apis/{group}/{version}"),
    }
}

/// The list of version 3 documents.
pub(super) fn root(registry: &Registry) -> Value {
    let mut paths = Map::new();
    for (group, versions) in registry.groups() {
        for version in versions {
            let path = self::path(&group, &version);
            let url = format!("/openapi/v3/{path}");
            paths.insert(path, json!({"serverRelativeURL": url}));
        }
    }
    json!({"paths": paths})
}

/// The version 3 document of a group and version.
pub(super) fn document(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let mut paths = Map::new();
    let mut schemas = Map::new();
    for served in registry.of_version(group, version) {
        schemas.insert(schema_name(served), schema(served));
        let base = match served.namespaced {
            true => format!(
                "/{}/namespaces/{{namespace}}/{}",
                path(group, version),
                served.plural
            ),
            false => format!("/{}/{}", path(group, version), served.plural),
        };
        paths.insert(base.clone(), collection(served));
        paths.insert(format!("{base}/{{name}}"), item(served));
    }
    (!schemas.is_empty()).then(|| {
        let meta = json!({"type": "object", "description": "Standard object's metadata.", "properties": metadata_properties()});
        schemas.insert("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta".into(), meta);
        json!({
            "openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "simulated"}, "paths": paths,
            "components": {"schemas": schemas},
        })
    })
}

fn schema_name(served: &Served) -> String {
    let group = if served.group.is_empty() {
        "core"
    } else {
        &served.group
    };
    let reversed = group.split('.').rev().collect::<Vec<_>>().join(".");
    format!("{reversed}.{}.{}", served.version, served.kind)
}

fn gvk(served: &Served) -> Value {
    json!({"group": served.group, "version": served.version, "kind": served.kind})
}

fn schema(served: &Served) -> Value {
    let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let mut schema = served.openapi.clone().unwrap_or_else(|| {
        let mut schema = free.clone();
        schema["description"] =
            format!("{} in version {}.", served.kind, served.api_version()).into();
        let flat = matches!(
            served.plural.as_str(),
            "configmaps" | "secrets" | "serviceaccounts" | "events" | "clusterroles" | "roles"
        );
        if !flat {
            schema["properties"] = json!({"spec": free, "status": free});
        }
        schema
    });
    schema["x-kubernetes-group-version-kind"] = json!([gvk(served)]);
    let properties = &mut schema["properties"];
    if !properties.is_object() {
        *properties = json!({});
    }
    let version = "APIVersion defines the versioned schema of this representation of an object.";
    properties["apiVersion"] = json!({"type": "string", "description": version});
    properties["kind"] =
        json!({"type": "string", "description": "Kind is the resource this object represents."});
    properties["metadata"] = json!({
        "description": "Standard object's metadata.", "default": {},
        "allOf": [{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}],
    });
    schema
}

fn metadata_properties() -> Value {
    let text = json!({"type": "string"});
    let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
    json!({
        "name": text, "namespace": text, "generateName": text, "uid": text, "resourceVersion": text, "selfLink": text,
        "creationTimestamp": text, "deletionTimestamp": text, "labels": map, "annotations": map,
        "generation": {"type": "integer"}, "deletionGracePeriodSeconds": {"type": "integer"},
        "finalizers": {"type": "array", "items": text},
        "ownerReferences": {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        "managedFields": {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
    })
}

/// Parameters by which kubectl tells what a server can do.
fn parameters() -> Value {
    let query = |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}});
    json!([
        query("dryRun"),
        query("fieldManager"),
        query("fieldValidation")
    ])
}

fn operation(served: &Served, action: &str) -> Value {
    let mut operation = json!({
        "operationId": format!("{action}{}{}", served.version, served.kind),
        "x-kubernetes-action": action, "x-kubernetes-group-version-kind": gvk(served),
        "responses": {"200": {"description": "OK"}},
    });
    if matches!(action, "post" | "put" | "patch") {
        operation["parameters"] = parameters();
    }
    operation
}

fn collection(served: &Served) -> Value {
    json!({"get": operation(served, "list"), "post": operation(served, "post"), "delete": operation(served, "deletecollection")})
}

fn item(served: &Served) -> Value {
    json!({
        "get": operation(served, "get"), "put": operation(served, "put"), "patch": operation(served, "patch"),
        "delete": operation(served, "delete"),
    })
}
