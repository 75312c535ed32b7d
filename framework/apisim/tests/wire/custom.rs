use boatswain_apisim::ApiSim;
use kube::Client;
use serde_json::{Value, json};

use crate::scene::{client, send, sim, widget, widget_crd};

const PATH: &str = "/apis/example.com/v1/namespaces/default/widgets";

fn installed() -> (ApiSim, Client) {
    let sim = sim();
    sim.create(widget_crd()).expect("installed");
    let client = client(&sim);
    (sim, client)
}

#[tokio::test(start_paused = true)]
async fn a_resource_is_served_from_its_definition_to_its_end() {
    let sim = sim();
    let client = client(&sim);
    assert_eq!(send(&client, "GET", PATH, &[], Value::Null).await.0, 404);
    let crd = sim.create(widget_crd()).expect("installed");
    assert_eq!(crd["status"]["conditions"][1]["type"], "Established");
    let (code, made) = send(
        &client,
        "POST",
        PATH,
        &[],
        widget("w", json!({"target": "web"})),
    )
    .await;
    assert_eq!((code, &made["spec"]["size"]), (201, &json!(1)), "{made}");
    sim.delete(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "",
        "widgets.example.com",
    )
    .expect("deleted");
    assert_eq!(send(&client, "GET", PATH, &[], Value::Null).await.0, 404);
    assert_eq!(
        sim.get(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            "",
            "widgets.example.com"
        )
        .expect("served"),
        None
    );
    sim.create(widget_crd()).expect("installed again");
    let (_, list) = send(&client, "GET", PATH, &[], Value::Null).await;
    assert_eq!(list["items"], json!([]), "its objects have gone with it");
}

#[tokio::test(start_paused = true)]
async fn deleting_a_definition_tells_its_watches_of_every_object_and_ends_them() {
    let (sim, client) = installed();
    send(
        &client,
        "POST",
        PATH,
        &[],
        widget("w", json!({"target": "web"})),
    )
    .await;
    let path = format!("{PATH}?watch=true&resourceVersion={}", sim.version());
    let watch = tokio::spawn({
        let client = client.clone();
        async move { crate::scene::send_raw(&client, "GET", &path, &[], Value::Null).await }
    });
    tokio::task::yield_now().await;
    sim.delete(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "",
        "widgets.example.com",
    )
    .expect("deleted");
    let (code, body) = watch.await.expect("no panic");
    let event: Value =
        serde_json::from_slice(body.split(|b| *b == b'\n').next().expect("a line")).expect("JSON");
    assert_eq!(
        (code, &event["type"], &event["object"]["metadata"]["name"]),
        (200, &json!("DELETED"), &json!("w"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_schema_refuses_what_it_does_not_describe() {
    let (_, client) = installed();
    for (spec, field) in [
        (json!({}), "spec.target"),
        (json!({"target": "Not_Valid"}), "spec.target"),
        (json!({"target": "web", "size": 10001}), "spec.size"),
        (json!({"target": "web", "size": -1}), "spec.size"),
        (json!({"target": "web", "size": "3"}), "spec.size"),
        (json!({"target": "web", "mode": "medium"}), "spec.mode"),
    ] {
        let (code, status) = send(&client, "POST", PATH, &[], widget("w", spec.clone())).await;
        assert_eq!(
            (code, &status["details"]["causes"][0]["field"]),
            (422, &json!(field)),
            "{spec}: {status}"
        );
        assert_eq!(status["details"]["group"], "example.com");
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_fields_are_pruned_warned_of_or_refused_as_asked() {
    let (_, client) = installed();
    let spec = json!({"target": "web", "colour": "red"});
    let (code, status) = send(
        &client,
        "POST",
        &format!("{PATH}?fieldValidation=Strict"),
        &[],
        widget("w", spec.clone()),
    )
    .await;
    assert_eq!(
        (code, &status["message"]),
        (
            400,
            &json!(
                "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: unknown field \"spec.colour\""
            )
        )
    );
    let (code, made) = send(&client, "POST", PATH, &[], widget("w", spec)).await;
    assert_eq!((code, made["spec"].get("colour")), (201, None));
}

#[tokio::test(start_paused = true)]
async fn status_and_spec_are_written_apart() {
    let (_, client) = installed();
    let mut first = widget("w", json!({"target": "web"}));
    first["status"] = json!({"size": 7});
    let (_, made) = send(&client, "POST", PATH, &[], first).await;
    assert_eq!(
        (made.get("status"), &made["metadata"]["generation"]),
        (None, &json!(1)),
        "a status is not created"
    );
    let mut with_status = made.clone();
    with_status["status"] =
        json!({"size": 2, "conditions": [{"type": "Synced", "status": "True"}]});
    with_status["spec"]["size"] = json!(9);
    let (code, after) = send(
        &client,
        "PUT",
        &format!("{PATH}/w/status"),
        &[],
        with_status,
    )
    .await;
    assert_eq!(
        (
            code,
            &after["spec"]["size"],
            &after["status"]["size"],
            &after["metadata"]["generation"]
        ),
        (200, &json!(1), &json!(2), &json!(1))
    );
    let headers = [("content-type", "application/merge-patch+json")];
    let (_, after) = send(
        &client,
        "PATCH",
        &format!("{PATH}/w"),
        &headers,
        json!({"spec": {"size": 4}, "status": {"size": 8}}),
    )
    .await;
    assert_eq!(
        (
            &after["spec"]["size"],
            &after["status"]["size"],
            &after["metadata"]["generation"]
        ),
        (&json!(4), &json!(2), &json!(2))
    );
    let accept = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    let (_, table) = send(&client, "GET", PATH, &accept, Value::Null).await;
    assert_eq!(table["rows"][0]["cells"], json!(["w", 4, "True"]));
}

#[tokio::test(start_paused = true)]
async fn a_custom_resource_is_scaled_by_the_paths_it_declares() {
    let (_, client) = installed();
    send(
        &client,
        "POST",
        PATH,
        &[],
        widget("w", json!({"target": "web"})),
    )
    .await;
    let (_, mut scale) = send(&client, "GET", &format!("{PATH}/w/scale"), &[], Value::Null).await;
    assert_eq!(scale["spec"]["replicas"], 1);
    scale["spec"]["replicas"] = json!(6);
    assert_eq!(
        send(
            &client,
            "PUT",
            &format!("{PATH}/w/scale"),
            &[],
            scale.clone()
        )
        .await
        .0,
        200
    );
    assert_eq!(
        send(&client, "PUT", &format!("{PATH}/w/scale"), &[], scale)
            .await
            .0,
        409,
        "its version is the object's"
    );
    let (_, after) = send(&client, "GET", &format!("{PATH}/w"), &[], Value::Null).await;
    assert_eq!(
        (&after["spec"]["size"], &after["metadata"]["generation"]),
        (&json!(6), &json!(2))
    );
}

#[tokio::test(start_paused = true)]
async fn an_update_without_a_version_is_refused() {
    let (_, client) = installed();
    send(
        &client,
        "POST",
        PATH,
        &[],
        widget("w", json!({"target": "web"})),
    )
    .await;
    let (code, status) = send(
        &client,
        "PUT",
        &format!("{PATH}/w"),
        &[],
        widget("w", json!({"target": "web"})),
    )
    .await;
    assert_eq!(
        (code, &status["details"]["causes"][0]["field"]),
        (422, &json!("metadata.resourceVersion"))
    );
}

#[tokio::test(start_paused = true)]
async fn server_side_apply_creates_what_is_absent_with_its_defaults() {
    let (_, client) = installed();
    let headers = [("content-type", "application/apply-patch+yaml")];
    let path = format!("{PATH}/w?fieldManager=me");
    let config = widget("w", json!({"target": "web"}));
    let (code, made) = send(&client, "PATCH", &path, &headers, config.clone()).await;
    assert_eq!((code, &made["spec"]["size"]), (201, &json!(1)), "{made}");
    assert_eq!(
        made["metadata"]["managedFields"][0]["fieldsV1"],
        json!({"f:spec": {"f:target": {}}})
    );
    let (code, again) = send(&client, "PATCH", &path, &headers, config.clone()).await;
    assert_eq!(
        (code, &again["metadata"]["resourceVersion"]),
        (200, &made["metadata"]["resourceVersion"])
    );
    let (code, _) = send(&client, "PATCH", &format!("{PATH}/w"), &headers, config).await;
    assert_eq!(code, 422, "whoever applies says who they are");
}
