//! A supervision tree for actix actors: restarts that keep address and mailbox, backoff, escalation, ordered stop.
//!
//! Every actor has a supervisor, which starts it, hears how it ended, and decides what comes next. Supervisors have supervisors,
//! up to a root that a [`Tree`] owns. actix' own supervisor does not survive a panic and restarts without a pause; this one
//! polls actors itself, under `catch_unwind`.
//!
//! ```
//! use std::time::Duration;
//! use actix::{Actor, Handler, Message, System};
//! use boatswain_supervision::{
//!     ChildSpec, Context, Mailbox, Strategy, SupervisorSpec, Tree, TreeOptions, supervised,
//! };
//!
//! struct Counter(u64);
//!
//! impl Actor for Counter {
//!     type Context = Context<Self>;
//! }
//! supervised!(Counter);
//!
//! struct Add(u64);
//!
//! impl Message for Add {
//!     type Result = u64;
//! }
//!
//! impl Handler<Add> for Counter {
//!     type Result = u64;
//!
//!     fn handle(&mut self, Add(n): Add, _: &mut Context<Self>) -> u64 {
//!         self.0 = self.0.checked_add(n).expect("too much");
//!         self.0
//!     }
//! }
//!
//! System::new().block_on(async {
//!     let (sender, addresses) = std::sync::mpsc::channel();
//!     let root = SupervisorSpec::new("root", Strategy::OneForOne).children(move |children| {
//!         let mailbox = Mailbox::new();
//!         let _ = sender.send(mailbox.address());
//!         children.add(ChildSpec::actor("counter", mailbox, |_| Counter(0)));
//!     });
//!     let tree = Tree::start(root, TreeOptions::default()).await.unwrap();
//!     let counter = addresses.recv().unwrap();
//!
//!     assert_eq!(counter.ask(Add(1)).await, Ok(1));
//!     assert!(counter.ask(Add(u64::MAX)).await.is_err()); // panics: the message is lost, and only that
//!     assert_eq!(counter.ask(Add(2)).await, Ok(2)); // the same address, a new incarnation
//!     assert_eq!(tree.snapshot().find("root/counter").unwrap().restarts, 1);
//!
//!     tree.stop(Duration::from_secs(5)).await.unwrap();
//! });
//! ```
//!
//! # Guarantees
//!
//! - An incarnation of an actor never begins before the last one has ended and its futures are dropped.
//! - A restart keeps the address and every queued message. The message that was being handled is lost, and whoever asked is told.
//! - A restarted actor is a new value: nothing half-changed lives on. What must outlive it is borrowed from a [`Slot`] and comes back at its death, and the next
//!   borrower knows whether that was a crash.
//! - An answer that takes time is the actor's own: no `ResponseFuture` outlives the incarnation that returned it.
//! - A question to an actor that is down waits with its restart, in a bounded buffer, or is refused at once; either way the asker knows whether asking again is safe.
//! - [`Credits`] bound a producer by what was handled, and cannot leak.
//! - A panic in a handler, in the answer it returned, in a future of the context, in `started`, `stopping`, `stopped` or `Drop` of an actor never reaches the thread.
//! - Messages, futures, facts, monitors and `make` may panic as they are dropped, any number of them: that is logged, and ends neither the process nor anybody else.
//! - Children start one after the other and stop in reverse; a failed start undoes the ones before it.
//! - A supervisor never ends before its children, but for those that block their thread, and these are reported.
//! - No queue, no endless stream and no message of an actor to itself keeps others on its thread from their turns.
//! - Orders overtake the mailbox: a stop waits for no message but the one being handled, and for no backoff.
//! - An actor that hangs is found and restarted; one that only waits for its thread, is suspended or backs off never counts as hung.
//! - A monitor hears of every end, and exactly once that it was the last; a reader of events that is too slow is told how many it missed.
//! - Memory is bounded by children and messages, never by the number of restarts.
//! - With one thread, paused time and a seed ([`Clock::paused`], [`Entropy::seeded`]) a run can be repeated.
//!
//! # Assumptions
//!
//! - Panics unwind: a build with `panic = "abort"` does not compile.
//! - Handlers do not block. A blocked thread cannot be interrupted; it is named by [`Observer::blocked`], in [`StillRunning`], and in the snapshot.
//! - An actor that keeps messages waiting for longer than the watchdog's patience says so beforehand, by [`Link::deadline`]; see [`TreeOptions::watchdog`].

mod backoff;
mod child;
mod clock;
mod context;
mod control;
mod credits;
mod delivery;
mod dynamic;
mod error;
mod events;
mod exit;
mod intensity;
mod link;
mod mailbox;
mod monitor;
mod operator;
mod panics;
mod plan;
mod random;
mod roster;
#[cfg(test)]
mod scripted;
mod slot;
mod snapshot;
mod spec;
mod stats;
mod supervisor;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod thread;
mod tree;
mod watchdog;

pub use actix;

pub use backoff::{Backoff, BackoffError};
pub use clock::Clock;
pub use context::Context;
pub use credits::{Credit, Credits};
pub use dynamic::Dynamic;
pub use error::{SpecError, StartError, StillRunning, StopError};
pub use events::{Event, Events, Missed, What};
pub use exit::{ErrorKind, Exit, Failure};
pub use intensity::Intensity;
pub use link::{Link, Work};
pub use mailbox::{Address, AskError, Mailbox, Tell};
pub use monitor::{Down, Monitor};
pub use operator::Operator;
pub use random::Entropy;
pub use slot::{Loan, Slot, SlotError};
pub use snapshot::{
    Counts, NodeSnapshot, NodeSort, NodeState, TreeSnapshot, Virtual, VirtualChild, Window,
};
pub use spec::{AutoShutdown, ChildSpec, Children, Restart, Shutdown, Strategy, SupervisorSpec};
pub use thread::Thread;
pub use tree::{Observer, Tree, TreeOptions};
pub use watchdog::Blocked;

/// Makes an actor restartable: `supervised!(MyActor);` beside its `impl Actor`.
///
/// Implements [`actix::Supervised`], which lets a supervisor drop the futures of an actor that ended. Its `restarting` does nothing and has nothing to do:
/// each incarnation is a new value made by the closure of its [`ChildSpec`].
/// For a generic actor the parameters come first, in brackets: `supervised!([T: Send + 'static] MyActor<T>);`
#[macro_export]
macro_rules! supervised {
    ([$($generics:tt)*] $actor:ty) => {
        impl<$($generics)*> $crate::actix::Supervised for $actor {}
    };
    ($actor:ty) => {
        $crate::supervised!([] $actor);
    };
}
