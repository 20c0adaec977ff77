//! The invariants of the quiet state at the end, and of every status before it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::view::View;
use crate::sim::{
    options::{latest_token, read_token},
    world::{CronJob, Deleter, Finish, Job, World},
};

/// Returns the violations at the end: the statuses must be correct, and no more Jobs may exist than the history limits
/// allow.
pub(in crate::sim) fn unsettled(world: &World, objects: &[Value]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut jobs_by_owner = world.jobs_by_owner();
    for cron_job in world.cron_jobs.iter().filter(|cron_job| cron_job.deleted.is_none()) {
        let object = objects
            .iter()
            .find(|object| object["metadata"]["uid"] == cron_job.uid.as_str());
        let Some(object) = object else {
            problems.push(format!("{} is gone", cron_job.name));
            continue;
        };
        let jobs = jobs_by_owner.owned.remove(cron_job.uid.as_str()).unwrap_or_default();
        judge_status(cron_job, &jobs, &object["status"], &mut problems);
        let annotations = &object["metadata"]["annotations"];
        let annotation = |name: &str| annotations[format!("cronwheel.dev/{name}")].as_str();
        let (asked, answered) = (annotation("run-now"), annotation("run-now-done"));
        if asked.map(read_token) != answered.map(latest_token) {
            problems.push(format!(
                "{}: {asked:?} is asked for, {answered:?} is answered",
                cron_job.name
            ));
        }
        kept(cron_job, &jobs, &mut problems);
    }
    problems
}

fn judge_status(cron_job: &CronJob, jobs: &[&Job], status: &Value, problems: &mut Vec<String>) {
    let name = &cron_job.name;
    let last_run = jobs.iter().max_by_key(|job| job.slot);
    let last = last_run.and_then(|job| job.slot).map(|slot| slot.to_string());
    // No controller can know of a run that users deleted before its slot was stored, if the schedule then changed.
    let may_be_unknown = last_run.is_some_and(|job| {
        let is_deleted = job.deleted.is_some_and(|deletion| deletion.by == Deleter::Others);
        is_deleted && cron_job.spec_at(job.created).calendar != cron_job.spec().calendar
    });
    if status["lastScheduleTime"].as_str() != last.as_deref() && !may_be_unknown {
        problems.push(format!("{name}: the last slot is {last:?}, the status has {status}"));
    }
    let active = status["active"].as_array().into_iter().flatten();
    let active: BTreeSet<&str> = active.filter_map(|entry| entry["name"].as_str()).collect();
    let running = jobs.iter().filter(|job| job.is_run() && job.ended().is_none());
    let running: BTreeSet<&str> = running.map(|job| job.name.as_str()).collect();
    if active != running {
        problems.push(format!("{name}: {running:?} run, the status has {active:?}"));
    }
    let success = cron_job.statuses.last().and_then(|status| status.last_successful_time);
    let kept = jobs.iter().filter(|job| job.deleted.is_none());
    let last_kept = kept.filter_map(|job| job.completed).max();
    if success < last_kept {
        problems.push(format!("{name}: completed at {last_kept:?}, the status has {status}"));
    }
}

fn kept(cron_job: &CronJob, jobs: &[&Job], problems: &mut Vec<String>) {
    let limits = [
        (Finish::Complete, cron_job.spec().complete_max),
        (Finish::Failed, cron_job.spec().failed_max),
    ];
    for (finish, limit) in limits {
        let is_kept = |job: &&&Job| job.deleted.is_none() && job.finished.is_some_and(|(_, kind)| kind == finish);
        let n_kept = jobs.iter().filter(is_kept).count();
        if n_kept > limit {
            problems.push(format!("{}: {n_kept} {finish:?} Jobs are kept", cron_job.name));
        }
    }
}

/// Checks that each status corresponds to runs that existed, and that no status goes back.
pub(super) fn statuses(view: &View<'_>, problems: &mut Vec<String>) {
    let cron_job = view.cron_job;
    let completions: BTreeSet<_> = view.jobs.iter().filter_map(|job| job.completed).collect();
    for pair in cron_job.statuses.windows(2) {
        let (before, after) = (&pair[0], &pair[1]);
        let goes_back = after.last_schedule_time < before.last_schedule_time
            || after.last_successful_time < before.last_successful_time;
        if goes_back {
            problems.push(format!("{}: from {before:?} back to {after:?}", cron_job.name));
        }
    }
    for status in &cron_job.statuses {
        let is_run = status
            .last_schedule_time
            .is_none_or(|slot| view.runs.contains_key(&slot));
        let is_success = status.last_successful_time.is_none_or(|at| completions.contains(&at));
        if !is_run || !is_success {
            problems.push(format!("{}: no run for {status:?}", cron_job.name));
        }
    }
}
