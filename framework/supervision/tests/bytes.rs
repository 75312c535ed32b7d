//! What an actor holds on the heap, counted.

#![allow(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

use actix::{Actor, Handler, Message, System};
use allocation_counter::measure;
use boatswain_supervision::{
    Address, Backoff, ChildSpec, Context, Failure, Mailbox, Strategy, SupervisorSpec, Tree,
    TreeOptions, supervised,
};

/// For one supervised actor without fields, with its mailbox and all that its supervisor keeps of it.
const BYTES_OF_ONE: i64 = 1_536;

struct Idle;

impl Actor for Idle {
    type Context = Context<Self>;
}
supervised!(Idle);

struct Fail;

impl Message for Fail {
    type Result = ();
}

impl Handler<Fail> for Idle {
    type Result = ();

    fn handle(&mut self, _: Fail, ctx: &mut Context<Self>) {
        ctx.fail(Failure::transient("as asked"));
    }
}

async fn tree() -> Tree {
    let root = SupervisorSpec::new("root", Strategy::OneForOne).without_intensity();
    // what a thread of its own frees is not counted here
    let options = TreeOptions {
        watchdog: None,
        ..TreeOptions::default()
    };
    Tree::start(root, options).await.unwrap()
}

async fn add(tree: &Tree, id: String) -> Address<Idle> {
    let mailbox = Mailbox::new();
    let address = mailbox.address();
    let child = ChildSpec::actor(id, mailbox, |_| Idle).backoff(Backoff::none());
    tree.add_child("root", child).await.unwrap();
    address
}

#[test]
fn a_supervised_actor_fits_into_its_bytes_however_many_there_are() {
    for count in [1_000, 10_000] {
        let system = System::new();
        let tree = system.block_on(tree());
        let held = measure(|| {
            system.block_on(async {
                for n in 0..count {
                    add(&tree, format!("actor-{n}")).await;
                }
            });
        });
        let one = held.bytes_current / count;
        assert!(one <= BYTES_OF_ONE, "{one} bytes each of {count}");
    }
}

#[test]
fn restarts_hold_no_memory() {
    let system = System::new();
    let tree = system.block_on(tree());
    let actor = system.block_on(add(&tree, "actor".to_owned()));
    let restart = |times: u32| {
        system.block_on(async {
            for _ in 0..times {
                actor.ask(Fail).await.unwrap();
            }
        });
    };
    restart(1_000);
    let held = measure(|| restart(1_000)).bytes_current;
    assert!(
        held.abs() < 1_000,
        "{held} bytes more after a thousand restarts"
    );
    let node = tree.snapshot().find("root/actor").unwrap().clone();
    assert!(node.restarts >= 1_999, "{} restarts", node.restarts);
}

#[test]
fn the_stop_of_a_dynamic_supervisor_takes_as_much_for_each_of_its_children_however_many_there_are()
{
    let each = [1_000, 10_000].map(|count: u32| {
        let system = System::new();
        let (tree, pool) = system.block_on(async {
            let (root, pool) = SupervisorSpec::dynamic("root", |n: u32| {
                ChildSpec::actor(n.to_string(), Mailbox::new(), |_| Idle)
            });
            (Tree::start(root, Default::default()).await.unwrap(), pool)
        });
        system.block_on(async {
            for n in 0..count {
                pool.start(n).await.unwrap();
            }
        });
        let stop = measure(|| {
            let stopped = tree.stop(std::time::Duration::from_secs(3600));
            system.block_on(stopped).unwrap();
        });
        stop.bytes_total / u64::from(count)
    });
    assert!(each[1] <= each[0] * 2, "{each:?} bytes are moved for each");
}

#[test]
fn trees_that_come_and_go_leave_nothing() {
    let system = System::new();
    let come_and_go = |times: u32| {
        for n in 0..times {
            system.block_on(async {
                let tree = tree().await;
                let a = add(&tree, "a".to_owned()).await;
                let own = tree.observer();
                let tell = boatswain_supervision::Tell::new(move |_| own.alive().is_empty());
                let monitor = tree.observer().monitor("root/a", tell);
                let _events = tree.observer().events();
                a.ask(Fail).await.unwrap();
                if n % 2 == 0 {
                    tree.stop(std::time::Duration::from_secs(5)).await.unwrap();
                } else {
                    drop((tree, monitor));
                    while a.is_open() {
                        tokio::task::yield_now().await;
                    }
                }
            });
        }
    };
    come_and_go(20);
    let held = measure(|| come_and_go(40)).bytes_current;
    assert!(held.abs() < 1_000, "{held} bytes more after forty trees");
}
