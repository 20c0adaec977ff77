//! Namespaces in which a quota refuses every Job for some minutes.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use anyhow::ensure;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    column::Column,
    figures::{Evidence, count, milliseconds},
};
use crate::{audit::Request, generator::SyntheticCronJob, target::Target};

/// The resource that the quota limits.
const LIMITED: &str = "count/jobs.batch";

/// Maximum wait until quotas are in force: the API server enforces a quota once its controller has recorded the usage.
const IN_FORCE_WAIT_MAX: Duration = Duration::from_secs(15);
const IN_FORCE_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The failing namespaces. Empty in other scenarios.
#[derive(Default)]
pub(super) struct FailingNamespaces {
    names: Vec<String>,
    cron_jobs: Vec<SyntheticCronJob>,
    /// When the removal of the quotas began. The start of `kubectl` counts as recovery time.
    allowed: Option<Timestamp>,
}

impl FailingNamespaces {
    /// `cron_jobs` are those of all namespaces.
    pub(super) fn new(names: Vec<String>, mut cron_jobs: Vec<SyntheticCronJob>) -> FailingNamespaces {
        cron_jobs.retain(|one| names.contains(&one.namespace));
        FailingNamespaces {
            names,
            cron_jobs,
            allowed: None,
        }
    }

    /// Creates the quotas and waits until the API server enforces them.
    pub(super) async fn refuse_creates(&self, target: &Target) -> anyhow::Result<()> {
        target.kubectl().apply(&self.quotas())?;
        for _ in 0..IN_FORCE_WAIT_MAX.as_millis() / IN_FORCE_POLL_INTERVAL.as_millis() {
            let list = ["get", "resourcequotas", "--all-namespaces", "--output=json"];
            if self.n_in_force(&serde_json::from_str(&target.kubectl().run(&list)?)?) == self.names.len() {
                return Ok(());
            }
            tokio::time::sleep(IN_FORCE_POLL_INTERVAL).await;
        }
        anyhow::bail!("the quotas are not in force after {} s", IN_FORCE_WAIT_MAX.as_secs())
    }

    /// Deletes the quotas.
    pub(super) fn allow_creates(&mut self, target: &Target) -> anyhow::Result<()> {
        ensure!(self.allowed.is_none(), "creates are allowed already");
        self.allowed = Some(Timestamp::now());
        let delete = ["delete", "--wait=false", "--filename=-"];
        target.kubectl().run_with_input(&delete, &self.quotas())?;
        Ok(())
    }

    /// Whether every CronJob of these namespaces has started since creates are allowed.
    pub(super) fn have_recovered(&self, requests: &[Request]) -> bool {
        let Some(allowed) = self.allowed else {
            return self.names.is_empty();
        };
        let first_starts = first_starts(requests, allowed);
        self.cron_jobs.iter().all(|one| first_starts.contains_key(&key(one)))
    }

    /// The figures of the refusals. `evidence` is that of the minutes in which creates are refused.
    pub(super) fn columns(&self, evidence: &Evidence<'_>) -> BTreeMap<Column, f64> {
        let Some(allowed) = self.allowed else {
            return BTreeMap::new();
        };
        let refused_from = evidence.slots.first().start();
        let is_of_failing = |one: &&Request| {
            one.verb == "create"
                && one.resource == "jobs"
                && self.names.contains(&one.namespace)
                && (refused_from..allowed).contains(&one.received)
        };
        let n_creates = evidence.requests.iter().filter(is_of_failing).count();
        let seconds = allowed.duration_since(refused_from).as_secs_f64();
        let first_starts = first_starts(evidence.requests, allowed);
        let last_start = self
            .cron_jobs
            .iter()
            .map(|one| first_starts.get(&key(one)).copied().unwrap_or(evidence.end))
            .max()
            .unwrap_or(allowed);
        BTreeMap::from([
            (Column::CreatesPerSecondOfFailing, count(n_creates) / seconds),
            (Column::RecoveryMs, milliseconds(last_start.duration_since(allowed))),
        ])
    }

    fn quotas(&self) -> String {
        let quota = |namespace: &String| {
            json!({"apiVersion": "v1", "kind": "ResourceQuota",
                "metadata": {"name": "no-jobs", "namespace": namespace},
                "spec": {"hard": {LIMITED: "0"}}})
        };
        let items: Vec<Value> = self.names.iter().map(quota).collect();
        json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
    }

    /// The number of our quotas in a list that are in force.
    fn n_in_force(&self, list: &Value) -> usize {
        let quotas = list["items"].as_array().into_iter().flatten();
        let is_in_force = |quota: &&Value| {
            let namespace = quota["metadata"]["namespace"].as_str().unwrap_or_default();
            self.names.iter().any(|name| name == namespace) && quota["status"]["hard"][LIMITED].is_string()
        };
        quotas.filter(is_in_force).count()
    }
}

/// Namespace and name.
fn key(cron_job: &SyntheticCronJob) -> (&str, &str) {
    (&cron_job.namespace, &cron_job.name)
}

/// For each CronJob, the arrival of its first successful create since an instant.
fn first_starts(requests: &[Request], since: Timestamp) -> HashMap<(&str, &str), Timestamp> {
    let mut first_starts: HashMap<(&str, &str), Timestamp> = HashMap::new();
    for create in requests
        .iter()
        .filter(|one| one.is_job_create() && one.received >= since)
    {
        let first = first_starts
            .entry(super::figures::cron_job_of(create))
            .or_insert(create.received);
        *first = create.received.min(*first);
    }
    first_starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{generator::Load, slots::Slots};

    /// The first minute with refusals.
    const MINUTE: i64 = 100;

    fn at(milliseconds: i64) -> Timestamp {
        Timestamp::from_millisecond(MINUTE * 60_000 + milliseconds).unwrap()
    }

    fn create(namespace: &str, cron_job: &str, minute: i64, milliseconds: i64, code: u16) -> Request {
        Request {
            verb: "create".into(),
            resource: "jobs".into(),
            namespace: namespace.into(),
            name: format!("{cron_job}-{minute}"),
            code,
            received: at(milliseconds),
            answered: at(milliseconds),
        }
    }

    /// Two CronJobs of the failing namespace and one of another, whose refusals end after 30 s.
    fn requests() -> Vec<Request> {
        vec![
            create("run-0", "load-00002", 99, -60_000, 201),
            create("run-0", "load-00000", 100, 5, 403),
            create("run-1", "load-00001", 100, 130, 201),
            create("run-0", "load-00002", 100, 5, 403),
            create("run-0", "load-00002", 100, 10_000, 403),
            create("run-0", "load-00000", 100, 30_100, 403),
            create("run-0", "load-00000", 100, 31_500, 201),
            create("run-0", "load-00000", 101, 60_000, 201),
        ]
    }

    fn failing() -> FailingNamespaces {
        let cron_jobs = Load::minutely("run".into(), 3, 2, 3).cron_jobs();
        FailingNamespaces {
            allowed: Some(at(30_000)),
            ..FailingNamespaces::new(vec!["run-0".into()], cron_jobs)
        }
    }

    fn columns(failing: &FailingNamespaces, requests: &[Request]) -> BTreeMap<Column, f64> {
        let mut cron_jobs = Load::minutely("run".into(), 3, 2, 3).cron_jobs();
        cron_jobs.retain(|one| one.namespace == "run-1");
        let evidence = Evidence {
            cron_jobs: &cron_jobs,
            slots: &Slots::starting_at(at(0), 0, 1),
            requests,
            has_audit_log: true,
            end: at(90_000),
            window: (at(0), at(60_000)),
            cpu: Duration::from_millis(10),
            peak_memory_kib: 2_048,
        };
        failing.columns(&evidence)
    }

    #[test]
    fn refused_creates_and_recovery_time_are_measured() {
        let mut requests = requests();
        requests.push(create("run-0", "load-00002", 100, 34_000, 201));
        assert!(failing().have_recovered(&requests));
        let expected = BTreeMap::from([
            // Three in thirty seconds.
            (Column::CreatesPerSecondOfFailing, 0.1),
            (Column::RecoveryMs, 4_000.0),
        ]);
        assert_eq!(columns(&failing(), &requests), expected);
    }

    #[test]
    fn cron_job_that_never_starts_recovers_at_the_end() {
        assert!(!failing().have_recovered(&requests()));
        assert_eq!(
            columns(&failing(), &requests()).get(&Column::RecoveryMs),
            Some(&60_000.0)
        );
    }

    #[test]
    fn other_scenarios_have_no_refusals() {
        let none = FailingNamespaces::default();
        assert!(none.have_recovered(&requests()));
        assert!(columns(&none, &requests()).is_empty());
    }

    #[test]
    fn quota_is_in_force_once_its_status_has_the_limit() {
        let mut quotas: Value = serde_json::from_str(&failing().quotas()).unwrap();
        assert_eq!(quotas["items"][0]["metadata"]["namespace"], "run-0");
        assert_eq!(failing().n_in_force(&quotas), 0);
        quotas["items"][0]["status"]["hard"][LIMITED] = json!("0");
        assert_eq!(failing().n_in_force(&quotas), 1);
        quotas["items"][0]["metadata"]["namespace"] = json!("other");
        assert_eq!(failing().n_in_force(&quotas), 0);
    }
}
