//! What `/healthz` says of a thread that is blocked.

#![allow(clippy::expect_used, reason = "a test that cannot begin has failed")]

use std::{
    convert::Infallible,
    hash::BuildHasher as _,
    sync::{Arc, Mutex, mpsc},
    thread::ThreadId,
    time::Duration,
};

use boatswain::{Clock, Manager, Observer, Options, prelude::*, testing::TestServer};
use boatswain_workqueue::Seeded;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{Api, api::PostParams};

/// Waits until what `/healthz` shows is as it should be.
async fn until(observer: &Observer, what: &str, is: impl Fn(&(bool, String)) -> bool) {
    let clock = Clock::system();
    for _ in 0..6000 {
        if is(&observer.live()) {
            return;
        }
        clock.sleep(Duration::from_millis(10)).await;
    }
    panic!("never {what}: {:?}", observer.live());
}

/// Starts or stops a manager, which takes a thread.
async fn blocking<T: Send + 'static>(what: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(what).await.expect("joined")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reconcile_that_blocks_its_thread_is_named_by_healthz_for_as_long_as_it_does() {
    let server = TestServer::start().await.expect("a server");
    let (open, gate) = mpsc::channel::<()>();
    let controller = Controller::<Namespace>::named("blocker").reconcile_with(
        Arc::new(Mutex::new(gate)),
        |_: Arc<Namespace>, gate: Arc<Mutex<mpsc::Receiver<()>>>| async move {
            // waits without `await`, until the test lets it go on
            let _ = gate.lock().map(|gate| gate.recv());
            Ok::<_, Infallible>(Outcome::Done)
        },
    );
    let options = Options {
        kubeconfig: Some(server.kubeconfig()),
        patience: Some(Duration::from_millis(200)),
        ..Options::default()
    };
    let start = move || Manager::new(options).with(controller).spawn();
    let manager = blocking(start).await.expect("started");
    let observer = manager.observer().clone();
    let worker = "[-]threads failed: root/controllers/blocker/workers-";
    until(&observer, "named", |(live, page)| {
        !live && page.contains(worker)
    })
    .await;
    drop(open);
    until(&observer, "well again", |(live, page)| {
        *live && page.contains("[+]threads ok")
    })
    .await;
    let stopped = blocking(|| manager.stop()).await;
    stopped.expect("an orderly stop");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reconcile_that_blocks_its_thread_keeps_no_change_from_the_keys_of_other_threads() {
    if std::thread::available_parallelism().is_ok_and(|threads| threads.get() == 1) {
        // a manager has no other thread then
        return;
    }
    let server = TestServer::start().await.expect("a server");
    let client = server.client().await.expect("a client");
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let create = async |name: String| {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(name);
        maps.create(&PostParams::default(), &map)
            .await
            .expect("created");
    };
    let (open, gate) = mpsc::channel::<()>();
    // it belongs to the first of two threads, where most of a controller stands
    let is_first =
        |name: &String| Seeded::default().hash_one(Key::new(Some("default"), name)) % 2 == 0;
    let blocker = (0..).map(|i| format!("blocks-{i}")).find(is_first);
    create(blocker.expect("one of two")).await;
    let (ran, runs) = mpsc::channel::<(String, ThreadId)>();
    let context = Arc::new((Mutex::new(gate), Mutex::new(ran)));
    type Shared = (
        Mutex<mpsc::Receiver<()>>,
        Mutex<mpsc::Sender<(String, ThreadId)>>,
    );
    let controller = Controller::<ConfigMap>::named("blocker").reconcile_with(
        context,
        |map: Arc<ConfigMap>, shared: Arc<Shared>| async move {
            let (gate, ran) = &*shared;
            let told = (map.name_any(), std::thread::current().id());
            let _ = ran.lock().map(|ran| ran.send(told));
            if map.name_any().starts_with("blocks") {
                let _ = gate.lock().map(|gate| gate.recv());
            }
            Ok::<_, Infallible>(Outcome::Done)
        },
    );
    let options = Options {
        kubeconfig: Some(server.kubeconfig()),
        workers: 2,
        ..Options::default()
    };
    let start = move || Manager::new(options).with(controller).spawn();
    let manager = blocking(start).await.expect("started");
    let patience = Duration::from_secs(60);
    let next = || {
        runs.recv_timeout(patience)
            .expect("keys of the other thread run")
    };
    let blocked = loop {
        let (name, thread) = next();
        if name.starts_with("blocks") {
            break thread;
        }
    };
    for number in 0..16 {
        create(format!("free-{number}")).await;
    }
    // half of them, about, belong to the other thread
    assert_ne!(next().1, blocked);
    drop(open);
    let stopped = blocking(|| manager.stop()).await;
    stopped.expect("an orderly stop");
    server.stop().await;
}
