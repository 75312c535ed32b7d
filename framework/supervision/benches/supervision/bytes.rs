//! How many bytes one more actor holds, alive and idle, with one message behind it.

use actix::{Actor, System};
use allocation_counter::measure;
use boatswain_supervision::Mailbox;

use crate::actors::{Ping, Plain};
use crate::messages::{counter, question};
use crate::{child, tree};

pub(crate) fn print() {
    println!(
        "\n{:<34}{:>12}{:>12}{:>12}{:>12}",
        "bytes of one (allocations)", "tokio", "actix", "supervised", "of actix"
    );
    for count in [1_000, 10_000, 100_000] {
        let (tokio, actix, ours) = (
            tokio_tasks(count),
            plain_actors(count),
            supervised_actors(count),
        );
        println!(
            "{:<34}{:>12}{:>12}{:>12}{:>12.2}",
            format!("{count} alive"),
            tokio.show(),
            actix.show(),
            ours.show(),
            ours.bytes / actix.bytes
        );
    }
}

struct Share {
    bytes: f64,
    allocations: f64,
}

impl Share {
    fn show(&self) -> String {
        format!("{:.0} ({:.1})", self.bytes, self.allocations)
    }
}

/// What is held, after `make` has run, for each of `count`; handles are kept and not counted.
fn share<T>(count: usize, make: impl FnOnce(&mut Vec<T>)) -> Share {
    let mut handles = Vec::with_capacity(count);
    let held = measure(|| make(&mut handles));
    assert_eq!(handles.len(), count);
    Share {
        bytes: held.bytes_current as f64 / count as f64,
        allocations: held.count_current as f64 / count as f64,
    }
}

fn tokio_tasks(count: usize) -> Share {
    let system = System::new();
    share(count, |handles| {
        system.block_on(async {
            for _ in 0..count {
                let queue = counter();
                question(&queue).await;
                handles.push(queue);
            }
        });
    })
}

fn plain_actors(count: usize) -> Share {
    let system = System::new();
    share(count, |handles| {
        system.block_on(async {
            for _ in 0..count {
                let actor = Plain::default().start();
                actor.send(Ping).await.expect("alive");
                handles.push(actor);
            }
        });
    })
}

fn supervised_actors(count: usize) -> Share {
    let system = System::new();
    let tree = system.block_on(tree());
    let share = share(count, |handles| {
        system.block_on(async {
            for n in 0..count {
                let mailbox = Mailbox::new();
                let actor = mailbox.address();
                tree.add_child("root", child(format!("actor-{n}"), mailbox))
                    .await
                    .expect("started");
                actor.ask(Ping).await.expect("alive");
                handles.push(actor);
            }
        });
    });
    drop(tree);
    share
}
