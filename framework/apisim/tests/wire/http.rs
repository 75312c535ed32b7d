use boatswain_apisim::ApiSim;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, Config,
    api::{ListParams, PostParams, WatchEvent, WatchParams},
    config::{KubeConfigOptions, Kubeconfig},
};

use crate::scene::map;

async fn client_of(server: &boatswain_apisim::Server) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(&server.kubeconfig("admintoken")).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .expect("a config");
    Client::try_from(config).expect("a client")
}

#[tokio::test]
async fn a_client_reads_writes_and_watches_over_http() {
    use futures::StreamExt;
    let sim = ApiSim::default();
    let server = sim.serve("127.0.0.1:0").await.expect("listening");
    let maps: Api<ConfigMap> = Api::default_namespaced(client_of(&server).await);
    let version = sim.version().to_string();
    let mut events = maps
        .watch(&WatchParams::default(), &version)
        .await
        .expect("watching")
        .boxed();
    maps.create(&PostParams::default(), &map("a", &[]))
        .await
        .expect("created");
    assert!(
        matches!(events.next().await, Some(Ok(WatchEvent::Added(object))) if object.metadata.name.as_deref() == Some("a"))
    );
    server.stop().await;
    assert!(
        events.next().await.is_none(),
        "an orderly stop ends the watch"
    );
}

#[tokio::test]
async fn a_killed_server_comes_back_on_its_port_with_its_store() {
    let sim = ApiSim::default();
    let server = sim.serve("127.0.0.1:0").await.expect("listening");
    let addr = server.addr();
    let maps: Api<ConfigMap> = Api::default_namespaced(client_of(&server).await);
    maps.create(&PostParams::default(), &map("a", &[]))
        .await
        .expect("created");
    server.kill().await;
    assert!(
        maps.list(&ListParams::default()).await.is_err(),
        "nobody listens"
    );
    let server = sim.serve(addr).await.expect("listening again");
    assert_eq!(
        maps.list(&ListParams::default())
            .await
            .expect("listed")
            .items
            .len(),
        1
    );
    server.stop().await;
}
