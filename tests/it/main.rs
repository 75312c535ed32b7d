//! End-to-end tests on the simulated API server.

#![allow(clippy::expect_used, reason = "a test that cannot begin has failed")]

mod clients;
mod dashboard;
mod deterministic;
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
    // here only: on real servers what they look at is not always there to be seen (seconds of managedFields, early lines of the audit log)
    scenarios::tests!(@each world(); fixing:
        two_controllers_that_disagree_both_say_so_and_one_steps_back);
    scenarios::tests!(@each world(); processes:
        a_server_that_is_away_for_longer_than_the_lease_is_worked_with_by_one_when_it_is_back);
    scenarios::tests!(@each world(); writing:
        what_is_told_again_is_one_event_that_counts);
}
