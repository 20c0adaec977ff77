//! The rules that every fleet must obey.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::{
    load::{Life, Policy},
    options::judge_asked,
    records::{CronJob, Holder, Job, Records, ShardChange, Write, WriteKind},
};

/// The maximum lateness of a Job without disruptions.
const ORDINARY_LATENESS: SignedDuration = SignedDuration::from_millis(500);

/// The maximum time for which a disruption has effects after its end: an eviction with its observation time.
pub(super) const AFTERMATH: SignedDuration = SignedDuration::from_secs(25);

/// The maximum time until a living process knows that a shard has moved to another one.
pub(super) const OBSERVATION_DELAY_MAX: SignedDuration = SignedDuration::from_millis(100);

/// The exceptions to the rules, and the judged period.
#[derive(Clone, Debug)]
pub(super) struct Allowances {
    /// Runs that are due in one of these windows may be as late as its end plus the ordinary lateness.
    pub(super) late: Vec<(Timestamp, Timestamp)>,
    /// Runs that are due in one of these windows, and superseded in it, may have no Job.
    pub(super) skipped: Vec<(Timestamp, Timestamp)>,
    /// The beginnings and ends of disruptions, sorted.
    pub(super) disruptions: BTreeSet<(Timestamp, Timestamp)>,
    pub(super) judged_from: Timestamp,
    pub(super) end: Timestamp,
}

/// Returns all violations of the rules.
pub(super) fn problems(records: &Records, allowances: &Allowances) -> Vec<String> {
    let mut problems = records.cursors_back.clone();
    problems.extend(records.led_twice.iter().cloned());
    let mut jobs: BTreeMap<&str, Vec<&Job>> = BTreeMap::new();
    for job in records.jobs.values() {
        jobs.entry(&job.owner).or_default().push(job);
    }
    for cron_job in records.cron_jobs.values() {
        let mut jobs = jobs.remove(cron_job.plan.name.as_str()).unwrap_or_default();
        jobs.sort_by_key(|job| (job.created, job.slot));
        judge_jobs(records, cron_job, &jobs, allowances, &mut problems);
    }
    for (shard, changes) in &records.shards {
        judge_terms(*shard, changes, &mut problems);
    }
    judge_writes(records, &mut problems);
    judge_requests(records, &mut problems);
    problems
}

fn judge_jobs(
    records: &Records,
    cron_job: &CronJob,
    jobs: &[&Job],
    allowances: &Allowances,
    problems: &mut Vec<String>,
) {
    let plan = &cron_job.plan;
    let mut by_name: BTreeMap<&str, usize> = BTreeMap::new();
    for job in jobs {
        *by_name.entry(&job.name).or_default() += 1;
        let start = job.slot.map(|slot| slot + cron_job.options.offset);
        if start.is_some_and(|start| start - SignedDuration::from_secs(2) > job.created) {
            problems.push(format!("{}: early, at {}", job.name, job.created));
        }
        if cron_job
            .ended
            .is_some_and(|ended| job.created > later(ended, OBSERVATION_DELAY_MAX))
        {
            problems.push(format!("{}: its CronJob had ended, at {}", job.name, job.created));
        }
    }
    problems.extend(
        by_name
            .iter()
            .filter(|(_, n)| **n > 1)
            .map(|(name, n)| format!("{name}: {n} Jobs")),
    );
    if plan.policy == Policy::Forbid {
        for pair in jobs.windows(2) {
            if pair[0].ended.is_none_or(|ended| ended > pair[1].created) {
                problems.push(format!("{} overlaps {}", pair[1].name, pair[0].name));
            }
        }
    }
    let until = cron_job
        .ended
        .map_or(allowances.end, |ended| allowances.end.min(ended - ORDINARY_LATENESS));
    for slot in plan.slots(cron_job.created.max(allowances.judged_from), until) {
        judge_slot(records, cron_job, jobs, slot, allowances, problems);
    }
    for asked in records.asked.iter().filter(|asked| asked.cron_job == plan.name) {
        judge_asked(asked, cron_job, jobs, allowances, problems);
    }
}

fn judge_slot(
    records: &Records,
    cron_job: &CronJob,
    jobs: &[&Job],
    slot: Timestamp,
    allowances: &Allowances,
    problems: &mut Vec<String>,
) {
    let (plan, options) = (&cron_job.plan, &cron_job.options);
    let start = slot + options.offset;
    let over = options.chance_until(plan, start);
    // Under Forbid, a running Job holds the slot back.
    let is_earlier = |job: &&&Job| match job.slot {
        Some(other) => other < slot,
        None => job.created < over,
    };
    let earlier = jobs.iter().filter(is_earlier);
    let free_at = earlier
        .filter(|_| plan.policy == Policy::Forbid)
        .map(|job| job.ended.unwrap_or(Timestamp::MAX))
        .max()
        .unwrap_or(Timestamp::MIN);
    let is_in = |windows: &[(Timestamp, Timestamp)], instant: Timestamp| {
        let window = windows
            .iter()
            .filter(|(from, until)| (*from..*until).contains(&instant));
        window.map(|(_, until)| *until).max()
    };
    let due = start.max(free_at);
    let soon = is_in(&allowances.late, due).unwrap_or(due).max(due);
    let by = extend_aftermath(soon, &allowances.disruptions);
    let is_asked = jobs.iter().any(|job| job.token.is_some());
    let lateness = ORDINARY_LATENESS + options.delay_max(plan, is_asked);
    let [soon, by] = [soon, by].map(|by| later(by, lateness));
    match jobs.iter().find(|job| job.slot == Some(slot)) {
        Some(job) if job.created > by => {
            problems.push(format!("{}: created at {}, not by {by}", job.name, job.created));
        }
        Some(job) if options.is_missed(plan, start, job.created) => {
            problems.push(format!(
                "{}: created at {}, although it was missed",
                job.name, job.created
            ));
        }
        Some(_) => {}
        None => {
            let is_superseded = soon >= over && free_at > Timestamp::MIN
                || is_in(&allowances.skipped, start).is_some_and(|until| until >= over - lateness);
            let is_over = cron_job.ended.is_some_and(|ended| ended <= by);
            let is_reported = plan.life != Life::Kept && records.is_reported(plan, slot);
            if !is_superseded && !is_over && !is_reported && by <= allowances.end {
                problems.push(format!("{}: missed, due at {slot}", plan.job_name(slot)));
            }
        }
    }
}

/// Extends an aftermath by the time in which other disruptions went on, to at most twice its length. Only time without
/// disruptions counts.
pub(super) fn extend_aftermath(by: Timestamp, disruptions: &BTreeSet<(Timestamp, Timestamp)>) -> Timestamp {
    later(by, time_within(disruptions, by - AFTERMATH, by).min(AFTERMATH))
}

/// Adds a delay. The maximum timestamp stays the same.
fn later(instant: Timestamp, by: SignedDuration) -> Timestamp {
    instant.saturating_add(by).unwrap_or(Timestamp::MAX)
}

/// Returns the total time within this period in which any disruption went on. Disruptions are sorted.
fn time_within(disruptions: &BTreeSet<(Timestamp, Timestamp)>, from: Timestamp, until: Timestamp) -> SignedDuration {
    let (mut counted_until, mut total) = (from, SignedDuration::ZERO);
    for (began, ended) in disruptions {
        let (began, ended) = ((*began).max(counted_until), (*ended).min(until));
        if ended > began {
            total += ended.duration_since(began);
            counted_until = ended;
        }
    }
    total
}

/// Terms only grow, and a new holder has a new term.
fn judge_terms(shard: u16, changes: &[ShardChange], problems: &mut Vec<String>) {
    let (mut last_term, mut last_holder): (u64, Option<Holder>) = (0, None);
    for change in changes {
        let Some(term) = change.term else { continue };
        if term < last_term {
            problems.push(format!("shard {shard}: term {term} after {last_term} at {}", change.at));
        }
        if let Some(holder) = change.holder {
            if last_holder != Some(holder) && term == last_term {
                problems.push(format!(
                    "shard {shard}: {holder:?} took it without a new term, in {term}, at {}",
                    change.at
                ));
            }
            last_holder = Some(holder);
        }
        last_term = last_term.max(term);
    }
}

/// No status write or delete of a term follows one of a later term. A create may, because the name of the Job makes it
/// harmless.
fn judge_writes(records: &Records, problems: &mut Vec<String>) {
    let mut latest: BTreeMap<u16, u64> = BTreeMap::new();
    for write in records.writes.iter().filter(|write| write.kind != WriteKind::Create) {
        let Some(cron_job) = records.cron_jobs.get(&write.cron_job) else {
            problems.push(format!("a write for an unknown CronJob: {write:?}"));
            continue;
        };
        let Some(term) = term_of(records, cron_job.shard, write) else {
            problems.push(format!(
                "shard {} was never held by the writer: {write:?}",
                cron_job.shard
            ));
            continue;
        };
        let latest = latest.entry(cron_job.shard).or_default();
        if term < *latest {
            problems.push(format!(
                "shard {}: term {term} after {latest}: {write:?}",
                cron_job.shard
            ));
        }
        *latest = term.max(*latest);
    }
}

/// No process requests a write for a shard that another process has held for a while.
fn judge_requests(records: &Records, problems: &mut Vec<String>) {
    for (at, process, name) in &records.requested_writes {
        let shard = records.cron_jobs.get(name).map(|cron_job| cron_job.shard);
        let Some(changes) = shard.and_then(|shard| records.shards.get(&shard)) else {
            continue;
        };
        let current = changes.iter().take_while(|change| change.at <= *at).last();
        let known = current.filter(|change| change.at + OBSERVATION_DELAY_MAX <= *at);
        let holder = known.and_then(|change| change.holder);
        if holder.is_some_and(|holder| holder.process != *process) {
            problems.push(format!(
                "{name}: process {process} requested a write at {at}, but {holder:?} held the shard"
            ));
        }
    }
}

/// The last term up to a write in which its author held the shard.
fn term_of(records: &Records, shard: u16, write: &Write) -> Option<u64> {
    let changes = records.shards.get(&shard)?;
    let is_before = |change: &&ShardChange| change.version <= write.version;
    let is_its = |change: &&ShardChange| change.holder.is_some_and(|holder| holder.process == write.process);
    changes.iter().take_while(is_before).filter(is_its).last()?.term
}

/// The writes of processes that no longer held the shard. A former holder has writes only if it could not wait for its
/// requests in flight.
pub(super) fn writes_of_former_holders(records: &Records) -> Vec<&Write> {
    let is_former = |write: &&Write| {
        let Some(cron_job) = records.cron_jobs.get(&write.cron_job) else {
            return false;
        };
        let Some(changes) = records.shards.get(&cron_job.shard) else {
            return true;
        };
        let current = changes
            .iter()
            .take_while(|change| change.version <= write.version)
            .last();
        current
            .and_then(|change| change.holder)
            .is_none_or(|holder| holder.process != write.process)
    };
    records.writes.iter().filter(is_former).collect()
}
