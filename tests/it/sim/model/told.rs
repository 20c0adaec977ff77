//! Whether Events speak of what was: a Job that "went missing" is gone, and not by the controller that says so.

use super::{Case, NEWS};
use crate::sim::world::{Deleter, Job, Told};

pub(super) fn judge(case: &Case<'_>, problems: &mut Vec<String>) {
    for told in &case.world.told_missing {
        let mut named = case.world.jobs.values().filter(|job| job.name == told.job);
        if !named.any(|job| may_miss(case, told, job)) {
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
