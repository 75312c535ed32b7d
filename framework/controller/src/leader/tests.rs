//! Replicas on one simulated server, in virtual time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use boatswain_apisim::ApiSim;
use boatswain_supervision::{
    ChildSpec, Children, Clock, Link, Mailbox, Strategy, SupervisorSpec, Tree, TreeOptions, testing,
};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};

use super::*;
use crate::{
    manager::Leader,
    recorder::{Accounts, Recorder},
};

const SECOND: Duration = Duration::from_secs(1);

struct Stage {
    sim: ApiSim,
    options: TreeOptions,
}

/// One replica: a tree with nothing but the elector.
struct Replica {
    leadership: Leadership,
    tree: Tree,
    busy: Arc<AtomicBool>,
}

impl Stage {
    fn clock(&self) -> &Clock {
        &self.options.clock
    }

    fn client(&self) -> kube::Client {
        kube::Client::new(self.sim.service(), "default")
    }

    fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.client(), "kube-system")
    }

    async fn replica(&self, identity: &str) -> Replica {
        self.replica_in("kube-system", identity).await
    }

    async fn replica_in(&self, namespace: &str, identity: &str) -> Replica {
        let lease = LeaseOptions {
            name: "crew".into(),
            namespace: namespace.into(),
            identity: identity.into(),
            terms: LeaseTerms::default(),
        };
        let leadership = Leadership::new(lease, Load::default());
        let busy = Arc::new(AtomicBool::new(false));
        let (led, client, works) = (leadership.clone(), self.client(), busy.clone());
        let root = SupervisorSpec::new("root", Strategy::OneForOne).children(
            move |root: &mut Children| {
                let leader = Leader {
                    leadership: led.clone(),
                    client: client.clone(),
                };
                let works = works.clone();
                let make = move |link: &Link| {
                    let works = works.clone();
                    let busy = Arc::new(move || works.load(Relaxed));
                    let catch_up: CatchUp = Arc::new(|| Box::pin(std::future::ready(())));
                    let (clock, entropy) = (link.clock().clone(), link.entropy().clone());
                    let recorder = Recorder::new(clock, entropy, &Accounts::default());
                    LeaderActor::new(leader.clone(), recorder, catch_up, busy, link)
                };
                root.add(ChildSpec::actor("lease", Mailbox::new(), make));
            },
        );
        let tree = Tree::start(root, self.options.clone())
            .await
            .expect("started");
        Replica {
            leadership,
            tree,
            busy,
        }
    }

    /// Waits for a condition; how long that took.
    async fn until(&self, within: Duration, condition: impl Fn() -> bool) -> Duration {
        let begun: Instant = self.clock().now();
        while !condition() {
            let waited = self.clock().now() - begun;
            assert!(waited <= within, "not within {within:?}");
            self.clock().sleep(SECOND / 10).await;
        }
        self.clock().now() - begun
    }
}

impl Replica {
    fn leads(&self) -> bool {
        self.leadership.status().leads
    }

    fn may_write(&self, clock: &Clock) -> bool {
        self.leadership.fence().check(clock.boot()).is_ok()
    }

    async fn stop(self) {
        self.tree.stop(60 * SECOND).await.expect("stopped");
    }
}

fn play(body: impl AsyncFn(Stage)) {
    for seed in 0..5 {
        println!("seed {seed}");
        testing::run(seed, async |options| {
            let sim = ApiSim::new(boatswain_apisim::Options {
                seed,
                ..boatswain_apisim::Options::default()
            });
            body(Stage { sim, options }).await;
        });
    }
}

#[test]
fn g10_one_leads_and_who_gives_the_lease_back_is_followed_at_once() {
    play(async |stage: Stage| {
        let first = stage.replica("first").await;
        stage.until(SECOND, || first.leads()).await;
        let second = stage.replica("second").await;
        stage.clock().sleep(60 * SECOND).await;
        assert!(first.leads() && !second.leads());
        assert_eq!(second.leadership.status().holder.as_deref(), Some("first"));
        assert!(!second.may_write(stage.clock()));

        first.stop().await;
        stage.until(5 * SECOND, || second.leads()).await;
        let status = second.leadership.status();
        assert_eq!((status.term, status.transitions), (1, 1));
        second.stop().await;
        let lease = stage.leases().get("crew").await.expect("there");
        assert_eq!(lease.spec.unwrap().holder_identity.as_deref(), Some(""));
    });
}

#[test]
fn g10_a_leader_that_dies_is_followed_within_the_duration_and_a_retry_period() {
    play(async |stage: Stage| {
        let first = stage.replica("first").await;
        stage.until(SECOND, || first.leads()).await;
        let second = stage.replica("second").await;
        stage.clock().sleep(30 * SECOND).await;
        let fence = first.leadership.fence();
        drop(first.tree);
        let terms = LeaseTerms::default();
        let within = terms.duration + terms.retry;
        stage.until(within, || second.leads()).await;
        assert!(fence.check(stage.clock().boot()).is_err(), "both may write");
        second.stop().await;
    });
}

#[test]
fn g10_a_server_that_is_away_demotes_and_its_return_promotes_again() {
    play(async |stage: Stage| {
        let only = stage.replica("only").await;
        stage.until(SECOND, || only.leads()).await;
        stage.sim.faults().unreachable(true);
        let took = stage.until(11 * SECOND, || !only.leads()).await;
        assert!(took > 6 * SECOND, "{took:?}");
        assert!(!only.may_write(stage.clock()));
        stage.clock().sleep(3600 * SECOND).await;
        assert!(only.leadership.status().error.is_some());
        stage.sim.faults().unreachable(false);
        stage.until(6 * SECOND, || only.leads()).await;
        let status = only.leadership.status();
        assert_eq!((status.term, status.transitions), (2, 0), "nobody else led");
        assert_eq!(status.error, None);
        only.stop().await;
    });
}

#[test]
fn g8_crashes_of_the_elector_end_no_term() {
    play(async |stage: Stage| {
        let only = stage.replica("only").await;
        stage.until(SECOND, || only.leads()).await;
        for _ in 0..5 {
            assert!(only.tree.observer().kill("root/lease"));
            stage.clock().sleep(30 * SECOND).await;
        }
        assert!(only.may_write(stage.clock()));
        assert_eq!(only.leadership.status().term, 1);
        only.stop().await;
    });
}

#[test]
fn g10_a_lease_stolen_by_hand_demotes_within_a_retry_period() {
    play(async |stage: Stage| {
        let only = stage.replica("only").await;
        stage.until(SECOND, || only.leads()).await;
        let theft = serde_json::json!({ "spec": { "holderIdentity": "thief", "leaseDurationSeconds": 30 } });
        let patch = Patch::Merge(theft);
        stage
            .leases()
            .patch("crew", &PatchParams::default(), &patch)
            .await
            .expect("stolen");
        stage.until(3 * SECOND, || !only.leads()).await;
        // the thief never renews
        let took = stage.until(40 * SECOND, || only.leads()).await;
        assert!(took > 27 * SECOND, "{took:?}");
        // and one that is deleted is made anew without a break
        stage
            .leases()
            .delete("crew", &DeleteParams::default())
            .await
            .expect("deleted");
        stage.clock().sleep(10 * SECOND).await;
        assert_eq!(only.leadership.status().term, 2);
        assert!(only.leads());
        only.stop().await;
    });
}

#[test]
fn g10_a_lease_is_left_to_run_out_while_work_begun_under_it_still_runs() {
    play(async |stage: Stage| {
        let only = stage.replica("only").await;
        stage.until(SECOND, || only.leads()).await;
        only.busy.store(true, Relaxed);
        only.stop().await;
        let lease = stage.leases().get("crew").await.expect("there");
        assert_eq!(lease.spec.unwrap().holder_identity.as_deref(), Some("only"));
    });
}

#[test]
fn a_namespace_that_does_not_exist_is_no_hot_loop() {
    play(async |stage: Stage| {
        let mark = stage.sim.audit_mark();
        let lost = stage.replica_in("nowhere", "lost").await;
        stage.clock().sleep(60 * SECOND).await;
        let asked = stage.sim.audit_since(mark).len();
        assert!(lost.leadership.status().error.is_some());
        lost.stop().await;
        assert!((20..70).contains(&asked), "{asked} requests in a minute");
    });
}
