//! Checks that every slot without a run was obstructed for its whole time.

use jiff::{SignedDuration, Timestamp};

use super::{
    Case, LATENESS_ALLOWED, PATIENCE, SKEW,
    view::{Slot, View},
};
use crate::sim::scenario::{Policy, RUN_SECONDS_MAX};

pub(super) fn judge(case: &Case<'_>, view: &View<'_>, problems: &mut Vec<String>) {
    for slot in &view.slots {
        // A change counts from the time of its observation on.
        let is_known = slot
            .changed
            .is_none_or(|changed| case.obstructions.known_by(changed) <= slot.at);
        if is_known && !view.runs.contains_key(&slot.at) && must_run(case, view, *slot) {
            problems.push(format!(
                "{}: no Job for {slot:?}, {:?}",
                view.cron_job.name,
                view.specs(slot.at, slot.over)
            ));
        }
    }
}

/// Whether the run of the slot was unobstructed for a sufficiently long time.
fn must_run(case: &Case<'_>, view: &View<'_>, slot: Slot) -> bool {
    if view.foreign_job(slot.at).is_some() {
        return false;
    }
    let (slot, next) = (slot.at, slot.over);
    // A run that was lost to its deadline stays lost, even if an edit then extended the deadline.
    let specs = view.specs(case.obstructions.known_at(slot), next).iter();
    let deadline = specs.filter_map(|(_, spec)| spec.deadline_seconds).min();
    let last = deadline.map_or(next, |seconds| next.min(slot + SignedDuration::from_secs(seconds))) - SKEW;
    if last >= slot + PATIENCE {
        return has_gap(obstacles(case, view, slot, last), slot, last);
    }
    // Only a controller that runs at the slot can meet such a short deadline.
    let (from, until) = (slot - PATIENCE, slot + LATENESS_ALLOWED);
    until < next && obstacles(case, view, from, until).is_empty()
}

/// All obstacles between two instants. An edit is an obstacle, because the controller must observe it.
fn obstacles(case: &Case<'_>, view: &View<'_>, from: Timestamp, until: Timestamp) -> Vec<(Timestamp, Timestamp)> {
    let mut obstacles = case.obstructions.within(from, until).to_vec();
    let specs = view.specs(from, until);
    let ends = specs.iter().skip(1).map(|(since, _)| *since).chain([until]);
    for ((since, spec), end) in specs.iter().zip(ends) {
        obstacles.push((*since, *since));
        if spec.is_suspended {
            obstacles.push((*since, end));
        }
        if spec.policy == Policy::Forbid {
            let longest = SignedDuration::from_secs(RUN_SECONDS_MAX + 60);
            let begin = view.jobs.partition_point(|job| job.created < from - longest);
            let runs = view.jobs[begin..].iter().take_while(|job| job.created <= end);
            let runs = runs.filter(|job| job.slot.is_some());
            obstacles.extend(runs.map(|run| (run.created.max(*since), run.ended().unwrap_or(case.end).min(end))));
        }
    }
    obstacles.retain(|(begin, end)| *end >= from && *begin <= until);
    obstacles
}

/// Whether there is an interval without obstacles between two instants that is as long as `PATIENCE`.
fn has_gap(mut obstacles: Vec<(Timestamp, Timestamp)>, from: Timestamp, until: Timestamp) -> bool {
    obstacles.sort_unstable();
    let mut free_since = from;
    for (begin, end) in obstacles {
        if begin >= free_since + PATIENCE {
            return true;
        }
        free_since = free_since.max(end);
    }
    until >= free_since + PATIENCE
}
