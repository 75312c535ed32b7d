//! Replicas of one controller: one works, the others stand by, and what the first leaves undone the next does.

use boatswain::{LeaderOptions, Options};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn elected() -> Options {
    Options {
        leader: Some(LeaderOptions::default()),
        ..Options::default()
    }
}

fn leads(running: &Running) -> bool {
    running.observer().lease().is_some_and(|lease| lease.leads)
}

async fn until(clock: &Clock, what: &str, condition: impl Fn() -> bool) {
    let end = clock.now() + 120 * SECOND;
    while !condition() {
        assert!(clock.now() < end, "not within two minutes: {what}");
        clock.sleep(SECOND / 10).await;
    }
}

fn quick(_: &Key) -> Script {
    Script::Work(Duration::from_millis(5))
}

/// A replica with a reconciler of its own.
async fn replica(stage: &Stage, script: fn(&Key) -> Script) -> (Running, Scripted) {
    let scripted = Scripted::new(&stage.clock, script);
    let controller = scripted.controller().reconciler(scripted.maker());
    (stage.start_with(elected(), controller).await, scripted)
}

#[test]
fn g10_a_standby_runs_nothing_and_the_next_leader_runs_every_key() {
    for seed in 0..5 {
        Stage::play(seed, async |stage| {
            stage.create("a").await;
            stage.create("b").await;
            let (first, work) = replica(&stage, quick).await;
            until(&stage.clock, "the first works", || {
                work.runs("b").len() == 1
            })
            .await;
            let (second, idle) = replica(&stage, quick).await;
            for round in 0..20 {
                stage.touch("a", &round.to_string()).await;
                stage.clock.sleep(10 * SECOND).await;
            }
            assert_eq!(work.runs("a").len(), 21);
            assert!(idle.seen().is_empty(), "a standby worked");
            assert!(
                second.observer().ready().0,
                "a standby is ready: {}",
                second.observer().ready().1
            );
            assert_eq!(
                second.observer().controllers()[0].shut(),
                Some(boatswain::Shut::Standby)
            );

            end(first).await;
            until(&stage.clock, "the second works", || idle.seen().len() == 2).await;
            assert_eq!(idle.runs("a")[0].value.as_deref(), Some("19"));
            end(second).await;
        });
    }
}

#[test]
fn g10_a_leader_that_loses_the_lease_cancels_its_runs_and_works_again_when_it_is_back() {
    for seed in 0..5 {
        Stage::play(seed, async |stage| {
            fn slow(key: &Key) -> Script {
                match key.name() {
                    "hang" => Script::Hang,
                    _ => Script::Work(Duration::from_millis(5)),
                }
            }
            stage.create("a").await;
            stage.create("hang").await;
            let (only, work) = replica(&stage, slow).await;
            until(&stage.clock, "both run", || work.seen().len() == 2).await;
            stage.sim.faults().unreachable(true);
            until(&stage.clock, "the lease is lost", || !leads(&only)).await;
            stage.clock.sleep(SECOND).await;
            let metrics = only.observer().metrics();
            let idle = r#"controller_runtime_active_workers{controller="scripted"} 0"#;
            assert!(metrics.contains(idle), "it still runs: {metrics}");
            stage.clock.sleep(300 * SECOND).await;
            assert_eq!(work.runs("hang").len(), 1);
            stage.sim.faults().unreachable(false);
            until(&stage.clock, "every key runs again", || {
                work.runs("hang").len() == 2 && work.runs("a").len() == 2
            })
            .await;
            work.assert_one_at_a_time();
            stage.delete("hang").await;
            end(only).await;
        });
    }
}

#[test]
fn g10_what_is_deleted_between_two_leaders_is_told_to_the_next() {
    for seed in 0..5 {
        Stage::play(seed, async |stage| {
            stage.create("a").await;
            let (first, work) = replica(&stage, quick).await;
            let (second, _) = replica(&stage, quick).await;
            until(&stage.clock, "the first works", || {
                work.runs("a").len() == 1
            })
            .await;
            stage.clock.sleep(10 * SECOND).await;
            // its process ends without a word
            drop(first);
            stage.delete("a").await;
            until(&stage.clock, "the second leads", || leads(&second)).await;
            stage.clock.sleep(10 * SECOND).await;
            let ran = second.observer().metrics();
            assert!(
                ran.contains(r#"controller_runtime_reconcile_total{controller="scripted",result="success"} 1"#),
                "nobody was told of the deletion: {ran}"
            );
            end(second).await;
        });
    }
}

#[test]
fn g9_names_that_come_and_go_leave_nothing_in_a_standby() {
    Stage::play(1, async |stage| {
        stage.create("stays").await;
        let (first, work) = replica(&stage, quick).await;
        let (second, _) = replica(&stage, quick).await;
        until(&stage.clock, "the first works", || {
            work.runs("stays").len() == 1
        })
        .await;
        for i in 0..200 {
            let name = format!("name-{i}");
            stage.create(&name).await;
            stage.delete(&name).await;
        }
        stage.clock.sleep(10 * SECOND).await;
        let metrics = second.observer().metrics();
        let none = r#"controller_queue_depth{controller="scripted"} 0"#;
        assert!(metrics.contains(none), "a standby keeps cells: {metrics}");
        end(second).await;
        end(first).await;
    });
}
