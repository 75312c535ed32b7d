//! What a key costs in memory: idle, queued and waiting; a worker; and ten million names that come and go.
//!
//! `cargo bench -p boatswain-benches --bench bytes [-- KEYS [NAMES]]`. Bytes are those of the heap of the whole process, as its allocator counts them;
//! what is shown are differences between states of one manager over the simulated server in the same process, whose own share does not change.

#![allow(
    clippy::expect_used,
    reason = "a benchmark that cannot go on has failed"
)]

use std::{
    alloc::System,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
        mpsc,
    },
    time::Duration,
};

use boatswain::{
    Context, Controller, ControllerHandle, Handle, Manager, Options, Outcome, Predicate,
    Reconciler, Sender, channel,
};
use boatswain_apisim::ApiSim;
use boatswain_cache::{Lister, Subscription};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use serde_json::{Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static HEAP: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const NAME: &str = "bytes";

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|arg| arg.parse().ok());
    let test = std::env::args().any(|arg| arg == "--test");
    let keys = numbers.next().unwrap_or(if test { 1_000 } else { 100_000 });
    let names = numbers
        .next()
        .unwrap_or(if test { 20_000 } else { 10_000_000 });
    println!("{}", of_keys(keys));
    println!(
        "| a worker that waits | {:.0} B |",
        of_workers(if test { 100 } else { 1_000 })
    );
    of_names(names);
}

fn heap() -> f64 {
    let stats = HEAP.stats();
    (stats.bytes_allocated as f64) - (stats.bytes_deallocated as f64)
}

/// What the reconciler is to answer, and how often it was called.
#[derive(Default)]
struct Script {
    waits: AtomicBool,
    fails: AtomicBool,
    runs: AtomicU64,
}

#[derive(Debug)]
struct Refused;

struct Scripted(Arc<Script>);

impl Reconciler<ConfigMap> for Scripted {
    type Error = Refused;

    async fn reconcile(&self, _: Arc<ConfigMap>, _: &Context) -> Result<Outcome, Refused> {
        self.0.run()
    }
}

impl Script {
    fn run(&self) -> Result<Outcome, Refused> {
        self.runs.fetch_add(1, Relaxed);
        if self.fails.load(Relaxed) {
            return Err(Refused);
        }
        Ok(match self.waits.load(Relaxed) {
            true => Outcome::RequeueAfter(Duration::from_secs(3600)),
            false => Outcome::Done,
        })
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("refused, as the script says")
    }
}

impl std::error::Error for Refused {}

struct Stage {
    manager: Handle,
    sim: ApiSim,
    script: Arc<Script>,
    sender: Sender,
    objects: Lister<ConfigMap>,
    _stalled: Subscription,
}

impl Stage {
    /// A manager over a server with so many objects. One subscriber of its informer never takes anything.
    fn set(objects: usize, concurrency: usize, when: Predicate) -> Self {
        let sim = ApiSim::new(boatswain_apisim::Options {
            audit_limit: 0,
            ..boatswain_apisim::Options::default()
        });
        for number in 0..objects {
            sim.create(object(number)).expect("created");
        }
        let script = Arc::new(Script::default());
        let (sender, source) = channel(objects.max(1));
        let (told, stalled) = mpsc::channel();
        let scripted = Scripted(script.clone());
        let controller = Controller::<ConfigMap>::named(NAME)
            .when(when)
            .concurrency(concurrency)
            .source("asks", source)
            .reconciler(move |wiring| {
                let objects = wiring.lister::<ConfigMap>();
                let stalled = objects.view().subscribe("stalled", || {});
                told.send((stalled, objects)).expect("wanted");
                scripted
            });
        let server = sim.clone();
        let manager = Manager::new(Options::default())
            .with(controller)
            .spawn_over(move || Client::new(server.service(), "default"))
            .expect("started");
        let (stalled, objects) = stalled.recv().expect("subscribed");
        Self {
            manager,
            sim,
            script,
            sender,
            objects,
            _stalled: stalled,
        }
    }

    fn controller(&self) -> ControllerHandle {
        self.manager.observer().controller(NAME).expect("there")
    }

    /// Keys that are ready to run.
    fn queued(&self) -> usize {
        let page = self.manager.observer().metrics();
        let depth = format!("controller_queue_depth{{controller=\"{NAME}\"}} ");
        let line = page.lines().find_map(|line| line.strip_prefix(&*depth));
        line.expect("a depth").parse().expect("a number")
    }

    fn runs(&self) -> u64 {
        self.script.runs.load(Relaxed)
    }

    /// Stops, and says what is left of the heap that it took.
    fn strike(self) {
        self.manager.stop().expect("stopped");
    }
}

/// Bytes of the heap, in every state that a key can be in.
struct Taken {
    idle: f64,
    queued: f64,
    waiting: f64,
    kept: f64,
}

/// A row for each state: what as many keys again take, so that nothing counts that is there once, such as what an informer remembers of recent reads.
fn of_keys(keys: usize) -> String {
    let (half, all) = (taken(keys), taken(2 * keys));
    let each = |of: fn(&Taken) -> f64| (of(&all) - of(&half)) / keys as f64;
    format!(
        "| each of {keys} keys more | heap |\n|---|---|\n| its object, as it is kept | {:.0} B |\n| idle after a run, beyond its object | {:.0} B |\n| queued, beyond that | {:.0} B |\n| waiting for a time, beyond idle | {:.0} B |",
        each(|taken| taken.kept),
        each(|taken| taken.idle),
        each(|taken| taken.queued),
        each(|taken| taken.waiting),
    )
}

fn taken(keys: usize) -> Taken {
    let stage = Stage::set(keys, 16, nothing());
    wait(|| stage.manager.observer().ready().0);
    let stored = settled();
    // the store's own, as they come with changes
    let ask = || {
        let objects = stage.objects.list_objects().expect("synced");
        for object in &objects {
            let room = stage.sender.send(object.key().clone());
            room.expect("room for all");
        }
    };
    let run = |times: u64| {
        wait(|| stage.runs() >= times * keys as u64 && stage.queued() == 0);
        settled()
    };
    ask();
    let idle = run(1);
    drop(stage.controller().pause("the benchmark"));
    ask();
    wait(|| stage.queued() == keys);
    let queued = settled();
    stage.script.waits.store(true, Relaxed);
    stage.controller().resume();
    let waiting = run(2);
    let informers = stage.manager.observer().informers();
    let kept: usize = informers.iter().map(|informer| informer.bytes).sum();
    stage.strike();
    Taken {
        idle: idle - stored,
        queued: queued - idle,
        waiting: waiting - idle,
        kept: kept as f64,
    }
}

fn of_workers(workers: usize) -> f64 {
    let taken = |workers| {
        let before = heap();
        let stage = Stage::set(0, workers, everything());
        wait(|| stage.manager.observer().ready().0);
        let taken = settled() - before;
        stage.strike();
        taken
    };
    // what is made once in a process is no worker's
    taken(1);
    (taken(workers + 1) - taken(1)) / workers as f64
}

/// Objects that come and go, each with a name of its own, while the reconciler fails at all of them as long as they are there.
fn of_names(names: usize) {
    const AT_ONCE: usize = 1000;
    let stage = Stage::set(0, 16, everything());
    stage.script.fails.store(true, Relaxed);
    wait(|| stage.manager.observer().ready().0);
    println!("\n| names that came and went | heap | keys that are not idle |\n|---|---|---|");
    for number in 0..names + AT_ONCE {
        if number < names {
            stage.sim.create(object(number)).expect("created");
        }
        if let Some(gone) = number.checked_sub(AT_ONCE) {
            let name = name(gone);
            stage
                .sim
                .delete("v1", "ConfigMap", "default", &name)
                .expect("deleted");
        }
        if number % (names / 10).max(1) == 0 {
            println!(
                "| {number} | {:.1} MB | {} |",
                settled() / 1e6,
                stage.queued()
            );
        }
    }
    println!("| all | {:.1} MB | {} |", settled() / 1e6, stage.queued());
    stage.strike();
}

/// The heap once it has stopped changing: what is freed late is not counted.
fn settled() -> f64 {
    let mut before = heap();
    loop {
        sleep(Duration::from_millis(300));
        let now = heap();
        if (now - before).abs() < before * 0.001 {
            return now;
        }
        before = now;
    }
}

fn everything() -> Predicate {
    !nothing()
}

/// What keeps every object from the queue, though all are stored.
fn nothing() -> Predicate {
    Predicate::change("never", |_| false)
}

fn wait(done: impl Fn() -> bool) {
    while !done() {
        sleep(Duration::from_millis(10));
    }
}

#[expect(clippy::disallowed_methods, reason = "others work meanwhile")]
fn sleep(span: Duration) {
    std::thread::sleep(span);
}

fn name(number: usize) -> String {
    format!("c{number}")
}

fn object(number: usize) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "namespace": "default", "name": name(number) } })
}
