use boatswain_apisim::ApiSim;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, PostParams},
};
use serde_json::{Value, json};

use crate::scene::{client, deployment, map, send, sim};

async fn filled(sim: &ApiSim, count: usize) -> (Client, Api<ConfigMap>) {
    let client = client(sim);
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    for index in 0..count {
        let mut object = map(&format!("m{index:03}"), &[]);
        object.metadata.labels = Some(
            [(
                "parity".to_owned(),
                if index % 2 == 0 { "even" } else { "odd" }.to_owned(),
            )]
            .into(),
        );
        maps.create(&PostParams::default(), &object)
            .await
            .expect("created");
    }
    (client, maps)
}

#[tokio::test(start_paused = true)]
async fn pages_show_one_moment_whatever_happens_meanwhile() {
    let sim = sim();
    let (_, maps) = filled(&sim, 7).await;
    let first = maps
        .list(&ListParams::default().limit(3))
        .await
        .expect("a page");
    assert_eq!(first.metadata.remaining_item_count, Some(4));
    maps.delete("m004", &Default::default())
        .await
        .expect("deleted");
    maps.create(&PostParams::default(), &map("m0045", &[]))
        .await
        .expect("created");
    let mut names: Vec<String> = first.items.iter().map(ResourceExt::name_any).collect();
    let mut token = first.metadata.continue_.clone();
    while let Some(next) = token.filter(|t| !t.is_empty()) {
        let page = maps
            .list(&ListParams::default().limit(3).continue_token(&next))
            .await
            .expect("a page");
        assert_eq!(
            page.metadata.resource_version,
            first.metadata.resource_version
        );
        names.extend(page.items.iter().map(ResourceExt::name_any));
        token = page.metadata.continue_;
    }
    assert_eq!(
        names,
        (0..7)
            .map(|index| format!("m{index:03}"))
            .collect::<Vec<_>>()
    );
}

#[tokio::test(start_paused = true)]
async fn a_token_from_before_a_compaction_is_expired_and_offers_the_rest() {
    let sim = sim();
    let (client, _) = filled(&sim, 5).await;
    let path = "/api/v1/namespaces/default/configmaps";
    let (_, first) = send(&client, "GET", &format!("{path}?limit=2"), &[], Value::Null).await;
    sim.create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "zz"}}))
        .expect("created");
    sim.compact();
    let token = first["metadata"]["continue"].as_str().expect("a token");
    let (code, status) = send(
        &client,
        "GET",
        &format!("{path}?limit=2&continue={token}"),
        &[],
        Value::Null,
    )
    .await;
    assert_eq!((code, &status["reason"]), (410, &json!("Expired")));
    let rest = status["metadata"]["continue"]
        .as_str()
        .expect("a token for the rest");
    let (code, rest) = send(
        &client,
        "GET",
        &format!("{path}?continue={rest}"),
        &[],
        Value::Null,
    )
    .await;
    assert_eq!(
        (code, rest["items"].as_array().map(Vec::len)),
        (200, Some(4))
    );
}

#[tokio::test(start_paused = true)]
async fn labels_and_fields_select() {
    let (_, maps) = filled(&sim(), 6).await;
    let even = maps
        .list(&ListParams::default().labels("parity in (even)"))
        .await
        .expect("listed");
    assert_eq!(even.items.len(), 3);
    let one = maps
        .list(
            &ListParams::default()
                .labels("parity!=even")
                .fields("metadata.name=m001"),
        )
        .await
        .expect("listed");
    assert_eq!(
        one.items
            .iter()
            .map(ResourceExt::name_any)
            .collect::<Vec<_>>(),
        ["m001"]
    );
    assert!(
        maps.list(&ListParams::default().fields("data.k=v"))
            .await
            .is_err(),
        "not a selectable field"
    );
}

#[tokio::test(start_paused = true)]
async fn versions_in_the_future_are_too_large_and_exact_versions_are_exact() {
    let sim = sim();
    let (client, maps) = filled(&sim, 2).await;
    let path = "/api/v1/namespaces/default/configmaps";
    let version = sim.version();
    maps.delete("m000", &Default::default())
        .await
        .expect("deleted");
    let (code, status) = send(
        &client,
        "GET",
        &format!("{path}?resourceVersion=99999&resourceVersionMatch=NotOlderThan"),
        &[],
        Value::Null,
    )
    .await;
    assert_eq!(
        (code, &status["details"]["causes"][0]["reason"]),
        (504, &json!("ResourceVersionTooLarge"))
    );
    let (_, exact) = send(
        &client,
        "GET",
        &format!("{path}?resourceVersion={version}&resourceVersionMatch=Exact"),
        &[],
        Value::Null,
    )
    .await;
    assert_eq!(exact["items"].as_array().map(Vec::len), Some(2));
    let (_, newer) = send(
        &client,
        "GET",
        &format!("{path}?resourceVersion={version}&resourceVersionMatch=NotOlderThan"),
        &[],
        Value::Null,
    )
    .await;
    assert_eq!(newer["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        send(
            &client,
            "GET",
            &format!("{path}?resourceVersionMatch=Exact"),
            &[],
            Value::Null
        )
        .await
        .0,
        422
    );
}

#[tokio::test(start_paused = true)]
async fn tables_show_what_kubectl_prints() {
    let sim = sim();
    let client = client(&sim);
    sim.create(serde_json::to_value(deployment("web", 2)).expect("json"))
        .expect("created");
    sim.world(Default::default()).settle();
    let accept = [(
        "accept",
        "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    )];
    let (_, table) = send(
        &client,
        "GET",
        "/apis/apps/v1/namespaces/default/deployments",
        &accept,
        Value::Null,
    )
    .await;
    let names: Vec<&str> = table["columnDefinitions"]
        .as_array()
        .expect("columns")
        .iter()
        .filter_map(|c| c["name"].as_str())
        .collect();
    assert_eq!(
        names,
        [
            "Name",
            "Ready",
            "Up-to-date",
            "Available",
            "Age",
            "Containers",
            "Images",
            "Selector"
        ]
    );
    assert_eq!(
        table["rows"][0]["cells"],
        json!(["web", "2/2", 2, 2, "0s", "main", "nginx:1", "app=web"])
    );
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
}

#[tokio::test(start_paused = true)]
async fn metadata_alone_can_be_asked_for() {
    let (client, _) = filled(&sim(), 1).await;
    let maps: Api<kube::core::PartialObjectMeta<ConfigMap>> = Api::default_namespaced(client);
    let list = maps
        .list_metadata(&ListParams::default())
        .await
        .expect("listed");
    assert_eq!(list.items[0].labels()["parity"], "even");
}

#[tokio::test(start_paused = true)]
async fn discovery_leads_to_every_resource() {
    let sim = sim();
    sim.create(crate::scene::widget_crd()).expect("installed");
    let discovery = kube::Discovery::new(client(&sim))
        .run()
        .await
        .expect("discovered");
    let (widget, caps) = discovery
        .resolve_gvk(&kube::core::GroupVersionKind::gvk(
            "example.com",
            "v1",
            "Widget",
        ))
        .expect("there");
    assert_eq!(widget.plural, "widgets");
    assert!(caps.supports_operation("watch"));
    assert!(
        caps.subresources
            .iter()
            .any(|(sub, _)| sub.plural == "scale"),
        "{:?}",
        caps.subresources
    );
    for (group, kind) in [
        ("", "Pod"),
        ("apps", "Deployment"),
        ("events.k8s.io", "Event"),
        ("coordination.k8s.io", "Lease"),
    ] {
        assert!(
            discovery
                .resolve_gvk(&kube::core::GroupVersionKind::gvk(group, "v1", kind))
                .is_some(),
            "{kind}"
        );
    }
}
