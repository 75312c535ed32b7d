//! Reconciles that run on the pool: what holds for others holds for them.

#![allow(clippy::expect_used, reason = "a test that cannot begin has failed")]

use std::{
    convert::Infallible,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    time::Duration,
};

use boatswain::{
    Clock, Handle, Manager, Observer, Options, RunError, Runnable,
    prelude::*,
    testing::{TestServer, assert_clean},
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, api::PostParams};

/// Waits until something is so.
async fn until(what: &str, is: impl Fn() -> bool) {
    let clock = Clock::system();
    for _ in 0..6000 {
        if is() {
            return;
        }
        clock.sleep(Duration::from_millis(10)).await;
    }
    panic!("never {what}");
}

/// Starts or stops a manager, which takes a thread.
async fn blocking<T: Send + 'static>(what: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(what).await.expect("joined")
}

async fn start(server: &TestServer, grace: Duration, controllers: Vec<Runnable>) -> Handle {
    let options = Options {
        kubeconfig: Some(server.kubeconfig()),
        patience: Some(Duration::from_millis(200)),
        grace,
        ..Options::default()
    };
    let manager = controllers
        .into_iter()
        .fold(Manager::new(options), Manager::with);
    blocking(move || manager.spawn()).await.expect("started")
}

async fn stop(manager: Handle) -> Result<(), RunError> {
    blocking(|| manager.stop()).await
}

async fn create(server: &TestServer, name: &str) {
    let client = server.client().await.expect("a client");
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    let made = maps.create(&PostParams::default(), &map).await;
    made.expect("created");
}

fn metric(observer: &Observer, series: &str) -> f64 {
    let page = observer.metrics();
    let value = page
        .lines()
        .find_map(|line| line.strip_prefix(series)?.trim().parse().ok());
    value.unwrap_or_else(|| panic!("no {series} in {page}"))
}

/// What runs at once and how often something has run.
#[derive(Default)]
struct Crowd {
    now: AtomicUsize,
    most: AtomicUsize,
    runs: AtomicUsize,
}

/// Somebody is in the crowd until this is dropped.
struct Inside(Arc<Crowd>);

impl Crowd {
    fn enter(self: &Arc<Self>) -> Inside {
        let now = self.now.fetch_add(1, SeqCst) + 1;
        self.most.fetch_max(now, SeqCst);
        self.runs.fetch_add(1, SeqCst);
        Inside(self.clone())
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reconcile_on_the_pool_that_blocks_its_thread_keeps_nobody_from_running() {
    let server = TestServer::start().await.expect("a server");
    let (open, gate) = mpsc::channel::<()>();
    let blocked = Controller::<ConfigMap>::named("blocked")
        .concurrency(1)
        .offload()
        .reconcile_with(
            Arc::new(Mutex::new(gate)),
            |_: Arc<ConfigMap>, gate: Arc<Mutex<mpsc::Receiver<()>>>| async move {
                // waits without `await`, until the test lets it go on
                let _ = gate.lock().map(|gate| gate.recv());
                Ok::<_, Infallible>(Outcome::Done)
            },
        );
    let crowd = Arc::new(Crowd::default());
    let other = Controller::<ConfigMap>::named("other").reconcile_with(
        crowd.clone(),
        |_: Arc<ConfigMap>, crowd: Arc<Crowd>| async move {
            drop(crowd.enter());
            Ok::<_, Infallible>(Outcome::Done)
        },
    );
    let manager = start(&server, Duration::from_secs(5), vec![blocked, other]).await;
    let observer = manager.observer().clone();
    create(&server, "first").await;
    let active = "controller_active_workers{controller=\"blocked\"}";
    until("blocked", || metric(&observer, active) == 1.0).await;
    // enough that keys of every shard are among them
    for n in 0..32 {
        create(&server, &format!("map-{n}")).await;
    }
    until("run by the other", || crowd.runs.load(SeqCst) >= 33).await;
    let (live, page) = observer.live();
    assert!(live, "{page}");
    assert_eq!(metric(&observer, active), 1.0, "one at once");
    drop(open);
    let done = "controller_reconcile_total{controller=\"blocked\",result=\"success\"}";
    until("done", || metric(&observer, done) >= 33.0).await;
    stop(manager).await.expect("an orderly stop");
    assert_clean(&observer);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_the_pool_deadline_bound_and_one_at_a_time_hold_and_a_panic_costs_its_run_only() {
    let server = TestServer::start().await.expect("a server");
    let crowd = Arc::new(Crowd::default());
    let controller = Controller::<ConfigMap>::named("pool")
        .concurrency(2)
        .deadline(Duration::from_millis(50))
        .offload()
        .reconcile_with(
            crowd.clone(),
            |map: Arc<ConfigMap>, crowd: Arc<Crowd>| async move {
                if map.name_any() == "panics" {
                    panic!("scripted");
                }
                let _inside = crowd.enter();
                if map.name_any().starts_with("hangs") {
                    std::future::pending::<()>().await;
                }
                Ok::<_, Infallible>(Outcome::Done)
            },
        );
    let manager = start(&server, Duration::from_secs(5), vec![controller]).await;
    let observer = manager.observer().clone();
    for name in ["panics", "hangs-1", "hangs-2", "hangs-3", "well"] {
        create(&server, name).await;
    }
    let results = |result: &str| {
        let series = "controller_reconcile_total{controller=\"pool\",result=";
        metric(&observer, &format!("{series}\"{result}\"}}"))
    };
    until("so", || {
        results("timeout") >= 6.0 && results("panic") >= 2.0 && results("success") >= 1.0
    })
    .await;
    assert!(crowd.most.load(SeqCst) <= 2, "more than were allowed");
    stop(manager).await.expect("what hangs is cancelled");
    assert_eq!(crowd.now.load(SeqCst), 0, "something still runs");
    assert_clean(&observer);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reconcile_on_the_pool_that_cannot_be_cancelled_keeps_its_permit_and_is_named_at_the_stop()
 {
    let server = TestServer::start().await.expect("a server");
    let (open, gate) = mpsc::channel::<()>();
    let crowd = Arc::new(Crowd::default());
    let controller = Controller::<ConfigMap>::named("blocked")
        .concurrency(1)
        .deadline(Duration::from_millis(20))
        .offload()
        .reconcile_with(
            Arc::new((crowd.clone(), Mutex::new(gate))),
            |_: Arc<ConfigMap>, with: Arc<(Arc<Crowd>, Mutex<mpsc::Receiver<()>>)>| async move {
                let _inside = with.0.enter();
                let _ = with.1.lock().map(|gate| gate.recv());
                Ok::<_, Infallible>(Outcome::Done)
            },
        );
    let manager = start(&server, Duration::from_millis(100), vec![controller]).await;
    create(&server, "one").await;
    until("running", || crowd.runs.load(SeqCst) == 1).await;
    create(&server, "other").await;
    let observer = manager.observer().clone();
    until("queued", || {
        metric(&observer, "controller_queue_depth{controller=\"blocked\"}") == 1.0
    })
    .await;
    // its deadline has long passed
    Clock::system().sleep(Duration::from_millis(200)).await;
    assert_eq!(crowd.runs.load(SeqCst), 1);
    match stop(manager).await {
        Err(RunError::StillRunning(left)) => {
            assert_eq!(left.paths, ["root/controllers/blocked: default/one"]);
        }
        other => panic!("{other:?}"),
    }
    drop(open);
    until("over", || crowd.now.load(SeqCst) == 0).await;
    server.stop().await;
}
