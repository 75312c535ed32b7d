//! A reconcile that blocks its thread, on real threads and without a server.

#![allow(clippy::expect_used, reason = "a test that cannot begin has failed")]

use std::{
    convert::Infallible,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc,
    },
    time::Duration,
};

use boatswain::{
    Context, Controller, Handle, Key, Manager, Options, Outcome, Reconciler, RunError, Runnable,
    Sender, channel, testing::apisim::ApiSim,
};
use k8s_openapi::api::core::v1::ConfigMap;

/// Keys that are changed again and again.
const HOT: usize = 16;

/// Waits until something is so.
fn until(what: &str, is: impl Fn() -> bool) {
    for _ in 0..6000 {
        if is() {
            return;
        }
        #[expect(clippy::disallowed_methods, reason = "others work meanwhile")]
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never {what}");
}

fn key(name: &str) -> Key {
    Key::new(Some("default"), name)
}

/// Blocks its thread over keys without objects called `block`, and counts the others.
#[derive(Clone)]
struct Blocker {
    gate: Arc<Mutex<mpsc::Receiver<()>>>,
    runs: Arc<AtomicU64>,
}

impl Reconciler<ConfigMap> for Blocker {
    type Error = Infallible;

    async fn reconcile(&self, _: Arc<ConfigMap>, _: &Context) -> Result<Outcome, Infallible> {
        Ok(Outcome::Done)
    }

    async fn gone(
        &self,
        key: &Key,
        _: Option<Arc<ConfigMap>>,
        _: &Context,
    ) -> Result<Outcome, Infallible> {
        if key.name() == "block" {
            // without `await`, until the test lets it go on
            let _ = self.gate.lock().map(|gate| gate.recv());
        }
        self.runs.fetch_add(1, Relaxed);
        Ok(Outcome::Done)
    }
}

fn controller(name: &str, shards: usize, blocker: &Blocker) -> (Sender, Runnable) {
    let (sender, source) = channel(1_000);
    let blocker = blocker.clone();
    let controller = Controller::<ConfigMap>::named(name)
        .concurrency(shards)
        .source("asks", source)
        .reconciler(move |_| blocker);
    (sender, controller)
}

fn spawn(controllers: Vec<Runnable>) -> Handle {
    let options = Options {
        patience: Some(Duration::from_millis(200)),
        grace: Duration::from_millis(100),
        ..Options::default()
    };
    let sim = ApiSim::new(boatswain::testing::apisim::Options::default());
    let manager = controllers
        .into_iter()
        .fold(Manager::new(options), Manager::with)
        .spawn_over(move || kube::Client::new(sim.service(), "default"))
        .expect("started");
    until("ready", || manager.observer().ready().0);
    manager
}

#[test]
fn a_blocked_shard_keeps_one_entry_a_key_and_stops_neither_others_nor_metrics() {
    let (open, gate) = mpsc::channel::<()>();
    let blocker = Blocker {
        gate: Arc::new(Mutex::new(gate)),
        runs: Arc::default(),
    };
    let others = Blocker {
        runs: Arc::default(),
        ..blocker.clone()
    };
    let (sender, blocked) = controller("blocked", 1, &blocker);
    let (other, free) = controller("free", 4, &others);
    let manager = spawn(vec![blocked, free]);
    let observer = manager.observer().clone();
    sender.send(key("block")).expect("room");
    let named = || {
        let (live, page) = observer.live();
        !live && page.contains("root/controllers/blocked/workers-0/worker-")
    };
    until("named", named);
    for event in 0..100_000 {
        let name = format!("hot-{}", event % HOT);
        while sender.send(key(&name)).is_err() {
            std::thread::yield_now();
        }
    }
    until("taken over", || sender.is_empty());
    let page = observer.metrics();
    let depth = |page: &str| {
        let depth = page
            .lines()
            .filter(|line| line.starts_with("controller_queue_depth{controller=\"blocked\"}"));
        depth.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        depth(&page),
        [format!(
            "controller_queue_depth{{controller=\"blocked\"}} {HOT}"
        )]
    );
    assert_eq!(blocker.runs.load(Relaxed), 0);
    let names = (0..100).map(|number| format!("other-{number}"));
    names.for_each(|name| other.send(key(&name)).expect("room"));
    // those of the shard that shares its thread with what blocks it have to wait
    until("run elsewhere", || {
        others.runs.load(Relaxed) >= 25 || cores() == 1
    });
    assert!(named(), "it still blocks");
    drop(open);
    until("run in the end", || {
        blocker.runs.load(Relaxed) == 1 + HOT as u64 && others.runs.load(Relaxed) == 100
    });
    manager.stop().expect("an orderly stop");
}

#[test]
fn a_stop_that_a_blocked_reconcile_outlasts_returns_and_names_it_and_no_other_controller() {
    let (open, gate) = mpsc::channel::<()>();
    let blocker = Blocker {
        gate: Arc::new(Mutex::new(gate)),
        runs: Arc::default(),
    };
    let (sender, blocked) = controller("blocked", 1, &blocker);
    let (_, idle) = controller("idle", 1, &blocker);
    let manager = spawn(vec![blocked, idle]);
    let observer = manager.observer().clone();
    sender.send(key("block")).expect("room");
    let worker = "root/controllers/blocked/workers-0/worker-";
    until("named", || observer.live().1.contains(worker));
    match manager.stop() {
        Err(RunError::StillRunning(left)) => {
            // the shard has its thread with the worker; the other controller has another, where there are two
            let own = |path: &String| path.starts_with("root/controllers/blocked/");
            assert!(left.paths.iter().all(own) || cores() == 1, "{left}");
            let named = left.paths.iter().filter(|path| path.starts_with(worker));
            assert_eq!(named.count(), 1, "{left}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(blocker.runs.load(Relaxed), 0, "it still blocks");
    drop(open);
    until("over", || observer.snapshot().tasks == 0);
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
