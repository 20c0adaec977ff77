//! Checks that each run is permitted: it has a slot, it is in time, it does not overlap, and it is no duplicate.

use jiff::{SignedDuration, Timestamp};

use super::{Case, IN_FLIGHT_MAX, LATENESS_ALLOWED, SKEW, asked_runs::may_be_unseen, catch_up::may_choose, view::View};
use crate::sim::{
    scenario::{Policy, Spec},
    world::{Deleter, Job},
};

pub(super) fn judge(case: &Case<'_>, view: &View<'_>, problems: &mut Vec<String>) {
    for run in view.jobs.iter().filter(|job| job.slot.is_some()) {
        timely(case, view, run, problems);
    }
    overlapping(case, view, problems);
    for (slot, runs) in &view.runs {
        for pair in runs.windows(2) {
            if !was_lost_to_others(view, pair[0])
                || pair[0].deleted.is_some_and(|deletion| deletion.at > pair[1].created)
            {
                problems.push(format!("{}: {} Jobs for {slot}", view.cron_job.name, runs.len()));
            }
        }
    }
}

/// Whether the run was deleted by others or with its CronJob before its slot was stored. No controller can know of such
/// a run.
fn was_lost_to_others(view: &View<'_>, run: &Job) -> bool {
    run.deleted.is_some_and(|deletion| {
        deletion.by != Deleter::Controller && view.cron_job.cursor_before(deletion.version) < run.slot
    })
}

/// Checks that a spec that the controller may have used has the slot, and allows its start at that time.
fn timely(case: &Case<'_>, view: &View<'_>, run: &Job, problems: &mut Vec<String>) {
    let Some(slot) = run.slot else { return };
    let known_at = case.obstructions.known_at(run.created);
    let specs = view.specs(known_at, run.created);
    let is_of_dead = view.cron_job.deleted.is_some_and(|deleted| deleted < known_at);
    let may_start = |(since, spec): &(Timestamp, Spec)| may_start(case, view, *since, spec, run, slot);
    let is_frozen = view.is_frozen(known_at, run.created);
    if is_of_dead || is_frozen || !specs.iter().any(may_start) {
        problems.push(format!(
            "{}: a Job for {slot} at {}, not permitted by {specs:?}{}",
            view.cron_job.name,
            run.created,
            if is_frozen { " in a freeze" } else { "" }
        ));
    }
}

fn may_start(case: &Case<'_>, view: &View<'_>, since: Timestamp, spec: &Spec, run: &Job, slot: Timestamp) -> bool {
    let anchor = view.cron_job.created;
    let is_slot = slot > anchor && spec.is_slot(anchor, slot);
    let start = slot + spec.offset(&view.cron_job.uid);
    let is_too_early = run.created < start - SKEW;
    let late = run.created - IN_FLIGHT_MAX - SKEW;
    let deadline = spec
        .deadline_seconds
        .map(|seconds| start + SignedDuration::from_secs(seconds).max(LATENESS_ALLOWED));
    let is_in_time = deadline.is_none_or(|deadline| late <= deadline);
    let begun = view.calendar_since(since);
    // A controller starts no slot of a new schedule before the change. A controller that starts later cannot know the
    // change (B-2.3).
    let knows_change = start < begun - SKEW;
    let is_forgotten = || {
        let lives = case.world.lives.iter().map(|life| life.from);
        lives
            .take_while(|from| *from <= run.created)
            .any(|from| begun <= case.obstructions.known_by(from))
    };
    is_slot
        && !is_too_early
        && is_in_time
        && !spec.is_suspended
        && (!knows_change || is_forgotten())
        && may_choose(case, view, spec, slot, run.created)
}

/// Checks overlaps. Forbid waits for the previous run. Replace deletes the previous run before it creates the next one.
fn overlapping(case: &Case<'_>, view: &View<'_>, problems: &mut Vec<String>) {
    let mut running: Vec<&Job> = Vec::new();
    for run in view.jobs.iter().filter(|job| job.is_run()) {
        running.retain(|other| other.ended().is_none_or(|ended| ended > run.created));
        let known_at = case.obstructions.known_at(run.created);
        let specs = view.specs(known_at, run.created);
        if specs.iter().all(|(_, spec)| spec.policy != Policy::Allow) {
            let seen = running
                .iter()
                .filter(|other| !may_be_unseen(case, view, other, run.created));
            for other in seen {
                problems.push(format!(
                    "{}: {} runs until {:?}, and {} from {} beside it",
                    view.cron_job.name,
                    other.name,
                    other.ended(),
                    run.name,
                    run.created
                ));
            }
        }
        running.push(run);
    }
}
