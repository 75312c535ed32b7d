//! Two controllers in one process: PodAutoscalers say how many replicas Deployments have, and so do annotations. Both read the Deployments from
//! one cache, which one watch keeps current, and where they disagree about a Deployment one of them steps back and both say so.

use std::process::ExitCode;

use boatswain::prelude::*;

/// The fleet, to be run.
pub fn fleet(manager: Manager) -> Manager {
    manager
        .with(podautoscaler::controller())
        .with(replica_fixer::controller())
}

fn main() -> ExitCode {
    fleet(Manager::from_args()).run()
}
