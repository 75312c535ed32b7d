//! A controller that blocks its thread over every object, for good: a program that cannot be stopped in order.

use std::{convert::Infallible, process::ExitCode, sync::Arc};

use boatswain::prelude::*;
use k8s_openapi::api::core::v1::ConfigMap;

struct Blocker;

impl Reconciler<ConfigMap> for Blocker {
    type Error = Infallible;

    async fn reconcile(&self, _: Arc<ConfigMap>, _: &Context) -> Result<Outcome, Infallible> {
        tracing::info!("blocks");
        loop {
            std::thread::park();
        }
    }
}

fn main() -> ExitCode {
    Manager::from_args()
        .with(Controller::<ConfigMap>::named("blocker").reconciler(|_| Blocker))
        .run()
}
