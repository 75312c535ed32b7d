//! Several processes of one controller: as few of them work as one.

use std::time::Duration;

use boatswain::{LeaderOptions, LeaseTerms, Options};
use boatswain_tests::{
    Crew, Space, World,
    audit::{replicas_written, scale_writes},
    eventually,
};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;

async fn replica(world: &World, space: &Space) -> Crew {
    let options = Options {
        leader: Some(LeaderOptions {
            namespace: Some(space.name.clone()),
            terms: LeaseTerms {
                duration: Duration::from_secs(6),
                deadline: Duration::from_secs(4),
                retry: Duration::from_secs(1),
            },
            ..LeaderOptions::default()
        }),
        ..Options::default()
    };
    let controllers = vec![podautoscaler::controller()];
    let crew = Crew::start_with(options, world.kubeconfig(), Some(space), controllers).await;
    crew.ready().await;
    crew
}

async fn leads(crew: &Crew) {
    eventually("the replica leads", async || {
        let lease = crew.observer().lease();
        if lease.as_ref().is_some_and(|lease| lease.leads) {
            Ok(())
        } else {
            Err(lease)
        }
    })
    .await;
}

pub(crate) async fn of_two_replicas_one_works_and_the_other_follows(world: &World) {
    let space = Space::create(&world.client().await, "replicas").await;
    let first = replica(world, &space).await;
    leads(&first).await;
    let second = replica(world, &space).await;
    space.deploy("web", 1).await;
    space.autoscale("web", 3).await;
    space.has_replicas("web", 3).await;
    space.is_synced("web", 3).await;
    assert_eq!(first.metric("leader_election_master_status", &[]), 1.0);
    assert_eq!(second.metric("leader_election_master_status", &[]), 0.0);
    assert_eq!(
        second.metric("controller_runtime_reconcile_total", &[]),
        0.0,
        "a standby worked"
    );

    // the lease goes last, and at once
    first.stop().await;
    leads(&second).await;
    space.ask_for("web", 5).await;
    space.has_replicas("web", 5).await;
    space.is_synced("web", 5).await;
    let writes = scale_writes(&world.requests().await, &space.name);
    assert_eq!(
        replicas_written(&writes, "web"),
        [3, 5],
        "one write for each wish, whoever leads"
    );
    second.stop().await;
    let leases = Api::<Lease>::namespaced(space.client().clone(), &space.name);
    let lease = leases
        .get("podautoscaler-leader")
        .await
        .expect("there is one");
    let spec = lease.spec.expect("a spec");
    assert_eq!(spec.holder_identity.as_deref(), Some(""), "given back");
    assert_eq!(spec.lease_transitions, Some(1));
}
