//! Brings Deployments to a number of replicas, and steps back from whoever disagrees: what the controllers that scale have in common.
//!
//! [`Scaler`] writes the `scale` subresource when the numbers differ, makes no request when they agree, and corrects what others change. When the same number is
//! reversed again and again within a minute it leaves the Deployment to its rival for a while ([`policy`]). Where two follow the same rule, one of them steps back
//! and both say [`Contended`].

pub mod policy;
mod rival;
mod scaler;

pub use scaler::{Contended, Converged, Goal, Scaled, Scaler, State};

/// The numbers of replicas that may be asked for.
pub const REPLICAS: std::ops::RangeInclusive<i32> = 0..=10_000;
