//! What built-in kinds refuse.

use serde_json::Value;

use super::metadata::is_label;
use crate::{
    failure::Cause,
    model::{
        crd, event,
        object::{Body, at, text},
        served::Served,
    },
    selector::Labels,
};

/// Everything that is wrong with an object; `old` when it replaces one.
pub(super) fn check(served: &Served, old: Option<&Body>, body: &Body) -> Vec<Cause> {
    let mut causes = Vec::new();
    match (served.collection.group.as_str(), served.plural.as_str()) {
        ("apps", plural) => {
            whole(body, &["spec", "replicas"], &mut causes);
            let paused = at(body, &["spec", "paused"]);
            if let Some(value) = paused.filter(|value| !value.is_boolean()) {
                causes.push(Cause::invalid("spec.paused", value, "must be a boolean"));
            }
            selector(body, &mut causes);
            if let Some(old) = old
                && at(old, &["spec", "selector"]) != at(body, &["spec", "selector"])
            {
                let value = at(body, &["spec", "selector"]).cloned().unwrap_or_default();
                causes.push(Cause::invalid(
                    "spec.selector",
                    &value,
                    "field is immutable",
                ));
            }
            if plural != "replicasets" || at(body, &["spec", "template"]).is_some() {
                pod_spec(
                    at(body, &["spec", "template", "spec"]),
                    "spec.template.spec",
                    &mut causes,
                );
            }
        }
        ("", "pods") => pod_spec(at(body, &["spec"]), "spec", &mut causes),
        ("", "services") => {
            let ports = at(body, &["spec", "ports"]).and_then(Value::as_array);
            let headless = text(body, &["spec", "clusterIP"]) == Some("None");
            let external = text(body, &["spec", "type"]) == Some("ExternalName");
            if ports.is_none_or(Vec::is_empty) && !headless && !external {
                causes.push(Cause::required("spec.ports"));
            }
        }
        ("", "configmaps") => strings(body, "data", &mut causes),
        ("", "events") => {
            let namespace = text(body, &["metadata", "namespace"]).unwrap_or_default();
            let expected = match event::involved_namespace(body) {
                "" => "default",
                namespace => namespace,
            };
            // kube-system is accepted too for what has no namespace
            if namespace != expected
                && !(event::involved_namespace(body).is_empty() && namespace == "kube-system")
            {
                let value = Value::from(event::involved_namespace(body));
                causes.push(Cause::invalid(
                    "involvedObject.namespace",
                    &value,
                    "does not match event.namespace",
                ));
            }
        }
        ("coordination.k8s.io", _) => {
            let seconds = at(body, &["spec", "leaseDurationSeconds"]);
            if let Some(value) = seconds.filter(|v| v.as_i64().is_none_or(|n| n <= 0)) {
                causes.push(Cause::invalid(
                    "spec.leaseDurationSeconds",
                    value,
                    "must be greater than 0",
                ));
            }
        }
        ("apiextensions.k8s.io", _) => {
            causes.extend(crd::compile(body).err().into_iter().flatten())
        }
        _ => {}
    }
    causes
}

fn whole(body: &Body, path: &[&str], causes: &mut Vec<Cause>) {
    let Some(value) = at(body, path).filter(|value| !value.is_null()) else {
        return;
    };
    match value.as_i64() {
        Some(n) if n < 0 => causes.push(Cause::invalid(
            path.join("."),
            value,
            "must be greater than or equal to 0",
        )),
        Some(n) if i32::try_from(n).is_ok() => {}
        _ => causes.push(Cause::invalid(
            path.join("."),
            value,
            "must be a 32-bit whole number",
        )),
    }
}

fn strings(body: &Body, name: &str, causes: &mut Vec<Cause>) {
    match body.get(name) {
        None | Some(Value::Null) => {}
        Some(Value::Object(map)) => {
            for (key, value) in map.iter().filter(|(_, value)| !value.is_string()) {
                causes.push(Cause::invalid(
                    format!("{name}[{key}]"),
                    value,
                    "must be a string",
                ));
            }
        }
        Some(other) => causes.push(Cause::invalid(name, other, "must be a map of strings")),
    }
}

fn selector(body: &Body, causes: &mut Vec<Cause>) {
    let selector = at(body, &["spec", "selector"]).and_then(Value::as_object);
    let Some(selector) = selector else {
        causes.push(Cause::required("spec.selector"));
        return;
    };
    if selector.is_empty() {
        let why = "empty selector is invalid for deployment";
        causes.push(Cause::invalid(
            "spec.selector",
            &Value::Object(selector.clone()),
            why,
        ));
    }
    let labels = at(body, &["spec", "template", "metadata", "labels"])
        .cloned()
        .unwrap_or_default();
    let wanted = selector
        .get("matchLabels")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    if wanted
        .clone()
        .any(|(name, value)| labels.get(name) != Some(value))
    {
        let why = "`selector` does not match template `labels`";
        causes.push(Cause::invalid(
            "spec.template.metadata.labels",
            &labels,
            why,
        ));
    }
    for (name, value) in wanted {
        let text = format!("{name}={}", value.as_str().unwrap_or_default());
        if Labels::parse(&text).is_err() {
            causes.push(Cause::invalid(
                "spec.selector.matchLabels",
                &text.into(),
                "is not a label",
            ));
        }
    }
}

fn pod_spec(spec: Option<&Value>, path: &str, causes: &mut Vec<Cause>) {
    let containers = spec
        .and_then(|spec| spec.get("containers"))
        .and_then(Value::as_array);
    let Some(containers) = containers.filter(|list| !list.is_empty()) else {
        causes.push(Cause::required(format!("{path}.containers")));
        return;
    };
    for (index, container) in containers.iter().enumerate() {
        let here = format!("{path}.containers[{index}]");
        let part = |name: &str| {
            container
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        match part("name") {
            "" => causes.push(Cause::required(format!("{here}.name"))),
            name if !is_label(name) => {
                causes.push(Cause::invalid(
                    format!("{here}.name"),
                    &name.into(),
                    "must be a lowercase RFC 1123 label",
                ));
            }
            _ => {}
        }
        if part("image").is_empty() {
            causes.push(Cause::required(format!("{here}.image")));
        }
    }
}
