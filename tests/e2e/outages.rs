//! The controller during failures of the API server or etcd. One case runs at a time, because each makes a component
//! unavailable for all. It restores the control plane afterwards.

mod api_server;
mod compaction;
mod etcd_away;
mod restore;
mod storm;

use std::{pin::Pin, time::Duration};

use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use kube::api::ListParams;
use libtest_mimic::Trial;
use serde_json::{Value, json};
use testbed::Testbed;

use crate::{
    account::permit_leases,
    audit::Audit,
    block_on,
    control_plane::{Purpose, take},
    controller::Controller,
    kubernetes::{ControlPlane, Namespace, job_name, wait},
};

type Run<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

struct Outage {
    name: &'static str,
    run: for<'a> fn(&'a mut Testbed, Namespace) -> Run<'a>,
}

macro_rules! outages {
    ($($module:ident :: $case:ident),* $(,)?) => {
        [$(Outage {
            name: concat!("outages::", stringify!($case)),
            run: |testbed, namespace| Box::pin($module::$case(testbed, namespace)),
        }),*]
    };
}

const DURATION_MAX: Duration = Duration::from_secs(90);

/// Time to list and to cause the outage before the minute.
const LEAD: SignedDuration = SignedDuration::from_secs(6);

pub(super) fn trials() -> impl Iterator<Item = Trial> {
    let outages = outages![
        api_server::api_server_outage_at_a_slot_starts_each_run_once,
        api_server::api_server_kill_in_a_burst_starts_each_run_once,
        compaction::changes_during_an_outage_are_seen_after_the_watch_expired,
        etcd_away::etcd_outage_of_twenty_seconds_starts_each_run_once,
        restore::cron_job_restored_with_etcd_runs_after_a_restart,
        storm::storm_of_429_responses_loses_no_run,
    ];
    outages.into_iter().map(|Outage { name, run }| {
        Trial::test(name, move || {
            take(Purpose::Outages, |testbed, access| {
                block_on(DURATION_MAX, async {
                    let namespace = Namespace::create_for(name, ControlPlane::connect(access).await).await;
                    permit_leases(&namespace).await;
                    run(testbed, namespace).await;
                });
            });
            Ok(())
        })
    })
}

/// CronJobs that are next due at the slot of the first minute.
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

    /// Starts a controller and waits until it leads every shard, before the slot.
    async fn start_controller(&self) -> Controller {
        let controller = Controller::start_at(&self.namespace, self.slot() - LEAD, &[]);
        controller.wait_until_leading().await;
        assert_eq!(
            controller.metric("cronwheel_due_instants_total", &[]).await,
            Some(0),
            "too late"
        );
        controller
    }

    /// Waits until the slot is due, while none of its instants has ended.
    async fn wait_until_due(&self, controller: &Controller) {
        let n = self.len();
        controller
            .wait_for_metric("cronwheel_instants_open", &[], |n_open| n_open == n)
            .await;
    }

    /// Waits until each slot has its Job according to the controller's counts, the Jobs and the cursors. Then stops the
    /// controller, and asserts that the audit log shows no Job created twice.
    async fn assert_each_started_once(&self, controller: Controller) {
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
        // Requests in flight have ended with the controller.
        self.namespace.wait_for_jobs(&names).await;
        Audit::read(&self.namespace).await.assert_no_job_created_twice();
    }
}
