//! Checks that every slot without a run was obstructed for its whole time.

use jiff::{SignedDuration, Timestamp};

use super::{Case, LATENESS_ALLOWED, PATIENCE, SKEW, catch_up::chance_until, view::View};
use crate::{
    naive_options::CatchUp,
    sim::{
        scenario::{Policy, RUN_SECONDS_MAX},
        world::Job,
    },
};

/// The time in which the missed runs of all CronJobs start after an obstruction, at five a second.
const PACED_WITHIN: SignedDuration = SignedDuration::from_secs(15);

pub(super) fn judge(case: &Case<'_>, view: &View<'_>, problems: &mut Vec<String>) {
    for (number, slot) in view.slots.iter().enumerate() {
        // A change counts from the time of its observation on.
        let is_known = slot
            .changed
            .is_none_or(|changed| case.obstructions.known_by(changed) <= slot.start);
        if is_known && !view.runs.contains_key(&slot.at) && must_run(case, view, number) {
            problems.push(format!(
                "{}: no Job for {slot:?}, {:?}",
                view.cron_job.name,
                view.specs(slot.start, slot.over)
            ));
        }
    }
}

/// Whether the run of the slot was unobstructed for a sufficiently long time.
fn must_run(case: &Case<'_>, view: &View<'_>, number: usize) -> bool {
    let slot = view.slots[number];
    // After a change of the schedule, the cursor may be beyond a slot that waits for its offset.
    if view.foreign_job(slot.at).is_some() || view.last_slot_before(slot.start) >= Some(slot.at) {
        return false;
    }
    let (start, end) = (slot.start, chance_until(case, view, number));
    // A run that was lost to its deadline stays lost, even if an edit then extended the deadline.
    let specs = view.specs(case.obstructions.known_at(start), end).iter();
    let deadline = specs.filter_map(|(_, spec)| spec.deadline_seconds).min();
    let last = deadline.map_or(end, |seconds| end.min(start + SignedDuration::from_secs(seconds))) - SKEW;
    let patience = patience(view);
    if last >= start + patience {
        return has_gap(obstacles(case, view, start, last), start, last, patience);
    }
    // Only a controller that runs at the slot can meet such a short deadline.
    let (from, until) = (start - patience, start + LATENESS_ALLOWED);
    until < end && obstacles(case, view, from, until).is_empty()
}

/// Missed runs under `all` start at a pace.
fn patience(view: &View<'_>) -> SignedDuration {
    let is_all = |rule: &CatchUp| matches!(rule, CatchUp::All(_));
    if view.rules.iter().flatten().any(is_all) {
        PATIENCE + PACED_WITHIN
    } else {
        PATIENCE
    }
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
            let runs = runs.filter(|job| job.is_run());
            let gone = |run: &Job| {
                run.ended()
                    .map_or(case.end, |ended| case.obstructions.observable_at(ended))
            };
            obstacles.extend(runs.map(|run| (run.created.max(*since), gone(run).min(end))));
        }
    }
    obstacles.extend(view.freezes().map(|freeze| (freeze.from, freeze.until)));
    obstacles.retain(|(begin, end)| *end >= from && *begin <= until);
    obstacles
}

/// Whether there is an interval of this length without obstacles between two instants.
pub(super) fn has_gap(
    mut obstacles: Vec<(Timestamp, Timestamp)>,
    from: Timestamp,
    until: Timestamp,
    length: SignedDuration,
) -> bool {
    obstacles.sort_unstable();
    let mut free_since = from;
    for (begin, end) in obstacles {
        if begin >= free_since + length {
            return true;
        }
        free_since = free_since.max(end);
    }
    until >= free_since + length
}
