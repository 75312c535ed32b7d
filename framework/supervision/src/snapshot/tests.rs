use std::collections::BTreeMap;
use std::time::Duration;

use actix::Actor;
use serde_json::json;

use super::{Counts, NodeSnapshot, NodeSort, NodeState, Virtual, VirtualChild, Window};
use crate::scripted::{Do, World};
use crate::testing::run;
use crate::{
    AskError, Backoff, ChildSpec, Context, Failure, Intensity, Link, Mailbox, Restart, Strategy,
    SupervisorSpec, Tree, TreeOptions, supervised,
};

const SECOND: Duration = Duration::from_secs(1);

fn look(tree: &Tree, path: &str) -> NodeSnapshot {
    tree.snapshot().find(path).unwrap().clone()
}

#[test]
fn a_supervisor_shows_how_much_it_bears_and_what_it_has_borne_lately() {
    run(1, async |options| {
        let world = World::default();
        let spec = world
            .root(Strategy::OneForOne, &["a"], |_, child| child)
            .intensity(Intensity::new(3, 60 * SECOND));
        let tree = Tree::start(spec, options.clone()).await.unwrap();
        let window = |restarts_in_window| NodeSort::Supervisor {
            strategy: Strategy::OneForOne,
            window: Some(Window {
                max: 3,
                period_ms: 60_000,
                restarts_in_window,
            }),
        };
        assert_eq!(look(&tree, "root").kind, window(0));
        for _ in 0..2 {
            let poison = world.at("a").ask(Do::Panic("poison"));
            assert_eq!(poison.await, Err(AskError::Lost));
            options.clock.sleep(40 * SECOND).await;
        }
        assert_eq!(look(&tree, "root").kind, window(1));
        let failed = world.at("a").ask(Do::Fail(Failure::transient("no route")));
        assert_eq!(failed.await, Ok(0));
        assert_eq!(world.at("a").ask(Do::Count).await, Ok(1));
        assert_eq!(look(&tree, "root").kind, window(1), "it does not count");
        options.clock.sleep(60 * SECOND).await;
        assert_eq!(look(&tree, "root").kind, window(0));
        tree.stop(SECOND).await.unwrap();
    });
}

#[test]
fn how_long_ago_an_actor_ended_is_shown_with_how_it_did() {
    run(1, async |options| {
        let world = World::default();
        let spec = world.root(Strategy::OneForOne, &["a"], |_, child| child);
        let tree = Tree::start(spec, options.clone()).await.unwrap();
        let last = |tree| look(tree, "root/a").last_exit_ms;
        assert_eq!(last(&tree), None);
        let poison = world.at("a").ask(Do::Panic("poison"));
        assert_eq!(poison.await, Err(AskError::Lost));
        let at_first = last(&tree).unwrap();
        options.clock.sleep(40 * SECOND).await;
        assert_eq!(last(&tree), Some(at_first + 40_000));
        tree.stop(SECOND).await.unwrap();
    });
}

#[test]
fn a_supervisor_that_never_gives_up_has_no_window() {
    run(1, async |options| {
        let spec = SupervisorSpec::new("root", Strategy::OneForOne).without_intensity();
        let tree = Tree::start(spec, options).await.unwrap();
        let NodeSort::Supervisor { window, .. } = look(&tree, "root").kind else {
            panic!("no supervisor");
        };
        assert_eq!(window, None);
        tree.stop(SECOND).await.unwrap();
    });
}

#[test]
fn failures_in_a_row_are_shown() {
    run(1, async |options| {
        let world = World::default();
        let spec = world.root(Strategy::OneForOne, &["a"], |_, child| child);
        let tree = Tree::start(spec, options).await.unwrap();
        assert_eq!(look(&tree, "root/a").streak, 0);
        for streak in 1..4 {
            let failed = world.at("a").ask(Do::Fail(Failure::transient("no route")));
            assert!(failed.await.is_ok());
            assert_eq!(world.at("a").ask(Do::Count).await, Ok(1));
            assert_eq!(look(&tree, "root/a").streak, streak);
        }
        tree.stop(SECOND).await.unwrap();
    });
}

struct Shard;

impl Actor for Shard {
    type Context = Context<Self>;
}
supervised!(Shard);

/// A tree of one shard, whose `make` is given its link.
async fn shard(options: TreeOptions, make: impl Fn(&Link) + Send + Sync + Clone + 'static) -> Tree {
    let spec = SupervisorSpec::new("root", Strategy::OneForOne).children(move |children| {
        let make = make.clone();
        children.add(ChildSpec::actor("shard", Mailbox::new(), move |link| {
            make(link);
            Shard
        }));
    });
    Tree::start(spec, options).await.unwrap()
}

fn keys(shown: usize) -> Virtual {
    let child = |id: usize| VirtualChild {
        id: format!("key {id}"),
        state: "running".to_owned(),
        facts: BTreeMap::from([("attempt".to_owned(), json!(id))]),
    };
    Virtual {
        total: 1000,
        shown: (0..shown).map(child).collect(),
    }
}

#[test]
fn virtual_children_are_shown_up_to_a_limit_and_go_through_json() {
    run(1, async |options| {
        let tree = shard(options, |link| link.virtual_children(keys)).await;
        assert_eq!(look(&tree, "root").virtual_children, None);
        assert_eq!(look(&tree, "root/shard").virtual_children, Some(keys(64)));
        let few = tree.observer().snapshot_with(2);
        let shown = few.find("root/shard").unwrap().virtual_children.clone();
        assert_eq!(shown, Some(keys(2)));
        let json = serde_json::to_string(&few).unwrap();
        assert!(
            json.contains(r#""virtual_children":{"total":1000,"shown":[{"id":"key 0","state":"running","facts":{"attempt":0}}"#),
            "{json}"
        );
        assert_eq!(
            serde_json::from_str::<super::TreeSnapshot>(&json).unwrap(),
            few
        );
        tree.stop(SECOND).await.unwrap();
    });
}

#[test]
fn a_layer_that_shows_more_virtual_children_than_asked_for_is_cut_short() {
    run(1, async |options| {
        let tree = shard(options, |link| link.virtual_children(|_| keys(100))).await;
        assert_eq!(look(&tree, "root/shard").virtual_children, Some(keys(64)));
        tree.stop(SECOND).await.unwrap();
    });
}

#[test]
fn virtual_children_that_panic_are_not_shown_and_those_of_an_incarnation_go_with_it() {
    run(1, async |options| {
        let tree = shard(options.clone(), |link| match link.incarnation() {
            1 => link.virtual_children(|_| panic!("cannot tell")),
            2 => link.virtual_children(keys),
            _ => {}
        })
        .await;
        let mut shown = Vec::new();
        for _ in 0..3 {
            shown.push(look(&tree, "root/shard").virtual_children);
            assert!(tree.observer().kill("root/shard"));
            options.clock.sleep(SECOND).await;
        }
        assert_eq!(shown, [None, Some(keys(64)), None]);
        tree.stop(SECOND).await.unwrap();
    });
}

#[test]
fn children_are_listed_and_counted_by_their_supervisor() {
    run(1, async |options| {
        let world = World::default();
        let spec = world.root(
            Strategy::OneForOne,
            &["a", "b", "c"],
            |id, child| match id {
                "b" => child.restart(Restart::Transient),
                _ => child.backoff(Backoff::new(60 * SECOND, 60 * SECOND, 1.0, 0.0).unwrap()),
            },
        );
        let tree = Tree::start(spec.without_intensity(), options.clone())
            .await
            .unwrap();
        let middle = SupervisorSpec::new("middle", Strategy::RestForOne);
        tree.add_child("root", ChildSpec::supervisor(middle))
            .await
            .unwrap();
        world.at("a").tell(Do::Fail(Failure::transient("no route")));
        world.at("b").tell(Do::Stop);
        options.clock.sleep(SECOND).await;

        let observer = tree.observer();
        let children = observer.children("root").unwrap();
        let listed: Vec<(&str, NodeState)> = children
            .iter()
            .map(|child| (&*child.id, child.state))
            .collect();
        assert_eq!(
            listed,
            [
                ("a", NodeState::Backoff { until_ms: 59_000 }),
                ("b", NodeState::Stopped),
                ("c", NodeState::Running),
                ("middle", NodeState::Running)
            ]
        );
        assert_eq!(
            observer.count_children("root"),
            Some(Counts {
                specs: 4,
                active: 2,
                supervisors: 1,
                workers: 3
            })
        );
        assert_eq!(observer.children("root/middle"), Some(vec![]));
        assert_eq!(
            observer.count_children("root/middle"),
            Some(Counts::default())
        );
        for path in ["root/a", "root/none", ""] {
            assert_eq!(observer.children(path), None);
            assert_eq!(observer.count_children(path), None);
        }
        tree.stop(SECOND).await.unwrap();
    });
}

#[test]
fn states_have_names() {
    let json = |state: NodeState| serde_json::to_value(state).unwrap();
    assert_eq!(json(NodeState::Suspended), json!({"state": "suspended"}));
    assert_eq!(json(NodeState::Blocked), json!({"state": "blocked"}));
}
