//! Measures how long shards take to change hands while replicas run minutely CronJobs. Replicas are replaced at every
//! part of the minute, killed and restarted, and killed for good.

pub(super) mod fleet;
mod foreign_jobs;
mod lease_probe;
pub(crate) mod table;

use std::{path::Path, path::PathBuf, time::Duration};

use jiff::{SignedDuration, Timestamp};
use testbed::{
    Kubectl,
    replica::N_SHARDS,
    replica::turns::{Handover, handovers},
};

use self::{
    fleet::Fleet,
    lease_probe::{LeaseProbe, PROBE_LEASE},
    table::{Drain, HandoverReport},
};
use super::{client, create_between_slots, progress, sleep_until, whole_audit_log};
use crate::{
    audit::Request,
    bare_client::BareClient,
    generator::Load,
    measure,
    slots::{Slot, Slots},
    target::Target,
    tracker::{JobNames, Tally},
};

/// The flow schema that gives Lease requests their priority, as installed in production.
pub(super) const FLOW_SCHEMA: &str = include_str!("../../../deploy/manifests/flow-schema.yaml");

/// Seconds after the start of a pass at which a replica is drained. They cover each part of the minute once, including
/// the full minute. The next replica starts between two drains.
const DRAIN_SECONDS: [i64; 10] = [0, 12, 24, 36, 48, 66, 78, 90, 102, 114];

/// The lead time of a pass before its first minute: the first replica starts in it.
const PASS_LEAD: SignedDuration = SignedDuration::from_secs(15);

/// Seconds of the minute at which replicas are killed and restarted at once.
const KILL_SECONDS: [i64; 3] = [20, 40, 58];

/// The number of replicas that are killed for good.
const N_LOST: usize = 2;

/// The period in which Lease writes are counted.
const REST: SignedDuration = SignedDuration::from_secs(60);

/// After the settle window, replicas rebalance shards, eight per donor at a time.
pub(super) const EVEN_WAIT: Duration = Duration::from_secs(30);

/// How long after the last slot a Job may be created before it counts as missed.
const SETTLE_MAX: SignedDuration = SignedDuration::from_secs(60);

/// The parameters of a run.
#[derive(Clone, Debug)]
pub(crate) struct Handovers {
    pub(crate) load: Load,
    /// The number of Jobs that belong to no CronJob.
    pub(crate) n_foreign_jobs: u32,
    /// The executable of cronwheel.
    pub(crate) program: PathBuf,
    pub(crate) n_replicas: usize,
    /// How often a drain happens in each part of the minute.
    pub(crate) n_passes: u32,
}

impl Handovers {
    /// Runs the scenario on `target`. `scratch` is a temporary folder.
    pub(crate) async fn run(&self, target: &mut Target, scratch: &Path) -> anyhow::Result<HandoverReport> {
        let kubectl = target.kubectl().clone();
        kubectl.apply(&self.load.namespaces_manifest())?;
        self.create_foreign_jobs(target).await?;
        let kubeconfig = target.candidate_kubeconfig(scratch)?;
        kubectl.apply(FLOW_SCHEMA)?;
        let mut fleet = Fleet::new(&self.program, &kubeconfig, scratch);
        let started_at = Timestamp::now();
        for _ in 0..self.n_replicas {
            fleet.add("r0")?;
        }
        let start = time_until_all_led(&fleet, started_at).await?;
        progress(&format!(
            "{} replicas lead all shards after {start:.1?}",
            self.n_replicas
        ));
        tokio::time::sleep(EVEN_WAIT).await;
        let first_slot = create_between_slots(&self.load, target).await?;

        progress("counting Lease writes at rest");
        let rest_begin = first_slot.start() + SignedDuration::from_secs(10);
        sleep_until(rest_begin + REST).await;

        let drains_begin = Timestamp::now();
        let probe = LeaseProbe::begin(BareClient::connect(&kubeconfig).await?).await?;
        let drains = self.drain_all(&mut fleet).await?;
        let lease_writes = probe.end().await?;
        let drains_end = Timestamp::now();
        tokio::time::sleep(EVEN_WAIT).await;
        let restarted = restart_some(&mut fleet).await?;
        let lost = lose_some(&mut fleet).await?;

        let last_slot = Slot::at_or_after(Timestamp::now());
        progress("waiting for the last Jobs");
        let slots = slots_between(first_slot, last_slot);
        let user = Target::candidate_user();
        self.settle(target, &user, &slots, last_slot).await?;
        let turns = fleet.end_all().await?;
        let requests = whole_audit_log(target, &user).await?;
        target.check_audit_log()?;
        let (all_handovers, n_without) = handovers(&turns);
        let is_of_drain = |handover: &Handover| (drains_begin..drains_end).contains(&handover.sealed);
        let (handovers, other_handovers) = all_handovers.into_iter().partition(is_of_drain);
        let tally = self.tally(&kubectl, &slots, &requests)?;
        Ok(HandoverReport {
            machine: measure::machine_line(&kubectl, Some(&self.program)),
            n_replicas: self.n_replicas,
            n_shards: N_SHARDS,
            n_cron_jobs: self.load.n_cron_jobs,
            n_foreign_jobs: self.n_foreign_jobs,
            start,
            handovers,
            other_handovers,
            n_without,
            lease_writes,
            drains,
            restarted,
            lost,
            rest_writes_per_second: writes_per_second(&requests, rest_begin),
            about_missed: requests_about(&tally.missed, &requests),
            tally,
        })
    }

    async fn create_foreign_jobs(&self, target: &Target) -> anyhow::Result<()> {
        if self.n_foreign_jobs == 0 {
            return Ok(());
        }
        progress(&format!(
            "creating {} Jobs that belong to no CronJob",
            self.n_foreign_jobs
        ));
        let run_id = &self.load.run_id;
        target.kubectl().apply(&foreign_jobs::namespace_manifest(run_id))?;
        let client = client(target.kubeconfig()).await?;
        foreign_jobs::create(client, run_id, self.n_foreign_jobs).await
    }

    /// Replaces replicas as rollouts do: a new one starts and is ready before an old one drains.
    async fn drain_all(&self, fleet: &mut Fleet) -> anyhow::Result<Vec<Drain>> {
        let mut drains = Vec::new();
        for _ in 0..self.n_passes {
            let begin = Slot::at_or_after(Timestamp::now() + PASS_LEAD).start();
            for seconds in DRAIN_SECONDS {
                let revision = format!("r{}", drains.len() / self.n_replicas + 1);
                let at = begin + SignedDuration::from_secs(seconds);
                // During the burst, the start would compete with the measured drain.
                sleep_until(at - SignedDuration::from_secs(9)).await;
                let new = fleet.add(&revision)?;
                fleet.wait_until_ready(new).await?;
                sleep_until(at).await;
                let drain = fleet.drain_oldest().await?;
                progress(&format!("drained at {} in {:.0?}", drain.requested, drain.took));
                drains.push(drain);
            }
        }
        Ok(drains)
    }

    fn tally(&self, kubectl: &Kubectl, slots: &Slots, requests: &[Request]) -> anyhow::Result<Tally> {
        let existing = existing_jobs(kubectl, &self.load)?;
        Ok(Tally::of(&self.load.cron_jobs(), slots, requests, &existing))
    }

    /// Waits until every Job was created, or until the time for late Jobs is over.
    async fn settle(&self, target: &Target, user: &str, slots: &Slots, last: Slot) -> anyhow::Result<()> {
        sleep_until(last.start() + SignedDuration::from_secs(5)).await;
        while Timestamp::now() < last.start() + SETTLE_MAX - SignedDuration::from_secs(10) {
            let requests = target.requests(user)?;
            if self.tally(target.kubectl(), slots, &requests)?.missed.is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
        Ok(())
    }
}

/// Returns the Jobs in the namespaces of a load.
pub(super) fn existing_jobs(kubectl: &Kubectl, load: &Load) -> anyhow::Result<JobNames> {
    let mut existing = JobNames::new();
    for namespace in load.namespaces() {
        let names = kubectl.run(&["get", "jobs", "--namespace", &namespace, "--output", "name"])?;
        let name = |line: &str| line.strip_prefix("job.batch/").map(str::to_owned);
        existing.extend(names.lines().filter_map(name).map(|name| (namespace.clone(), name)));
    }
    Ok(existing)
}

/// Returns the requests about these Jobs. They show the results of creates whose sender died before the response.
fn requests_about(jobs: &[String], requests: &[Request]) -> Vec<String> {
    let full_name = |request: &Request| format!("{}/{}", request.namespace, request.name);
    let about = requests.iter().filter(|request| request.resource.starts_with("jobs"));
    about
        .filter(|request| jobs.contains(&full_name(request)))
        .map(|request| {
            let Request {
                verb, code, received, ..
            } = request;
            format!("{verb} {} at {received}: {code}", full_name(request))
        })
        .collect()
}

/// Kills replicas and restarts each in its Pod. Returns how long it took until all shards were led.
async fn restart_some(fleet: &mut Fleet) -> anyhow::Result<Vec<Duration>> {
    let mut took = Vec::new();
    for seconds in KILL_SECONDS {
        let mut at = Slot::at_or_after(Timestamp::now()).start() + SignedDuration::from_secs(seconds - 60);
        while at < Timestamp::now() + SignedDuration::from_secs(5) {
            at += SignedDuration::from_mins(1);
        }
        sleep_until(at).await;
        let killed = fleet.kill_oldest()?;
        fleet.restart_last_killed()?;
        took.push(time_until_all_led(fleet, killed).await?);
        progress(&format!(
            "killed and restarted: all shards led after {:.0?}",
            took.last()
        ));
        // The restarted replica is now the youngest, so each is killed once.
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    Ok(took)
}

/// Kills replicas for good. Returns how long it took until all shards were led.
async fn lose_some(fleet: &mut Fleet) -> anyhow::Result<Vec<Duration>> {
    let mut took = Vec::new();
    for _ in 0..N_LOST {
        let killed = fleet.kill_oldest()?;
        took.push(time_until_all_led(fleet, killed).await?);
        progress(&format!(
            "killed to stay away: all shards led after {:.0?}",
            took.last()
        ));
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    Ok(took)
}

pub(super) async fn time_until_all_led(fleet: &Fleet, since: Timestamp) -> anyhow::Result<Duration> {
    let last = fleet.wait_until_all_led().await?;
    Ok(Duration::try_from(last.duration_since(since)).unwrap_or_default())
}

pub(super) fn slots_between(first: Slot, last: Slot) -> Slots {
    let n_slots = last.start().duration_since(first.start()).as_mins() + 1;
    Slots::starting_at(first.start(), 0, u32::try_from(n_slots).unwrap_or_default())
}

/// The rate of Lease writes by all replicas, in a period without changes.
#[expect(clippy::cast_precision_loss, reason = "a minute's requests are few")]
fn writes_per_second(requests: &[Request], begin: Timestamp) -> f64 {
    let is_it = |request: &&Request| {
        let is_lease = request.resource == "leases" && request.name != PROBE_LEASE;
        is_lease && request.is_write() && (begin..begin + REST).contains(&request.received)
    };
    requests.iter().filter(is_it).count() as f64 / REST.as_secs_f64()
}
