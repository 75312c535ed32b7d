//! Leader election on a Lease: which replica works, and until when it may write.
//!
//! [`state`] decides, [`core`] is what outlives the actor, [`actor`] talks to the server, [`fence`] is what every write passes last.

mod actor;
mod catch_up;
mod core;
mod fence;
mod names;
mod state;
mod terms;
#[cfg(test)]
mod tests;

pub(crate) use self::{
    actor::{Busy, LeaderActor},
    catch_up::{CatchUp, catch_up},
    core::{Leadership, Load, Role},
    fence::Fence,
    names::{Election, OwnLeases, hostname},
};
pub use self::{
    core::{LeaseOptions, LeaseStatus},
    fence::Fenced,
    names::LeaseNameError,
    terms::{LeaseTerms, TermsError},
};
