//! What supervision costs, beside plain actix and plain tokio in the same run: messages, restarts, short lives, and bytes per actor.
//!
//! `cargo bench -p boatswain-supervision`; a name after `--` times only the rows that contain it. Everything shares one thread, so
//! no figure contains a switch between threads. Medians and ratios stand in a table at the end.

#![allow(
    clippy::expect_used,
    missing_docs,
    reason = "a benchmark that cannot go on has failed"
)]

mod actors;
mod bytes;
mod lives;
mod messages;
mod table;

use std::time::Duration;

use boatswain_supervision::{Backoff, ChildSpec, Mailbox, Strategy, SupervisorSpec, Tree};
use criterion::Criterion;

use crate::actors::{Supervised, hush};
use crate::table::Table;

fn main() {
    hush();
    let criterion = Criterion::default()
        .sample_size(40)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    let mut table = Table::new(criterion);
    messages::bench(&mut table);
    lives::bench(&mut table);
    table.finish();
    bytes::print();
}

/// A tree whose root never gives up and never waits: what is measured is the machinery, not a policy.
async fn tree() -> Tree {
    let root = SupervisorSpec::new("root", Strategy::OneForOne).without_intensity();
    Tree::start(root, Default::default())
        .await
        .expect("started")
}

fn child(id: impl Into<String>, mailbox: Mailbox<Supervised>) -> ChildSpec {
    ChildSpec::actor(id, mailbox, |_| Supervised::default()).backoff(Backoff::none())
}
