use std::time::Duration;

use boatswain_apisim::{Anonymous, Matcher, Options, Rejection};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kube::{
    Api,
    api::{ListParams, PostParams},
};
use serde_json::{Value, json};

use crate::scene::{client, deployment, map, send, sim, sim_with};

const PODS: &str = "/api/v1/pods";

#[tokio::test(start_paused = true)]
async fn a_rejection_applies_as_often_as_it_says() {
    let sim = sim();
    let client = client(&sim);
    sim.faults().reject(
        Matcher::any().verb("list").resource("pods"),
        Rejection::new(400).times(2),
    );
    for expected in [400, 400, 200] {
        assert_eq!(
            send(&client, "GET", PODS, &[], Value::Null).await.0,
            expected
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_throttled_client_is_told_when_to_come_back() {
    let sim = sim();
    sim.faults()
        .reject(Matcher::any(), Rejection::new(429).retry_after(7));
    let request = http::Request::get(PODS)
        .body(kube::client::Body::empty())
        .expect("a request");
    let response = client(&sim).send(request).await.expect("an answer");
    assert_eq!(response.status(), 429);
    assert_eq!(response.headers()["retry-after"], "7");
}

#[tokio::test(start_paused = true)]
async fn a_held_request_has_no_effect_until_it_is_let_go() {
    let sim = sim();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&sim));
    let hold = sim.faults().hang(Matcher::any().verb("create"));
    let request = tokio::spawn({
        let maps = maps.clone();
        async move { maps.create(&PostParams::default(), &map("a", &[])).await }
    });
    tokio::time::timeout(Duration::from_secs(100), std::future::pending::<()>())
        .await
        .expect_err("time passes");
    assert!(maps.get_opt("a").await.expect("an answer").is_none());
    hold.release();
    request.await.expect("no panic").expect("created");
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_leaves_its_write() {
    let sim = sim();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&sim));
    sim.faults().lose_answers(Matcher::any().verb("create"), 1);
    assert!(
        maps.create(&PostParams::default(), &map("a", &[]))
            .await
            .is_err()
    );
    assert!(maps.get_opt("a").await.expect("an answer").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_corrupted_object_spoils_a_list_for_typed_clients_until_it_is_healed() {
    let sim = sim();
    let deployments: Api<Deployment> = Api::default_namespaced(client(&sim));
    deployments
        .create(&PostParams::default(), &deployment("web", 1))
        .await
        .expect("created");
    sim.faults().corrupt(
        "apps",
        "deployments",
        "default",
        "web",
        json!({"spec": "corrupt"}),
    );
    assert!(deployments.list(&ListParams::default()).await.is_err());
    sim.faults().heal("apps", "deployments", "default", "web");
    assert_eq!(
        deployments
            .list(&ListParams::default())
            .await
            .expect("listed")
            .items
            .len(),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_server_answers_no_one() {
    let sim = sim();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&sim));
    sim.faults().unreachable(true);
    assert!(maps.list(&ListParams::default()).await.is_err());
    sim.faults().unreachable(false);
    maps.list(&ListParams::default()).await.expect("back");
}

#[tokio::test(start_paused = true)]
async fn a_user_without_rights_is_told_which_are_missing() {
    let sim = sim();
    let client = client(&sim);
    let viewer = [("authorization", "Bearer viewertoken")];
    let (code, status) = send(&client, "GET", PODS, &viewer, Value::Null).await;
    let message = "pods is forbidden: User \"viewer\" cannot list resource \"pods\" in API group \"\" at the cluster scope";
    assert_eq!(
        (code, &status["message"], &status["details"]),
        (403, &json!(message), &json!({"kind": "pods"}))
    );
    let (_, status) = send(
        &client,
        "GET",
        "/apis/apps/v1/namespaces/default/deployments/web",
        &viewer,
        Value::Null,
    )
    .await;
    let message = "deployments.apps \"web\" is forbidden: User \"viewer\" cannot get resource \"deployments\" in API group \"apps\" in the namespace \"default\"";
    assert_eq!(status["message"], message);
    sim.users().grant(
        "viewer",
        Matcher::any().verb("list").group("").resource("pods"),
    );
    assert_eq!(
        send(&client, "GET", PODS, &viewer, Value::Null).await.0,
        200
    );
    sim.users().deny("viewer", Matcher::any().resource("pods"));
    assert_eq!(
        send(&client, "GET", PODS, &viewer, Value::Null).await.0,
        403
    );
}

#[tokio::test(start_paused = true)]
async fn an_unknown_token_is_unauthorized_and_so_is_none_where_it_is_required() {
    let sim = sim_with(Options {
        anonymous: Anonymous::Refused,
        ..Options::default()
    });
    let client = client(&sim);
    assert_eq!(
        send(
            &client,
            "GET",
            PODS,
            &[("authorization", "Bearer wrong")],
            Value::Null
        )
        .await
        .0,
        401
    );
    assert_eq!(send(&client, "GET", PODS, &[], Value::Null).await.0, 401);
    assert_eq!(
        sim.audit()
            .iter()
            .map(|entry| entry.code)
            .collect::<Vec<_>>(),
        [401, 401]
    );
    assert_eq!(
        send(
            &client,
            "GET",
            PODS,
            &[("authorization", "Bearer admintoken")],
            Value::Null
        )
        .await
        .0,
        200
    );
}

#[tokio::test(start_paused = true)]
async fn the_audit_log_tells_writes_that_changed_something_from_those_that_did_not() {
    let sim = sim();
    let client = client(&sim);
    sim.create(serde_json::to_value(deployment("web", 1)).expect("json"))
        .expect("created");
    let path = "/apis/apps/v1/namespaces/default/deployments/web/scale";
    let mark = sim.audit_mark();
    for replicas in [1, 2] {
        send(
            &client,
            "PUT",
            path,
            &[],
            json!({"metadata": {"name": "web"}, "spec": {"replicas": replicas}}),
        )
        .await;
    }
    let log = sim.audit_since(mark);
    let seen: Vec<_> = log
        .iter()
        .map(|entry| {
            (
                entry.request.verb,
                entry.request.subresource.as_str(),
                entry.code,
                entry.changed,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("update", "scale", 200, false),
            ("update", "scale", 200, true)
        ]
    );
    assert_eq!(log[1].body().expect("a body")["spec"]["replicas"], 2);
    assert_eq!(log[1].response().expect("an answer")["spec"]["replicas"], 2);
    assert_eq!(log[1].version, Some(sim.version()));
}
