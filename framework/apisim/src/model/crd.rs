//! From a CustomResourceDefinition to what it makes served.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    object::{Body, Collection, at, number, text},
    served::{ALL_VERBS, Column, Generation, ScalePaths, Served, View},
};
use crate::{failure::Cause, schema::Schema};

/// What is left to do before the definition itself may go.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The collection of a definition's objects.
pub(crate) fn collection(body: &Body) -> Collection {
    let part = |path: &[&str]| text(body, path).unwrap_or_default().to_owned();
    Collection {
        group: part(&["spec", "group"]),
        plural: part(&["spec", "names", "plural"]),
    }
}

/// Fills in the names that follow from others.
pub(crate) fn complete(body: &mut Body) {
    let kind = text(body, &["spec", "names", "kind"])
        .unwrap_or_default()
        .to_owned();
    super::object::put_default(
        body,
        &["spec", "names", "listKind"],
        format!("{kind}List").into(),
    );
    super::object::put_default(
        body,
        &["spec", "names", "singular"],
        kind.to_lowercase().into(),
    );
    super::object::put_default(body, &["spec", "conversion"], json!({"strategy": "None"}));
}

/// The status of an accepted definition, at `now`.
pub(crate) fn established(body: &Body, now: &str) -> Value {
    let versions = versions(body).filter(|v| v.get("storage") == Some(&Value::Bool(true)));
    let stored: Vec<&Value> = versions.filter_map(|v| v.get("name")).collect();
    let condition = |kind: &str, reason: &str, message: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message});
    json!({
        "acceptedNames": at(body, &["spec", "names"]),
        "storedVersions": stored,
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
    })
}

fn versions(body: &Body) -> impl Iterator<Item = &Value> {
    at(body, &["spec", "versions"])
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// What a definition makes served.
///
/// # Errors
/// What is wrong with the definition, field by field.
pub(crate) fn compile(body: &Body) -> Result<Vec<Served>, Vec<Cause>> {
    let mut causes = Vec::new();
    let mut need = |path: &[&str]| match text(body, path) {
        Some(value) if !value.is_empty() => value.to_owned(),
        _ => {
            causes.push(Cause::required(path.join(".")));
            String::new()
        }
    };
    let group = need(&["spec", "group"]);
    let plural = need(&["spec", "names", "plural"]);
    let kind = need(&["spec", "names", "kind"]);
    let scope = need(&["spec", "scope"]);
    let expected = format!("{plural}.{group}");
    if text(body, &["metadata", "name"]) != Some(&expected) {
        let name = at(body, &["metadata", "name"])
            .cloned()
            .unwrap_or(Value::Null);
        causes.push(Cause::invalid(
            "metadata.name",
            &name,
            "must be spec.names.plural+\".\"+spec.group",
        ));
    }
    if !["Namespaced", "Cluster"].contains(&scope.as_str()) {
        let scopes = ["Cluster".into(), "Namespaced".into()];
        causes.push(Cause::unsupported(
            "spec.scope",
            &scope.as_str().into(),
            &scopes,
        ));
    }
    let storage = versions(body)
        .filter(|v| v.get("storage") == Some(&Value::Bool(true)))
        .count();
    if storage != 1 {
        let value = at(body, &["spec", "versions"])
            .cloned()
            .unwrap_or(Value::Null);
        causes.push(Cause::invalid(
            "spec.versions",
            &value,
            "must have exactly one version marked as storage version",
        ));
    }
    let mut all = Vec::new();
    for (index, version) in versions(body).enumerate() {
        let here = format!("spec.versions[{index}]");
        let raw = version.pointer("/schema/openAPIV3Schema");
        let schema =
            match raw.map(|raw| Schema::compile(raw, &format!("{here}.schema.openAPIV3Schema"))) {
                Some(Ok(schema)) => schema,
                Some(Err(cause)) => {
                    causes.push(cause);
                    continue;
                }
                None => {
                    causes.push(Cause {
                        message: "Required value: schemas are required".into(),
                        ..Cause::required(format!("{here}.schema.openAPIV3Schema"))
                    });
                    continue;
                }
            };
        if version.get("served") == Some(&Value::Bool(false)) {
            continue;
        }
        let path = |pointer: &str| {
            let text = version.pointer(pointer)?.as_str()?;
            Some(
                text.split('.')
                    .filter(|part| !part.is_empty())
                    .map(str::to_owned)
                    .collect::<Vec<_>>(),
            )
        };
        let scale = path("/subresources/scale/specReplicasPath").map(|spec_replicas| ScalePaths {
            spec_replicas,
            status_replicas: path("/subresources/scale/statusReplicasPath").unwrap_or_default(),
            selector: path("/subresources/scale/labelSelectorPath"),
        });
        let names = |path: &[&str]| {
            let list = at(body, path).and_then(Value::as_array);
            list.into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let selectable = version
            .get("selectableFields")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        all.push(Served {
            group: group.clone(),
            version: version
                .get("name")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .into(),
            plural: plural.clone(),
            singular: text(body, &["spec", "names", "singular"])
                .map_or_else(|| kind.to_lowercase(), str::to_owned),
            kind: kind.clone(),
            list_kind: text(body, &["spec", "names", "listKind"])
                .map_or_else(|| format!("{kind}List"), str::to_owned),
            short_names: names(&["spec", "names", "shortNames"]),
            categories: names(&["spec", "names", "categories"]),
            namespaced: scope == "Namespaced",
            verbs: ALL_VERBS,
            collection: collection(body),
            native: version.get("storage") == Some(&Value::Bool(true)),
            view: View::Same,
            status: version.pointer("/subresources/status").is_some(),
            scale,
            generation: Generation::AllButStatus,
            schema: Some(Arc::new(schema)),
            openapi: raw.cloned(),
            columns: columns(version),
            selectable: selectable
                .filter_map(|field| field.get("jsonPath")?.as_str())
                .map(|path| path.trim_start_matches('.').to_owned())
                .collect(),
            custom: true,
            unconditional: false,
        });
    }
    if causes.is_empty() {
        Ok(all)
    } else {
        Err(causes)
    }
}

fn columns(version: &Value) -> Vec<Column> {
    let column = |column: &Value| {
        let body = column.as_object()?;
        let part = |name: &str| text(body, &[name]).unwrap_or_default().to_owned();
        Some(Column {
            name: part("name"),
            kind: part("type"),
            format: part("format"),
            description: part("description"),
            priority: number(body, &["priority"]).unwrap_or(0),
            path: part("jsonPath"),
        })
    };
    let declared = version
        .get("additionalPrinterColumns")
        .and_then(Value::as_array);
    let declared: Vec<Column> = declared.into_iter().flatten().filter_map(column).collect();
    match declared.is_empty() {
        false => declared,
        true => vec![Column {
            name: "Age".into(),
            kind: "date".into(),
            format: String::new(),
            description: "When the object was created.".into(),
            priority: 0,
            path: ".metadata.creationTimestamp".into(),
        }],
    }
}

#[cfg(test)]
mod tests;
