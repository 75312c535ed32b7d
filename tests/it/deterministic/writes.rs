//! Guarantee 6, case by case: a run starts only on caches that show what the run before it wrote, by whatever request.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use boatswain::{
    ClientError, Clock, Context, Controller, Lister, Outcome, Reconciler, Running, Wiring,
};
use boatswain_apisim::Matcher;
use futures::future::BoxFuture;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Namespace, Pod, Secret, Service},
};
use kube::{
    Api, Resource, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    core::Expression,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Stage, end};

mod lost;

/// What the second run does.
type Act = Arc<dyn Fn(Context) -> BoxFuture<'static, Result<(), ClientError>> + Send + Sync>;
/// What a run sees of the caches.
type Look = Box<dyn Fn() -> Vec<String> + Send + Sync>;

fn act<F>(act: impl Fn(Context) -> F + Send + Sync + 'static) -> Act
where
    F: Future<Output = Result<(), ClientError>> + Send + 'static,
{
    Arc::new(move |cx| Box::pin(act(cx)))
}

/// Names, incarnations are left out, with the value of an annotation and whether they are being deleted.
fn shown<K: Resource>(list: Vec<Arc<K>>) -> Vec<String> {
    let show = |object: Arc<K>| {
        let value = object
            .annotations()
            .get("value")
            .cloned()
            .unwrap_or_default();
        let mark = if object.meta().deletion_timestamp.is_some() {
            "!"
        } else {
            ""
        };
        format!("{}{mark}={value}", object.name_any())
    };
    list.into_iter().map(show).collect()
}

fn look<K: Resource + DeserializeOwned + Send + Sync + 'static>(lister: Lister<K>) -> Look {
    Box::new(move || shown(lister.list().expect("synced")))
}

fn secrets(wiring: &mut Wiring<'_>) -> Look {
    look(wiring.lister::<Secret>())
}

/// Acts in its second run, and looks at the caches in each.
struct Writer {
    clock: Clock,
    act: Act,
    look: Look,
    runs: Runs,
}

type Runs = Arc<Mutex<Vec<(Instant, Vec<String>)>>>;

impl Reconciler<ConfigMap> for Writer {
    type Error = ClientError;

    async fn reconcile(&self, _: Arc<ConfigMap>, cx: &Context) -> Result<Outcome, ClientError> {
        let run = {
            let mut runs = self.runs.lock().expect("lock");
            runs.push((self.clock.now(), (self.look)()));
            runs.len()
        };
        match run {
            1 => Ok(Outcome::RequeueAfter(Duration::from_secs(5))),
            2 => {
                (self.act)(cx.clone()).await?;
                Ok(Outcome::RequeueAfter(Duration::from_millis(1)))
            }
            _ => Ok(Outcome::Done),
        }
    }
}

/// What became of the run after the write.
struct Played {
    /// Whether it had begun while all watches were held, for two seconds after the write.
    early: bool,
    /// What it saw.
    saw: Vec<String>,
    /// Times the server was asked for single objects meanwhile.
    reads: usize,
}

async fn play(
    stage: &Stage,
    reads: impl FnOnce(&mut Wiring<'_>) -> Look + Send + 'static,
    act: Act,
) -> Played {
    play_with(stage, reads, act, |_| {}).await
}

/// Plays with all watches held from before the write until two seconds after it; `meanwhile` is called in the middle.
async fn play_with(
    stage: &Stage,
    reads: impl FnOnce(&mut Wiring<'_>) -> Look + Send + 'static,
    act: Act,
    meanwhile: impl FnOnce(&Running),
) -> Played {
    stage.create("map").await;
    let runs = Runs::default();
    let controller = Controller::<ConfigMap>::named("writer")
        .resync(None)
        .reconciler({
            let (clock, runs) = (stage.clock.clone(), runs.clone());
            move |wiring| Writer {
                clock,
                act,
                look: reads(wiring),
                runs,
            }
        });
    let running = stage.start(controller).await;
    stage.clock.sleep(Duration::from_secs(4)).await;
    let count = || runs.lock().expect("lock").len();
    assert_eq!(count(), 1);
    let mark = stage.sim.audit_mark();
    let held = stage.sim.faults().stall_watches(Matcher::any());
    stage.clock.sleep(Duration::from_secs(2)).await;
    meanwhile(&running);
    stage.clock.sleep(Duration::from_secs(1)).await;
    let early = count() > 2;
    assert!(count() >= 2, "the write was made");
    held.release();
    stage.clock.sleep(Duration::from_secs(30)).await;
    let log = stage.sim.audit_since(mark);
    let reads = log
        .iter()
        // not those that ask whether the server is there
        .filter(|entry| entry.request.verb == "get" && !entry.request.resource.is_empty())
        .count();
    let saw = runs
        .lock()
        .expect("lock")
        .get(2)
        .expect("a third run")
        .1
        .clone();
    end(running).await;
    Played { early, saw, reads }
}

fn secret(name: &str, more: Value) -> Secret {
    let mut metadata = json!({ "name": name, "namespace": "default" });
    if let (Some(metadata), Value::Object(more)) = (metadata.as_object_mut(), more) {
        metadata.extend(more);
    }
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata });
    serde_json::from_value(secret).expect("a secret")
}

fn value(value: &str) -> Value {
    json!({ "annotations": { "value": value } })
}

fn pod(phase: &str) -> Value {
    let spec = json!({ "containers": [{ "name": "main", "image": "none" }] });
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "pod" }, "spec": spec, "status": { "phase": phase } })
}

async fn create<K>(stage: &Stage, object: Value) -> K
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned
        + serde::Serialize,
{
    let api: Api<K> = Api::namespaced(stage.client.clone(), "default");
    let object = serde_json::from_value(object).expect("an object");
    api.create(&PostParams::default(), &object)
        .await
        .expect("created")
}

fn as_value(object: &impl serde::Serialize) -> Value {
    serde_json::to_value(object).expect("json")
}

#[test]
fn g6_an_apply_that_changes_nothing_is_answered_with_the_old_version_and_not_waited_for() {
    Stage::play(1, |stage| async move {
        let applied = secret("a", value("1"));
        let params = PatchParams::apply("writer").force();
        let api: Api<Secret> = Api::namespaced(stage.client.clone(), "default");
        api.patch("a", &params, &Patch::Apply(&applied))
            .await
            .expect("applied");
        let again = act(move |cx| {
            let applied = applied.clone();
            async move { cx.apply(&applied).await.map(drop) }
        });
        let played = play(&stage, secrets, again).await;
        assert!(played.early && played.saw == ["a=1"], "{:?}", played.saw);
    });
}

#[test]
fn g6_what_is_scaled_is_waited_for_by_the_version_and_uid_of_the_deployment() {
    Stage::play(2, |stage| async move {
        let spec = json!({
            "replicas": 1, "selector": { "matchLabels": { "a": "b" } },
            "template": { "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [{ "name": "main", "image": "none" }] } },
        });
        let web = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" }, "spec": spec });
        let web: Deployment = create(&stage, web).await;
        let replicas = |wiring: &mut Wiring<'_>| -> Look {
            let lister = wiring.lister::<Deployment>();
            Box::new(move || {
                let found = lister.list().expect("synced").into_iter();
                found
                    .map(|web| format!("{:?}", web.spec.replicas))
                    .collect()
            })
        };
        let scale = act(move |cx| {
            let web = web.clone();
            async move { cx.scale(&web, 3).await }
        });
        let played = play(&stage, replicas, scale).await;
        assert!(
            !played.early && played.saw == ["Some(3)"],
            "{:?}",
            played.saw
        );
    });
}

#[test]
fn g6_what_is_deleted_is_waited_for_until_it_is_gone_or_with_finalizers_until_it_is_marked() {
    for (finalizers, expected) in [
        (json!([]), vec![]),
        (json!(["a.io/b"]), vec!["a!=".to_owned()]),
    ] {
        Stage::play(3, |stage| async move {
            let made = secret("a", json!({ "finalizers": finalizers }));
            let made: Secret = create(&stage, as_value(&made)).await;
            let delete = act(move |cx| {
                let made = made.clone();
                async move { cx.delete(&made).await }
            });
            let played = play(&stage, secrets, delete).await;
            assert!(!played.early && played.saw == expected, "{:?}", played.saw);
        });
    }
}

#[test]
fn g6_a_write_after_which_an_object_is_not_selected_any_more_is_waited_for_until_it_is_gone_from_the_cache()
 {
    Stage::play(4, |stage| async move {
        let made = secret("a", json!({ "labels": { "app": "web" } }));
        create::<Secret>(&stage, as_value(&made)).await;
        let web = |wiring: &mut Wiring<'_>| {
            let web = Expression::Equal("app".into(), "web".into());
            look(wiring.select::<Secret>(|all| all.labels(web)))
        };
        let relabel = act(|cx| async move {
            let other = secret("a", json!({ "labels": { "app": "other" } }));
            cx.apply(&other).await.map(drop)
        });
        let played = play(&stage, web, relabel).await;
        assert!(!played.early && played.saw.is_empty(), "{:?}", played.saw);
    });
    Stage::play(5, |stage| async move {
        create::<Pod>(&stage, pod("Running")).await;
        let status = json!({ "status": { "phase": "Running" } });
        let pods: Api<Pod> = Api::namespaced(stage.client.clone(), "default");
        pods.patch_status("pod", &PatchParams::default(), &Patch::Merge(status))
            .await
            .expect("runs");
        let running = |wiring: &mut Wiring<'_>| {
            look(wiring.select::<Pod>(|all| all.field("status.phase", "Running")))
        };
        let finish = act(|cx| async move {
            let pods: Api<Pod> = Api::namespaced(cx.client().clone(), "default");
            let status = json!({ "status": { "phase": "Succeeded" } });
            let (params, patch) = (PatchParams::default(), Patch::Merge(status));
            pods.patch_status("pod", &params, &patch)
                .await
                .expect("patched");
            Ok(())
        });
        let played = play(&stage, running, finish).await;
        assert!(!played.early && played.saw.is_empty(), "{:?}", played.saw);
    });
}

#[test]
fn g6_a_write_to_what_is_not_selected_before_or_after_is_not_waited_for() {
    Stage::play(6, |stage| async move {
        let web = |wiring: &mut Wiring<'_>| {
            let web = Expression::Equal("app".into(), "web".into());
            look(wiring.select::<Secret>(|all| all.labels(web)))
        };
        let other = act(|cx| async move { cx.create(&secret("a", json!({}))).await.map(drop) });
        let played = play(&stage, web, other).await;
        assert!(played.early && played.saw.is_empty(), "{:?}", played.saw);
    });
}

#[test]
fn g6_an_object_whose_name_the_server_made_up_is_waited_for() {
    Stage::play(7, |stage| async move {
        let make = act(|cx| async move {
            let mut made = secret("", json!({ "generateName": "made-" }));
            made.metadata.name = None;
            cx.create(&made).await.map(drop)
        });
        let played = play(&stage, secrets, make).await;
        assert!(!played.early && played.saw.len() == 1, "{:?}", played.saw);
    });
}

#[test]
fn g6_kinds_that_the_controller_does_not_read_are_not_waited_for() {
    Stage::play(8, |stage| async move {
        let make = act(|cx| async move {
            let ports = json!([{ "port": 80 }]);
            let service = json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "a", "namespace": "default" }, "spec": { "ports": ports } });
            let service: Service = serde_json::from_value(service).expect("a service");
            cx.create(&service).await.map(drop)
        });
        let played = play(&stage, secrets, make).await;
        assert!(played.early && played.reads == 0);
    });
}

#[test]
fn g6_objects_outside_of_namespaces_are_written_by_the_same_helpers_and_waited_for() {
    Stage::play(9, |stage| async move {
        let namespaces = |wiring: &mut Wiring<'_>| look(wiring.lister::<Namespace>());
        let write = act(|cx| async move {
            let made =
                json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "made" } });
            let made: Namespace = serde_json::from_value(made).expect("a namespace");
            let mut made = cx.create(&made).await?;
            made.annotations_mut().insert("value".into(), "1".into());
            cx.replace(&made).await.map(drop)
        });
        let played = play(&stage, namespaces, write).await;
        assert!(
            !played.early && played.saw.contains(&"made=1".to_owned()),
            "{:?}",
            played.saw
        );
    });
}

#[test]
fn g6_the_last_of_more_objects_than_are_remembered_one_by_one_is_waited_for() {
    for count in [65, 200] {
        Stage::play(10, |stage| async move {
            let write = act(move |cx| async move {
                for i in 0..count {
                    cx.create(&secret(&format!("secret-{i}"), json!({})))
                        .await?;
                }
                Ok(())
            });
            let played = play(&stage, secrets, write).await;
            assert!(!played.early);
            assert_eq!(played.saw.len(), count);
        });
    }
}

#[test]
fn g6_the_last_of_many_writes_to_one_object_is_waited_for() {
    Stage::play(11, |stage| async move {
        let write = act(|cx| async move {
            for i in 0..100 {
                cx.apply(&secret("a", value(&i.to_string()))).await?;
            }
            Ok(())
        });
        let played = play(&stage, secrets, write).await;
        assert!(!played.early && played.saw == ["a=99"], "{:?}", played.saw);
    });
}

#[test]
fn g6_an_object_that_a_run_deleted_and_made_again_is_waited_for_in_its_new_incarnation() {
    Stage::play(12, |stage| async move {
        let made: Secret = create(&stage, as_value(&secret("a", value("old")))).await;
        let again = act(move |cx| {
            let made = made.clone();
            async move {
                cx.delete(&made).await?;
                cx.create(&secret("a", value("new"))).await?;
                Ok(())
            }
        });
        let played = play(&stage, secrets, again).await;
        assert!(!played.early && played.saw == ["a=new"], "{:?}", played.saw);
    });
}

#[test]
fn g6_what_a_run_made_and_deleted_again_is_never_seen_by_the_next() {
    Stage::play(13, |stage| async move {
        let write = act(|cx| async move {
            let made = cx.create(&secret("a", json!({}))).await?;
            cx.delete(&made).await
        });
        let played = play(&stage, secrets, write).await;
        assert!(!played.early && played.saw.is_empty(), "{:?}", played.saw);
    });
}

#[test]
fn g6_writes_by_every_verb_and_subresource_through_the_contexts_client_are_waited_for() {
    fn deployments(cx: &Context) -> Api<Deployment> {
        Api::namespaced(cx.client().clone(), "default")
    }
    let merge = |patch: Value| Patch::Merge(patch);
    let annotate = json!({ "metadata": value("new") });
    let params = PatchParams::default;
    let acts: Vec<(&str, Act)> = vec![
        (
            "merge",
            act(move |cx| {
                let annotate = merge(annotate.clone());
                async move {
                    deployments(&cx)
                        .patch("web", &params(), &annotate)
                        .await
                        .map(drop)
                        .map_err(never)
                }
            }),
        ),
        (
            "replace",
            act(|cx| async move {
                let mut web = deployments(&cx).get("web").await.map_err(never)?;
                web.annotations_mut().insert("value".into(), "new".into());
                deployments(&cx)
                    .replace("web", &PostParams::default(), &web)
                    .await
                    .map(drop)
                    .map_err(never)
            }),
        ),
        (
            "patch of status",
            act(move |cx| async move {
                let status = merge(json!({ "status": { "observedGeneration": 7 } }));
                deployments(&cx)
                    .patch_status("web", &params(), &status)
                    .await
                    .map(drop)
                    .map_err(never)
            }),
        ),
        (
            "replacement of status",
            act(|cx| async move {
                let mut web = deployments(&cx).get("web").await.map_err(never)?;
                web.status.get_or_insert_default().observed_generation = Some(9);
                deployments(&cx)
                    .replace_status("web", &PostParams::default(), &web)
                    .await
                    .map(drop)
                    .map_err(never)
            }),
        ),
        (
            "patch of scale",
            act(move |cx| async move {
                let scale = merge(json!({ "spec": { "replicas": 5 } }));
                deployments(&cx)
                    .patch_scale("web", &params(), &scale)
                    .await
                    .map(drop)
                    .map_err(never)
            }),
        ),
        (
            "delete",
            act(|cx| async move {
                deployments(&cx)
                    .delete("web", &DeleteParams::default())
                    .await
                    .map(drop)
                    .map_err(never)
            }),
        ),
        (
            "delete collection",
            act(|cx| async move {
                let all = kube::api::ListParams::default();
                deployments(&cx)
                    .delete_collection(&DeleteParams::default(), &all)
                    .await
                    .map(drop)
                    .map_err(never)
            }),
        ),
    ];
    for (what, act) in acts {
        Stage::play(20, |stage| async move {
            let spec = json!({
                "replicas": 1, "selector": { "matchLabels": { "a": "b" } },
                "template": { "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [{ "name": "main", "image": "none" }] } },
            });
            let web = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" }, "spec": spec });
            create::<Deployment>(&stage, web).await;
            let versions = |wiring: &mut Wiring<'_>| -> Look {
                let lister = wiring.lister::<Deployment>();
                Box::new(move || {
                    let found = lister.list().expect("synced").into_iter();
                    found
                        .map(|web| web.resource_version().unwrap_or_default())
                        .collect()
                })
            };
            let played = play(&stage, versions, act).await;
            let web: Option<Deployment> = Api::namespaced(stage.client.clone(), "default")
                .get_opt("web")
                .await
                .expect("an answer");
            let now: Vec<_> = web
                .into_iter()
                .map(|web| web.resource_version().expect("one"))
                .collect();
            assert!(!played.early, "{what}");
            assert_eq!(played.saw, now, "{what}");
        });
    }
}

fn never(error: kube::Error) -> ClientError {
    panic!("the request succeeds: {error}")
}
