//! A supervisor that falls itself.

use std::time::Duration;

use actix::Arbiter;

use super::{HOUR, SECOND, end, nested};
use crate::scripted::{Do, Gate, World};
use crate::testing::{assert_clean, run};
use crate::{
    Backoff, ChildSpec, Clock, Exit, Intensity, StartError, Strategy, SupervisorSpec, Thread, Tree,
    TreeOptions,
};

/// Makes `root/middle` panic, as a defect of its own would.
async fn fell(world: &World, tree: &Tree) {
    let broken = ChildSpec {
        launch: Box::new(|_| panic!("the supervisor's own fault")),
        ..world.child("broken", vec![])
    };
    assert!(tree.add_child("root/middle", broken).await.is_err());
}

#[test]
fn children_of_a_supervisor_that_panics_end_with_it_and_are_made_anew() {
    run(1, async |options| {
        let world = World::default();
        let tree = Tree::start(nested(&world, vec![]), options.clone())
            .await
            .unwrap();
        let leaf = world.at("leaf");
        world.news();
        fell(&world, &tree).await;
        options.clock.sleep(Duration::from_millis(50)).await;
        assert!(!leaf.is_open(), "not only when its supervisor comes back");
        options.clock.sleep(SECOND).await;
        assert_eq!(world.news(), ["+leaf", "+twin"]);
        let snapshot = tree.snapshot();
        assert!(matches!(
            snapshot.find("root/middle").unwrap().last_exit,
            Some(Exit::Panic { .. })
        ));
        assert_eq!(snapshot.tasks, 6);
        end(tree).await;
    });
}

#[test]
fn no_child_begins_while_its_predecessor_under_a_fallen_supervisor_still_runs() {
    let gate = Gate::default();
    actix::System::new().block_on(async {
        let arbiter = Arbiter::new();
        let thread = Thread::arbiter("other", &arbiter.handle());
        let clock = Clock::system();
        let world = World::default();
        let root = SupervisorSpec::new("root", Strategy::OneForOne);
        let tree = Tree::start(root, TreeOptions::default()).await.unwrap();
        let (below, elsewhere) = (world.clone(), thread.clone());
        let middle = SupervisorSpec::new("middle", Strategy::OneForOne).children(move |children| {
            children.add(below.child("leaf", vec![]).thread(elsewhere.clone()));
        });
        let middle = ChildSpec::supervisor(middle).backoff(Backoff::none());
        tree.add_child("root", middle).await.unwrap();
        world.news();
        // the leaf blocks its thread, until it is told to go on
        let old = world.at("leaf");
        old.tell(Do::Block(gate.clone()));
        gate.wait_for_arrival();
        fell(&world, &tree).await;
        while tree.snapshot().find("root/middle").unwrap().incarnation < 2 {
            clock.sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(
            world.news(),
            Vec::<String>::new(),
            "the next leaf waits for the first"
        );
        assert!(
            tree.observer()
                .alive()
                .contains(&"root/middle/leaf".to_owned())
        );
        gate.open();
        while !world.news().contains(&"+leaf".to_owned()) {
            clock.sleep(Duration::from_millis(1)).await;
        }
        let observer = tree.observer();
        tree.stop(HOUR).await.unwrap();
        assert_clean(&observer);
        arbiter.stop();
        arbiter.join().unwrap();
    });
}

#[test]
fn a_supervisor_whose_old_children_block_their_threads_gives_up_and_names_one() {
    let gate = Gate::default();
    run(1, async |options| {
        let arbiter = Arbiter::new();
        let thread = Thread::arbiter("other", &arbiter.handle());
        let world = World::default();
        let below = world.clone();
        let root = SupervisorSpec::new("root", Strategy::OneForOne).children(move |children| {
            let (below, thread) = (below.clone(), thread.clone());
            let middle = SupervisorSpec::new("middle", Strategy::OneForOne);
            let middle = middle.children(move |children| {
                children.add(below.child("leaf", vec![]).thread(thread.clone()));
            });
            children.add(ChildSpec::supervisor(middle).backoff(Backoff::none()));
        });
        let mut tree = Tree::start(root, options).await.unwrap();
        world.at("leaf").tell(Do::Block(gate.clone()));
        gate.wait_for_arrival();
        fell(&world, &tree).await;
        let exit = tree.exited().await;
        let text = exit.to_string();
        assert!(
            text.contains("root/middle/leaf of the incarnation before"),
            "{text}"
        );
        assert_eq!(tree.observer().alive(), ["root/middle/leaf"]);
        gate.open();
        arbiter.stop();
        arbiter.join().unwrap();
        assert_clean(&tree.observer());
    });
}

#[test]
fn a_fallen_dynamic_supervisor_takes_no_child_before_the_old_ones_have_ended() {
    let gate = Gate::default();
    run(1, async |options| {
        let arbiter = Arbiter::new();
        let thread = Thread::arbiter("other", &arbiter.handle());
        let world = World::default();
        let root = SupervisorSpec::new("root", Strategy::OneForOne);
        let mut tree = Tree::start(root, options.clone()).await.unwrap();
        let (middle, _) = SupervisorSpec::dynamic("middle", |spec| spec);
        let middle = ChildSpec::supervisor(middle).backoff(Backoff::none());
        tree.add_child("root", middle).await.unwrap();
        let leaf = || world.child("leaf", vec![]);
        tree.add_child("root/middle", leaf().thread(thread))
            .await
            .unwrap();
        world.at("leaf").tell(Do::Block(gate.clone()));
        gate.wait_for_arrival();
        fell(&world, &tree).await;
        let path = "root/middle/leaf".to_owned();
        let refused = tree.add_child("root/middle", leaf()).await;
        assert_eq!(refused, Err(StartError::Stopped { path }));
        assert!(matches!(tree.exited().await, Exit::Escalated { .. }));
        gate.open();
        arbiter.stop();
        arbiter.join().unwrap();
        assert_clean(&tree.observer());
    });
}

#[test]
fn a_window_above_that_could_never_fill_is_refused_and_named() {
    run(1, async |options| {
        let world = World::default();
        let tree = |outer: Intensity| {
            let below = world.clone();
            let middle = move || {
                let below = below.clone();
                SupervisorSpec::new("middle", Strategy::OneForOne)
                    .children(move |children| children.add(below.child("leaf", vec![])))
            };
            let root = SupervisorSpec::new("root", Strategy::OneForOne).intensity(outer);
            root.children(move |children| children.add(ChildSpec::supervisor(middle())))
        };
        // middle falls after 0.1 + 0.2 + 0.4 + 0.8 + 1.6 s, moved by a fifth: 3.72 s; root bears three such falls and delays of 0.84 s
        let error = Tree::start(tree(Intensity::new(3, 12 * SECOND)), options.clone())
            .await
            .unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("root: gives up after more than 3 failures in 12s"),
            "{text}"
        );
        assert!(
            text.contains("\"root/middle/leaf\"") && text.contains("over 12s"),
            "{text}"
        );
        let mut tree = Tree::start(tree(Intensity::new(3, 13 * SECOND)), options.clone())
            .await
            .unwrap();
        for _ in 0..24 {
            while world.at("leaf").ask(Do::Panic("for ever")).await == Err(crate::AskError::Gone) {
                options.clock.sleep(SECOND / 100).await;
            }
        }
        assert!(
            matches!(tree.exited().await, Exit::Escalated { .. }),
            "and it does fill"
        );
        end(tree).await;
    });
}
