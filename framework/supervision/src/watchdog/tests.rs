use std::sync::Arc;
use std::time::Duration;

use actix::{Arbiter, System};

use crate::scripted::{Begin, Do, Gate, World};
use crate::testing::{assert_clean, run};
use crate::{
    AskError, Backoff, Blocked, ChildSpec, ErrorKind, Events, Exit, Failure, NodeSnapshot,
    NodeState, Strategy, SupervisorSpec, Thread, Tree, TreeOptions, What,
};

const SECOND: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(30);
const FOR_EVER: Duration = Duration::MAX;

/// A tree of one child `root/a` under a watchdog.
async fn solo(world: &World, begins: Vec<Begin>, options: &TreeOptions) -> Tree {
    let inner = world.clone();
    let spec = SupervisorSpec::new("root", Strategy::OneForOne).children(move |children| {
        let backoff = Backoff::new(SECOND, 600 * SECOND, 600.0, 0.0).unwrap();
        children.add(inner.child("a", begins.clone()).backoff(backoff));
    });
    let options = TreeOptions {
        watchdog: Some(PATIENCE),
        ..options.clone()
    };
    Tree::start(spec.without_intensity(), options)
        .await
        .unwrap()
}

fn look(tree: &Tree) -> NodeSnapshot {
    tree.snapshot().find("root/a").unwrap().clone()
}

async fn end(tree: Tree) {
    let observer = tree.observer();
    tree.stop(60 * SECOND).await.unwrap();
    assert_clean(&observer);
}

#[test]
fn an_actor_that_waits_for_ever_is_found_and_healed_and_its_messages_wait_for_it() {
    run(1, async |options| {
        let world = World::default();
        let tree = solo(&world, vec![], &options).await;
        let mut events = tree.observer().events();
        let begun = options.clock.now();
        let waits = world.at("a").ask(Do::Wait(FOR_EVER));
        let (first, second) = (world.at("a").ask(Do::Count), world.at("a").ask(Do::Count));
        assert_eq!(waits.await, Ok(0));
        assert_eq!((first.await, second.await), (Ok(1), Ok(2)));
        let passed = options.clock.now() - begun;
        assert!(
            passed >= PATIENCE && passed <= PATIENCE + 4 * SECOND,
            "{passed:?}"
        );
        let node = look(&tree);
        assert_eq!((node.last_exit, node.restarts), (Some(Exit::Stuck), 1));
        assert_eq!(events.next().await.unwrap().unwrap().what, What::Hung);
        assert!(matches!(
            events.next().await.unwrap().unwrap().what,
            What::Exited {
                incarnation: 1,
                exit: Exit::Stuck,
                ..
            }
        ));
        end(tree).await;
    });
}

#[test]
fn an_actor_that_hangs_again_and_again_counts_toward_the_intensity() {
    run(1, async |options| {
        let world = World::default();
        let options = TreeOptions {
            watchdog: Some(SECOND),
            ..options
        };
        let spec = world.root(Strategy::OneForOne, &["a"], |_, child| child);
        let mut tree = Tree::start(spec, options).await.unwrap();
        for _ in 0..6 {
            world.at("a").tell(Do::Wait(FOR_EVER));
            world.at("a").tell(Do::Count);
        }
        let exit = tree.exited().await;
        assert_eq!(exit.root_cause(), (Some("root/a"), &Exit::Stuck));
        end(tree).await;
    });
}

#[test]
fn work_within_its_declared_deadline_is_left_alone_and_done_in_time_is_done() {
    run(1, async |options| {
        let world = World::default();
        let tree = solo(&world, vec![], &options).await;
        let begun = options.clock.now();
        world.at("a").tell(Do::Declare(Some(100 * SECOND)));
        world.at("a").tell(Do::Wait(99 * SECOND));
        world.at("a").tell(Do::Declare(None));
        assert_eq!(world.at("a").ask(Do::Count).await, Ok(1));
        assert_eq!(options.clock.now() - begun, 99 * SECOND);
        options.clock.sleep(100 * SECOND).await;
        assert_eq!(look(&tree).restarts, 0);
        end(tree).await;
    });
}

#[test]
fn work_beyond_its_declared_deadline_is_ended_whether_or_not_messages_are_handled() {
    run(1, async |options| {
        let world = World::default();
        let tree = solo(&world, vec![], &options).await;
        let begun = options.clock.now();
        world.at("a").tell(Do::Declare(Some(100 * SECOND)));
        world.at("a").tell(Do::Wait(FOR_EVER));
        assert_eq!(world.at("a").ask(Do::Count).await, Ok(1));
        let passed = options.clock.now() - begun;
        assert!(
            passed >= 100 * SECOND && passed <= 104 * SECOND,
            "{passed:?}"
        );

        world.at("a").tell(Do::Declare(Some(5 * SECOND)));
        for _ in 0..10 {
            assert!(world.at("a").ask(Do::Count).await.is_ok());
            options.clock.sleep(SECOND).await;
        }
        assert_eq!(look(&tree).last_exit, Some(Exit::Stuck));
        assert_eq!(look(&tree).restarts, 2);
        end(tree).await;
    });
}

#[test]
fn what_an_incarnation_declared_does_not_bind_the_next() {
    run(1, async |options| {
        let world = World::default();
        let tree = solo(&world, vec![], &options).await;
        let keep = {
            let node = tree.root_node().find("root/a").unwrap();
            let link = crate::Link {
                node,
                registry: Arc::clone(tree.registry()),
                incarnation: 1,
            };
            let work = link.deadline(5 * SECOND);
            (link, work)
        };
        world.at("a").tell(Do::Panic("before the deadline"));
        assert_eq!(world.at("a").ask(Do::Count).await, Ok(1));
        let _late = keep.0.deadline(SECOND);
        options.clock.sleep(100 * SECOND).await;
        assert_eq!(look(&tree).restarts, 1);
        end(tree).await;
    });
}

#[test]
fn a_suspended_actor_never_counts_as_hung() {
    run(1, async |options| {
        let world = World::default();
        let tree = solo(&world, vec![], &options).await;
        tree.suspend("root/a");
        world.at("a").tell(Do::Wait(FOR_EVER));
        world.at("a").tell(Do::Count);
        options.clock.sleep(600 * SECOND).await;
        let node = look(&tree);
        assert_eq!((node.restarts, node.state), (0, NodeState::Suspended));
        end(tree).await;
    });
}

#[test]
fn an_actor_that_backs_off_or_starts_never_counts_as_hung() {
    run(1, async |options| {
        let world = World::default();
        let begins = vec![
            Begin::Well,
            Begin::FailInStarted(Failure::transient("not yet")),
            Begin::HoldStart(300 * SECOND),
        ];
        let tree = solo(&world, begins, &options).await;
        let begun = options.clock.now();
        world.at("a").tell(Do::Fail(Failure::transient("no route")));
        world.at("a").tell(Do::Wait(300 * SECOND));
        // a second and ten minutes of backoff, then five minutes of starting
        options.clock.sleep(602 * SECOND).await;
        assert_eq!(look(&tree).inbox, 0, "{:?}", look(&tree));
        world.at("a").tell(Do::Count);
        options.clock.sleep(290 * SECOND).await;
        let node = look(&tree);
        assert_eq!((node.incarnation, node.state), (3, NodeState::Starting));
        assert_eq!(
            node.last_exit,
            Some(Exit::Error {
                kind: ErrorKind::Transient,
                message: "not yet".to_owned()
            })
        );
        assert!(options.clock.now() - begun > 800 * SECOND);
        end(tree).await;
    });
}

#[test]
fn an_actor_that_ended_while_its_supervisor_is_down_does_not_count_as_hung() {
    run(1, async |options| {
        let world = World::default();
        let inner = world.clone();
        let spec = SupervisorSpec::new("root", Strategy::OneForOne).children(move |root| {
            let inner = inner.clone();
            let middle = SupervisorSpec::new("middle", Strategy::OneForOne)
                .children(move |middle| middle.add(inner.child("a", vec![])));
            let backoff = Backoff::new(600 * SECOND, 600 * SECOND, 1.0, 0.0).unwrap();
            root.add(ChildSpec::supervisor(middle).backoff(backoff));
        });
        let watched = TreeOptions {
            watchdog: Some(PATIENCE),
            ..options.clone()
        };
        let tree = Tree::start(spec.without_intensity(), watched)
            .await
            .unwrap();
        let mut events = tree.observer().events();
        let broken = ChildSpec {
            launch: Box::new(|_| panic!("supervisor broken")),
            ..world.child("broken", vec![])
        };
        let meanwhile = async {
            options.clock.sleep(SECOND).await;
            let a = world.at("a");
            a.tell(Do::Fail(Failure::transient("meanwhile")));
            a.tell(Do::Count);
        };
        let (refused, ()) = futures::join!(tree.add_child("root/middle", broken), meanwhile);
        assert!(refused.is_err());
        until(&mut events, |what| {
            assert_ne!(*what, What::Hung);
            *what == What::Started { incarnation: 2 }
        })
        .await;
        end(tree).await;
    });
}

#[test]
fn an_idle_tree_is_left_alone() {
    run(1, async |options| {
        let world = World::default();
        let tree = solo(&world, vec![], &options).await;
        let mut events = tree.observer().events();
        options.clock.sleep(3600 * SECOND).await;
        tree.stop(SECOND).await.unwrap();
        let first = events.next().await.unwrap().unwrap();
        assert!(
            matches!(
                first.what,
                What::Exited {
                    exit: Exit::Shutdown,
                    ..
                }
            ),
            "{first:?}"
        );
    });
}

async fn until(events: &mut Events, what: impl Fn(&What) -> bool) {
    while !what(&events.next().await.unwrap().unwrap().what) {}
}

/// In real time, for conditions only: a thread that really blocks, and a watchdog that really looks.
#[test]
fn who_blocks_its_thread_is_named_and_who_waits_for_that_thread_is_spared() {
    System::new().block_on(async {
        let world = World::default();
        let arbiter = Arbiter::new();
        let thread = Thread::arbiter("east", &arbiter.handle());
        let spec = world.root(Strategy::OneForOne, &["a", "b"], move |_, child| {
            child.thread(thread.clone())
        });
        let patience = Duration::from_millis(20);
        let options = TreeOptions {
            watchdog: Some(patience),
            ..TreeOptions::default()
        };
        let tree = Tree::start(spec, options).await.unwrap();
        let (observer, gate) = (tree.observer(), Gate::default());
        let mut events = observer.events();
        world.at("a").tell(Do::Block(gate.clone()));
        let starved = world.at("b").ask(Do::Count);

        until(
            &mut events,
            |what| matches!(what, What::Blocked { for_ms } if *for_ms >= 20),
        )
        .await;
        // long enough to take the other one for hung, if it were to be
        let named = |blocked: &Blocked| {
            blocked.path == "root/a" && blocked.thread == "east" && blocked.for_ms > 200
        };
        while !observer.blocked().iter().any(named) {
            std::thread::yield_now();
        }
        assert_eq!(look(&tree).state, NodeState::Blocked);

        gate.open();
        until(&mut events, |what| *what == What::Unblocked).await;
        assert_eq!(starved.await, Ok(1));
        while !observer.blocked().is_empty() {
            std::thread::yield_now();
        }
        let snapshot = tree.snapshot();
        for path in ["root/a", "root/b"] {
            assert_eq!(snapshot.find(path).unwrap().restarts, 0);
        }
        end(tree).await;
        arbiter.stop();
        arbiter.join().unwrap();
    });
}

#[test]
fn the_watchdogs_thread_has_ended_when_the_stop_of_the_tree_returns() {
    System::new().block_on(async {
        let world = World::default();
        let spec = || world.root(Strategy::OneForOne, &["a"], |_, child| child);
        let tree = Tree::start(spec(), TreeOptions::default()).await.unwrap();
        let registry = Arc::clone(tree.registry());
        // the tree's operator is the other one
        assert_eq!(Arc::weak_count(&registry), 2, "nobody watches");
        tree.stop(60 * SECOND).await.unwrap();
        assert_eq!(Arc::weak_count(&registry), 0);

        let tree = Tree::start(spec(), TreeOptions::default()).await.unwrap();
        let registry = Arc::clone(tree.registry());
        drop(tree);
        assert_eq!(Arc::weak_count(&registry), 0);
    });
}

#[test]
fn a_watchdog_in_virtual_time_ends_with_its_tree_and_without_it() {
    run(1, async |options| {
        let world = World::default();
        let tree = solo(&world, vec![], &options).await;
        let registry = Arc::clone(tree.registry());
        // the tree's operator and the census of this test are the others
        assert_eq!(Arc::weak_count(&registry), 3, "nobody watches");
        end(tree).await;
        tokio::task::yield_now().await;
        assert_eq!(Arc::weak_count(&registry), 1);

        let spec = world.root(Strategy::OneForOne, &["a"], |_, child| child);
        let watched = TreeOptions {
            watchdog: Some(PATIENCE),
            ..options.clone()
        };
        let mut tree = Tree::start(spec, watched).await.unwrap();
        let registry = Arc::clone(tree.registry());
        world.at("a").tell(Do::Fail(Failure::fatal("no schema")));
        tree.exited().await;
        options.clock.sleep(2 * SECOND).await;
        assert_eq!(
            Arc::weak_count(&registry),
            2,
            "a tree that gave up is still watched"
        );
        end(tree).await;
    });
}

#[test]
fn an_incarnation_is_not_killed_for_the_one_before_that_hung_and_ended_just_in_time() {
    run(1, async |options| {
        let world = World::default();
        let spec = world.root(Strategy::OneForOne, &["a"], |_, child| {
            child.backoff(Backoff::none())
        });
        let tree = Tree::start(spec, options.clone()).await.unwrap();
        let node = tree.root_node().find("root/a").unwrap();
        let crash = world.at("a").ask(Do::Panic("just in time"));
        assert_eq!(crash.await, Err(AskError::Lost));
        assert_eq!(world.at("a").ask(Do::Count).await, Ok(1));
        node.condemn(1);
        options.clock.sleep(SECOND).await;
        assert_eq!(world.at("a").ask(Do::Count).await, Ok(2));
        node.condemn(2);
        options.clock.sleep(SECOND).await;
        let last = node.record().last_exit.clone().unwrap();
        assert_eq!(last.exit, Exit::Stuck);
        assert_eq!(world.at("a").ask(Do::Count).await, Ok(1));
        end(tree).await;
    });
}

#[test]
fn the_time_an_actor_was_suspended_does_not_count_against_its_deadline() {
    run(1, async |options| {
        let world = World::default();
        let tree = solo(&world, vec![], &options).await;
        let a = world.at("a");
        assert_eq!(a.ask(Do::Declare(Some(60 * SECOND))).await, Ok(0));
        tree.suspend("root/a");
        options.clock.sleep(600 * SECOND).await;
        tree.resume("root/a");
        options.clock.sleep(30 * SECOND).await;
        assert_eq!(a.ask(Do::Declare(None)).await, Ok(0));
        assert_eq!(look(&tree).incarnation, 1);
        end(tree).await;
    });
}
