//! What a message costs.

use actix::{Actor, System};
use boatswain_supervision::Mailbox;
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_local;

use crate::actors::{Ping, Plain};
use crate::table::Table;
use crate::{child, tree};

/// Messages sent before the sender lets the receiver run.
const FLOOD: u64 = 1024;

pub(crate) fn bench(table: &mut Table) {
    let system = System::new();
    let plain = system.block_on(async { Plain::default().start() });
    let (_tree, supervised) = system.block_on(async {
        let (tree, mailbox) = (tree().await, Mailbox::new());
        let address = mailbox.address();
        tree.add_child("root", child("a", mailbox))
            .await
            .expect("started");
        (tree, address)
    });
    let queue = system.block_on(async { counter() });

    table.row("tell, 1,024 at once");
    table.measure("tokio", |times| {
        system.block_on(async {
            for batch in batches(times) {
                (1..batch).for_each(|_| queue.send(None).expect("alive"));
                question(&queue).await;
            }
        });
    });
    table.measure("actix", |times| {
        system.block_on(async {
            for batch in batches(times) {
                (1..batch).for_each(|_| plain.do_send(Ping));
                plain.send(Ping).await.expect("alive");
            }
        });
    });
    table.measure("supervised", |times| {
        system.block_on(async {
            for batch in batches(times) {
                (1..batch).for_each(|_| assert!(supervised.tell(Ping)));
                supervised.ask(Ping).await.expect("alive");
            }
        });
    });

    table.row("ask and its answer");
    table.measure("tokio", |times| {
        system.block_on(async {
            for _ in 0..times {
                question(&queue).await;
            }
        });
    });
    table.measure("actix", |times| {
        system.block_on(async {
            for _ in 0..times {
                plain.send(Ping).await.expect("alive");
            }
        });
    });
    table.measure("supervised", |times| {
        system.block_on(async {
            for _ in 0..times {
                supervised.ask(Ping).await.expect("alive");
            }
        });
    });
}

type Question = Option<oneshot::Sender<u64>>;

/// A task that counts as the actors do.
#[allow(
    clippy::disallowed_methods,
    reason = "the queues of actors have no bound either"
)]
pub(crate) fn counter() -> mpsc::UnboundedSender<Question> {
    let (sender, mut questions) = mpsc::unbounded_channel::<Question>();
    spawn_local(async move {
        let mut count = 0;
        while let Some(question) = questions.recv().await {
            count += 1;
            if let Some(reply) = question {
                let _ = reply.send(count);
            }
        }
    });
    sender
}

pub(crate) async fn question(queue: &mpsc::UnboundedSender<Question>) -> u64 {
    let (reply, answer) = oneshot::channel();
    queue.send(Some(reply)).expect("alive");
    answer.await.expect("alive")
}

fn batches(times: u64) -> impl Iterator<Item = u64> {
    let rest = times % FLOOD;
    std::iter::repeat_n(FLOOD, (times / FLOOD) as usize).chain((rest > 0).then_some(rest))
}
