//! What goes first, and what is said of a reconciler that panics on everything.

use std::{sync::Arc, time::Duration};

use boatswain::{Lane, Object};
use kube::api::PostParams;
use serde_json::json;

use super::{Script, Scripted, Stage, end, metric};

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// Names in the order their first runs began.
fn order(scripted: &Scripted) -> Vec<String> {
    let seen = scripted.seen();
    let mut first: Vec<_> = seen
        .iter()
        .map(|(key, runs)| (runs[0].begun, key.name().to_owned()))
        .collect();
    first.sort();
    first.into_iter().map(|(_, name)| name).collect()
}

fn vip(object: &Object) -> Lane {
    let labels = object.labels();
    match labels.get("rank").map(String::as_str) {
        Some("vip") => Lane::User,
        Some("low") => Lane::Low,
        Some("broken") => panic!("scripted"),
        _ => Lane::Normal,
    }
}

impl Stage {
    async fn create_ranked(&self, name: &str, rank: &str) {
        let map = json!({ "metadata": { "name": name, "labels": { "rank": rank } } });
        let map = serde_json::from_value(map).expect("an object");
        let made = self.maps().create(&PostParams::default(), &map).await;
        made.expect("created");
    }
}

#[test]
fn objects_that_are_said_to_be_urgent_go_first_also_in_the_first_list() {
    Stage::play(1, |stage| async move {
        // more than are on their way to the store at once: it has the first before the list is read to its end
        for n in 0..1000 {
            stage.create(&format!("any-{n}")).await;
        }
        stage.create_ranked("low", "low").await;
        // in the midst of the list
        stage.create_ranked("any-400-vip", "vip").await;
        let scripted = Scripted::new(&stage.clock, |_| Script::Work(Duration::from_millis(1)));
        let controller = scripted.controller().concurrency(1).priority(vip);
        let running = stage.start(controller.reconciler(scripted.maker())).await;
        stage.clock.sleep(secs(10)).await;
        let first = order(&scripted);
        let place = first.iter().position(|name| name == "any-400-vip");
        assert!(first.len() == 1002 && place < Some(10), "{place:?}");

        // while they wait, what comes later overtakes by rank
        let handle = running
            .observer()
            .controller("scripted")
            .expect("there")
            .clone();
        handle.pause("test");
        stage.create_ranked("a-low", "low").await;
        stage.create("b-any").await;
        stage.create_ranked("c-broken", "broken").await;
        stage.create_ranked("d-vip", "vip").await;
        stage.clock.sleep(secs(1)).await;
        handle.resume();
        stage.clock.sleep(secs(10)).await;
        let later = order(&scripted).split_off(1002);
        assert_eq!(later, ["d-vip", "b-any", "c-broken", "a-low"]);
        let failures = "controller_priority_failures_total{controller=\"scripted\"}";
        assert_ne!(metric::<u64>(&running, failures), 0);
        end(running).await;
    });
}

#[test]
fn a_controller_that_panics_on_many_keys_is_degraded_until_it_has_not_for_a_while() {
    Stage::play(2, |stage| async move {
        let scripted = Scripted::new(&stage.clock, |key| match key.name() {
            "well" => Script::Work(Duration::ZERO),
            _ => Script::Panic,
        });
        for n in 0..9 {
            stage.create(&format!("map-{n}")).await;
        }
        let controller = scripted.controller();
        let running = stage.start(controller.reconciler(scripted.maker())).await;
        let observer = Arc::new(running.observer().clone());
        let is_degraded = || {
            let page = observer.metrics();
            let line = "controller_degraded{controller=\"scripted\"} 1";
            let tree = observer.snapshot();
            let text = serde_json::to_string(&tree).expect("it serialises");
            let metric = page.lines().any(|found| found == line);
            assert_eq!(
                metric,
                text.contains("its reconciler panicked on 1"),
                "{text}"
            );
            assert_eq!(metric, text.contains("\"degraded\":true"), "{text}");
            metric
        };
        stage.clock.sleep(secs(60)).await;
        assert!(!is_degraded(), "nine keys may all be wrong");
        stage.create("map-9").await;
        stage.create("well").await;
        stage.clock.sleep(secs(60)).await;
        assert!(is_degraded());
        assert_eq!(scripted.runs("well").len(), 1, "others go on");
        assert!(observer.live().0, "a restart of the process would not help");
        assert!(observer.kill("root/controllers/scripted/shard-0"));
        stage.clock.sleep(secs(1)).await;
        assert!(is_degraded(), "it is of the controller, not of an actor");
        for n in 0..10 {
            stage.delete(&format!("map-{n}")).await;
        }
        stage.clock.sleep(secs(9 * 60)).await;
        assert!(is_degraded());
        stage.clock.sleep(secs(3 * 60)).await;
        assert!(!is_degraded());
        end(running).await;
    });
}
