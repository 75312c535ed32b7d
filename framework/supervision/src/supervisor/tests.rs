mod change;
mod chaos;
mod dynamic;
mod group;
mod operate;
mod orphans;
mod significant;
mod storm;

use std::time::Duration;

use crate::scripted::{Begin, Do, World, panicked};
use crate::testing::{assert_clean, run};
use crate::{
    AskError, Backoff, ChildSpec, ErrorKind, Exit, Failure, Intensity, NodeState, Restart,
    StartError, Strategy, SupervisorSpec, Tree,
};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

async fn end(tree: Tree) {
    let observer = tree.observer();
    tree.stop(HOUR).await.unwrap();
    assert_clean(&observer);
}

#[test]
fn one_failure_too_many_stops_the_siblings_in_reverse_and_ends_the_tree_with_its_cause() {
    run(1, async |options| {
        let world = World::default();
        let mut tree = world.start(&["a", "b", "c"], &options).await;
        for _ in 0..5 {
            assert_eq!(
                world.at("b").ask(Do::Panic("again")).await,
                Err(AskError::Lost)
            );
        }
        assert_eq!(world.at("b").ask(Do::Count).await, Ok(1));
        world.news();
        world.at("b").tell(Do::Panic("once too often"));
        let exit = tree.exited().await;
        let Exit::Escalated { child, cause } = &exit else {
            panic!("{exit:?}")
        };
        assert_eq!(child, "root/b");
        assert!(panicked("once too often")(cause));
        assert_eq!(world.news(), ["-c", "-a"]);
        assert_clean(&tree.observer());
        end(tree).await;
    });
}

#[test]
fn failures_spread_wider_than_the_window_never_end_the_tree() {
    run(1, async |options| {
        let world = World::default();
        let tree = world.start(&["a"], &options).await;
        for _ in 0..100 {
            assert_eq!(
                world.at("a").ask(Do::Panic("rarely")).await,
                Err(AskError::Lost)
            );
            options.clock.sleep(13 * SECOND).await;
        }
        assert_eq!(world.at("a").ask(Do::Count).await, Ok(1));
        assert_eq!(tree.snapshot().find("root/a").unwrap().restarts, 100);
        end(tree).await;
    });
}

#[test]
fn transient_errors_back_off_to_the_cap_and_never_end_the_tree() {
    run(1, async |options| {
        let world = World::default();
        let tree = world.start(&["a"], &options).await;
        let begun = options.clock.now();
        for _ in 0..50 {
            assert_eq!(
                world
                    .at("a")
                    .ask(Do::Fail(Failure::transient("no route")))
                    .await,
                Ok(0)
            );
        }
        assert_eq!(world.at("a").ask(Do::Count).await, Ok(1));
        let nominal = 51.1 + 41.0 * 30.0;
        let passed = (options.clock.now() - begun).as_secs_f64();
        assert!(
            (passed - nominal).abs() < nominal * 0.2,
            "{passed} s instead of about {nominal} s"
        );
        end(tree).await;
    });
}

#[test]
fn a_fatal_error_ends_the_supervisor_at_once() {
    run(1, async |options| {
        let world = World::default();
        let mut tree = world.start(&["a"], &options).await;
        world.at("a").tell(Do::Fail(Failure::fatal("no schema")));
        let exit = tree.exited().await;
        assert!(
            matches!(
                exit.root_cause(),
                (
                    Some("root/a"),
                    Exit::Error {
                        kind: ErrorKind::Fatal,
                        ..
                    }
                )
            ),
            "{exit}"
        );
        assert_eq!(
            exit.to_string(),
            "gave up because root/a failed for good: no schema"
        );
        end(tree).await;
    });
}

#[test]
fn a_supervisor_without_intensity_never_gives_up() {
    run(1, async |options| {
        let world = World::default();
        let spec = world
            .root(Strategy::OneForOne, &["a"], |_, child| {
                child.backoff(Backoff::none())
            })
            .without_intensity();
        let tree = Tree::start(spec, options).await.unwrap();
        for _ in 0..100 {
            assert_eq!(
                world.at("a").ask(Do::Panic("user code")).await,
                Err(AskError::Lost)
            );
            assert_eq!(
                world
                    .at("a")
                    .ask(Do::Fail(Failure::fatal("user code")))
                    .await,
                Ok(0)
            );
        }
        assert_eq!(world.at("a").ask(Do::Count).await, Ok(1));
        assert_eq!(tree.snapshot().find("root/a").unwrap().restarts, 200);
        end(tree).await;
    });
}

#[test]
fn a_healthy_life_makes_the_next_delay_the_first_again() {
    run(1, async |options| {
        let world = World::default();
        let tree = world.start(&["a"], &options).await;
        let clock = options.clock.clone();
        let crash = async || {
            let crashed = clock.now();
            world.at("a").tell(Do::Panic("down"));
            assert_eq!(world.at("a").ask(Do::Count).await, Ok(1));
            (clock.now() - crashed).as_secs_f64()
        };
        for nominal in [0.1, 0.2, 0.4] {
            let delay = crash().await;
            assert!(
                (delay - nominal).abs() <= nominal * 0.2 + 0.002,
                "{delay} instead of {nominal}"
            );
        }
        options.clock.sleep(60 * SECOND).await;
        let delay = crash().await;
        assert!((delay - 0.1).abs() <= 0.022, "{delay} instead of 0.1");
        end(tree).await;
    });
}

fn nested(world: &World, leaf: Vec<Begin>) -> SupervisorSpec {
    let world = world.clone();
    SupervisorSpec::new("root", Strategy::OneForOne)
        .intensity(Intensity::new(1, 60 * SECOND))
        .children(move |root| {
            root.add(world.child("before", vec![]));
            let (inner, leaf) = (world.clone(), leaf.clone());
            let middle = SupervisorSpec::new("middle", Strategy::OneForOne)
                .intensity(Intensity::new(1, 60 * SECOND));
            root.add(ChildSpec::supervisor(middle.children(move |middle| {
                middle.add(inner.child("leaf", leaf.clone()));
                middle.add(inner.child("twin", vec![]));
            })));
            root.add(world.child("after", vec![]));
        })
}

#[test]
fn a_nested_supervisor_that_gives_up_is_rebuilt_by_its_own_and_in_the_end_takes_the_root_with_it() {
    run(1, async |options| {
        let world = World::default();
        let mut tree = Tree::start(nested(&world, vec![]), options).await.unwrap();
        assert_eq!(world.news(), ["+before", "+leaf", "+twin", "+after"]);

        let first = world.at("leaf");
        assert_eq!(first.ask(Do::Panic("1")).await, Err(AskError::Lost));
        assert_eq!(first.ask(Do::Panic("2")).await, Err(AskError::Lost));
        assert_eq!(
            first.ask(Do::Count).await,
            Err(AskError::Gone),
            "the leaf's supervisor gave up and let it go"
        );
        while tree.snapshot().find("root/middle").unwrap().incarnation < 2
            || world.at("leaf") == first
        {
            tokio::time::advance(Duration::from_millis(10)).await;
        }
        let second = world.at("leaf");
        assert_eq!(second.ask(Do::Count).await, Ok(1));
        assert_eq!(
            world.news(),
            ["+leaf", "-twin", "+leaf", "+twin"],
            "the others never noticed"
        );

        assert_eq!(second.ask(Do::Panic("3")).await, Err(AskError::Lost));
        assert_eq!(second.ask(Do::Panic("4")).await, Err(AskError::Lost));
        let exit = tree.exited().await;
        let (path, cause) = exit.root_cause();
        assert_eq!(path, Some("root/middle/leaf"));
        assert!(panicked("4")(cause), "{cause:?}");
        assert_eq!(world.news(), ["+leaf", "-twin", "-after", "-before"]);
        end(tree).await;
    });
}

#[test]
fn a_nested_tree_stops_from_the_last_leaf_to_the_first() {
    run(1, async |options| {
        let world = World::default();
        let tree = Tree::start(nested(&world, vec![]), options).await.unwrap();
        world.news();
        end(tree).await;
        assert_eq!(world.news(), ["-after", "-twin", "-leaf", "-before"]);
    });
}

#[test]
fn a_start_that_fails_deep_down_undoes_what_came_before_and_names_the_culprit() {
    run(1, async |options| {
        for begin in [
            Begin::PanicInStarted,
            Begin::PanicInMake,
            Begin::FailInStarted(Failure::transient("no")),
            Begin::StopInStarted,
        ] {
            let world = World::default();
            let error = Tree::start(nested(&world, vec![begin.clone()]), options.clone())
                .await
                .unwrap_err();
            let StartError::Failed { path, .. } = &error else {
                panic!("{error:?}")
            };
            assert_eq!(path, "root/middle/leaf", "{error}");
            let news: Vec<_> = world
                .news()
                .into_iter()
                .filter(|news| !news.ends_with("leaf"))
                .collect();
            assert_eq!(news, ["+before", "-before"], "{begin:?}");
        }
    });
}

#[test]
fn transient_and_temporary_children_may_be_done_before_the_tree_has_started() {
    run(1, async |options| {
        let world = World::default();
        let spec = {
            let world = world.clone();
            SupervisorSpec::new("root", Strategy::OneForOne).children(move |children| {
                children.add(
                    world
                        .child("a", vec![Begin::StopInStarted])
                        .restart(Restart::Transient),
                );
                children.add(
                    world
                        .child("b", vec![Begin::StopInStarted])
                        .restart(Restart::Temporary),
                );
                children.add(world.child("c", vec![]));
            })
        };
        let tree = Tree::start(spec, options).await.unwrap();
        assert_eq!(world.news(), ["+a", "-a", "+b", "-b", "+c"]);
        let snapshot = tree.snapshot();
        assert_eq!(snapshot.find("root/a").unwrap().state, NodeState::Stopped);
        assert_eq!(snapshot.find("root/b"), None);
        end(tree).await;
    });
}

#[test]
fn a_temporary_child_that_panics_is_forgotten_and_its_queue_with_it() {
    run(1, async |options| {
        let world = World::default();
        let spec = world.root(Strategy::OneForOne, &["a", "b"], |id, child| {
            if id == "a" {
                child.restart(Restart::Temporary)
            } else {
                child
            }
        });
        let tree = Tree::start(spec, options).await.unwrap();
        let poison = world.at("a").ask(Do::Panic("once"));
        let behind = world.at("a").ask(Do::Count);
        assert_eq!(poison.await, Err(AskError::Lost));
        assert_eq!(behind.await, Err(AskError::Lost));
        assert_eq!(world.at("a").ask(Do::Count).await, Err(AskError::Gone));
        assert_eq!(world.at("b").ask(Do::Count).await, Ok(1));
        assert_eq!(tree.snapshot().find("root/a"), None);
        assert_eq!(tree.observer().alive(), ["root", "root/b"]);
        end(tree).await;
    });
}

#[test]
fn a_stop_does_not_wait_for_a_backoff() {
    run(1, async |options| {
        let world = World::default();
        let tree = world.start(&["a", "b"], &options).await;
        for _ in 0..3 {
            assert_eq!(
                world
                    .at("a")
                    .ask(Do::Fail(Failure::transient("no route")))
                    .await,
                Ok(0)
            );
        }
        options.clock.sleep(Duration::from_millis(10)).await;
        assert!(matches!(
            tree.snapshot().find("root/a").unwrap().state,
            NodeState::Backoff { .. }
        ));
        let asked = options.clock.now();
        end(tree).await;
        assert_eq!(options.clock.now(), asked);
    });
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_another() {
    let history = |seed| {
        run(seed, async |options| {
            let world = World::default();
            let tree = world.start(&["a", "b", "c"], &options).await;
            let begun = options.clock.now();
            for id in ["a", "b", "a", "c", "a"] {
                assert_eq!(
                    world.at(id).ask(Do::Panic("down")).await,
                    Err(AskError::Lost)
                );
            }
            options.clock.sleep(10 * SECOND).await;
            let times: Vec<_> = ["+a", "+b", "+c"]
                .iter()
                .flat_map(|what| world.times(what))
                .map(|at| at - begun)
                .collect();
            let news = world.news();
            end(tree).await;
            (times, news)
        })
    };
    assert_eq!(history(7), history(7));
    assert_ne!(history(7).0, history(8).0);
}

#[test]
fn a_thousand_children_that_crash_at_once_all_come_back() {
    run(1, async |options| {
        let world = World::default();
        let spec = {
            let world = world.clone();
            SupervisorSpec::new("root", Strategy::OneForOne)
                .without_intensity()
                .children(move |children| {
                    (0..1000).for_each(|i| children.add(world.child(&i.to_string(), vec![])));
                })
        };
        let tree = Tree::start(spec, options).await.unwrap();
        (0..1000).for_each(|i| assert!(world.at(&i.to_string()).tell(Do::Panic("all at once"))));
        for i in 0..1000 {
            assert_eq!(world.at(&i.to_string()).ask(Do::Count).await, Ok(1));
        }
        let root = tree.snapshot().root.unwrap();
        assert!(
            root.children
                .iter()
                .all(|child| child.restarts == 1 && child.state == NodeState::Running)
        );
        end(tree).await;
    });
}
