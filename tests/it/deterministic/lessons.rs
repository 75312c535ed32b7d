//! The lessons do what they say.

use std::time::Duration;

use boatswain::{Kind, Manager, Options};
use boatswain_apisim::{Matcher, Rejection};
use boatswain_tests::deployment;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
use kube::{Api, ResourceExt as _, api::PostParams, core::PartialObjectMeta};
use serde_json::json;

use super::{Stage, end};

// the lessons themselves are what is tested
#[path = "../../../examples/dynamic.rs"]
#[allow(dead_code, unreachable_pub, reason = "its main is not called here")]
mod dynamic;
#[path = "../../../examples/evictor.rs"]
#[allow(dead_code, unreachable_pub, reason = "its main is not called here")]
mod evictor;

#[test]
fn kinds_that_are_known_at_run_time_only_are_reconciled() {
    Stage::play(111, |stage| async move {
        let post = PostParams::default();
        let deployments = Api::<Deployment>::namespaced(stage.client.clone(), "default");
        let web = deployment("web", 1);
        deployments.create(&post, &web).await.expect("created");
        stage.create("map").await;
        let kinds = [
            Kind::new("apps", "v1", "Deployment", "deployments"),
            Kind::new("", "v1", "ConfigMap", "configmaps"),
        ];
        let manager = kinds.map(dynamic::marker).into_iter();
        let manager = manager.fold(Manager::new(Options::default()), Manager::with);
        let running = stage.manage(manager).await;
        stage.clock.sleep(Duration::from_secs(5)).await;
        let marked = |labels: &std::collections::BTreeMap<String, String>| {
            labels.get("example.io/marked").map(String::as_str) == Some("true")
        };
        let web: PartialObjectMeta<Deployment> =
            deployments.get_metadata("web").await.expect("there");
        assert!(marked(web.labels()));
        assert!(marked(
            stage.maps().get("map").await.expect("there").labels()
        ));
        let patches = stage.sim.audit().into_iter();
        let patches = patches.filter(|entry| entry.request.verb == "patch");
        assert_eq!(patches.count(), 2, "each once");
        end(running).await;
    });
}

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
