use serde_json::json;

use super::*;
use crate::{ApiSim, Options, Time};

fn sim() -> ApiSim {
    let epoch = jiff::Timestamp::from_second(1_700_000_000).expect("a time");
    ApiSim::new(Options {
        time: Time::default().with_now(move || epoch),
        ..Options::default()
    })
}

fn deploy(sim: &ApiSim, replicas: i64) {
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec = json!({"replicas": replicas, "selector": {"matchLabels": {"a": "b"}}, "template": template});
    sim.create(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})).expect("created");
}

fn status(sim: &ApiSim) -> Value {
    sim.get("apps/v1", "Deployment", "", "web")
        .expect("served")
        .expect("there")["status"]
        .clone()
}

#[test]
fn a_rollout_takes_one_step_at_a_time() {
    let sim = sim();
    let rollout = Rollout {
        replicas_per_step: Some(2),
        ..Rollout::default()
    };
    let world = sim.world(WorldOptions {
        deployments: Some(rollout),
        ..WorldOptions::default()
    });
    deploy(&sim, 5);
    let mut seen = Vec::new();
    while world.step() > 0 {
        seen.push(status(&sim)["replicas"].as_i64().expect("a number"));
    }
    assert_eq!(seen, [2, 4, 5]);
    assert_eq!(
        (
            &status(&sim)["readyReplicas"],
            &status(&sim)["observedGeneration"]
        ),
        (&json!(5), &json!(1))
    );
    assert_eq!(status(&sim)["conditions"][0]["status"], "True");
    sim.patch(
        "apps/v1",
        "Deployment",
        "",
        "web",
        &json!({"spec": {"replicas": 0}}),
    )
    .expect("patched");
    assert_eq!(world.settle(), 3);
    assert_eq!(
        (
            &status(&sim)["replicas"],
            &status(&sim)["observedGeneration"]
        ),
        (&json!(0), &json!(2))
    );
}

#[test]
fn a_settled_world_writes_nothing() {
    let sim = sim();
    let world = sim.world(WorldOptions::default());
    deploy(&sim, 3);
    assert!(world.settle() > 0);
    let version = sim.version();
    assert_eq!((world.settle(), sim.version()), (0, version));
}

#[test]
fn a_paused_deployment_observes_and_does_not_move() {
    let sim = sim();
    let world = sim.world(WorldOptions::default());
    deploy(&sim, 1);
    world.settle();
    sim.patch(
        "apps/v1",
        "Deployment",
        "",
        "web",
        &json!({"spec": {"replicas": 4, "paused": true}}),
    )
    .expect("patched");
    world.settle();
    assert_eq!(
        (
            &status(&sim)["replicas"],
            &status(&sim)["observedGeneration"]
        ),
        (&json!(1), &json!(2))
    );
}

#[test]
fn dependents_follow_their_owner() {
    let sim = sim();
    let world = sim.world(WorldOptions::default());
    let owner = sim
        .create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner"}}))
        .expect("created");
    let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]});
    let child = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "child", "ownerReferences": [reference]}});
    sim.create(child).expect("created");
    assert_eq!(world.settle(), 0);
    sim.delete("v1", "ConfigMap", "", "owner").expect("deleted");
    assert_eq!(world.settle(), 1);
    assert_eq!(
        sim.get("v1", "ConfigMap", "", "child").expect("served"),
        None
    );
}

#[tokio::test(start_paused = true)]
async fn a_running_world_follows_what_is_written_at_its_pace() {
    let sim = sim();
    let rollout = Rollout {
        replicas_per_step: Some(1),
        pace: Duration::from_secs(10),
    };
    let world = sim.world(WorldOptions {
        deployments: Some(rollout),
        ..WorldOptions::default()
    });
    let scene = async {
        deploy(&sim, 3);
        for expected in [1, 2, 3] {
            sim.inner
                .options
                .time
                .sleep(Duration::from_secs(if expected == 1 { 1 } else { 10 }))
                .await;
            assert_eq!(status(&sim)["replicas"], expected);
        }
    };
    tokio::select! {
        biased;
        () = scene => {}
        () = world.run() => panic!("the world ended"),
    }
}

#[test]
fn a_world_follows_a_server_that_went_back_in_time() {
    let sim = sim();
    let world = sim.world(WorldOptions::default());
    deploy(&sim, 1);
    let backup = sim.snapshot();
    for replicas in [4, 5, 6] {
        sim.patch(
            "apps/v1",
            "Deployment",
            "",
            "web",
            &json!({"spec": {"replicas": replicas}}),
        )
        .expect("patched");
        world.settle();
    }
    sim.restore(&backup);
    world.settle();
    assert_eq!(status(&sim)["replicas"], 1);
}
