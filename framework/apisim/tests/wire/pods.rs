//! Logs and evictions.

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api,
    api::{EvictParams, LogParams, PostParams},
    core::Status,
};
use serde_json::json;

use crate::scene::{client, sim};

fn pod(name: &str) -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "nginx:1"}]},
    }))
    .expect("a Pod")
}

#[tokio::test(start_paused = true)]
async fn a_pods_log_is_what_it_was_made_to_write() {
    let sim = sim();
    let pods = Api::<Pod>::namespaced(client(&sim), "default");
    let post = PostParams::default();
    pods.create(&post, &pod("web")).await.expect("created");
    let all = LogParams::default();
    assert_eq!(pods.logs("web", &all).await.expect("a log"), "");
    for line in ["one", "two", "three"] {
        sim.write_log("default", "web", line);
    }
    let log = pods.logs("web", &all).await.expect("a log");
    assert_eq!(log, "one\ntwo\nthree\n");
    let last = LogParams {
        tail_lines: Some(2),
        ..LogParams::default()
    };
    assert_eq!(
        pods.logs("web", &last).await.expect("a log"),
        "two\nthree\n"
    );
    let missing = pods.logs("nobody", &all).await;
    assert!(matches!(missing, Err(kube::Error::Api(status)) if status.code == 404));
}

#[tokio::test(start_paused = true)]
async fn an_eviction_deletes_the_pod_on_its_preconditions_and_is_in_the_log() {
    let sim = sim();
    let pods = Api::<Pod>::namespaced(client(&sim), "default");
    let post = PostParams::default();
    pods.create(&post, &pod("web")).await.expect("created");
    let another = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web"},
        "deleteOptions": {"preconditions": {"uid": "another"}},
    });
    let refused: Result<Status, _> = pods
        .create_subresource("eviction", "web", &post, &another)
        .await;
    assert!(matches!(refused, Err(kube::Error::Api(status)) if status.code == 409));
    let evicted = pods.evict("web", &EvictParams::default()).await;
    assert!(evicted.expect("evicted").is_success());
    assert!(pods.get_opt("web").await.expect("an answer").is_none());
    let audit = sim.audit();
    let last = audit
        .iter()
        .rfind(|entry| entry.request.subresource == "eviction")
        .expect("in the log");
    assert_eq!(
        (last.request.verb, last.request.name.as_str()),
        ("create", "web")
    );
    assert_eq!((last.code, last.changed), (201, true));
}
