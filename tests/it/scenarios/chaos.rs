//! Servers that die and histories that are forgotten.

use std::{
    collections::HashMap,
    convert::Infallible,
    sync::{Arc, Mutex},
};

use boatswain::{Context, Controller, Outcome, Reconciler, Runnable};
use boatswain_tests::{
    Crew, Proxy, Space, World,
    audit::{replicas_written, scale_writes},
    autoscaler, deployment, eventually, install, redirected,
};
use futures::{StreamExt as _, stream};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, CustomResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use podautoscaler::api::PodAutoscaler;
use serde_json::json;

const FLEET: usize = 200;

fn name(i: usize) -> String {
    format!("web-{i:03}")
}

/// Creates `count` Deployments with one replica and as many PodAutoscalers that want two.
async fn fleet(space: &Space, count: usize) {
    let (deployments, autoscalers) = (space.deployments(), space.autoscalers());
    stream::iter(0..count)
        .for_each_concurrent(16, async |i| {
            let post = PostParams::default();
            deployments
                .create(&post, &deployment(&name(i), 1))
                .await
                .expect("a Deployment");
            let pa = autoscaler(&name(i), &name(i), 2);
            autoscalers
                .create(&post, &pa)
                .await
                .expect("a PodAutoscaler");
        })
        .await;
}

/// Waits until Deployment `i` of `count` asks for `wanted(i)` replicas.
async fn converged(space: &Space, count: usize, wanted: impl Fn(usize) -> i32) {
    eventually("the whole fleet has converged", async || {
        let all = space
            .deployments()
            .list(&ListParams::default())
            .await
            .map_err(|e| e.to_string())?;
        let found: HashMap<_, _> = all
            .items
            .into_iter()
            .map(|d| (d.metadata.name.unwrap_or_default(), d.spec.replicas))
            .collect();
        let behind: Vec<_> = (0..count)
            .filter(|i| found.get(&name(*i)) != Some(&Some(wanted(*i))))
            .collect();
        if behind.is_empty() {
            Ok(())
        } else {
            Err(format!("{} are behind: {behind:?}", behind.len()))
        }
    })
    .await;
}

/// Sets the wanted replicas of PodAutoscaler `i`, through whatever happens to the server.
async fn ask(client: &Client, space: &Space, i: usize, replicas: i32) {
    let api = Api::<PodAutoscaler>::namespaced(client.clone(), &space.name);
    let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
    eventually("the change is accepted", async || {
        api.patch(&name(i), &PatchParams::default(), &patch)
            .await
            .map_err(|e| e.to_string())
    })
    .await;
}

pub(crate) async fn a_killed_server_loses_no_change_of_two_hundred(world: &World) {
    let client = world.client().await;
    let space = Space::create(&client, "kill").await;
    fleet(&space, FLEET).await;
    let crew = Crew::podautoscaler(world, &space).await;
    converged(&space, FLEET, |_| 2).await;

    let changing = tokio::spawn({
        let (client, space) = (client.clone(), space.clone());
        async move {
            stream::iter(0..FLEET)
                .for_each_concurrent(4, async |i| {
                    ask(&client, &space, i, 3 + (i % 5) as i32).await
                })
                .await;
        }
    });
    // in the middle of the changes
    eventually("some changes are through", async || {
        let seen = scale_writes(&world.requests().await, &space.name).len();
        if seen > FLEET + 20 { Ok(()) } else { Err(seen) }
    })
    .await;
    world.kill().await;
    world.revive().await;
    changing.await.expect("all changes are made");
    converged(&space, FLEET, |i| 3 + (i % 5) as i32).await;
    crew.ready().await;
    crew.stop().await;

    let writes = scale_writes(&world.requests().await, &space.name);
    for i in 0..FLEET {
        let history = replicas_written(&writes, &name(i));
        // the answer to one write may have died with the server; nothing is ever written that was not asked for
        let target = i64::from(3 + (i % 5) as i32);
        assert!(
            history == [2, target] || history == [2],
            "{}: one accepted write per change, in order; got {history:?}",
            name(i)
        );
    }
    let unanswered = (0..FLEET)
        .filter(|i| replicas_written(&writes, &name(*i)).len() == 1)
        .count();
    assert!(unanswered <= 8, "{unanswered} writes are not in the record");
}

/// Writes down the runs of each key, beside the controller under test and on the same informers.
#[derive(Clone, Default)]
struct Witness(Arc<Mutex<Runs>>);

/// Of each key: why it ran, on which version.
type Runs = HashMap<String, Vec<(String, Option<String>)>>;

impl Reconciler<PodAutoscaler> for Witness {
    type Error = Infallible;

    async fn reconcile(&self, pa: Arc<PodAutoscaler>, cx: &Context) -> Result<Outcome, Infallible> {
        let run = (
            cx.causes().to_string(),
            pa.metadata.resource_version.clone(),
        );
        let name = pa.metadata.name.clone().unwrap_or_default();
        self.0
            .lock()
            .expect("lock")
            .entry(name)
            .or_default()
            .push(run);
        Ok(Outcome::Done)
    }
}

impl Witness {
    fn controller(&self) -> Runnable {
        let witness = self.clone();
        Controller::<PodAutoscaler>::named("witness")
            // a second look without any change is not what is counted here
            .resync(None)
            .reconciler(|_| witness)
    }

    fn runs(&self) -> Runs {
        self.0.lock().expect("lock").clone()
    }
}

pub(crate) async fn an_expired_watch_relists_and_unchanged_keys_do_not_run(world: &World) {
    const COUNT: usize = 40;
    const CHANGED: usize = 5;
    let client = world.client().await;
    let space = Space::create(&client, "expired").await;
    fleet(&space, COUNT).await;

    let proxy = Proxy::before(world.address()).await.expect("a proxy");
    let dir = tempfile::tempdir().expect("a folder");
    let through_proxy = dir.path().join("kubeconfig");
    redirected(
        world.kubeconfig(),
        world.address(),
        proxy.address(),
        &through_proxy,
    );
    let witness = Witness::default();
    let controllers = vec![podautoscaler::controller(), witness.controller()];
    let crew = Crew::start(&through_proxy, Some(&space), controllers).await;
    crew.ready().await;
    converged(&space, COUNT, |_| 2).await;
    for i in 0..COUNT {
        space.is_settled(&name(i), 2).await;
    }
    eventually("nothing runs any more", async || {
        let before = witness.runs();
        boatswain::Clock::system()
            .sleep(std::time::Duration::from_millis(1500))
            .await;
        if before == witness.runs() {
            Ok(())
        } else {
            Err("still running")
        }
    })
    .await;
    let before = witness.runs();

    // the watch hears nothing of what happens now, and what it missed is forgotten before it can ask
    proxy.hold();
    for i in 0..CHANGED {
        ask(&client, &space, i, 6).await;
    }
    let deaf = |runs: &Runs| (0..CHANGED).all(|i| runs.get(&name(i)) == before.get(&name(i)));
    assert!(
        deaf(&witness.runs()),
        "the proxy lets news through: {:#?}",
        witness.runs()
    );
    world.compact().await;
    world.kill().await;
    world.revive().await;
    assert!(
        deaf(&witness.runs()),
        "the proxy lets news through: {:#?}",
        witness.runs()
    );
    proxy.release();

    converged(&space, COUNT, |i| if i < CHANGED { 6 } else { 2 }).await;
    for i in 0..CHANGED {
        space.is_synced(&name(i), 6).await;
    }
    let expired = crew.metric("reflector_relists_total", &["reason=\"expired\""]);
    let page = crew.observer().metrics();
    let reflectors: Vec<_> = page
        .lines()
        .filter(|line| line.starts_with("reflector_"))
        .collect();
    assert!(expired >= 1.0, "no watch expired: {reflectors:#?}");
    let after = witness.runs();
    for i in CHANGED..COUNT {
        assert_eq!(
            after.get(&name(i)),
            before.get(&name(i)),
            "{} ran although nothing about it changed",
            name(i)
        );
    }
    crew.stop().await;
}

pub(crate) async fn a_kind_that_is_deleted_and_comes_back_is_worked_on_again(world: &World) {
    let client = world.client().await;
    let space = Space::create(&client, "kind").await;
    space.deploy("web", 1).await;
    space.autoscale("web", 2).await;
    let crew = Crew::podautoscaler(world, &space).await;
    space.has_replicas("web", 2).await;
    space.is_synced("web", 2).await;

    let kinds = Api::<CustomResourceDefinition>::all(client.clone());
    let name = PodAutoscaler::crd_name();
    let deleted = kinds.delete(name, &DeleteParams::default()).await;
    deleted.expect("deleted");
    eventually("the kind is gone", async || {
        match kinds.get_opt(name).await {
            Ok(None) => Ok(()),
            other => Err(other.map(|kind| kind.is_some())),
        }
    })
    .await;
    eventually("readiness names the kind that is missing", async || {
        let (_, page) = crew.observer().ready();
        let named = |line: &str| line.starts_with("[-]") && line.contains("podautoscalers");
        if page.lines().any(named) {
            Ok(())
        } else {
            Err(page)
        }
    })
    .await;
    assert_eq!(
        space.replicas("web").await,
        Some(2),
        "a workload went with its kind"
    );

    install::<PodAutoscaler>(&client).await;
    let wish = autoscaler("web", "web", 4);
    eventually("an object of the kind is made", async || {
        let made = space
            .autoscalers()
            .create(&PostParams::default(), &wish)
            .await;
        made.map(drop).map_err(|error| error.to_string())
    })
    .await;
    space.has_replicas("web", 4).await;
    space.is_synced("web", 4).await;
    crew.ready().await;
    crew.stop().await;
}
