//! Cases with one behaviour each. Every case has its own namespace and its own controller. Cases run in parallel on one
//! control plane.

mod credentials;
mod deadlines;
mod deletions;
mod edits;
mod explaining;
mod extremes;
mod failing_namespace;
mod firing;
mod garbage;
pub(super) mod installing;
mod leases;
mod nights;
mod permissions;
mod policies;
mod refusals;
mod restarts;
mod strangers;
mod templates;
mod troubles;

use std::{pin::Pin, time::Duration};

use libtest_mimic::Trial;

use crate::{
    account::permit_leases,
    block_on,
    control_plane::{Purpose, share},
    kubernetes::{ControlPlane, Namespace},
};

type Run = Pin<Box<dyn Future<Output = ()>>>;

struct Case {
    name: &'static str,
    run: fn(Namespace) -> Run,
}

macro_rules! cases {
    ($($module:ident :: $case:ident),* $(,)?) => {
        [$(Case {
            name: concat!("cases::", stringify!($module), "::", stringify!($case)),
            run: |namespace| Box::pin($module::$case(namespace)),
        }),*]
    };
}

const DURATION_MAX: Duration = Duration::from_secs(90);

const CASES: [Case; 73] = cases![
    credentials::a_client_certificate_that_is_replaced_counts_without_a_restart,
    credentials::a_controller_without_permission_says_so_and_begins_when_it_has_it,
    credentials::a_permission_withdrawn_and_given_back_costs_no_run,
    credentials::a_token_that_is_no_longer_known_is_read_anew,
    deadlines::a_deadline_of_zero_is_met_at_the_slot,
    deadlines::a_deadline_under_ten_seconds_is_kept_to_the_second,
    deadlines::every_keeps_its_grid_under_a_deadline_below_its_period,
    deletions::a_cron_job_deleted_in_the_background_takes_its_job_along,
    deletions::a_cron_job_deleted_in_the_foreground_starts_nothing_while_it_waits,
    edits::a_change_to_an_earlier_schedule_starts_no_slot_of_before_it,
    edits::a_change_to_a_later_schedule_takes_the_armed_slot_away,
    edits::a_change_without_a_controller_starts_the_latest_slot_of_the_new_schedule,
    edits::a_change_of_the_zone_alone_moves_the_slot,
    extremes::a_job_without_an_afterlife_runs_its_slot_once,
    extremes::a_history_limit_of_zero_keeps_no_job_and_loses_no_slot,
    extremes::a_template_of_more_than_a_mebibyte_becomes_a_job,
    extremes::a_cron_job_that_is_not_kept_runs_and_keeps_its_metadata,
    extremes::a_status_too_large_to_be_stored_doubles_nothing,
    extremes::a_job_too_large_to_be_stored_is_told_and_does_not_stop_the_next_slot,
    explaining::explain_foretells_what_the_controller_does,
    explaining::explain_says_which_cron_job_is_not_there,
    failing_namespace::a_namespace_whose_creates_are_refused_is_probed_and_recovers,
    firing::a_cron_job_fires_on_the_minute_and_its_job_completes,
    firing::history_keeps_to_its_limits,
    firing::a_suspended_cron_job_starts_its_latest_slot_when_resumed,
    firing::a_suspended_interval_keeps_its_grid,
    garbage::stored_garbage_is_reported_and_the_others_go_on,
    garbage::a_schedule_that_becomes_garbage_is_told_and_runs_again_when_put_right,
    garbage::a_name_too_long_for_a_job_is_sent_whole_and_its_refusal_told,
    installing::the_role_for_leases_is_enough_and_no_more,
    installing::the_account_can_do_all_that_is_done_with_leases,
    installing::replicas_share_the_shards_out_under_the_role,
    installing::replicas_without_a_flag_share_the_cron_jobs,
    installing::a_lone_replica_starts_nothing_beside_one_that_shares,
    installing::a_replica_without_the_role_starts_nothing_and_names_it,
    installing::leases_and_creates_of_jobs_go_by_flow_schemas,
    installing::the_fence_refuses_a_job_that_comes_too_late,
    leases::a_lease_goes_with_its_pod,
    leases::a_way_that_falls_silent_is_replaced_before_the_fence,
    leases::lease_is_created_read_and_renewed,
    leases::lease_write_at_a_stale_version_is_a_conflict,
    leases::invalid_lease_is_refused,
    leases::lease_watch_from_a_list_misses_no_change,
    leases::lease_without_its_label_is_gone_until_the_next_write,
    leases::installations_with_different_names_are_independent,
    leases::first_replica_creates_the_installation,
    leases::invalid_installation_error_names_the_fix,
    leases::warning_is_recorded_as_an_event_of_the_lease,
    nights::new_york_skips_what_falls_into_the_gap,
    nights::new_york_runs_twice_in_the_overlap,
    nights::cairo_loses_the_friday_whose_midnight_is_missing,
    nights::cairo_runs_twice_before_midnight_in_the_overlap,
    permissions::without_one_permission_jobs_start_or_the_replica_is_not_ready,
    policies::allow_starts_beside_a_running_job,
    policies::forbid_waits_for_the_running_job,
    policies::replace_deletes_the_running_job_first,
    refusals::a_quota_that_lifts_lets_the_slot_start,
    refusals::a_quota_that_lifts_late_lets_only_the_latest_slot_start,
    refusals::a_policy_that_denies_some_jobs_holds_no_other_back,
    refusals::in_a_namespace_that_goes_creates_are_tried_ever_less_and_nobody_is_told,
    restarts::a_kill_between_create_and_status_write_doubles_nothing,
    restarts::several_slots_without_a_controller_are_caught_up_by_one_job,
    strangers::forbid_does_not_count_a_manual_run,
    strangers::replace_leaves_a_manual_run_alone,
    strangers::a_manual_run_of_a_slot_s_name_is_that_slot_s_run,
    strangers::a_job_of_another_namespace_that_names_our_cron_job_stops_no_run,
    strangers::a_foreign_job_costs_its_slot_and_the_next_one_starts,
    strangers::a_re_created_cron_job_does_not_own_the_jobs_of_the_first,
    strangers::a_status_not_written_yet_does_not_reach_a_namesake,
    templates::a_field_that_cronwheel_does_not_know_reaches_the_job,
    templates::metadata_survives_status_writes,
    troubles::a_cron_job_is_named_with_its_trouble_until_the_cause_is_gone,
    troubles::a_controller_without_the_metric_names_no_cron_job,
];

pub(super) fn trials() -> impl Iterator<Item = Trial> {
    CASES.into_iter().map(|Case { name, run }| {
        Trial::test(name, move || {
            share(Purpose::Cases, |access| {
                block_on(DURATION_MAX, async {
                    let namespace = Namespace::create_for(name, ControlPlane::connect(access).await).await;
                    permit_leases(&namespace).await;
                    run(namespace).await;
                });
            });
            Ok(())
        })
    })
}
