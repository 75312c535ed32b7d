//! Ten thousand PodAutoscalers on the simulated server: how long until every Deployment follows, how much memory a key takes, and
//! how long every queue and mailbox ever became; the same again while the indexer stands still for 30 s.
//!
//! `cargo bench -p boatswain-benches --bench fleet [-- KEYS [STALL_SECONDS]]`. The server is a process of its own, so that the memory
//! shown is the manager's.

#![allow(
    clippy::expect_used,
    reason = "a benchmark that cannot go on has failed"
)]

use std::{
    convert::Infallible,
    io::{BufRead as _, BufReader, Write as _},
    num::NonZeroU32,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use boatswain::{
    ClientLimits, Clock, Controller, Handle, Manager, Observer, Options, Outcome, Runnable,
};
use boatswain_apisim::{ApiSim, WorldOptions};
use boatswain_supervision::NodeSnapshot;
use futures::{StreamExt as _, stream};
use k8s_openapi::{
    api::apps::v1::Deployment,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, CustomResourceExt as _, ResourceExt as _,
    api::{ListParams, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use podautoscaler::api::{PodAutoscaler, PodAutoscalerSpec};
use serde_json::json;

fn main() {
    let mut numbers = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with("--"));
    let first = numbers.next();
    if first.as_deref() == Some("serve") {
        return serve();
    }
    let keys = first.map_or(10_000, |n| n.parse().expect("a number of keys"));
    let stall = numbers
        .next()
        .map_or(30, |n| n.parse().expect("a number of seconds"));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(bench(keys, Duration::from_secs(stall)));
}

/// The server's process: prints where its kubeconfig is and runs until its input closes.
fn serve() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let dir = tempfile::tempdir().expect("a folder");
    let server = runtime.block_on(async {
        let sim = ApiSim::new(boatswain_apisim::Options {
            audit_limit: 0,
            ..boatswain_apisim::Options::default()
        });
        let server = sim.serve(("127.0.0.1", 0)).await.expect("a port");
        // owner references and namespaces cost the garbage collector nothing here
        let world = sim.world(WorldOptions::default());
        tokio::spawn(async move { world.run().await });
        server
    });
    let path = dir.path().join("kubeconfig");
    server.write_kubeconfig(&path).expect("written");
    println!("{}", path.display());
    std::io::stdout().flush().expect("printed");
    let _ = std::io::stdin().lines().count();
}

/// The server's process, ended with this value.
struct Server {
    child: Child,
    kubeconfig: String,
}

impl Server {
    fn start() -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .arg("serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut kubeconfig = String::new();
        let out = child.stdout.take().expect("piped");
        BufReader::new(out)
            .read_line(&mut kubeconfig)
            .expect("it says where its kubeconfig is");
        Self {
            child,
            kubeconfig: kubeconfig.trim().to_owned(),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

async fn bench(keys: usize, stall: Duration) {
    let clock = Clock::system();
    let server = Server::start();
    let client = client(Path::new(&server.kubeconfig)).await;
    let crds = Api::<CustomResourceDefinition>::all(client.clone());
    crds.create(&PostParams::default(), &PodAutoscaler::crd())
        .await
        .expect("a CRD");
    let begun = clock.now();
    create(&client, keys).await;
    println!(
        "{keys} Deployments and PodAutoscalers created in {:.1} s\n",
        seconds(begun, &clock)
    );

    let gate = Arc::new(Gate::default());
    let before = resident();
    let begun = clock.now();
    let manager = start(&server.kubeconfig, gate.controller(&clock));
    converged(&client, keys, 2, &clock).await;
    let took = seconds(begun, &clock);
    quiet(manager.observer(), &clock).await;
    report("from a cold start", keys, took, before, manager.observer());

    // every wish changes while the indexer stands still
    gate.stall_ms.store(stall.as_millis() as u64, Relaxed);
    let begun = clock.now();
    ask(&client, keys, 3).await;
    println!(
        "every wish changed within {:.1} s of a {:.0} s stall of the indexer",
        seconds(begun, &clock),
        stall.as_secs_f64()
    );
    converged(&client, keys, 3, &clock).await;
    let took = seconds(begun, &clock);
    quiet(manager.observer(), &clock).await;
    report(
        "with the indexer stalled",
        keys,
        took,
        before,
        manager.observer(),
    );
    tokio::task::spawn_blocking(|| manager.stop())
        .await
        .expect("joined")
        .expect("an orderly stop");
}

/// An index function that blocks once for as long as it is told: a user's code at its worst.
#[derive(Default)]
struct Gate {
    stall_ms: AtomicU64,
}

impl Gate {
    fn controller(self: &Arc<Self>, _: &Clock) -> Runnable {
        let gate = self.clone();
        Controller::<PodAutoscaler>::named("witness")
            .resync(None)
            .reconciler(move |wiring| {
                wiring.index::<PodAutoscaler>("stalling", move |_| {
                    let stall = gate.stall_ms.swap(0, Relaxed);
                    #[expect(clippy::disallowed_methods, reason = "the stall is what is measured")]
                    std::thread::sleep(Duration::from_millis(stall));
                    Ok(vec![])
                });
                boatswain::FnReconciler::new(
                    Arc::new(()),
                    |_: Arc<PodAutoscaler>, _: Arc<()>| async {
                        Ok::<_, Infallible>(Outcome::Done)
                    },
                )
            })
    }
}

fn start(kubeconfig: &str, witness: Runnable) -> Handle {
    let some = |n| NonZeroU32::new(n).expect("not zero");
    let options = Options {
        kubeconfig: Some(kubeconfig.into()),
        workers: 8,
        // the limits are not what is measured
        limits: ClientLimits {
            qps: some(100_000),
            burst: some(100_000),
            ..ClientLimits::default()
        },
        ..Options::default()
    };
    Manager::new(options)
        .with(podautoscaler::controller())
        .with(witness)
        .spawn()
        .expect("started")
}

async fn client(kubeconfig: &Path) -> Client {
    let file = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(file, &options)
        .await
        .expect("a configuration");
    Client::try_from(config).expect("a client")
}

fn name(i: usize) -> String {
    format!("app-{i:06}")
}

async fn create(client: &Client, keys: usize) {
    let deployments = Api::<Deployment>::namespaced(client.clone(), "default");
    let autoscalers = Api::<PodAutoscaler>::namespaced(client.clone(), "default");
    let post = PostParams::default();
    let each = async |i| {
        let labels = json!({ "app": name(i) });
        let deployment = json!({
            "metadata": { "name": name(i), "labels": labels },
            "spec": {
                "replicas": 1,
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": { "containers": [{ "name": "main", "image": "example.com/main:1" }] },
                },
            },
        });
        let deployment = serde_json::from_value(deployment).expect("a Deployment");
        deployments
            .create(&post, &deployment)
            .await
            .expect("created");
        let spec = PodAutoscalerSpec {
            target_deployment: name(i),
            replicas: 2,
        };
        autoscalers
            .create(&post, &PodAutoscaler::new(&name(i), spec))
            .await
            .expect("created");
    };
    stream::iter(0..keys).for_each_concurrent(16, each).await;
}

async fn ask(client: &Client, keys: usize, replicas: i32) {
    let api = Api::<PodAutoscaler>::namespaced(client.clone(), "default");
    let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
    let each = async |i| {
        api.patch(&name(i), &PatchParams::default(), &patch)
            .await
            .expect("patched");
    };
    stream::iter(0..keys).for_each_concurrent(16, each).await;
}

/// Waits until every Deployment asks for `replicas`; looks in pages, twice a second.
async fn converged(client: &Client, keys: usize, replicas: i32, clock: &Clock) {
    let api = Api::<Deployment>::namespaced(client.clone(), "default");
    loop {
        let mut there = 0;
        let mut page = ListParams::default().limit(1000);
        loop {
            let list = api.list(&page).await.expect("a page");
            there += list
                .items
                .iter()
                .filter(|d| d.spec.replicas == Some(replicas) && d.name_any().starts_with("app-"))
                .count();
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => break,
            }
        }
        if there == keys {
            return;
        }
        clock.sleep(Duration::from_millis(500)).await;
    }
}

/// Waits until the status writes are through and nothing runs.
async fn quiet(observer: &Observer, clock: &Clock) {
    let runs = || -> Vec<String> {
        let page = observer.metrics();
        page.lines()
            .filter(|l| l.starts_with("controller_reconcile_total"))
            .map(str::to_owned)
            .collect()
    };
    loop {
        let before = runs();
        clock.sleep(Duration::from_secs(3)).await;
        if before == runs() {
            return;
        }
    }
}

fn seconds(since: Instant, clock: &Clock) -> f64 {
    clock.now().duration_since(since).as_secs_f64()
}

/// Resident bytes of this process.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok())
        .unwrap_or(0)
        * 4096
}

fn report(what: &str, keys: usize, took: f64, before: u64, observer: &Observer) {
    println!(
        "{what}: {keys} keys converged in {took:.1} s, {:.0} keys a second",
        keys as f64 / took
    );
    let grown = resident().saturating_sub(before);
    println!(
        "  resident memory grew by {:.1} MiB, {} bytes a key (PodAutoscaler and Deployment)",
        grown as f64 / 1048576.0,
        grown / keys as u64
    );
    println!("  {:<72} {:>10}", "queue or mailbox", "most");
    for informer in observer.informers() {
        println!(
            "  {:<72} {:>10}",
            format!("delta FIFO of {}", informer.resource),
            informer.pending.1
        );
        for subscriber in informer.subscribers {
            let name = format!("backlog of {} at {}", subscriber.name, informer.resource);
            println!("  {name:<72} {:>10}", subscriber.high_water);
        }
    }
    observer.snapshot().root.iter().for_each(mailboxes);
    println!("  {:<72} {:>10}\n", "every other mailbox", "0 or 1");
}

fn mailboxes(node: &NodeSnapshot) {
    // one message at a time is no queue
    if node.inbox_high_water > 1 {
        println!(
            "  {:<72} {:>10}",
            format!("mailbox of {}", node.path),
            node.inbox_high_water
        );
    }
    let queued = node
        .facts
        .get("keys")
        .and_then(|keys| keys.get("queued_high_water"));
    if let Some(most) = queued {
        println!(
            "  {:<72} {:>10}",
            format!("keys queued in {}", node.path),
            most.to_string()
        );
    }
    node.children.iter().for_each(mailboxes);
}
