//! The test kit offered to users, as a user would use it. With `KUBEBUILDER_ASSETS` set it plays on a real API server.

#![allow(clippy::expect_used, reason = "a test that cannot begin has failed")]

use std::{convert::Infallible, sync::Arc};

use boatswain::{
    Clock, Manager, Options,
    prelude::*,
    testing::{ASSETS, Census, TestServer, assert_clean},
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{ObjectMeta, PostParams},
};
use tokio::sync::mpsc;

#[tokio::test(flavor = "multi_thread")]
async fn a_test_server_is_there_at_once_and_a_controller_runs_against_it() {
    let server = TestServer::start().await.expect("a server");
    assert_eq!(
        server.sim().is_none(),
        std::env::var_os(ASSETS).is_some(),
        "the environment decides"
    );
    let client = server.client().await.expect("a client");

    let (seen, mut names) = mpsc::channel(16);
    let controller = Controller::<ConfigMap>::named("spy").reconcile_with(
        Arc::new(seen),
        |map: Arc<ConfigMap>, seen: Arc<mpsc::Sender<String>>| async move {
            // the test may have ended
            let _ = seen.send(map.name_any()).await;
            Ok::<_, Infallible>(Outcome::Done)
        },
    );
    let options = Options {
        kubeconfig: Some(server.kubeconfig()),
        namespaces: vec!["default".into()],
        ..Options::default()
    };
    let census = Census::take();
    let start = move || Manager::new(options).with(controller).spawn();
    let manager = tokio::task::spawn_blocking(start)
        .await
        .expect("joined")
        .expect("started");

    let map = ConfigMap {
        metadata: ObjectMeta {
            name: Some("hello".into()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    };
    let maps = Api::<ConfigMap>::namespaced(client, "default");
    // a real server makes the namespace a moment after it is ready
    let clock = Clock::system();
    while maps.create(&PostParams::default(), &map).await.is_err() {
        clock.sleep(std::time::Duration::from_millis(50)).await;
    }
    while names.recv().await.expect("the controller runs") != "hello" {}

    let observer = manager.observer().clone();
    tokio::task::spawn_blocking(|| manager.stop())
        .await
        .expect("joined")
        .expect("an orderly stop");
    assert_clean(&observer);
    // the manager's own thread and its arbiters; the other tests of this process have neither
    census.assert_no_threads(|name| name == "boatswain" || name.starts_with("actix-rt"));
    server.stop().await;
}

#[tokio::test]
async fn missing_binaries_are_named_in_the_error() {
    let nowhere = tempfile::tempdir().expect("a folder");
    let error = TestServer::real(nowhere.path())
        .await
        .err()
        .expect("there is nothing to start")
        .to_string();
    assert!(
        error.contains("etcd") && error.contains(&nowhere.path().display().to_string()),
        "{error}"
    );
}
