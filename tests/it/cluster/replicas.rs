//! Several replicas as processes that share the CronJobs of a namespace: they come, go, crash, freeze and are cut off.
//!
//! Each case has Leases, replicas and CronJobs of its own. It is judged by the audit log and by what Jobs say of their
//! creator: no slot missed or doubled, Forbid never overlapping, no Job of a term after one of the next.
//! Without `CRONWHEEL_REPLICAS` three cases run beside each other through one slot; with `all`, or a part of a name,
//! each through two.

mod absence;
mod crashes;
mod cron_jobs;
mod deletions;
mod freezes;
mod group;
mod outage;
mod partition;
mod restarts;
mod scaling;
mod sightings;
mod verdict;

use std::{
    any::Any,
    panic::AssertUnwindSafe,
    pin::Pin,
    rc::Rc,
    time::{Duration, Instant},
};

use futures::{FutureExt as _, StreamExt as _, stream};
use testbed::{Options, Testbed};
use tokio::time::error::Elapsed;

use super::{
    ONE_CONTROL_PLANE, control_plane,
    kubernetes::{ControlPlane, Namespace},
};

type Run = Pin<Box<dyn Future<Output = ()>>>;

struct Case {
    name: &'static str,
    run: fn(Namespace) -> Run,
    is_short: bool,
}

macro_rules! cases {
    ($is_short:literal: $($module:ident :: $case:ident),* $(,)?) => {
        [$(Case {
            name: stringify!($case),
            run: |namespace| Box::pin($module::$case(namespace)),
            is_short: $is_short,
        }),*]
    };
}

const SHORT: [Case; 3] = cases![true:
    restarts::a_rolling_restart_moves_each_shard_once,
    crashes::a_replica_killed_comes_back_in_its_pod,
    freezes::frozen_for_9_seconds_it_loses_its_shards_at_most_once,
];

const LONG: [Case; 11] = cases![false:
    crashes::a_replica_killed_stays_away,
    freezes::frozen_for_5_seconds_it_keeps_its_shards,
    freezes::frozen_for_11_seconds_it_loses_its_shards_once,
    freezes::frozen_for_60_seconds_it_loses_its_shards_once,
    scaling::from_one_to_five_to_two,
    deletions::a_member_s_lease_deleted,
    deletions::a_shard_s_lease_deleted,
    deletions::all_leases_deleted,
    partition::cut_off_for_30_seconds_it_loses_its_shards_once,
    partition::what_is_on_its_way_for_long_is_refused_by_the_fence,
    absence::all_killed_for_minutes_start_the_latest_slot_alone,
];

/// Takes the API server away from all, so it runs alone.
const OUTAGE: &str = "an_api_server_away_for_30_seconds_moves_nothing";

/// In full the machine's cores are for the replicas of so many cases.
const N_AT_ONCE: usize = 3;

const CASE_DURATION_MAX: Duration = Duration::from_mins(5);

#[test]
fn replicas_share_cron_jobs() {
    let selection = std::env::var("CRONWHEEL_REPLICAS").unwrap_or_default();
    let is_selected = |name: &str, is_short: bool| match selection.as_str() {
        "" => is_short,
        "all" => true,
        part => name.contains(part),
    };
    let cases = SHORT.iter().chain(&LONG);
    let cases: Vec<&Case> = cases.filter(|case| is_selected(case.name, case.is_short)).collect();
    let with_outage = is_selected(OUTAGE, false);
    assert!(with_outage || !cases.is_empty(), "no case is named {selection}");
    let _alone = ONE_CONTROL_PLANE.lock();
    let mut testbed = Testbed::start(Options {
        audit: true,
        ..Options::default()
    })
    .expect("a control plane");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let local = tokio::task::LocalSet::new();
    let failed = local.block_on(&runtime.expect("a runtime"), async {
        let control_plane = control_plane(&testbed).await;
        let runs = cases
            .iter()
            .map(|case| run_one(case.name, |namespace| (case.run)(namespace), &control_plane));
        let mut failed: Vec<&str> = stream::iter(runs)
            .buffer_unordered(N_AT_ONCE)
            .filter_map(async |failed| failed)
            .collect()
            .await;
        if with_outage {
            let outage = run_one(
                OUTAGE,
                |namespace| outage::away(&mut testbed, namespace),
                &control_plane,
            );
            failed.extend(outage.await);
        }
        failed
    });
    testbed.stop().expect("everything stops");
    assert!(failed.is_empty(), "failed: {failed:?}");
}

/// The name of the case, if it failed.
async fn run_one<Running: Future<Output = ()>>(
    name: &'static str,
    run: impl FnOnce(Namespace) -> Running,
    control_plane: &Rc<ControlPlane>,
) -> Option<&'static str> {
    let begun = Instant::now();
    let namespace = Namespace::create_for(name, Rc::clone(control_plane)).await;
    let case = tokio::time::timeout(CASE_DURATION_MAX, run(namespace));
    let outcome = AssertUnwindSafe(case).catch_unwind().await;
    let is_ok = matches!(outcome, Ok(Ok(())));
    let seconds = begun.elapsed().as_secs_f64();
    if is_ok {
        eprintln!("ok      {name} in {seconds:.1} s");
    } else {
        eprintln!("FAILED  {name} after {seconds:.1} s: {}", reason(outcome));
    }
    (!is_ok).then_some(name)
}

/// Why a case failed, in one line that stands beside its name.
fn reason(outcome: Result<Result<(), Elapsed>, Box<dyn Any + Send>>) -> String {
    match outcome {
        Ok(_) => format!("not done after {CASE_DURATION_MAX:?}"),
        Err(panic) => match panic.downcast::<String>() {
            Ok(text) => *text,
            Err(panic) => panic
                .downcast::<&str>()
                .map_or_else(|_| "a panic".to_owned(), |text| (*text).to_owned()),
        },
    }
}

/// How many slots a case goes through: one shows what happens to it, another that all goes on.
fn n_slots() -> i64 {
    if std::env::var("CRONWHEEL_REPLICAS").unwrap_or_default().is_empty() {
        1
    } else {
        2
    }
}
