//! Keeps Deployments at the number of replicas their PodAutoscaler asks for.
//!
//! A `PodAutoscaler` (`autoscaling.example.com/v1`, short name `pa`) names a Deployment of its namespace and a number of replicas.
//! The controller writes the Deployment's `scale` subresource when the numbers differ and makes no request when they agree. It does
//! not own the Deployment: an owner reference would let the garbage collector delete a user's workload with the PodAutoscaler.

pub mod api;
mod cli;
#[cfg(feature = "embedded")]
mod embedded;
mod manifests;
pub mod policy;
mod reconciler;
mod status;

pub use cli::Cli;
pub use manifests::{Format, Install, PrintError, crd, manifests};
pub use reconciler::controller;
