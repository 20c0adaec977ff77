//! Alternates bursts of CronJobs that are all due at one instant with the same creates by a bare client. Both use the
//! same server at nearly the same time, so their ratio depends only on the controller.

mod report;

use std::{
    collections::BTreeMap,
    path::Path,
    time::{Duration, Instant},
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

pub(crate) use self::report::{BurstReport, quoted};
use super::{client, create_between_slots, progress, sleep_until, whole_audit_log};
use crate::{
    audit::Request,
    bare_client::{BareClient, PreparedJob},
    controller::{Candidate, Controller},
    generator::{Load, SyntheticCronJob, Variety},
    slots::{Due, Slot, Slots},
    target::Target,
};

/// The earliest start of the bare client's first turn after the instant. The Jobs have completed by then.
const BARE_AFTER_SLOT: SignedDuration = SignedDuration::from_secs(12);

/// The controller has finished its status and Event writes when it has sent no writes for this long.
const QUIET: Duration = Duration::from_secs(2);

/// How long after the bare client's last create its Jobs have completed and are deleted.
const DELETE_AFTER: Duration = Duration::from_secs(6);

/// The time that is kept free before an instant.
const MARGIN: Duration = Duration::from_secs(6);

/// The initial estimate for a turn of the bare client, per thousand creates.
const BARE_TURN: Duration = Duration::from_secs(12);

/// Marks the Jobs of the bare client.
const LABEL: &str = "cronwheel.dev/bare";

/// The uid of an owner that does not exist, so that no controller adopts the Jobs.
const FOREIGN_OWNER: &str = "00000000-0000-4000-8000-000000000000";

/// The parameters of a run.
#[derive(Clone, Debug)]
pub(crate) struct Burst {
    pub(crate) load: Load,
    pub(crate) candidate: Candidate,
    /// The number of measured bursts, after one warm-up burst.
    pub(crate) n_bursts: u32,
    /// Minutes between bursts.
    pub(crate) period_minutes: u32,
    /// The numbers of requests that the bare client keeps in flight, in turn.
    pub(crate) in_flight: Vec<usize>,
}

/// A turn of the bare client.
struct BareRound {
    number: usize,
    n_in_flight: usize,
    begun: Timestamp,
}

/// Returns how many minutes this many creates need between bursts, with two turns of the bare client in between.
pub(crate) fn period_minutes(n_cron_jobs: u32) -> u32 {
    match n_cron_jobs {
        ..=1_000 => 1,
        1_001..=2_500 => 2,
        _ => 5,
    }
}

/// A load whose CronJobs are all due at the same instant, once per period.
pub(crate) fn load(run_id: String, n_cron_jobs: u32, period_minutes: u32) -> Load {
    Load {
        variety: Variety::Same(Due::EveryMinutes(period_minutes)),
        spread: None,
        ..Load::minutely(run_id, n_cron_jobs, 5, 3)
    }
}

impl Burst {
    /// Runs the scenario on `target`.
    pub(crate) async fn run(&self, target: &mut Target, scratch: &Path) -> anyhow::Result<BurstReport> {
        target.kubectl().apply(&self.load.namespaces_manifest())?;
        let controller = Controller::start(&self.candidate, target, scratch).await?;
        let user = controller.user();
        let bare = BareClient::connect(&target.candidate_kubeconfig(scratch)?).await?;
        let bursts = self.bursts(create_between_slots(&self.load, target).await?);
        let template = self.template(target)?;
        let admin = client(target.kubeconfig()).await?;
        let mut rounds: Vec<BareRound> = Vec::new();
        // Turns in the warm-up are discarded.
        let mut n_warm_up_rounds = 0;
        for (number, slot) in bursts.iter().enumerate() {
            progress(&format!("burst {number} of {} at {}", self.n_bursts, slot.start()));
            let next = slot.start() + SignedDuration::from_mins(i64::from(self.period_minutes));
            sleep_until(slot.start() + BARE_AFTER_SLOT).await;
            let mut turn = BARE_TURN * self.load.n_cron_jobs.div_ceil(1_000);
            for _ in &self.in_flight {
                // On a slow machine the controller may write until the next burst. Then the bare client has no turn.
                let is_quiet = wait_until_quiet(target, &user, next - turn - MARGIN).await?;
                if !is_quiet {
                    break;
                }
                let begun = Instant::now();
                rounds.push(self.bare_round(&bare, &template, rounds.len(), &admin).await?);
                turn = begun.elapsed();
            }
            if number == 0 {
                anyhow::ensure!(
                    !rounds.is_empty(),
                    "the controller wrote until the next burst, so the bare client had no turn: choose a longer --period-minutes than {}",
                    self.period_minutes
                );
                n_warm_up_rounds = rounds.len();
            }
        }
        controller.stop(target).await?;
        let requests = whole_audit_log(target, &user).await?;
        target.check_audit_log()?;
        self.report(target, &bursts[1..], &rounds[n_warm_up_rounds..], &requests)
    }

    /// The instants of all bursts, starting with the warm-up.
    fn bursts(&self, first: Slot) -> Vec<Slot> {
        let slots = Slots::starting_at(first.start(), 0, self.period_minutes * (self.n_bursts + 2));
        let is_due = |slot: &Slot| Due::EveryMinutes(self.period_minutes).is_at(*slot);
        let n_bursts = usize::try_from(self.n_bursts).unwrap_or_default() + 1;
        slots.all().filter(is_due).take(n_bursts).collect()
    }

    /// Runs one turn of the bare client, and deletes its Jobs.
    async fn bare_round(
        &self,
        bare: &BareClient,
        template: &Value,
        number: usize,
        admin: &Client,
    ) -> anyhow::Result<BareRound> {
        // The order is rotated each time, so that no number always has the same position after a burst.
        let n_turns = self.in_flight.len();
        let n_in_flight = self.in_flight[(number + number / n_turns) % n_turns];
        let jobs = self.prepared(template, number);
        let begun = Timestamp::now();
        bare.create(&jobs, n_in_flight).await?;
        tokio::time::sleep(DELETE_AFTER).await;
        self.delete_bare(admin).await?;
        Ok(BareRound {
            number,
            n_in_flight,
            begun,
        })
    }

    /// The bodies that the controller would send, with other names and an owner that does not exist.
    fn prepared(&self, template: &Value, round: usize) -> Vec<PreparedJob> {
        let of = |cron_job: SyntheticCronJob| {
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

    /// The template of all CronJobs, with the defaults that the server adds.
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
        bursts: &[Slot],
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
        let mut n_beside_bare = 0;
        let mut controller = Vec::new();
        for slot in bursts {
            let seconds = last(&|name| slot.job_name(name), slot.start());
            controller.push(seconds.with_context(|| format!("a Job of {} is missing", slot.start()))?);
        }
        let mut bare: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for round in rounds {
            let seconds = last(&|name| bare_name(round.number, name), round.begun);
            let seconds = seconds.with_context(|| format!("a Job of bare round {} is missing", round.number))?;
            n_beside_bare += n_writes_beside(requests, round.begun, seconds);
            bare.entry(round.n_in_flight).or_default().push(seconds);
        }
        Ok(BurstReport::new(
            target,
            &self.candidate,
            self.load.n_cron_jobs,
            controller,
            bare,
            n_beside_bare,
        ))
    }
}

/// Waits until the controller has nothing to write. Returns whether that happened before `end`.
async fn wait_until_quiet(target: &Target, user: &str, end: Timestamp) -> anyhow::Result<bool> {
    let n_writes = || anyhow::Ok(target.requests(user)?.iter().filter(|one| is_work(one)).count());
    let mut before = n_writes()?;
    while Timestamp::now() + QUIET < end {
        tokio::time::sleep(QUIET).await;
        let now = n_writes()?;
        if now == before {
            return Ok(Timestamp::now() < end);
        }
        before = now;
    }
    Ok(false)
}

/// Leases are renewed for as long as a controller runs, so they do not count.
fn is_work(request: &Request) -> bool {
    request.is_write() && request.resource != "leases"
}

/// The number of other writes in this period. If there are any, the bare client was not alone on the server.
fn n_writes_beside(requests: &[Request], begun: Timestamp, seconds: f64) -> usize {
    let end = begun.as_duration().as_secs_f64() + seconds;
    let is_meanwhile = |request: &&Request| {
        let received = request.received.as_duration().as_secs_f64();
        begun <= request.received && received < end && request.is_write() && !request.is_job_create()
    };
    requests.iter().filter(is_meanwhile).count()
}

fn bare_name(round: usize, name: &str) -> String {
    format!("bare-{round}-{name}")
}
