//! How the program is installed.

#[cfg(test)]
mod tests;

use kube::CustomResourceExt as _;
use packaging::Program;

use crate::{
    api::PodAutoscaler,
    reconciler::{NAME, controller},
};

/// The program, to be installed.
pub const PROGRAM: Program = Program {
    name: NAME,
    version: env!("CARGO_PKG_VERSION"),
    description: env!("CARGO_PKG_DESCRIPTION"),
    controllers: || vec![controller()],
    lease_per_controller: false,
    crds: || vec![PodAutoscaler::crd()],
};
