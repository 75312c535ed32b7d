//! Leader election on a Lease: which replica works, and until when it may write.
//!
//! [`state`] decides, [`core`] is what outlives the actor, [`actor`] talks to the server, [`fence`] is what every write passes last.

mod actor;
mod core;
mod fence;
mod names;
mod state;
mod terms;
#[cfg(test)]
mod tests;

pub(crate) use self::{
    actor::{CatchUp, LeaderActor},
    core::{Leadership, Role},
    fence::Fence,
    names::hostname,
};
pub use self::{
    core::{LeaseOptions, LeaseStatus},
    fence::Fenced,
    terms::{LeaseTerms, TermsError},
};
