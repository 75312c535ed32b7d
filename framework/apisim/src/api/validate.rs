//! What built-in kinds refuse.

use serde_json::Value;

use super::metadata::is_label;
use crate::{
    failure::Cause,
    model::{
        crd, event,
        object::{Body, at, text},
        served::{Served, View},
    },
};

/// Everything that is wrong with an object; `old` when it replaces one.
pub(super) fn check(served: &Served, old: Option<&Body>, body: &Body) -> Vec<Cause> {
    let mut causes = Vec::new();
    match (served.collection.group.as_str(), served.plural.as_str()) {
        ("apps", plural) => {
            whole(body, &["spec", "replicas"], &mut causes);
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
        ("", "events") => self::event(served, old.is_none(), body, &mut causes),
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
    if let Some(value) = at(body, path).filter(|value| value.as_i64().is_some_and(|n| n < 0)) {
        causes.push(Cause::invalid(
            path.join("."),
            value,
            "must be greater than or equal to 0",
        ));
    }
}

/// What events have to say: of those with an `eventTime` more is asked, of those of events.k8s.io/v1 even more.
fn event(served: &Served, new: bool, body: &Body, causes: &mut Vec<Cause>) {
    let part = |name: &str| text(body, &[name]).unwrap_or_default();
    let namespace = text(body, &["metadata", "namespace"]).unwrap_or_default();
    let about = event::involved_namespace(body);
    let timed = !part("eventTime").is_empty();
    let fits = match (about, timed) {
        ("", true) => ["default", "kube-system"].contains(&namespace),
        ("", false) => namespace == "default",
        (about, true) => !about.is_empty(),
        (about, false) => about == namespace,
    };
    if !fits {
        causes.push(Cause::invalid(
            "involvedObject.namespace",
            &about.into(),
            "does not match event.namespace",
        ));
    }
    if timed {
        let controller = if served.view == View::Event {
            "reportingController"
        } else {
            "reportingComponent"
        };
        for (field, shown, limit) in [
            ("reportingComponent", controller, usize::MAX),
            ("reportingInstance", "reportingInstance", 128),
            ("action", "action", 128),
            ("reason", "reason", 128),
            ("message", "message", 1024),
        ] {
            if part(field).is_empty() && field != "message" {
                causes.push(Cause::required(shown));
            }
            if part(field).len() > limit {
                causes.push(Cause::invalid(
                    shown,
                    &"".into(),
                    format!("can have at most {limit} characters"),
                ));
            }
        }
    }
    if served.view != View::Event || !new {
        return;
    }
    if !timed {
        causes.push(Cause::required("eventTime"));
    }
    if !["Normal", "Warning"].contains(&part("type")) {
        causes.push(Cause::invalid(
            "type",
            &"".into(),
            format!("has invalid value: {}", part("type")),
        ));
    }
    let series = at(body, &["series", "count"]).and_then(Value::as_i64);
    if body.get("series").is_some_and(Value::is_object) && series.is_none_or(|count| count < 2) {
        causes.push(Cause::invalid(
            "series.count",
            &"".into(),
            "should be at least 2",
        ));
    }
    for field in ["firstTimestamp", "lastTimestamp", "count"] {
        if body
            .get(field)
            .is_some_and(|value| !value.is_null() && value.as_i64() != Some(0))
        {
            causes.push(Cause::invalid(field, &"".into(), "needs to be unset"));
        }
    }
}

fn selector(body: &Body, causes: &mut Vec<Cause>) {
    let selector = at(body, &["spec", "selector"]).and_then(Value::as_object);
    match selector {
        None => causes.push(Cause::required("spec.selector")),
        Some(map) if map.is_empty() => {
            let why = "empty selector is invalid for deployment";
            causes.push(Cause::invalid(
                "spec.selector",
                &Value::Object(map.clone()),
                why,
            ));
        }
        Some(_) => {}
    }
    let labels = at(body, &["spec", "template", "metadata", "labels"])
        .cloned()
        .unwrap_or_default();
    let wanted = selector
        .and_then(|selector| selector.get("matchLabels"))
        .and_then(Value::as_object);
    let fits = |map: &serde_json::Map<String, Value>| {
        map.iter()
            .all(|(name, value)| labels.get(name) == Some(value))
    };
    if selector.is_none() || wanted.is_some_and(|wanted| !fits(wanted)) {
        let why = "`selector` does not match template `labels`";
        causes.push(Cause::invalid(
            "spec.template.metadata.labels",
            &labels,
            why,
        ));
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
