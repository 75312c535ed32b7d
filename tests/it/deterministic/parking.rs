//! Keys that are out of the round: how they are seen, and what wakes them.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use boatswain::{
    Causes, ClientError, Clock, Context, Doing, Key, Lane, Outcome, Reconciler, Running,
};
use k8s_openapi::api::{core::v1::ConfigMap, events::v1::Event};
use kube::Api;

use super::{
    Stage, end,
    retries::{Broken, Player, Run, secs},
};

/// Fails for good unless its object says that it is cured, or is gone.
fn broken_until_cured(run: &Run) -> Result<Outcome, Broken> {
    match run.value.as_deref() {
        _ if run.gone => Ok(Outcome::Done),
        Some("cured") => Ok(Outcome::Done),
        _ => Err(Broken::Permanent),
    }
}

fn key(name: &str) -> Key {
    Key::new(Some("default"), name)
}

fn parked(running: &Running) -> Vec<String> {
    let parked = running.observer().parked("player");
    parked.iter().map(|p| p.key.name().to_owned()).collect()
}

/// How often parking was told on the object, over all of its Events.
async fn told(stage: &Stage) -> i32 {
    let events = Api::<Event>::namespaced(stage.client.clone(), "default");
    let events = events.list(&kube::api::ListParams::default()).await;
    let events = events.expect("listed").items;
    let parked = events
        .iter()
        .filter(|e| e.reason.as_deref() == Some("Parked"));
    parked
        .map(|e| e.series.as_ref().map_or(1, |s| s.count))
        .sum()
}

#[test]
fn what_cannot_succeed_is_parked_at_once_told_on_its_object_once_and_listed_with_its_reason() {
    Stage::play(1, |stage| async move {
        let player = Player::new(&stage, broken_until_cured);
        stage.create("map").await;
        let running = player.start(&stage).await;
        let begun = jiff::Timestamp::try_from(stage.clock.wall()).expect("in range");
        stage.clock.sleep(secs(60)).await;
        assert_eq!(player.runs("map").len(), 1);
        let list = running.observer().parked("player");
        assert_eq!(list.len(), 1);
        let parked = &list[0];
        assert_eq!((&parked.key, parked.failures), (&key("map"), 1));
        assert_eq!(parked.reason, "there is no class of that name");
        assert!(parked.since.duration_since(begun).as_secs() < 2);
        assert_eq!(parked.next_try.duration_since(parked.since).as_mins(), 30);
        assert_eq!(told(&stage).await, 1);
        let events = Api::<Event>::namespaced(stage.client.clone(), "default");
        let events = events.list(&kube::api::ListParams::default()).await;
        let event = &events.expect("listed").items[0];
        let regarding = event.regarding.as_ref().expect("an object");
        assert_eq!(regarding.kind.as_deref(), Some("ConfigMap"));
        assert_eq!(
            regarding.uid,
            stage.maps().get("map").await.expect("there").metadata.uid
        );
        assert!(
            event
                .note
                .as_ref()
                .is_some_and(|n| n.contains("no class of that name"))
        );

        stage.clock.sleep(Duration::from_secs(2 * 3600)).await;
        assert_eq!(
            player.runs("map").len(),
            5,
            "it is tried every half an hour"
        );
        assert_eq!(told(&stage).await, 1, "and not told again");
        end(running).await;
    });
}

#[test]
fn a_change_wakes_a_parked_key_and_so_does_the_resync() {
    Stage::play(2, |stage| async move {
        let player = Player::new(&stage, broken_until_cured);
        for name in ["changed", "looked-at"] {
            stage.create(name).await;
        }
        let controller = Player::controller().resync(secs(600));
        let running = player.start_as(&stage, controller).await;
        stage.clock.sleep(secs(30)).await;
        assert_eq!(parked(&running), ["changed", "looked-at"]);
        let changed = stage.clock.now();
        stage.touch("changed", "cured").await;
        stage.clock.sleep(secs(1)).await;
        let last = player.runs("changed").pop().expect("it ran");
        assert!(last.at >= changed && last.value.as_deref() == Some("cured"));
        assert_eq!(parked(&running), ["looked-at"]);
        stage.clock.sleep(secs(700)).await;
        let runs = player.runs("looked-at");
        assert!(runs.len() >= 2, "{runs:?}");
        assert!(runs[1].causes.to_string().contains("resync"), "{runs:?}");
        end(running).await;
    });
}

#[test]
fn a_parked_key_with_news_is_said_to_be_parked_until_it_has_rested() {
    Stage::play(12, |stage| async move {
        let player = Player::new(&stage, broken_until_cured);
        stage.create("map").await;
        let running = player.start(&stage).await;
        let handle = running.observer().controller("player");
        let handle = handle.expect("it is there");
        stage.clock.sleep(secs(1)).await;
        stage.touch("map", "still broken").await;
        stage.clock.sleep(secs(1)).await;
        let told = handle.explain(&key("map"));
        assert!(
            matches!(&told.now, Doing::Parked { reason, .. } if reason.contains("no class")),
            "{told}"
        );
        let next = told.next.expect("a time").duration_since(told.at);
        assert!((1..10).contains(&next.as_secs()), "{told}");
        assert!(told.pending.to_string().contains("updated"), "{told}");
        end(running).await;
    });
}

#[test]
fn parked_keys_of_objects_that_are_deleted_vanish() {
    Stage::play(3, |stage| async move {
        let player = Player::new(&stage, broken_until_cured);
        for name in ["kept", "lost"] {
            stage.create(name).await;
        }
        let running = player.start(&stage).await;
        stage.clock.sleep(secs(1)).await;
        assert_eq!(parked(&running), ["kept", "lost"]);
        // within the rest that news of a parked key wait out
        stage.delete("lost").await;
        stage.clock.sleep(secs(1)).await;
        assert_eq!(parked(&running), ["kept"]);
        assert!(player.runs("lost").pop().is_some_and(|run| run.gone));
        stage.clock.sleep(secs(3600)).await;
        assert_eq!(player.runs("lost").len(), 2);
        end(running).await;
    });
}

#[test]
fn people_unpark_hurry_and_ask_for_keys_and_a_shard_that_is_down_hears_of_it_later() {
    Stage::play(4, |stage| async move {
        let player = Player::new(&stage, |run| match run.name.as_str() {
            "idle" => Ok(Outcome::Done),
            "late" => Ok(Outcome::RequeueAfter(secs(3600))),
            "slow" => Err(Broken::Object),
            _ => Err(Broken::Permanent),
        });
        let names = ["idle", "late", "one", "other", "slow"];
        for name in names {
            stage.create(name).await;
        }
        let running = player
            .start_as(&stage, Player::controller().concurrency(1))
            .await;
        let controller = running
            .observer()
            .controller("player")
            .expect("it is there");
        stage.clock.sleep(secs(30)).await;
        assert_eq!(parked(&running), ["one", "other"]);
        let count = || names.map(|name| player.runs(name).len());
        let [idle, late, one, other, slow] = count();

        controller.unpark(&key("one"));
        controller.unpark(&key("idle"));
        controller.promote(&key("late"), Lane::User);
        controller.promote(&key("slow"), Lane::User);
        stage.clock.sleep(Duration::from_millis(10)).await;
        assert_eq!(count(), [idle, late + 1, one + 1, other, slow + 1]);
        let run = player.runs("one").pop().expect("it ran");
        assert!(run.attempt == 0 && run.causes.contains(Causes::UNPARKED));

        controller.enqueue(&key("idle"));
        controller.enqueue(&key("slow"));
        controller.unpark_all();
        stage.clock.sleep(Duration::from_millis(10)).await;
        assert_eq!(
            count(),
            [idle + 1, late + 1, one + 2, other + 1, slow + 1],
            "what backs off is not hurried by asking"
        );
        let run = player.runs("idle").pop().expect("it ran");
        assert_eq!(run.causes.to_string(), "asked");

        let before = count();
        assert!(running.observer().kill("root/controllers/player/shard-0"));
        for _ in 0..1000 {
            controller.enqueue(&key("idle"));
        }
        stage.clock.sleep(secs(5)).await;
        let since = player.runs("idle").split_off(before[0]);
        let asked = since
            .iter()
            .filter(|run| run.causes.contains(Causes::ASKED));
        assert_eq!(asked.count(), 1, "{since:?}");
        end(running).await;
    });
}

/// Counts in its own object, waits until the cache shows that, if it is patient, and gives up.
#[derive(Clone)]
struct Busy {
    clock: Clock,
    patience: Duration,
    runs: Arc<Mutex<Vec<Instant>>>,
}

impl Reconciler<ConfigMap> for Busy {
    type Error = ClientError;

    async fn reconcile(&self, map: Arc<ConfigMap>, cx: &Context) -> Result<Outcome, ClientError> {
        let count = {
            let mut runs = self.runs.lock().expect("lock");
            runs.push(self.clock.now());
            runs.len()
        };
        let mut next = ConfigMap::clone(&map);
        next.data = Some([("value".to_owned(), count.to_string())].into());
        cx.replace(&next).await?;
        self.clock.sleep(self.patience).await;
        Ok(Outcome::GiveUp("there is no way".to_owned()))
    }
}

#[test]
fn a_key_that_changes_its_object_and_gives_up_is_listed_all_the_time_and_told_once() {
    for patience in [0, 1] {
        Stage::play(6, |stage| async move {
            stage.create("map").await;
            let busy = Busy {
                clock: stage.clock.clone(),
                patience: secs(patience),
                runs: Arc::default(),
            };
            let shown = busy.clone();
            let controller = Player::controller().reconciler(move |_| shown);
            let running = stage.start(controller).await;
            stage.clock.sleep(secs(2)).await;
            let begun = stage.clock.now();
            for _ in 0..60 {
                // but while it runs
                stage.clock.sleep(secs(10)).await;
                let runs = busy.runs.lock().expect("lock").clone();
                let last = *runs.last().expect("it ran");
                if stage.clock.now() - last > secs(patience) {
                    let list = running.observer().parked("player");
                    assert_eq!(list.len(), 1, "after {:?}", stage.clock.now() - begun);
                    let wall = jiff::Timestamp::try_from(stage.clock.wall()).expect("in range");
                    assert!(list[0].next_try.duration_since(wall).as_secs() <= 10);
                    let metrics = running.observer().metrics();
                    let gauge = |name| metrics.lines().find(|line| line.starts_with(name));
                    let parked = gauge("controller_parked_keys").expect("a series");
                    assert!(parked.ends_with(" 1"), "{parked}");
                    let waiting = gauge("controller_waiting_keys").expect("a series");
                    assert!(waiting.ends_with(" 0"), "{waiting}");
                }
            }
            let runs = busy.runs.lock().expect("lock").len();
            assert!((40..=65).contains(&runs), "{runs} runs in 10 min");
            assert_eq!(told(&stage).await, 1);
            end(running).await;
        });
    }
}

#[test]
fn nothing_is_listed_of_a_manager_that_has_ended() {
    Stage::play(5, |stage| async move {
        let player = Player::new(&stage, broken_until_cured);
        stage.create("map").await;
        let running = player.start(&stage).await;
        stage.clock.sleep(secs(1)).await;
        let observer = Arc::new(running.observer().clone());
        assert_eq!(observer.parked("player").len(), 1);
        assert!(observer.controller("nobody").is_none());
        end(running).await;
        assert_eq!(observer.parked("player"), []);
        observer
            .controller("player")
            .expect("named")
            .unpark(&key("map"));
    });
}
