use std::time::Duration;

use actix::{Actor, AsyncContext, Handler, Message};
use futures::FutureExt;

use crate::testing::{assert_clean, run};
use crate::{
    Address, ChildSpec, Context, Credit, Credits, Mailbox, Strategy, SupervisorSpec, Tree,
    TreeOptions, supervised,
};

const MILLI: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);

struct Consumer;
impl Actor for Consumer {
    type Context = Context<Self>;
}
supervised!(Consumer);

enum Parcel {
    Plain(Credit),
    Poison(Credit),
    /// Is worked on for ever.
    Endless(Credit),
    /// Keeps the actor from its mailbox for ever.
    Deaf,
}
impl Message for Parcel {
    type Result = ();
}
impl Handler<Parcel> for Consumer {
    type Result = ();
    fn handle(&mut self, parcel: Parcel, ctx: &mut Context<Self>) {
        let never = actix::fut::wrap_future(std::future::pending());
        match parcel {
            Parcel::Plain(credit) => drop(credit),
            Parcel::Poison(_credit) => panic!("poison"),
            Parcel::Endless(credit) => {
                ctx.run_later(HOUR, move |_, _| drop(credit));
            }
            Parcel::Deaf => ctx.wait(never),
        }
    }
}

async fn solo(options: &TreeOptions) -> (Tree, Address<Consumer>) {
    let tree = Tree::start(
        SupervisorSpec::new("root", Strategy::OneForOne),
        options.clone(),
    )
    .await
    .unwrap();
    let mailbox = Mailbox::new();
    let address = mailbox.address();
    tree.add_child("root", ChildSpec::actor("a", mailbox, |_| Consumer))
        .await
        .unwrap();
    (tree, address)
}

#[test]
fn a_producer_is_never_further_ahead_than_its_limit_and_gets_everything_through() {
    run(1, async |options| {
        let (tree, a) = solo(&options).await;
        let credits = Credits::new(4);
        for _ in 0..1000 {
            let credit = credits.take().await;
            assert!(credits.in_use() <= credits.limit());
            a.tell(Parcel::Plain(credit));
        }
        assert_eq!(a.high_water(), 4);
        a.ask(Parcel::Plain(credits.take().await)).await.unwrap();
        assert_eq!(credits.in_use(), 0);
        tree.stop(HOUR).await.unwrap();
    });
}

#[test]
fn the_credit_of_a_message_that_crashed_its_actor_comes_back_and_those_that_wait_keep_theirs() {
    run(1, async |options| {
        let (tree, a) = solo(&options).await;
        let credits = Credits::new(3);
        a.tell(Parcel::Poison(credits.take().await));
        a.tell(Parcel::Plain(credits.take().await));
        a.tell(Parcel::Plain(credits.take().await));
        assert!(credits.take().now_or_never().is_none());
        options.clock.sleep(MILLI).await;
        assert_eq!((credits.in_use(), a.depth()), (2, 2), "it is down");
        options.clock.sleep(1000 * MILLI).await;
        assert_eq!((credits.in_use(), a.depth()), (0, 0), "it is back");
        tree.stop(HOUR).await.unwrap();
    });
}

#[test]
fn credits_come_back_from_a_killed_actor_and_from_a_closed_mailbox() {
    run(1, async |options| {
        let (tree, a) = solo(&options).await;
        let credits = Credits::new(3);
        a.tell(Parcel::Endless(credits.take().await));
        a.tell(Parcel::Deaf);
        a.tell(Parcel::Plain(credits.take().await));
        options.clock.sleep(MILLI).await;
        assert_eq!(credits.in_use(), 2);
        assert!(tree.root_node().find("root/a").unwrap().kill());
        options.clock.sleep(MILLI).await;
        assert_eq!(credits.in_use(), 1, "the one that waits is not lost");

        a.tell(Parcel::Endless(credits.take().await));
        let observer = tree.observer();
        tree.stop(HOUR).await.unwrap();
        assert_clean(&observer);
        assert_eq!(credits.in_use(), 0, "the mailbox is gone");
        assert!(!a.tell(Parcel::Plain(credits.take().await)));
        assert_eq!(credits.in_use(), 0, "refused");
    });
}

#[test]
fn credits_go_to_who_waits_longest_and_none_is_lost_with_one_who_stops_waiting() {
    run(1, async |_| {
        let credits = Credits::new(1);
        let held = credits.take().await;
        assert!(credits.try_take().is_none());
        let mut first = Box::pin(credits.take());
        let mut second = Box::pin(credits.take());
        let mut third = Box::pin(credits.take());
        assert!(first.as_mut().now_or_never().is_none());
        assert!(second.as_mut().now_or_never().is_none());
        assert!(third.as_mut().now_or_never().is_none());
        drop(held);
        assert!(credits.try_take().is_none(), "others wait for it");
        assert!(third.as_mut().now_or_never().is_none());
        drop(first);
        let got = second.as_mut().now_or_never();
        assert!(got.is_some());
        drop(got);
        assert!(third.now_or_never().is_some());
        assert_eq!(credits.in_use(), 0);
        assert!(credits.try_take().is_some());
    });
}

#[test]
fn without_credits_nothing_is_ever_sent_and_no_limit_is_too_large() {
    assert!(Credits::new(0).try_take().is_none());
    assert!(Credits::new(usize::MAX).try_take().is_some());
}
