//! What controllers that come and go leave behind, in a process of their own: nothing.

#![allow(clippy::expect_used, reason = "a test that cannot begin has failed")]

use std::{convert::Infallible, sync::Arc, time::Duration};

use boatswain::{
    Clock, Context, Controller, Manager, Observer, Options, Outcome, Reconciler, Runnable, Running,
    testing::assert_clean,
};
use boatswain_apisim::ApiSim;
use boatswain_supervision::testing;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};

/// Counts nothing, writes nothing.
struct Idler;

impl Reconciler<ConfigMap> for Idler {
    type Error = Infallible;

    async fn reconcile(&self, _: Arc<ConfigMap>, _: &Context) -> Result<Outcome, Infallible> {
        Ok(Outcome::Done)
    }
}

impl Reconciler<Secret> for Idler {
    type Error = Infallible;

    async fn reconcile(&self, _: Arc<Secret>, _: &Context) -> Result<Outcome, Infallible> {
        Ok(Outcome::Done)
    }
}

/// One that reads something nobody else reads.
fn passing() -> Runnable {
    Controller::<ConfigMap>::named("passing")
        .watches::<Secret>()
        .mapped_by(async |_, _| Ok::<_, Infallible>(Vec::new()))
        .reconciler(|_| Idler)
}

/// What there is: nodes of the tree, tasks, series, informers, and the memory that is in use.
#[derive(Debug)]
struct Left {
    nodes: usize,
    tasks: usize,
    series: usize,
    informers: usize,
    resident: usize,
}

impl Left {
    fn of(observer: &Observer) -> Self {
        Self {
            nodes: observer.snapshot().to_string().lines().count(),
            tasks: tokio::runtime::Handle::current()
                .metrics()
                .num_alive_tasks(),
            series: observer
                .metrics()
                .lines()
                .filter(|line| !line.starts_with('#'))
                .count(),
            informers: observer.informers().len(),
            resident: resident(),
        }
    }
}

/// Bytes of this process that are in memory.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    number.unwrap_or(0) * 1024
}

async fn cycles(running: &Running, clock: &Clock, count: usize) {
    let controllers = running.controllers();
    for _ in 0..count {
        controllers.add(passing()).await.expect("added");
        // it syncs and runs its keys
        clock.sleep(Duration::from_secs(2)).await;
        controllers.remove("passing").await.expect("removed");
        clock.sleep(Duration::from_secs(1)).await;
    }
}

#[test]
fn a_thousand_controllers_that_come_and_go_leave_as_much_as_a_hundred() {
    testing::run(7, |options| async move {
        let server = ApiSim::new(boatswain_apisim::Options {
            audit_limit: 100,
            ..boatswain_apisim::Options::default()
        });
        let client = kube::Client::new(server.service(), "default");
        let first = Controller::<Secret>::named("first").reconciler(|_| Idler);
        let manager = Manager::new(Options::default()).with(first);
        let started = manager.start(client, options.clock.clone(), options.entropy.clone());
        let running = started.await.expect("started");
        let observer = running.observer().clone();
        // what happens only now and then has a series from its first time on, such as the end of a watch
        options.clock.sleep(Duration::from_secs(3600)).await;
        cycles(&running, &options.clock, 100).await;
        let hundred = Left::of(&observer);
        cycles(&running, &options.clock, 900).await;
        let thousand = Left::of(&observer);
        println!("{hundred:?}\n{thousand:?}");
        let countable = |left: &Left| [left.nodes, left.tasks, left.series, left.informers];
        assert_eq!(countable(&hundred), countable(&thousand));
        assert!(hundred.resident > 0);
        let grown = thousand.resident.saturating_sub(hundred.resident);
        assert!(grown < 4 << 20, "{grown} bytes for 900 controllers");
        running.stop().await.expect("stopped");
        assert_clean(&observer);
    });
}
