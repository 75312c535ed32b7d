use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use actix::fut::wrap_future;
use actix::{Actor, ActorContext, AsyncContext, Handler, Message, ResponseFuture};

use crate::scripted::panicked;
use crate::testing::{assert_clean, run};
use crate::{
    Address, AskError, ChildSpec, Clock, Context, Mailbox, NodeSnapshot, Strategy, SupervisorSpec,
    Tree, TreeOptions, supervised,
};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

/// Answers in futures that do not need it.
struct Thinker(Clock);
impl Actor for Thinker {
    type Context = Context<Self>;
}
supervised!(Thinker);

/// Takes a while, and then adds to what it was given, or panics where that is `None`.
#[derive(Clone)]
struct Think(Duration, Option<Arc<AtomicU32>>);
impl Message for Think {
    type Result = u32;
}
impl Handler<Think> for Thinker {
    type Result = ResponseFuture<u32>;
    fn handle(&mut self, Think(time, sum): Think, _: &mut Context<Self>) -> ResponseFuture<u32> {
        let clock = self.0.clone();
        Box::pin(async move {
            clock.sleep(time).await;
            sum.expect("thought badly").fetch_add(1, Ordering::Relaxed) + 1
        })
    }
}

/// Ways for a message to reach an actor other than its mailbox, and what ends it.
enum Order {
    Notify(Think),
    NotifyLater(Think),
    Stream(Think),
    Wait,
    Stop,
}
impl Message for Order {
    type Result = ();
}
impl Handler<Order> for Thinker {
    type Result = ();
    fn handle(&mut self, order: Order, ctx: &mut Context<Self>) {
        match order {
            Order::Notify(think) => ctx.notify(think),
            Order::NotifyLater(think) => drop(ctx.notify_later(think, SECOND)),
            Order::Stream(think) => {
                ctx.add_message_stream(futures::stream::iter([Order::Wait, Order::Notify(think)]));
            }
            Order::Wait => {
                let clock = self.0.clone();
                ctx.wait(wrap_future(async move { clock.sleep(SECOND).await }));
            }
            Order::Stop => ctx.stop(),
        }
    }
}

async fn solo(options: &TreeOptions) -> (Tree, Address<Thinker>) {
    let tree = Tree::start(
        SupervisorSpec::new("root", Strategy::OneForOne),
        options.clone(),
    )
    .await
    .unwrap();
    let mailbox = Mailbox::new();
    let address = mailbox.address();
    let make = |link: &crate::Link| Thinker(link.clock().clone());
    tree.add_child("root", ChildSpec::actor("a", mailbox, make))
        .await
        .unwrap();
    (tree, address)
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
fn answers_that_take_time_overtake_each_other() {
    run(1, async |options| {
        let (tree, a) = solo(&options).await;
        let sum = Arc::new(AtomicU32::new(0));
        let asked = options.clock.now();
        let slow = a.ask(Think(3 * SECOND, Some(Arc::clone(&sum))));
        let quick = a.ask(Think(SECOND, Some(sum)));
        assert_eq!(quick.await, Ok(1));
        assert_eq!(options.clock.now() - asked, SECOND);
        assert_eq!(slow.await, Ok(2));
        assert_eq!(options.clock.now() - asked, 3 * SECOND);
        end(tree).await;
    });
}

#[test]
fn a_panic_in_an_answer_is_the_actors_own() {
    run(1, async |options| {
        let (tree, a) = solo(&options).await;
        assert_eq!(a.ask(Think(SECOND, None)).await, Err(AskError::Lost));
        let sum = Arc::new(AtomicU32::new(0));
        assert_eq!(a.ask(Think(SECOND, Some(sum))).await, Ok(1));
        let node = look(&tree);
        assert!(panicked("thought badly")(&node.last_exit.unwrap()));
        assert_eq!((node.incarnation, node.restarts), (2, 1));
        end(tree).await;
    });
}

#[test]
fn a_panic_in_an_answer_nobody_waits_for_is_the_actors_own_whichever_way_the_message_came() {
    run(1, async |options| {
        let (tree, a) = solo(&options).await;
        let bad = Think(SECOND, None);
        let ways: [&dyn Fn(); 5] = [
            &|| assert!(a.tell(bad.clone())),
            &|| a.actix().do_send(bad.clone()),
            &|| assert!(a.tell(Order::Notify(bad.clone()))),
            &|| assert!(a.tell(Order::NotifyLater(bad.clone()))),
            &|| assert!(a.tell(Order::Stream(bad.clone()))),
        ];
        for (restarts, way) in (1..).zip(ways) {
            way();
            options.clock.sleep(90 * SECOND).await;
            let node = look(&tree);
            assert_eq!(node.restarts, restarts);
            assert!(panicked("thought badly")(&node.last_exit.unwrap()));
        }
        end(tree).await;
    });
}

#[test]
fn an_answer_on_its_way_ends_with_its_incarnation_and_the_asker_is_told() {
    run(1, async |options| {
        let (tree, a) = solo(&options).await;
        let sum = Arc::new(AtomicU32::new(0));
        let think = || Think(10 * SECOND, Some(Arc::clone(&sum)));
        let ways: [&dyn Fn(); 3] = [
            &|| assert!(a.tell(Order::Stop)),
            &|| assert!(a.tell(Think(Duration::ZERO, None))),
            &|| assert!(tree.root_node().find("root/a").unwrap().kill()),
        ];
        for way in ways {
            let answer = a.ask(think());
            a.tell(Order::Notify(think()));
            options.clock.sleep(SECOND).await;
            assert_eq!(Arc::strong_count(&sum), 3);
            way();
            let ended = options.clock.now();
            assert_eq!(answer.await, Err(AskError::Lost));
            assert_eq!(options.clock.now(), ended);
            assert_eq!(Arc::strong_count(&sum), 1);
            options.clock.sleep(90 * SECOND).await;
        }
        let answer = a.ask(think());
        options.clock.sleep(SECOND).await;
        end(tree).await;
        assert_eq!(answer.await, Err(AskError::Lost));
        assert_eq!(sum.load(Ordering::Relaxed), 0, "no incarnation wrote");
    });
}

#[test]
fn a_stream_of_messages_rests_while_the_actor_waits() {
    run(1, async |options| {
        let (tree, a) = solo(&options).await;
        let sum = Arc::new(AtomicU32::new(0));
        let now = Think(Duration::ZERO, Some(Arc::clone(&sum)));
        a.tell(Order::Stream(now));
        options.clock.sleep(SECOND * 9 / 10).await;
        assert_eq!(sum.load(Ordering::Relaxed), 0);
        options.clock.sleep(SECOND / 5).await;
        assert_eq!(sum.load(Ordering::Relaxed), 1);
        end(tree).await;
    });
}

/// Gives itself something to do for ever.
struct Busy(Arc<AtomicU32>);
impl Actor for Busy {
    type Context = Context<Self>;
}
supervised!(Busy);
#[derive(Clone, Copy)]
enum Toil {
    Notify,
    Stream,
    Drudge,
}
impl Message for Toil {
    type Result = ();
}
impl Handler<Toil> for Busy {
    type Result = ();
    fn handle(&mut self, toil: Toil, ctx: &mut Context<Self>) {
        // a test that fails is to end
        assert!(
            self.0.fetch_add(1, Ordering::Relaxed) < 1_000_000,
            "nobody else gets a turn"
        );
        match toil {
            Toil::Notify => ctx.notify(Toil::Notify),
            Toil::Stream => ctx.add_message_stream(futures::stream::repeat(Toil::Drudge)),
            Toil::Drudge => {}
        }
    }
}

#[test]
fn an_actor_that_never_runs_out_of_messages_to_itself_leaves_others_their_turns_and_stops() {
    for toil in [Toil::Notify, Toil::Stream] {
        run(1, async |options| {
            let tree = Tree::start(
                SupervisorSpec::new("root", Strategy::OneForOne),
                options.clone(),
            )
            .await
            .unwrap();
            let mailbox = Mailbox::new();
            let address = mailbox.address();
            let done = Arc::new(AtomicU32::new(0));
            let counted = Arc::clone(&done);
            let busy = ChildSpec::actor("busy", mailbox, move |_| Busy(Arc::clone(&counted)));
            tree.add_child("root", busy).await.unwrap();
            address.tell(toil);
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            assert!(done.load(Ordering::Relaxed) > 1_000, "it goes on");
            let observer = tree.observer();
            tree.stop(HOUR).await.unwrap();
            assert_clean(&observer);
            assert!(done.load(Ordering::Relaxed) < 1_000_000, "and others, too");
        });
    }
}
