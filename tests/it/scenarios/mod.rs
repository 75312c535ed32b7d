//! What is played on every API server. Each body is one fact; the tests around it bear its name.

pub(crate) mod chaos;
pub(crate) mod ownership;
pub(crate) mod rights;
pub(crate) mod scaling;

/// Makes a test of each scenario: those that share a server get `$shared`, those that hurt it a `$fresh` one of their own.
macro_rules! tests {
    ($shared:expr, $fresh:expr) => {
        scenarios::tests!(@each $shared; scaling:
            a_new_podautoscaler_scales_its_deployment_with_one_write,
            equal_numbers_cause_no_write,
            scaling_up_and_to_zero_follows_the_spec,
            a_missing_deployment_is_reported_and_scaled_when_it_appears,
            a_recreated_deployment_is_scaled_again,
            deleting_a_podautoscaler_leaves_the_deployment_as_it_is,
            a_foreign_change_is_corrected,
            a_rival_that_keeps_reversing_is_named_and_left_alone,
            a_storm_of_conflicts_costs_no_extra_accepted_write,
            of_two_podautoscalers_for_one_deployment_only_the_older_scales,
            invalid_specs_are_refused_by_the_schema);
        scenarios::tests!(@each $shared; ownership:
            an_owned_configmap_is_repaired_and_collected_with_its_owner);
        scenarios::tests!(@each $shared; rights:
            a_user_without_rights_is_told_which_verb_and_resource_is_forbidden);
        scenarios::tests!(@each $fresh; chaos:
            a_killed_server_loses_no_change_of_two_hundred,
            an_expired_watch_relists_and_unchanged_keys_do_not_run);
    };
    (@each $world:expr; $module:ident: $($name:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let world: std::sync::Arc<boatswain_tests::World> = $world.await;
                scenarios::$module::$name(&world).await;
            }
        )*
    };
}
pub(crate) use tests;
