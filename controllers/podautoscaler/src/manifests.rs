//! The YAML that installs the custom resource and the controller.

use clap::Args;
use kube::CustomResourceExt as _;
use serde_json::{Value, json};

use crate::{api::PodAutoscaler, reconciler::NAME};

/// What can be chosen about an installation.
#[derive(Clone, Debug, Args)]
pub struct Install {
    /// Namespace the controller runs in
    #[arg(long, value_name = "NS", default_value = NAME)]
    pub namespace: String,
    /// Container image
    #[arg(long, value_name = "IMAGE", default_value = concat!("podautoscaler:", env!("CARGO_PKG_VERSION")))]
    pub image: String,
}

/// An object could not be written as YAML.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct PrintError(String);

/// The CustomResourceDefinition as YAML.
///
/// # Errors
///
/// When it cannot be serialized.
pub fn crd() -> Result<String, PrintError> {
    yaml(&serde_json::to_value(PodAutoscaler::crd()).map_err(|e| PrintError(e.to_string()))?)
}

/// Everything that installs the controller, as YAML documents in an order in which they can be applied.
///
/// The rights are the least that suffice: read PodAutoscalers and Deployments, write the `scale` of Deployments and the status of
/// PodAutoscalers, write Events, and in their own namespace Leases. There are two replicas: one works, the other stands by.
///
/// # Errors
///
/// When an object cannot be serialized.
pub fn manifests(install: &Install) -> Result<String, PrintError> {
    let mut documents = crd()?;
    for object in objects(install) {
        documents.push_str("---\n");
        documents.push_str(&yaml(&object)?);
    }
    Ok(documents)
}

fn yaml(object: &Value) -> Result<String, PrintError> {
    let mut text = serde_saphyr::to_string(object).map_err(|e| PrintError(e.to_string()))?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

fn objects(Install { namespace, image }: &Install) -> [Value; 7] {
    let labels = json!({ "app.kubernetes.io/name": NAME });
    let rule = |group: &str, resource: &str, verbs: &[&str]| json!({ "apiGroups": [group], "resources": [resource], "verbs": verbs });
    let probe =
        |path: &str| json!({ "httpGet": { "path": path, "port": "http" }, "periodSeconds": 10 });
    [
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } }),
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": { "name": NAME, "namespace": namespace },
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": { "name": NAME },
            "rules": [
                rule("autoscaling.example.com", "podautoscalers", &["get", "list", "watch"]),
                rule("autoscaling.example.com", "podautoscalers/status", &["patch"]),
                rule("apps", "deployments", &["get", "list", "watch"]),
                rule("apps", "deployments/scale", &["update"]),
                rule("events.k8s.io", "events", &["create", "patch"]),
            ],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": { "name": NAME },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME },
            "subjects": [{ "kind": "ServiceAccount", "name": NAME, "namespace": namespace }],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": { "name": NAME, "namespace": namespace },
            "rules": [rule("coordination.k8s.io", "leases", &["get", "create", "update"])],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": { "name": NAME, "namespace": namespace },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": NAME },
            "subjects": [{ "kind": "ServiceAccount", "name": NAME, "namespace": namespace }],
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": NAME, "namespace": namespace, "labels": labels },
            "spec": {
                "replicas": 2,
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": {
                        "serviceAccountName": NAME,
                        "securityContext": {
                            "runAsNonRoot": true,
                            "runAsUser": 65532,
                            "seccompProfile": { "type": "RuntimeDefault" },
                        },
                        "containers": [{
                            "name": NAME,
                            "image": image,
                            "args": ["run", "--leader-elect", "--listen", "0.0.0.0:8080", "--log-format", "json"],
                            "ports": [{ "name": "http", "containerPort": 8080 }],
                            "livenessProbe": probe("/healthz"),
                            "readinessProbe": probe("/readyz"),
                            "resources": {
                                "requests": { "cpu": "50m", "memory": "32Mi" },
                                "limits": { "memory": "256Mi" },
                            },
                            "securityContext": {
                                "allowPrivilegeEscalation": false,
                                "readOnlyRootFilesystem": true,
                                "capabilities": { "drop": ["ALL"] },
                            },
                        }],
                    },
                },
            },
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents() -> Vec<Value> {
        let install = Install {
            namespace: "ops".into(),
            image: "podautoscaler:test".into(),
        };
        let text = manifests(&install).expect("manifests");
        text.split("---\n")
            .map(|doc| serde_saphyr::from_str(doc).expect("a YAML document"))
            .collect()
    }

    #[test]
    fn the_schema_bounds_what_every_server_since_1_20_honours() {
        let crd = &documents()[0];
        let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let replicas = &spec["properties"]["replicas"];
        assert_eq!(replicas["format"], "int32");
        let bounds = (replicas["minimum"].as_f64(), replicas["maximum"].as_f64());
        assert_eq!(bounds, (Some(0.0), Some(10000.0)));
        let target = &spec["properties"]["targetDeployment"];
        assert_eq!(target["maxLength"], 253);
        assert!(
            target["pattern"]
                .as_str()
                .is_some_and(|p| p.starts_with("^[a-z0-9]"))
        );
        assert!(
            !crd.to_string().contains("x-kubernetes-validations"),
            "older servers drop rules in CEL"
        );
        assert_eq!(
            crd["spec"]["versions"][0]["subresources"]["status"],
            json!({})
        );
    }

    #[test]
    fn the_rights_contain_no_wildcard_and_no_write_to_whole_deployments() {
        let documents = documents();
        let role = documents
            .iter()
            .find(|d| d["kind"] == "ClusterRole")
            .expect("a role");
        assert!(!role.to_string().contains('*'));
        for rule in role["rules"].as_array().expect("rules") {
            let read_only = rule["verbs"] == json!(["get", "list", "watch"]);
            assert!(
                read_only || rule["resources"] != json!(["deployments"]),
                "{rule}"
            );
        }
    }

    #[test]
    fn everything_namespaced_goes_into_the_chosen_namespace() {
        for document in documents() {
            if matches!(
                document["kind"].as_str(),
                Some("ServiceAccount" | "Deployment" | "Role" | "RoleBinding")
            ) {
                assert_eq!(document["metadata"]["namespace"], "ops");
            }
        }
    }
}
