use std::time::Duration;

use crate::scripted::{Do, World, assert_nothing_left, panicked};
use crate::testing::run;
use crate::{AskError, NodeState, Strategy, Tree};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn children_start_in_order_and_stop_in_reverse() {
    run(1, async |options| {
        let world = World::default();
        let tree = Tree::start(
            world.root(Strategy::OneForOne, &["a", "b", "c"], |_, child| child),
            options,
        )
        .await
        .unwrap();
        assert_eq!(world.news(), ["+a", "+b", "+c"]);
        let observer = tree.observer();
        tree.stop(SECOND).await.unwrap();
        assert_eq!(world.news(), ["-c", "-b", "-a"]);
        assert_nothing_left(&observer);
    });
}

#[test]
fn a_panic_costs_the_message_that_caused_it_and_nothing_else() {
    run(1, async |options| {
        let world = World::default();
        let tree = Tree::start(
            world.root(Strategy::OneForOne, &["a"], |_, child| child),
            options,
        )
        .await
        .unwrap();
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
        assert_nothing_left(&observer);
    });
}
