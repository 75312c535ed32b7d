//! What a PodAutoscaler does to its Deployment, judged by what the server recorded.

use std::time::Duration;

use boatswain::Clock;
use boatswain_tests::{
    Crew, Space, World,
    audit::{ScaleWrite, replicas_written, scale_writes},
    autoscaler, eventually, never_within,
};
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, PropagationPolicy};
use podautoscaler::api::reason;
use serde_json::json;

async fn writes(world: &World, space: &Space) -> Vec<ScaleWrite> {
    let writes = scale_writes(&world.requests().await, &space.name);
    assert!(
        writes.iter().all(|w| w.changed),
        "a write that changed nothing: {writes:?}"
    );
    writes
}

/// Waits until the controller has nothing left to do: the status is settled and what it says stays.
async fn settled(space: &Space, name: &str, replicas: i32) {
    space.has_replicas(name, replicas).await;
    space.is_synced(name, replicas).await;
}

pub(crate) async fn a_new_podautoscaler_scales_its_deployment_with_one_write(world: &World) {
    let space = Space::create(&world.client().await, "create").await;
    let crew = Crew::podautoscaler(world, &space).await;
    space.deploy("web", 1).await;
    space.autoscale("web", 3).await;
    settled(&space, "web", 3).await;

    let status = space.says("web", "True", reason::SCALED).await;
    assert!(status.last_scale_time.is_some(), "{status:?}");
    assert_eq!(replicas_written(&writes(world, &space).await, "web"), [3]);
    for kind in ["Deployment", "PodAutoscaler"] {
        eventually("the story is told on both objects", async || {
            let notes = space.notes(kind, "web", "Scaled").await;
            if notes.len() == 1 && notes[0].contains("from 1 to 3") {
                Ok(())
            } else {
                Err(notes)
            }
        })
        .await;
    }
    crew.stop().await;
}

pub(crate) async fn equal_numbers_cause_no_write(world: &World) {
    let space = Space::create(&world.client().await, "equal").await;
    space.deploy("web", 3).await;
    space.autoscale("web", 3).await;
    let crew = Crew::podautoscaler(world, &space).await;
    space.says("web", "True", reason::IN_SYNC).await;
    space.is_settled("web", 3).await;
    crew.stop().await;
    // a restart looks at everything again and has nothing to write, not even a status
    let before = status_writes(world, &space).await;
    let crew = Crew::podautoscaler(world, &space).await;
    eventually("the key ran", async || {
        let runs = crew.metric("controller_reconcile_total", &["success"]);
        if runs >= 1.0 { Ok(()) } else { Err(runs) }
    })
    .await;
    crew.stop().await;
    assert_eq!(status_writes(world, &space).await, before);
    assert_eq!(writes(world, &space).await, []);
}

async fn status_writes(world: &World, space: &Space) -> usize {
    let requests = world.requests().await;
    let of_us = requests
        .iter()
        .filter(|r| r.namespace == space.name && r.resource == "podautoscalers");
    of_us
        .filter(|r| r.subresource == "status" && r.code == 200)
        .count()
}

pub(crate) async fn scaling_up_and_to_zero_follows_the_spec(world: &World) {
    let space = Space::create(&world.client().await, "follow").await;
    space.deploy("web", 1).await;
    space.autoscale("web", 3).await;
    let crew = Crew::podautoscaler(world, &space).await;
    settled(&space, "web", 3).await;
    for replicas in [7, 0, 2] {
        space.ask_for("web", replicas).await;
        settled(&space, "web", replicas).await;
    }
    assert_eq!(
        replicas_written(&writes(world, &space).await, "web"),
        [3, 7, 0, 2]
    );
    crew.stop().await;
}

pub(crate) async fn a_missing_deployment_is_reported_and_scaled_when_it_appears(world: &World) {
    let space = Space::create(&world.client().await, "missing").await;
    let crew = Crew::podautoscaler(world, &space).await;
    space.autoscale("web", 4).await;
    space.says("web", "False", reason::TARGET_NOT_FOUND).await;
    let runs = crew.metric("controller_reconcile_total", &[]);
    never_within("an error loop", Duration::from_secs(1), async || {
        let more = crew.metric("controller_reconcile_total", &[]) - runs;
        (more > 2.0).then_some(more)
    })
    .await;
    assert_eq!(crew.metric("controller_reconcile_total", &["error"]), 0.0);

    space.deploy("web", 1).await;
    settled(&space, "web", 4).await;
    assert_eq!(replicas_written(&writes(world, &space).await, "web"), [4]);
    crew.stop().await;
}

pub(crate) async fn a_recreated_deployment_is_scaled_again(world: &World) {
    let space = Space::create(&world.client().await, "again").await;
    space.deploy("web", 1).await;
    space.autoscale("web", 3).await;
    let crew = Crew::podautoscaler(world, &space).await;
    settled(&space, "web", 3).await;

    let params = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Background),
        ..DeleteParams::default()
    };
    space
        .deployments()
        .delete("web", &params)
        .await
        .expect("deleted");
    space.says("web", "False", reason::TARGET_NOT_FOUND).await;
    space.deploy("web", 1).await;
    settled(&space, "web", 3).await;
    assert_eq!(
        replicas_written(&writes(world, &space).await, "web"),
        [3, 3]
    );
    crew.stop().await;
}

pub(crate) async fn deleting_a_podautoscaler_leaves_the_deployment_as_it_is(world: &World) {
    let space = Space::create(&world.client().await, "delete").await;
    space.deploy("web", 1).await;
    space.autoscale("web", 3).await;
    let crew = Crew::podautoscaler(world, &space).await;
    settled(&space, "web", 3).await;
    space
        .autoscalers()
        .delete("web", &DeleteParams::default())
        .await
        .expect("deleted");
    // it is heard of on a stream of its own: until then a change of the Deployment is corrected, and rightly
    eventually("the news of the deletion", async || {
        let mut informers = crew.observer().informers().into_iter();
        let informer = informers.find(|one| one.resource.starts_with("podautoscalers"));
        match informer.map(|informer| informer.objects) {
            Some(0) => Ok(()),
            known => Err(known),
        }
    })
    .await;
    // a change of the Deployment is nobody's business any more
    space.set_replicas("web", 6, "someone").await;
    never_within(
        "a write after the end of the PodAutoscaler",
        Duration::from_secs(1),
        async || {
            let replicas = space.replicas("web").await;
            (replicas != Some(6)).then_some(replicas)
        },
    )
    .await;
    let deployment: Deployment = space.deployments().get("web").await.expect("still there");
    assert_eq!(deployment.metadata.owner_references, None);
    assert_eq!(replicas_written(&writes(world, &space).await, "web"), [3]);
    crew.stop().await;
}

pub(crate) async fn a_foreign_change_is_corrected(world: &World) {
    let space = Space::create(&world.client().await, "foreign").await;
    space.deploy("web", 1).await;
    space.autoscale("web", 3).await;
    let crew = Crew::podautoscaler(world, &space).await;
    settled(&space, "web", 3).await;
    space.set_replicas("web", 9, "someone").await;
    eventually("the correction", async || {
        let writes = writes(world, &space).await;
        if replicas_written(&writes, "web") == [3, 3] {
            Ok(())
        } else {
            Err(writes)
        }
    })
    .await;
    settled(&space, "web", 3).await;
    crew.stop().await;
}

pub(crate) async fn a_rival_that_keeps_reversing_is_named_and_left_alone(world: &World) {
    let space = Space::create(&world.client().await, "rival").await;
    space.deploy("web", 1).await;
    space.autoscale("web", 3).await;
    let crew = Crew::podautoscaler(world, &space).await;
    settled(&space, "web", 3).await;
    for _ in 0..4 {
        space.has_replicas("web", 3).await;
        space.set_replicas("web", 5, "rival-hpa").await;
    }
    let status = space.says("web", "False", reason::CONTENDED).await;
    assert!(
        status
            .conditions
            .iter()
            .any(|c| c.message.contains("rival-hpa")),
        "{status:?}"
    );
    // it has stepped back: the rival's number stays, whatever else changes on the Deployment
    let patch = Patch::Merge(json!({ "metadata": { "annotations": { "poke": "1" } } }));
    space
        .deployments()
        .patch("web", &PatchParams::default(), &patch)
        .await
        .expect("patched");
    never_within("oscillation", Duration::from_secs(2), async || {
        let replicas = space.replicas("web").await;
        (replicas != Some(5)).then_some(replicas)
    })
    .await;
    assert_eq!(
        replicas_written(&writes(world, &space).await, "web"),
        [3, 3, 3, 3]
    );
    for kind in ["Deployment", "PodAutoscaler"] {
        eventually("the rival is named", async || {
            let notes = space.notes(kind, "web", "Contended").await;
            if notes.len() == 1 && notes[0].contains("rival-hpa") {
                Ok(())
            } else {
                Err(notes)
            }
        })
        .await;
    }
    // a new decision of the owner gets a new try
    space.ask_for("web", 2).await;
    settled(&space, "web", 2).await;
    crew.stop().await;
}

pub(crate) async fn a_storm_of_conflicts_costs_no_extra_accepted_write(world: &World) {
    let space = Space::create(&world.client().await, "storm").await;
    space.deploy("web", 1).await;
    space.autoscale("web", 2).await;
    let crew = Crew::podautoscaler(world, &space).await;
    settled(&space, "web", 2).await;
    // a second writer moves the Deployment's version as fast as it can, for as long as the replicas change
    let storm = tokio::spawn({
        let space = space.clone();
        async move {
            for round in 0u64.. {
                let patch = Patch::Merge(
                    json!({ "metadata": { "annotations": { "round": round.to_string() } } }),
                );
                space
                    .deployments()
                    .patch("web", &PatchParams::default(), &patch)
                    .await
                    .expect("patched");
                Clock::system().sleep(Duration::from_millis(2)).await;
            }
        }
    });
    for replicas in 3..9 {
        space.ask_for("web", replicas).await;
        settled(&space, "web", replicas).await;
    }
    storm.abort();
    assert_eq!(
        replicas_written(&writes(world, &space).await, "web"),
        [2, 3, 4, 5, 6, 7, 8]
    );
    assert_eq!(
        crew.metric("controller_reconcile_total", &["\"error\""]),
        0.0,
        "a conflict is no error"
    );
    crew.stop().await;
}

pub(crate) async fn invalid_specs_are_refused_by_the_schema(world: &World) {
    let space = Space::create(&world.client().await, "invalid").await;
    for (target, replicas) in [
        ("web", -1),
        ("web", 10_001),
        ("Web", 1),
        ("", 1),
        ("web.", 1),
        (&"w".repeat(254), 1),
    ] {
        let pa = autoscaler("bad", target, replicas);
        let answer = space
            .autoscalers()
            .create(&PostParams::default(), &pa)
            .await;
        let refused = matches!(&answer, Err(kube::Error::Api(status)) if status.code == 422);
        assert!(refused, "{target:?} {replicas}: {answer:?}");
    }
    for (target, replicas) in [("web", 0), ("web.v1-2", 10_000)] {
        let pa = autoscaler(&format!("good-{replicas}"), target, replicas);
        space
            .autoscalers()
            .create(&PostParams::default(), &pa)
            .await
            .expect("accepted");
    }
}

pub(crate) async fn of_two_podautoscalers_for_one_deployment_only_the_older_scales(world: &World) {
    let space = Space::create(&world.client().await, "twins").await;
    let crew = Crew::podautoscaler(world, &space).await;
    space.deploy("web", 1).await;
    space.autoscale("web", 3).await;
    settled(&space, "web", 3).await;
    let younger = autoscaler("web-too", "web", 5);
    space
        .autoscalers()
        .create(&PostParams::default(), &younger)
        .await
        .expect("a PodAutoscaler");
    let status = space.says("web-too", "False", reason::CONTENDED).await;
    let told = status
        .conditions
        .iter()
        .any(|c| c.message.contains("PodAutoscaler web is older"));
    assert!(told, "{status:?}");
    // whatever happens to the Deployment, only one of them acts
    space.set_replicas("web", 9, "someone").await;
    settled(&space, "web", 3).await;
    assert_eq!(
        replicas_written(&writes(world, &space).await, "web"),
        [3, 3]
    );
    crew.stop().await;
}
