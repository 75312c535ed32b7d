//! Children that are terminated, restarted, deleted and suspended by hand.

use std::sync::Arc;

use super::{HOUR, SECOND, end, nested};
use crate::scripted::{Begin, Do, World};
use crate::testing::run;
use crate::{NodeState, Restart, StartError, StopError, Strategy, Tree};

fn state(tree: &Tree, path: &str) -> Option<NodeState> {
    tree.snapshot().find(path).map(|node| node.state)
}

#[test]
fn a_terminated_child_keeps_its_place_and_its_messages_until_it_is_started_again() {
    for strategy in [
        Strategy::OneForOne,
        Strategy::OneForAll,
        Strategy::RestForOne,
    ] {
        run(1, async |options| {
            let world = World::default();
            let spec = world.root(strategy, &["a", "b", "c"], |_, child| child);
            let tree = Tree::start(spec, options.clone()).await.unwrap();
            world.news();
            tree.terminate_child("root/b").await.unwrap();
            tree.terminate_child("root/b").await.unwrap();
            assert_eq!(state(&tree, "root/b"), Some(NodeState::Stopped));
            let answer = world.at("b").ask(Do::Count);
            // neither time nor the restart of its group brings it back
            world.at("a").tell(Do::Panic("group"));
            options.clock.sleep(HOUR).await;
            assert!(!world.news().contains(&"+b".to_owned()));
            tree.restart_child("root/b").await.unwrap();
            assert_eq!(world.news(), ["+b"], "and its siblings are not concerned");
            assert_eq!(answer.await, Ok(1));
            assert_eq!(
                tree.restart_child("root/b").await,
                Err(StartError::Running {
                    path: "root/b".to_owned()
                })
            );
            end(tree).await;
        });
    }
}

#[test]
fn only_a_child_that_does_not_run_can_be_deleted() {
    run(1, async |options| {
        let world = World::default();
        let tree = world.start(&["a", "b"], &options).await;
        let running = StopError::Running {
            path: "root/a".to_owned(),
        };
        assert_eq!(tree.delete_child("root/a").await, Err(running));
        tree.terminate_child("root/a").await.unwrap();
        tree.delete_child("root/a").await.unwrap();
        assert_eq!(state(&tree, "root/a"), None);
        assert!(!world.at("a").is_open());
        assert!(matches!(
            tree.restart_child("root/a").await,
            Err(StartError::NoChild { .. })
        ));
        assert!(matches!(
            tree.delete_child("root/a").await,
            Err(StopError::NotFound { .. })
        ));
        assert!(matches!(
            tree.terminate_child("root").await,
            Err(StopError::NotFound { .. })
        ));
        end(tree).await;
    });
}

#[test]
fn a_finished_child_says_that_it_cannot_be_started_again() {
    run(1, async |options| {
        let world = World::default();
        let spec = world.root(Strategy::OneForOne, &["a", "b"], |_, child| {
            child.restart(Restart::Transient)
        });
        let tree = Tree::start(spec, options.clone()).await.unwrap();
        assert_eq!(world.at("a").ask(Do::Stop).await, Ok(0));
        options.clock.sleep(SECOND).await;
        let error = tree.restart_child("root/a").await.unwrap_err();
        assert_eq!(
            error,
            StartError::Finished {
                path: "root/a".to_owned()
            }
        );
        tree.delete_child("root/a").await.unwrap();
        tree.add_child("root", world.child("a", vec![]))
            .await
            .unwrap();
        end(tree).await;
    });
}

#[test]
fn a_start_by_hand_that_fails_is_told_and_changes_nothing() {
    run(1, async |options| {
        let world = World::default();
        let tree = world.start(&["a"], &options).await;
        let bad = world.child("b", vec![Begin::Well, Begin::PanicInStarted]);
        tree.add_child("root", bad).await.unwrap();
        tree.terminate_child("root/b").await.unwrap();
        let error = tree.restart_child("root/b").await.unwrap_err();
        assert!(matches!(error, StartError::Failed { .. }), "{error}");
        options.clock.sleep(HOUR).await;
        assert_eq!(
            tree.snapshot().find("root/b").unwrap().incarnation,
            2,
            "it was not tried again"
        );
        tree.restart_child("root/b").await.unwrap();
        assert_eq!(world.at("b").ask(Do::Count).await, Ok(1));
        end(tree).await;
    });
}

#[test]
fn a_suspended_actor_does_nothing_at_all_until_it_is_resumed() {
    run(1, async |options| {
        let world = World::default();
        let tree = world.start(&["a", "b"], &options).await;
        let witness = Arc::new(());
        world.at("a").tell(Do::Hold(witness.clone()));
        world.at("a").tell(Do::Work(SECOND));
        options.clock.sleep(SECOND / 2).await;
        assert_eq!(tree.suspend("root/a"), 1);
        assert_eq!(tree.suspend("root/a"), 0, "it is already");
        let answer = world.at("a").ask(Do::Count);
        options.clock.sleep(HOUR).await;
        assert_eq!(world.at("a").depth(), 1, "the message waits");
        assert_eq!(
            tree.snapshot().find("root/a").unwrap().restarts,
            0,
            "its work of a second has not ended"
        );
        assert_eq!(world.at("b").ask(Do::Count).await, Ok(1));
        assert_eq!(tree.resume("root/a"), 1);
        assert_eq!(answer.await, Ok(1));
        end(tree).await;
    });
}

#[test]
fn a_suspended_actor_is_stopped_and_restarted_like_any_other_and_stays_suspended() {
    run(1, async |options| {
        let world = World::default();
        let tree = world.start(&["a", "b"], &options).await;
        tree.suspend("root");
        world.news();
        assert!(tree.observer().kill("root/a"));
        options.clock.sleep(SECOND).await;
        assert_eq!(world.news(), ["+a"]);
        let answer = world.at("a").ask(Do::Count);
        options.clock.sleep(HOUR).await;
        assert_eq!(world.at("a").depth(), 1);
        tree.stop_child("root/b").await.unwrap();
        assert_eq!(world.news(), ["-b"]);
        assert_eq!(tree.resume("root"), 1);
        assert_eq!(answer.await, Ok(1));
        tree.suspend("root");
        end(tree).await;
    });
}

#[test]
fn suspending_a_supervisor_suspends_every_actor_below_it() {
    run(1, async |options| {
        let world = World::default();
        let tree = Tree::start(nested(&world, vec![]), options.clone())
            .await
            .unwrap();
        assert_eq!(tree.suspend("root/middle"), 2);
        assert_eq!(tree.suspend("root"), 2, "those that were not yet");
        assert_eq!(tree.suspend("root/nobody"), 0);
        assert_eq!(tree.resume("root"), 4);
        end(tree).await;
    });
}

/// A child that is started again by hand and takes its time, or ends before it has started.
async fn restarted(
    strategy: Strategy,
    second: Begin,
    restart: Restart,
    options: &crate::TreeOptions,
    meanwhile: impl AsyncFn(&Tree) -> Result<(), StopError>,
) -> (Tree, Result<(), StartError>) {
    let world = World::default();
    let tree = Tree::start(
        world.root(strategy, &["z"], |_, child| child),
        options.clone(),
    )
    .await
    .unwrap();
    let child = world.child("a", vec![Begin::Well, second]).restart(restart);
    tree.add_child("root", child).await.unwrap();
    tree.terminate_child("root/a").await.unwrap();
    let (started, done) =
        futures::future::join(tree.restart_child("root/a"), meanwhile(&tree)).await;
    done.unwrap();
    (tree, started)
}

#[test]
fn whoever_starts_a_child_again_hears_that_another_terminates_it_meanwhile() {
    for strategy in [Strategy::OneForOne, Strategy::RestForOne] {
        run(1, async |options| {
            let slow = Begin::HoldStart(HOUR);
            let stop = async |tree: &Tree| tree.terminate_child("root/a").await;
            let (tree, started) =
                restarted(strategy, slow, Restart::Permanent, &options, stop).await;
            let path = "root/a".to_owned();
            assert_eq!(started, Err(StartError::Stopped { path }));
            tree.restart_child("root/a").await.unwrap();
            end(tree).await;
        });
    }
}

#[test]
fn whoever_starts_a_child_again_hears_that_it_finished_before_it_had_started() {
    for strategy in [Strategy::OneForOne, Strategy::RestForOne] {
        run(1, async |options| {
            let nothing = async |_: &Tree| Ok(());
            let (tree, started) = restarted(
                strategy,
                Begin::StopInStarted,
                Restart::Transient,
                &options,
                nothing,
            )
            .await;
            let path = "root/a".to_owned();
            assert_eq!(started, Err(StartError::Stopped { path }));
            end(tree).await;
        });
    }
}
