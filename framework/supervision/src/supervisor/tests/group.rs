//! Strategy × exit × position, with real actors.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{HOUR, end};
use crate::scripted::{Do, World};
use crate::testing::run;
use crate::{Exit, Failure, NodeState, Restart, Strategy, SupervisorSpec, Tree, TreeOptions};

/// The ways an actor that runs can end.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Normal,
    Transient,
    Panic,
    LaterPanic,
    Killed,
    Stuck,
}

const WAYS: [Way; 6] = [
    Way::Normal,
    Way::Transient,
    Way::Panic,
    Way::LaterPanic,
    Way::Killed,
    Way::Stuck,
];

impl Way {
    fn apply(self, world: &World, tree: &Tree, id: &str) {
        let node = tree.root_node().find(&format!("root/{id}")).unwrap();
        let told = match self {
            Way::Normal => Do::Stop,
            Way::Transient => Do::Fail(Failure::transient("no route")),
            Way::Panic => Do::Panic("overboard"),
            Way::LaterPanic => Do::PanicLater("overboard"),
            Way::Killed => return assert!(node.kill()),
            Way::Stuck => {
                // as the watchdog does it
                let incarnation = node.incarnation.load(Ordering::Acquire);
                node.condemned.store(incarnation, Ordering::Release);
                return assert!(node.kill());
            }
        };
        assert!(world.at(id).tell(told));
    }

    fn matches(self, exit: &Exit) -> bool {
        match self {
            Way::Normal => *exit == Exit::Normal,
            Way::Transient => matches!(exit, Exit::Error { .. }),
            Way::Panic | Way::LaterPanic => matches!(exit, Exit::Panic { .. }),
            Way::Killed => *exit == Exit::Killed,
            Way::Stuck => *exit == Exit::Stuck,
        }
    }

    /// Whether `stopped` runs.
    fn is_orderly(self) -> bool {
        matches!(self, Way::Normal | Way::Transient)
    }
}

/// A tree of `a`, `b` and `c`, which a dynamic supervisor starts one by one.
async fn crew(world: &World, strategy: Strategy, options: &TreeOptions) -> Tree {
    if strategy != Strategy::SimpleOneForOne {
        let spec = world.root(strategy, &["a", "b", "c"], |_, child| child);
        return Tree::start(spec, options.clone()).await.unwrap();
    }
    let template = world.clone();
    let (spec, dynamic) =
        SupervisorSpec::dynamic("root", move |id: &str| template.child(id, vec![]));
    let tree = Tree::start(spec, options.clone()).await.unwrap();
    for id in ["a", "b", "c"] {
        dynamic.start(id).await.unwrap();
    }
    tree
}

/// Whom each strategy restarts when a, b or c ends.
const CONCERNED: [(Strategy, [&str; 3]); 4] = [
    (Strategy::OneForOne, ["a", "b", "c"]),
    (Strategy::OneForAll, ["abc", "abc", "abc"]),
    (Strategy::SimpleOneForOne, ["a", "b", "c"]),
    (Strategy::RestForOne, ["abc", "bc", "c"]),
];

#[test]
fn every_exit_at_every_position_concerns_whom_the_strategy_says() {
    for (strategy, concerned) in CONCERNED {
        for (id, concerned) in ["a", "b", "c"].into_iter().zip(concerned) {
            for way in WAYS {
                concerns(strategy, id, concerned, way);
            }
        }
    }
}

/// `id` ends by `way`: its siblings among `concerned` are stopped, last first, and then all of these are started, in order.
fn concerns(strategy: Strategy, id: &str, concerned: &str, way: Way) {
    let case = format!("{strategy:?}, {id} ends by {way:?}");
    run(1, async |options| {
        let world = World::default();
        let tree = crew(&world, strategy, &options).await;
        let addresses = ["a", "b", "c"].map(|id| world.at(id));
        world.news();
        way.apply(&world, &tree, id);
        options.clock.sleep(Duration::from_secs(1)).await;

        let ended = way.is_orderly().then(|| id.to_owned());
        let siblings = concerned.chars().rev().map(String::from);
        let stopped = siblings.filter(|sibling| sibling != id);
        let stopped = ended.into_iter().chain(stopped).map(|id| format!("-{id}"));
        let started = concerned.chars().map(|id| format!("+{id}"));
        let expected: Vec<String> = stopped.chain(started).collect();
        assert_eq!(world.news(), expected, "{case}");

        for child in &tree.snapshot().root.unwrap().children {
            let restarted = concerned.contains(&child.id);
            assert_eq!(child.restarts, u64::from(restarted), "{case}: {child:?}");
            assert_eq!(child.state, NodeState::Running, "{case}: {child:?}");
            let as_it_should = match &child.last_exit {
                Some(exit) if child.id == id => way.matches(exit),
                Some(exit) => restarted && *exit == Exit::Shutdown,
                None => !restarted,
            };
            assert!(as_it_should, "{case}: {child:?}");
        }
        for address in addresses {
            let answer = address.ask(Do::Count).await;
            assert_eq!(answer, Ok(1), "{case}: every address is still good");
        }
        end(tree).await;
    });
}

#[test]
fn what_each_kind_of_child_does_after_each_exit() {
    for way in WAYS {
        for restart in [Restart::Permanent, Restart::Transient, Restart::Temporary] {
            run(1, async |options| {
                let world = World::default();
                let spec = world.root(Strategy::OneForOne, &["a"], move |_, child| {
                    child.restart(restart)
                });
                let tree = Tree::start(spec, options.clone()).await.unwrap();
                way.apply(&world, &tree, "a");
                options.clock.sleep(HOUR).await;
                let state = tree.snapshot().find("root/a").map(|node| node.state);
                let expected = match restart {
                    Restart::Permanent => Some(NodeState::Running),
                    Restart::Transient if way == Way::Normal => Some(NodeState::Stopped),
                    Restart::Transient => Some(NodeState::Running),
                    Restart::Temporary => None,
                };
                assert_eq!(state, expected, "{restart:?} after {way:?}");
                assert_eq!(
                    world.at("a").is_open(),
                    expected == Some(NodeState::Running)
                );
                end(tree).await;
            });
        }
    }
}

#[test]
fn a_second_failure_joins_a_group_that_is_being_restarted() {
    run(1, async |options| {
        let world = World::default();
        let tree = Tree::start(
            world.root(Strategy::RestForOne, &["a", "b", "c"], |_, child| child),
            options.clone(),
        )
        .await
        .unwrap();
        world.news();
        world.at("b").tell(Do::Panic("first"));
        options.clock.sleep(Duration::from_millis(50)).await;
        assert_eq!(world.news(), ["-c"]);
        let state = tree.snapshot().find("root/c").unwrap().state;
        assert_eq!(state, NodeState::Starting, "it waits for its turn");
        world.at("a").tell(Do::Panic("second"));
        options.clock.sleep(Duration::from_secs(1)).await;
        assert_eq!(world.news(), ["+a", "+b", "+c"]);
        end(tree).await;
    });
}

#[test]
fn a_finished_transient_child_comes_back_with_its_group_and_a_temporary_one_does_not() {
    run(1, async |options| {
        let world = World::default();
        let spec = world.root(
            Strategy::RestForOne,
            &["a", "b", "c"],
            |id, child| match id {
                "b" => child.restart(Restart::Transient),
                "c" => child.restart(Restart::Temporary),
                _ => child,
            },
        );
        let tree = Tree::start(spec, options.clone()).await.unwrap();
        world.at("b").tell(Do::Stop);
        options.clock.sleep(HOUR).await;
        assert_eq!(
            tree.snapshot().find("root/b").unwrap().state,
            NodeState::Stopped
        );
        world.news();
        world.at("a").tell(Do::Panic("first"));
        options.clock.sleep(Duration::from_secs(1)).await;
        assert_eq!(world.news(), ["-c", "+a", "+b"]);
        assert_eq!(tree.snapshot().find("root/c"), None);
        end(tree).await;
    });
}

#[test]
fn a_group_waits_for_a_member_that_takes_its_time_to_stop() {
    run(1, async |options| {
        let world = World::default();
        let tree = Tree::start(
            world.root(Strategy::RestForOne, &["a", "b"], |_, child| child),
            options.clone(),
        )
        .await
        .unwrap();
        assert_eq!(world.at("b").ask(Do::Refuse).await, Ok(0));
        world.news();
        let crashed = options.clock.now();
        world.at("a").tell(Do::Panic("first"));
        options.clock.sleep(Duration::from_secs(10)).await;
        let restarted = crashed + Duration::from_secs(5);
        assert_eq!(
            world.times("+a"),
            [restarted],
            "not before b was killed at its deadline"
        );
        assert_eq!(world.times("+b"), [restarted]);
        end(tree).await;
    });
}
