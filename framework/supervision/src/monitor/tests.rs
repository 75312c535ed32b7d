use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::{Actor, Arbiter, Handler};

use super::{Down, Monitor};
use crate::scripted::{Do, Gate, World};
use crate::stats::lock;
use crate::testing::{assert_clean, run};
use crate::{
    AskError, Backoff, ChildSpec, Context, Exit, Failure, Mailbox, Observer, Restart, Shutdown,
    Strategy, SupervisorSpec, Tell, Thread, Tree, TreeOptions, supervised,
};

const SECOND: Duration = Duration::from_secs(1);

/// What a monitor heard: incarnation, exit in words, whether it was the last.
#[derive(Clone, Default)]
struct Ear(Arc<Mutex<Vec<Down>>>);

impl Ear {
    fn tell(&self) -> Tell<Down> {
        let heard = Arc::clone(&self.0);
        Tell::new(move |down| {
            lock(&heard).push(down);
            true
        })
    }

    fn at(&self, observer: &Observer, path: &str) -> Monitor {
        observer.monitor(path, self.tell()).unwrap()
    }

    fn heard(&self) -> Vec<(u32, String, bool)> {
        let heard = lock(&self.0).drain(..).collect::<Vec<_>>();
        heard
            .into_iter()
            .map(|down| (down.incarnation, down.exit.to_string(), down.last))
            .collect()
    }
}

fn word(incarnation: u32, exit: &str, last: bool) -> (u32, String, bool) {
    (incarnation, exit.to_owned(), last)
}

async fn solo(
    world: &World,
    options: &TreeOptions,
    edit: impl Fn(&str, ChildSpec) -> ChildSpec + Send + 'static,
) -> Tree {
    let spec = world.root(Strategy::OneForOne, &["a"], edit);
    Tree::start(spec, options.clone()).await.unwrap()
}

async fn end(tree: Tree) {
    let observer = tree.observer();
    tree.stop(60 * SECOND).await.unwrap();
    assert_clean(&observer);
}

#[test]
fn a_monitor_hears_of_every_end_until_it_is_dropped_and_the_last_says_so() {
    run(1, async |options| {
        let world = World::default();
        let tree = solo(&world, &options, |_, child| child).await;
        let (observer, ear, short) = (tree.observer(), Ear::default(), Ear::default());
        let _monitor = ear.at(&observer, "root/a");
        let monitor = short.at(&observer, "root/a");
        let fail = |text: &str| world.at("a").ask(Do::Fail(Failure::transient(text)));
        assert_eq!(fail("one").await, Ok(0));
        assert_eq!(fail("two").await, Ok(0));
        drop(monitor);
        assert_eq!(fail("three").await, Ok(0));
        assert_eq!(world.at("a").ask(Do::Count).await, Ok(1));
        let heard = ear.heard();
        assert_eq!(
            heard,
            [
                word(1, "failed for now: one", false),
                word(2, "failed for now: two", false),
                word(3, "failed for now: three", false)
            ]
        );
        assert_eq!(short.heard(), heard[..2]);
        end(tree).await;
        assert_eq!(ear.heard(), [word(4, "stopped as asked", true)]);
        assert_eq!(short.heard(), []);
    });
}

#[test]
fn where_nothing_is_there_is_no_monitor() {
    run(1, async |options| {
        let world = World::default();
        let tree = solo(&world, &options, |_, child| child).await;
        let (observer, ear) = (tree.observer(), Ear::default());
        for path in ["root/b", "a", "", "root/a/b", "roo"] {
            assert!(observer.monitor(path, ear.tell()).is_none(), "{path}");
        }
        let root = ear.at(&observer, "root");
        assert_eq!(format!("{root:?}"), r#"Monitor { path: "root", .. }"#);
        end(tree).await;
        assert_eq!(ear.heard(), [word(1, "stopped as asked", true)]);
        assert!(observer.monitor("root", ear.tell()).is_none());
    });
}

#[test]
fn an_end_that_proves_to_be_the_last_is_followed_by_one_word_that_says_so() {
    run(1, async |options| {
        let world = World::default();
        let tree = solo(&world, &options, |_, child| child).await;
        let observer = tree.observer();
        let (temporary, removed) = (Ear::default(), Ear::default());
        for (id, restart) in [("t", Restart::Temporary), ("r", Restart::Permanent)] {
            let child = world.child(id, vec![]).restart(restart);
            tree.add_child("root", child).await.unwrap();
        }
        let _monitors = [
            temporary.at(&observer, "root/t"),
            removed.at(&observer, "root/r"),
        ];
        let fail = || Do::Fail(Failure::transient("no route"));
        assert_eq!(world.at("t").ask(fail()).await, Ok(0));
        assert_eq!(world.at("r").ask(fail()).await, Ok(0));
        options.clock.sleep(Duration::from_millis(10)).await;
        let text = "failed for now: no route";
        let both = [word(1, text, false), word(1, text, true)];
        assert_eq!(temporary.heard(), both);

        assert_eq!(removed.heard(), both[..1], "it waits for its restart");
        tree.stop_child("root/r").await.unwrap();
        assert_eq!(removed.heard(), both[1..]);
        assert!(observer.monitor("root/r", removed.tell()).is_none());
        end(tree).await;
        assert_eq!((temporary.heard(), removed.heard()), (vec![], vec![]));
    });
}

#[test]
fn the_last_word_comes_once_though_the_supervisor_panicked_and_dropped_the_actor() {
    run(1, async |options| {
        let world = World::default();
        let inner = world.clone();
        let spec = SupervisorSpec::new("root", Strategy::OneForOne).children(move |root| {
            let inner = inner.clone();
            let middle = SupervisorSpec::new("middle", Strategy::OneForOne);
            root.add(ChildSpec::supervisor(middle.children(move |middle| {
                middle.add(inner.child("a", vec![]));
            })));
        });
        let clock = options.clock.clone();
        let tree = Tree::start(spec, options).await.unwrap();
        let (observer, actor, supervisor) = (tree.observer(), Ear::default(), Ear::default());
        let _monitors = [
            actor.at(&observer, "root/middle/a"),
            supervisor.at(&observer, "root/middle"),
        ];
        let broken = ChildSpec {
            launch: Box::new(|_| panic!("supervisor broken")),
            ..world.child("broken", vec![])
        };
        assert!(tree.add_child("root/middle", broken).await.is_err());
        clock.sleep(SECOND).await;
        assert_eq!(world.at("a").ask(Do::Count).await, Ok(1));
        assert_eq!(actor.heard(), [word(1, "was killed", true)]);
        let heard = supervisor.heard();
        assert_eq!(heard.len(), 1);
        assert!(
            heard[0].1.starts_with("panicked") && !heard[0].2,
            "{heard:?}"
        );

        let _next = actor.at(&observer, "root/middle/a");
        end(tree).await;
        assert_eq!(actor.heard(), [word(1, "stopped as asked", true)]);
        assert_eq!(supervisor.heard(), [word(2, "stopped as asked", true)]);
    });
}

#[test]
fn an_actor_that_is_left_behind_is_over_for_its_monitor_and_its_later_end_is_no_news() {
    run(1, async |options| {
        let world = World::default();
        let arbiter = Arbiter::new();
        let thread = Thread::arbiter("blocked", &arbiter.handle());
        let brutal = move |_: &str, child: ChildSpec| {
            child.thread(thread.clone()).shutdown(Shutdown::Brutal)
        };
        let tree = solo(&world, &options, brutal).await;
        let ear = Ear::default();
        let _monitor = ear.at(&tree.observer(), "root/a");
        let gate = Gate::default();
        world.at("a").tell(Do::Block(gate.clone()));
        gate.wait_for_arrival();
        assert!(tree.stop_child("root/a").await.is_err());
        assert_eq!(ear.heard(), [word(1, "was stuck", true)]);
        gate.open();
        arbiter.stop();
        arbiter.join().unwrap();
        end(tree).await;
        assert_eq!(ear.heard(), []);
    });
}

#[test]
fn a_tree_that_is_dropped_gives_every_monitor_its_last_word() {
    run(1, async |options| {
        let world = World::default();
        let tree = solo(&world, &options, |_, child| child).await;
        let (observer, actor, root) = (tree.observer(), Ear::default(), Ear::default());
        let _monitors = [actor.at(&observer, "root/a"), root.at(&observer, "root")];
        drop(tree);
        options.clock.sleep(SECOND).await;
        assert_eq!(actor.heard(), [word(1, "was killed", true)]);
        assert_eq!(root.heard(), [word(1, "stopped as asked", true)]);
    });
}

#[test]
fn a_monitor_that_panics_hurts_nobody_and_one_that_has_gone_is_forgotten() {
    run(1, async |options| {
        let world = World::default();
        let tree = solo(&world, &options, |_, child| child).await;
        let (observer, ear) = (tree.observer(), Ear::default());
        let calls = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&calls);
        let _monitors = [
            observer
                .monitor("root/a", Tell::new(|_| panic!("deaf")))
                .unwrap(),
            observer
                .monitor(
                    "root/a",
                    Tell::new(move |_| {
                        *lock(&counted) += 1;
                        false
                    }),
                )
                .unwrap(),
            ear.at(&observer, "root/a"),
        ];
        for _ in 0..2 {
            let failed = world.at("a").ask(Do::Fail(Failure::transient("no route")));
            assert_eq!(failed.await, Ok(0));
        }
        assert_eq!(world.at("a").ask(Do::Count).await, Ok(1));
        assert_eq!(ear.heard().len(), 2);
        assert_eq!(*lock(&calls), 1);
        end(tree).await;
        assert_eq!(ear.heard().len(), 1);
    });
}

#[test]
fn a_monitor_may_look_at_the_tree_and_change_monitors_while_it_is_told() {
    run(1, async |options| {
        let world = World::default();
        let tree = solo(&world, &options, |_, child| child).await;
        let (observer, ear, next) = (tree.observer(), Ear::default(), Ear::default());
        let kept = Arc::new(Mutex::new(Vec::new()));
        let own = {
            let (observer, next, kept) = (observer.clone(), next.clone(), Arc::clone(&kept));
            let tell = Tell::new(move |_| {
                assert!(
                    observer
                        .snapshot()
                        .find("root/a")
                        .unwrap()
                        .last_exit
                        .is_some()
                );
                let monitor = next.at(&observer, "root/a");
                // replaces, and so drops, the monitor that is being told
                *lock(&kept) = vec![monitor];
                true
            });
            tree.observer().monitor("root/a", tell).unwrap()
        };
        lock(&kept).push(own);
        let _other = ear.at(&observer, "root/a");
        for _ in 0..2 {
            let failed = world.at("a").ask(Do::Fail(Failure::transient("no route")));
            assert_eq!(failed.await, Ok(0));
        }
        assert_eq!(world.at("a").ask(Do::Count).await, Ok(1));
        assert_eq!((ear.heard().len(), next.heard().len()), (2, 1));
        end(tree).await;
    });
}

/// Watches `a`, and keeps what it hears.
struct Watcher {
    ear: Ear,
    _monitor: Option<Monitor>,
}

impl Actor for Watcher {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self._monitor = ctx.link().monitor("root/a", ctx.me().recipient());
    }
}
supervised!(Watcher);

impl Handler<Down> for Watcher {
    type Result = ();

    fn handle(&mut self, down: Down, _: &mut Context<Self>) {
        self.ear.tell().tell(down);
    }
}

#[test]
fn an_actor_hears_of_another_in_its_mailbox() {
    run(1, async |options| {
        let world = World::default();
        let tree = solo(&world, &options, |_, child| child.backoff(Backoff::none())).await;
        let ear = Ear::default();
        let own = ear.clone();
        let watcher = ChildSpec::actor("watcher", Mailbox::new(), move |_| Watcher {
            ear: own.clone(),
            _monitor: None,
        });
        tree.add_child("root", watcher).await.unwrap();
        let poison = world.at("a").ask(Do::Panic("poison"));
        assert_eq!(poison.await, Err(AskError::Lost));
        tree.stop_child("root/a").await.unwrap();
        options.clock.sleep(Duration::from_millis(1)).await;
        let heard = lock(&ear.0).clone();
        assert_eq!(heard.len(), 2, "{heard:?}");
        assert!(matches!(heard[0].exit, Exit::Panic { .. }) && !heard[0].last);
        assert_eq!(
            heard[1],
            Down {
                path: "root/a".to_owned(),
                incarnation: 2,
                exit: Exit::Shutdown,
                last: true
            }
        );
        end(tree).await;
    });
}
