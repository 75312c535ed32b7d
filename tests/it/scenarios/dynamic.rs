//! A controller of a kind that is made up while it runs.

use boatswain::Kind;
use boatswain_tests::{Crew, Space, World, eventually};
use k8s_openapi::{
    api::events::v1::Event,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams, PostParams},
    core::DynamicObject,
};

use super::mirror::crd;

// the lesson itself is what is tested
#[path = "../../../examples/dynamic.rs"]
#[allow(dead_code, unreachable_pub, reason = "its main is not called here")]
pub(crate) mod lesson;

/// Buoys, of a group that nothing else uses.
struct Buoys {
    kind: Kind,
    kinds: Api<CustomResourceDefinition>,
    objects: Api<DynamicObject>,
}

impl Buoys {
    fn of(space: &Space) -> Self {
        let group = format!("{}.example.com", space.name);
        let kind = Kind::new(group, "v1", "Buoy", "buoys");
        let client = space.client().clone();
        Self {
            kinds: Api::all(client.clone()),
            objects: Api::namespaced_with(client, &space.name, &kind.api_resource()),
            kind,
        }
    }

    async fn install(&self) {
        let crd = crd(&self.kind.group);
        let made = self.kinds.create(&PostParams::default(), &crd).await;
        made.expect("a CRD");
    }

    /// Lays one out that may be as old as `ttl`.
    async fn lay(&self, name: &str, ttl: &str) {
        let mut buoy = DynamicObject::new(name, &self.kind.api_resource());
        let annotations = buoy.annotations_mut();
        annotations.insert("example.io/ttl".into(), ttl.into());
        // the server may not serve the kind at once
        eventually("a buoy is laid out", async || {
            let made = self.objects.create(&PostParams::default(), &buoy).await;
            made.map_err(|error| error.to_string())
        })
        .await;
    }

    async fn is_dated(&self, name: &str) {
        eventually("the controller has written into it", async || {
            let buoy = self.objects.get(name).await.map_err(|e| e.to_string())?;
            let dated = buoy.annotations().contains_key("example.io/expires");
            dated.then_some(()).ok_or(format!("{buoy:?}"))
        })
        .await;
    }
}

pub(crate) async fn a_controller_of_a_kind_made_at_run_time_works_before_and_after_its_crd_comes_back(
    world: &World,
) {
    let space = Space::create(&world.client().await, "dynamic").await;
    let buoys = Buoys::of(&space);
    let controller = lesson::controller(buoys.kind.clone());
    let crew = Crew::start(world.kubeconfig(), Some(&space), vec![controller]).await;
    let missing = async || {
        eventually("the missing kind is named", async || {
            let (ready, page) = crew.observer().ready();
            let named = page.lines().any(|line| {
                line.starts_with("[-]controller/janitor-buoys") && line.contains("does not know it")
            });
            (!ready && named).then_some(()).ok_or(page)
        })
        .await;
    };
    missing().await;

    buoys.install().await;
    buoys.lay("red", "1h").await;
    buoys.is_dated("red").await;
    crew.ready().await;
    let name = format!("janitor-{}", buoys.kind.resource());
    let handle = crew.observer().controller(&name).expect("a controller");
    let key = boatswain::Key::new(Some(&space.name), "red");
    eventually("its run is explained", async || {
        let explained = handle.explain(&key);
        let last = explained.last.as_ref().filter(|last| last.seen.is_some());
        last.map(drop).ok_or(explained.to_string())
    })
    .await;
    let label = format!("controller=\"{name}\"");
    let runs = crew.metric("controller_runtime_reconcile_total", &[&label]);
    assert!(runs >= 1.0, "{}", crew.observer().metrics());

    buoys.lay("brief", "1s").await;
    eventually("what is too old goes, and one is told so", async || {
        let left = buoys.objects.get_opt("brief").await;
        let left = left.map_err(|error| error.to_string())?;
        let events = Api::<Event>::namespaced(space.client().clone(), &space.name);
        let events = events.list(&ListParams::default()).await;
        let events = events.map_err(|error| error.to_string())?.items;
        let told = events.iter().any(|event| {
            let regarding = event.regarding.as_ref();
            event.reason.as_deref() == Some("Expired")
                && regarding.is_some_and(|it| it.kind.as_deref() == Some("Buoy"))
        });
        let wanted = left.is_none() && told;
        wanted.then_some(()).ok_or(format!("{left:?} {events:?}"))
    })
    .await;

    let crd = format!("buoys.{}", buoys.kind.group);
    let deleted = buoys.kinds.delete(&crd, &DeleteParams::default()).await;
    deleted.expect("deleted");
    missing().await;
    buoys.install().await;
    buoys.lay("green", "1h").await;
    buoys.is_dated("green").await;
    crew.ready().await;
    crew.stop().await;
}
