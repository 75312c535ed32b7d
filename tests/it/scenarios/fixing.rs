//! What annotations do to Deployments, alone and beside PodAutoscalers.

use std::time::Duration;

use boatswain_tests::{
    Crew, Space, World,
    audit::{replicas_written, scale_writes},
    eventually, never_within,
};
use kube::api::{Patch, PatchParams};
use podautoscaler::api::reason;
use replica_fixer::ANNOTATION;
use serde_json::{Value, json};

// the lesson itself is what is tested
#[path = "../../../examples/fleet.rs"]
#[allow(dead_code, unreachable_pub, reason = "its main is not called here")]
mod lesson;
pub(crate) use lesson::fleet;

/// Gives the Deployment this annotation, or takes it away.
pub(super) async fn annotate(space: &Space, name: &str, value: Value) {
    let patch = json!({ "metadata": { "annotations": { ANNOTATION: value } } });
    change(space, name, patch).await;
}

async fn change(space: &Space, name: &str, patch: Value) {
    space
        .deployments()
        .patch(name, &PatchParams::default(), &Patch::Merge(patch))
        .await
        .expect("patched");
}

async fn written(world: &World, space: &Space) -> Vec<i64> {
    let writes = scale_writes(&world.requests().await, &space.name);
    assert!(
        writes.iter().all(|w| w.changed),
        "a write that changed nothing: {writes:?}"
    );
    replicas_written(&writes, "web")
}

async fn fixer(world: &World, space: &Space) -> Crew {
    let controllers = vec![replica_fixer::controller()];
    let crew = Crew::start(world.kubeconfig(), Some(space), controllers).await;
    crew.ready().await;
    crew
}

/// Waits until an Event on the Deployment says all of `words`, and that there is only one for this reason.
async fn told(space: &Space, reason: &str, words: &[&str]) {
    eventually("the Deployment's Events tell of it", async || {
        let notes = space.notes("Deployment", "web", reason).await;
        match notes.as_slice() {
            [note] if words.iter().all(|word| note.contains(word)) => Ok(()),
            _ => Err(notes),
        }
    })
    .await;
}

pub(crate) async fn an_annotation_is_followed_and_left_when_it_goes(world: &World) {
    let space = Space::create(&world.client().await, "fix").await;
    space.deploy("web", 1).await;
    space.deploy("other", 1).await;
    let crew = fixer(world, &space).await;
    annotate(&space, "web", json!("3")).await;
    space.has_replicas("web", 3).await;
    told(&space, "Scaled", &["from 1 to 3", ANNOTATION]).await;
    space.set_replicas("web", 9, "someone").await;
    space.has_replicas("web", 3).await;
    annotate(&space, "web", json!("0")).await;
    space.has_replicas("web", 0).await;

    annotate(&space, "web", Value::Null).await;
    space.set_replicas("web", 6, "someone").await;
    never_within(
        "a write without an annotation",
        Duration::from_secs(1),
        async || {
            let replicas = [space.replicas("web").await, space.replicas("other").await];
            (replicas != [Some(6), Some(1)]).then_some(replicas)
        },
    )
    .await;
    assert_eq!(written(world, &space).await, [3, 3, 0]);
    crew.stop().await;
}

pub(crate) async fn a_malformed_annotation_is_left_alone_and_told_once(world: &World) {
    let space = Space::create(&world.client().await, "malformed").await;
    space.deploy("web", 2).await;
    let crew = fixer(world, &space).await;
    annotate(&space, "web", json!("three")).await;
    told(&space, "MalformedReplicas", &["three", "0 to 10000"]).await;
    // it is looked at again, and nothing new is to be said
    let runs = crew.metric("controller_reconcile_total", &["success"]);
    let poke = json!({ "metadata": { "annotations": { "poke": "1" } } });
    change(&space, "web", poke).await;
    eventually("it was looked at again", async || {
        let now = crew.metric("controller_reconcile_total", &["success"]);
        if now > runs { Ok(()) } else { Err(now) }
    })
    .await;
    assert_eq!(written(world, &space).await, [0i64; 0]);
    annotate(&space, "web", json!("4")).await;
    space.has_replicas("web", 4).await;
    assert_eq!(
        crew.metric("controller_reconcile_total", &["\"error\""]),
        0.0
    );
    crew.stop().await;
    told(&space, "MalformedReplicas", &["three"]).await;
}

pub(crate) async fn two_controllers_that_disagree_both_say_so_and_one_steps_back(world: &World) {
    let space = Space::create(&world.client().await, "fleet").await;
    space.deploy("web", 1).await;
    annotate(&space, "web", json!("5")).await;
    space.autoscale("web", 3).await;
    let crew = Crew::of(world.kubeconfig(), Some(&space), fleet).await;
    crew.ready().await;

    let status = space.says("web", "False", reason::CONTENDED).await;
    let named = |words: &str| status.conditions.iter().any(|c| c.message.contains(words));
    // servers before 1.22 do not track who writes `scale`
    let rival = match world.tracks_scale_writers() {
        true => "replica-fixer keeps setting",
        false => "someone whose writes carry no field manager keeps setting",
    };
    assert!(named(rival), "{status:?}");
    eventually("both tell of it on the Deployment", async || {
        let notes = space.notes("Deployment", "web", "Contended").await;
        let by = |who: &str| notes.iter().filter(|note| note.starts_with(who)).count();
        if (by("PodAutoscaler"), by("annotation")) == (1, 1) {
            Ok(())
        } else {
            Err(notes)
        }
    })
    .await;
    // it is decided, and stays so
    let replicas = space.replicas("web").await;
    let before = written(world, &space).await.len();
    assert!(before <= 10, "one or two tries besides, at most: {before}");
    never_within("oscillation", Duration::from_secs(2), async || {
        let now = space.replicas("web").await;
        (now != replicas).then_some(now)
    })
    .await;
    assert!(written(world, &space).await.len() <= before + 2);
    crew.stop().await;
}
