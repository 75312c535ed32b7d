//! What the framework writes for controllers: Events, finalizers, conditions, changes that others make at the same time.

use std::{sync::Arc, time::Duration};

use boatswain::{
    Cleanup, Context, Controller, Key, Note, Outcome, ReconcileError, Reconciler, Runnable, own,
};
use boatswain_tests::{Crew, Space, World, eventually};
use k8s_openapi::api::{
    core::v1::{ConfigMap, Namespace},
    events::v1::Event,
};
use kube::{Api, ResourceExt as _, api::ListParams};

/// Tells of its object and of its namespace, counts in a copy that its object owns, and cleans that up.
struct Scribe {
    maps: boatswain::Lister<ConfigMap>,
}

const COPY: &str = "copy";
const FINALIZER: &str = "example.com/scribe";

impl Reconciler<ConfigMap> for Scribe {
    type Error = ReconcileError;

    async fn reconcile(
        &self,
        map: Arc<ConfigMap>,
        cx: &Context,
    ) -> Result<Outcome, ReconcileError> {
        if map.name_any() != "text" {
            return Ok(Outcome::Done);
        }
        let note = Note::warning(map.as_ref(), "Copied", "copied again".repeat(200));
        cx.tell(&note.action("Copy"));
        let mut space = Namespace::default();
        space.metadata.name = map.namespace();
        cx.tell(&Note::normal(&space, "Copied", "something was copied").because_of(map.as_ref()));
        let copy = Key::new(map.namespace().as_deref(), COPY);
        if self.maps.get(&copy)?.is_none() {
            let mut made = ConfigMap::default();
            made.metadata.name = Some(COPY.into());
            own::control(map.as_ref(), &mut made)?;
            cx.apply(&made).await?;
        }
        cx.update_with_retry::<ConfigMap>(&copy, |copy| {
            let copies = copy.data.get_or_insert_default().entry("copies".into());
            let copies = copies.or_insert_with(|| "0".into());
            *copies = (copies.parse::<u32>().unwrap_or_default() + 1).to_string();
        })
        .await?;
        Ok(Outcome::RequeueAfter(Duration::from_millis(200)))
    }
}

impl Cleanup<ConfigMap> for Scribe {
    async fn cleanup(&self, map: Arc<ConfigMap>, cx: &Context) -> Result<Outcome, ReconcileError> {
        let copy = Key::new(map.namespace().as_deref(), COPY);
        if map.name_any() == "text"
            && let Some(copy) = self.maps.get(&copy)?
        {
            cx.delete(copy.as_ref()).await?;
        }
        Ok(Outcome::Done)
    }
}

fn controller() -> Controller<ConfigMap> {
    Controller::<ConfigMap>::named("scribe").finalizer(FINALIZER)
}

fn scribe() -> Runnable {
    controller().reconciler_with_cleanup(|wiring| Scribe {
        maps: wiring.lister::<ConfigMap>(),
    })
}

/// The Events of `scribe` in `namespace` about `object`.
async fn events(space: &Space, namespace: &str, object: &str) -> Vec<Event> {
    let api = Api::<Event>::namespaced(space.client().clone(), namespace);
    let events = api.list(&ListParams::default()).await;
    let events = events.expect("listed").items;
    let about = |event: &Event| {
        event.reason.as_deref() == Some("Copied")
            && event.regarding.as_ref().and_then(|o| o.name.as_deref()) == Some(object)
    };
    events.into_iter().filter(about).collect()
}

fn count(event: &Event) -> i32 {
    event.series.as_ref().map_or(1, |series| series.count)
}

async fn finalizers(space: &Space, name: &str) -> Option<Vec<String>> {
    let map = space
        .config_maps()
        .get_opt(name)
        .await
        .expect("an answer")?;
    Some(map.metadata.finalizers.unwrap_or_default())
}

async fn copies(space: &Space, at_least: u32) {
    eventually("it is copied", async || {
        let copy = space.config_maps().get_opt(COPY).await;
        let copy = copy.map_err(|error| error.to_string())?;
        let data = copy.and_then(|copy| copy.data).unwrap_or_default();
        let copies = data.get("copies").and_then(|n| n.parse::<u32>().ok());
        if copies.is_some_and(|copies| copies >= at_least) {
            Ok(())
        } else {
            Err(format!("{copies:?}"))
        }
    })
    .await;
}

pub(crate) async fn what_is_told_again_is_one_event_that_counts(world: &World) {
    let space = Space::create(&world.client().await, "events").await;
    let crew = Crew::start(world.kubeconfig(), Some(&space), vec![scribe()]).await;
    crew.ready().await;
    space.put("text", "x").await;
    copies(&space, 5).await;
    crew.stop().await;
    let told = events(&space, &space.name, "text").await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(count(&told[0]) >= 5, "{told:?}");
    assert_eq!(told[0].action.as_deref(), Some("Copy"));
    assert!(
        told[0]
            .note
            .as_ref()
            .is_some_and(|note| note.len() <= 1024 && note.ends_with('…'))
    );
    // where the server wants what is about an object outside of namespaces
    let mut of_space = events(&space, "default", &space.name).await;
    of_space.extend(events(&space, "kube-system", &space.name).await);
    assert_eq!(of_space.len(), 1, "{of_space:?}");
    assert_eq!(count(&of_space[0]), count(&told[0]));
    let related = of_space[0].related.as_ref().and_then(|o| o.name.as_deref());
    assert_eq!(related, Some("text"));
}

pub(crate) async fn an_object_is_cleaned_up_before_it_goes_and_code_without_cleanup_lets_it_go(
    world: &World,
) {
    let space = Space::create(&world.client().await, "finalizer").await;
    let crew = Crew::start(world.kubeconfig(), Some(&space), vec![scribe()]).await;
    crew.ready().await;
    for name in ["text", "kept"] {
        space.put(name, "x").await;
    }
    copies(&space, 1).await;
    let copy = space.config_maps().get(COPY).await.expect("there");
    assert!(
        copy.owner_references()
            .iter()
            .any(|o| o.controller == Some(true))
    );
    assert_eq!(
        finalizers(&space, "text").await,
        Some(vec![FINALIZER.to_owned()])
    );
    space.remove("text").await;
    for name in ["text", COPY] {
        eventually("it is cleaned up", async || {
            finalizers(&space, name).await.map_or(Ok(()), Err)
        })
        .await;
    }
    eventually("the other has the finalizer", async || {
        let on = finalizers(&space, "kept").await;
        if on.as_ref().is_some_and(|on| on.len() == 1) {
            Ok(())
        } else {
            Err(on)
        }
    })
    .await;
    crew.stop().await;

    space.remove("kept").await;
    assert!(finalizers(&space, "kept").await.is_some(), "it waits");
    let without = controller().reconciler(|_| Idle);
    let crew = Crew::start(world.kubeconfig(), Some(&space), vec![without]).await;
    eventually("it goes", async || {
        finalizers(&space, "kept").await.map_or(Ok(()), Err)
    })
    .await;
    crew.stop().await;
}

struct Idle;

impl Reconciler<ConfigMap> for Idle {
    type Error = ReconcileError;

    async fn reconcile(&self, _: Arc<ConfigMap>, _: &Context) -> Result<Outcome, ReconcileError> {
        Ok(Outcome::Done)
    }
}

/// Tells something new of its object at every look.
struct Chatter;

impl Reconciler<ConfigMap> for Chatter {
    type Error = ReconcileError;

    async fn reconcile(
        &self,
        map: Arc<ConfigMap>,
        cx: &Context,
    ) -> Result<Outcome, ReconcileError> {
        cx.event(map.as_ref(), "Copied", format!("at {}", cx.id()));
        Ok(Outcome::RequeueAfter(Duration::from_millis(100)))
    }
}

pub(crate) async fn a_controller_that_may_not_write_events_works_and_counts_them(world: &World) {
    let space = Space::create(&world.client().await, "mute").await;
    space.let_view().await;
    let chatter = Controller::<ConfigMap>::named("chatter").reconciler(|_| Chatter);
    let crew = Crew::start(world.viewer_kubeconfig(), Some(&space), vec![chatter]).await;
    crew.ready().await;
    space.put("text", "x").await;
    eventually(
        "it goes on, and what it may not tell is counted",
        async || {
            let runs = crew.metric("controller_reconcile_total", &[r#"result="requeue_after""#]);
            let dropped = crew.metric("event_recorder_dropped_total", &[r#"reason="forbidden""#]);
            if runs >= 10.0 && dropped >= 3.0 {
                Ok(())
            } else {
                Err((runs, dropped))
            }
        },
    )
    .await;
    crew.stop().await;
    let left = events(&space, &space.name, "text").await;
    assert!(left.is_empty(), "{left:?}");
    space.let_no_more().await;
}
