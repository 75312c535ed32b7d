//! Guarantee 7: a reconciler that panics or hangs for one key costs that key's attempts and nothing else.

use std::time::Duration;

use boatswain::{Key, TreeSnapshot};
use boatswain_supervision::NodeSnapshot;

use super::{Script, Scripted, Stage, end};

const KEYS: usize = 200;
const WORK: Duration = Duration::from_millis(10);

fn healthy(_: &Key) -> Script {
    Script::Work(WORK)
}

fn one_panics(key: &Key) -> Script {
    if key.name() == "map-000" {
        Script::Panic
    } else {
        Script::Work(WORK)
    }
}

fn one_hangs(key: &Key) -> Script {
    if key.name() == "map-000" {
        Script::Hang
    } else {
        Script::Work(WORK)
    }
}

fn name(i: usize) -> String {
    format!("map-{i:03}")
}

/// Changes each of the other keys in turn, one every 20 ms, and returns the 99th percentile of the time until its run began, with
/// what the tree looked like before and after.
async fn p99(stage: &Stage, scripted: &Scripted) -> (Duration, TreeSnapshot, TreeSnapshot) {
    for i in 0..KEYS {
        stage.create(&name(i)).await;
    }
    let running = stage.start(
        scripted
            .controller()
            .concurrency(2)
            .reconciler(scripted.maker()),
    );
    let running = running.await;
    stage.clock.sleep(Duration::from_secs(5)).await;
    let before = running.observer().snapshot();
    let mut latencies = Vec::new();
    for round in 0..10 {
        for i in 1..KEYS {
            let changed = stage.clock.now();
            let value = format!("{round}-{i}");
            stage.touch(&name(i), &value).await;
            stage.clock.sleep(Duration::from_millis(20)).await;
            let runs = scripted.runs(&name(i));
            let run = runs.iter().find(|run| run.value.as_deref() == Some(&value));
            latencies.push(run.map_or(Duration::MAX, |run| run.begun - changed));
        }
    }
    let after = running.observer().snapshot();
    end(running).await;
    latencies.sort_unstable();
    (latencies[latencies.len() * 99 / 100], before, after)
}

fn workers(snapshot: &TreeSnapshot) -> Vec<NodeSnapshot> {
    fn collect(node: &NodeSnapshot, into: &mut Vec<NodeSnapshot>) {
        if node.id.starts_with("worker-") {
            into.push(node.clone());
        }
        node.children.iter().for_each(|child| collect(child, into));
    }
    let mut workers = Vec::new();
    snapshot
        .root
        .iter()
        .for_each(|root| collect(root, &mut workers));
    workers
}

#[test]
fn g7_a_panicking_key_backs_off_by_the_formula_and_the_others_do_not_wait_for_it() {
    let (undisturbed, ..) = Stage::play(7, |stage| async move {
        let scripted = Scripted::new(&stage.clock, healthy);
        p99(&stage, &scripted).await
    });
    Stage::play(7, |stage| async move {
        let scripted = Scripted::new(&stage.clock, one_panics);
        let (disturbed, before, after) = p99(&stage, &scripted).await;
        assert!(
            disturbed <= undisturbed * 2 + Duration::from_millis(1),
            "p99 {disturbed:?} beside a panicking key, {undisturbed:?} without"
        );
        scripted.assert_one_at_a_time();

        let runs = scripted.runs("map-000");
        assert!(runs.len() >= 5, "{} attempts", runs.len());
        for (failures, pair) in runs.windows(2).enumerate() {
            let nominal =
                Duration::from_secs(60).min(Duration::from_secs(1) * 2u32.pow(failures as u32));
            let delay = pair[1].begun - pair[0].begun;
            // jitter of a fifth, and a run of another key that may have to end first
            let range = nominal.mul_f64(0.8)..=nominal.mul_f64(1.2) + WORK * 2;
            assert!(
                range.contains(&delay),
                "delay {failures} is {delay:?}, nominally {nominal:?}"
            );
            assert_eq!(pair[1].attempt, pair[0].attempt + 1);
        }
        let panics = runs.len() as u64;
        let restarts: u64 = workers(&after).iter().map(|worker| worker.restarts).sum();
        assert_eq!(restarts, panics, "the snapshot counts each crash");
        // mailboxes, and with them addresses, are made once per incarnation of the workers' supervisor
        let supervisor = after
            .find("root/controllers/scripted/workers-0")
            .expect("it is there");
        assert_eq!(
            (supervisor.incarnation, supervisor.restarts),
            (1, 0),
            "the same addresses before and after"
        );
        for (before, after) in workers(&before).iter().zip(workers(&after)) {
            assert_eq!(before.path, after.path);
            assert!(
                before.handled <= after.handled,
                "the same mailbox before and after"
            );
            let exit = after.last_exit.as_ref().map(|exit| format!("{exit:?}"));
            assert!(
                exit.is_none_or(|exit| exit.contains("scripted")),
                "a crash says what it was"
            );
        }
    });
}

#[test]
fn g7_a_hanging_key_is_cancelled_at_its_deadline_and_tried_again() {
    Stage::play(8, |stage| async move {
        let scripted = Scripted::new(&stage.clock, one_hangs);
        for i in 0..3 {
            stage.create(&name(i)).await;
        }
        let deadline = Duration::from_secs(30);
        let controller = scripted.controller().concurrency(1).deadline(deadline);
        let running = stage.start(controller.reconciler(scripted.maker()));
        let running = running.await;
        stage.clock.sleep(Duration::from_secs(300)).await;
        for i in 1..3 {
            assert_eq!(scripted.runs(&name(i)).len(), 1, "the others ran");
        }
        let runs = scripted.runs("map-000");
        assert!(runs.len() >= 3);
        for pair in runs.windows(2) {
            assert!(pair[1].begun - pair[0].begun >= deadline, "{pair:?}");
        }
        running
            .stop()
            .await
            .expect("a hanging reconcile is cancelled at the end of the grace period");
    });
}
