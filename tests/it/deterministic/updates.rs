//! Changes of objects that others change, too.

use boatswain::{ClientError, ReconcileError};
use boatswain_apisim::{Matcher, Rejection};
use k8s_openapi::api::core::v1::Namespace;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// Does once with each object what the test says, and keeps the answer.
struct Once<F> {
    run: F,
    answers: Arc<Mutex<BTreeMap<String, Result<ConfigMap, ClientError>>>>,
}

impl<F, Fut> Reconciler<ConfigMap> for Once<F>
where
    F: Fn(Arc<ConfigMap>, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<ConfigMap, ClientError>> + Send,
{
    type Error = ReconcileError;

    async fn reconcile(
        &self,
        map: Arc<ConfigMap>,
        cx: &Context,
    ) -> Result<Outcome, ReconcileError> {
        let name = cx.key().name().to_owned();
        if name == "shared" || self.answers.lock().expect("lock").contains_key(&name) {
            return Ok(Outcome::Done);
        }
        let answer = (self.run)(map, cx.clone()).await;
        self.answers.lock().expect("lock").insert(name, answer);
        Ok(Outcome::Done)
    }
}

/// Plays `run` with objects of these names, and returns what each was answered.
async fn play<F, Fut>(
    stage: &Stage,
    names: &[&str],
    run: F,
) -> BTreeMap<String, Result<ConfigMap, ClientError>>
where
    F: Fn(Arc<ConfigMap>, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<ConfigMap, ClientError>> + Send + 'static,
{
    let answers = Arc::default();
    let once = Once {
        run,
        answers: Arc::clone(&answers),
    };
    for name in names {
        stage.create(name).await;
    }
    let controller = Controller::<ConfigMap>::named("updater").concurrency(16);
    let running = stage.start(controller.reconciler(|_| once)).await;
    stage.clock.sleep(60 * SECOND).await;
    end(running).await;
    std::mem::take(&mut *answers.lock().expect("lock"))
}

fn shared() -> Key {
    Key::new(Some("default"), "shared")
}

fn value(map: &ConfigMap) -> u32 {
    let value = map.data.as_ref().and_then(|data| data.get("value"));
    value.map_or(0, |value| value.parse().expect("a number"))
}

fn set(map: &mut ConfigMap, value: u32) {
    let data = map.data.get_or_insert_default();
    data.insert("value".into(), value.to_string());
}

/// Writes of ConfigMaps that the server was asked for since `mark`.
fn puts(stage: &Stage, mark: u64) -> Vec<u16> {
    let requests = stage.sim.audit_since(mark);
    let puts = requests
        .iter()
        .filter(|r| r.request.verb == "update" && r.request.resource == "configmaps");
    puts.map(|r| r.code).collect()
}

#[test]
fn of_many_who_change_one_object_at_once_none_loses_its_change() {
    for seed in 0..10 {
        Stage::play(seed, async |stage| {
            stage.create("shared").await;
            let writes = Matcher::any().verb("update").resource("configmaps");
            stage
                .sim
                .faults()
                .delay(writes, Duration::from_millis(2), 1000);
            let names = ["a", "b", "c"];
            let answers = play(&stage, &names, |_, cx| async move {
                let add = |map: &mut ConfigMap| set(map, value(map) + 1);
                cx.update_with_retry(&shared(), add).await
            })
            .await;
            let done = answers.values().filter(|answer| answer.is_ok()).count();
            assert_eq!(done, 3, "{answers:?}");
            assert!(puts(&stage, 0).contains(&409), "nobody was in the way");
            let map = stage.maps().get("shared").await.expect("there");
            assert_eq!(value(&map), 3);
        });
    }
}

#[test]
fn what_changes_nothing_is_not_written_and_who_an_object_is_does_not_change() {
    Stage::play(1, async |stage| {
        let mark = stage.sim.audit_mark();
        let answers = play(&stage, &["a"], |map, cx| async move {
            let same = cx.update_from(&*map, |_| {}).await?;
            assert_eq!(
                same.metadata.resource_version,
                map.metadata.resource_version
            );
            cx.update_from(&*map, |map| {
                map.metadata = ObjectMeta::default();
                map.metadata.name = Some("other".into());
                set(map, 1);
            })
            .await
        })
        .await;
        let map = answers["a"].as_ref().expect("written");
        assert_eq!((map.metadata.name.as_deref(), value(map)), (Some("a"), 1));
        assert_eq!(puts(&stage, mark), [200]);
    });
}

#[test]
fn an_object_that_was_made_anew_meanwhile_is_not_changed() {
    Stage::play(2, async |stage| {
        stage.create("shared").await;
        let old = stage.maps().get("shared").await.expect("there");
        stage.delete("shared").await;
        stage.create("shared").await;
        let answers = play(&stage, &["a"], move |_, cx| {
            let old = old.clone();
            async move { cx.update_from(&old, |map| set(map, 7)).await }
        })
        .await;
        let error = answers["a"].as_ref().expect_err("another object");
        assert!(error.is_conflict(), "{error}");
        let map = stage.maps().get("shared").await.expect("there");
        assert_eq!(map.data, None);
    });
}

#[test]
fn an_object_that_is_not_there_is_said_not_to_be() {
    Stage::play(3, async |stage| {
        let answers = play(&stage, &["a"], |_, cx| async move {
            cx.update_with_retry(&shared(), |map| set(map, 1)).await
        })
        .await;
        let error = answers["a"].as_ref().expect_err("there is none");
        assert!(error.is_not_found(), "{error}");
    });
}

#[test]
fn a_race_that_is_lost_again_and_again_is_given_up_as_a_conflict() {
    Stage::play(4, async |stage| {
        stage.create("shared").await;
        let writes = Matcher::any().verb("update").name("shared");
        stage
            .sim
            .faults()
            .reject(writes, Rejection::new(409).times(1000));
        let mark = stage.sim.audit_mark();
        let answers = play(&stage, &["a"], |_, cx| async move {
            cx.update_with_retry(&shared(), |map| set(map, 1)).await
        })
        .await;
        let error = answers["a"].as_ref().expect_err("lost");
        assert!(error.is_conflict(), "{error}");
        assert_eq!(puts(&stage, mark), [409; 5]);
    });
}

/// Writes the same status at every look.
struct Phases;

impl Reconciler<Namespace> for Phases {
    type Error = ReconcileError;

    async fn reconcile(
        &self,
        space: Arc<Namespace>,
        cx: &Context,
    ) -> Result<Outcome, ReconcileError> {
        let status = json!({ "phase": "Active", "conditions": null });
        let told = cx.patch_status(space.as_ref(), &status).await?;
        assert_eq!(
            told.status.and_then(|status| status.phase).as_deref(),
            Some("Active")
        );
        Ok(Outcome::RequeueAfter(SECOND))
    }
}

#[test]
fn a_status_that_says_so_already_is_not_written() {
    Stage::play(5, async |stage| {
        let controller = Controller::<Namespace>::named("phases");
        let running = stage.start(controller.reconciler(|_| Phases)).await;
        stage.clock.sleep(60 * SECOND).await;
        let mark = stage.sim.audit_mark();
        stage.clock.sleep(60 * SECOND).await;
        let patches = stage.sim.audit_since(mark);
        let patches = patches.iter().filter(|r| r.request.verb == "patch");
        assert_eq!(patches.count(), 0);
        end(running).await;
    });
}
