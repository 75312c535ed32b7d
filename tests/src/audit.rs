//! What a server recorded of the requests it got, in one form for simulated and real servers.

use serde_json::Value;

/// One completed request.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The verb, as RBAC spells it.
    pub verb: String,
    /// The resource (plural).
    pub resource: String,
    /// `scale`, `status`, or empty.
    pub subresource: String,
    /// The namespace, empty for cluster-scoped objects.
    pub namespace: String,
    /// The object's name, empty for lists and creations.
    pub name: String,
    /// Who asked.
    pub user: String,
    /// The HTTP status of the answer.
    pub code: u16,
    /// The version the request was conditional on, empty where it was not.
    pub precondition: String,
    /// Whether it was accepted and changed something.
    pub changed: bool,
    /// The object in the answer, where it was recorded.
    pub answer: Option<Value>,
}

impl Request {
    /// The version of the object in the answer: of a write that changed something the place it has among all writes.
    pub fn version(&self) -> Option<u64> {
        let version = self.answer.as_ref()?.pointer("/metadata/resourceVersion")?;
        version.as_str()?.parse().ok()
    }
}

/// One accepted write of a Deployment's replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaleWrite {
    /// The Deployment.
    pub name: String,
    /// What was written.
    pub replicas: i64,
    /// Whether it changed anything.
    pub changed: bool,
}

/// The accepted scale writes in `namespace`, in order.
pub fn scale_writes(requests: &[Request], namespace: &str) -> Vec<ScaleWrite> {
    let accepted = requests.iter().filter(|r| {
        r.resource == "deployments"
            && r.subresource == "scale"
            && r.namespace == namespace
            && matches!(r.verb.as_str(), "update" | "patch")
            && r.code == 200
    });
    accepted
        .map(|r| ScaleWrite {
            name: r.name.clone(),
            replicas: r
                .answer
                .as_ref()
                .and_then(|a| a.pointer("/spec/replicas"))
                .and_then(Value::as_i64)
                .unwrap_or(0),
            changed: r.changed,
        })
        .collect()
}

/// The replicas written to one Deployment, in order.
pub fn replicas_written(writes: &[ScaleWrite], name: &str) -> Vec<i64> {
    writes
        .iter()
        .filter(|w| w.name == name)
        .map(|w| w.replicas)
        .collect()
}
