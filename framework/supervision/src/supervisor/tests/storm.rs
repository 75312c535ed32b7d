//! Ten thousand children crash at once, and whoever shares their thread goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix::{Actor, Handler, Message, System};

use super::end;
use crate::context::MESSAGES_PER_TURN;
use crate::roster::DUE_PER_TICK;
use crate::testing::run;
use crate::{
    Address, Backoff, ChildSpec, Context, Mailbox, NodeState, Strategy, SupervisorSpec, Tree,
    TreeOptions, supervised,
};

const CROWD: usize = 10_000;
/// What a supervisor may restart in one turn: as many as messages tell it to, and as many as are due.
const RESTARTS_PER_TURN: usize = MESSAGES_PER_TURN as usize + DUE_PER_TICK;

/// Panics, past the hook: nobody wants to read that ten thousand times.
struct Crash;

impl Message for Crash {
    type Result = ();
}

struct Sailor;

impl Actor for Sailor {
    type Context = Context<Self>;
}
supervised!(Sailor);

impl Handler<Crash> for Sailor {
    type Result = ();

    fn handle(&mut self, _: Crash, _: &mut Context<Self>) {
        std::panic::resume_unwind(Box::new("overboard"));
    }
}

/// Takes a turn whenever it gets one, until everybody is back, and notes how many came back between two turns.
struct Bystander {
    back: Arc<AtomicUsize>,
    seen: usize,
    most: Arc<AtomicUsize>,
}

struct Tick;

impl Message for Tick {
    type Result = ();
}

impl Actor for Bystander {
    type Context = Context<Self>;
}
supervised!(Bystander);

impl Handler<Tick> for Bystander {
    type Result = ();

    fn handle(&mut self, _: Tick, ctx: &mut Context<Self>) {
        let back = self.back.load(Ordering::Relaxed);
        self.most.fetch_max(back - self.seen, Ordering::Relaxed);
        self.seen = back;
        if back < CROWD {
            ctx.me().tell(Tick);
        }
    }
}

/// Crashes the crowd; `begin` says when the bystander is to begin.
async fn storm(backoff: Backoff, options: TreeOptions, begin: Duration) {
    let (born, most) = (Arc::new(AtomicUsize::new(0)), Arc::default());
    let back = Arc::clone(&born);
    let (sailors, addresses): (Vec<Mailbox<Sailor>>, Vec<Address<Sailor>>) = (0..CROWD)
        .map(|_| {
            let mailbox = Mailbox::new();
            let address = mailbox.address();
            (mailbox, address)
        })
        .unzip();
    let root = SupervisorSpec::new("root", Strategy::OneForOne).without_intensity();
    let tree = Tree::start(root, options.clone()).await.unwrap();
    for (n, mailbox) in sailors.into_iter().enumerate() {
        let born = Arc::clone(&born);
        let sailor = ChildSpec::actor(format!("sailor-{n}"), mailbox, move |_| {
            born.fetch_add(1, Ordering::Relaxed);
            Sailor
        });
        let added = tree
            .add_child("root", sailor.backoff(backoff.clone()))
            .await;
        added.unwrap();
    }
    born.store(0, Ordering::Relaxed);
    let (mailbox, noted) = (Mailbox::new(), Arc::clone(&most));
    let bystander = mailbox.address();
    let watch = ChildSpec::actor("bystander", mailbox, move |_| Bystander {
        back: Arc::clone(&back),
        seen: 0,
        most: Arc::clone(&noted),
    });
    tree.add_child("root", watch).await.unwrap();

    for address in &addresses {
        assert!(address.tell(Crash));
    }
    options.clock.sleep(begin).await;
    bystander.tell(Tick);
    while born.load(Ordering::Relaxed) < CROWD {
        tokio::task::yield_now().await;
    }
    while !all_run(&tree) {
        options.clock.sleep(Duration::from_millis(1)).await;
    }
    let most = most.load(Ordering::Relaxed);
    assert!(
        most <= RESTARTS_PER_TURN,
        "{most} restarts between two turns of another actor"
    );
    end(tree).await;
}

fn all_run(tree: &Tree) -> bool {
    let children = tree.snapshot().root.unwrap().children;
    children
        .iter()
        .all(|child| child.state == NodeState::Running)
}

/// The same delay for all: everybody is due at once.
fn in_step() -> Backoff {
    let delay = Duration::from_millis(100);
    Backoff::new(delay, delay, 1.0, 0.0).unwrap()
}

#[test]
fn ten_thousand_restarts_without_a_delay_leave_others_their_turns() {
    run(1, |options| storm(Backoff::none(), options, Duration::ZERO));
}

#[test]
fn ten_thousand_restarts_due_at_once_leave_others_their_turns() {
    run(1, |options| {
        storm(in_step(), options, Duration::from_millis(100))
    });
}

#[test]
fn in_real_time_ten_thousand_restarts_leave_others_their_turns() {
    for backoff in [Backoff::none(), in_step(), Backoff::default()] {
        System::new().block_on(storm(backoff, TreeOptions::default(), Duration::ZERO));
    }
}
