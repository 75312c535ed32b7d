//! What the tests share.

use boatswain_apisim::{ApiSim, Options, Time};
use http::{Request, Response};
use http_body_util::BodyExt;
use jiff::Timestamp;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kube::{Client, client::Body};
use serde_json::{Value, json};

/// A server whose clock stands still.
pub(crate) fn sim() -> ApiSim {
    sim_with(Options::default())
}

pub(crate) fn sim_with(options: Options) -> ApiSim {
    let epoch = Timestamp::from_second(1_700_000_000).expect("a valid time");
    ApiSim::new(Options {
        time: Time::default().with_now(move || epoch),
        ..options
    })
}

pub(crate) fn client(sim: &ApiSim) -> Client {
    Client::new(sim.service(), "default")
}

pub(crate) fn map(name: &str, data: &[(&str, &str)]) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": data.iter().copied().collect::<std::collections::BTreeMap<_, _>>()}))
        .expect("a ConfigMap")
}

pub(crate) fn deployment_json(name: &str, replicas: i64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "main", "image": "nginx:1"}]}},
        },
    })
}

pub(crate) fn deployment(name: &str, replicas: i64) -> Deployment {
    serde_json::from_value(deployment_json(name, replicas)).expect("a Deployment")
}

pub(crate) fn widget_crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                    {"name": "Synced", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Synced\")].status"},
                ],
                "schema": {"openAPIV3Schema": {"type": "object", "required": ["spec"], "properties": {
                    "spec": {"type": "object", "required": ["target"], "properties": {
                        "target": {"type": "string", "maxLength": 253, "pattern": "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"},
                        "size": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 10000, "default": 1},
                        "mode": {"type": "string", "enum": ["fast", "slow"]},
                    }},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}},
            }],
        },
    })
}

pub(crate) fn widget(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name, "namespace": "default"}, "spec": spec})
}

/// Sends a request of one's own and reads the answer whole.
pub(crate) async fn send(
    client: &Client,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Value,
) -> (u16, Value) {
    let (code, bytes) = send_raw(client, method, path, headers, body).await;
    (
        code,
        serde_json::from_slice(&bytes)
            .unwrap_or(Value::String(String::from_utf8_lossy(&bytes).into_owned())),
    )
}

pub(crate) async fn send_raw(
    client: &Client,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Value,
) -> (u16, Vec<u8>) {
    let body = if body.is_null() {
        Vec::new()
    } else {
        body.to_string().into_bytes()
    };
    let mut request = Request::builder().method(method).uri(path);
    if !headers.iter().any(|(name, _)| *name == "content-type") {
        request = request.header("content-type", "application/json");
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response: Response<Body> = client
        .send(request.body(Body::from(body)).expect("a request"))
        .await
        .expect("an answer");
    let code = response.status().as_u16();
    (
        code,
        response
            .into_body()
            .collect()
            .await
            .expect("a whole body")
            .to_bytes()
            .to_vec(),
    )
}
