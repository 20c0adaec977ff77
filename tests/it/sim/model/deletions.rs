//! Checks that controllers delete only Jobs over a history limit whose slot is stored, and Jobs that Replace ends.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Case, IN_FLIGHT_MAX, asked_runs::answered_before, view::View};
use crate::sim::{
    scenario::Policy,
    world::{Deleter, Deletion, Finish, Job},
};

enum Step<'a> {
    Finished(Finish),
    Deleted(&'a Job, Deletion),
}

pub(super) fn judge(case: &Case<'_>, view: &View<'_>, problems: &mut Vec<String>) {
    let by_controller = |job: &&&Job| job.deleted.is_some_and(|deletion| deletion.by == Deleter::Controller);
    for job in view.strangers.iter().filter(by_controller) {
        problems.push(format!(
            "{}/{}: deleted without being a Job of the CronJob",
            job.namespace, job.name
        ));
    }
    let mut steps: Vec<(Timestamp, u64, Step<'_>)> = Vec::new();
    for job in &view.jobs {
        if let Some((at, finish)) = job.finished {
            steps.push((at, 0, Step::Finished(finish)));
        }
        if let Some(deletion) = job.deleted {
            steps.push((deletion.at, deletion.version, Step::Deleted(job, deletion)));
        }
    }
    steps.sort_by_key(|(at, version, _)| (*at, *version));
    let mut n_kept: BTreeMap<Finish, usize> = BTreeMap::new();
    for (_, _, step) in steps {
        match step {
            Step::Finished(finish) => *n_kept.entry(finish).or_default() += 1,
            Step::Deleted(job, deletion) => {
                let kept = job.finished.map(|(_, finish)| n_kept.entry(finish).or_default());
                let n_kept = kept.map_or(0, |n_kept| std::mem::replace(n_kept, n_kept.saturating_sub(1)));
                if deletion.by == Deleter::Controller {
                    judge_one(case, view, job, deletion, n_kept, problems);
                }
            }
        }
    }
}

/// Checks one deletion by a controller. A finished Job blocks its slot until the cursor has reached the slot. A running
/// Job may only be deleted by Replace, and it may finish while its delete is in flight.
fn judge_one(
    case: &Case<'_>,
    view: &View<'_>,
    job: &Job,
    deletion: Deletion,
    n_kept: usize,
    problems: &mut Vec<String>,
) {
    let deletion_at = deletion.at;
    let known_at = case.obstructions.decided_at(deletion_at);
    let specs = view.specs(known_at, deletion.at);
    let replaced_from = known_at.min(deletion.at - IN_FLIGHT_MAX);
    let ran_lately = job.finished.is_none_or(|(at, _)| at >= replaced_from);
    if job.is_run() && ran_lately && specs.iter().any(|(_, spec)| spec.policy == Policy::Replace) {
        return;
    }
    let Some((_, finish)) = job.finished else {
        problems.push(format!("{}: deleted at {} while it ran", job.name, deletion.at));
        return;
    };
    let limit = specs.iter().map(|(_, spec)| match finish {
        Finish::Complete => spec.complete_max,
        Finish::Failed => spec.failed_max,
    });
    // The controller may not have observed deletions by others.
    let by_others = |job: &&&Job| {
        let of_kind = job.finished.is_some_and(|(_, kind)| kind == finish);
        let deletion = job.deleted.filter(|deletion| deletion.by == Deleter::Others);
        of_kind && deletion.is_some_and(|others| (known_at..=deletion_at).contains(&others.at))
    };
    // The closure iterates over all Jobs only if needed.
    let is_over = |limit: usize| n_kept > limit || n_kept + view.jobs.iter().filter(by_others).count() > limit;
    if limit.min().is_some_and(|limit| !is_over(limit)) {
        problems.push(format!(
            "{}: deleted at {} as one of {n_kept} {finish:?}, {specs:?}",
            job.name, deletion.at
        ));
    }
    let is_asked = specs.iter().all(|(_, spec)| spec.options.token == job.token);
    if job.token.is_some() && is_asked && answered_before(view, deletion.version) != job.token {
        problems.push(format!("{}: deleted before its token was stored as answered", job.name));
    }
    let cursor = view.cron_job.cursor_before(deletion.version);
    if job.slot.is_some() && cursor < job.slot {
        problems.push(format!("{}: deleted while the cursor is {cursor:?}", job.name));
    }
}
