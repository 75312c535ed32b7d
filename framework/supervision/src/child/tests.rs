mod hostile;
mod odd;

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;

use crate::scripted::{Begin, Do, World, panicked};
use crate::testing::{assert_clean, run};
use crate::{
    AskError, Backoff, ErrorKind, Exit, Failure, NodeSnapshot, NodeState, Strategy, SupervisorSpec,
    Tree, TreeOptions,
};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

/// A tree of one child `root/a`.
async fn solo(world: &World, begins: Vec<Begin>, options: &TreeOptions) -> Tree {
    let world = world.clone();
    let spec = SupervisorSpec::new("root", Strategy::OneForOne).children(move |children| {
        children.add(world.child("a", begins.clone()));
    });
    Tree::start(spec, options.clone()).await.unwrap()
}

fn look(tree: &Tree) -> NodeSnapshot {
    tree.snapshot().find("root/a").unwrap().clone()
}

async fn end(tree: Tree) {
    let observer = tree.observer();
    tree.stop(HOUR).await.unwrap();
    assert_clean(&observer);
}

#[test]
fn a_panic_in_a_spawned_future_is_the_actors_own() {
    run(1, async |options| {
        let world = World::default();
        let tree = solo(&world, vec![], &options).await;
        assert_eq!(world.at("a").ask(Do::PanicLater("later")).await, Ok(0));
        assert_eq!(world.at("a").ask(Do::Count).await, Ok(1));
        let node = look(&tree);
        assert!(panicked("later")(&node.last_exit.unwrap()));
        assert_eq!((node.incarnation, node.restarts), (2, 1));
        end(tree).await;
    });
}

#[test]
fn panics_in_the_handler_and_then_in_stopped_are_both_survived() {
    run(1, async |options| {
        let world = World::default();
        let tree = solo(&world, vec![], &options).await;
        let a = world.at("a");
        assert_eq!(a.ask(Do::PanicInStopped).await, Ok(0));
        assert_eq!(
            a.ask(Do::Panic("in the handler")).await,
            Err(AskError::Lost)
        );
        assert_eq!(a.ask(Do::PanicInStopped).await, Ok(0));
        assert_eq!(a.ask(Do::Stop).await, Ok(0));
        assert_eq!(a.ask(Do::Count).await, Ok(1));
        assert!(panicked("stopped badly")(&look(&tree).last_exit.unwrap()));
        assert_eq!(a.ask(Do::PanicInStopped).await, Ok(1));
        end(tree).await;
    });
}

#[test]
fn starts_that_fail_three_times_are_delayed_by_the_formula_and_then_the_queue_is_handled() {
    run(1, async |options| {
        let world = World::default();
        let bad = [
            Begin::Well,
            Begin::PanicInStarted,
            Begin::PanicInMake,
            Begin::FailInStarted(Failure::transient("not yet")),
        ];
        let tree = solo(&world, bad.to_vec(), &options).await;
        let a = world.at("a");
        let crash = options.clock.now();
        a.tell(Do::Panic("first"));
        let queued: Vec<_> = (0..4).map(|_| a.ask(Do::Count)).collect();
        assert_eq!(join_all(queued).await, [Ok(1), Ok(2), Ok(3), Ok(4)]);

        // the second of four restarts never gets as far as `started`
        let starts: Vec<f64> = world
            .times("+a")
            .iter()
            .skip(1)
            .map(|&at| (at - crash).as_secs_f64())
            .collect();
        let nominal = [0.1, 0.1 + 0.2 + 0.4, 0.1 + 0.2 + 0.4 + 0.8];
        assert_eq!(starts.len(), 3);
        for (start, nominal) in starts.iter().zip(nominal) {
            assert!(
                (start - nominal).abs() <= 0.2 * nominal + 0.005,
                "{start} is not {nominal} ± 20 %"
            );
        }
        assert_eq!(look(&tree).restarts, 4);
        end(tree).await;
    });
}

#[test]
fn messages_wait_out_a_backoff_and_are_seen_waiting() {
    run(1, async |options| {
        let world = World::default();
        let tree = solo(&world, vec![], &options).await;
        let a = world.at("a");
        a.tell(Do::Panic("down"));
        options.clock.sleep(Duration::from_millis(10)).await;
        let answers: Vec<_> = (0..3).map(|_| a.ask(Do::Count)).collect();
        let node = look(&tree);
        assert!(
            matches!(node.state, NodeState::Backoff { until_ms } if (70..=110).contains(&until_ms)),
            "{:?}",
            node.state
        );
        assert_eq!((node.inbox, a.depth(), node.uptime_ms), (3, 3, 0));
        assert_eq!(join_all(answers).await, [Ok(1), Ok(2), Ok(3)]);
        assert_eq!((a.depth(), a.high_water()), (0, 3));
        end(tree).await;
    });
}

#[test]
fn a_failing_actor_names_its_error_and_its_kind() {
    run(1, async |options| {
        let world = World::default();
        let tree = solo(&world, vec![], &options).await;
        assert_eq!(
            world
                .at("a")
                .ask(Do::Fail(Failure::transient("no route")))
                .await,
            Ok(0)
        );
        assert_eq!(world.at("a").ask(Do::Count).await, Ok(1));
        let exit = Exit::Error {
            kind: ErrorKind::Transient,
            message: "no route".to_owned(),
        };
        assert_eq!(look(&tree).last_exit, Some(exit));
        assert_eq!(
            world.news(),
            ["+a", "-a", "+a"],
            "a failure is an end in good order: `stopped` runs"
        );
        end(tree).await;
    });
}

#[test]
fn an_actor_that_fails_cannot_refuse_to_end() {
    run(1, async |options| {
        let world = World::default();
        let tree = solo(&world, vec![], &options).await;
        assert_eq!(world.at("a").ask(Do::Refuse).await, Ok(0));
        assert_eq!(
            world
                .at("a")
                .ask(Do::Fail(Failure::transient("no route")))
                .await,
            Ok(0)
        );
        assert_eq!(world.at("a").ask(Do::Count).await, Ok(1));
        assert_eq!(look(&tree).incarnation, 2);
        end(tree).await;
    });
}

#[test]
fn what_a_future_holds_is_dropped_with_its_incarnation_and_not_after_the_backoff() {
    run(1, async |options| {
        let world = World::default();
        let tree = solo(&world, vec![], &options).await;
        let witness = Arc::new(());
        assert_eq!(
            world.at("a").ask(Do::Hold(Arc::clone(&witness))).await,
            Ok(0)
        );
        assert_eq!(Arc::strong_count(&witness), 2);
        world.at("a").tell(Do::Panic("down"));
        options.clock.sleep(Duration::from_millis(1)).await;
        assert!(matches!(look(&tree).state, NodeState::Backoff { .. }));
        assert_eq!(Arc::strong_count(&witness), 1);
        end(tree).await;
    });
}

#[test]
fn an_actor_deaf_in_a_wait_is_stopped_all_the_same() {
    run(1, async |options| {
        let world = World::default();
        let tree = solo(&world, vec![], &options).await;
        assert_eq!(world.at("a").ask(Do::Wait(HOUR)).await, Ok(0));
        let asked = options.clock.now();
        let clock = options.clock.clone();
        end(tree).await;
        assert_eq!(clock.now(), asked);
        assert_eq!(world.news(), ["+a", "-a"]);
    });
}

#[test]
fn an_actor_that_refuses_its_stop_is_killed_at_its_deadline() {
    run(1, async |options| {
        let world = World::default();
        let tree = solo(&world, vec![], &options).await;
        assert_eq!(world.at("a").ask(Do::Refuse).await, Ok(0));
        let asked = options.clock.now();
        let clock = options.clock.clone();
        end(tree).await;
        assert_eq!(clock.now() - asked, 5 * SECOND);
        assert_eq!(world.news(), ["+a"], "killed: `stopped` does not run");
    });
}

#[test]
fn an_actor_may_finish_its_work_before_it_stops() {
    run(1, async |options| {
        let world = World::default();
        let tree = solo(&world, vec![], &options).await;
        assert_eq!(world.at("a").ask(Do::Work(3 * SECOND)).await, Ok(0));
        let asked = options.clock.now();
        let clock = options.clock.clone();
        end(tree).await;
        assert_eq!(clock.now() - asked, 3 * SECOND);
        assert_eq!(world.news(), ["+a", "-a"]);
    });
}

#[test]
fn orders_and_timers_get_their_turn_in_a_storm_of_messages() {
    run(1, async |options| {
        let world = World::default();
        let tree = solo(&world, vec![], &options).await;
        let a = world.at("a");
        // it would keep itself busy for ever: only an order that overtakes the mailbox can end it
        a.tell(Do::Storm(u32::MAX));
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        let handled = look(&tree).handled;
        assert!(handled > 256, "{handled}");
        let clock = options.clock.clone();
        let asked = clock.now();
        end(tree).await;
        assert_eq!(clock.now(), asked);
    });
}

#[test]
fn an_actor_that_fails_for_ever_without_delay_leaves_others_their_turns() {
    run(1, async |options| {
        let world = World::default();
        let spec = {
            let world = world.clone();
            let mut begins = vec![Begin::Well];
            begins.extend(vec![Begin::PanicInMake; 20_000]);
            SupervisorSpec::new("root", Strategy::OneForOne)
                .without_intensity()
                .children(move |children| {
                    children.add(world.child("a", begins.clone()).backoff(Backoff::none()));
                })
        };
        let tree = Tree::start(spec, options).await.unwrap();
        world.at("a").tell(Do::Panic("down"));
        let mut turns = 0_u64;
        while look(&tree).restarts < 10_000 {
            turns += 1;
            tokio::task::yield_now().await;
        }
        assert!(
            turns > 100,
            "10,000 restarts took the thread away for all but {turns} turns"
        );
        end(tree).await;
    });
}

#[test]
fn a_slow_start_is_awaited_and_holds_up_those_behind_it() {
    run(1, async |options| {
        let world = World::default();
        let spec = {
            let world = world.clone();
            SupervisorSpec::new("root", Strategy::OneForOne).children(move |children| {
                children.add(world.child("a", vec![Begin::HoldStart(5 * SECOND)]));
                children.add(world.child("b", vec![Begin::HoldStart(3 * SECOND)]));
            })
        };
        let begun = options.clock.now();
        let clock = options.clock.clone();
        let tree = Tree::start(spec, options).await.unwrap();
        assert_eq!(clock.now() - begun, 8 * SECOND);
        assert_eq!(world.times("+a"), [begun]);
        assert_eq!(world.times("+b"), [begun + 5 * SECOND]);
        end(tree).await;
    });
}

#[test]
fn once_an_actor_is_gone_for_good_nobody_waits_for_it() {
    run(1, async |options| {
        let world = World::default();
        let tree = solo(&world, vec![], &options).await;
        let a = world.at("a");
        let waiting = a.ask(Do::Wait(HOUR));
        let behind = a.ask(Do::Count);
        assert_eq!(waiting.await, Ok(0));
        assert!(a.is_open());
        end(tree).await;
        assert_eq!(behind.await, Err(AskError::Lost));
        assert_eq!(a.ask(Do::Count).await, Err(AskError::Gone));
        let left = a.depth();
        assert!(!a.tell(Do::Count));
        assert_eq!(a.depth(), left);
        assert!(!a.recipient::<Do>().tell(Do::Count));
        assert!(!a.is_open());
    });
}

#[test]
fn messages_past_our_address_are_handled_and_do_not_upset_the_depth() {
    run(1, async |options| {
        let world = World::default();
        let tree = solo(&world, vec![], &options).await;
        let a = world.at("a");
        a.actix().do_send(Do::Count);
        assert_eq!(a.ask(Do::Count).await, Ok(2));
        assert_eq!((a.depth(), a.high_water(), look(&tree).handled), (0, 1, 2));
        end(tree).await;
    });
}
