//! The lessons do what they say.

use std::time::Duration;

use boatswain_apisim::{Matcher, Rejection};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, api::PostParams};
use serde_json::json;

use super::{Stage, end};

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
