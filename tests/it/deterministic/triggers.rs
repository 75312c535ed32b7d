//! What happens between a change and its keys: owners, mappers and deletions that go wrong.

use std::{
    convert::Infallible,
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use boatswain::{
    ClientError, Context, Controller, Key, Outcome, Predicate, Reconciler, Reference, Running,
    When, channel,
};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Secret},
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ObjectMeta, PostParams},
};

use super::{Script, Scripted, Stage, end, metric};

fn quick(_: &Key) -> Script {
    Script::Work(Duration::ZERO)
}

/// A secret that names a map as its controller; of the map's own uid where none is given.
async fn secret_of(stage: &Stage, name: &str, owner: &str, uid: Option<&str>) {
    let uid = match uid {
        Some(uid) => uid.to_owned(),
        None => stage
            .maps()
            .get(owner)
            .await
            .expect("there")
            .metadata
            .uid
            .expect("a uid"),
    };
    let owner = OwnerReference {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        name: owner.into(),
        uid,
        controller: Some(true),
        ..OwnerReference::default()
    };
    let secret = Secret {
        metadata: ObjectMeta {
            name: Some(name.into()),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        ..Secret::default()
    };
    let secrets: Api<Secret> = Api::namespaced(stage.client.clone(), "default");
    secrets
        .create(&PostParams::default(), &secret)
        .await
        .expect("created");
}

fn restarts(running: &Running, actor: &str) -> u64 {
    let path = format!("root/controllers/{actor}");
    running
        .observer()
        .snapshot()
        .find(&path)
        .expect("it is there")
        .restarts
}

#[test]
fn an_owner_of_another_uid_is_not_the_one_that_is_owned_by() {
    Stage::play(1, |stage| async move {
        let scripted = Scripted::new(&stage.clock, quick);
        stage.create("map").await;
        let controller = scripted.controller().owns::<Secret>();
        let running = stage.start(controller.reconciler(scripted.maker())).await;
        let settled = || stage.clock.sleep(Duration::from_secs(2));
        settled().await;
        secret_of(
            &stage,
            "of-another",
            "map",
            Some("00000000-0000-4000-8000-000000000000"),
        )
        .await;
        settled().await;
        assert_eq!(
            scripted.runs("map").len(),
            1,
            "it names an incarnation before this one"
        );
        secret_of(&stage, "own", "map", None).await;
        settled().await;
        assert_eq!(scripted.runs("map").len(), 2);
        end(running).await;
    });
}

#[test]
fn g7_a_reference_that_panics_on_one_object_of_many_costs_nobody_a_run_and_is_asked_again() {
    Stage::play(2, |stage| async move {
        let scripted = Scripted::new(&stage.clock, quick);
        for name in ["map", "poison"] {
            stage.create(name).await;
        }
        let poisonous = Arc::new(AtomicBool::new(true));
        let deadly = poisonous.clone();
        let controller = scripted
            .controller()
            .watches::<Secret>()
            .refers_by(|kind, _| {
                Reference::to_owners(kind).of_incarnation(move |key| {
                    assert!(key.name() != "poison" || !deadly.load(Relaxed), "scripted");
                    None
                })
            });
        let running = stage.start(controller.reconciler(scripted.maker())).await;
        stage.clock.sleep(Duration::from_secs(2)).await;
        for i in 0..20 {
            secret_of(&stage, &format!("poisoned-{i}"), "poison", None).await;
            secret_of(&stage, &format!("good-{i}"), "map", None).await;
        }
        stage.clock.sleep(Duration::from_secs(60)).await;
        assert_eq!(restarts(&running, "scripted/trigger-secrets"), 0);
        assert!(scripted.runs("map").len() > 1);
        assert_eq!(scripted.runs("poison").len(), 1);
        assert!(metric::<u64>(&running, "controller_mapper_failures_total") >= 20);
        poisonous.store(false, Relaxed);
        stage.clock.sleep(Duration::from_secs(30)).await;
        assert!(scripted.runs("poison").len() > 1, "nothing is lost");
        end(running).await;
    });
}

#[test]
fn g7_a_mapper_whose_work_panics_when_it_is_given_up_harms_nobody() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("scripted");
        }
    }
    Stage::play(3, |stage| async move {
        let scripted = Scripted::new(&stage.clock, quick);
        stage.create("map").await;
        let controller = scripted.controller().watches::<Secret>().mapped_by(
            |secret: Arc<Secret>, _| async move {
                if secret.metadata.name.as_deref() != Some("good") {
                    let _bomb = Bomb;
                    std::future::pending::<()>().await;
                }
                Ok::<_, Infallible>(vec![Key::new(Some("default"), "map")])
            },
        );
        let running = stage.start(controller.reconciler(scripted.maker())).await;
        stage.clock.sleep(Duration::from_secs(1)).await;
        for i in 0..12 {
            secret_of(&stage, &format!("bad-{i}"), "map", None).await;
        }
        stage.clock.sleep(Duration::from_secs(100)).await;
        assert_eq!(restarts(&running, "scripted/trigger-secrets"), 0);
        assert_eq!(restarts(&running, "scripted"), 0);
        secret_of(&stage, "good", "map", None).await;
        stage.clock.sleep(Duration::from_secs(5)).await;
        assert_eq!(scripted.runs("map").len(), 2);
        end(running).await;
    });
}

/// Answers as it is told when an object is gone, and notes what it was told.
#[derive(Clone)]
struct Mourner {
    answer: fn(usize) -> io::Result<Outcome>,
    told: Arc<Mutex<Vec<Option<String>>>>,
}

impl Mourner {
    fn new(answer: fn(usize) -> io::Result<Outcome>) -> Self {
        Self {
            answer,
            told: Arc::default(),
        }
    }

    fn told(&self) -> Vec<Option<String>> {
        self.told.lock().expect("lock").clone()
    }

    async fn start(&self, stage: &Stage, when: Option<Predicate>) -> Running {
        let mut controller = Controller::<ConfigMap>::named("mourner").resync(None);
        if let Some(when) = when {
            controller = controller.when(when);
        }
        let mourner = self.clone();
        let running = stage.start(controller.reconciler(move |_| mourner)).await;
        stage.clock.sleep(Duration::from_secs(1)).await;
        running
    }
}

impl Reconciler<ConfigMap> for Mourner {
    type Error = io::Error;

    async fn reconcile(&self, _: Arc<ConfigMap>, _: &Context) -> io::Result<Outcome> {
        Ok(Outcome::Done)
    }

    async fn gone(
        &self,
        _: &Key,
        last: Option<Arc<ConfigMap>>,
        _: &Context,
    ) -> io::Result<Outcome> {
        let mut told = self.told.lock().expect("lock");
        told.push(last.and_then(|map| map.data.as_ref()?.get("value").cloned()));
        (self.answer)(told.len())
    }
}

fn words() -> Option<String> {
    Some("last words".to_owned())
}

#[test]
fn g9_a_deletion_that_a_predicate_filters_is_not_remembered() {
    Stage::play(4, |stage| async move {
        let mourner = Mourner::new(|_| Ok(Outcome::Done));
        let living = Predicate::change("living", |change| change.new().is_some());
        let running = mourner.start(&stage, Some(living)).await;
        stage.create("map").await;
        stage.clock.sleep(Duration::from_secs(1)).await;
        stage
            .maps()
            .delete("map", &DeleteParams::default())
            .await
            .expect("deleted");
        stage.clock.sleep(Duration::from_secs(1)).await;
        assert!(running.observer().kill("root/controllers/mourner/shard-0"));
        stage.clock.sleep(Duration::from_secs(30)).await;
        assert_eq!(mourner.told(), [], "the rebuilt shard has not heard of it");
        end(running).await;
    });
}

#[test]
fn g4_who_asks_to_be_told_again_that_an_object_is_gone_is_told_with_its_last_state_also_after_a_crash()
 {
    Stage::play(5, |stage| async move {
        let mourner = Mourner::new(|n| {
            Ok(match n {
                1 => Outcome::RequeueAfter(Duration::from_secs(3)),
                2 => Outcome::RequeueAfter(Duration::from_secs(3600)),
                _ => Outcome::Done,
            })
        });
        let running = mourner.start(&stage, None).await;
        stage.create("map").await;
        stage.touch("map", "last words").await;
        stage.clock.sleep(Duration::from_secs(1)).await;
        stage.delete("map").await;
        stage.clock.sleep(Duration::from_secs(10)).await;
        assert_eq!(mourner.told(), [words(), words()]);
        assert!(running.observer().kill("root/controllers/mourner/shard-0"));
        // the time it asked for outlives its shard, too
        stage.clock.sleep(Duration::from_secs(30)).await;
        assert_eq!(mourner.told(), [words(), words()]);
        stage.clock.sleep(Duration::from_secs(3600)).await;
        assert_eq!(mourner.told(), [words(), words(), words()]);
        assert!(running.observer().kill("root/controllers/mourner/shard-0"));
        stage.clock.sleep(Duration::from_secs(30)).await;
        assert_eq!(mourner.told().len(), 3, "it is settled");
        end(running).await;
    });
}

#[test]
fn g9_a_deleted_object_whose_reconciler_always_fails_at_it_is_let_go_and_counted() {
    Stage::play(6, |stage| async move {
        let mourner = Mourner::new(|_| Err(io::Error::other("scripted")));
        let running = mourner.start(&stage, None).await;
        stage.create("map").await;
        stage.clock.sleep(Duration::from_secs(1)).await;
        stage.delete("map").await;
        stage.clock.sleep(Duration::from_secs(600)).await;
        let told = mourner.told().len();
        assert!((15..=17).contains(&told), "{told}");
        assert_eq!(
            metric::<u64>(&running, "controller_departed_let_go_total"),
            1
        );
        assert_eq!(metric::<u64>(&running, "controller_parked_keys"), 0);
        stage.clock.sleep(Duration::from_secs(7200)).await;
        assert_eq!(mourner.told().len(), told, "nobody is told again");
        end(running).await;
    });
}

#[test]
fn g9_a_key_without_an_object_that_is_given_up_is_let_go_and_never_told_again() {
    Stage::play(11, |stage| async move {
        // of a deleted object, and of one that never was
        let mourner = Mourner::new(|_| Ok(Outcome::GiveUp("no".to_owned())));
        let running = mourner.start(&stage, None).await;
        stage.create("map").await;
        stage.touch("map", "last words").await;
        stage.clock.sleep(Duration::from_secs(1)).await;
        stage.delete("map").await;
        stage.clock.sleep(Duration::from_secs(60)).await;
        let controller = running.observer().controller("mourner");
        let ghost = Key::new(Some("default"), "ghost");
        controller.expect("it is there").enqueue(&ghost);
        stage.clock.sleep(Duration::from_secs(2 * 3600)).await;
        assert_eq!(mourner.told(), [words(), None]);
        assert_eq!(metric::<u64>(&running, "controller_parked_keys"), 0);
        assert_eq!(running.observer().parked("mourner"), []);
        end(running).await;
    });
    Stage::play(12, |stage| async move {
        let mourner = Mourner::new(|_| Err(io::Error::other("scripted")));
        let (sender, calls) = channel(10);
        let controller = Controller::<ConfigMap>::named("mourner")
            .resync(None)
            .source("calls", calls);
        let shown = mourner.clone();
        let running = stage.start(controller.reconciler(move |_| shown)).await;
        sender
            .send(Key::new(Some("default"), "ghost"))
            .expect("room");
        stage.clock.sleep(Duration::from_secs(600)).await;
        assert_eq!(mourner.told().len(), 16);
        stage.clock.sleep(Duration::from_secs(2 * 3600)).await;
        assert_eq!(mourner.told().len(), 16);
        assert_eq!(running.observer().parked("mourner"), []);
        end(running).await;
    });
}

/// The names of objects that were told to be gone, and their last words.
type Told = Arc<Mutex<Vec<(String, Option<String>)>>>;

/// Gives up when its gate opens, and notes what it was told.
#[derive(Clone)]
struct Hesitant {
    gate: Arc<tokio::sync::Semaphore>,
    told: Told,
}

impl Reconciler<ConfigMap> for Hesitant {
    type Error = Infallible;

    async fn reconcile(&self, _: Arc<ConfigMap>, _: &Context) -> Result<Outcome, Infallible> {
        let opened = self.gate.acquire().await;
        opened.expect("never closed").forget();
        Ok(Outcome::GiveUp("it is going away".to_owned()))
    }

    async fn gone(
        &self,
        key: &Key,
        last: Option<Arc<ConfigMap>>,
        _: &Context,
    ) -> Result<Outcome, Infallible> {
        let last = last.and_then(|map| map.data.as_ref()?.get("value").cloned());
        let name = key.name().to_owned();
        self.told.lock().expect("lock").push((name, last));
        Ok(Outcome::Done)
    }
}

#[test]
fn g4_what_is_deleted_during_a_run_that_gives_up_is_told_with_its_last_state_also_after_a_crash() {
    for crash in [false, true] {
        Stage::play(13, |stage| async move {
            let hesitant = Hesitant {
                gate: Arc::new(tokio::sync::Semaphore::new(0)),
                told: Arc::default(),
            };
            let controller = Controller::<ConfigMap>::named("hesitant")
                .resync(None)
                .concurrency(1);
            let shown = hesitant.clone();
            let running = stage.start(controller.reconciler(move |_| shown)).await;
            let settled = || stage.clock.sleep(Duration::from_secs(1));
            settled().await;
            stage.create("map").await;
            stage.touch("map", "last words").await;
            settled().await;
            // takes the seat next
            stage.create("other").await;
            settled().await;
            stage.delete("map").await;
            settled().await;
            hesitant.gate.add_permits(1);
            settled().await;
            if crash {
                assert!(running.observer().kill("root/controllers/hesitant/shard-0"));
                settled().await;
            }
            hesitant.gate.add_permits(10);
            stage.clock.sleep(Duration::from_secs(60)).await;
            let told = hesitant.told.lock().expect("lock").clone();
            assert_eq!(told, [("map".to_owned(), words())]);
            assert_eq!(
                metric::<u64>(&running, "controller_departed_let_go_total"),
                0
            );
            let parked = running.observer().parked("hesitant");
            assert_eq!(parked.len(), 1);
            end(running).await;
        });
    }
}

#[test]
fn keys_run_that_are_sent_by_a_channel_or_whose_time_has_come_whatever_crashes() {
    Stage::play(7, |stage| async move {
        let scripted = Scripted::new(&stage.clock, quick);
        stage.create("map").await;
        let key = Key::new(Some("default"), "map");
        let (sender, calls) = channel(10);
        let controller = scripted.controller().source("calls", calls);
        let running = stage.start(controller.reconciler(scripted.maker())).await;
        let settled = || stage.clock.sleep(Duration::from_secs(2));
        settled().await;
        sender.send(key.clone()).expect("room");
        settled().await;
        assert_eq!(scripted.runs("map").len(), 2);
        let until = stage.clock.now() + Duration::from_secs(60);
        sender
            .send_at(key.clone(), until, When::Earliest)
            .expect("room");
        assert!(
            running
                .observer()
                .kill("root/controllers/scripted/source-calls")
        );
        // while nobody listens
        sender.send(key.clone()).expect("room");
        settled().await;
        assert_eq!(scripted.runs("map").len(), 3);
        stage.clock.sleep(Duration::from_secs(70)).await;
        let runs = scripted.runs("map");
        assert_eq!(runs.len(), 4);
        assert!(runs[3].begun >= until && runs[3].begun < until + Duration::from_secs(1));
        assert!(sender.is_empty());
        end(running).await;
    });
}

#[test]
fn what_a_period_names_runs_once_a_period_although_it_panics_once() {
    Stage::play(8, |stage| async move {
        let scripted = Scripted::new(&stage.clock, quick);
        stage.create("map").await;
        stage.create("other").await;
        let turns = AtomicUsize::new(0);
        let minute = Duration::from_secs(60);
        let controller = scripted.controller().every("rounds", minute, move |maps| {
            assert!(turns.fetch_add(1, Relaxed) != 1, "scripted");
            let map = Key::new(Some("default"), "map");
            assert!(maps.get(&map).is_ok());
            vec![map]
        });
        let running = stage.start(controller.reconciler(scripted.maker())).await;
        stage.clock.sleep(minute * 5 + Duration::from_secs(1)).await;
        assert_eq!(scripted.runs("map").len(), 1 + 4, "five periods, one lost");
        assert_eq!(scripted.runs("other").len(), 1);
        assert_eq!(restarts(&running, "scripted/source-rounds"), 0);
        end(running).await;
    });
}

#[test]
fn a_stream_of_keys_that_ends_or_panics_is_made_again_with_backoff() {
    Stage::play(9, |stage| async move {
        let scripted = Scripted::new(&stage.clock, quick);
        stage.create("map").await;
        let made = Arc::new(AtomicUsize::new(0));
        let count = made.clone();
        let controller = scripted.controller().stream("queue", move || {
            let number = count.fetch_add(1, Relaxed);
            assert!(number != 0, "it cannot be made at first");
            let key = Key::new(Some("default"), "map");
            futures::stream::once(async move {
                assert!(number != 1, "it panics at first");
                key
            })
        });
        let running = stage.start(controller.reconciler(scripted.maker())).await;
        stage.clock.sleep(Duration::from_secs(10)).await;
        assert!(
            scripted.runs("map").len() > 2,
            "each of its streams brings a key and ends"
        );
        let made = made.load(Relaxed);
        assert!(
            (5..=60).contains(&made),
            "it was made {made} times in ten seconds"
        );
        assert_eq!(restarts(&running, "scripted/source-queue"), 0);
        end(running).await;
    });
}

/// Counts its runs in its object, up to three.
struct Counting(Arc<AtomicUsize>);

impl Reconciler<ConfigMap> for Counting {
    type Error = ClientError;

    async fn reconcile(&self, map: Arc<ConfigMap>, cx: &Context) -> Result<Outcome, ClientError> {
        self.0.fetch_add(1, Relaxed);
        let mut next = ConfigMap::clone(&map);
        let runs = next.annotations_mut().entry("runs".into()).or_default();
        if runs.len() < 3 {
            runs.push('.');
            cx.replace(&next).await?;
        }
        Ok(Outcome::Done)
    }
}

#[test]
fn a_key_runs_for_its_own_writes_unless_told_otherwise_and_for_those_of_others_in_any_case() {
    for (ignore, expected) in [(false, [4, 5]), (true, [1, 2])] {
        Stage::play(10, |stage| async move {
            stage.create("map").await;
            let runs = Arc::new(AtomicUsize::new(0));
            let mut controller = Controller::<ConfigMap>::named("counting").resync(None);
            if ignore {
                controller = controller.ignore_own_writes();
            }
            let counting = Counting(runs.clone());
            let running = stage.start(controller.reconciler(move |_| counting)).await;
            stage.clock.sleep(Duration::from_secs(5)).await;
            assert_eq!(runs.load(Relaxed), expected[0]);
            stage.touch("map", "another's").await;
            stage.clock.sleep(Duration::from_secs(5)).await;
            assert_eq!(runs.load(Relaxed), expected[1]);
            end(running).await;
        });
    }
}
