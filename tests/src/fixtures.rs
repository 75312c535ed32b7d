//! Objects the tests create, and shorthand for what they look at.

use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Event, Namespace},
        rbac::v1::{Role, RoleBinding},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, CustomResourceExt,
    api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams},
};
use podautoscaler::api::{PodAutoscaler, PodAutoscalerSpec, PodAutoscalerStatus};
use serde_json::json;

use crate::eventually;

/// Everything a test needs in one namespace of its own.
#[derive(Clone)]
pub struct Space {
    /// The namespace.
    pub name: String,
    client: Client,
}

impl Space {
    /// Creates a namespace whose name starts with `prefix`.
    pub async fn create(client: &Client, prefix: &str) -> Self {
        let namespace = Namespace {
            metadata: ObjectMeta {
                generate_name: Some(format!("{prefix}-")),
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        };
        let api = Api::<Namespace>::all(client.clone());
        let made = api
            .create(&PostParams::default(), &namespace)
            .await
            .expect("a namespace");
        Self {
            name: made.metadata.name.expect("a generated name"),
            client: client.clone(),
        }
    }

    /// The Deployments of the namespace.
    pub fn deployments(&self) -> Api<Deployment> {
        Api::namespaced(self.client.clone(), &self.name)
    }

    /// The PodAutoscalers of the namespace.
    pub fn autoscalers(&self) -> Api<PodAutoscaler> {
        Api::namespaced(self.client.clone(), &self.name)
    }

    /// The ConfigMaps of the namespace.
    pub fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.name)
    }

    /// Creates a ConfigMap, or gives it another value.
    pub async fn put(&self, name: &str, value: &str) {
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "value": value },
        });
        let params = PatchParams::apply("boatswain-tests").force();
        eventually("the ConfigMap is written", async || {
            self.config_maps()
                .patch(name, &params, &Patch::Apply(&map))
                .await
                .map_err(|e| e.to_string())
        })
        .await;
    }

    /// Deletes a ConfigMap.
    pub async fn remove(&self, name: &str) {
        self.config_maps()
            .delete(name, &DeleteParams::default())
            .await
            .expect("deleted");
    }

    /// Lets the viewer list and watch the ConfigMaps.
    pub async fn let_view(&self) {
        let maps =
            json!({ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"] });
        self.allow(maps).await;
    }

    /// Lets the viewer do anything.
    pub async fn let_work(&self) {
        let all = json!({ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] });
        self.allow(all).await;
    }

    /// By a Role and its binding, both called after the space.
    async fn allow(&self, rule: serde_json::Value) {
        let role: Role = serde_json::from_value(json!({
            "metadata": { "name": self.name }, "rules": [rule],
        }))
        .expect("a Role");
        let binding: RoleBinding = serde_json::from_value(json!({
            "metadata": { "name": self.name },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": self.name },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "viewer" }],
        }))
        .expect("a RoleBinding");
        let post = PostParams::default();
        let roles = Api::<Role>::namespaced(self.client.clone(), &self.name);
        let there = roles.get_opt(&self.name).await.expect("an answer");
        if there.is_none() {
            roles.create(&post, &role).await.expect("a Role");
        }
        let bindings = Api::<RoleBinding>::namespaced(self.client.clone(), &self.name);
        let bound = bindings.create(&post, &binding).await;
        bound.expect("a RoleBinding");
    }

    /// Takes back what [`Space::let_view`] or [`Space::let_work`] gave.
    pub async fn let_no_more(&self) {
        let bindings = Api::<RoleBinding>::namespaced(self.client.clone(), &self.name);
        let unbound = bindings.delete(&self.name, &DeleteParams::default()).await;
        unbound.expect("deleted");
    }

    /// The client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Creates a Deployment that wants `replicas`.
    pub async fn deploy(&self, name: &str, replicas: i32) -> Deployment {
        let made = self
            .deployments()
            .create(&PostParams::default(), &deployment(name, replicas))
            .await;
        made.expect("a Deployment")
    }

    /// Creates a PodAutoscaler called as its target.
    pub async fn autoscale(&self, target: &str, replicas: i32) -> PodAutoscaler {
        let pa = autoscaler(target, target, replicas);
        self.autoscalers()
            .create(&PostParams::default(), &pa)
            .await
            .expect("a PodAutoscaler")
    }

    /// Asks for another number of replicas in the PodAutoscaler.
    pub async fn ask_for(&self, name: &str, replicas: i32) {
        let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
        self.autoscalers()
            .patch(name, &PatchParams::default(), &patch)
            .await
            .expect("patched");
    }

    /// Sets the replicas of the Deployment itself, as `manager`: what a foreign controller does.
    pub async fn set_replicas(&self, name: &str, replicas: i32, manager: &str) {
        let params = PatchParams {
            field_manager: Some(manager.into()),
            ..PatchParams::default()
        };
        let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
        self.deployments()
            .patch(name, &params, &patch)
            .await
            .expect("patched");
    }

    /// The replicas the Deployment asks for.
    pub async fn replicas(&self, name: &str) -> Option<i32> {
        self.deployments()
            .get(name)
            .await
            .expect("a Deployment")
            .spec
            .replicas
    }

    /// Waits until the Deployment asks for `replicas`.
    pub async fn has_replicas(&self, name: &str, replicas: i32) {
        eventually(
            &format!("{name} asks for {replicas} replicas"),
            async || {
                let now = self
                    .deployments()
                    .get(name)
                    .await
                    .map_err(|e| e.to_string())?;
                let now = now.spec.replicas;
                if now == Some(replicas) {
                    Ok(())
                } else {
                    Err(format!("{now:?}"))
                }
            },
        )
        .await;
    }

    /// Waits until the condition `Synced` of the PodAutoscaler is `status` for `reason`, for its current generation.
    pub async fn says(&self, name: &str, status: &str, reason: &str) -> PodAutoscalerStatus {
        eventually(
            &format!("{name} says Synced {status} {reason}"),
            async || {
                let pa = self
                    .autoscalers()
                    .get(name)
                    .await
                    .map_err(|e| e.to_string())?;
                let found = pa.status.clone().unwrap_or_default();
                let fresh = found.observed_generation == pa.metadata.generation;
                let said = found
                    .conditions
                    .iter()
                    .any(|c| c.type_ == "Synced" && c.status == status && c.reason == reason);
                if fresh && said {
                    Ok(found)
                } else {
                    Err(format!("{found:?}"))
                }
            },
        )
        .await
    }

    /// Waits until the status of the PodAutoscaler is in sync with `replicas`.
    pub async fn is_synced(&self, name: &str, replicas: i32) -> PodAutoscalerStatus {
        eventually(&format!("{name} is synced at {replicas}"), async || {
            let pa = self
                .autoscalers()
                .get(name)
                .await
                .map_err(|e| e.to_string())?;
            let found = pa.status.clone().unwrap_or_default();
            let synced = found.observed_generation == pa.metadata.generation
                && found.desired_replicas == Some(replicas)
                && found
                    .conditions
                    .iter()
                    .any(|c| c.type_ == "Synced" && c.status == "True");
            if synced {
                Ok(found)
            } else {
                Err(format!("{found:?}"))
            }
        })
        .await
    }

    /// Waits until the PodAutoscaler is in sync with `replicas` and its Deployment has as many pods: nothing will change by itself.
    pub async fn is_settled(&self, name: &str, replicas: i32) {
        eventually(&format!("{name} has {replicas} pods"), async || {
            let status = self.is_synced(name, replicas).await;
            if status.current_replicas == Some(replicas) {
                Ok(())
            } else {
                Err(format!("{status:?}"))
            }
        })
        .await;
    }

    /// Notes of the Events about the object of `kind` called `name`, as `kubectl describe` reads them.
    pub async fn notes(&self, kind: &str, name: &str, reason: &str) -> Vec<String> {
        let events = Api::<Event>::namespaced(self.client.clone(), &self.name);
        let all = events
            .list(&kube::api::ListParams::default())
            .await
            .expect("events");
        let about = all.items.into_iter().filter(|e| {
            e.involved_object.kind.as_deref() == Some(kind)
                && e.involved_object.name.as_deref() == Some(name)
                && e.reason.as_deref() == Some(reason)
        });
        about.filter_map(|e| e.message).collect()
    }
}

/// A Deployment of pods that do nothing.
pub fn deployment(name: &str, replicas: i32) -> Deployment {
    let labels = json!({ "app": name });
    let object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": name, "labels": labels },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "main", "image": "example.com/main:1" }] },
            },
        },
    });
    serde_json::from_value(object).expect("a Deployment")
}

/// A PodAutoscaler.
pub fn autoscaler(name: &str, target: &str, replicas: i32) -> PodAutoscaler {
    PodAutoscaler::new(
        name,
        PodAutoscalerSpec {
            target_deployment: target.into(),
            replicas,
        },
    )
}

/// Installs the CustomResourceDefinition of `K` and waits until objects of it can be made.
pub async fn install<K: CustomResourceExt>(client: &Client) {
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    let params = PatchParams::apply("boatswain-tests").force();
    api.patch(K::crd_name(), &params, &Patch::Apply(&K::crd()))
        .await
        .expect("an installed CRD");
    eventually("the CRD is established", async || {
        let crd = api.get(K::crd_name()).await.map_err(|e| e.to_string())?;
        let conditions = crd.status.and_then(|s| s.conditions).unwrap_or_default();
        let established = conditions
            .iter()
            .any(|c| c.type_ == "Established" && c.status == "True");
        if established {
            Ok(())
        } else {
            Err(format!("{conditions:?}"))
        }
    })
    .await;
}
