#![doc = include_str!("../README.md")]

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
mod gauge;
mod intensity;
mod kin;
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
