//! Guarantees 1, 2 and 7 when actors of the framework crash: triggers, shards, the limiter, workers and whole branches of the tree.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use boatswain::{Clock, Context, Controller, Key, Options, Outcome, Reconciler};
use boatswain_apisim::Matcher;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api,
    api::{ObjectMeta, PostParams},
};

use super::{Script, Scripted, Stage, end};

/// Works for 150 ms, asks to be run again after ten seconds, and notes what it saw when. Unlike [`Scripted`] it sees runs that were
/// cut off end, too.
#[derive(Clone)]
struct Watchful(Arc<Seen>);

struct Seen {
    clock: Clock,
    running: Mutex<BTreeSet<Key>>,
    overlaps: AtomicUsize,
    last: Mutex<BTreeMap<Key, (Instant, Option<String>)>>,
    runs: AtomicUsize,
}

/// One run of a key; dropped with its future.
struct Run<'a>(&'a Seen, Key);

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.0.running.lock().expect("lock").remove(&self.1);
    }
}

impl Watchful {
    fn new(clock: &Clock) -> Self {
        Self(Arc::new(Seen {
            clock: clock.clone(),
            running: Mutex::default(),
            overlaps: AtomicUsize::new(0),
            last: Mutex::default(),
            runs: AtomicUsize::new(0),
        }))
    }

    fn last(&self, name: &str) -> Option<(Instant, Option<String>)> {
        let key = Key::new(Some("default"), name);
        self.0.last.lock().expect("lock").get(&key).cloned()
    }
}

impl Reconciler<ConfigMap> for Watchful {
    type Error = Infallible;

    async fn reconcile(&self, map: Arc<ConfigMap>, cx: &Context) -> Result<Outcome, Infallible> {
        let seen = &*self.0;
        let key = cx.key().clone();
        if !seen.running.lock().expect("lock").insert(key.clone()) {
            seen.overlaps.fetch_add(1, Relaxed);
        }
        let _run = Run(seen, key.clone());
        seen.runs.fetch_add(1, Relaxed);
        let begun = seen.clock.now();
        seen.clock.sleep(Duration::from_millis(150)).await;
        let value = map
            .data
            .as_ref()
            .and_then(|data| data.get("value").cloned());
        seen.last.lock().expect("lock").insert(key, (begun, value));
        Ok(Outcome::RequeueAfter(Duration::from_secs(10)))
    }
}

const CRASHING: [&str; 5] = [
    "trigger-configmaps",
    "shard-0",
    "limiter",
    "workers-0/worker-0",
    "workers-0/worker-1",
];

#[test]
fn g1_g2_crashes_of_any_actor_of_a_controller_lose_no_change_and_let_no_runs_overlap() {
    for seed in 0..20 {
        Stage::play(seed, |stage| async move {
            let watchful = Watchful::new(&stage.clock);
            let controller = Controller::<ConfigMap>::named("watchful")
                .resync(None)
                .concurrency(2);
            let running = stage
                .start(controller.reconciler({
                    let watchful = watchful.clone();
                    move |_| watchful
                }))
                .await;
            let entropy = stage.options.entropy.clone();
            for i in 0..10 {
                stage.create(&format!("map-{i}")).await;
            }
            let mut last = vec![None; 10];
            for change in 0..300 {
                let i = entropy.range(0..10) as usize;
                stage.touch(&format!("map-{i}"), &change.to_string()).await;
                last[i] = Some((change.to_string(), stage.clock.now()));
                let pause = Duration::from_millis(entropy.range(0..200));
                stage.clock.sleep(pause).await;
                // more of them in a minute than the controller's supervisor stands: it is rebuilt now and then
                if change % 20 == 0 {
                    let whom = CRASHING[entropy.range(0..CRASHING.len() as u64) as usize];
                    running
                        .observer()
                        .kill(&format!("root/controllers/watchful/{whom}"));
                }
            }
            stage.clock.sleep(Duration::from_secs(60)).await;
            for (i, last) in last.into_iter().enumerate() {
                let (value, at) = last.expect("three hundred changes come to each of ten");
                let (begun, seen) = watchful
                    .last(&format!("map-{i}"))
                    .unwrap_or_else(|| panic!("map-{i} never ran"));
                assert_eq!(seen.as_deref(), Some(&*value), "the last change of map-{i}");
                assert!(begun >= at);
            }
            assert_eq!(watchful.0.overlaps.load(Relaxed), 0);
            let settled = watchful.0.runs.load(Relaxed);
            stage.clock.sleep(Duration::from_secs(100)).await;
            let later = watchful.0.runs.load(Relaxed) - settled;
            assert!(
                (90..=100).contains(&later),
                "each of ten keys runs every ten seconds, no seat, permit or timer is lost: {later} runs in 100 s"
            );
            end(running).await;
        });
    }
}

#[test]
fn g1_a_shard_that_crashes_cancels_nothing_and_waits_for_what_runs() {
    Stage::play(1, |stage| async move {
        let scripted = Scripted::new(&stage.clock, |_| Script::Work(Duration::from_secs(20)));
        stage.create("map").await;
        let running = stage
            .start(scripted.controller().reconciler(scripted.maker()))
            .await;
        stage.clock.sleep(Duration::from_secs(5)).await;
        assert!(running.observer().kill("root/controllers/scripted/shard-0"));
        stage.clock.sleep(Duration::from_secs(60)).await;
        let runs = scripted.runs("map");
        assert_eq!(
            runs.len(),
            2,
            "the rebuilt shard looks at it again: {runs:?}"
        );
        assert!(runs.iter().all(|run| run.ended.is_some()));
        scripted.assert_one_at_a_time();
        end(running).await;
    });
}

#[test]
fn g2_keys_that_waited_for_a_seat_outlive_the_loss_of_every_controllers_supervisor() {
    Stage::play(2, |stage| async move {
        let scripted = Scripted::new(&stage.clock, |_| Script::Work(Duration::from_secs(4)));
        for i in 0..5 {
            stage.create(&format!("map-{i}")).await;
        }
        let running = stage
            .start(
                scripted
                    .controller()
                    .concurrency(1)
                    .reconciler(scripted.maker()),
            )
            .await;
        stage.clock.sleep(Duration::from_secs(6)).await;
        assert!(running.observer().kill("root/controllers"));
        stage.clock.sleep(Duration::from_secs(60)).await;
        for i in 0..5 {
            let runs = scripted.runs(&format!("map-{i}"));
            assert!(
                runs.iter().any(|run| run.ended.is_some()),
                "map-{i}: {runs:?}"
            );
        }
        end(running).await;
    });
}

#[test]
fn g2_a_shard_that_crashes_before_the_caches_are_synced_learns_of_every_key_later() {
    Stage::play(3, |stage| async move {
        stage.create("early").await;
        let late = Matcher::any().namespace("late");
        let held = stage.sim.faults().hang(late);
        let scripted = Scripted::new(&stage.clock, |_| Script::Work(Duration::ZERO));
        let running = stage
            .start_with(
                Options {
                    namespaces: vec!["default".into(), "late".into()],
                    ..Options::default()
                },
                scripted.controller().reconciler(scripted.maker()),
            )
            .await;
        stage.clock.sleep(Duration::from_secs(5)).await;
        assert!(running.observer().kill("root/controllers/scripted/shard-0"));
        stage.clock.sleep(Duration::from_secs(5)).await;
        assert_eq!(scripted.runs("early").len(), 0, "not all is known yet");
        held.release();
        stage.clock.sleep(Duration::from_secs(120)).await;
        assert_eq!(scripted.runs("early").len(), 1);
        end(running).await;
    });
}

#[test]
fn g8_an_actor_of_the_framework_that_is_broken_for_good_ends_the_manager_and_is_named() {
    Stage::play(4, |stage| async move {
        let scripted = Scripted::new(&stage.clock, |_| Script::Work(Duration::ZERO));
        let mut running = stage
            .start(scripted.controller().reconciler(move |_| scripted))
            .await;
        let (observer, clock) = (running.observer().clone(), stage.clock.clone());
        let path = "root/controllers/scripted/shard-0";
        let killer = async move {
            for _ in 0..100_000 {
                let _ = observer.kill(path);
                clock.sleep(Duration::from_millis(10)).await;
            }
        };
        let exit = tokio::select! {
            exit = running.exited() => exit,
            () = killer => panic!("killed for a quarter of an hour, and nobody gave up"),
        };
        assert_eq!(exit.root_cause().0, Some(path), "{exit}");
        end(running).await;
    });
}

async fn create_secret(stage: &Stage, name: &str) {
    let secret = Secret {
        metadata: ObjectMeta {
            name: Some(name.into()),
            ..ObjectMeta::default()
        },
        ..Secret::default()
    };
    Api::<Secret>::namespaced(stage.client.clone(), "default")
        .create(&PostParams::default(), &secret)
        .await
        .expect("created");
}

#[test]
fn g2_a_change_whose_mapping_fails_is_mapped_again_although_the_trigger_crashed() {
    Stage::play(4, |stage| async move {
        let scripted = Scripted::new(&stage.clock, |_| Script::Work(Duration::ZERO));
        stage.create("map").await;
        let broken = Arc::new(AtomicBool::new(true));
        let mapper = broken.clone();
        let controller =
            scripted
                .controller()
                .watches::<Secret>()
                .mapped_by(move |_: Arc<Secret>, _| {
                    let broken = mapper.load(Relaxed);
                    async move {
                        if broken {
                            return Err(io::Error::other("scripted"));
                        }
                        Ok(vec![Key::new(Some("default"), "map")])
                    }
                });
        let running = stage.start(controller.reconciler(scripted.maker())).await;
        stage.clock.sleep(Duration::from_secs(1)).await;
        create_secret(&stage, "key").await;
        stage.clock.sleep(Duration::from_secs(5)).await;
        assert_eq!(scripted.runs("map").len(), 1);
        let metrics = running.observer().metrics();
        let failures = metrics
            .lines()
            .find(|line| line.starts_with("controller_mapper_failures_total"))
            .expect("a series");
        assert!(
            !failures.ends_with(" 0"),
            "the first failure counts: {failures}"
        );
        assert!(
            running
                .observer()
                .kill("root/controllers/scripted/trigger-secrets")
        );
        broken.store(false, Relaxed);
        stage.clock.sleep(Duration::from_secs(30)).await;
        assert_eq!(scripted.runs("map").len(), 2);
        end(running).await;
    });
}

#[test]
fn g7_a_mapper_that_hangs_or_panics_on_one_object_holds_up_no_other() {
    Stage::play(7, |stage| async move {
        let scripted = Scripted::new(&stage.clock, |_| Script::Work(Duration::ZERO));
        stage.create("map").await;
        let controller = scripted.controller().watches::<Secret>().mapped_by(
            |secret: Arc<Secret>, _| async move {
                match secret.metadata.name.as_deref() {
                    Some("hangs") => std::future::pending().await,
                    Some("panics") => panic!("scripted"),
                    _ => Ok::<_, Infallible>(vec![Key::new(Some("default"), "map")]),
                }
            },
        );
        let running = stage.start(controller.reconciler(scripted.maker())).await;
        stage.clock.sleep(Duration::from_secs(1)).await;
        create_secret(&stage, "hangs").await;
        create_secret(&stage, "panics").await;
        for i in 0..10 {
            let before = scripted.runs("map").len();
            create_secret(&stage, &format!("good-{i}")).await;
            stage.clock.sleep(Duration::from_secs(7)).await;
            let runs = scripted.runs("map");
            assert_eq!(runs.len(), before + 1);
        }
        end(running).await;
    });
}

/// Mourns for a second.
#[derive(Clone)]
struct Slow(Clock, Arc<Mutex<Vec<Option<String>>>>);

impl Reconciler<ConfigMap> for Slow {
    type Error = Infallible;

    async fn reconcile(&self, _: Arc<ConfigMap>, _: &Context) -> Result<Outcome, Infallible> {
        Ok(Outcome::Done)
    }

    async fn gone(
        &self,
        _: &Key,
        last: Option<Arc<ConfigMap>>,
        _: &Context,
    ) -> Result<Outcome, Infallible> {
        self.0.sleep(Duration::from_secs(1)).await;
        let value = last.and_then(|map| map.data.as_ref()?.get("value").cloned());
        self.1.lock().expect("lock").push(value);
        Ok(Outcome::Done)
    }
}

#[test]
fn g4_what_departs_while_its_key_is_told_gone_for_another_reason_is_told_with_its_last_state() {
    Stage::play(5, |stage| async move {
        let slow = Slow(stage.clock.clone(), Arc::default());
        let controller = Controller::<ConfigMap>::named("slow")
            .resync(None)
            .watches::<Secret>()
            .mapped_by(|_: Arc<Secret>, _| async {
                Ok::<_, Infallible>(vec![Key::new(Some("default"), "map")])
            });
        let running = stage
            .start(controller.reconciler({
                let slow = slow.clone();
                move |_| slow
            }))
            .await;
        stage.clock.sleep(Duration::from_secs(1)).await;
        // names a map that is not there
        create_secret(&stage, "key").await;
        stage.clock.sleep(Duration::from_millis(200)).await;
        stage.create("map").await;
        stage.touch("map", "last words").await;
        stage.clock.sleep(Duration::from_millis(200)).await;
        stage.delete("map").await;
        stage.clock.sleep(Duration::from_secs(10)).await;
        let told = slow.1.lock().expect("lock").clone();
        assert_eq!(told, [None, Some("last words".to_owned())]);
        end(running).await;
    });
}

#[test]
fn a_mapper_that_names_keys_outside_of_the_namespaces_causes_no_errors() {
    Stage::play(6, |stage| async move {
        let scripted = Scripted::new(&stage.clock, |_| Script::Work(Duration::ZERO));
        let controller =
            scripted
                .controller()
                .watches::<Secret>()
                .mapped_by(|_: Arc<Secret>, _| async {
                    Ok::<_, Infallible>(vec![Key::new(Some("other"), "map")])
                });
        let options = Options {
            namespaces: vec!["default".into()],
            ..Options::default()
        };
        let running = stage
            .start_with(options, controller.reconciler(scripted.maker()))
            .await;
        create_secret(&stage, "key").await;
        stage.clock.sleep(Duration::from_secs(60)).await;
        let metrics = running.observer().metrics();
        let results: Vec<_> = metrics
            .lines()
            .filter(|line| line.starts_with("controller_reconcile_total") && !line.ends_with(" 0"))
            .collect();
        assert_eq!(
            results,
            ["controller_reconcile_total{controller=\"scripted\",result=\"success\"} 1"]
        );
        end(running).await;
    });
}

#[test]
fn a_controller_may_watch_one_kind_in_two_ways_and_reference_objects_without_a_namespace() {
    use k8s_openapi::api::core::v1::Namespace;
    Stage::play(8, |stage| async move {
        let scripted = Scripted::new(&stage.clock, |_| Script::Work(Duration::ZERO));
        stage.create("map").await;
        stage.touch("map", "blue").await;
        let controller = scripted
            .controller()
            .owns::<Secret>()
            .watches::<Secret>()
            .referenced_by("data.value")
            .watches::<Namespace>()
            .referenced_by("data.value");
        let options = Options {
            // nothing can run with none
            workers: 0,
            ..Options::default()
        };
        let running = stage
            .start_with(options, controller.reconciler(scripted.maker()))
            .await;
        stage.clock.sleep(Duration::from_secs(5)).await;
        assert_eq!(scripted.runs("map").len(), 1);
        create_secret(&stage, "blue").await;
        stage.clock.sleep(Duration::from_secs(5)).await;
        assert_eq!(scripted.runs("map").len(), 2);
        let namespace = Namespace {
            metadata: ObjectMeta {
                name: Some("blue".into()),
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        };
        Api::<Namespace>::all(stage.client.clone())
            .create(&PostParams::default(), &namespace)
            .await
            .expect("created");
        stage.clock.sleep(Duration::from_secs(5)).await;
        assert_eq!(scripted.runs("map").len(), 3);
        end(running).await;
    });
}
