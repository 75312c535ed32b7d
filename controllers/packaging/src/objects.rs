//! The objects of an installation; the one source of all formats.

use std::collections::BTreeMap;

use boatswain::{LeaderOptions, Manager, Options, Rule, StartError};
use serde_json::{Value, json};

use crate::Program;

/// An installation, in the words of its cluster or of a template.
pub(super) struct Site {
    pub(super) program: Program,
    /// Where the controller runs.
    pub(super) namespace: String,
    /// Where it works; everywhere if empty.
    pub(super) namespaces: Vec<String>,
    pub(super) image: String,
    /// The API version of PodDisruptionBudgets.
    pub(super) policy: String,
}

/// Seconds for the signal to arrive and for the process to end.
const SPARE: u64 = 4;

const RBAC: &str = "rbac.authorization.k8s.io";

impl Site {
    /// All of them, in an order in which they can be applied.
    pub(super) fn objects(&self) -> Result<Vec<Value>, StartError> {
        let mut objects = vec![self.namespace(), self.account()];
        objects.extend(self.roles()?);
        objects.extend([self.budget(), self.deployment()]);
        Ok(objects)
    }

    pub(super) fn namespace(&self) -> Value {
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": self.namespace } })
    }

    pub(super) fn account(&self) -> Value {
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": { "name": self.program.name, "namespace": self.namespace },
        })
    }

    /// What is said to the manager, as far as it matters here.
    fn options(&self) -> Options {
        Options {
            namespaces: self.namespaces.clone(),
            leader: Some(LeaderOptions {
                namespace: Some(self.namespace.clone()),
                per_controller: self.program.lease_per_controller,
                ..LeaderOptions::default()
            }),
            ..Options::default()
        }
    }

    /// What the controller declares to need, by namespace.
    fn rights(&self) -> Result<BTreeMap<Option<String>, Vec<Rule>>, StartError> {
        let controllers = (self.program.controllers)();
        let manager = controllers
            .into_iter()
            .fold(Manager::new(self.options()), Manager::with);
        Ok(manager.rights()?.by_namespace())
    }

    /// A ClusterRole for what is needed everywhere, a Role for each namespace, and their bindings.
    pub(super) fn roles(&self) -> Result<Vec<Value>, StartError> {
        let roles = self.rights()?.into_iter().flat_map(|(namespace, rules)| {
            let kind = namespace.as_ref().map_or("ClusterRole", |_| "Role");
            // the controller's own namespace may be one of those it works in, and so may one that it needs whatever is chosen: a chart has both
            let name = match &namespace {
                Some(other) if self.namespaces.contains(other) && *other != self.namespace => {
                    format!("{}-objects", self.program.name)
                }
                Some(other) if *other != self.namespace => format!("{}-extra", self.program.name),
                _ => self.program.name.to_owned(),
            };
            let metadata = match &namespace {
                Some(namespace) => json!({ "name": name, "namespace": namespace }),
                None => json!({ "name": name }),
            };
            let rules: Vec<_> = rules.iter().map(Rule::policy).collect();
            [
                json!({
                    "apiVersion": format!("{RBAC}/v1"), "kind": kind,
                    "metadata": metadata, "rules": rules,
                }),
                json!({
                    "apiVersion": format!("{RBAC}/v1"), "kind": format!("{kind}Binding"),
                    "metadata": metadata,
                    "roleRef": { "apiGroup": RBAC, "kind": kind, "name": name },
                    "subjects": [{ "kind": "ServiceAccount", "name": self.program.name, "namespace": self.namespace }],
                }),
            ]
        });
        Ok(roles.collect())
    }

    /// A drain takes one replica after the other.
    pub(super) fn budget(&self) -> Value {
        json!({
            "apiVersion": self.policy, "kind": "PodDisruptionBudget",
            "metadata": { "name": self.program.name, "namespace": self.namespace },
            "spec": { "maxUnavailable": 1, "selector": { "matchLabels": self.labels() } },
        })
    }

    /// Two replicas: one works, the other stands by, on another node where there is one.
    pub(super) fn deployment(&self) -> Value {
        let mut args = vec![
            "run".to_owned(),
            "--leader-elect".into(),
            "--listen=[::]:8080".into(),
            "--log-format=json".into(),
        ];
        if self.program.lease_per_controller {
            args.insert(2, "--lease-per-controller".into());
        }
        if !self.namespaces.is_empty() {
            args.push(format!("--namespace={}", self.namespaces.join(",")));
        }
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": self.program.name, "namespace": self.namespace, "labels": self.labels() },
            "spec": {
                "replicas": 2,
                "selector": { "matchLabels": self.labels() },
                "template": {
                    "metadata": { "labels": self.labels() },
                    "spec": {
                        "serviceAccountName": self.program.name,
                        "terminationGracePeriodSeconds": self.patience(),
                        "securityContext": {
                            "runAsNonRoot": true,
                            "runAsUser": 65532,
                            "runAsGroup": 65532,
                            "seccompProfile": { "type": "RuntimeDefault" },
                        },
                        "topologySpreadConstraints": [{
                            "maxSkew": 1,
                            "topologyKey": "kubernetes.io/hostname",
                            "whenUnsatisfiable": "ScheduleAnyway",
                            "labelSelector": { "matchLabels": self.labels() },
                        }],
                        "containers": [self.container(&args)],
                    },
                },
            },
        })
    }

    /// Seconds from the signal to the kill: a stop that takes as long as it may still says at its end what went wrong.
    fn patience(&self) -> u64 {
        let controllers = (self.program.controllers)().len();
        self.options().longest_stop(controllers).as_secs() + SPARE
    }

    fn container(&self, args: &[String]) -> Value {
        let probe = |path: &str| json!({ "httpGet": { "path": path, "port": "http" }, "periodSeconds": 10 });
        json!({
            "name": self.program.name,
            "image": self.image,
            "args": args,
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
        })
    }

    fn labels(&self) -> Value {
        json!({ "app.kubernetes.io/name": self.program.name })
    }
}
