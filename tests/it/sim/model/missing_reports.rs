//! Checks the Events that report missing Jobs: each Job is gone, and the reporting controller did not delete it.

use std::collections::BTreeMap;

use super::{Case, OBSERVATION_DELAY_MAX};
use crate::sim::world::{Deleter, Job, MissingJobReport};

pub(super) fn judge(case: &Case<'_>, problems: &mut Vec<String>) {
    let missing = &case.world.missing_reports;
    let mut named: BTreeMap<&str, Vec<&Job>> = missing.iter().map(|report| (report.job.as_str(), Vec::new())).collect();
    for job in &case.world.jobs {
        if let Some(jobs) = named.get_mut(job.name.as_str()) {
            jobs.push(job);
        }
    }
    for report in missing {
        let jobs = &named[report.job.as_str()];
        if !jobs.iter().any(|job| may_miss(case, report, job)) {
            problems.push(format!("{}: reported as missing at {}", report.job, report.at));
        }
    }
}

/// A controller that deletes a Job and observes its deletion must not report it as missing.
fn may_miss(case: &Case<'_>, report: &MissingJobReport, job: &Job) -> bool {
    let until = report.at + OBSERVATION_DELAY_MAX;
    let Some(deletion) = job.deleted.filter(|deletion| deletion.at <= until) else {
        return false;
    };
    deletion.by != Deleter::Controller
        || !case
            .obstructions
            .within(job.created - OBSERVATION_DELAY_MAX, until)
            .is_empty()
}
