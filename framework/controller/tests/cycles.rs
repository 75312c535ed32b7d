//! What controllers that come and go leave behind, in a process of their own: nothing.

#![allow(clippy::expect_used, reason = "a test that cannot begin has failed")]

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use boatswain::{
    Clock, Context, Controller, LeaderOptions, Manager, Observer, Options, Outcome, Reconciler,
    Runnable, Running, testing::assert_clean,
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

/// Adds a controller, lets it work for so long, and removes it, so often.
async fn cycles(running: &Running, clock: &Clock, time: Duration, count: usize) {
    let controllers = running.controllers();
    for _ in 0..count {
        controllers.add(passing()).await.expect("added");
        clock.sleep(time).await;
        controllers.remove("passing").await.expect("removed");
        clock.sleep(Duration::from_secs(1)).await;
    }
}

#[test]
fn a_thousand_controllers_that_come_and_go_leave_as_much_as_a_hundred() {
    // it syncs and runs its keys
    come_and_go(Options::default(), Duration::from_secs(2), [100, 900]);
}

#[test]
fn controllers_that_come_and_go_with_leases_of_their_own_leave_nothing() {
    let leader = LeaderOptions {
        per_controller: true,
        ..LeaderOptions::default()
    };
    let options = Options {
        leader: Some(leader),
        ..Options::default()
    };
    // who leads another waits for a retry period before
    come_and_go(options, Duration::from_secs(5), [50, 200]);
}

/// Held while memory is measured: it is that of the whole process.
static ALONE: Mutex<()> = Mutex::new(());

/// What there is after the first cycles is what there is after all.
fn come_and_go(of_manager: Options, time: Duration, [some, more]: [usize; 2]) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    testing::run(7, |options| async move {
        let server = ApiSim::new(boatswain_apisim::Options {
            // the server is in this process, too, and what it remembers is to be all there before
            audit_limit: 100,
            watch_window: 100,
            ..boatswain_apisim::Options::default()
        });
        let client = kube::Client::new(server.service(), "default");
        let first = Controller::<Secret>::named("first").reconciler(|_| Idler);
        let manager = Manager::new(of_manager).with(first);
        let started = manager.start(client, options.clock.clone(), options.entropy.clone());
        let running = started.await.expect("started");
        let observer = running.observer().clone();
        // what happens only now and then has a series from its first time on, such as the end of a watch
        options.clock.sleep(Duration::from_secs(3600)).await;
        cycles(&running, &options.clock, time, some).await;
        let before = Left::of(&observer);
        cycles(&running, &options.clock, time, more).await;
        let after = Left::of(&observer);
        println!("{before:?}\n{after:?}");
        let countable = |left: &Left| [left.nodes, left.tasks, left.series, left.informers];
        assert_eq!(countable(&before), countable(&after));
        assert!(before.resident > 0);
        let grown = after.resident.saturating_sub(before.resident);
        assert!(grown < 4 << 20, "{grown} bytes for {more} controllers");
        running.stop().await.expect("stopped");
        assert_clean(&observer);
    });
}
