//! What built-in kinds fill in by themselves.

use serde_json::{Map, Value, json};

use super::Names;
use crate::base64;
use crate::model::{
    crd, event,
    object::{Body, at, child_mut, put, put_default, text},
    served::Served,
};

/// Fills in the defaults of a built-in kind; custom resources have theirs from the schema.
pub(super) fn fill(served: &Served, body: &mut Body, names: &mut Names) {
    match (served.collection.group.as_str(), served.plural.as_str()) {
        ("apps", "deployments") => {
            put_default(body, &["spec", "replicas"], 1.into());
            put_default(body, &["spec", "progressDeadlineSeconds"], 600.into());
            put_default(body, &["spec", "revisionHistoryLimit"], 10.into());
            let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}});
            put_default(body, &["spec", "strategy"], rolling);
            template(body);
        }
        ("apps", "replicasets") => {
            put_default(body, &["spec", "replicas"], 1.into());
            template(body);
        }
        ("apps", "statefulsets") => {
            put_default(body, &["spec", "replicas"], 1.into());
            put_default(body, &["spec", "revisionHistoryLimit"], 10.into());
            put_default(
                body,
                &["spec", "podManagementPolicy"],
                "OrderedReady".into(),
            );
            let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}});
            put_default(body, &["spec", "updateStrategy"], rolling);
            template(body);
        }
        ("apps", "daemonsets") => {
            put_default(body, &["spec", "revisionHistoryLimit"], 10.into());
            let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}});
            put_default(body, &["spec", "updateStrategy"], rolling);
            template(body);
        }
        ("", "pods") => pod_spec(child_mut(body, "spec")),
        ("", "services") => service(body, names),
        ("", "secrets") => {
            put_default(body, &["type"], "Opaque".into());
            // what is written as text is stored as bytes
            if let Some(Value::Object(plain)) = body.remove("stringData") {
                let data = child_mut(body, "data");
                for (name, value) in plain {
                    data.insert(
                        name,
                        base64::encode(value.as_str().unwrap_or_default().as_bytes()).into(),
                    );
                }
            }
        }
        ("", "namespaces") => {
            put_default(body, &["spec", "finalizers"], json!(["kubernetes"]));
            let name = text(body, &["metadata", "name"])
                .unwrap_or_default()
                .to_owned();
            put(
                body,
                &["metadata", "labels", "kubernetes.io/metadata.name"],
                name.into(),
            );
        }
        ("", "events") => *body = event::complete(std::mem::take(body)),
        ("apiextensions.k8s.io", _) => crd::complete(body),
        _ => {}
    }
}

/// The status a fresh object of a built-in kind has.
pub(super) fn status(served: &Served, body: &Body, now: &str) -> Option<Value> {
    match (served.group.as_str(), served.plural.as_str()) {
        ("", "namespaces") => Some(json!({"phase": "Active"})),
        ("", "pods") => Some(json!({"phase": "Pending", "qosClass": "BestEffort"})),
        ("", "services") => Some(json!({"loadBalancer": {}})),
        ("apiextensions.k8s.io", _) => Some(crd::established(body, now)),
        // written by whoever runs the node
        ("", "nodes") => body.get("status").cloned(),
        ("apps", "replicasets") => Some(json!({"replicas": 0})),
        ("apps", "statefulsets") => Some(json!({"replicas": 0, "availableReplicas": 0})),
        ("apps", "daemonsets") => Some(
            json!({"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0}),
        ),
        _ => Some(Value::Object(Map::new())),
    }
}

fn template(body: &mut Body) {
    let template = child_mut(child_mut(body, "spec"), "template");
    pod_spec(child_mut(template, "spec"));
}

fn pod_spec(spec: &mut Body) {
    for (name, value) in [
        ("restartPolicy", json!("Always")),
        ("dnsPolicy", json!("ClusterFirst")),
        ("schedulerName", json!("default-scheduler")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("securityContext", json!({})),
    ] {
        put_default(spec, &[name], value);
    }
    for list in ["containers", "initContainers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers
            .into_iter()
            .flatten()
            .filter_map(Value::as_object_mut)
        {
            let image = text(container, &["image"]).unwrap_or_default();
            let latest = image.ends_with(":latest")
                || !image
                    .rsplit('/')
                    .next()
                    .is_some_and(|last| last.contains(':'));
            put_default(
                container,
                &["imagePullPolicy"],
                if latest { "Always" } else { "IfNotPresent" }.into(),
            );
            put_default(container, &["resources"], json!({}));
            put_default(
                container,
                &["terminationMessagePath"],
                "/dev/termination-log".into(),
            );
            put_default(container, &["terminationMessagePolicy"], "File".into());
            let ports = container.get_mut("ports").and_then(Value::as_array_mut);
            for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
                put_default(port, &["protocol"], "TCP".into());
            }
        }
    }
}

fn service(body: &mut Body, names: &mut Names) {
    put_default(body, &["spec", "type"], "ClusterIP".into());
    put_default(body, &["spec", "sessionAffinity"], "None".into());
    put_default(body, &["spec", "internalTrafficPolicy"], "Cluster".into());
    let kind = text(body, &["spec", "type"]).unwrap_or_default().to_owned();
    if kind != "ExternalName" {
        if text(body, &["spec", "clusterIP"]).is_none_or(str::is_empty) {
            put(body, &["spec", "clusterIP"], names.ip().into());
        }
        let ip = at(body, &["spec", "clusterIP"])
            .cloned()
            .unwrap_or_default();
        put_default(body, &["spec", "clusterIPs"], json!([ip]));
        put_default(body, &["spec", "ipFamilies"], json!(["IPv4"]));
        put_default(body, &["spec", "ipFamilyPolicy"], "SingleStack".into());
    }
    let ports = child_mut(body, "spec")
        .get_mut("ports")
        .and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
        put_default(port, &["protocol"], "TCP".into());
        let own = port.get("port").cloned().unwrap_or_default();
        put_default(port, &["targetPort"], own);
        if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
            put_default(port, &["nodePort"], names.port().into());
        }
    }
}
