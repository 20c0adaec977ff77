//! The controller while the API server or etcd fails, on a control plane of its own: one case after the other, since
//! each takes something away from all. A case leaves the control plane as it found it.

mod api_server;
mod compaction;
mod etcd_away;
mod restore;
mod storm;

use std::{
    future::Future,
    panic::AssertUnwindSafe,
    pin::Pin,
    time::{Duration, Instant},
};

use futures::{FutureExt as _, future::join_all};
use jiff::{SignedDuration, Timestamp};
use kube::api::ListParams;
use serde_json::{Value, json};
use testbed::{JobLife, Options, Testbed};

use super::{
    ONE_CONTROL_PLANE,
    audit::Audit,
    control_plane,
    controller::Controller,
    installing::permit_leases,
    kubernetes::{Namespace, job_name, wait},
    selected,
};

type Run<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;
type Outage = (&'static str, for<'a> fn(&'a mut Testbed, Namespace) -> Run<'a>);

macro_rules! outages {
    ($($module:ident :: $case:ident),* $(,)?) => {
        &[$((stringify!($case), |testbed, namespace| Box::pin($module::$case(testbed, namespace)))),*]
    };
}

const OUTAGES: &[Outage] = outages![
    api_server::an_api_server_away_at_the_minute_finds_its_slots_started_once,
    api_server::an_api_server_killed_in_a_burst_leaves_no_slot_out_and_none_twice,
    compaction::what_changed_unseen_is_seen_when_the_watch_has_expired,
    etcd_away::etcd_away_for_twenty_seconds_leaves_no_slot_out_and_none_twice,
    restore::after_a_restore_of_etcd_a_cron_job_that_came_back_runs_without_a_restart,
    storm::a_storm_of_429_is_waited_out_and_costs_no_run,
];

const OUTAGE_DURATION_MAX: Duration = Duration::from_secs(90);

/// Time to list and to bring the outage about before the minute comes.
const LEAD: SignedDuration = SignedDuration::from_secs(6);

#[test]
fn while_the_control_plane_fails() {
    let cases: Vec<&Outage> = OUTAGES.iter().filter(|(name, _)| selected(name)).collect();
    if cases.is_empty() {
        return;
    }
    let options = Options {
        jobs: JobLife::None,
        audit: true,
        ..Options::default()
    };
    let _alone = ONE_CONTROL_PLANE.lock();
    let mut testbed = Testbed::start(options).expect("a control plane");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let is_fine = runtime.block_on(run_all(&cases, &mut testbed));
    testbed.stop().expect("everything stops");
    assert!(is_fine, "see above");
}

/// The first failure is the last: what it left of the control plane is not fit for another case.
async fn run_all(cases: &[&Outage], testbed: &mut Testbed) -> bool {
    let control_plane = control_plane(testbed).await;
    for (name, run) in cases {
        let begun = Instant::now();
        let namespace = Namespace::create_for(name, control_plane.clone()).await;
        permit_leases(&namespace).await;
        let case = tokio::time::timeout(OUTAGE_DURATION_MAX, run(testbed, namespace));
        let outcome = AssertUnwindSafe(case).catch_unwind().await;
        let seconds = begun.elapsed().as_secs_f64();
        if matches!(outcome, Ok(Ok(()))) {
            eprintln!("ok      {name} in {seconds:.1} s");
        } else {
            eprintln!("FAILED  {name} after {seconds:.1} s: {outcome:?}");
            return false;
        }
    }
    true
}

/// CronJobs whose slot of the first minute is the next to start.
struct Fleet {
    namespace: Namespace,
    cron_jobs: Vec<String>,
}

impl Fleet {
    async fn create(namespace: Namespace, n_cron_jobs: usize) -> Fleet {
        let cron_jobs: Vec<String> = (0..n_cron_jobs).map(|number| format!("hello-{number:03}")).collect();
        let before = namespace.minute(-1);
        for some in cron_jobs.chunks(20) {
            join_all(some.iter().map(async |name| {
                namespace
                    .create_cron_job(json!({}), json!({"metadata": {"name": name}}))
                    .await;
                namespace.set_last_run(name, before).await;
            }))
            .await;
        }
        Fleet { namespace, cron_jobs }
    }

    fn len(&self) -> u64 {
        self.cron_jobs.len().try_into().expect("a number")
    }

    fn slot(&self) -> Timestamp {
        self.namespace.minute(0)
    }

    /// A controller that has listed, with the slot still to come.
    async fn start_controller(&self) -> Controller {
        let controller = Controller::start_at(&self.namespace, self.slot() - LEAD, &[]);
        controller.wait_until_ready().await;
        assert_eq!(
            controller.metric("cronwheel_due_instants_total", &[]).await,
            Some(0),
            "too late"
        );
        controller
    }

    /// Waits until the slot has come, and nothing of it has ended.
    async fn wait_until_due(&self, controller: &Controller) {
        let n = self.len();
        controller
            .wait_for_metric("cronwheel_instants_open", &[], |n_open| n_open == n)
            .await;
    }

    /// Waits until each slot has its Job by the controller's account, by the Jobs and by the cursors, ends the
    /// controller, and demands of the audit log that no Job was made twice.
    async fn demand_each_started_once(&self, controller: Controller) {
        controller.wait_until_started(self.len()).await;
        let names: Vec<String> = self.cron_jobs.iter().map(|name| job_name(name, self.slot())).collect();
        self.namespace.wait_for_jobs(&names).await;
        let slot = self.slot().to_string();
        let are_stored = async || {
            let list = self.namespace.api("CronJob").list(&ListParams::default()).await;
            let is_stored = |status: &Value| status["lastScheduleTime"] == *slot && status["active"].is_array();
            list.expect("CronJobs")
                .iter()
                .all(|object| is_stored(&object.data["status"]))
        };
        assert!(wait(are_stored).await, "not all cursors are at {slot}");
        controller.terminate().await;
        // What was on its way has come to its end with the controller.
        self.namespace.wait_for_jobs(&names).await;
        Audit::read(&self.namespace).await.demand_no_job_twice();
    }
}
