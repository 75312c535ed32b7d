//! Whatever belongs to an actor may panic as it is dropped, and that concerns nobody else: neither its supervisor nor what is dropped next.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use actix::fut::wrap_future;
use actix::{Actor, AsyncContext, Handler, Message};
use serde_json::json;

use super::{SECOND, end, look};
use crate::testing::run;
use crate::{
    Address, AskError, Backoff, ChildSpec, Context, Exit, Mailbox, NodeState, StartError, Strategy,
    SupervisorSpec, Tell, Tree, TreeOptions, supervised,
};

/// Panics as it is dropped, and counts that.
#[derive(Clone)]
struct Trap(Arc<AtomicUsize>);

impl Drop for Trap {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
        panic!("sprung");
    }
}

#[derive(Default)]
struct Traps(Arc<AtomicUsize>);

impl Traps {
    fn set(&self) -> Trap {
        Trap(Arc::clone(&self.0))
    }

    fn sprung(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

struct Victim;
impl Actor for Victim {
    type Context = Context<Self>;
}
supervised!(Victim);

enum Do {
    Nothing,
    Panic,
    /// Hold traps in two futures and in two waits.
    Hold([Trap; 4]),
    /// Hold traps in facts.
    Report([Trap; 3]),
    /// A message that is a trap itself.
    Carry(Trap),
}
impl Message for Do {
    type Result = u32;
}
impl Handler<Do> for Victim {
    type Result = u32;
    fn handle(&mut self, told: Do, ctx: &mut Context<Self>) -> u32 {
        match told {
            Do::Nothing => {}
            Do::Panic => panic!("as told"),
            Do::Carry(trap) => std::mem::forget(trap),
            Do::Hold([a, b, c, d]) => {
                let hold = |trap: Trap| {
                    wrap_future(async move {
                        std::future::pending::<()>().await;
                        drop(trap);
                    })
                };
                ctx.spawn(hold(a));
                ctx.spawn(hold(b));
                ctx.wait(hold(c));
                ctx.wait(hold(d));
            }
            Do::Report([a, b, c]) => {
                let hold = |trap: Trap| move || json!(trap.0.load(Ordering::Relaxed));
                ctx.link().report("a", hold(a));
                ctx.link().report("b", hold(b));
                ctx.link().virtual_children(move |_| {
                    let _trap = &c;
                    crate::Virtual::default()
                });
            }
        }
        ctx.link().incarnation()
    }
}

async fn root(options: &TreeOptions) -> Tree {
    let spec = SupervisorSpec::new("root", Strategy::OneForOne);
    Tree::start(spec, options.clone()).await.unwrap()
}

async fn solo(options: &TreeOptions) -> (Tree, Address<Victim>) {
    let tree = root(options).await;
    let mailbox = Mailbox::new();
    let address = mailbox.address();
    let spec = ChildSpec::actor("a", mailbox, |_| Victim).backoff(Backoff::none());
    tree.add_child("root", spec).await.unwrap();
    (tree, address)
}

#[test]
fn any_number_of_futures_may_panic_as_they_are_dropped() {
    run(1, async |options| {
        let (tree, a) = solo(&options).await;
        let traps = Traps::default();
        let hold = Do::Hold([traps.set(), traps.set(), traps.set(), traps.set()]);
        assert_eq!(a.ask(hold).await, Ok(1));
        assert!(tree.root_node().find("root/a").unwrap().kill());
        assert_eq!(a.ask(Do::Nothing).await, Ok(2));
        assert_eq!(traps.sprung(), 4);
        end(tree).await;
    });
}

#[test]
fn a_message_that_panics_as_it_is_dropped_keeps_no_other_asker_waiting() {
    run(1, async |options| {
        let (tree, a) = solo(&options).await;
        tree.suspend("root/a");
        let traps = Traps::default();
        let before = a.ask(Do::Nothing);
        a.tell(Do::Carry(traps.set()));
        a.tell(Do::Carry(traps.set()));
        let after = a.ask(Do::Nothing);
        tree.stop_child("root/a").await.unwrap();
        assert_eq!(before.await, Err(AskError::Lost));
        assert_eq!(after.await, Err(AskError::Lost));
        assert_eq!((traps.sprung(), a.depth()), (2, 0));
        end(tree).await;
    });
}

#[test]
fn facts_that_panic_as_they_are_dropped_cost_the_next_incarnation_nothing() {
    run(1, async |options| {
        let (tree, a) = solo(&options).await;
        let traps = Traps::default();
        let report = Do::Report([traps.set(), traps.set(), traps.set()]);
        assert_eq!(a.ask(report).await, Ok(1));
        assert_eq!(a.ask(Do::Panic).await, Err(AskError::Lost));
        assert_eq!(a.ask(Do::Nothing).await, Ok(2));
        assert_eq!((look(&tree).restarts, traps.sprung()), (1, 3));
        end(tree).await;
    });
}

#[test]
fn facts_that_panic_as_they_are_dropped_concern_no_supervisor() {
    run(1, async |options| {
        let (tree, a) = solo(&options).await;
        let traps = Traps::default();
        let report = Do::Report([traps.set(), traps.set(), traps.set()]);
        assert_eq!(a.ask(report).await, Ok(1));
        tree.stop_child("root/a").await.unwrap();
        assert_eq!(traps.sprung(), 3);
        assert_eq!(tree.snapshot().root.unwrap().last_exit, None);
        end(tree).await;
    });
}

#[test]
fn a_fact_that_knows_its_actor_does_not_keep_it_beyond_its_end() {
    run(1, async |options| {
        let (tree, _a) = solo(&options).await;
        let witness = Arc::new(());
        let held = Arc::clone(&witness);
        let spec = ChildSpec::actor("b", Mailbox::<Victim>::new(), move |link| {
            let (own, held) = (link.clone(), Arc::clone(&held));
            link.report("path", move || {
                let _held = &held;
                json!(own.path())
            });
            Victim
        });
        tree.add_child("root", spec).await.unwrap();
        tree.stop_child("root/b").await.unwrap();
        assert_eq!(Arc::strong_count(&witness), 1);
        end(tree).await;
    });
}

#[test]
fn a_monitor_that_panics_as_it_is_dropped_hurts_nobody() {
    run(1, async |options| {
        let (tree, a) = solo(&options).await;
        let traps = Traps::default();
        let trap = traps.set();
        let deaf = Tell::new(move |_| {
            let _trap = &trap;
            false
        });
        let heard = Arc::new(AtomicUsize::new(0));
        let ear = Arc::clone(&heard);
        let count = Tell::new(move |_| {
            ear.fetch_add(1, Ordering::Relaxed);
            true
        });
        let observer = tree.observer();
        let _deaf = observer.monitor("root/a", deaf).unwrap();
        let _count = observer.monitor("root/a", count).unwrap();
        assert_eq!(a.ask(Do::Panic).await, Err(AskError::Lost));
        assert_eq!(a.ask(Do::Nothing).await, Ok(2));
        assert_eq!((traps.sprung(), heard.load(Ordering::Relaxed)), (1, 1));
        end(tree).await;
    });
}

#[test]
fn a_specification_that_panics_as_it_is_dropped_concerns_only_who_made_it() {
    run(1, async |options| {
        let (tree, _a) = solo(&options).await;
        let traps = Traps::default();
        let spec = |id: &str| {
            let trap = traps.set();
            let mailbox = Mailbox::new();
            mailbox.address().tell(Do::Carry(traps.set()));
            ChildSpec::actor(id, mailbox, move |_| {
                let _trap = &trap;
                Victim
            })
        };
        let refused = tree.add_child("root", spec("a")).await;
        assert!(matches!(refused, Err(StartError::Spec(_))), "{refused:?}");
        assert_eq!(traps.sprung(), 2);
        // and one that was started, and then was let go
        tree.add_child("root", spec("b")).await.unwrap();
        tree.stop_child("root/b").await.unwrap();
        assert_eq!(traps.sprung(), 3);
        assert_eq!(look(&tree).state, NodeState::Running);
        assert_eq!(tree.snapshot().root.unwrap().last_exit, None);
        end(tree).await;
    });
}

#[test]
fn a_panic_that_was_survived_is_not_taken_for_a_later_one() {
    struct Juggler;
    impl Actor for Juggler {
        type Context = Context<Self>;
    }
    supervised!(Juggler);
    struct Drop;
    impl Message for Drop {
        type Result = ();
    }
    impl Handler<Drop> for Juggler {
        type Result = ();
        fn handle(&mut self, _: Drop, _: &mut Context<Self>) {
            std::panic::catch_unwind(|| panic!("caught")).unwrap_err();
            // as one does with the panic of a task of one's own
            std::panic::resume_unwind(Box::new("missed"));
        }
    }

    run(1, async |options| {
        let tree = root(&options).await;
        let mailbox = Mailbox::new();
        let address = mailbox.address();
        let spec = ChildSpec::actor("a", mailbox, |_| Juggler);
        tree.add_child("root", spec).await.unwrap();
        assert_eq!(address.ask(Drop).await, Err(AskError::Lost));
        options.clock.sleep(SECOND / 1000).await;
        let missed = Exit::Panic {
            message: "missed".to_owned(),
            location: None,
        };
        assert_eq!(look(&tree).last_exit, Some(missed));
        end(tree).await;
    });
}
