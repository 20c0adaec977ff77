//! Rounds of bursts in turn: `CronJobs` that are all due at a whole minute, and between two of these the very same
//! creates by a bare client. So both meet the same server in the same minute, and their ratio is the controller's own.

use std::{
    collections::BTreeMap,
    fmt::{self, Display, Formatter},
    path::Path,
};

use anyhow::Context as _;
use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams},
};
use serde_json::{Value, json};

use super::{client, create_between_slots, progress, sleep_until, whole_audit_log};
use crate::{
    audit::Request,
    bare_client::{BareClient, PreparedJob},
    controller::{Candidate, Controller},
    generator::{CronJobName, Load},
    measure,
    slots::Slots,
    target::Target,
};

/// When the bare client has its turn: the controller has written its statuses and Events by then, and its Jobs have ended.
const BARE_AFTER_SLOT: [SignedDuration; 2] = [SignedDuration::from_secs(22), SignedDuration::from_secs(41)];

/// How long after that its Jobs have ended and are deleted.
const DELETE_AFTER: SignedDuration = SignedDuration::from_secs(8);

/// Marks the Jobs of the bare client.
const LABEL: &str = "cronwheel.dev/bare";

/// An owner that no controller knows, so that the Jobs are nobody's.
const FOREIGN_OWNER: &str = "00000000-0000-4000-8000-000000000000";

/// What to run.
#[derive(Clone, Debug)]
pub(crate) struct Burst {
    pub(crate) load: Load,
    pub(crate) candidate: Candidate,
    /// Minutes that are measured, after one to warm up.
    pub(crate) n_minutes: u32,
    /// How many requests the bare client has in flight, in turn.
    pub(crate) in_flight: Vec<usize>,
}

/// One round of the bare client.
struct BareRound {
    number: usize,
    n_in_flight: usize,
    begun: Timestamp,
}

/// What one run has shown: seconds from the instant to the answer to the last create.
#[derive(Debug)]
pub(crate) struct BurstReport {
    machine: String,
    n_cron_jobs: u32,
    controller: Vec<f64>,
    /// By requests in flight.
    bare: BTreeMap<usize, Vec<f64>>,
    /// Other writes of the controller while the bare client had its turns.
    n_beside_bare: usize,
}

impl Burst {
    /// Runs it on `target`.
    pub(crate) async fn run(&self, target: &mut Target, scratch: &Path) -> anyhow::Result<BurstReport> {
        target.kubectl().apply(&self.load.namespaces_manifest())?;
        let controller = Controller::start(&self.candidate, target, scratch).await?;
        let user = controller.user();
        let bare = BareClient::connect(&target.candidate_kubeconfig(scratch)?).await?;
        let first_slot = create_between_slots(&self.load, target).await?;
        let slots = Slots::starting_at(first_slot.start(), 1, self.n_minutes);
        progress(&format!("first burst {}", slots.first().start()));
        let template = self.template(target)?;
        let admin = client(target.kubeconfig()).await?;
        let mut rounds: Vec<BareRound> = Vec::new();
        for slot in slots.all() {
            for after in BARE_AFTER_SLOT {
                let number = rounds.len();
                // Turned by one each time around, so that none always has the same place in its minute.
                let n_turns = self.in_flight.len();
                let n_in_flight = self.in_flight[(number + number / n_turns) % n_turns];
                let jobs = self.prepared(&template, number);
                sleep_until(slot.start() + after).await;
                let begun = Timestamp::now();
                bare.create(&jobs, n_in_flight).await?;
                rounds.push(BareRound {
                    number,
                    n_in_flight,
                    begun,
                });
                sleep_until(begun + DELETE_AFTER).await;
                self.delete_bare(&admin).await?;
            }
        }
        let requests = whole_audit_log(target, &user).await?;
        controller.stop(target).await?;
        target.check_audit_log()?;
        self.report(target, &slots, &rounds, &requests)
    }

    /// The bodies that the controller would send, under other names and of an owner that is not there.
    fn prepared(&self, template: &Value, round: usize) -> Vec<PreparedJob> {
        let of = |cron_job: CronJobName| {
            let owner = json!({"apiVersion": "batch/v1", "kind": "CronJob", "name": cron_job.name, "uid": FOREIGN_OWNER,
                "controller": true, "blockOwnerDeletion": true});
            let metadata = json!({"name": bare_name(round, &cron_job.name), "labels": {LABEL: "true"},
                "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-01-01T00:00:00Z"},
                "ownerReferences": [owner]});
            let body = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": template["spec"]});
            PreparedJob {
                namespace: cron_job.namespace,
                body: Bytes::from(body.to_string()),
            }
        };
        self.load.cron_jobs().into_iter().map(of).collect()
    }

    /// The template of all `CronJobs`, with what the server adds to it.
    fn template(&self, target: &Target) -> anyhow::Result<Value> {
        let first = self
            .load
            .cron_jobs()
            .into_iter()
            .next()
            .context("there is no CronJob")?;
        let text = target.kubectl().run(&[
            "get",
            "cronjob",
            &first.name,
            "--namespace",
            &first.namespace,
            "--output=json",
        ])?;
        let mut object: Value = serde_json::from_str(&text)?;
        Ok(object["spec"]["jobTemplate"].take())
    }

    async fn delete_bare(&self, admin: &Client) -> anyhow::Result<()> {
        let ours = ListParams::default().labels(LABEL);
        for namespace in self.load.namespaces() {
            let jobs: Api<Job> = Api::namespaced(admin.clone(), &namespace);
            jobs.delete_collection(&DeleteParams::background(), &ours).await?;
        }
        Ok(())
    }

    fn report(
        &self,
        target: &Target,
        slots: &Slots,
        rounds: &[BareRound],
        requests: &[Request],
    ) -> anyhow::Result<BurstReport> {
        let created: BTreeMap<&str, Timestamp> = requests
            .iter()
            .filter(|request| request.is_job_create())
            .map(|request| (request.name.as_str(), request.answered))
            .collect();
        let names: Vec<String> = self.load.cron_jobs().into_iter().map(|one| one.name).collect();
        let last = |name_of: &dyn Fn(&str) -> String, begun: Timestamp| {
            let answers = names.iter().map(|name| created.get(name_of(name).as_str()).copied());
            let last = answers.collect::<Option<Vec<_>>>()?.into_iter().max()?;
            Some(last.duration_since(begun).as_secs_f64())
        };
        // What else was asked for meanwhile: nothing, or the bare client did not have the server for itself.
        let n_beside = |begun: Timestamp, seconds: f64| {
            let end = begun.as_duration().as_secs_f64() + seconds;
            let is_meanwhile = |request: &&Request| {
                let received = request.received.as_duration().as_secs_f64();
                begun <= request.received && received < end && request.is_write() && !request.is_job_create()
            };
            requests.iter().filter(is_meanwhile).count()
        };
        let mut n_beside_bare = 0;
        let mut controller = Vec::new();
        for slot in slots.all().filter(|slot| slots.is_measured(*slot)) {
            let seconds = last(&|name| slot.job_name(name), slot.start());
            controller.push(seconds.with_context(|| format!("a Job of {} is missing", slot.start()))?);
        }
        let mut bare: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        // Those of the first minute are for warming up too.
        for round in rounds.iter().skip(BARE_AFTER_SLOT.len()) {
            let seconds = last(&|name| bare_name(round.number, name), round.begun);
            let seconds = seconds.with_context(|| format!("a Job of bare round {} is missing", round.number))?;
            n_beside_bare += n_beside(round.begun, seconds);
            bare.entry(round.n_in_flight).or_default().push(seconds);
        }
        Ok(BurstReport {
            machine: measure::machine_line(target.kubectl(), self.candidate.program()),
            n_cron_jobs: self.load.n_cron_jobs,
            controller,
            bare,
            n_beside_bare,
        })
    }
}

fn bare_name(round: usize, name: &str) -> String {
    format!("bare-{round}-{name}")
}

impl BurstReport {
    /// The controller's time in relation to the bare client's at its best.
    fn ratio(&self) -> Option<f64> {
        let best = self
            .bare
            .values()
            .filter_map(|seconds| median(seconds))
            .min_by(f64::total_cmp)?;
        Some(median(&self.controller)? / best)
    }
}

fn median(seconds: &[f64]) -> Option<f64> {
    let mut sorted = seconds.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = *sorted.get(sorted.len().checked_sub(1)? / 2)?;
    Some(f64::midpoint(lower, upper))
}

impl Display for BurstReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.machine)?;
        writeln!(
            f,
            "{} creates at once, seconds until the last is answered",
            self.n_cron_jobs
        )?;
        let row = |f: &mut Formatter<'_>, name: &str, seconds: &[f64]| {
            let all: Vec<String> = seconds.iter().map(|one| format!("{one:.3}")).collect();
            let median = median(seconds).unwrap_or(f64::NAN);
            writeln!(f, "  {name:<20} median {median:.3} of {}", all.join(" "))
        };
        row(f, "controller", &self.controller)?;
        for (n_in_flight, seconds) in &self.bare {
            row(f, &format!("bare, {n_in_flight} in flight"), seconds)?;
        }
        writeln!(
            f,
            "  {} writes of the controller in the bare client's turns",
            self.n_beside_bare
        )?;
        if let Some(ratio) = self.ratio() {
            writeln!(f, "controller to the best of bare: {ratio:.2}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_of_medians_and_to_the_best_of_the_bare_client() {
        let report = BurstReport {
            machine: String::new(),
            n_cron_jobs: 1,
            controller: vec![1.2, 9.0, 1.0],
            bare: BTreeMap::from([(8, vec![2.0, 2.0]), (16, vec![0.9, 1.1, 1.0, 7.0]), (64, vec![1.5])]),
            n_beside_bare: 0,
        };
        assert!((report.ratio().unwrap() - 1.2 / 1.05).abs() < 1e-9);
        assert_eq!(median(&[]), None);
        assert!(
            report.to_string().contains("controller to the best of bare: 1.14"),
            "{report}"
        );
    }
}
