//! Guarantees 1 to 3: one at a time, nothing is lost, coalescing.

use std::time::Duration;

use boatswain::Key;

use super::{Script, Scripted, Stage};

fn slow(_: &Key) -> Script {
    Script::Work(Duration::from_millis(500))
}

#[test]
fn g3_changes_while_a_key_runs_lead_to_one_more_run() {
    Stage::play(1, |stage| async move {
        let scripted = Scripted::new(&stage.clock, slow);
        stage.create("map").await;
        let running = stage.start(scripted.controller().reconciler({
            let scripted = scripted.clone();
            move |_| scripted
        }));
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
        running.stop().await.expect("nothing still runs");
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
            let running = stage.start(scripted.controller().concurrency(3).reconciler({
                let scripted = scripted.clone();
                move |_| scripted
            }));
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
            running.stop().await.expect("nothing still runs");
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
            let running = stage.start(scripted.controller().reconciler({
                let scripted = scripted.clone();
                move |_| scripted
            }));
            let running = running.await;
            stage.clock.sleep(Duration::from_secs(60)).await;
            running.stop().await.expect("nothing still runs");
            let seen = scripted.seen();
            let times = seen
                .iter()
                .flat_map(|(key, runs)| runs.iter().map(|run| (key.clone(), run.begun - start)));
            times.collect::<Vec<_>>()
        })
    };
    assert_eq!(play(), play());
}
