use k8s_openapi::api::{
    apps::v1::Deployment,
    coordination::v1::Lease,
    core::v1::{ConfigMap, Event, Namespace},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
};
use serde_json::{Value, json};

use crate::scene::{client, deployment, deployment_json, map, send, sim};

fn code(error: kube::Error) -> (u16, String, String) {
    match error {
        kube::Error::Api(status) => (status.code, status.reason.clone(), status.message.clone()),
        other => panic!("not an answer of the server: {other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_created_object_has_what_the_server_gives_it() {
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&sim()));
    let made = maps
        .create(&PostParams::default(), &map("a", &[("k", "v")]))
        .await
        .expect("created");
    assert!(made.uid().is_some_and(|uid| uid.len() == 36));
    assert!(made.resource_version().is_some());
    assert_eq!(
        made.creation_timestamp().expect("a time").0.to_string(),
        "2023-11-14T22:13:20Z"
    );
    let again = maps
        .create(&PostParams::default(), &map("a", &[]))
        .await
        .expect_err("exists");
    assert_eq!(
        code(again),
        (
            409,
            "AlreadyExists".into(),
            "configmaps \"a\" already exists".into()
        )
    );
}

#[tokio::test(start_paused = true)]
async fn generated_names_are_distinct() {
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&sim()));
    let mut one = map("", &[]);
    one.metadata.name = None;
    one.metadata.generate_name = Some("job-".into());
    let a = maps
        .create(&PostParams::default(), &one)
        .await
        .expect("created");
    let b = maps
        .create(&PostParams::default(), &one)
        .await
        .expect("created");
    assert!(a.name_any().starts_with("job-") && a.name_any() != b.name_any());
}

#[tokio::test(start_paused = true)]
async fn a_missing_namespace_is_not_found() {
    let client = client(&sim());
    let maps: Api<ConfigMap> = Api::namespaced(client, "nowhere");
    let error = maps
        .create(&PostParams::default(), &map("a", &[]))
        .await
        .expect_err("no namespace");
    assert_eq!(
        code(error),
        (
            404,
            "NotFound".into(),
            "namespaces \"nowhere\" not found".into()
        )
    );
}

#[tokio::test(start_paused = true)]
async fn a_stale_version_conflicts_and_an_unchanged_update_keeps_the_version() {
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&sim()));
    let first = maps
        .create(&PostParams::default(), &map("a", &[("k", "1")]))
        .await
        .expect("created");
    let mut changed = first.clone();
    changed.data = Some([("k".to_owned(), "2".to_owned())].into());
    let second = maps
        .replace("a", &PostParams::default(), &changed)
        .await
        .expect("replaced");
    assert_ne!(first.resource_version(), second.resource_version());
    let (code, reason, message) = code(
        maps.replace("a", &PostParams::default(), &changed)
            .await
            .expect_err("stale"),
    );
    assert_eq!((code, reason.as_str()), (409, "Conflict"));
    assert!(
        message.starts_with(
            "Operation cannot be fulfilled on configmaps \"a\": the object has been modified"
        ),
        "{message}"
    );
    let same = maps
        .replace("a", &PostParams::default(), &second)
        .await
        .expect("unchanged");
    assert_eq!(same.resource_version(), second.resource_version());
}

#[tokio::test(start_paused = true)]
async fn an_update_that_names_another_uid_conflicts() {
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&sim()));
    let mut object = maps
        .create(&PostParams::default(), &map("a", &[]))
        .await
        .expect("created");
    object.metadata.uid = Some("11111111-1111-1111-1111-111111111111".into());
    object.metadata.resource_version = None;
    let error = maps
        .replace("a", &PostParams::default(), &object)
        .await
        .expect_err("another object");
    assert_eq!(code(error).0, 409);
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_only_replaced_at_a_known_version() {
    let leases: Api<Lease> = Api::default_namespaced(client(&sim()));
    let lease: Lease = serde_json::from_value(json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}})).expect("a lease");
    let made = leases
        .create(&PostParams::default(), &lease)
        .await
        .expect("created");
    assert_eq!(
        code(
            leases
                .replace("l", &PostParams::default(), &lease)
                .await
                .expect_err("no version")
        )
        .0,
        422
    );
    let other: Lease =
        serde_json::from_value(json!({"metadata": {"name": "other"}})).expect("a lease");
    leases
        .replace("other", &PostParams::default(), &other)
        .await
        .expect("an absent lease is created");
    leases
        .replace("l", &PostParams::default(), &made)
        .await
        .expect("at its version");
}

#[tokio::test(start_paused = true)]
async fn generation_rises_with_the_spec_and_not_with_the_status() {
    let sim = sim();
    let deployments: Api<Deployment> = Api::default_namespaced(client(&sim));
    deployments
        .create(&PostParams::default(), &deployment("web", 1))
        .await
        .expect("created");
    let patch = |value: Value| Patch::Merge(value);
    let after = deployments
        .patch(
            "web",
            &PatchParams::default(),
            &patch(json!({"metadata": {"labels": {"a": "b"}}})),
        )
        .await
        .expect("patched");
    assert_eq!(after.metadata.generation, Some(1));
    let after = deployments
        .patch(
            "web",
            &PatchParams::default(),
            &patch(json!({"spec": {"replicas": 3}})),
        )
        .await
        .expect("patched");
    assert_eq!(after.metadata.generation, Some(2));
    let status =
        json!({"spec": {"replicas": 9}, "status": {"replicas": 3, "observedGeneration": 2}});
    let after = deployments
        .patch_status("web", &PatchParams::default(), &patch(status))
        .await
        .expect("patched");
    assert_eq!(after.metadata.generation, Some(2));
    assert_eq!(
        after.spec.replicas,
        Some(3),
        "the status subresource leaves the spec alone"
    );
    let both = json!({"spec": {"replicas": 4}, "status": {"replicas": 99}});
    let after = deployments
        .patch("web", &PatchParams::default(), &patch(both))
        .await
        .expect("patched");
    assert_eq!(
        after.status.expect("a status").replicas,
        Some(3),
        "the object itself leaves the status alone"
    );
    assert_eq!(after.metadata.generation, Some(3));
}

#[tokio::test(start_paused = true)]
async fn a_scale_carries_the_preconditions_of_its_deployment() {
    let client = client(&sim());
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let made = deployments
        .create(&PostParams::default(), &deployment("web", 1))
        .await
        .expect("created");
    let scale = deployments.get_scale("web").await.expect("a scale");
    assert_eq!(
        (scale.uid(), scale.resource_version()),
        (made.uid(), made.resource_version())
    );
    let path = "/apis/apps/v1/namespaces/default/deployments/web/scale?fieldManager=scaler";
    let with = |uid: &str, version: &str, replicas: i64| json!({"metadata": {"name": "web", "namespace": "default", "uid": uid, "resourceVersion": version}, "spec": {"replicas": replicas}});
    let (uid, version) = (
        made.uid().expect("a uid"),
        made.resource_version().expect("a version"),
    );
    let (code, same) = send(&client, "PUT", path, &[], with(&uid, &version, 1)).await;
    assert_eq!(
        (code, same["metadata"]["resourceVersion"].as_str()),
        (200, Some(version.as_str())),
        "no change, no new version"
    );
    let (code, scaled) = send(&client, "PUT", path, &[], with(&uid, &version, 5)).await;
    assert_eq!((code, &scaled["spec"]["replicas"]), (200, &json!(5)));
    assert_eq!(scaled["status"]["selector"], "app=web");
    assert_eq!(
        send(&client, "PUT", path, &[], with(&uid, &version, 6))
            .await
            .0,
        409,
        "a stale version"
    );
    let (code, status) = send(&client, "PUT", path, &[], with("another", "", 6)).await;
    assert_eq!(
        (code, &status["reason"]),
        (409, &json!("Conflict")),
        "another uid"
    );
    assert_eq!(
        send(&client, "PUT", path, &[], with("", "", 7)).await.0,
        200,
        "without preconditions"
    );
    assert_eq!(
        send(&client, "PUT", path, &[], with("", "", -1)).await.0,
        422
    );
    let after = deployments.get("web").await.expect("there");
    assert_eq!(after.metadata.generation, Some(3));
    let owner = after
        .managed_fields()
        .iter()
        .find(|entry| entry.manager.as_deref() == Some("scaler"))
        .expect("an entry");
    assert_eq!(owner.subresource.as_deref(), Some("scale"));
    assert_eq!(
        serde_json::to_value(&owner.fields_v1).expect("fields"),
        json!({"f:spec": {"f:replicas": {}}})
    );
}

#[tokio::test(start_paused = true)]
async fn a_failed_test_in_a_json_patch_is_unprocessable() {
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&sim()));
    maps.create(&PostParams::default(), &map("a", &[("k", "1")]))
        .await
        .expect("created");
    let (path, headers) = (
        "/api/v1/namespaces/default/configmaps/a",
        [("content-type", "application/json-patch+json")],
    );
    let patch = |expected: &str| json!([{"op": "test", "path": "/data/k", "value": expected}, {"op": "replace", "path": "/data/k", "value": "2"}]);
    let client = maps.into_client();
    let (code, status) = send(&client, "PATCH", path, &headers, patch("9")).await;
    assert_eq!((code, &status["reason"]), (422, &json!("Invalid")));
    let (code, object) = send(&client, "PATCH", path, &headers, patch("1")).await;
    assert_eq!((code, &object["data"]["k"]), (200, &json!("2")));
}

#[tokio::test(start_paused = true)]
async fn finalizers_hold_an_object_until_they_are_gone() {
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&sim()));
    let mut held = map("a", &[]);
    held.metadata.finalizers = Some(vec!["example.com/hold".into()]);
    maps.create(&PostParams::default(), &held)
        .await
        .expect("created");
    let marked = maps
        .delete("a", &DeleteParams::default())
        .await
        .expect("marked");
    let marked = marked.left().expect("the object, not a status");
    assert!(marked.metadata.deletion_timestamp.is_some());
    let add =
        Patch::Merge(json!({"metadata": {"finalizers": ["example.com/hold", "example.com/late"]}}));
    assert_eq!(
        code(
            maps.patch("a", &PatchParams::default(), &add)
                .await
                .expect_err("too late")
        )
        .0,
        422
    );
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    maps.patch("a", &PatchParams::default(), &free)
        .await
        .expect("released");
    assert!(maps.get_opt("a").await.expect("an answer").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_deletion_honours_its_preconditions() {
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&sim()));
    let made = maps
        .create(&PostParams::default(), &map("a", &[]))
        .await
        .expect("created");
    let other = DeleteParams {
        preconditions: Some(Preconditions {
            uid: Some("x".into()),
            resource_version: None,
        }),
        ..Default::default()
    };
    assert_eq!(
        code(maps.delete("a", &other).await.expect_err("another uid")).0,
        409
    );
    let own = DeleteParams {
        preconditions: Some(Preconditions {
            uid: made.uid(),
            resource_version: None,
        }),
        ..Default::default()
    };
    let status = maps
        .delete("a", &own)
        .await
        .expect("deleted")
        .right()
        .expect("a status");
    assert!(status.is_success());
}

#[tokio::test(start_paused = true)]
async fn invalid_deployments_are_refused_field_by_field() {
    let client = client(&sim());
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let mut bad = deployment_json("web", -1);
    bad["spec"]["selector"]["matchLabels"] = json!({"app": "other"});
    let (code, status) = send(&client, "POST", path, &[], bad).await;
    assert_eq!(code, 422);
    let fields: Vec<&str> = status["details"]["causes"]
        .as_array()
        .expect("causes")
        .iter()
        .filter_map(|c| c["field"].as_str())
        .collect();
    assert_eq!(fields, ["spec.replicas", "spec.template.metadata.labels"]);
    let mut unnamed = deployment_json("Not_A_Name", 1);
    let (code, status) = send(&client, "POST", path, &[], std::mem::take(&mut unnamed)).await;
    assert_eq!(code, 422, "{status}");
}

#[tokio::test(start_paused = true)]
async fn an_event_is_the_same_object_in_both_versions() {
    let sim = sim();
    let client = client(&sim);
    let events: Api<k8s_openapi::api::events::v1::Event> = Api::default_namespaced(client.clone());
    let event = serde_json::from_value(json!({
        "metadata": {"name": "e1"}, "regarding": {"kind": "Deployment", "name": "web", "namespace": "default"}, "note": "scaled",
        "reason": "Scaled", "type": "Normal", "action": "Scale", "reportingController": "c", "reportingInstance": "c-1",
        "eventTime": "2023-11-14T22:13:20.000000Z",
    }))
    .expect("an event");
    events
        .create(&PostParams::default(), &event)
        .await
        .expect("created");
    let core: Api<Event> = Api::default_namespaced(client);
    let found = core
        .list(&kube::api::ListParams::default().fields("involvedObject.name=web"))
        .await
        .expect("listed");
    assert_eq!(found.items[0].message.as_deref(), Some("scaled"));
    assert_eq!(found.items[0].reporting_component.as_deref(), Some("c"));
    let patch = Patch::Merge(
        json!({"series": {"count": 2, "lastObservedTime": "2023-11-14T22:13:21.000000Z"}}),
    );
    events
        .patch("e1", &PatchParams::default(), &patch)
        .await
        .expect("patched");
    assert_eq!(
        core.get("e1")
            .await
            .expect("there")
            .series
            .and_then(|s| s.count),
        Some(2)
    );
}

#[tokio::test(start_paused = true)]
async fn server_side_apply_names_rivals_and_keeps_versions_of_nothing_changed() {
    let deployments: Api<Deployment> = Api::default_namespaced(client(&sim()));
    let apply = |manager: &str| PatchParams::apply(manager);
    let intent = |replicas: i64| Patch::Apply(deployment_json("web", replicas));
    let first = deployments
        .patch("web", &apply("one"), &intent(1))
        .await
        .expect("created");
    let again = deployments
        .patch("web", &apply("one"), &intent(1))
        .await
        .expect("unchanged");
    assert_eq!(first.resource_version(), again.resource_version());
    let rival = Patch::Apply(
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 5}}),
    );
    let (status, reason, message) = code(
        deployments
            .patch("web", &apply("two"), &rival)
            .await
            .expect_err("a rival"),
    );
    assert_eq!((status, reason.as_str()), (409, "Conflict"));
    assert_eq!(
        message,
        "Apply failed with 1 conflict: conflict with \"one\" using apps/v1: .spec.replicas"
    );
    let forced = deployments
        .patch("web", &apply("two").force(), &rival)
        .await
        .expect("forced");
    assert_eq!(forced.spec.replicas, Some(5));
}

#[tokio::test(start_paused = true)]
async fn a_namespace_takes_its_objects_with_it() {
    let sim = sim();
    let client = client(&sim);
    let world = sim.world(Default::default());
    let spaces: Api<Namespace> = Api::all(client.clone());
    let space: Namespace =
        serde_json::from_value(json!({"metadata": {"name": "team"}})).expect("a namespace");
    spaces
        .create(&PostParams::default(), &space)
        .await
        .expect("created");
    let maps: Api<ConfigMap> = Api::namespaced(client, "team");
    maps.create(&PostParams::default(), &map("a", &[]))
        .await
        .expect("created");
    spaces
        .delete("team", &DeleteParams::default())
        .await
        .expect("marked");
    let (status, reason, _) = code(
        maps.create(&PostParams::default(), &map("b", &[]))
            .await
            .expect_err("ending"),
    );
    assert_eq!((status, reason.as_str()), (403, "Forbidden"));
    world.settle();
    assert!(spaces.get_opt("team").await.expect("an answer").is_none());
    assert!(maps.get_opt("a").await.expect("an answer").is_none());
}
