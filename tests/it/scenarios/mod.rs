//! What is played on every API server. Each body is one fact; the tests around it bear its name.

pub(crate) mod chaos;
pub(crate) mod mirror;
pub(crate) mod ownership;
pub(crate) mod replicas;
pub(crate) mod rights;
pub(crate) mod scaling;
pub(crate) mod writing;

/// Makes a test of each scenario: those that share a server get `$shared`, those that hurt it a `$fresh` one of their own, or `$lent` one that they
/// bring back alive.
macro_rules! tests {
    ($shared:expr, $fresh:expr, $lent:expr) => {
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
        scenarios::tests!(@each $shared; replicas:
            of_two_replicas_one_works_and_the_other_follows);
        scenarios::tests!(@each $shared; rights:
            a_user_without_rights_is_told_which_verb_and_resource_is_forbidden,
            the_roles_of_the_manifests_suffice_and_each_right_that_is_taken_away_is_named);
        scenarios::tests!(@each $shared; mirror:
            a_consistent_list_comes_in_pages,
            lists_are_streamed_where_the_server_can_and_read_in_pages_where_it_cannot,
            what_is_selected_and_how_much_of_it_is_asked_of_the_server,
            secrets_are_mirrored_and_never_shown,
            a_reset_in_the_middle_of_a_watch_costs_no_list,
            a_black_holed_watch_is_found_by_its_silence,
            rights_that_are_taken_away_are_named_and_used_again_when_they_return,
            a_kind_is_waited_for_and_followed_through_its_deletion_and_return);
        scenarios::tests!(@each $shared; writing:
            what_is_told_again_is_one_event_that_counts,
            an_object_is_cleaned_up_before_it_goes_and_code_without_cleanup_lets_it_go,
            a_controller_that_may_not_write_events_works_and_counts_them);
        scenarios::tests!(@each $lent; mirror:
            a_server_that_is_killed_and_comes_back_is_followed_without_telling_anything_twice,
            what_a_lost_history_hides_is_told_by_its_outcome,
            a_server_restored_from_a_backup_begins_a_new_history);
        scenarios::tests!(@each $fresh; chaos:
            a_killed_server_loses_no_change_of_two_hundred,
            an_expired_watch_relists_and_unchanged_keys_do_not_run);
    };
    (@each $world:expr; $module:ident: $($name:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let world = $world.await;
                scenarios::$module::$name(&world).await;
            }
        )*
    };
}
pub(crate) use tests;
