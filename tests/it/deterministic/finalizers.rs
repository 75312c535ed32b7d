//! Objects whose controller cleans up before they go.

use boatswain::{Cleanup, Kind, ReconcileError, own};
use boatswain_apisim::{Matcher, Rejection};
use k8s_openapi::api::core::v1::Secret;
use kube::core::DynamicObject;

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const FINALIZER: &str = "boatswain/cleaner";

/// Remembers what it was called with, by the names of objects, and cleans up at the `patience`-th try.
#[derive(Clone, Default)]
struct Cleaner {
    patience: usize,
    reconciled: Arc<Mutex<Vec<String>>>,
    cleaned: Arc<Mutex<Vec<String>>>,
    gone: Arc<Mutex<Vec<String>>>,
}

impl Cleaner {
    fn controller() -> Controller<ConfigMap> {
        Controller::<ConfigMap>::named("cleaner").resync(None)
    }

    async fn start(&self, stage: &Stage) -> Running {
        let cleaner = self.clone();
        let controller = Self::controller();
        stage
            .start(controller.reconciler_with_cleanup(|_| cleaner))
            .await
    }

    fn names(of: &Mutex<Vec<String>>) -> Vec<String> {
        of.lock().expect("lock").clone()
    }
}

impl Reconciler<ConfigMap> for Cleaner {
    type Error = ReconcileError;

    async fn reconcile(&self, map: Arc<ConfigMap>, _: &Context) -> Result<Outcome, ReconcileError> {
        let meta = &map.metadata;
        let finalizers = meta.finalizers.as_deref().unwrap_or_default();
        assert!(finalizers.iter().any(|name| name == FINALIZER));
        assert_eq!(meta.deletion_timestamp, None);
        let name = meta.name.clone().expect("a name");
        self.reconciled.lock().expect("lock").push(name);
        Ok(Outcome::Done)
    }

    async fn gone(
        &self,
        key: &Key,
        _: Option<Arc<ConfigMap>>,
        _: &Context,
    ) -> Result<Outcome, ReconcileError> {
        self.gone.lock().expect("lock").push(key.name().to_owned());
        Ok(Outcome::Done)
    }
}

impl Cleanup<ConfigMap> for Cleaner {
    async fn cleanup(&self, map: Arc<ConfigMap>, _: &Context) -> Result<Outcome, ReconcileError> {
        assert!(map.metadata.deletion_timestamp.is_some());
        let name = map.metadata.name.clone().expect("a name");
        let mut cleaned = self.cleaned.lock().expect("lock");
        cleaned.push(name.clone());
        let tries = cleaned.iter().filter(|of| **of == name).count();
        match tries {
            tries if tries <= self.patience => Ok(Outcome::RequeueAfter(SECOND)),
            _ => Ok(Outcome::Done),
        }
    }
}

/// Does nothing.
struct Idler;

impl Reconciler<ConfigMap> for Idler {
    type Error = ReconcileError;

    async fn reconcile(&self, _: Arc<ConfigMap>, _: &Context) -> Result<Outcome, ReconcileError> {
        Ok(Outcome::Done)
    }
}

async fn finalizers(stage: &Stage, name: &str) -> Option<Vec<String>> {
    let map = stage.maps().get_opt(name).await.expect("an answer")?;
    Some(map.metadata.finalizers.unwrap_or_default())
}

#[test]
fn an_object_gets_the_finalizer_before_it_is_reconciled_and_goes_when_it_is_cleaned_up() {
    Stage::play(1, async |stage| {
        let cleaner = Cleaner {
            patience: 2,
            ..Cleaner::default()
        };
        let running = cleaner.start(&stage).await;
        stage.create("map").await;
        stage.clock.sleep(SECOND).await;
        assert_eq!(
            finalizers(&stage, "map").await,
            Some(vec![FINALIZER.to_owned()])
        );
        assert!(!Cleaner::names(&cleaner.reconciled).is_empty());
        assert!(Cleaner::names(&cleaner.cleaned).is_empty());

        stage.delete("map").await;
        stage.clock.sleep(SECOND / 2).await;
        assert_eq!(
            finalizers(&stage, "map").await,
            Some(vec![FINALIZER.to_owned()]),
            "it waits"
        );
        stage.clock.sleep(5 * SECOND).await;
        assert_eq!(finalizers(&stage, "map").await, None);
        assert_eq!(Cleaner::names(&cleaner.cleaned), ["map"; 3]);
        assert_eq!(Cleaner::names(&cleaner.gone), ["map"]);
        end(running).await;
    });
}

#[test]
fn what_is_deleted_while_nobody_runs_is_cleaned_up_by_the_next() {
    Stage::play(2, async |stage| {
        let cleaner = Cleaner::default();
        stage.create("map").await;
        let running = cleaner.start(&stage).await;
        stage.clock.sleep(SECOND).await;
        end(running).await;
        stage.delete("map").await;
        stage.clock.sleep(3600 * SECOND).await;
        assert!(finalizers(&stage, "map").await.is_some());
        let running = cleaner.start(&stage).await;
        stage.clock.sleep(SECOND).await;
        assert_eq!(finalizers(&stage, "map").await, None);
        assert_eq!(Cleaner::names(&cleaner.cleaned), ["map"]);
        end(running).await;
    });
}

#[test]
fn code_that_drops_its_cleanup_takes_the_finalizer_away_and_that_of_others_never() {
    Stage::play(3, async |stage| {
        for name in ["kept", "deleted", "shared"] {
            stage.create(name).await;
        }
        let cleaner = Cleaner::default();
        let running = cleaner.start(&stage).await;
        stage.clock.sleep(SECOND).await;
        end(running).await;
        let both = json!({ "metadata": { "finalizers": ["other/one", FINALIZER, "other/two"] } });
        stage.patch("shared", both).await;
        stage.delete("deleted").await;
        assert!(finalizers(&stage, "deleted").await.is_some());

        let running = stage
            .start(Cleaner::controller().reconciler(|_| Idler))
            .await;
        stage.clock.sleep(SECOND).await;
        assert_eq!(finalizers(&stage, "kept").await, Some(vec![]));
        assert_eq!(finalizers(&stage, "deleted").await, None);
        let others = ["other/one", "other/two"].map(str::to_owned).to_vec();
        assert_eq!(finalizers(&stage, "shared").await, Some(others));
        assert!(Cleaner::names(&cleaner.cleaned).is_empty());
        end(running).await;
    });
}

#[test]
fn an_object_that_is_deleted_before_it_got_the_finalizer_is_left_to_others() {
    Stage::play(4, async |stage| {
        stage.create("map").await;
        stage
            .patch(
                "map",
                json!({ "metadata": { "finalizers": ["other/one"] } }),
            )
            .await;
        stage.delete("map").await;
        let cleaner = Cleaner::default();
        let running = cleaner.start(&stage).await;
        stage.clock.sleep(60 * SECOND).await;
        assert_eq!(
            finalizers(&stage, "map").await,
            Some(vec!["other/one".to_owned()])
        );
        assert!(Cleaner::names(&cleaner.reconciled).is_empty());
        assert!(Cleaner::names(&cleaner.cleaned).is_empty());
        end(running).await;
    });
}

#[test]
fn whoever_changes_finalizers_at_the_same_time_loses_none_and_every_object_is_cleaned_up() {
    for seed in 0..20 {
        Stage::play(seed, async |stage| {
            let patches = Matcher::any().verb("patch").resource("configmaps");
            let faults = stage.sim.faults();
            faults.delay(patches.clone(), Duration::from_millis(3), 1000);
            faults.lose_answers(patches.clone(), 3);
            faults.reject(patches, Rejection::new(409).times(2));
            let cleaner = Cleaner::default();
            let running = cleaner.start(&stage).await;
            let names: Vec<_> = (0..10).map(|i| format!("map-{i}")).collect();
            for name in &names {
                stage.create(name).await;
            }
            let entropy = &stage.options.entropy;
            for round in 0..30 {
                let name = &names[entropy.range(0..10) as usize];
                let Ok(map) = stage.maps().get(name).await else {
                    continue;
                };
                // as somebody does who is careful
                let mut meta = map.metadata;
                let mut others = meta.finalizers.take().unwrap_or_default();
                others.retain(|name| name != "other/one");
                if round % 2 == 0 {
                    others.insert(0, "other/one".into());
                }
                let patch = json!({ "metadata": { "finalizers": others, "resourceVersion": meta.resource_version } });
                let params = PatchParams::default();
                let _ = stage
                    .maps()
                    .patch(name, &params, &Patch::Merge(patch))
                    .await;
                stage
                    .clock
                    .sleep(Duration::from_millis(entropy.range(0..8)))
                    .await;
            }
            stage.clock.sleep(60 * SECOND).await;
            for name in &names {
                let on = finalizers(&stage, name).await.expect("there");
                assert!(on.iter().any(|name| name == FINALIZER), "{name}: {on:?}");
                stage.delete(name).await;
            }
            stage.clock.sleep(60 * SECOND).await;
            for name in &names {
                let on = finalizers(&stage, name).await;
                assert!(
                    on.is_none() || on.as_deref() == Some(&["other/one".to_owned()]),
                    "{name}: {on:?}"
                );
                assert!(
                    Cleaner::names(&cleaner.cleaned).contains(name),
                    "{name} is not cleaned up"
                );
            }
            end(running).await;
        });
    }
}

/// Keeps a Secret beside each object of a kind that was named at run time, and takes it away again.
struct Locksmith;

impl Reconciler<DynamicObject> for Locksmith {
    type Error = ReconcileError;

    async fn reconcile(
        &self,
        object: Arc<DynamicObject>,
        cx: &Context,
    ) -> Result<Outcome, ReconcileError> {
        let mut secret = Secret::default();
        secret.metadata.name = object.metadata.name.clone();
        own::control(object.as_ref(), &mut secret)?;
        cx.apply(&secret).await?;
        Ok(Outcome::Done)
    }
}

impl Cleanup<DynamicObject> for Locksmith {
    async fn cleanup(
        &self,
        object: Arc<DynamicObject>,
        cx: &Context,
    ) -> Result<Outcome, ReconcileError> {
        let secret = cx.get_live::<Secret>(&key_of(object.as_ref())).await?;
        if let Some(secret) = secret {
            cx.delete(secret.as_ref()).await?;
        }
        Ok(Outcome::Done)
    }
}

#[test]
fn an_object_of_a_kind_named_at_run_time_owns_others_and_is_cleaned_up_before_it_goes() {
    Stage::play(307, |stage| async move {
        let maps = Kind::new("", "v1", "ConfigMap", "configmaps");
        let secrets = Kind::new("", "v1", "Secret", "secrets");
        let controller = Controller::of_kind(maps, "locksmith")
            .watches_kind(secrets)
            .owned()
            .reconciler_with_cleanup(|_| Locksmith);
        let running = stage.start(controller).await;
        stage.create("map").await;
        stage.clock.sleep(SECOND).await;
        let on = finalizers(&stage, "map").await;
        assert_eq!(on, Some(vec!["boatswain/locksmith".to_owned()]));

        let secrets = Api::<Secret>::namespaced(stage.client.clone(), "default");
        let secret = secrets.get("map").await.expect("made");
        let params = DeleteParams::default();
        secrets.delete("map", &params).await.expect("deleted");
        stage.clock.sleep(SECOND).await;
        let again = secrets.get("map").await.expect("made again");
        assert_ne!(again.metadata.uid, secret.metadata.uid);

        stage.delete("map").await;
        stage.clock.sleep(SECOND).await;
        assert_eq!(finalizers(&stage, "map").await, None);
        let left = secrets.get_opt("map").await.expect("an answer");
        assert_eq!(left, None);
        end(running).await;
    });
}
