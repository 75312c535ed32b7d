//! Two controllers that share a cache, and quarrel.

use std::time::Duration;

use boatswain::{Manager, Options};
use boatswain_tests::{autoscaler, deployment, install};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Event};
use kube::{
    Api, ResourceExt as _,
    api::{ListParams, PostParams},
};
use podautoscaler::api::PodAutoscaler;

use super::{Stage, end};
use crate::scenarios::fixing::fleet;

/// A Deployment that two want to have different numbers of replicas.
async fn claimed_twice(stage: &Stage, annotation: &str, replicas: i32) {
    install::<PodAutoscaler>(&stage.client).await;
    let post = PostParams::default();
    let mut web = deployment("web", 1);
    web.annotations_mut()
        .insert(replica_fixer::ANNOTATION.into(), annotation.into());
    let deployments = Api::<Deployment>::namespaced(stage.client.clone(), "default");
    deployments.create(&post, &web).await.expect("created");
    let pa = autoscaler("web", "web", replicas);
    let autoscalers = Api::<PodAutoscaler>::namespaced(stage.client.clone(), "default");
    autoscalers.create(&post, &pa).await.expect("created");
}

async fn replicas(stage: &Stage) -> Option<i32> {
    let deployments = Api::<Deployment>::namespaced(stage.client.clone(), "default");
    let web = deployments.get("web").await.expect("there");
    web.spec.replicas
}

/// How many writes of `scale` were accepted.
fn scaled(stage: &Stage) -> usize {
    let audit = stage.sim.audit().into_iter();
    let scaled = audit.filter(|entry| entry.request.subresource == "scale" && entry.code == 200);
    scaled.count()
}

#[test]
fn two_controllers_read_deployments_from_one_watch() {
    Stage::play(91, |stage| async move {
        claimed_twice(&stage, "3", 3).await;
        let manager = fleet(Manager::new(Options::default()));
        let running = stage.manage(manager).await;
        stage.clock.sleep(Duration::from_secs(60)).await;
        assert_eq!(replicas(&stage).await, Some(3));
        assert_eq!(scaled(&stage), 1, "whoever came first");
        let audit = stage.sim.audit();
        let asked = |verb: &str| {
            let deployments = audit
                .iter()
                .filter(|entry| entry.request.resource == "deployments");
            let asked = deployments.filter(|entry| entry.request.verb == verb);
            asked.count()
        };
        assert_eq!(asked("watch"), 1, "one on the wire");
        assert!(asked("list") <= 1);
        let informers = running.observer().informers();
        let of_deployments = informers
            .iter()
            .filter(|i| i.resource == "deployments.apps");
        assert_eq!(of_deployments.count(), 1);
        end(running).await;
    });
}

#[test]
fn a_quarrel_of_two_controllers_is_said_by_both_and_costs_a_bounded_number_of_writes() {
    for seed in 0..4 {
        Stage::play(seed, |stage| async move {
            claimed_twice(&stage, "5", 3).await;
            let manager = fleet(Manager::new(Options::default()));
            let running = stage.manage(manager).await;
            stage.clock.sleep(Duration::from_secs(30)).await;
            let stands = replicas(&stage).await;
            assert!(scaled(&stage) <= 8, "{} writes", scaled(&stage));
            let autoscalers = Api::<PodAutoscaler>::namespaced(stage.client.clone(), "default");
            let pa = autoscalers.get("web").await.expect("there");
            let conditions = pa.status.unwrap_or_default().conditions;
            assert_eq!(conditions[0].reason, "Contended", "{conditions:?}");
            assert!(
                conditions[0]
                    .message
                    .contains("replica-fixer keeps setting")
            );
            let events = Api::<Event>::namespaced(stage.client.clone(), "default");
            let events = events.list(&ListParams::default()).await.expect("events");
            let told = |who: &str| {
                let told = events.items.iter().filter(|event| {
                    event.involved_object.kind.as_deref() == Some("Deployment")
                        && event.reason.as_deref() == Some("Contended")
                        && event.message.as_ref().is_some_and(|m| m.starts_with(who))
                });
                told.count()
            };
            assert_eq!([told("PodAutoscaler"), told("annotation")], [1, 1]);

            // a try after each step back, which is twice as long each time
            stage.clock.sleep(Duration::from_secs(3600)).await;
            assert_eq!(replicas(&stage).await, stands);
            assert!(scaled(&stage) <= 8 + 2 * 6, "{} writes", scaled(&stage));
            let pa = autoscalers.get("web").await.expect("there");
            let conditions = pa.status.unwrap_or_default().conditions;
            assert_eq!(conditions[0].reason, "Contended", "{conditions:?}");
            end(running).await;
        });
    }
}
