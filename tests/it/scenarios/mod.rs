//! What is played on every API server. Each body is one fact; the tests around it bear its name.

pub(crate) mod chaos;
pub(crate) mod dynamic;
pub(crate) mod fixing;
pub(crate) mod mirror;
pub(crate) mod ownership;
pub(crate) mod pods;
pub(crate) mod processes;
pub(crate) mod replicas;
pub(crate) mod rights;
pub(crate) mod scaling;
pub(crate) mod sharing;
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
        scenarios::tests!(@each $shared; fixing:
            an_annotation_is_followed_and_left_when_it_goes,
            a_malformed_annotation_is_left_alone_and_told_once,
            two_controllers_that_disagree_both_say_so_and_one_steps_back);
        scenarios::tests!(@each $shared; ownership:
            an_owned_configmap_is_repaired_and_collected_with_its_owner);
        scenarios::tests!(@each $shared; dynamic:
            a_controller_of_a_kind_made_at_run_time_works_before_and_after_its_crd_comes_back);
        scenarios::tests!(@each $shared; replicas:
            of_two_replicas_one_works_and_the_other_follows);
        scenarios::tests!(@each $shared; processes:
            a_leader_that_is_killed_is_followed_by_the_first_look_after_its_lease,
            a_leader_that_stood_still_for_longer_than_its_lease_writes_nothing_when_it_goes_on,
            a_lease_deleted_by_hand_lets_no_two_write,
            a_lease_stolen_by_hand_is_respected_and_followed,
            a_rival_that_takes_the_lease_during_its_release_keeps_it,
            a_rolling_restart_under_load_loses_nothing_and_logs_no_error,
            machines_that_have_run_for_different_times_follow_each_other,
            a_rival_whose_clock_is_hours_off_is_left_alone_as_long_as_it_renews);
        scenarios::tests!(@each $shared; sharing:
            of_two_controllers_with_a_lease_each_one_goes_on_whatever_happens_to_the_other);
        scenarios::tests!(@each $shared; rights:
            a_user_without_rights_is_told_which_verb_and_resource_is_forbidden,
            the_roles_of_the_manifests_suffice_and_each_right_that_is_taken_away_is_named,
            a_right_to_scale_that_is_missing_is_told_on_the_object_until_it_is_there,
            the_roles_of_replica_fixer_suffice_and_each_right_that_is_taken_away_is_named,
            roles_suffice_to_tell_of_objects_outside_of_namespaces_wherever_the_server_wants_it,
            what_is_asked_for_while_rights_are_missing_is_done_when_they_return);
        scenarios::tests!(@each $shared; pods:
            in_a_pod_everything_is_found_and_a_rotated_token_is_used);
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
        scenarios::tests!(@each $lent; processes:
            a_server_that_is_away_for_longer_than_the_lease_is_worked_with_by_one_when_it_is_back);
        scenarios::tests!(@each $lent; chaos:
            a_kind_that_is_deleted_and_comes_back_is_worked_on_again);
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
