mod blocking;
mod threads;

use std::time::Duration;

use futures::FutureExt;

use crate::scripted::{Do, World, panicked};
use crate::testing::{assert_clean, run};
use crate::{
    AskError, ChildSpec, Failure, NodeState, Shutdown, StartError, Strategy, SupervisorSpec, Tree,
    TreeOptions,
};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn children_start_in_order_and_stop_in_reverse() {
    run(1, async |options| {
        let world = World::default();
        let tree = world.start(&["a", "b", "c"], &options).await;
        assert_eq!(world.news(), ["+a", "+b", "+c"]);
        assert_eq!(
            tree.observer().alive(),
            ["root", "root/a", "root/b", "root/c"]
        );
        let observer = tree.observer();
        tree.stop(SECOND).await.unwrap();
        assert_eq!(world.news(), ["-c", "-b", "-a"]);
        assert_clean(&observer);
    });
}

#[test]
fn a_panic_costs_the_message_that_caused_it_and_nothing_else() {
    run(1, async |options| {
        let world = World::default();
        let tree = world.start(&["a"], &options).await;
        let a = world.at("a");
        let before = [a.ask(Do::Count), a.ask(Do::Count)];
        let poison = a.ask(Do::Panic("poison"));
        let after = [a.ask(Do::Count), a.ask(Do::Count), a.ask(Do::Count)];
        assert_eq!(futures::future::join_all(before).await, [Ok(1), Ok(2)]);
        assert_eq!(poison.await, Err(AskError::Lost));
        assert_eq!(
            futures::future::join_all(after).await,
            [Ok(1), Ok(2), Ok(3)]
        );

        let snapshot = tree.snapshot();
        let node = snapshot.find("root/a").unwrap();
        assert_eq!((node.incarnation, node.restarts, node.handled), (2, 1, 6));
        assert_eq!((node.inbox, node.inbox_high_water), (0, 6));
        assert_eq!(node.state, NodeState::Running);
        assert!(
            panicked("poison")(node.last_exit.as_ref().unwrap()),
            "{:?}",
            node.last_exit
        );

        let observer = tree.observer();
        tree.stop(SECOND).await.unwrap();
        assert_clean(&observer);
    });
}

#[test]
fn a_snapshot_goes_through_json_and_back() {
    run(1, async |options| {
        let world = World::default();
        let tree = Tree::start(
            world.root(Strategy::RestForOne, &["a", "b"], |_, child| child),
            options,
        )
        .await
        .unwrap();
        assert_eq!(
            world.at("a").ask(Do::Panic("poison")).await,
            Err(AskError::Lost)
        );
        let snapshot = tree.snapshot();
        let json = serde_json::to_string(&snapshot).unwrap();
        assert!(
            json.contains(r#""state":{"state":"backoff","until_ms":"#),
            "{json}"
        );
        assert!(
            json.contains(r#""last_exit":{"exit":"panic","message":"poison","location":""#),
            "{json}"
        );
        assert_eq!(
            serde_json::from_str::<crate::TreeSnapshot>(&json).unwrap(),
            snapshot
        );
        tree.stop(SECOND).await.unwrap();
    });
}

#[test]
fn what_is_left_at_the_deadline_is_killed() {
    run(1, async |options| {
        let world = World::default();
        let patient = |_: &str, child: ChildSpec| child.shutdown(Shutdown::Infinity);
        let tree = Tree::start(
            world.root(Strategy::OneForOne, &["a", "b", "c"], patient),
            options.clone(),
        )
        .await
        .unwrap();
        assert_eq!(world.at("b").ask(Do::Refuse).await, Ok(0));
        world.news();
        let (asked, observer) = (options.clock.now(), tree.observer());
        tree.stop(20 * SECOND).await.unwrap();
        assert_eq!(options.clock.now() - asked, 20 * SECOND);
        assert_eq!(world.news(), ["-c"], "a and b did not end in good order");
        assert_clean(&observer);
    });
}

#[test]
fn a_tree_that_is_dropped_dies() {
    run(1, async |options| {
        let world = World::default();
        let tree = world.start(&["a", "b"], &options).await;
        let observer = tree.observer();
        drop(tree);
        options.clock.sleep(SECOND).await;
        assert_clean(&observer);
        assert!(!world.at("a").is_open());
    });
}

#[test]
fn without_an_arbiter_there_is_no_tree() {
    let start = Tree::start(
        SupervisorSpec::new("root", Strategy::OneForOne),
        TreeOptions::default(),
    );
    let error = start.now_or_never().unwrap().unwrap_err();
    assert_eq!(
        error,
        StartError::NoArbiter {
            path: "root".to_owned()
        }
    );
}

#[test]
fn a_root_that_gave_up_still_shows_why() {
    run(1, async |options| {
        let world = World::default();
        let mut tree = world.start(&["a"], &options).await;
        world.at("a").tell(Do::Fail(Failure::fatal("no schema")));
        let exit = tree.exited().await;
        let root = tree.snapshot().root.unwrap();
        assert_eq!(
            (root.state, root.last_exit, root.children.len()),
            (NodeState::Failed, Some(exit), 0)
        );
    });
}

#[test]
fn no_duration_is_too_long_to_wait() {
    run(1, async |options| {
        let world = World::default();
        let patient = |_: &str, child: ChildSpec| child.shutdown(Shutdown::Timeout(Duration::MAX));
        let tree = Tree::start(world.root(Strategy::OneForOne, &["a"], patient), options)
            .await
            .unwrap();
        let observer = tree.observer();
        tree.stop(Duration::MAX).await.unwrap();
        assert_clean(&observer);
    });
}
