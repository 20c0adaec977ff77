//! Cases with one behaviour each. Every case has its own namespace and its own controller. Cases run in parallel on one
//! control plane.

mod built_in_policy;
mod checking;
mod credentials;
mod deadlines;
mod deletions;
mod edits;
mod explaining;
mod extremes;
mod failing_namespace;
mod firing;
mod foreign_jobs;
mod garbage;
pub(super) mod installing;
mod leases;
mod namespaces;
mod nights;
mod options;
mod permissions;
mod policies;
mod readiness;
mod refusals;
mod restarts;
mod run_lines;
mod running_now;
mod templates;
mod troubles;
pub(super) mod viewing;

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

/// The longest come first.
const CASES: [Case; 98] = cases![
    troubles::trouble_metric_names_a_cron_job_until_the_cause_is_gone,
    troubles::trouble_metric_is_absent_with_cron_job_metrics_none,
    namespaces::labels_move_namespaces_between_installations,
    built_in_policy::only_writes_of_the_built_in_controller_are_refused,
    built_in_policy::a_lease_silences_while_it_acts_and_is_younger_than_a_minute,
    built_in_policy::manual_fallback_refuses_without_a_lease,
    built_in_policy::rights_on_policies_and_leases_suffice_to_install,
    built_in_policy::two_installations_refuse_only_in_their_own_namespaces,
    checking::check_and_the_api_server_refuse_the_same,
    checking::check_on_the_server_includes_its_admission,
    credentials::replaced_client_certificate_is_used_without_a_restart,
    credentials::controller_reports_missing_permissions_and_starts_once_granted,
    credentials::revoked_and_restored_permission_loses_no_run,
    credentials::rotated_token_is_reloaded,
    deadlines::deadline_of_zero_starts_the_run_at_its_slot,
    deadlines::deadline_under_ten_seconds_is_exact_to_the_second,
    deadlines::every_schedule_keeps_its_grid_with_a_deadline_below_its_period,
    deletions::background_deletion_of_a_cron_job_deletes_its_job,
    deletions::cron_job_in_foreground_deletion_starts_no_job,
    edits::changed_schedule_starts_no_slot_before_the_change,
    edits::change_to_a_later_schedule_cancels_the_armed_slot,
    edits::change_during_downtime_starts_the_latest_slot_of_the_new_schedule,
    edits::changed_time_zone_moves_the_slot,
    extremes::job_with_a_ttl_of_zero_runs_its_slot_once,
    extremes::history_limit_of_zero_keeps_no_job_and_loses_no_slot,
    extremes::template_over_one_mebibyte_becomes_a_job,
    extremes::cron_job_over_the_memory_limit_runs_and_keeps_its_metadata,
    extremes::status_too_large_to_be_stored_doubles_no_run,
    extremes::job_too_large_to_be_stored_does_not_disarm_the_next_slot,
    explaining::explain_predicts_the_actions_of_the_controller,
    explaining::explain_names_a_missing_cron_job,
    failing_namespace::namespace_with_refused_creates_recovers,
    firing::a_cron_job_fires_on_the_minute_and_its_job_completes,
    firing::history_keeps_to_its_limits,
    firing::a_suspended_cron_job_starts_its_latest_slot_when_resumed,
    firing::a_suspended_interval_keeps_its_grid,
    garbage::stored_garbage_is_reported_and_stops_no_other_cron_job,
    garbage::unparseable_schedule_is_reported_and_runs_again_once_corrected,
    garbage::overlong_job_name_is_sent_unchanged_and_its_refusal_reported,
    installing::lease_role_grants_exactly_the_needed_permissions,
    installing::service_account_may_send_all_lease_requests,
    installing::replicas_share_the_shards_under_the_role,
    installing::replicas_without_a_flag_share_the_cron_jobs,
    installing::single_replica_leads_every_shard_soon_after_it_is_ready,
    installing::killed_replica_with_another_identity_is_replaced_after_ten_seconds,
    installing::replica_without_the_role_starts_nothing_and_names_it,
    installing::flow_schemas_match_leases_and_job_creates,
    installing::fence_policy_denies_a_late_job,
    installing::upgrade_that_would_stop_every_cron_job_is_refused,
    leases::member_lease_is_deleted_with_its_pod,
    leases::silent_connection_is_replaced_before_the_fence,
    leases::lease_is_created_read_and_renewed,
    leases::lease_write_at_a_stale_version_is_a_conflict,
    leases::invalid_lease_is_refused,
    leases::lease_watch_from_a_list_misses_no_change,
    leases::lease_without_its_label_is_gone_until_the_next_write,
    leases::installations_with_different_names_are_independent,
    leases::warning_is_recorded_as_an_event_of_the_lease,
    nights::new_york_skips_slots_in_the_gap,
    nights::new_york_runs_twice_in_the_overlap,
    nights::cairo_loses_the_friday_whose_midnight_is_missing,
    nights::cairo_runs_twice_before_midnight_in_the_overlap,
    running_now::a_run_that_is_asked_for_starts_once_also_after_a_restart,
    running_now::runs_that_are_asked_for_obey_forbid_and_replace,
    options::spread_starts_each_cron_job_at_its_own_offset,
    options::missed_runs_choose_what_starts_after_an_absence,
    options::killed_between_missed_runs_the_next_one_continues,
    options::on_resume_chooses_what_starts_after_a_suspension,
    options::a_freeze_holds_until_its_end_or_until_the_thaw,
    options::pods_get_the_time_of_their_slot,
    options::a_calendar_excludes_its_dates,
    options::an_invalid_option_is_reported_once_and_starts_at_the_slot,
    permissions::check_names_each_right_that_its_account_lacks,
    permissions::without_one_permission_jobs_start_or_the_replica_is_not_ready,
    policies::allow_starts_beside_a_running_job,
    policies::forbid_waits_for_the_running_job,
    policies::replace_deletes_the_running_job_first,
    readiness::pre_names_what_would_start_at_once,
    readiness::interrupted_canary_is_removed,
    refusals::raised_quota_starts_the_refused_slot,
    refusals::quota_raised_late_starts_only_the_latest_slot,
    refusals::policy_that_denies_some_jobs_delays_no_other,
    refusals::creates_in_a_terminating_namespace_back_off_without_events,
    restarts::kill_between_create_and_status_write_doubles_no_run,
    restarts::slots_missed_during_downtime_are_caught_up_by_one_job,
    run_lines::lost_runs_and_jobs_have_their_lines,
    foreign_jobs::forbid_does_not_count_a_manual_run,
    foreign_jobs::replace_leaves_a_manual_run_alone,
    foreign_jobs::manual_run_with_the_name_of_a_slot_is_adopted,
    foreign_jobs::job_in_another_namespace_stops_no_run_of_its_claimed_owner,
    foreign_jobs::foreign_job_blocks_only_the_slot_of_its_name,
    foreign_jobs::recreated_cron_job_does_not_own_the_jobs_of_its_predecessor,
    foreign_jobs::pending_status_is_not_written_to_a_recreated_cron_job,
    templates::unknown_template_field_reaches_the_job,
    templates::metadata_survives_status_writes,
    viewing::page_shows_what_the_api_server_has,
    viewing::page_answers_only_reads_from_its_own_names,
    viewing::account_of_one_namespace_is_told_to_name_it,
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
