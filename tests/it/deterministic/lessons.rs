//! The lessons do what they say.

use std::time::Duration;

use boatswain::{Kind, Manager, Options};
use boatswain_apisim::{Matcher, Rejection};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, ResourceExt as _, api::PostParams, core::DynamicObject};
use serde_json::json;

use super::{Stage, end};
use crate::scenarios::dynamic::lesson as dynamic;

// the lesson itself is what is tested
#[path = "../../../examples/evictor.rs"]
#[allow(dead_code, unreachable_pub, reason = "its main is not called here")]
mod evictor;

async fn pod(stage: &Stage, name: &str) {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": { "name": name, "annotations": { "example.io/evict-on": "out of cheese" } },
        "spec": { "containers": [{ "name": "main", "image": "example.com/main:1" }] },
    }))
    .expect("a Pod");
    let pods = Api::<Pod>::namespaced(stage.client.clone(), "default");
    let post = PostParams::default();
    pods.create(&post, &pod).await.expect("created");
}

#[test]
fn a_pod_is_evicted_when_its_log_asks_for_it_and_the_budget_allows() {
    Stage::play(112, |stage| async move {
        for name in ["sick", "well"] {
            pod(&stage, name).await;
        }
        // what a budget says that needs the pod
        let budget = Rejection::new(429).times(2).retry_after(5);
        let evictions = Matcher::any().resource("pods").subresource("eviction");
        stage.sim.faults().reject(evictions, budget);
        let running = stage.start(evictor::controller()).await;
        stage.clock.sleep(Duration::from_secs(60)).await;
        stage.sim.write_log("default", "well", "all is well");
        stage.sim.write_log("default", "sick", "???: out of cheese");
        stage.clock.sleep(Duration::from_secs(120)).await;
        let audit = stage.sim.audit();
        let evictions = audit.iter().filter(|e| e.request.subresource == "eviction");
        let evictions: Vec<_> = evictions
            .map(|entry| (entry.request.name.as_str(), entry.code))
            .collect();
        assert_eq!(evictions, [("sick", 429), ("sick", 429), ("sick", 201)]);
        let body = audit.iter().filter_map(|entry| entry.body());
        let uids = body.filter_map(|b| b.pointer("/deleteOptions/preconditions/uid").cloned());
        assert_eq!(uids.count(), 3, "each names the pod it means");
        let pods = Api::<Pod>::namespaced(stage.client.clone(), "default");
        assert!(pods.get_opt("sick").await.expect("an answer").is_none());
        assert!(pods.get_opt("well").await.expect("an answer").is_some());
        end(running).await;
    });
}

#[test]
fn objects_of_any_kind_are_dated_and_deleted_in_namespaces_and_outside_of_them() {
    Stage::play(113, |stage| async move {
        let roles = Kind::new(
            "rbac.authorization.k8s.io",
            "v1",
            "ClusterRole",
            "clusterroles",
        );
        let kinds = [
            Kind::new("", "v1", "ConfigMap", "configmaps"),
            roles.cluster_wide(),
        ];
        let apis = kinds.each_ref().map(|kind| {
            let (client, resource) = (stage.client.clone(), kind.api_resource());
            match kind.namespaced {
                true => Api::<DynamicObject>::default_namespaced_with(client, &resource),
                false => Api::all_with(client, &resource),
            }
        });
        for (kind, api) in kinds.iter().zip(&apis) {
            for (name, ttl) in [("brief", "60s"), ("long", "2h"), ("wrong", "soon")] {
                let mut object = DynamicObject::new(name, &kind.api_resource());
                let annotations = object.annotations_mut();
                annotations.insert("example.io/ttl".into(), ttl.into());
                let made = api.create(&PostParams::default(), &object).await;
                made.expect("created");
            }
        }
        let manager = Manager::new(Options::default());
        let controllers = kinds.clone().map(dynamic::controller).into_iter();
        let running = stage.manage(controllers.fold(manager, Manager::with)).await;
        stage.clock.sleep(Duration::from_secs(30)).await;
        for api in &apis {
            let brief = api.get("brief").await.expect("not old enough");
            let created = brief.creation_timestamp().expect("it was created").0;
            let expires = created + Duration::from_secs(60);
            let told = brief.annotations().get("example.io/expires");
            assert_eq!(told, Some(&expires.to_string()));
        }
        stage.clock.sleep(Duration::from_secs(60)).await;
        let mut uids = 0;
        for entry in stage.sim.audit() {
            if entry.request.verb == "delete" {
                assert_eq!((entry.request.name.as_str(), entry.code), ("brief", 200));
                let body = entry.body().unwrap_or_default();
                uids += usize::from(body.pointer("/preconditions/uid").is_some());
            }
        }
        assert_eq!(uids, 2, "each names the object it means");
        for api in &apis {
            assert!(api.get_opt("brief").await.expect("an answer").is_none());
            assert!(api.get_opt("long").await.expect("an answer").is_some());
        }
        for kind in &kinds {
            let name = format!("janitor-{}", kind.resource());
            let handle = running.observer().controller(&name).expect("there");
            let parked = handle.parked();
            assert_eq!(parked.len(), 1, "{parked:?}");
            assert_eq!(parked[0].key.name(), "wrong");
        }
        end(running).await;
    });
}
