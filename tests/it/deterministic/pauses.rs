//! Runs that are held back: by hand, and on standby.

use std::time::Duration;

use super::{Script, Scripted, Stage, end};

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn metric(page: &str, line: &str) -> bool {
    page.lines().any(|found| found == line)
}

#[test]
fn a_paused_controller_ends_what_runs_begins_nothing_and_goes_on_collecting() {
    Stage::play(1, |stage| async move {
        let scripted = Scripted::new(&stage.clock, |_| Script::Work(secs(10)));
        stage.create("slow").await;
        let controller = scripted.controller().concurrency(2);
        let running = stage.start(controller.reconciler(scripted.maker())).await;
        let observer = running.observer().clone();
        let handle = observer.controller("scripted").expect("it is there");
        stage.clock.sleep(secs(5)).await;
        assert!(handle.paused().is_none() && handle.shut().is_none());
        handle.pause("ann, while the disk is changed");
        for value in ["1", "2", "3"] {
            stage.touch("slow", value).await;
        }
        for name in ["one", "other"] {
            stage.create(name).await;
        }
        stage.clock.sleep(secs(3600)).await;
        let slow = scripted.runs("slow");
        assert!(slow.len() == 1 && slow[0].ended.is_some(), "{slow:?}");
        assert!(scripted.runs("one").is_empty() && scripted.runs("other").is_empty());
        let page = observer.metrics();
        assert!(metric(
            &page,
            "controller_paused{controller=\"scripted\"} 1"
        ));
        assert!(metric(
            &page,
            "controller_queue_depth{controller=\"scripted\"} 3"
        ));
        let age = "controller_queue_oldest_age_seconds{controller=\"scripted\",lane=\"normal\"} ";
        let age = page.lines().find_map(|line| line.strip_prefix(age));
        let age: f64 = age.expect("a series").parse().expect("a number");
        assert!((3590.0..3601.0).contains(&age), "{age}");
        let tree = serde_json::to_string(&observer.snapshot()).expect("it serialises");
        assert!(tree.contains("ann, while the disk is changed"));

        // it outlives what crashes, and hears no news
        assert!(observer.kill("root/controllers/scripted/shard-0"));
        stage.clock.sleep(secs(60)).await;
        assert!(scripted.runs("one").is_empty());
        handle.resume();
        stage.clock.sleep(secs(60)).await;
        let last = scripted.runs("slow").pop().expect("it ran");
        assert_eq!(last.value.as_deref(), Some("3"));
        assert_eq!(scripted.runs("slow").len(), 2, "three changes are one run");
        assert_eq!(scripted.runs("one").len() + scripted.runs("other").len(), 2);
        assert!(
            scripted
                .seen()
                .values()
                .flatten()
                .all(|run| run.attempt == 0)
        );
        scripted.assert_one_at_a_time();
        end(running).await;
    });
}

#[test]
fn a_standby_begins_nothing_until_it_leads_and_a_pause_outlasts_that() {
    Stage::play(2, |stage| async move {
        let scripted = Scripted::new(&stage.clock, |_| Script::Work(Duration::ZERO));
        let controller = scripted.controller();
        let running = stage.start(controller.reconciler(scripted.maker())).await;
        let observer = running.observer().clone();
        let handle = observer.controller("scripted").expect("it is there");
        handle.standby(true);
        handle.pause("test");
        stage.create("map").await;
        stage.clock.sleep(secs(60)).await;
        assert_eq!(handle.shut(), Some(boatswain::Shut::Standby));
        handle.standby(false);
        stage.clock.sleep(secs(60)).await;
        assert!(matches!(handle.shut(), Some(boatswain::Shut::Paused(_))));
        assert!(scripted.runs("map").is_empty());
        handle.resume();
        stage.clock.sleep(secs(1)).await;
        assert_eq!(scripted.runs("map").len(), 1);
        end(running).await;
    });
}

#[test]
fn a_paused_controller_stops_like_any_other() {
    Stage::play(3, |stage| async move {
        let scripted = Scripted::new(&stage.clock, |_| Script::Work(Duration::ZERO));
        stage.create("map").await;
        let controller = scripted.controller();
        let running = stage.start(controller.reconciler(scripted.maker())).await;
        running
            .observer()
            .controller("scripted")
            .expect("it is there")
            .pause("test");
        end(running).await;
    });
}
