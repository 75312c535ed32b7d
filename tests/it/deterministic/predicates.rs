//! What a predicate keeps from running, and what it does not.

use std::time::Duration;

use boatswain::Predicate;
use serde_json::json;

use super::{Script, Scripted, Stage, end};

fn quick(_: &boatswain::Key) -> Script {
    Script::Work(Duration::from_millis(1))
}

#[test]
fn a_predicate_filters_what_wakes_a_key_and_no_deletion_recreation_or_initial_state() {
    Stage::play(1, |stage| async move {
        let scripted = Scripted::new(&stage.clock, quick);
        stage.create("map").await;
        let controller = scripted.controller().when(Predicate::labels_changed());
        let running = stage.start(controller.reconciler(scripted.maker())).await;
        let settled = || stage.clock.sleep(Duration::from_secs(2));
        settled().await;
        assert_eq!(scripted.runs("map").len(), 1, "the initial state passes");
        stage.touch("map", "1").await;
        settled().await;
        assert_eq!(scripted.runs("map").len(), 1, "no label changed");
        let label = json!({ "metadata": { "labels": { "a": "b" } } });
        stage.patch("map", label).await;
        settled().await;
        assert_eq!(scripted.runs("map").len(), 2, "a label changed");
        stage.delete("map").await;
        stage.create("map").await;
        settled().await;
        let runs = scripted.runs("map").len();
        assert!(runs > 2, "another incarnation, labels or not: {runs}");
        end(running).await;
    });
}

#[test]
fn g7_a_predicate_that_panics_costs_nobody_a_run() {
    Stage::play(1, |stage| async move {
        let scripted = Scripted::new(&stage.clock, quick);
        let panics = Predicate::state("panics", |object| {
            assert!(object.key().name() != "bad", "as asked");
            false
        });
        let controller = scripted.controller().when(panics);
        let running = stage.start(controller.reconciler(scripted.maker())).await;
        stage.create("bad").await;
        stage.create("filtered").await;
        stage.clock.sleep(Duration::from_secs(2)).await;
        assert_eq!(scripted.runs("bad").len(), 1, "it passes");
        assert!(scripted.runs("filtered").is_empty());
        end(running).await;
    });
}
