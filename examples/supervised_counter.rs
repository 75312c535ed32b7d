//! Two counters under one supervisor. One cannot count beyond three and crashes; the other does not notice.
//!
//! What one sees: the tree, printed whenever something happens to the hasty counter. It panics, waits longer each time it is about to be
//! started again, and goes on with an empty count but with every message that waited meanwhile. It ends after some seconds, or on Ctrl-C.

use std::{collections::HashMap, error::Error, mem::discriminant, sync::mpsc, time::Duration};

use boatswain_supervision::{
    Address, ChildSpec, Clock, Context, Mailbox, Strategy, SupervisorSpec, Tree, TreeOptions,
    actix::{Actor, Handler, Message, System},
    supervised,
};

struct Counter {
    count: u64,
    limit: u64,
}

impl Actor for Counter {
    type Context = Context<Self>;
}
supervised!(Counter);

struct Add(u64);

impl Message for Add {
    type Result = u64;
}

impl Handler<Add> for Counter {
    type Result = u64;

    fn handle(&mut self, Add(n): Add, _: &mut Context<Self>) -> u64 {
        self.count += n;
        assert!(self.count <= self.limit, "{} is too much", self.count);
        self.count
    }
}

/// The supervisor, and where it tells the addresses of its counters: they are made anew whenever it is itself started.
fn root(addresses: mpsc::Sender<(&'static str, Address<Counter>)>) -> SupervisorSpec {
    SupervisorSpec::new("root", Strategy::OneForOne).children(move |children| {
        for (id, limit) in [("careful", u64::MAX), ("hasty", 3)] {
            let mailbox = Mailbox::new();
            // nobody may be there any more to be told
            let _ = addresses.send((id, mailbox.address()));
            // called for every incarnation: a counter that crashed is a new value
            let make = move |_: &_| Counter { count: 0, limit };
            children.add(ChildSpec::actor(id, mailbox, make));
        }
    })
}

async fn count(tree: &Tree, counters: HashMap<&str, Address<Counter>>) {
    let clock = Clock::system();
    let mut before = None;
    for _ in 0..50 {
        for counter in counters.values() {
            counter.tell(Add(1));
        }
        clock.sleep(Duration::from_millis(50)).await;
        let snapshot = tree.snapshot();
        let hasty = snapshot.find("root/hasty");
        let now = hasty.map(|node| (discriminant(&node.state), node.restarts));
        if now != before {
            println!("{snapshot}");
            before = now;
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let about =
        "Two counters under one supervisor, one of which crashes and comes back for some seconds";
    clap::Command::new("supervised_counter")
        .about(about)
        .get_matches();
    // the tree shows panics; nothing else is to stand between its pictures
    std::panic::set_hook(Box::new(|_| {}));
    System::new().block_on(async {
        let (sender, addresses) = mpsc::channel();
        let tree = Tree::start(root(sender), TreeOptions::default()).await?;
        let observer = tree.observer();
        tokio::select! {
            () = count(&tree, addresses.try_iter().collect()) => {}
            interrupted = tokio::signal::ctrl_c() => interrupted?,
        }
        tree.stop(Duration::from_secs(5)).await?;
        println!(
            "Stopped in good order; {} tasks are left.",
            observer.snapshot().tasks
        );
        Ok(())
    })
}
