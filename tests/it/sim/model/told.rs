//! Whether Events speak of what was: a Job that "went missing" is gone, and not by the controller that says so.

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

/// Who deletes a Job, and sees it go, does not miss it.
fn may_miss(case: &Case<'_>, told: &Told, job: &Job) -> bool {
    let until = told.at + NEWS;
    let Some(deletion) = job.deleted.filter(|deletion| deletion.at <= until) else {
        return false;
    };
    deletion.by != Deleter::Controller || !case.hindrances.within(job.created - NEWS, until).is_empty()
}
