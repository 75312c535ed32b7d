//! Replicas as processes that share the work: each of two controllers has a lease of its own.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use boatswain::Clock;
use boatswain_tests::{
    Load, Program, Space, World,
    audit::Request,
    eventually,
    judge::{Reigns, trespasses_among, work},
};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use replica_fixer::ANNOTATION;
use serde_json::json;
use tokio::task::JoinHandle;

/// A controller of the fleet.
struct Member {
    name: &'static str,
    lease: &'static str,
    /// What the Deployments are called that it alone works on.
    prefix: &'static str,
}

const SCALER: Member = Member {
    name: "podautoscaler",
    lease: "crew-podautoscaler",
    prefix: "load-",
};
const FIXER: Member = Member {
    name: "replica-fixer",
    lease: "crew-replica-fixer",
    prefix: "fixed-",
};

impl Member {
    /// Whether it is what this controller writes, or tells.
    fn is_behind(&self, request: &Request) -> bool {
        let answer = request.answer.as_ref();
        let teller = answer.and_then(|answer| answer.get("reportingController"));
        match request.resource.as_str() {
            "events" => teller.is_some_and(|teller| teller == self.name),
            _ => request.name.starts_with(self.prefix),
        }
    }

    async fn reigns(&self, world: &World, space: &Space) -> Reigns {
        Reigns::of(&world.requests().await, &space.name, self.lease)
    }

    /// Waits until a replica other than `former` leads it and has worked since: which, and from which version on it leads.
    async fn works(&self, world: &World, space: &Space, former: &str) -> (String, u64) {
        eventually(&format!("{} works", self.name), async || {
            let requests = world.requests().await;
            let reigns = Reigns::of(&requests, &space.name, self.lease).list();
            let Some((since, leader)) = reigns.last().cloned() else {
                return Err("nobody has led it yet".to_owned());
            };
            let wrote = work(&requests, &space.name).any(|r| {
                self.is_behind(r) && r.user == leader && r.version().is_some_and(|v| v > since)
            });
            match wrote && leader != former {
                true => Ok((leader, since)),
                false => Err(format!("{reigns:?}")),
            }
        })
        .await
    }

    /// Waits until it has written after `version`.
    async fn has_worked_since(&self, world: &World, space: &Space, version: u64) {
        eventually(&format!("{} goes on", self.name), async || {
            let requests = world.requests().await;
            let last = work(&requests, &space.name)
                .filter(|r| self.is_behind(r))
                .filter_map(Request::version)
                .max();
            if last.is_some_and(|last| last > version) {
                Ok(())
            } else {
                Err(last)
            }
        })
        .await;
    }

    async fn assert_nobody_wrote_while_another_led(
        &self,
        world: &World,
        space: &Space,
        is_meant: fn(&Request) -> bool,
    ) {
        let requests = world.requests().await;
        let is_under = |request: &Request| is_meant(request) && self.is_behind(request);
        let found = trespasses_among(&requests, &space.name, self.lease, is_under);
        assert!(found.is_empty(), "{found:#?}");
    }
}

/// Annotations that keep changing.
struct Annotator {
    space: Space,
    ending: Arc<AtomicBool>,
    task: JoinHandle<usize>,
}

const FIXED: usize = 4;

fn fixed(index: usize) -> String {
    format!("{}{index}", FIXER.prefix)
}

async fn annotate(space: &Space, index: usize, replicas: usize) {
    let (name, value) = (fixed(index), replicas.to_string());
    let patch = json!({ "metadata": { "annotations": { ANNOTATION: value } } });
    eventually("the annotation is written", async || {
        let patched = space
            .deployments()
            .patch(&name, &PatchParams::default(), &Patch::Merge(&patch))
            .await;
        patched.map_err(|error| error.to_string())
    })
    .await;
}

impl Annotator {
    async fn begin(space: &Space) -> Self {
        for index in 0..FIXED {
            space.deploy(&fixed(index), 0).await;
        }
        let ending = Arc::<AtomicBool>::default();
        let (changed, is_over) = (space.clone(), ending.clone());
        let task = tokio::spawn(async move {
            let mut round = 0;
            while !is_over.load(SeqCst) {
                round += 1;
                for index in 0..FIXED {
                    annotate(&changed, index, round % 3).await;
                    Clock::system().sleep(Duration::from_millis(50)).await;
                }
            }
            round
        });
        Self {
            space: space.clone(),
            ending,
            task,
        }
    }

    /// Waits until every Deployment asks for what was written last.
    async fn end(self) {
        self.ending.store(true, SeqCst);
        let rounds = self.task.await.expect("the annotations were written");
        for index in 0..FIXED {
            let last = i32::try_from(rounds % 3).expect("small");
            self.space.has_replicas(&fixed(index), last).await;
        }
    }
}

pub(crate) async fn of_two_controllers_with_a_lease_each_one_goes_on_whatever_happens_to_the_other(
    world: &World,
) {
    let space = Space::create(&world.client().await, "sharing").await;
    let program = Program::new(env!("CARGO_BIN_EXE_fleet"), world, &space)
        .without_command()
        .with(&["--lease-per-controller", "--lease-name", "crew"]);
    let mut replicas: Vec<_> = (1..=2).map(|number| program.start(number)).collect();
    let load = Load::begin(&space, 6, Duration::from_millis(50)).await;
    let annotator = Annotator::begin(&space).await;
    let (dead, _) = SCALER.works(world, &space, "").await;
    let (fixing, begun) = FIXER.works(world, &space, "").await;

    let place = replicas.iter().position(|replica| replica.user() == dead);
    let place = place.expect("one of them");
    replicas.remove(place).kill();
    let (survivor, since) = SCALER.works(world, &space, &dead).await;
    if fixing == survivor {
        FIXER.has_worked_since(world, &space, since).await;
        let reigns = FIXER.reigns(world, &space).await.list();
        let last = reigns.last();
        assert_eq!(
            last,
            Some(&(begun, fixing)),
            "it goes on as it was: {reigns:?}"
        );
    } else {
        FIXER.works(world, &space, &dead).await;
    }
    replicas.push(program.start(place + 1));
    replicas[1].says(&["standing by", SCALER.lease], 0).await;

    // what is on its way when a lease is stolen by hand still arrives: there is nothing
    annotator.end().await;
    let (fixing, _) = FIXER.works(world, &space, "").await;
    let theft = json!({ "spec": { "holderIdentity": "thief", "leaseDurationSeconds": 3 } });
    let leases = Api::<Lease>::namespaced(space.client().clone(), &space.name);
    let (params, theft) = (PatchParams::default(), Patch::Merge(&theft));
    leases
        .patch(FIXER.lease, &params, &theft)
        .await
        .expect("stolen");
    let robbed = replicas.iter().find(|replica| replica.user() == fixing);
    let heard = ["leading no more", FIXER.lease, "thief"];
    robbed.expect("one of them").says(&heard, 0).await;
    let reigns = FIXER.reigns(world, &space).await.list();
    let theft = reigns.iter().find(|(_, holder)| holder == "thief");
    let (stolen, _) = theft.expect("it was stolen");
    SCALER.has_worked_since(world, &space, *stolen).await;
    // the thief never renews
    for index in 0..FIXED {
        annotate(&space, index, 5).await;
        space.has_replicas(&fixed(index), 5).await;
    }
    load.end().await;
    let is_all = |_: &Request| true;
    SCALER
        .assert_nobody_wrote_while_another_led(world, &space, is_all)
        .await;
    // what was told before the theft was heard may still be written down
    let is_no_event = |request: &Request| request.resource != "events";
    FIXER
        .assert_nobody_wrote_while_another_led(world, &space, is_no_event)
        .await;
}
