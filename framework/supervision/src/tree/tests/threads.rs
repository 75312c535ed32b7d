//! Trees that live on several threads.

use actix::{Arbiter, System};

use super::SECOND;
use crate::scripted::{Do, World};
use crate::testing::{assert_clean, run};
use crate::{
    AskError, ChildSpec, Exit, StartError, Strategy, SupervisorSpec, Thread, Tree, TreeOptions,
};

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
        assert_clean(&observer);
        for arbiter in arbiters {
            arbiter.stop();
            arbiter.join().unwrap();
        }
    });
}

#[test]
fn a_thread_that_ends_takes_its_actor_with_it_and_the_supervisor_gives_up() {
    run(1, async |options| {
        let world = World::default();
        let mut tree = world.start(&["a"], &options).await;
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
        assert_clean(&observer);
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
        assert_clean(&observer);
    });
}

#[test]
fn a_child_on_a_thread_that_has_ended_cannot_start() {
    run(1, async |options| {
        let world = World::default();
        let tree = world.start(&["a"], &options).await;
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
        assert_clean(&observer);
    });
}
