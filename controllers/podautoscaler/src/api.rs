//! The custom resource.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

// Pattern and bounds are plain OpenAPI, which every server since 1.20 honours; validation rules in CEL are ignored before 1.25.
/// Which Deployment is to have how many replicas.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "autoscaling.example.com",
    version = "v1",
    kind = "PodAutoscaler",
    plural = "podautoscalers",
    namespaced,
    shortname = "pa",
    status = "PodAutoscalerStatus",
    doc = "Keeps a Deployment of its namespace at a number of replicas.",
    printcolumn = r#"{"name":"Target","type":"string","jsonPath":".spec.targetDeployment"}"#,
    printcolumn = r#"{"name":"Desired","type":"integer","jsonPath":".spec.replicas"}"#,
    printcolumn = r#"{"name":"Current","type":"integer","jsonPath":".status.currentReplicas"}"#,
    printcolumn = r#"{"name":"Synced","type":"string","jsonPath":".status.conditions[?(@.type==\"Synced\")].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","priority":1,"jsonPath":".status.conditions[?(@.type==\"Synced\")].reason"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct PodAutoscalerSpec {
    /// Name of the Deployment to scale, in the same namespace.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub target_deployment: String,
    /// How many replicas it is to have.
    #[schemars(range(min = 0, max = 10000))]
    pub replicas: i32,
}

/// What the controller last saw and did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodAutoscalerStatus {
    /// The generation of the spec this status speaks of.
    pub observed_generation: Option<i64>,
    /// How many pods the Deployment has.
    pub current_replicas: Option<i32>,
    /// How many it is asked to have.
    pub desired_replicas: Option<i32>,
    /// When this controller last changed the Deployment's replicas.
    pub last_scale_time: Option<Time>,
    /// `Synced`: whether the Deployment asks for the desired number, and why not.
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

/// Reasons of the condition `Synced`.
pub mod reason {
    /// The replicas were just changed.
    pub const SCALED: &str = "Scaled";
    /// Nothing had to be done.
    pub const IN_SYNC: &str = "InSync";
    /// There is no such Deployment, or it is being deleted.
    pub const TARGET_NOT_FOUND: &str = "TargetDeploymentNotFound";
    /// Someone else keeps setting another number, or an older PodAutoscaler is there for the same Deployment; the controller has stepped back.
    pub const CONTENDED: &str = "Contended";
    /// The Deployment cannot be read, or the API server refuses to scale it.
    pub const REFUSED: &str = "Refused";
    /// What keeps failing is not the object's fault: a right is missing, or the API server fails. It is tried again and again.
    pub const FAILING: &str = "Failing";
}
