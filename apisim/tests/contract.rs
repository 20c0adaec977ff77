//! Contract tests: the same cases run against this API and against a real kube-apiserver. They cover every behaviour
//! that the controller relies on.
//!
//! `CRONWHEEL_CASE=part` runs only the cases whose names contain `part`.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "contract/content.rs"]
mod content;
#[path = "contract/deleting.rs"]
mod deleting;
#[path = "contract/formats.rs"]
mod formats;
#[path = "contract/listing.rs"]
mod listing;
#[path = "contract/responses.rs"]
mod responses;
#[path = "contract/server.rs"]
mod server;
#[path = "contract/watching.rs"]
mod watching;
#[path = "contract/writing.rs"]
mod writing;

use std::{future::Future, pin::Pin, time::Duration};

use apisim::{Api, Options, WallClock};
use futures::stream::{self, StreamExt as _};
use server::Server;
use testbed::Testbed;

type Run = Pin<Box<dyn Future<Output = ()>>>;

/// The name of a case and its function. The name is also that of the namespace, with dashes.
type Case = (&'static str, fn(Server) -> Run);

macro_rules! cases {
    ($($module:ident :: $case:ident),* $(,)?) => {
        &[$((stringify!($case), |server| Box::pin($module::$case(server)) as Run)),*]
    };
}

const CASES: &[Case] = cases![
    responses::response_has_the_date_of_the_server,
    responses::access_review_is_answered,
    responses::missing_object_is_404_with_details,
    responses::table_is_returned_on_request,
    responses::unsupported_field_selector_is_refused,
    content::b_16_1_created_cron_job_has_the_defaults_of_the_server,
    content::b_11_2_created_job_has_labels_with_its_name_and_uid,
    content::b_16_2_invalid_cron_job_error_lists_every_cause,
    content::b_16_2_object_without_a_name_is_invalid,
    content::completion_mode_of_a_job_is_immutable,
    content::complete_job_needs_success_criteria_and_stays_complete,
    content::unknown_fields_are_warned_about_or_refused,
    content::invalid_request_options_are_refused,
    content::metadata_managed_by_the_server_is_not_taken_from_the_client,
    content::strategic_merge_patch_merges_containers_by_name,
    content::json_patch_is_applied_completely_or_not_at_all,
    content::apply_creates_changes_and_removes_fields,
    content::patch_with_an_invalid_result_is_refused,
    content::a_job_is_created_from_protobuf,
    content::name_that_is_no_dns_label_gets_a_warning,
    deleting::deleted_job_is_gone_and_the_response_has_its_uid,
    deleting::delete_with_another_uid_is_a_conflict,
    deleting::delete_with_another_version_is_a_conflict,
    deleting::object_is_removed_with_its_last_finalizer,
    deleting::jobs_of_a_deleted_cron_job_are_deleted,
    deleting::foreground_deletion_waits_for_dependents,
    deleting::orphaned_job_is_kept,
    deleting::job_deleted_without_options_orphans_its_dependents,
    deleting::a_collection_is_deleted_by_selector,
    deleting::terminating_namespace_refuses_creates,
    deleting::job_with_a_missing_owner_is_deleted,
    listing::pages_of_a_list_have_one_version,
    listing::label_and_field_selectors_filter_lists,
    listing::list_of_a_namespace_contains_no_other,
    formats::tables_have_the_columns_of_cron_jobs_and_jobs,
    formats::watch_can_return_tables,
    formats::partial_object_metadata_is_returned_on_request,
    formats::served_resources_can_be_discovered,
    formats::single_object_is_watched_by_its_name,
    watching::watch_starts_after_its_resource_version,
    watching::watch_without_a_version_starts_with_existing_objects,
    watching::initial_events_end_with_a_bookmark,
    watching::watch_by_label_yields_objects_that_enter_and_leave,
    watching::watch_ends_after_its_timeout,
    watching::idle_watch_gets_a_bookmark_before_its_end,
    watching::watch_from_version_1_begins_with_expired_or_the_first_change,
    writing::created_cron_job_has_the_metadata_of_the_server,
    writing::b_16_3_created_object_has_no_status,
    writing::create_with_a_taken_name_is_already_exists,
    writing::generated_name_has_the_requested_prefix,
    writing::create_in_a_missing_namespace_is_404,
    writing::a_put_of_an_older_version_is_a_conflict,
    writing::a_put_of_another_uid_is_a_conflict,
    writing::put_without_a_version_is_accepted_except_for_leases,
    writing::only_spec_changes_raise_the_generation,
    writing::write_without_a_change_keeps_the_version,
    writing::b_16_4_status_write_changes_only_status_and_metadata,
    writing::b_16_4_a_status_write_under_an_older_version_is_a_conflict,
    writing::put_of_the_main_resource_keeps_the_status,
    writing::merge_patch_changes_only_the_named_fields,
    writing::a_merge_patch_under_an_older_version_is_a_conflict,
    writing::lease_holder_changes_only_at_the_current_version,
    writing::a_dry_run_stores_nothing,
    writing::an_event_is_stored_and_counted,
    writing::names_that_do_not_match_are_refused,
    writing::patch_with_an_unknown_content_type_is_refused,
    writing::body_with_invalid_json_is_refused,
];

/// The number of concurrent cases. A case mostly waits.
const N_CONCURRENT_MAX: usize = 8;

/// The maximum duration of a case. A case has several waits, each with its own limit.
const CASE_DURATION_MAX: Duration = Duration::from_mins(5);

async fn run_all(client: kube::Client) {
    let only = std::env::var("CRONWHEEL_CASE").unwrap_or_default();
    let local = tokio::task::LocalSet::new();
    let selected: Vec<&Case> = CASES.iter().filter(|(name, _)| name.contains(&only)).collect();
    let runs = stream::iter(selected).map(|(name, run)| {
        let client = client.clone();
        async move {
            let server = Server::new(client, name).await;
            // A separate task contains a panic of the case.
            let case = tokio::task::spawn_local(tokio::time::timeout(CASE_DURATION_MAX, run(server)));
            let outcome = case.await;
            let is_ok = matches!(outcome, Ok(Ok(())));
            if !is_ok {
                eprintln!("FAILED  {name}: {outcome:?}");
            }
            (*name, is_ok)
        }
    });
    let outcomes: Vec<_> = local.run_until(runs.buffer_unordered(N_CONCURRENT_MAX).collect()).await;
    let failed: Vec<_> = outcomes
        .iter()
        .filter(|(_, is_ok)| !is_ok)
        .map(|(name, _)| *name)
        .collect();
    assert!(failed.is_empty(), "failed: {failed:?}");
    assert!(!outcomes.is_empty() || !only.is_empty(), "no case was run");
}

#[tokio::test]
async fn in_memory() {
    let clock = WallClock::starting_at("2026-01-02T03:04:05Z".parse().unwrap());
    let api = Api::new(Options::default(), clock);
    run_all(kube::Client::new(api.client("contract"), "default")).await;
}

#[test]
fn on_a_real_api_server_of_a_cluster() {
    let testbed = Testbed::start(testbed::Options::default()).expect("the control plane starts");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let kubeconfig = testbed.kubeconfig();
    runtime.block_on(async {
        let kubeconfig = kube::config::Kubeconfig::read_from(kubeconfig).unwrap();
        let options = kube::config::KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
            .await
            .unwrap();
        run_all(kube::Client::try_from(config).unwrap()).await;
    });
    testbed.stop().expect("everything stops");
}
