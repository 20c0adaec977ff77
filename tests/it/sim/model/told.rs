//! Checks Events: a Job that "went missing" is gone, and was not deleted by the controller that reports it.

use std::collections::BTreeMap;

use super::{Case, NEWS};
use crate::sim::world::{Deleter, Job, Told};

pub(super) fn judge(case: &Case<'_>, problems: &mut Vec<String>) {
    let missing = &case.world.told_missing;
    let mut named: BTreeMap<&str, Vec<&Job>> = missing.iter().map(|told| (told.job.as_str(), Vec::new())).collect();
    for job in &case.world.jobs {
        if let Some(jobs) = named.get_mut(job.name.as_str()) {
            jobs.push(job);
        }
    }
    for told in missing {
        let jobs = &named[told.job.as_str()];
        if !jobs.iter().any(|job| may_miss(case, told, job)) {
            problems.push(format!("{}: said at {} to be missing", told.job, told.at));
        }
    }
}

/// A controller that deletes a Job and sees its deletion must not report it as missing.
fn may_miss(case: &Case<'_>, told: &Told, job: &Job) -> bool {
    let until = told.at + NEWS;
    let Some(deletion) = job.deleted.filter(|deletion| deletion.at <= until) else {
        return false;
    };
    deletion.by != Deleter::Controller || !case.hindrances.within(job.created - NEWS, until).is_empty()
}
