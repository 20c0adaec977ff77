//! The options of the CronJobs of a random fleet, and the runs that users ask for. Other fleets have none.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::{
    cluster::Fleet,
    load::{Plan, Policy},
    oracle::{AFTERMATH, Allowances, extend_aftermath},
    pod::NAMESPACE,
    records::{CronJob, Job},
};
use crate::{
    naive_options::{CatchUp, MISSED_AFTER, spread_offset},
    random::Random,
};

/// The time in which the missed runs of a fleet start, by the pace of the installation, and in which the answer to a token
/// is stored, for which Replace waits.
const PACED_WITHIN: SignedDuration = SignedDuration::from_secs(20);

/// The maximum time that a create is in flight, and the tolerated deviation of a clock.
const IN_FLIGHT_MAX: SignedDuration = SignedDuration::from_secs(7);

/// The options of a CronJob.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PlanOptions {
    /// The time from a slot to its start.
    pub(super) offset: SignedDuration,
    pub(super) missed_runs: CatchUp,
}

/// A run that a user asked for.
#[derive(Clone, Debug)]
pub(super) struct AskedRun {
    pub(super) cron_job: String,
    pub(super) token: String,
    pub(super) at: Timestamp,
}

impl PlanOptions {
    /// The end of the time in which a slot can start: a later slot supersedes it, or it was missed.
    pub(super) fn chance_until(&self, plan: &Plan, start: Timestamp) -> Timestamp {
        match self.missed_runs {
            CatchUp::All(count) if plan.policy != Policy::Replace => {
                start + plan.period() * i32::try_from(count).unwrap()
            }
            CatchUp::Skip => start + plan.period().min(MISSED_AFTER),
            CatchUp::Latest | CatchUp::All(_) => start + plan.period(),
        }
    }

    /// Whether `skip` forbids a Job at an instant. A create may be in flight for seconds. Under Forbid, the slot may have
    /// waited for another Job.
    pub(super) fn is_missed(&self, plan: &Plan, start: Timestamp, created: Timestamp) -> bool {
        let last = start + MISSED_AFTER + IN_FLIGHT_MAX;
        self.missed_runs == CatchUp::Skip && plan.policy != Policy::Forbid && last < created
    }

    /// How much later a start may be because of options.
    pub(super) fn delay_max(&self, plan: &Plan, is_asked: bool) -> SignedDuration {
        let is_paced = matches!(self.missed_runs, CatchUp::All(_));
        if is_paced || is_asked && plan.policy == Policy::Replace {
            PACED_WITHIN
        } else {
            SignedDuration::ZERO
        }
    }
}

impl Fleet {
    /// Gives one in four CronJobs options.
    pub(super) async fn give_options(&self, random: &mut Random) {
        let plans: Vec<(String, String, Plan)> = {
            let records = self.records();
            let named = records.cron_jobs.iter();
            named
                .map(|(name, cron_job)| (name.clone(), cron_job.uid.clone(), cron_job.plan.clone()))
                .collect()
        };
        for (name, uid, plan) in plans {
            if !random.is_one_in(4) {
                continue;
            }
            let window = random.pick(&[0, 20, plan.minutes * 60 - 1]);
            let missed_runs = random.pick(&[CatchUp::Latest, CatchUp::Skip, CatchUp::All(2), CatchUp::All(10)]);
            let mut annotations = json!({"cronwheel.dev/missed-runs": missed_runs.text()});
            if window > 0 {
                annotations["cronwheel.dev/spread"] = json!(format!("{window}s"));
            }
            self.annotate(&name, &annotations).await;
            let options = PlanOptions {
                offset: spread_offset(&uid, window),
                missed_runs,
            };
            self.records().cron_jobs.get_mut(&name).unwrap().options = options;
        }
    }

    /// Asks for a run of a CronJob that nobody asked before.
    pub(super) async fn ask_for_a_run(&self, random: &mut Random) {
        let free: Vec<String> = {
            let records = self.records();
            let is_asked = |name: &&String| records.asked.iter().any(|asked| asked.cron_job == **name);
            records
                .cron_jobs
                .keys()
                .filter(|name| !is_asked(name))
                .cloned()
                .collect()
        };
        if free.is_empty() {
            return;
        }
        let cron_job = free[random.below(free.len())].clone();
        let token = format!("ask-{}", random.below(1_000));
        self.annotate(&cron_job, &json!({"cronwheel.dev/run-now": token})).await;
        let at = self.now();
        self.records().asked.push(AskedRun { cron_job, token, at });
    }

    async fn annotate(&self, cron_job: &str, annotations: &serde_json::Value) {
        let url = format!("/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs/{cron_job}");
        let patch = json!({"metadata": {"annotations": annotations}});
        self.request("PATCH", &url, &patch).await.unwrap();
    }
}

/// Every run that was asked for starts once. The oracle judges its second start and its overlaps with the other Jobs.
pub(super) fn judge_asked(
    asked: &AskedRun,
    cron_job: &CronJob,
    jobs: &[&Job],
    allowances: &Allowances,
    problems: &mut Vec<String>,
) {
    let of_disruptions = allowances
        .late
        .iter()
        .filter(|(from, until)| (*from..*until).contains(&asked.at));
    let soon = of_disruptions
        .map(|(_, until)| *until)
        .max()
        .unwrap_or(asked.at)
        .max(asked.at);
    let by = extend_aftermath(soon, &allowances.disruptions) + AFTERMATH + PACED_WITHIN;
    let name = &asked.cron_job;
    match jobs.iter().find(|job| job.token.as_ref() == Some(&asked.token)) {
        Some(job) if job.created > by => {
            problems.push(format!(
                "{}: created at {}, asked for at {}, not by {by}",
                job.name, job.created, asked.at
            ));
        }
        Some(_) => {}
        None => {
            // Forbid refuses it while a Job runs.
            let ran = |job: &&Job| job.created <= by && job.ended.is_none_or(|ended| ended >= asked.at);
            let is_refused = cron_job.plan.policy == Policy::Forbid && jobs.iter().any(ran);
            if !is_refused && by <= allowances.end {
                problems.push(format!("{name}: no run for {}, asked for at {}", asked.token, asked.at));
            }
        }
    }
}
