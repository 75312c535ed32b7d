//! The kinds that are there without a CRD.

use super::{
    object::Collection,
    served::{ALL_VERBS, Generation, ScalePaths, Served, View},
};

struct Row {
    group: &'static str,
    version: &'static str,
    plural: &'static str,
    kind: &'static str,
    short: &'static [&'static str],
    flags: u16,
}

const CLUSTER: u16 = 1;
const STATUS: u16 = 2;
const SCALE: u16 = 4;
const GENERATION: u16 = 8;
/// An update without a resourceVersion is refused.
const CONDITIONAL: u16 = 16;
const IN_ALL: u16 = 32;
/// Answers questions, stores nothing.
const REVIEW: u16 = 64;
const WORKLOAD: u16 = STATUS | GENERATION | IN_ALL;

const fn row(
    group: &'static str,
    version: &'static str,
    plural: &'static str,
    kind: &'static str,
    short: &'static [&'static str],
    flags: u16,
) -> Row {
    Row {
        group,
        version,
        plural,
        kind,
        short,
        flags,
    }
}

const ROWS: &[Row] = &[
    row("", "v1", "configmaps", "ConfigMap", &["cm"], 0),
    row("", "v1", "events", "Event", &["ev"], 0),
    row(
        "",
        "v1",
        "namespaces",
        "Namespace",
        &["ns"],
        CLUSTER | STATUS,
    ),
    row("", "v1", "nodes", "Node", &["no"], CLUSTER | STATUS),
    row("", "v1", "pods", "Pod", &["po"], STATUS | IN_ALL),
    row("", "v1", "secrets", "Secret", &[], 0),
    row("", "v1", "serviceaccounts", "ServiceAccount", &["sa"], 0),
    row("", "v1", "services", "Service", &["svc"], STATUS | IN_ALL),
    row("apps", "v1", "daemonsets", "DaemonSet", &["ds"], WORKLOAD),
    row(
        "apps",
        "v1",
        "deployments",
        "Deployment",
        &["deploy"],
        WORKLOAD | SCALE,
    ),
    row(
        "apps",
        "v1",
        "replicasets",
        "ReplicaSet",
        &["rs"],
        WORKLOAD | SCALE,
    ),
    row(
        "apps",
        "v1",
        "statefulsets",
        "StatefulSet",
        &["sts"],
        WORKLOAD | SCALE,
    ),
    row("events.k8s.io", "v1", "events", "Event", &["ev"], 0),
    row(
        "coordination.k8s.io",
        "v1",
        "leases",
        "Lease",
        &[],
        CONDITIONAL,
    ),
    row(
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        &["crd", "crds"],
        CLUSTER | STATUS | GENERATION | CONDITIONAL,
    ),
    row(
        "policy",
        "v1",
        "poddisruptionbudgets",
        "PodDisruptionBudget",
        &["pdb"],
        STATUS | GENERATION,
    ),
    row(
        "rbac.authorization.k8s.io",
        "v1",
        "clusterrolebindings",
        "ClusterRoleBinding",
        &[],
        CLUSTER,
    ),
    row(
        "rbac.authorization.k8s.io",
        "v1",
        "clusterroles",
        "ClusterRole",
        &[],
        CLUSTER,
    ),
    row(
        "rbac.authorization.k8s.io",
        "v1",
        "rolebindings",
        "RoleBinding",
        &[],
        0,
    ),
    row("rbac.authorization.k8s.io", "v1", "roles", "Role", &[], 0),
    row(
        "authorization.k8s.io",
        "v1",
        "selfsubjectaccessreviews",
        "SelfSubjectAccessReview",
        &[],
        CLUSTER | REVIEW,
    ),
    row(
        "authentication.k8s.io",
        "v1",
        "selfsubjectreviews",
        "SelfSubjectReview",
        &[],
        CLUSTER | REVIEW,
    ),
];

fn selectable(plural: &str) -> Vec<String> {
    let fields: &[&str] = match plural {
        "pods" => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
        "events" => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source.component",
            "type",
        ],
        "secrets" => &["type"],
        "namespaces" => &["status.phase"],
        "replicasets" => &["status.replicas"],
        "nodes" => &["spec.unschedulable"],
        _ => &[],
    };
    fields.iter().map(|field| (*field).to_owned()).collect()
}

/// All built-in resources, in the order of discovery.
pub(crate) fn all() -> impl Iterator<Item = Served> {
    ROWS.iter().map(|row| {
        let has = |flag: u16| row.flags & flag != 0;
        let event = row.group == "events.k8s.io";
        Served {
            group: row.group.into(),
            version: row.version.into(),
            plural: row.plural.into(),
            singular: row.kind.to_lowercase(),
            kind: row.kind.into(),
            list_kind: format!("{}List", row.kind),
            short_names: row.short.iter().map(|s| (*s).to_owned()).collect(),
            categories: if has(IN_ALL) {
                vec!["all".into()]
            } else {
                Vec::new()
            },
            namespaced: !has(CLUSTER),
            verbs: if has(REVIEW) { &["create"] } else { ALL_VERBS },
            collection: Collection::new(if event { "" } else { row.group }, row.plural),
            native: !event,
            view: if event { View::Event } else { View::Same },
            status: has(STATUS),
            scale: has(SCALE).then(ScalePaths::builtin),
            generation: if has(GENERATION) {
                Generation::Spec
            } else {
                Generation::Never
            },
            schema: None,
            openapi: None,
            columns: Vec::new(),
            selectable: selectable(row.plural),
            custom: false,
            unconditional: !has(CONDITIONAL),
        }
    })
}
