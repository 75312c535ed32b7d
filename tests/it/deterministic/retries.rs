//! How failing keys are retried: whose fault it was, for how long, and what ends a wait.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use boatswain::{
    Causes, Clock, Context, Controller, Fault, Key, LiveError, Outcome, Reconciler, RetryPolicy,
};
use boatswain_apisim::{Matcher, Rejection};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};

use super::{Stage, end};

/// A run of a key: of its object, or of what is told to be gone.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) name: String,
    pub(super) at: Instant,
    pub(super) value: Option<String>,
    pub(super) attempt: u32,
    pub(super) last: bool,
    pub(super) gone: bool,
    pub(super) causes: Causes,
}

/// What a run ends with.
pub(super) type Ended = Result<Outcome, Broken>;

#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    #[error("scripted")]
    Object,
    #[error("there is no class of that name")]
    Permanent,
    #[error("while looking it up")]
    Read(#[source] LiveError),
}

/// A reconciler that does what the test says and writes down every run.
#[derive(Clone)]
pub(super) struct Player {
    clock: Clock,
    script: Arc<dyn Fn(&Run) -> Ended + Send + Sync>,
    /// Reads this Secret past the cache first, if there is to be one.
    reads: Option<&'static str>,
    runs: Arc<Mutex<Vec<Run>>>,
}

impl Player {
    pub(super) fn new(
        stage: &Stage,
        script: impl Fn(&Run) -> Ended + Send + Sync + 'static,
    ) -> Self {
        Self {
            clock: stage.clock.clone(),
            script: Arc::new(script),
            reads: None,
            runs: Arc::default(),
        }
    }

    pub(super) fn controller() -> Controller<ConfigMap> {
        Controller::<ConfigMap>::named("player").resync(None)
    }

    pub(super) async fn start(&self, stage: &Stage) -> boatswain::Running {
        self.start_as(stage, Self::controller()).await
    }

    pub(super) async fn start_as(
        &self,
        stage: &Stage,
        controller: Controller<ConfigMap>,
    ) -> boatswain::Running {
        let player = self.clone();
        stage.start(controller.reconciler(|_| player)).await
    }

    pub(super) fn runs(&self, name: &str) -> Vec<Run> {
        let runs = self.runs.lock().expect("lock");
        let of_it = runs.iter().filter(|run| run.name == name);
        of_it.cloned().collect()
    }

    async fn play(&self, key: &Key, object: Option<&ConfigMap>, cx: &Context) -> Ended {
        let data = object.and_then(|map| map.data.as_ref());
        let run = Run {
            name: key.name().to_owned(),
            at: self.clock.now(),
            value: data.and_then(|data| data.get("value").cloned()),
            attempt: cx.attempt(),
            last: cx.last_attempt(),
            gone: object.is_none(),
            causes: cx.causes(),
        };
        self.runs.lock().expect("lock").push(run.clone());
        if let Some(name) = self.reads {
            let key = Key::new(Some("default"), name);
            let read = cx.live::<Secret>().get_live(&key).await;
            read.map_err(Broken::Read)?;
        }
        (self.script)(&run)
    }
}

impl Reconciler<ConfigMap> for Player {
    type Error = Broken;

    async fn reconcile(&self, map: Arc<ConfigMap>, cx: &Context) -> Ended {
        self.play(cx.key(), Some(&map), cx).await
    }

    async fn gone(&self, key: &Key, _: Option<Arc<ConfigMap>>, cx: &Context) -> Ended {
        self.play(key, None, cx).await
    }

    fn classify(&self, error: &Broken) -> Fault {
        match error {
            Broken::Permanent => Fault::Permanent,
            error => Fault::of(error),
        }
    }
}

pub(super) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

#[test]
fn what_is_not_ready_is_looked_at_again_at_once_when_something_happens_and_is_no_failure() {
    Stage::play(1, |stage| async move {
        let player = Player::new(&stage, |run| match run.value.as_deref() {
            Some("ready") => Ok(Outcome::Done),
            _ => Ok(Outcome::Retry),
        });
        stage.create("map").await;
        let running = player.start(&stage).await;
        stage.clock.sleep(secs(300)).await;
        let before = player.runs("map");
        assert!(before.len() > 20, "{} looks in 5 min", before.len());
        assert!(before.iter().all(|run| run.attempt == 0 && !run.last));
        let changed = stage.clock.now();
        stage.touch("map", "ready").await;
        stage.clock.sleep(secs(60)).await;
        let after = player.runs("map")[before.len()..].to_vec();
        assert_eq!(after.len(), 1, "{after:?}");
        assert!(after[0].at - changed < Duration::from_millis(100));
        let both = Causes::UPDATED.and(Causes::RETRY);
        assert!(after[0].causes.contains(both), "{:?}", after[0].causes);
        end(running).await;
    });
}

#[test]
fn a_change_runs_a_key_whose_backoff_is_over_without_waiting_for_its_turn_in_line() {
    Stage::play(2, |stage| async move {
        let player = Player::new(&stage, |run| match run.value.as_deref() {
            Some("cured") => Ok(Outcome::Done),
            _ => Err(Broken::Object),
        });
        for i in 0..1000 {
            stage.create(&format!("map-{i}")).await;
        }
        let running = player.start(&stage).await;
        stage.clock.sleep(secs(40)).await;
        // a thousand keys at ten a second: each stands in line for a minute and more
        for i in [3, 500, 999] {
            let name = format!("map-{i}");
            let before = player.runs(&name).len();
            let changed = stage.clock.now();
            stage.touch(&name, "cured").await;
            stage.clock.sleep(secs(12)).await;
            let runs = player.runs(&name);
            assert_eq!(runs.len(), before + 1, "{name}");
            assert!(runs[before].at - changed < secs(11), "{name}");
        }
        end(running).await;
    });
}

#[test]
fn retries_keep_their_pace_although_the_limiter_crashes_again_and_again() {
    Stage::play(10, |stage| async move {
        let player = Player::new(&stage, |_| Err(Broken::Object));
        for i in 0..300 {
            stage.create(&format!("map-{i}")).await;
        }
        let running = player.start(&stage).await;
        for _ in 0..12 {
            stage.clock.sleep(secs(5)).await;
            assert!(running.observer().kill("root/controllers/player/limiter"));
        }
        let runs = player.runs.lock().expect("lock").len();
        let most = 300 + 100 + 10 * 60;
        assert!((most - 100..=most).contains(&runs), "{runs} runs");
        end(running).await;
    });
}

#[test]
fn names_whose_objects_failed_and_went_are_told_gone_at_once_however_many_stand_in_line() {
    Stage::play(3, |stage| async move {
        let player = Player::new(&stage, |run| match run.gone {
            true => Ok(Outcome::Done),
            false => Err(Broken::Object),
        });
        let names: Vec<_> = (0..500).map(|i| format!("map-{i}")).collect();
        for name in &names {
            stage.create(name).await;
        }
        let running = player.start(&stage).await;
        stage.clock.sleep(secs(30)).await;
        let gone = stage.clock.now();
        for name in &names {
            stage.delete(name).await;
        }
        stage.clock.sleep(secs(2)).await;
        for name in &names {
            let last = player.runs(name).pop().expect("it ran");
            assert!(
                last.gone && last.at >= gone && last.attempt == 0,
                "{name}: {last:?}"
            );
        }
        let metrics = running.observer().metrics();
        for gauge in ["controller_waiting_keys", "controller_queue_depth"] {
            let line = metrics.lines().find(|line| line.starts_with(gauge));
            assert!(line.is_some_and(|line| line.ends_with(" 0")), "{line:?}");
        }
        end(running).await;
    });
}

#[test]
fn an_object_created_anew_under_a_name_begins_without_the_failures_of_the_old_one() {
    Stage::play(4, |stage| async move {
        let player = Player::new(&stage, |run| match run.gone {
            true => Ok(Outcome::Done),
            false => Err(Broken::Object),
        });
        stage.create("map").await;
        let running = player.start(&stage).await;
        stage.clock.sleep(secs(60)).await;
        assert!(player.runs("map").len() > 8, "it has failed for a while");
        stage.delete("map").await;
        stage.create("map").await;
        let born = stage.clock.now();
        stage.clock.sleep(secs(1)).await;
        let runs = player.runs("map");
        let second: Vec<_> = runs
            .iter()
            .filter(|run| run.at >= born && !run.gone)
            .collect();
        let attempts: Vec<_> = second.iter().map(|run| run.attempt).collect();
        assert_eq!(attempts, [0, 1, 2, 3], "now, and after 100, 200 and 400 ms");
        end(running).await;
    });
}

#[test]
fn the_last_retry_is_told_once_and_its_failure_parks_the_key_by_its_sixteenth() {
    Stage::play(5, |stage| async move {
        let player = Player::new(&stage, |_| Err(Broken::Object));
        stage.create("map").await;
        let running = player.start(&stage).await;
        stage.clock.sleep(secs(600)).await;
        let runs = player.runs("map");
        let ladder: Vec<_> = runs.iter().map(|run| (run.attempt, run.last)).collect();
        let expected: Vec<_> = (0..=15).map(|attempt| (attempt, attempt == 15)).collect();
        assert_eq!(ladder, expected);
        let waits = runs
            .windows(2)
            .map(|pair| (pair[1].at - pair[0].at).as_secs_f64());
        for (failures, wait) in (0_i32..).zip(waits) {
            let plain = (0.1 * 2_f64.powi(failures)).min(10.0);
            assert!(
                (plain * 0.79..plain * 1.21).contains(&wait),
                "{plain}: {wait}"
            );
        }
        assert_eq!(running.observer().parked("player").len(), 1);
        end(running).await;
    });
}

#[test]
fn a_policy_is_chosen_by_name_for_each_controller() {
    Stage::play(6, |stage| async move {
        let player = Player::new(&stage, |_| Err(Broken::Object));
        stage.create("map").await;
        let controller = Player::controller().retry(RetryPolicy {
            max_retries: 100,
            ..RetryPolicy::client_go()
        });
        let running = player.start_as(&stage, controller).await;
        stage.clock.sleep(secs(3000)).await;
        let runs = player.runs("map");
        let waits = runs
            .windows(2)
            .map(|pair| (pair[1].at - pair[0].at).as_millis());
        let waits: Vec<_> = waits.collect();
        assert_eq!(waits[..6], [5, 10, 20, 40, 80, 160]);
        assert_eq!(waits[17..], [655_360, 1_000_000], "{} waits", waits.len());
        end(running).await;
    });
}

/// Plays an outage that reads past the cache see, and returns who ran how often meanwhile.
async fn outage(stage: &Stage, keys: usize, length: Duration) -> usize {
    let player = Player {
        reads: Some("key"),
        ..Player::new(stage, |_| Ok(Outcome::Done))
    };
    let names: Vec<_> = (0..keys).map(|i| format!("map-{i}")).collect();
    for name in &names {
        stage.create(name).await;
    }
    let secrets = Matcher::any().resource("secrets");
    let refusals = Rejection::new(503).times(u32::MAX);
    stage.sim.faults().reject(secrets, refusals);
    let running = player.start(stage).await;
    stage.clock.sleep(length).await;
    let meanwhile = player.runs(&names[0]).len();
    assert_eq!(running.observer().parked("player"), []);
    stage.sim.faults().clear();
    let back = stage.clock.now();
    stage.clock.sleep(secs(13)).await;
    let settled = player.runs.lock().expect("lock").len();
    for name in &names {
        let last = player.runs(name).pop().expect("it ran");
        assert!(last.at >= back, "{name} has not come back");
    }
    stage.clock.sleep(secs(600)).await;
    let later = player.runs.lock().expect("lock").len();
    assert_eq!(settled, later, "all is done");
    end(running).await;
    meanwhile
}

#[test]
fn an_outage_of_an_hour_seen_by_reads_past_the_cache_parks_nobody() {
    Stage::play(7, |stage| async move {
        let runs = outage(&stage, 20, secs(3600)).await;
        assert!(runs > 300, "it is tried all the time: {runs}");
    });
}

#[test]
fn all_keys_come_back_within_seconds_of_the_end_of_an_outage_however_many_they_are() {
    Stage::play(8, |stage| async move {
        outage(&stage, 500, secs(30)).await;
    });
}

#[test]
fn a_server_that_asks_to_be_left_alone_for_a_day_is_asked_again_after_five_minutes() {
    Stage::play(8, |stage| async move {
        let player = Player {
            reads: Some("key"),
            ..Player::new(&stage, |_| Ok(Outcome::Done))
        };
        stage.create("map").await;
        let secrets = Matcher::any().resource("secrets");
        let busy = Rejection::new(429).retry_after(86_400);
        stage.sim.faults().reject(secrets, busy);
        let running = player.start(&stage).await;
        stage.clock.sleep(secs(100)).await;
        stage.touch("map", "news").await;
        stage.clock.sleep(secs(1000)).await;
        let runs = player.runs("map");
        assert_eq!(runs.len(), 2, "{runs:?}");
        assert_eq!((runs[1].at - runs[0].at).as_secs(), 300);
        end(running).await;
    });
}

/// Hangs in its first three runs; whoever runs it is then killed.
#[test]
fn a_key_that_costs_its_worker_its_life_each_time_is_parked_in_the_end() {
    Stage::play(9, |stage| async move {
        let scripted = super::Scripted::new(&stage.clock, |_| super::Script::Hang);
        stage.create("map").await;
        let controller = scripted.controller().concurrency(1).retry(RetryPolicy {
            max_retries: 2,
            ..RetryPolicy::default()
        });
        let running = stage.start(controller.reconciler(scripted.maker())).await;
        let observer = running.observer();
        for _ in 0..100 {
            stage.clock.sleep(secs(5)).await;
            observer.kill("root/controllers/scripted/workers-0/worker-0");
        }
        let runs = scripted.runs("map").len();
        assert_eq!(runs, 5, "two that do not count and three that do");
        let parked = observer.parked("scripted");
        assert_eq!(parked.len(), 1);
        assert!(parked[0].reason.contains("worker was lost"), "{parked:?}");
        end(running).await;
    });
}
