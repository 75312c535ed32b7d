//! Writes whose outcome the run did not learn, and runs that are lost.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use boatswain::{ClientError, Clock, Context, Controller, Outcome, Reconciler, Running};
use boatswain_apisim::{Matcher, Rejection};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api, ResourceExt as _,
    api::{Patch, PatchParams},
};
use serde_json::json;

use super::{
    super::{Stage, end},
    act, as_value, create, play, play_with, secret, secrets, value,
};

#[test]
fn g6_a_write_whose_answer_is_lost_is_asked_about_and_waited_for_if_it_happened() {
    for happens in [true, false] {
        Stage::play(14, |stage| async move {
            create::<Secret>(&stage, as_value(&secret("a", value("old")))).await;
            let here = Matcher::any().verb("patch").resource("secrets");
            if happens {
                stage.sim.faults().lose_answers(here, 1);
            } else {
                stage.sim.faults().reject(here, Rejection::new(504));
            }
            let write = act(|cx| async move {
                cx.apply(&secret("a", value("new")))
                    .await
                    .expect_err("no answer");
                Ok(())
            });
            let played = play(&stage, secrets, write).await;
            let expected = if happens { "a=new" } else { "a=old" };
            assert_eq!((played.early, played.reads), (!happens, 1));
            assert_eq!(played.saw, [expected]);
        });
    }
}

#[test]
fn g6_a_write_that_its_run_stopped_waiting_for_is_asked_about() {
    Stage::play(15, |stage| async move {
        create::<Secret>(&stage, as_value(&secret("a", value("old")))).await;
        let here = Matcher::any().verb("patch").resource("secrets");
        stage
            .sim
            .faults()
            .delay(here, Duration::from_millis(200), 1);
        let clock = stage.clock.clone();
        let write = act(move |cx| {
            let clock = clock.clone();
            async move {
                let late = secret("a", value("new"));
                tokio::select! {
                    _ = cx.apply(&late) => panic!("it takes longer"),
                    () = clock.sleep(Duration::from_millis(50)) => {}
                }
                Ok(())
            }
        });
        let played = play(&stage, secrets, write).await;
        assert_eq!(played.reads, 1, "it was asked about");
    });
}

#[test]
fn g6_while_the_server_cannot_say_what_became_of_a_write_the_key_backs_off() {
    Stage::play(16, |stage| async move {
        create::<Secret>(&stage, as_value(&secret("a", value("old")))).await;
        let secrets_ = Matcher::any().resource("secrets");
        stage
            .sim
            .faults()
            .lose_answers(secrets_.clone().verb("patch"), 1);
        stage
            .sim
            .faults()
            .reject(secrets_.verb("get"), Rejection::new(503).times(3));
        let write = act(|cx| async move {
            cx.apply(&secret("a", value("new")))
                .await
                .expect_err("no answer");
            Ok(())
        });
        let played = play(&stage, secrets, write).await;
        assert_eq!((played.early, played.reads), (false, 4));
        assert_eq!(played.saw, ["a=new"]);
    });
}

#[test]
fn g6_who_lost_a_race_for_a_write_sees_what_won_it() {
    Stage::play(17, |stage| async move {
        let made: Secret = create(&stage, as_value(&secret("a", value("old")))).await;
        let api: Api<Secret> = Api::namespaced(stage.client.clone(), "default");
        let lose = act(move |cx| {
            let (made, api) = (made.clone(), api.clone());
            async move {
                let rival = Patch::Merge(json!({ "metadata": value("rival") }));
                api.patch("a", &PatchParams::default(), &rival)
                    .await
                    .expect("patched");
                cx.replace(&made).await.map(drop)
            }
        });
        let played = play(&stage, secrets, lose).await;
        assert_eq!((played.early, played.reads), (false, 1));
        assert_eq!(played.saw, ["a=rival"]);
    });
}

#[test]
fn g6_a_worker_that_is_lost_while_its_key_waits_loses_no_write() {
    Stage::play(18, |stage| async move {
        let write = act(|cx| async move { cx.create(&secret("a", json!({}))).await.map(drop) });
        let kill = |running: &Running| {
            for worker in 0..4 {
                let path = format!("root/controllers/writer/workers-0/worker-{worker}");
                assert!(running.observer().kill(&path));
            }
        };
        let played = play_with(&stage, secrets, write, kill).await;
        assert!(!played.early && played.saw == ["a="], "{:?}", played.saw);
    });
}

/// Writes in every run, except for one key, which only runs again and again.
struct Shared(Arc<AtomicUsize>);

impl Reconciler<ConfigMap> for Shared {
    type Error = ClientError;

    async fn reconcile(&self, map: Arc<ConfigMap>, cx: &Context) -> Result<Outcome, ClientError> {
        let Self(free) = self;
        if map.name_any() == "free" {
            free.fetch_add(1, Relaxed);
            return Ok(Outcome::RequeueAfter(Duration::from_millis(100)));
        }
        let mut next = ConfigMap::clone(&map);
        next.annotations_mut()
            .insert("now".into(), cx.wall().to_string());
        cx.replace(&next).await?;
        Ok(Outcome::RequeueAfter(Duration::from_millis(900)))
    }
}

#[test]
fn g6_keys_that_wait_for_the_cache_keep_neither_workers_nor_permits_from_others() {
    Stage::play(21, |stage| async move {
        let free = Arc::new(AtomicUsize::new(0));
        for name in ["free", "a", "b", "c", "d"] {
            stage.create(name).await;
        }
        let controller = Controller::<ConfigMap>::named("shared")
            .resync(None)
            .concurrency(1);
        let shared = Shared(free.clone());
        let running = stage.start(controller.reconciler(move |_| shared)).await;
        stage.clock.sleep(Duration::from_secs(3)).await;
        let held = stage.sim.faults().stall_watches(Matcher::any());
        stage.clock.sleep(Duration::from_secs(2)).await;
        let before = free.load(Relaxed);
        stage.clock.sleep(Duration::from_secs(2)).await;
        let meanwhile = free.load(Relaxed) - before;
        assert!(
            meanwhile >= 15,
            "{meanwhile} runs in 2 s beside four keys that wait"
        );
        held.release();
        end(running).await;
    });
}

#[test]
fn g6_keys_whose_writes_are_asked_about_keep_neither_workers_nor_permits_from_others() {
    Stage::play(22, |stage| async move {
        let free = Arc::new(AtomicUsize::new(0));
        for name in ["free", "a", "b", "c", "d"] {
            stage.create(name).await;
        }
        let controller = Controller::<ConfigMap>::named("shared")
            .resync(None)
            .concurrency(1);
        let shared = Shared(free.clone());
        let running = stage.start(controller.reconciler(move |_| shared)).await;
        stage.clock.sleep(Duration::from_millis(2800)).await;
        // whatever is written is not answered, and nobody says what became of it
        let writes = Matcher::any().verb("update");
        stage.sim.faults().lose_answers(writes, u32::MAX);
        let held = stage.sim.faults().hang(Matcher::any().verb("get"));
        stage.clock.sleep(Duration::from_secs(2)).await;
        let before = free.load(Relaxed);
        stage.clock.sleep(Duration::from_secs(5)).await;
        let meanwhile = free.load(Relaxed) - before;
        assert!(
            meanwhile >= 40,
            "{meanwhile} runs in 5 s beside four keys that are asked about"
        );
        held.release();
        end(running).await;
    });
}

/// Goes on writing after its first run, through the client of that; beside a key that keeps the only worker busy.
struct Restless {
    clock: Clock,
    runs: Arc<Mutex<Vec<Instant>>>,
}

impl Reconciler<ConfigMap> for Restless {
    type Error = ClientError;

    async fn reconcile(&self, map: Arc<ConfigMap>, cx: &Context) -> Result<Outcome, ClientError> {
        if map.name_any() == "busy" {
            self.clock.sleep(Duration::from_millis(300)).await;
            return Ok(Outcome::RequeueAfter(Duration::from_millis(1)));
        }
        let first = {
            let mut runs = self.runs.lock().expect("lock");
            runs.push(self.clock.now());
            runs.len() == 1
        };
        if !first {
            return Ok(Outcome::RequeueAfter(Duration::from_millis(10)));
        }
        let (cx, clock, mut next) = (cx.clone(), self.clock.clone(), ConfigMap::clone(&map));
        tokio::spawn(async move {
            for beat in 0..1000 {
                clock.sleep(Duration::from_millis(100)).await;
                next.annotations_mut()
                    .insert("beat".into(), beat.to_string());
                next.metadata.resource_version = None;
                let _ = cx.replace(&next).await;
            }
        });
        Ok(Outcome::RequeueAfter(Duration::from_millis(10)))
    }
}

#[test]
fn g6_a_key_that_is_written_for_all_the_time_waits_for_the_cache_no_longer_than_others() {
    Stage::play(23, |stage| async move {
        stage.create("busy").await;
        stage.create("map").await;
        let runs: Arc<Mutex<Vec<Instant>>> = Arc::default();
        let restless = Restless {
            clock: stage.clock.clone(),
            runs: runs.clone(),
        };
        let controller = Controller::<ConfigMap>::named("restless")
            .resync(None)
            .concurrency(1);
        let running = stage.start(controller.reconciler(move |_| restless)).await;
        stage.clock.sleep(Duration::from_secs(1)).await;
        let held = stage.sim.faults().stall_watches(Matcher::any());
        stage.clock.sleep(Duration::from_secs(40)).await;
        let all = runs.lock().expect("lock").clone();
        let waits = all.windows(2).map(|pair| pair[1] - pair[0]);
        let longest = waits.max().expect("it runs again and again");
        assert!(longest < Duration::from_millis(5700), "{longest:?}");
        let idle = stage.clock.now() - *all.last().expect("it ran");
        assert!(idle < Duration::from_millis(5700), "{idle:?}");
        held.release();
        end(running).await;
    });
}
