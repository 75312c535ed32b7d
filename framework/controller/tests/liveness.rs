//! What `/healthz` says of a thread that is blocked.

#![allow(clippy::expect_used, reason = "a test that cannot begin has failed")]

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};

use boatswain::{Clock, Manager, Observer, Options, prelude::*, testing::TestServer};
use k8s_openapi::api::core::v1::Namespace;

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
    let manager = tokio::task::spawn_blocking(start)
        .await
        .expect("joined")
        .expect("started");
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
    tokio::task::spawn_blocking(|| manager.stop())
        .await
        .expect("joined")
        .expect("an orderly stop");
    server.stop().await;
}
