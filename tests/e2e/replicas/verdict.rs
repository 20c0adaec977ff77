//! The checks of every case, by the audit log and the Jobs.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::{
    cron_jobs::{WAITS, cron_jobs},
    sightings::{Sighting, Sightings},
};
use crate::{
    audit::Audit,
    kubernetes::{Namespace, job_name},
};

/// The parameters for computing the lateness of Jobs.
pub(super) struct Lateness {
    /// The offset of the replicas' clocks from the API server's.
    pub(super) ahead: SignedDuration,
    /// The first minute that counts.
    pub(super) first_minute: i64,
}

/// Asserts that each of these slots has exactly one Job per CronJob, from any replica. All Jobs must record their shard
/// and term, in the order of terms. No Job of a CronJob with Forbid may overlap the previous one.
pub(super) async fn check(namespace: &Namespace, sightings: &Sightings, slots: &[i64], lateness: Lateness) {
    let audit = Audit::read(namespace).await;
    let created = audit.created_jobs();
    let name = &namespace.name;
    let mut findings = missed_and_doubled(namespace, &created, slots);
    let seen = sightings.all();
    findings.extend(out_of_turn(&created, &seen));
    findings.extend(overlaps(&seen));
    let lateness = lateness_ms(namespace, &created, slots, &lateness);
    let quantile = |share: usize| lateness.get((lateness.len() * share / 100).min(lateness.len() - 1));
    eprintln!(
        "        {name}: {} Jobs of {} slots, late by p50 {:?}, p99 {:?}, most {:?} ms",
        lateness.len(),
        slots.len(),
        quantile(50),
        quantile(99),
        lateness.last(),
    );
    assert!(
        findings.is_empty(),
        "{name}: {} findings: {findings:#?}",
        findings.len()
    );
}

type Created<'a> = BTreeMap<&'a str, Vec<Timestamp>>;

fn missed_and_doubled(namespace: &Namespace, created: &Created<'_>, slots: &[i64]) -> Vec<String> {
    let mut findings = Vec::new();
    for (job, times) in created {
        if times.len() > 1 {
            findings.push(format!("doubled: {job} at {times:?}"));
        }
    }
    let last = slots.iter().max().copied().unwrap_or_default();
    for slot in 0..=last {
        let minute = namespace.minute(slot);
        for cron_job in punctual_cron_jobs() {
            let job = job_name(&cron_job, minute);
            match (created.contains_key(&*job), slots.contains(&slot)) {
                (false, true) => findings.push(format!("missed: {job}")),
                (true, false) => findings.push(format!("not to be started any more: {job}")),
                (true, true) | (false, false) => {}
            }
        }
    }
    findings
}

/// The CronJobs whose Jobs do not wait for previous ones.
fn punctual_cron_jobs() -> impl Iterator<Item = String> {
    cron_jobs().filter(|cron_job| !cron_job.starts_with(WAITS))
}

/// Jobs that were created after the term of their creator, or that do not record it.
fn out_of_turn(created: &Created<'_>, seen: &[Sighting]) -> Vec<String> {
    let by_name: BTreeMap<&str, &Sighting> = seen.iter().map(|job| (&*job.name, job)).collect();
    let mut findings = Vec::new();
    let mut turns: BTreeMap<u64, Vec<(Timestamp, u64, &str)>> = BTreeMap::new();
    for (job, times) in created {
        match by_name.get(job).and_then(|job| job.created_under) {
            Some((shard, term)) => turns.entry(shard).or_default().push((times[0], term, job)),
            None => findings.push(format!("{job} does not record its shard and term")),
        }
    }
    for (shard, mut turns) in turns {
        turns.sort_unstable();
        for pair in turns.windows(2) {
            let ((_, term, earlier), (_, next, later)) = (pair[0], pair[1]);
            if next < term {
                findings.push(format!(
                    "shard {shard}: {later} of term {next} after {earlier} of term {term}"
                ));
            }
        }
    }
    findings
}

/// Jobs of CronJobs with Forbid that started before the previous Job had ended.
fn overlaps(seen: &[Sighting]) -> Vec<String> {
    let mut runs: BTreeMap<&str, Vec<&Sighting>> = BTreeMap::new();
    for job in seen {
        let (cron_job, _) = job.name.rsplit_once('-').expect("a slot");
        if !cron_job.starts_with("allow") && !cron_job.starts_with("replace") {
            runs.entry(cron_job).or_default().push(job);
        }
    }
    let mut findings = Vec::new();
    for mut runs in runs.into_values() {
        runs.sort_by_key(|job| (job.created, job.name.clone()));
        for pair in runs.windows(2) {
            if pair[0].completed.is_none_or(|completed| completed > pair[1].created) {
                findings.push(format!("overlap: {:?} and {:?}", pair[0], pair[1]));
            }
        }
    }
    findings
}

/// The delays from each slot to its Jobs, in ascending order.
fn lateness_ms(namespace: &Namespace, created: &Created<'_>, slots: &[i64], parameters: &Lateness) -> Vec<i128> {
    let mut lateness = Vec::new();
    for slot in slots.iter().filter(|slot| **slot >= parameters.first_minute) {
        let minute = namespace.minute(*slot);
        for cron_job in punctual_cron_jobs() {
            let first = created
                .get(&*job_name(&cron_job, minute))
                .and_then(|times| times.first());
            lateness.extend(first.map(|time| (*time + parameters.ahead).duration_since(minute).as_millis()));
        }
    }
    lateness.sort_unstable();
    lateness
}
