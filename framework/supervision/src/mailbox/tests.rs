use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;

use crate::scripted::{Begin, Do, Scripted, World};
use crate::testing::{assert_clean, run};
use crate::{Address, AskError, Mailbox, NodeState, Strategy, SupervisorSpec, Tree, TreeOptions};

const MILLI: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);

/// A tree of one child `root/a` whose mailbox keeps up to three questions while it is down.
async fn solo(
    world: &World,
    begins: Vec<Begin>,
    options: &TreeOptions,
) -> (Tree, Address<Scripted>) {
    let tree = Tree::start(
        SupervisorSpec::new("root", Strategy::OneForOne),
        options.clone(),
    )
    .await
    .unwrap();
    let spec = world.child_at(Mailbox::with_buffer(3), "a", begins);
    tree.add_child("root", spec).await.unwrap();
    (tree, world.at("a"))
}

/// Crashes it, and returns while it waits for its restart.
async fn crash(tree: &Tree, a: &Address<Scripted>, options: &TreeOptions) {
    a.tell(Do::Panic("down"));
    options.clock.sleep(MILLI).await;
    let state = tree.snapshot().find("root/a").unwrap().state;
    assert!(matches!(state, NodeState::Backoff { .. }), "{state:?}");
}

async fn end(tree: Tree) {
    let observer = tree.observer();
    tree.stop(HOUR).await.unwrap();
    assert_clean(&observer);
}

#[test]
fn questions_beyond_the_buffer_are_refused_while_the_actor_is_down_and_answered_when_asked_again() {
    run(1, async |options| {
        let (tree, a) = solo(&World::default(), vec![], &options).await;
        crash(&tree, &a, &options).await;
        let waiting: Vec<_> = (0..3).map(|_| a.ask(Do::Count)).collect();
        let refused = a.ask(Do::Count).now_or_never();
        assert_eq!(refused, Some(Err(AskError::Restarting)));
        assert_eq!(a.depth(), 3);
        assert_eq!(join_all(waiting).await, [Ok(1), Ok(2), Ok(3)]);
        assert_eq!(
            a.ask(Do::Count).await,
            Ok(4),
            "the refused one was not handled"
        );

        // what was handled frees its place for the next time
        crash(&tree, &a, &options).await;
        let waiting: Vec<_> = (0..3).map(|_| a.ask(Do::Count)).collect();
        assert_eq!(join_all(waiting).await, [Ok(1), Ok(2), Ok(3)]);
        end(tree).await;
    });
}

#[test]
fn questions_that_waited_when_the_actor_crashed_are_kept_however_many_and_leave_no_room_for_new_ones()
 {
    run(1, async |options| {
        let (tree, a) = solo(&World::default(), vec![], &options).await;
        a.tell(Do::Panic("down"));
        let waiting: Vec<_> = (0..5).map(|_| a.ask(Do::Count)).collect();
        options.clock.sleep(MILLI).await;
        assert_eq!(
            a.ask(Do::Count).now_or_never(),
            Some(Err(AskError::Restarting))
        );
        let answers = join_all(waiting).await;
        assert_eq!(answers, [Ok(1), Ok(2), Ok(3), Ok(4), Ok(5)]);
        end(tree).await;
    });
}

#[test]
fn what_is_told_while_the_actor_is_down_is_neither_refused_nor_counted() {
    run(1, async |options| {
        let (tree, a) = solo(&World::default(), vec![], &options).await;
        crash(&tree, &a, &options).await;
        for _ in 0..10 {
            assert!(a.tell(Do::Count));
        }
        assert_eq!(a.ask(Do::Count).await, Ok(11));
        end(tree).await;
    });
}

#[test]
fn a_question_for_a_running_actor_only_is_refused_at_once_while_it_is_down() {
    run(1, async |options| {
        let bad = vec![Begin::Well, Begin::PanicInStarted, Begin::PanicInMake];
        let (tree, a) = solo(&World::default(), bad, &options).await;
        assert_eq!(a.ask_if_running(Do::Count).await, Ok(1));
        crash(&tree, &a, &options).await;
        let asked = || a.ask_if_running(Do::Count).now_or_never();
        assert_eq!(asked(), Some(Err(AskError::Restarting)));
        // the restarts that fail, in `started` and in make, do not make it look up
        let back = a.ask(Do::Count);
        for incarnation in [2, 3] {
            while tree.snapshot().find("root/a").unwrap().incarnation < incarnation {
                assert_eq!(asked(), Some(Err(AskError::Restarting)));
                options.clock.sleep(MILLI).await;
            }
        }
        assert_eq!(asked(), Some(Err(AskError::Restarting)));
        assert_eq!(back.await, Ok(1));
        assert_eq!(a.ask_if_running(Do::Count).await, Ok(2));
        end(tree).await;
    });
}

#[test]
fn an_actor_that_is_yet_to_be_started_is_down() {
    run(1, async |options| {
        let mailbox = Mailbox::new();
        let a: Address<Scripted> = mailbox.address();
        let restarting = Some(Err(AskError::Restarting));
        assert_eq!(a.ask_if_running(Do::Count).now_or_never(), restarting);
        let waiting: Vec<_> = (0..1024).map(|_| a.ask(Do::Count)).collect();
        assert_eq!(a.ask(Do::Count).now_or_never(), restarting);

        let world = World::default();
        let root = SupervisorSpec::new("root", Strategy::OneForOne);
        let tree = Tree::start(root, options).await.unwrap();
        let spec = world.child_at(mailbox, "a", vec![]);
        tree.add_child("root", spec).await.unwrap();
        let answers = join_all(waiting).await;
        assert!((1..).zip(answers).all(|(n, answer)| answer == Ok(n)));
        end(tree).await;
    });
}

#[test]
fn of_an_actor_that_is_gone_no_asker_is_told_to_try_again() {
    run(1, async |options| {
        let (tree, a) = solo(&World::default(), vec![], &options).await;
        a.tell(Do::Panic("down"));
        let waiting: Vec<_> = (0..5).map(|_| a.ask(Do::Count)).collect();
        options.clock.sleep(MILLI).await;
        end(tree).await;
        assert_eq!(join_all(waiting).await, [Err(AskError::Lost); 5]);
        assert_eq!(a.ask(Do::Count).await, Err(AskError::Gone));
        assert_eq!(a.ask_if_running(Do::Count).await, Err(AskError::Gone));
    });
}

#[test]
fn a_question_whose_asker_has_gone_is_not_handled_and_gives_its_place_back_when_its_turn_comes() {
    run(1, async |options| {
        let (tree, a) = solo(&World::default(), vec![], &options).await;
        crash(&tree, &a, &options).await;
        for _ in 0..3 {
            drop(a.ask(Do::Count));
        }
        assert_eq!(
            a.ask(Do::Count).now_or_never(),
            Some(Err(AskError::Restarting))
        );
        while a.depth() > 0 {
            options.clock.sleep(MILLI).await;
        }
        assert_eq!(a.ask(Do::Count).await, Ok(1));
        crash(&tree, &a, &options).await;
        assert_eq!(a.ask(Do::Count).await, Ok(1));
        end(tree).await;
    });
}

#[test]
fn only_a_question_that_was_certainly_not_handled_is_safe_to_ask_again() {
    assert!(AskError::Restarting.is_retry_safe());
    assert!(AskError::Gone.is_retry_safe());
    assert!(!AskError::Lost.is_retry_safe());
}
