//! Keeps Deployments at the number of replicas that their annotation `example.io/expected-replicas` asks for.
//!
//! The controller writes the Deployment's `scale` subresource when the numbers differ and makes no request when they agree. A Deployment without the
//! annotation is left alone, and so is one with a value that is no number from 0 to 10,000: a Warning on the Deployment says so, once for each such value.
//! Whoever keeps setting another number is dealt with as the PodAutoscaler does: see [`scaling`].

mod cli;
mod manifests;
mod reconciler;
mod wish;

pub use cli::Cli;
pub use manifests::PROGRAM;
pub use reconciler::controller;
pub use wish::ANNOTATION;
