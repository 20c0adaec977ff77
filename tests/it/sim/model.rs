//! Which runs must exist, from the scenario alone and from when Jobs ran: arithmetic on minutes, no schedule parser, no
//! controller.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::{
    cluster::Cluster,
    ledger::{Ledger, Run},
    scenario::{CronJob, Policy, Scenario, start},
};

/// What a controller is given to notice and to act, messages that get lost and their repetition included.
const PATIENCE: SignedDuration = SignedDuration::from_secs(25);

/// Everything that is not as it must be.
pub(super) fn problems(scenario: &Scenario, ledger: &Ledger) -> Vec<String> {
    let mut problems = Vec::new();
    for cron_job in &scenario.cron_jobs {
        let runs = ledger.runs_of(&cron_job.name);
        doubled(cron_job, &runs, &mut problems);
        missed(scenario, cron_job, &runs, &mut problems);
        // Forbid waits for the run before, Replace deletes it before it creates.
        if cron_job.policy != Policy::Allow {
            overlapping(cron_job, &runs, &mut problems);
        }
    }
    problems
}

/// No two Jobs for one slot, also when the first is gone; and none for an instant that is no slot.
fn doubled(cron_job: &CronJob, runs: &[&Run], problems: &mut Vec<String>) {
    let mut n_by_slot: BTreeMap<Timestamp, u32> = BTreeMap::new();
    for run in runs {
        *n_by_slot.entry(run.slot).or_default() += 1;
        if run.slot.as_second() % (cron_job.period_minutes * 60) != 0 || run.created < run.slot {
            problems.push(format!("{}: a Job for {} at {}", cron_job.name, run.slot, run.created));
        }
    }
    for (slot, n_jobs) in n_by_slot.into_iter().filter(|(_, n_jobs)| *n_jobs > 1) {
        problems.push(format!("{}: {n_jobs} Jobs for {slot}", cron_job.name));
    }
}

fn missed(scenario: &Scenario, cron_job: &CronJob, runs: &[&Run], problems: &mut Vec<String>) {
    let end = scenario.end() - SignedDuration::from_mins(2);
    for slot in cron_job.slots(start(), end) {
        let has_run = runs.iter().any(|run| run.slot == slot);
        if !has_run && must_run(scenario, cron_job, slot, runs) {
            problems.push(format!("{cron_job:?}: no Job for {slot}"));
        }
    }
}

/// Whether there was a time, long enough, in which nothing stood in the way of the slot's run.
fn must_run(scenario: &Scenario, cron_job: &CronJob, slot: Timestamp, runs: &[&Run]) -> bool {
    // A later slot takes its place.
    let mut last = cron_job.next(slot);
    if let Some(seconds) = cron_job.deadline_seconds {
        last = last.min(slot + SignedDuration::from_secs(seconds));
    }
    if last - PATIENCE < slot {
        // Only who is there at the instant can keep such a deadline.
        return scenario.was_up(slot - PATIENCE, slot + PATIENCE) && !is_blocked(cron_job, runs, slot, slot);
    }
    let n_seconds = (last - PATIENCE).as_second() - slot.as_second();
    (0..=n_seconds).any(|second| {
        let from = slot + SignedDuration::from_secs(second);
        scenario.was_up(from, from + PATIENCE) && !is_blocked(cron_job, runs, from, from + PATIENCE)
    })
}

/// Whether Forbid waits for a run at any time between the two.
fn is_blocked(cron_job: &CronJob, runs: &[&Run], from: Timestamp, to: Timestamp) -> bool {
    let is_running = |run: &&Run| run.created <= to && run.ended.is_none_or(|ended| from <= ended);
    cron_job.policy == Policy::Forbid && runs.iter().any(is_running)
}

/// What is not as it must be at the end, half a minute after the last slot: the statuses are the truth, and no more
/// Jobs are kept than the history limits allow.
pub(super) async fn unsettled(scenario: &Scenario, ledger: &Ledger, cluster: &Cluster) -> Vec<String> {
    let mut problems = Vec::new();
    let jobs = cluster.list("jobs").await;
    for object in cluster.list("cronjobs").await {
        let name = object["metadata"]["name"].as_str().unwrap();
        let cron_job = scenario
            .cron_jobs
            .iter()
            .find(|cron_job| cron_job.name == name)
            .unwrap();
        let status = &object["status"];
        let last = ledger.runs_of(name).last().map(|run| run.slot.to_string());
        if status["lastScheduleTime"].as_str() != last.as_deref() {
            problems.push(format!("{name}: the last slot is {last:?}, the status has {status}"));
        }
        let active = status["active"].as_array().into_iter().flatten();
        let active: BTreeSet<&str> = active.filter_map(|entry| entry["name"].as_str()).collect();
        if active != ledger.running(name) {
            problems.push(format!(
                "{name}: {:?} run, the status has {active:?}",
                ledger.running(name)
            ));
        }
        let of_it = jobs
            .iter()
            .filter(|job| job["metadata"]["ownerReferences"][0]["name"] == name);
        let kinds = of_it.filter_map(|job| job["status"]["conditions"][0]["type"].as_str());
        let (complete, failed): (Vec<&str>, Vec<&str>) = kinds.partition(|kind| *kind == "Complete");
        if complete.len() > cron_job.complete_max || failed.len() > cron_job.failed_max {
            problems.push(format!(
                "{name}: {} complete and {} failed Jobs are kept",
                complete.len(),
                failed.len()
            ));
        }
    }
    assert_eq!(scenario.cron_jobs.len(), cluster.list("cronjobs").await.len());
    problems
}

fn overlapping(cron_job: &CronJob, runs: &[&Run], problems: &mut Vec<String>) {
    let mut by_creation: Vec<&&Run> = runs.iter().collect();
    by_creation.sort_by_key(|run| run.created);
    for pair in by_creation.windows(2) {
        if pair[0].ended.is_none_or(|ended| ended > pair[1].created) {
            problems.push(format!(
                "{}: the run for {} until {:?} and that for {} of {} overlap",
                cron_job.name, pair[0].slot, pair[0].ended, pair[1].slot, pair[1].created
            ));
        }
    }
}
