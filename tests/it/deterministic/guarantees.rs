//! Guarantees 1 to 3: one at a time, nothing is lost, coalescing.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use boatswain::{ClientError, Context, Controller, Key, Outcome, Reconciler};
use boatswain_apisim::Matcher;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{ResourceExt as _, api::DeleteParams};

use super::{Script, Scripted, Stage, end};

fn slow(_: &Key) -> Script {
    Script::Work(Duration::from_millis(500))
}

#[test]
fn g3_changes_while_a_key_runs_lead_to_one_more_run() {
    Stage::play(1, |stage| async move {
        let scripted = Scripted::new(&stage.clock, slow);
        stage.create("map").await;
        let running = stage.start(scripted.controller().reconciler(scripted.maker()));
        let running = running.await;
        stage.clock.sleep(Duration::from_millis(100)).await;
        for i in 0..50 {
            stage.touch("map", &i.to_string()).await;
            stage.clock.sleep(Duration::from_millis(5)).await;
        }
        stage.clock.sleep(Duration::from_secs(5)).await;
        let runs = scripted.runs("map");
        assert_eq!(
            runs.len(),
            2,
            "one run before, one for all fifty changes: {runs:?}"
        );
        assert_eq!(
            runs[1].value.as_deref(),
            Some("49"),
            "guarantee 2: the last change was seen"
        );
        scripted.assert_one_at_a_time();
        end(running).await;
    });
}

#[test]
fn g1_g2_every_last_change_of_many_keys_is_seen_by_a_later_run_that_overlaps_no_other() {
    for seed in 0..20 {
        Stage::play(seed, |stage| async move {
            let scripted = Scripted::new(&stage.clock, |key| match key.name().as_bytes().last() {
                Some(last) => Script::Work(Duration::from_millis(u64::from(last % 7) * 30)),
                None => Script::Work(Duration::ZERO),
            });
            let running = stage.start(
                scripted
                    .controller()
                    .concurrency(3)
                    .reconciler(scripted.maker()),
            );
            let running = running.await;
            let entropy = stage.options.entropy.clone();
            for i in 0..20 {
                stage.create(&format!("map-{i}")).await;
            }
            let mut last = vec![None; 20];
            for change in 0..400 {
                let i = entropy.range(0..20) as usize;
                let value = change.to_string();
                stage.touch(&format!("map-{i}"), &value).await;
                last[i] = Some((value, stage.clock.now()));
                stage
                    .clock
                    .sleep(Duration::from_millis(entropy.range(0..40)))
                    .await;
            }
            stage.clock.sleep(Duration::from_secs(30)).await;
            for (i, last) in last.into_iter().enumerate() {
                let Some((value, at)) = last else { continue };
                let runs = scripted.runs(&format!("map-{i}"));
                let final_run = runs.last().expect("it ran");
                assert_eq!(final_run.value.as_deref(), Some(value.as_str()));
                assert!(final_run.begun >= at);
            }
            scripted.assert_one_at_a_time();
            end(running).await;
        });
    }
}

#[test]
fn one_seed_gives_one_run() {
    let play = || {
        Stage::play(42, |stage| async move {
            let scripted = Scripted::new(&stage.clock, slow);
            let start = stage.clock.now();
            for i in 0..30 {
                stage.create(&format!("map-{i}")).await;
            }
            let running = stage.start(scripted.controller().reconciler(scripted.maker()));
            let running = running.await;
            stage.clock.sleep(Duration::from_secs(60)).await;
            end(running).await;
            let seen = scripted.seen();
            let times = seen
                .iter()
                .flat_map(|(key, runs)| runs.iter().map(|run| (key.clone(), run.begun - start)));
            times.collect::<Vec<_>>()
        })
    };
    assert_eq!(play(), play());
}

/// Writes down the last states of what it was told is gone.
#[derive(Clone, Default)]
struct Mourner(Arc<Mutex<Vec<Gone>>>);

/// The name of what is gone, and the value it had.
type Gone = (String, Option<String>);

impl Reconciler<ConfigMap> for Mourner {
    type Error = Infallible;

    async fn reconcile(&self, _: Arc<ConfigMap>, _: &Context) -> Result<Outcome, Infallible> {
        Ok(Outcome::Done)
    }

    async fn gone(
        &self,
        key: &Key,
        last: Option<Arc<ConfigMap>>,
        _: &Context,
    ) -> Result<Outcome, Infallible> {
        let value = last.and_then(|map| map.data.as_ref()?.get("value").cloned());
        self.0
            .lock()
            .expect("lock")
            .push((key.name().to_owned(), value));
        Ok(Outcome::Done)
    }
}

#[test]
fn g4_an_object_that_vanishes_while_nobody_watches_is_told_as_gone_with_its_last_known_state() {
    Stage::play(4, |stage| async move {
        for name in ["kept", "lost"] {
            stage.create(name).await;
            stage.touch(name, "last words").await;
        }
        let mourner = Mourner::default();
        let running = stage
            .start(
                Controller::<ConfigMap>::named("mourner")
                    .resync(None)
                    .reconciler({
                        let mourner = mourner.clone();
                        move |_| mourner
                    }),
            )
            .await;
        stage.clock.sleep(Duration::from_secs(5)).await;
        // the watch is held, the history forgotten: nothing tells of the deletion but a list that lacks the object
        let held = stage.sim.faults().stall_watches(Matcher::any());
        stage
            .maps()
            .delete("lost", &DeleteParams::default())
            .await
            .expect("deleted");
        stage.sim.compact();
        held.release();
        stage.sim.faults().drop_watches();
        stage.clock.sleep(Duration::from_secs(60)).await;
        let told = mourner.0.lock().expect("lock").clone();
        assert_eq!(told, [("lost".to_owned(), Some("last words".to_owned()))]);
        end(running).await;
    });
}

/// Adds one to a counter in the object, as long as it is below three, each time asking to run again at once.
struct Counter;

impl Reconciler<ConfigMap> for Counter {
    type Error = ClientError;

    async fn reconcile(&self, map: Arc<ConfigMap>, cx: &Context) -> Result<Outcome, ClientError> {
        let count = |map: &ConfigMap| {
            map.annotations()
                .get("count")
                .map_or(0, |n| n.parse().unwrap_or(0))
        };
        let now: u32 = count(&map);
        if now >= 3 {
            return Ok(Outcome::Done);
        }
        let mut next = ConfigMap::clone(&map);
        next.annotations_mut()
            .insert("count".into(), (now + 1).to_string());
        cx.replace(&next).await?;
        Ok(Outcome::RequeueAfter(Duration::from_millis(1)))
    }
}

#[test]
fn g6_a_run_does_not_start_on_a_cache_older_than_what_the_run_before_wrote() {
    Stage::play(6, |stage| async move {
        stage.create("map").await;
        let running = stage
            .start(
                Controller::<ConfigMap>::named("counter")
                    .resync(None)
                    .reconciler(|_| Counter),
            )
            .await;
        stage.clock.sleep(Duration::from_secs(1)).await;
        let conflicts = stage
            .sim
            .audit()
            .iter()
            .filter(|entry| entry.code == 409)
            .count();
        assert_eq!(conflicts, 0, "a run saw a state older than its own write");
        // each write is held back from the watch for a second: the next run waits for it
        stage.create("late").await;
        stage.clock.sleep(Duration::from_millis(100)).await;
        let before = stage.sim.audit().len();
        for _ in 0..3 {
            let held = stage.sim.faults().stall_watches(Matcher::any());
            stage.clock.sleep(Duration::from_secs(1)).await;
            held.release();
            stage.clock.sleep(Duration::from_millis(100)).await;
        }
        stage.clock.sleep(Duration::from_secs(10)).await;
        let conflicts = stage.sim.audit()[before..]
            .iter()
            .filter(|entry| entry.code == 409)
            .count();
        assert_eq!(conflicts, 0);
        let map = stage.maps().get("late").await.expect("there");
        assert_eq!(
            map.annotations().get("count").map(String::as_str),
            Some("3")
        );
        end(running).await;
    });
}

#[test]
fn g11_a_stop_lets_running_reconciles_finish_and_starts_no_more() {
    Stage::play(11, |stage| async move {
        let scripted = Scripted::new(&stage.clock, |_| Script::Work(Duration::from_secs(10)));
        for i in 0..10 {
            stage.create(&format!("map-{i}")).await;
        }
        let running = stage
            .start(
                scripted
                    .controller()
                    .concurrency(2)
                    .reconciler(scripted.maker()),
            )
            .await;
        stage.clock.sleep(Duration::from_secs(5)).await;
        let asked = stage.clock.now();
        end(running).await;
        let seen = scripted.seen();
        let runs: Vec<_> = seen.values().flatten().collect();
        assert_eq!(runs.len(), 2, "no more were started: {runs:?}");
        assert!(
            runs.iter()
                .all(|run| run.ended.is_some_and(|end| end > asked)),
            "both finished: {runs:?}"
        );
    });
}
