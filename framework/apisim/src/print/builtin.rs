//! The columns of built-in kinds.

use jiff::Timestamp;
use serde_json::Value;

use super::{age, column, name_column};
use crate::model::served::{Column, Served};

/// The columns of a built-in kind; `None` for custom resources.
pub(super) fn columns(served: &Served) -> Option<Vec<Column>> {
    if served.custom {
        return None;
    }
    let spec: &[(&str, i64)] = match served.plural.as_str() {
        "deployments" => &[
            ("Ready", 0),
            ("Up-to-date", 0),
            ("Available", 0),
            ("Age", 0),
            ("Containers", 1),
            ("Images", 1),
            ("Selector", 1),
        ],
        "replicasets" => &[
            ("Desired", 0),
            ("Current", 0),
            ("Ready", 0),
            ("Age", 0),
            ("Containers", 1),
            ("Images", 1),
            ("Selector", 1),
        ],
        "statefulsets" => &[("Ready", 0), ("Age", 0), ("Containers", 1), ("Images", 1)],
        "daemonsets" => &[
            ("Desired", 0),
            ("Current", 0),
            ("Ready", 0),
            ("Up-to-date", 0),
            ("Available", 0),
            ("Age", 0),
        ],
        "pods" => &[
            ("Ready", 0),
            ("Status", 0),
            ("Restarts", 0),
            ("Age", 0),
            ("IP", 1),
            ("Node", 1),
        ],
        "configmaps" => &[("Data", 0), ("Age", 0)],
        "secrets" => &[("Type", 0), ("Data", 0), ("Age", 0)],
        "services" => &[
            ("Type", 0),
            ("Cluster-IP", 0),
            ("External-IP", 0),
            ("Port(s)", 0),
            ("Age", 0),
            ("Selector", 1),
        ],
        "serviceaccounts" => &[("Secrets", 0), ("Age", 0)],
        "namespaces" => &[("Status", 0), ("Age", 0)],
        "nodes" => &[("Status", 0), ("Roles", 0), ("Age", 0), ("Version", 0)],
        "leases" => &[("Holder", 0), ("Age", 0)],
        "events" => {
            let names = [
                ("Last Seen", 0),
                ("Type", 0),
                ("Reason", 0),
                ("Object", 0),
                ("Subobject", 1),
                ("Source", 1),
                ("Message", 0),
                ("First Seen", 1),
                ("Count", 1),
                ("Name", 1),
            ];
            return Some(
                names
                    .iter()
                    .map(|(name, priority)| column(name, "string", *priority, ""))
                    .collect(),
            );
        }
        _ => &[("Created At", 0)],
    };
    let kind = |name: &str| match name {
        "Desired" | "Current" => "integer",
        "Ready" if matches!(served.plural.as_str(), "replicasets" | "daemonsets") => "integer",
        "Created At" => "date",
        _ => "string",
    };
    let rest = spec
        .iter()
        .map(|(name, priority)| column(name, kind(name), *priority, ""));
    Some(std::iter::once(name_column()).chain(rest).collect())
}

struct Sight<'a> {
    object: &'a Value,
    now: Timestamp,
}

impl Sight<'_> {
    fn text(&self, pointer: &str) -> &str {
        self.object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    fn or(&self, pointer: &str, absent: &str) -> Value {
        let text = self.text(pointer);
        if text.is_empty() {
            absent.into()
        } else {
            text.into()
        }
    }

    fn number(&self, pointer: &str) -> i64 {
        self.object
            .pointer(pointer)
            .and_then(Value::as_i64)
            .unwrap_or(0)
    }

    fn of(&self, ready: &str, wanted: &str) -> Value {
        format!("{}/{}", self.number(ready), self.number(wanted)).into()
    }

    fn age(&self, pointer: &str) -> Value {
        age::since(self.text(pointer), self.now).into()
    }

    fn created(&self) -> Value {
        self.age("/metadata/creationTimestamp")
    }

    fn list(&self, pointer: &str) -> &[Value] {
        self.object
            .pointer(pointer)
            .and_then(Value::as_array)
            .map_or(&[], Vec::as_slice)
    }

    fn size(&self, pointers: &[&str]) -> Value {
        let size = |pointer: &&str| {
            self.object
                .pointer(pointer)
                .and_then(Value::as_object)
                .map_or(0, serde_json::Map::len)
        };
        pointers.iter().map(size).sum::<usize>().into()
    }

    fn containers(&self, part: &str) -> Value {
        let parts = self
            .list("/spec/template/spec/containers")
            .iter()
            .filter_map(|c| c.get(part)?.as_str());
        parts.collect::<Vec<_>>().join(",").into()
    }

    fn labels(&self, pointer: &str) -> Value {
        let map = self.object.pointer(pointer).and_then(Value::as_object);
        let pairs = map
            .into_iter()
            .flatten()
            .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()));
        match pairs.collect::<Vec<_>>().join(",").as_str() {
            "" => "<none>".into(),
            text => text.into(),
        }
    }

    fn condition(&self, kind: &str) -> &str {
        let found = self
            .list("/status/conditions")
            .iter()
            .find(|condition| condition.get("type") == Some(&kind.into()));
        found
            .and_then(|condition| condition.get("status"))
            .and_then(Value::as_str)
            .unwrap_or("Unknown")
    }

    fn ports(&self) -> Value {
        let port = |port: &Value| {
            let protocol = port
                .get("protocol")
                .and_then(Value::as_str)
                .unwrap_or("TCP");
            let number = port.get("port").and_then(Value::as_i64).unwrap_or(0);
            match port.get("nodePort").and_then(Value::as_i64) {
                Some(node) => format!("{number}:{node}/{protocol}"),
                None => format!("{number}/{protocol}"),
            }
        };
        match self
            .list("/spec/ports")
            .iter()
            .map(port)
            .collect::<Vec<_>>()
            .join(",")
            .as_str()
        {
            "" => "<none>".into(),
            text => text.into(),
        }
    }
}

/// The cells of an object of a built-in kind, one per column.
pub(super) fn cells(served: &Served, object: &Value, now: Timestamp) -> Vec<Value> {
    let see = Sight { object, now };
    let name = see.or("/metadata/name", "");
    let selector = || see.labels("/spec/selector/matchLabels");
    match served.plural.as_str() {
        "deployments" => vec![
            name,
            see.of("/status/readyReplicas", "/spec/replicas"),
            see.number("/status/updatedReplicas").into(),
            see.number("/status/availableReplicas").into(),
            see.created(),
            see.containers("name"),
            see.containers("image"),
            selector(),
        ],
        "replicasets" => vec![
            name,
            see.number("/spec/replicas").into(),
            see.number("/status/replicas").into(),
            see.number("/status/readyReplicas").into(),
            see.created(),
            see.containers("name"),
            see.containers("image"),
            selector(),
        ],
        "statefulsets" => vec![
            name,
            see.of("/status/readyReplicas", "/spec/replicas"),
            see.created(),
            see.containers("name"),
            see.containers("image"),
        ],
        "daemonsets" => vec![
            name,
            see.number("/status/desiredNumberScheduled").into(),
            see.number("/status/currentNumberScheduled").into(),
            see.number("/status/numberReady").into(),
            see.number("/status/updatedNumberScheduled").into(),
            see.number("/status/numberAvailable").into(),
            see.created(),
        ],
        "pods" => {
            let statuses = see.list("/status/containerStatuses");
            let ready = statuses
                .iter()
                .filter(|s| s.get("ready") == Some(&Value::Bool(true)))
                .count();
            let restarts: i64 = statuses
                .iter()
                .filter_map(|s| s.get("restartCount")?.as_i64())
                .sum();
            let phase = match see.text("/metadata/deletionTimestamp") {
                "" => see.or("/status/phase", "Unknown"),
                _ => "Terminating".into(),
            };
            vec![
                name,
                format!("{ready}/{}", see.list("/spec/containers").len()).into(),
                phase,
                restarts.to_string().into(),
                see.created(),
                see.or("/status/podIP", "<none>"),
                see.or("/spec/nodeName", "<none>"),
            ]
        }
        "configmaps" => vec![name, see.size(&["/data", "/binaryData"]), see.created()],
        "secrets" => vec![
            name,
            see.or("/type", ""),
            see.size(&["/data"]),
            see.created(),
        ],
        "services" => vec![
            name,
            see.or("/spec/type", ""),
            see.or("/spec/clusterIP", "<none>"),
            "<none>".into(),
            see.ports(),
            see.created(),
            see.labels("/spec/selector"),
        ],
        "serviceaccounts" => vec![name, see.list("/secrets").len().into(), see.created()],
        "namespaces" => vec![name, see.or("/status/phase", ""), see.created()],
        "nodes" => {
            let status = if see.condition("Ready") == "True" {
                "Ready"
            } else {
                "NotReady"
            };
            vec![
                name,
                status.into(),
                "<none>".into(),
                see.created(),
                see.or("/status/nodeInfo/kubeletVersion", ""),
            ]
        }
        "leases" => vec![name, see.or("/spec/holderIdentity", ""), see.created()],
        "events" => event(&see),
        _ => vec![name, see.or("/metadata/creationTimestamp", "")],
    }
}

fn event(see: &Sight<'_>) -> Vec<Value> {
    // either version's names; what one has, the other has not
    let either = |core: &str, new: &str| {
        if see.text(core).is_empty() {
            see.text(new).to_owned()
        } else {
            see.text(core).to_owned()
        }
    };
    let about = |part: &str| {
        either(
            &format!("/involvedObject/{part}"),
            &format!("/regarding/{part}"),
        )
    };
    let first = [
        see.text("/firstTimestamp"),
        see.text("/deprecatedFirstTimestamp"),
        see.text("/eventTime"),
    ];
    let last = [
        see.text("/series/lastObservedTime"),
        see.text("/lastTimestamp"),
        see.text("/deprecatedLastTimestamp"),
        see.text("/eventTime"),
    ];
    let age = |times: &[&str]| {
        times
            .iter()
            .find(|t| !t.is_empty())
            .map_or_else(|| "<unknown>".to_owned(), |t| age::since(t, see.now))
    };
    let count = ["/series/count", "/count", "/deprecatedCount"]
        .map(|pointer| see.number(pointer))
        .into_iter()
        .find(|n| *n > 0);
    let component = [
        see.text("/source/component"),
        see.text("/deprecatedSource/component"),
        see.text("/reportingComponent"),
        see.text("/reportingController"),
    ];
    vec![
        age(&last).into(),
        see.or("/type", ""),
        see.or("/reason", ""),
        format!("{}/{}", about("kind").to_lowercase(), about("name")).into(),
        about("fieldPath").into(),
        component
            .into_iter()
            .find(|c| !c.is_empty())
            .unwrap_or_default()
            .into(),
        either("/message", "/note").trim().into(),
        age(&first).into(),
        count.unwrap_or(1).into(),
        see.or("/metadata/name", ""),
    ]
}
