//! Actors that block their thread.

use std::sync::mpsc;

use actix::{Actor, Arbiter, Handler, Message};

use super::SECOND;
use crate::scripted::{Do, Gate, World};
use crate::testing::{assert_clean, run};
use crate::{
    Address, ChildSpec, Context, Mailbox, NodeState, Observer, Shutdown, Strategy, SupervisorSpec,
    Thread, Tree, What, supervised,
};

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
        let tree = world.start(&["a"], &options).await;
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
        assert_eq!(snapshot.left_behind[0].path, "root/blocker");
        assert_eq!(snapshot.left_behind[0].state, NodeState::Stopping);
        drop(free);
        arbiter.stop();
        arbiter.join().unwrap();
        assert_clean(&observer);
    });
}

#[test]
fn stopping_one_child_that_blocks_its_thread_says_so_and_the_tree_goes_on() {
    run(1, async |options| {
        let world = World::default();
        let tree = world.start(&["a"], &options).await;
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
        assert_clean(&observer);
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
        assert_clean(&observer);
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
        assert_clean(&observer);
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

#[test]
fn of_supervisors_above_each_other_only_the_one_on_the_blocked_thread_is_left_behind() {
    let gate = Gate::default();
    run(1, async |options| {
        let arbiter = Arbiter::new();
        let thread = Thread::arbiter("other", &arbiter.handle());
        let world = World::default();
        let below = world.clone();
        let above = |id: &'static str, spec: Box<dyn Fn() -> SupervisorSpec + Send>| {
            SupervisorSpec::new(id, Strategy::OneForOne)
                .without_intensity()
                .children(move |children| children.add(ChildSpec::supervisor(spec())))
        };
        let low = move || {
            let below = below.clone();
            SupervisorSpec::new("low", Strategy::OneForOne)
                .thread(thread.clone())
                .children(move |children| children.add(below.child("leaf", vec![])))
        };
        let middle = move || above("middle", Box::new(low.clone()));
        let top = move || above("top", Box::new(middle.clone()));
        let tree = Tree::start(above("root", Box::new(top)), options.clone())
            .await
            .unwrap();
        world.at("leaf").tell(Do::Block(gate.clone()));
        gate.wait_for_arrival();
        let (observer, mut events) = (tree.observer(), tree.observer().events());
        let begun = options.clock.now();
        let error = tree.stop(SECOND).await.unwrap_err();
        assert_eq!(error.paths, ["root/top/middle/low/leaf"]);
        assert!(options.clock.now() - begun <= SECOND * 9 / 2);
        gate.open();
        arbiter.stop();
        arbiter.join().unwrap();
        assert_clean(&observer);
        let mut left = Vec::new();
        while let Some(event) = events.next().await {
            let event = event.unwrap();
            if event.what == What::LeftBehind {
                left.push(event.path);
            }
        }
        assert_eq!(
            left,
            ["root/top/middle/low/leaf", "root/top/middle/low"],
            "those above it ended"
        );
    });
}
