//! Actors with habits of their own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use actix::{Actor, ActorContext, AsyncContext, Handler, Message, SpawnHandle};

use super::{HOUR, SECOND, end, look};
use crate::testing::run;
use crate::{
    AskError, ChildSpec, Context, Exit, Failure, Mailbox, NodeState, Strategy, SupervisorSpec,
    Tree, supervised,
};

struct Quick;
impl Actor for Quick {
    type Context = Context<Self>;
}
supervised!(Quick);
struct Crash;
impl Message for Crash {
    type Result = ();
}
impl Handler<Crash> for Quick {
    type Result = ();
    fn handle(&mut self, _: Crash, _: &mut Context<Self>) {
        panic!("crash");
    }
}

#[test]
fn facts_and_degradation_show_until_the_next_incarnation() {
    struct Teller;
    impl Actor for Teller {
        type Context = Context<Self>;
    }
    supervised!(Teller);
    struct Tell;
    impl Message for Tell {
        type Result = ();
    }
    impl Handler<Tell> for Teller {
        type Result = ();
        fn handle(&mut self, _: Tell, ctx: &mut Context<Self>) {
            let old = ctx.link().clone();
            ctx.link().report("depth", || serde_json::json!(7));
            ctx.link().report("broken", || panic!("cannot tell"));
            ctx.link().degraded(Some("limping".to_owned()));
            let report = move |_: &mut Self, ctx: &mut Context<Self>| {
                old.report("depth", || serde_json::json!(8));
                ctx.terminate();
            };
            ctx.run_later(SECOND, report);
        }
    }

    run(1, async |options| {
        let mailbox = Mailbox::new();
        let address = mailbox.address();
        let tree = Tree::start(
            SupervisorSpec::new("root", Strategy::OneForOne),
            options.clone(),
        )
        .await
        .unwrap();
        tree.add_child("root", ChildSpec::actor("a", mailbox, |_| Teller))
            .await
            .unwrap();
        address.ask(Tell).await.unwrap();
        let node = look(&tree);
        assert_eq!(node.facts["depth"], serde_json::json!(7));
        assert_eq!(node.facts["broken"], serde_json::Value::Null);
        assert_eq!(node.degraded.as_deref(), Some("limping"));

        options.clock.sleep(2 * SECOND).await;
        let node = look(&tree);
        assert_eq!((node.incarnation, node.last_exit), (2, Some(Exit::Normal)));
        assert!(node.facts.is_empty());
        assert_eq!(node.degraded, None);
        end(tree).await;
    });
}

#[test]
fn a_link_of_an_earlier_incarnation_is_not_listened_to() {
    run(1, async |options| {
        let (links, kept) = mpsc::channel();
        let tree = Tree::start(SupervisorSpec::new("root", Strategy::OneForOne), options)
            .await
            .unwrap();
        let mailbox = Mailbox::new();
        let address = mailbox.address();
        let spec = ChildSpec::actor("a", mailbox, move |link| {
            links.send(link.clone()).unwrap();
            Quick
        });
        tree.add_child("root", spec).await.unwrap();
        assert_eq!(address.ask(Crash).await, Err(AskError::Lost));
        assert_eq!(address.ask(Crash).await, Err(AskError::Lost));
        let links: Vec<_> = kept.try_iter().collect();
        assert_eq!(
            links
                .iter()
                .map(crate::Link::incarnation)
                .collect::<Vec<_>>(),
            [1, 2]
        );
        links[0].degraded(Some("a voice from the grave".to_owned()));
        assert_eq!(look(&tree).degraded, None);
        links[1].degraded(Some("alive".to_owned()));
        assert_eq!(look(&tree).degraded.as_deref(), Some("alive"));
        end(tree).await;
    });
}

/// actix numbers futures anew after a restart and keeps the numbers to cancel: an innocent one would be hit.
#[test]
fn a_cancellation_that_a_panic_left_behind_hits_no_future_of_the_next_incarnation() {
    struct Canceller {
        ticks: Arc<AtomicUsize>,
        first: Option<SpawnHandle>,
    }
    impl Actor for Canceller {
        type Context = Context<Self>;
        fn started(&mut self, ctx: &mut Context<Self>) {
            for _ in 0..3 {
                let handle = ctx.run_later(SECOND, |actor, _| {
                    actor.ticks.fetch_add(1, Ordering::Relaxed);
                });
                self.first.get_or_insert(handle);
            }
        }
    }
    supervised!(Canceller);
    impl Handler<Crash> for Canceller {
        type Result = ();
        fn handle(&mut self, _: Crash, ctx: &mut Context<Self>) {
            ctx.cancel_future(self.first.unwrap());
            panic!("with a cancellation pending");
        }
    }

    run(1, async |options| {
        let ticks = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&ticks);
        let mailbox = Mailbox::new();
        let address = mailbox.address();
        let tree = Tree::start(
            SupervisorSpec::new("root", Strategy::OneForOne),
            options.clone(),
        )
        .await
        .unwrap();
        let spec = ChildSpec::actor("a", mailbox, move |_| Canceller {
            ticks: Arc::clone(&counted),
            first: None,
        });
        tree.add_child("root", spec).await.unwrap();
        assert_eq!(address.ask(Crash).await, Err(AskError::Lost));
        options.clock.sleep(10 * SECOND).await;
        assert_eq!(ticks.load(Ordering::Relaxed), 3);
        end(tree).await;
    });
}

#[test]
fn an_actor_whose_drop_panics_is_replaced_and_given_back_all_the_same() {
    struct Trap;
    impl Drop for Trap {
        fn drop(&mut self) {
            panic!("sprung");
        }
    }
    impl Actor for Trap {
        type Context = Context<Self>;
    }
    supervised!(Trap);
    impl Handler<Crash> for Trap {
        type Result = ();
        fn handle(&mut self, _: Crash, ctx: &mut Context<Self>) {
            let trap = Trap;
            ctx.run_later(HOUR, move |_, _| drop(trap));
            ctx.stop();
        }
    }

    run(1, async |options| {
        let mailbox = Mailbox::new();
        let address = mailbox.address();
        let tree = Tree::start(SupervisorSpec::new("root", Strategy::OneForOne), options)
            .await
            .unwrap();
        tree.add_child("root", ChildSpec::actor("a", mailbox, |_| Trap))
            .await
            .unwrap();
        for _ in 0..3 {
            assert_eq!(address.ask(Crash).await, Ok(()));
        }
        end(tree).await;
    });
}

#[test]
fn an_actor_without_a_restarting_of_its_own_gets_a_new_value_and_the_old_one_is_dropped_before_the_backoff()
 {
    struct Plain {
        _witness: Arc<()>,
    }
    impl Actor for Plain {
        type Context = Context<Self>;
    }
    impl actix::Supervised for Plain {}
    impl Handler<Crash> for Plain {
        type Result = ();
        fn handle(&mut self, _: Crash, _: &mut Context<Self>) {
            panic!("half done");
        }
    }

    run(1, async |options| {
        let mailbox = Mailbox::new();
        let address = mailbox.address();
        let clock = options.clock.clone();
        let tree = Tree::start(SupervisorSpec::new("root", Strategy::OneForOne), options)
            .await
            .unwrap();
        let values: Arc<[Arc<()>; 2]> = Arc::default();
        let made = Arc::clone(&values);
        let spec = ChildSpec::actor("a", mailbox, move |link| {
            let _witness = Arc::clone(&made[link.incarnation() as usize - 1]);
            Plain { _witness }
        });
        tree.add_child("root", spec).await.unwrap();
        let counts = || values.each_ref().map(Arc::strong_count);
        assert_eq!(counts(), [2, 1]);
        assert_eq!(address.ask(Crash).await, Err(AskError::Lost));
        clock.sleep(SECOND / 1000).await;
        assert!(matches!(look(&tree).state, NodeState::Backoff { .. }));
        assert_eq!(counts(), [1, 1]);
        clock.sleep(SECOND).await;
        assert_eq!(counts(), [1, 2]);
        end(tree).await;
    });
}

#[test]
fn a_make_that_fails_for_now_is_tried_again_after_the_backoff() {
    run(1, async |options| {
        let mailbox = Mailbox::new();
        let address = mailbox.address();
        let spec = ChildSpec::try_actor("a", mailbox, |link| match link.incarnation() {
            2 | 3 => Err(Failure::transient("no socket")),
            _ => Ok(Quick),
        });
        let tree = Tree::start(
            SupervisorSpec::new("root", Strategy::OneForOne),
            options.clone(),
        )
        .await
        .unwrap();
        tree.add_child("root", spec).await.unwrap();
        let down = options.clock.now();
        assert_eq!(address.ask(Crash).await, Err(AskError::Lost));
        options.clock.sleep(SECOND / 5).await;
        let exit = look(&tree).last_exit;
        assert_eq!(exit, Some(Failure::transient("no socket").into()));
        assert_eq!(address.ask(Crash).await, Err(AskError::Lost));
        assert_eq!(look(&tree).incarnation, 4);
        assert!(
            options.clock.now() - down >= SECOND / 2,
            "0.1 s, 0.2 s, 0.4 s"
        );
        end(tree).await;
    });
}

#[test]
fn a_make_that_fails_for_good_ends_its_supervisor() {
    run(1, async |options| {
        let mailbox = Mailbox::new();
        let address = mailbox.address();
        let spec = ChildSpec::try_actor("a", mailbox, |link| match link.incarnation() {
            1 => Ok(Quick),
            _ => Err(Failure::fatal("no such device")),
        });
        let mut tree = Tree::start(SupervisorSpec::new("root", Strategy::OneForOne), options)
            .await
            .unwrap();
        tree.add_child("root", spec).await.unwrap();
        assert_eq!(address.ask(Crash).await, Err(AskError::Lost));
        let exit = tree.exited().await;
        let cause = Exit::from(Failure::fatal("no such device"));
        assert_eq!(exit.root_cause(), (Some("root/a"), &cause));
        end(tree).await;
    });
}

#[test]
fn futures_are_dropped_at_the_death_of_their_actor_even_if_dropping_another_panics() {
    struct Trap(Option<Arc<()>>);
    impl Drop for Trap {
        fn drop(&mut self) {
            self.0.take();
            panic!("sprung");
        }
    }
    struct Holder(Arc<()>);
    impl Actor for Holder {
        type Context = Context<Self>;
    }
    supervised!(Holder);
    impl Handler<Crash> for Holder {
        type Result = ();
        fn handle(&mut self, _: Crash, ctx: &mut Context<Self>) {
            let trap = || Trap(Some(Arc::clone(&self.0)));
            let (waited, spawned) = (trap(), trap());
            ctx.run_later(HOUR, move |_, _| drop(spawned));
            ctx.wait(actix::fut::wrap_future(async move {
                std::future::pending::<()>().await;
                drop(waited);
            }));
        }
    }

    run(1, async |options| {
        let witness = Arc::new(());
        let held = Arc::clone(&witness);
        let mailbox = Mailbox::new();
        let address = mailbox.address();
        let tree = Tree::start(
            SupervisorSpec::new("root", Strategy::OneForOne),
            options.clone(),
        )
        .await
        .unwrap();
        tree.add_child(
            "root",
            ChildSpec::actor("a", mailbox, move |_| Holder(Arc::clone(&held))),
        )
        .await
        .unwrap();
        let before = Arc::strong_count(&witness);
        assert_eq!(address.ask(Crash).await, Ok(()));
        assert_eq!(Arc::strong_count(&witness), before + 2);
        assert!(tree.root_node().find("root/a").unwrap().kill());
        options.clock.sleep(SECOND / 1000).await;
        assert!(matches!(look(&tree).state, NodeState::Backoff { .. }));
        assert_eq!(
            Arc::strong_count(&witness),
            before - 1,
            "the actor has left too"
        );
        end(tree).await;
    });
}
