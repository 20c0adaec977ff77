//! One list of cases against two servers: this API, and a real kube-apiserver. Every behaviour that the controller relies on.
//!
//! `CRONWHEEL_CASE=part` runs the cases whose names hold that part.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "contract/asking.rs"]
mod asking;
#[path = "contract/content.rs"]
mod content;
#[path = "contract/deleting.rs"]
mod deleting;
#[path = "contract/listing.rs"]
mod listing;
#[path = "contract/server.rs"]
mod server;
#[path = "contract/sharding.rs"]
mod sharding;
#[path = "contract/shown.rs"]
mod shown;
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

/// A case has a name, which is also its namespace's.
type Case = (&'static str, fn(Server) -> Run);

macro_rules! cases {
    ($($module:ident :: $case:ident),* $(,)?) => {
        &[$((stringify!($case), |server| Box::pin($module::$case(server)) as Run)),*]
    };
}

const CASES: &[Case] = cases![
    asking::an_answer_says_the_server_s_time,
    asking::an_access_review_is_answered_and_not_stored,
    asking::what_is_not_there_is_404_with_its_details,
    asking::a_table_is_made_where_one_is_asked_for,
    asking::a_field_that_cannot_be_selected_by_is_refused,
    content::b_16_1_what_a_cron_job_leaves_open_is_filled_in,
    content::b_11_2_a_job_is_marked_with_its_name_and_uid,
    content::b_16_2_a_refusal_tells_every_cause,
    content::b_16_2_an_object_has_a_name,
    content::what_a_job_runs_cannot_be_changed,
    content::a_job_that_is_complete_says_why_and_stays_so,
    content::unknown_fields_are_told_or_refused,
    content::options_that_make_no_sense_are_refused,
    content::what_a_client_cannot_set_is_not_taken_from_it,
    content::a_strategic_merge_goes_by_the_names_of_containers,
    content::a_json_patch_is_done_step_by_step_or_not_at_all,
    content::an_apply_creates_changes_and_takes_back,
    content::a_patch_that_makes_no_object_is_refused,
    content::a_job_is_created_from_protobuf,
    content::a_name_that_is_no_label_is_warned_about,
    deleting::a_deleted_job_is_gone_and_the_answer_names_its_uid,
    deleting::a_delete_of_another_uid_is_a_conflict,
    deleting::a_delete_of_another_version_is_a_conflict,
    deleting::an_object_with_a_finalizer_goes_with_it,
    deleting::children_of_a_deleted_cron_job_go,
    deleting::a_foreground_deletion_waits_for_the_children,
    deleting::an_orphan_stays,
    deleting::a_job_that_is_deleted_without_options_leaves_orphans,
    deleting::a_collection_is_deleted_by_selector,
    deleting::a_namespace_that_is_going_takes_nothing_in,
    deleting::a_child_of_an_owner_that_is_gone_goes,
    listing::a_list_in_pages_is_of_one_version,
    listing::labels_select,
    listing::a_list_of_one_namespace_knows_no_other,
    shown::cron_jobs_and_jobs_are_printed_in_columns,
    shown::a_watch_may_be_of_rows,
    shown::metadata_alone_is_shown_where_it_is_asked_for,
    sharding::without_the_gate_a_selector_of_shards_is_passed_over,
    shown::what_there_is_can_be_discovered,
    shown::one_object_is_watched_by_its_name,
    watching::a_watch_goes_on_after_its_version,
    watching::a_watch_without_a_version_begins_with_what_there_is,
    watching::initial_events_end_with_a_bookmark,
    watching::a_watch_by_label_tells_what_comes_and_leaves,
    watching::a_watch_ends_after_its_time,
    watching::a_quiet_watch_gets_a_bookmark_before_its_end,
    watching::a_version_that_is_lost_is_told_as_an_event,
    writing::a_cron_job_is_created_with_what_the_server_adds,
    writing::b_16_3_a_new_object_has_no_status,
    writing::a_name_that_is_taken_is_already_exists,
    writing::a_generated_name_begins_as_asked,
    writing::a_missing_namespace_is_404,
    writing::a_put_of_an_older_version_is_a_conflict,
    writing::a_put_of_another_uid_is_a_conflict,
    writing::a_put_without_a_version_is_taken_but_for_leases,
    writing::a_spec_change_raises_the_generation_and_nothing_else_does,
    writing::a_write_that_changes_nothing_is_none,
    writing::b_16_4_a_status_write_takes_status_and_metadata_alone,
    writing::b_16_4_a_status_write_under_an_older_version_is_a_conflict,
    writing::a_put_of_the_main_part_keeps_the_status,
    writing::a_merge_patch_changes_what_it_names,
    writing::a_merge_patch_under_an_older_version_is_a_conflict,
    writing::a_lease_changes_hands_under_its_version,
    writing::a_dry_run_stores_nothing,
    writing::an_event_is_stored_and_counted,
    writing::names_that_do_not_match_are_refused,
    writing::a_patch_of_an_unknown_form_is_refused,
    writing::a_body_that_is_no_json_is_refused,
];

/// With the feature gate `ShardedListAndWatch`.
const SHARDED_CASES: &[Case] = cases![
    sharding::ranges_share_the_objects_out,
    sharding::a_watch_shows_its_range_alone,
    sharding::a_collection_is_deleted_by_range,
    sharding::what_is_no_selector_of_shards_is_told,
];

/// Cases in flight; most of what one does is waiting.
const N_AT_ONCE: usize = 8;

/// Some of the longest waits of a case.
const CASE_DURATION_MAX: Duration = Duration::from_mins(5);

async fn run_all(cases: &[Case], client: kube::Client) {
    let only = std::env::var("CRONWHEEL_CASE").unwrap_or_default();
    let local = tokio::task::LocalSet::new();
    let chosen: Vec<&Case> = cases.iter().filter(|(name, _)| name.contains(&only)).collect();
    let runs = stream::iter(chosen).map(|(name, run)| {
        let client = client.clone();
        async move {
            let server = Server::new(client, name).await;
            // A task of its own, so that its panic is its own.
            let case = tokio::task::spawn_local(tokio::time::timeout(CASE_DURATION_MAX, run(server)));
            let outcome = case.await;
            let is_ok = matches!(outcome, Ok(Ok(())));
            if !is_ok {
                eprintln!("FAILED  {name}: {outcome:?}");
            }
            (*name, is_ok)
        }
    });
    let outcomes: Vec<_> = local.run_until(runs.buffer_unordered(N_AT_ONCE).collect()).await;
    let failed: Vec<_> = outcomes
        .iter()
        .filter(|(_, is_ok)| !is_ok)
        .map(|(name, _)| *name)
        .collect();
    assert!(failed.is_empty(), "failed: {failed:?}");
    assert!(!outcomes.is_empty() || !only.is_empty(), "no case was run");
}

async fn run_in_memory(cases: &[Case], options: Options) {
    let clock = WallClock::starting_at("2026-01-02T03:04:05Z".parse().unwrap());
    let api = Api::new(options, clock);
    run_all(cases, kube::Client::new(api.client("contract"), "default")).await;
}

#[tokio::test]
async fn in_memory() {
    run_in_memory(CASES, Options::default()).await;
}

#[tokio::test]
async fn sharded_in_memory() {
    let options = Options {
        serves_shard_selectors: true,
        ..Options::default()
    };
    run_in_memory(SHARDED_CASES, options).await;
}

fn run_on_a_cluster(cases: &[Case], options: testbed::Options) {
    let testbed = Testbed::start(options).expect("a control plane");
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
        run_all(cases, kube::Client::try_from(config).unwrap()).await;
    });
    testbed.stop().expect("everything stops");
}

#[test]
fn on_a_real_api_server_of_a_cluster() {
    run_on_a_cluster(CASES, testbed::Options::default());
}

#[test]
fn sharded_on_a_real_api_server_of_a_cluster() {
    let options = testbed::Options {
        jobs: testbed::JobLife::None,
        feature_gates: vec!["ShardedListAndWatch=true".to_owned()],
        ..testbed::Options::default()
    };
    run_on_a_cluster(SHARDED_CASES, options);
}
