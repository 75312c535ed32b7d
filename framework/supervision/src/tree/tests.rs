use std::sync::mpsc;
use std::time::Duration;

use actix::{Actor, Arbiter, Handler, Message, System};
use futures::FutureExt;

use crate::scripted::{Do, World, assert_nothing_left, panicked};
use crate::testing::run;
use crate::{
    Address, AskError, ChildSpec, Context, Exit, Failure, Mailbox, NodeState, Observer, Shutdown,
    StartError, Strategy, SupervisorSpec, Thread, Tree, TreeOptions, supervised,
};

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
        assert_eq!(
            tree.observer().alive(),
            ["root", "root/a", "root/b", "root/c"]
        );
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
        assert_nothing_left(&observer);
    });
}

#[test]
fn a_tree_that_is_dropped_dies() {
    run(1, async |options| {
        let world = World::default();
        let tree = Tree::start(
            world.root(Strategy::OneForOne, &["a", "b"], |_, child| child),
            options.clone(),
        )
        .await
        .unwrap();
        let observer = tree.observer();
        drop(tree);
        options.clock.sleep(SECOND).await;
        assert_nothing_left(&observer);
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

/// Supervisor here, children elsewhere: in real time, since no clock is paused across threads.
#[test]
fn children_on_other_threads_crash_heal_and_stop_like_those_at_home() {
    System::new().block_on(async {
        let world = World::default();
        let arbiters = [Arbiter::new(), Arbiter::new()];
        let threads = [
            Thread::arbiter("east", &arbiters[0].handle()),
            Thread::arbiter("west", &arbiters[1].handle()),
        ];
        let spec = world.root(
            Strategy::RestForOne,
            &["a", "b", "c"],
            move |id, child| match id {
                "a" => child.thread(threads[0].clone()),
                "b" => child.thread(threads[1].clone()),
                _ => child,
            },
        );
        let tree = Tree::start(spec, TreeOptions::default()).await.unwrap();
        for id in ["a", "b", "c"] {
            assert_eq!(
                world.at(id).ask(Do::Panic("poison")).await,
                Err(AskError::Lost)
            );
            assert_eq!(world.at(id).ask(Do::Count).await, Ok(1));
        }
        let snapshot = tree.snapshot();
        let thread = |path| snapshot.find(path).unwrap().thread.clone();
        assert_eq!([thread("root/a"), thread("root/b")], ["east", "west"]);
        assert_eq!(
            snapshot.find("root/c").unwrap().thread,
            snapshot.root.as_ref().unwrap().thread
        );
        world.news();
        let observer = tree.observer();
        tree.stop(60 * SECOND).await.unwrap();
        assert_eq!(world.news(), ["-c", "-b", "-a"]);
        assert_nothing_left(&observer);
        for arbiter in arbiters {
            arbiter.stop();
            arbiter.join().unwrap();
        }
    });
}

struct Blocker(mpsc::Receiver<()>);

impl Actor for Blocker {
    type Context = Context<Self>;
}
supervised!(Blocker);

struct Block(mpsc::Sender<()>);

impl Message for Block {
    type Result = ();
}

impl Handler<Block> for Blocker {
    type Result = ();

    fn handle(&mut self, Block(blocked): Block, _: &mut Context<Self>) {
        blocked.send(()).unwrap();
        let _ = self.0.recv();
    }
}

/// An actor on an arbiter of its own that blocks its thread until the sender is used or dropped.
fn blocker(arbiter: &Arbiter) -> (ChildSpec, Address<Blocker>, mpsc::Sender<()>) {
    let (free, wait) = mpsc::channel();
    let wait = std::sync::Mutex::new(Some(wait));
    let mailbox = Mailbox::new();
    let address = mailbox.address();
    let spec = ChildSpec::actor("blocker", mailbox, move |_| {
        Blocker(wait.lock().unwrap().take().unwrap())
    });
    (
        spec.thread(Thread::arbiter("blocked", &arbiter.handle()))
            .shutdown(Shutdown::Brutal),
        address,
        free,
    )
}

fn block(address: &Address<Blocker>) {
    let (blocked, is_blocked) = mpsc::channel();
    address.tell(Block(blocked));
    is_blocked.recv().unwrap();
}

/// Virtual time here jumps over the deadlines, while the other thread really blocks.
#[test]
fn an_actor_that_blocks_its_thread_is_reported_as_still_running_and_shown_until_it_ends() {
    run(1, async |options| {
        let world = World::default();
        let tree = Tree::start(
            world.root(Strategy::OneForOne, &["a"], |_, child| child),
            options.clone(),
        )
        .await
        .unwrap();
        let arbiter = Arbiter::new();
        let (spec, address, free) = blocker(&arbiter);
        tree.add_child("root", spec).await.unwrap();
        block(&address);
        let asked = options.clock.now();
        let observer = tree.observer();
        let left = tree.stop(10 * SECOND).await.unwrap_err();
        assert_eq!(left.paths, ["root/blocker"]);
        assert_eq!(
            left.to_string(),
            "still running, though stopped and then killed: root/blocker; they block their threads"
        );
        assert_eq!(
            options.clock.now() - asked,
            SECOND,
            "the others did not have to wait for the deadline"
        );
        assert_eq!(world.news(), ["+a", "-a"]);

        let snapshot = observer.snapshot();
        assert_eq!(snapshot.tasks, 1);
        assert_eq!(snapshot.abandoned[0].path, "root/blocker");
        assert_eq!(snapshot.abandoned[0].state, NodeState::Stopping);
        drop(free);
        arbiter.stop();
        arbiter.join().unwrap();
        assert_nothing_left(&observer);
    });
}

#[test]
fn stopping_one_child_that_blocks_its_thread_says_so_and_the_tree_goes_on() {
    run(1, async |options| {
        let world = World::default();
        let tree = Tree::start(
            world.root(Strategy::OneForOne, &["a"], |_, child| child),
            options,
        )
        .await
        .unwrap();
        let arbiter = Arbiter::new();
        let (spec, address, free) = blocker(&arbiter);
        tree.add_child("root", spec).await.unwrap();
        block(&address);
        let error = tree.stop_child("root/blocker").await.unwrap_err();
        assert!(error.to_string().contains("root/blocker"), "{error}");
        assert_eq!(world.at("a").ask(Do::Count).await, Ok(1));
        drop(free);
        arbiter.stop();
        arbiter.join().unwrap();
        let observer = tree.observer();
        tree.stop(SECOND).await.unwrap();
        assert_nothing_left(&observer);
    });
}

#[test]
fn a_supervisor_that_is_killed_leaves_behind_what_blocks_and_ends_itself() {
    run(1, async |options| {
        let world = World::default();
        let arbiter = Arbiter::new();
        let (spec, address, free) = blocker(&arbiter);
        let tree = Tree::start(
            SupervisorSpec::new("root", Strategy::OneForOne),
            options.clone(),
        )
        .await
        .unwrap();
        let inner = world.clone();
        let middle = SupervisorSpec::new("middle", Strategy::OneForOne).children(move |middle| {
            middle.add(inner.child("a", vec![]));
        });
        let middle = ChildSpec::supervisor(middle);
        tree.add_child("root", middle.shutdown(Shutdown::Timeout(5 * SECOND)))
            .await
            .unwrap();
        tree.add_child("root/middle", spec.shutdown(Shutdown::Infinity))
            .await
            .unwrap();
        block(&address);
        let asked = options.clock.now();
        tree.stop_child("root/middle").await.unwrap();
        assert_eq!(
            options.clock.now() - asked,
            6 * SECOND,
            "its own deadline, and the grace of the blocked actor"
        );
        assert_eq!(tree.observer().alive(), ["root", "root/middle/blocker"]);
        drop(free);
        arbiter.stop();
        arbiter.join().unwrap();
        let observer = tree.observer();
        tree.stop(SECOND).await.unwrap();
        assert_nothing_left(&observer);
    });
}

#[test]
fn a_root_that_gave_up_still_shows_why() {
    run(1, async |options| {
        let world = World::default();
        let mut tree = Tree::start(
            world.root(Strategy::OneForOne, &["a"], |_, child| child),
            options,
        )
        .await
        .unwrap();
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
fn a_thread_that_ends_takes_its_actor_with_it_and_the_supervisor_gives_up() {
    run(1, async |options| {
        let world = World::default();
        let mut tree = Tree::start(
            world.root(Strategy::OneForOne, &["a"], |_, child| child),
            options,
        )
        .await
        .unwrap();
        let arbiter = Arbiter::new();
        let spec = world
            .child("b", vec![])
            .thread(Thread::arbiter("doomed", &arbiter.handle()));
        tree.add_child("root", spec).await.unwrap();
        arbiter.stop();
        arbiter.join().unwrap();
        let exit = tree.exited().await;
        assert_eq!(
            exit,
            Exit::Escalated {
                child: "root/b".to_owned(),
                cause: Box::new(Exit::Killed)
            }
        );

        let observer = tree.observer();
        tree.stop(SECOND).await.unwrap();
        assert_nothing_left(&observer);
    });
}

#[test]
fn a_thread_that_ends_under_a_supervisor_ends_its_children_elsewhere() {
    run(1, async |options| {
        let world = World::default();
        let arbiter = Arbiter::new();
        let here = Thread::arbiter("home", &Arbiter::current());
        let inner = world.clone();
        let middle = SupervisorSpec::new("middle", Strategy::OneForOne).children(move |middle| {
            middle.add(inner.child("a", vec![]).thread(here.clone()));
        });
        let middle = middle.thread(Thread::arbiter("doomed", &arbiter.handle()));
        let mut tree = Tree::start(SupervisorSpec::new("root", Strategy::OneForOne), options)
            .await
            .unwrap();
        tree.add_child("root", ChildSpec::supervisor(middle))
            .await
            .unwrap();
        assert_eq!(world.at("a").ask(Do::Count).await, Ok(1));
        arbiter.stop();
        arbiter.join().unwrap();
        let exit = tree.exited().await;
        assert_eq!(
            exit,
            Exit::Escalated {
                child: "root/middle".to_owned(),
                cause: Box::new(Exit::Killed)
            }
        );
        let observer = tree.observer();
        tree.stop(SECOND).await.unwrap();
        assert!(!world.at("a").is_open());
        assert_nothing_left(&observer);
    });
}

#[test]
fn children_of_a_supervisor_on_a_blocked_thread_are_killed_and_the_culprit_is_named() {
    run(1, async |options| {
        let world = World::default();
        let arbiter = Arbiter::new();
        let here = Thread::arbiter("home", &Arbiter::current());
        let (spec, address, free) = blocker(&arbiter);
        let inner = world.clone();
        let middle = SupervisorSpec::new("middle", Strategy::OneForOne).children(move |middle| {
            middle.add(inner.child("a", vec![]).thread(here.clone()));
        });
        let middle = middle.thread(Thread::arbiter("blocked", &arbiter.handle()));
        let tree = Tree::start(
            SupervisorSpec::new("root", Strategy::OneForOne),
            options.clone(),
        )
        .await
        .unwrap();
        tree.add_child("root", ChildSpec::supervisor(middle))
            .await
            .unwrap();
        tree.add_child("root/middle", spec).await.unwrap();
        block(&address);
        let (asked, observer) = (options.clock.now(), tree.observer());
        let left = tree.stop(10 * SECOND).await.unwrap_err();
        assert_eq!(left.paths, ["root/middle/blocker"]);
        assert_eq!(options.clock.now() - asked, 13 * SECOND);
        assert!(!world.at("a").is_open());
        drop(free);
        arbiter.stop();
        arbiter.join().unwrap();
        assert_nothing_left(&observer);
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
        assert_nothing_left(&observer);
    });
}

#[test]
fn a_child_on_a_thread_that_has_ended_cannot_start() {
    run(1, async |options| {
        let world = World::default();
        let tree = Tree::start(
            world.root(Strategy::OneForOne, &["a"], |_, child| child),
            options,
        )
        .await
        .unwrap();
        let arbiter = Arbiter::new();
        let thread = Thread::arbiter("ended", &arbiter.handle());
        arbiter.stop();
        arbiter.join().unwrap();
        let error = tree
            .add_child("root", world.child("b", vec![]).thread(thread))
            .await
            .unwrap_err();
        assert_eq!(
            error,
            StartError::Failed {
                path: "root/b".to_owned(),
                exit: Exit::Killed
            }
        );
        let observer = tree.observer();
        tree.stop(SECOND).await.unwrap();
        assert_nothing_left(&observer);
    });
}

#[test]
fn an_observer_looks_from_any_thread_even_while_an_actor_blocks() {
    fn assert_portable<T: Send + Sync + Clone + 'static>(_: &T) {}
    run(1, async |options| {
        let tree = Tree::start(SupervisorSpec::new("root", Strategy::OneForOne), options)
            .await
            .unwrap();
        let arbiter = Arbiter::new();
        let (spec, address, free) = blocker(&arbiter);
        tree.add_child("root", spec).await.unwrap();
        block(&address);
        address.tell(Block(mpsc::channel().0));
        let observer: Observer = tree.observer();
        assert_portable(&observer);
        let elsewhere = observer.clone();
        let snapshot = std::thread::spawn(move || elsewhere.snapshot())
            .join()
            .unwrap();
        let node = snapshot.find("root/blocker").unwrap();
        assert_eq!(
            (node.inbox, node.handled, node.state),
            (1, 1, NodeState::Running)
        );
        drop(free);
        drop(tree);
        arbiter.stop();
        arbiter.join().unwrap();
    });
}
