//! What it costs to begin, to end, and to begin again.

use actix::{Actor, System};
use boatswain_supervision::Mailbox;

use crate::actors::{Fail, Panic, Ping, Plain, Supervised};
use crate::messages::{counter, question};
use crate::table::Table;
use crate::{child, tree};

pub(crate) fn bench(table: &mut Table) {
    let system = System::new();
    let tree = system.block_on(tree());
    let start = async |id: &str| {
        let mailbox: Mailbox<Supervised> = Mailbox::new();
        let address = mailbox.address();
        tree.add_child("root", child(id, mailbox))
            .await
            .expect("started");
        address
    };
    let fallible = system.block_on(start("fallible"));

    // without a supervisor that survives it, whoever asked has to notice and start another actor, which has another address
    table.row("panic, until the next answer");
    table.measure("actix", |times| {
        system.block_on(async {
            let mut actor = Plain::default().start();
            for _ in 0..times {
                assert!(actor.send(Panic).await.is_err());
                actor = Plain::default().start();
                actor.send(Ping).await.expect("alive");
            }
        });
    });
    table.measure("supervised", |times| {
        system.block_on(async {
            for _ in 0..times {
                fallible.tell(Panic);
                assert_eq!(fallible.ask(Ping).await, Ok(1));
            }
        });
    });

    table.row("error, until the next answer");
    let restarted = system.block_on(async { actix::Supervisor::start(|_| Plain::default()) });
    table.measure("actix", |times| {
        system.block_on(async {
            for _ in 0..times {
                restarted.do_send(Fail);
                assert_eq!(restarted.send(Ping).await.expect("alive"), 1);
            }
        });
    });
    table.measure("supervised", |times| {
        system.block_on(async {
            for _ in 0..times {
                fallible.tell(Fail);
                assert_eq!(fallible.ask(Ping).await, Ok(1));
            }
        });
    });

    table.row("start, one answer, stop");
    table.measure("tokio", |times| {
        system.block_on(async {
            for _ in 0..times {
                question(&counter()).await;
            }
        });
    });
    table.measure("actix", |times| {
        system.block_on(async {
            for _ in 0..times {
                let actor = Plain::default().start();
                actor.send(Ping).await.expect("alive");
                actor.send(Fail).await.expect("alive");
            }
        });
    });
    table.measure("supervised", |times| {
        system.block_on(async {
            for _ in 0..times {
                let actor = start("short-lived").await;
                actor.ask(Ping).await.expect("alive");
                tree.stop_child("root/short-lived").await.expect("stopped");
            }
        });
    });
}
