//! What an actor holds on the heap, counted.

#![allow(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

use actix::{Actor, Handler, Message, System};
use allocation_counter::measure;
use boatswain_supervision::{
    Address, Backoff, ChildSpec, Context, Failure, Mailbox, Strategy, SupervisorSpec, Tree,
    supervised,
};

/// For one supervised actor without fields, with all that its supervisor keeps of it; the name of the test's thread is in there four times.
const BYTES_OF_ONE: i64 = 2_560;

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
    Tree::start(root, Default::default()).await.unwrap()
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
