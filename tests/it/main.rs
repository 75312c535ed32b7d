//! End-to-end tests on the simulated API server.

#![allow(clippy::expect_used, reason = "a test that cannot begin has failed")]

mod clients;
mod dashboard;
mod deterministic;
mod stuck;
mod traces;

mod scenarios;

mod simulated {
    use std::sync::Arc;

    use boatswain_tests::World;

    use crate::scenarios;

    async fn world() -> Arc<World> {
        Arc::new(World::sim().await)
    }

    scenarios::tests!(world(), world(), world());
}
