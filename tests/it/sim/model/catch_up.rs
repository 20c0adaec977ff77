//! The rules for slots that did not start at their time (O-2, O-3, O-7.2).

use jiff::{SignedDuration, Timestamp};

use super::{
    Case, IN_FLIGHT_MAX, SKEW,
    view::{Slot, View},
};
use crate::{
    naive_options::{CatchUp, MISSED_AFTER},
    sim::{
        scenario::{Policy, Spec},
        world::{CronJob, Freeze},
    },
};

const NANOSECOND: SignedDuration = SignedDuration::from_nanos(1);

/// The time after a hold in which what `on-resume` starts is judged.
const RESUMED_WITHIN: SignedDuration = SignedDuration::from_secs(60);

/// A period in which a suspension or a freeze holds back the starts of a CronJob.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hold {
    pub(super) from: Timestamp,
    pub(super) until: Timestamp,
    /// For a freeze that ends at its time: how long the annotation shows it.
    shown_until: Option<Timestamp>,
    pub(super) is_freeze: bool,
}

impl Hold {
    /// The holds of a CronJob, in the order of their ends.
    pub(super) fn all(case: &Case<'_>, cron_job: &CronJob) -> Vec<Hold> {
        let mut holds: Vec<Hold> = case.world.freezes.iter().map(Hold::of_freeze).collect();
        let ends = cron_job.specs.iter().skip(1).map(|(since, _)| *since).chain([case.end]);
        let spans = cron_job.specs.iter().zip(ends);
        let suspended = spans.filter(|((_, spec), _)| spec.is_suspended);
        for ((since, _), until) in suspended {
            match holds.last_mut() {
                // An edit of a suspended CronJob.
                Some(last) if !last.is_freeze && last.until == *since => last.until = until,
                Some(_) | None => holds.push(Hold {
                    from: *since,
                    until,
                    shown_until: None,
                    is_freeze: false,
                }),
            }
        }
        holds.sort_by_key(|hold| hold.until);
        holds
    }

    fn of_freeze(freeze: &Freeze) -> Hold {
        let removed = freeze.removed.unwrap_or(Timestamp::MAX);
        Hold {
            from: freeze.from,
            until: freeze.until.min(removed),
            shown_until: (freeze.until <= removed).then_some(removed),
            is_freeze: true,
        }
    }

    /// Whether a controller that started at `begun` knows the end for certain: it knew of the hold before, or it read the
    /// annotation of a freeze that has ended.
    fn is_known(&self, case: &Case<'_>, begun: Timestamp) -> bool {
        let held = case.obstructions.known_by(self.from.max(begun)) + IN_FLIGHT_MAX <= self.until;
        held || self
            .shown_until
            .is_some_and(|shown| case.obstructions.known_by(begun) < shown)
    }

    /// The first and the last instant that a controller may take for the end: a slot that starts until then was held back.
    /// If no annotation shows it, it is when the controller saw the end, by its own clock.
    fn ends(&self, case: &Case<'_>) -> (Timestamp, Timestamp) {
        match self.shown_until {
            Some(_) => (self.until - NANOSECOND, self.until - NANOSECOND),
            None => (self.until - SKEW, case.obstructions.known_by(self.until) + SKEW),
        }
    }
}

/// Whether a controller may choose this slot of a spec for a run that was created at an instant.
pub(super) fn may_choose(case: &Case<'_>, view: &View<'_>, spec: &Spec, slot: Timestamp, created: Timestamp) -> bool {
    // A request of a controller that has just ended may still be in flight.
    let sent_from = created - IN_FLIGHT_MAX;
    let lives = case.world.lives.iter();
    let mut lives = lives.filter(|life| life.from <= created && sent_from <= life.until);
    lives.any(|life| may_choose_in(case, view, spec, slot, (life.from, created)))
}

/// [`may_choose`], of the controller that started at `begun`.
fn may_choose_in(
    case: &Case<'_>,
    view: &View<'_>,
    spec: &Spec,
    slot: Timestamp,
    (begun, created): (Timestamp, Timestamp),
) -> bool {
    let mut ends = vec![(Timestamp::MIN, Timestamp::MIN)];
    for hold in view.holds.iter().filter(|hold| hold.until <= created + SKEW) {
        if hold.is_known(case, begun) {
            ends.retain(|(_, last)| hold.until < *last);
        }
        ends.push(hold.ends(case));
    }
    let start = slot + spec.offset(&view.cron_job.uid);
    let decided = created - IN_FLIGHT_MAX - SKEW;
    let ordered = case.obstructions.decided_at(created).max(begun);
    // Of the ends that held the slot back, the first one permits most. All others permit the same.
    let mut resumed = ends
        .into_iter()
        .flat_map(|(first, last)| [first, start.clamp(first, last)]);
    resumed.any(|resumed| is_chosen(view, spec, slot, resumed, (ordered, decided)))
}

/// Whether the slot starts next, by the rules. The earliest instant of the decision permits most; the first decision may be
/// as early as `ordered`.
fn is_chosen(
    view: &View<'_>,
    spec: &Spec,
    slot: Timestamp,
    resumed: Timestamp,
    (ordered, decided): (Timestamp, Timestamp),
) -> bool {
    let offset = spec.offset(&view.cron_job.uid);
    let start = slot + offset;
    let n_later = |until: Timestamp| {
        let later = spec.slots(view.cron_job.created, slot + NANOSECOND, until - offset + NANOSECOND);
        later.len()
    };
    let is_held_back = start <= resumed;
    let rule = if is_held_back {
        spec.options.on_resume()
    } else {
        spec.options.missed_runs()
    };
    match rule {
        CatchUp::All(count) if spec.policy != Policy::Replace && is_held_back => n_later(resumed.min(decided)) < count,
        CatchUp::All(count) if spec.policy != Policy::Replace => n_later(decided) < count,
        CatchUp::Skip if is_held_back => false,
        // The create of a slot that was not missed may have waited to be sent.
        CatchUp::Skip => n_later(decided) == 0 && ordered.min(decided) <= not_missed_until(view, spec, start),
        CatchUp::Latest | CatchUp::All(_) => n_later(decided) == 0,
    }
}

/// The instant from which on a slot with this start is missed. Under Forbid, runs put it off that follow each other within
/// a minute. A run that has not completed does so only until its end.
fn not_missed_until(view: &View<'_>, spec: &Spec, start: Timestamp) -> Timestamp {
    let mut until = start + MISSED_AFTER;
    if spec.policy != Policy::Forbid {
        return until;
    }
    for run in view.jobs.iter().filter(|job| job.is_run()) {
        if run.created > until + SKEW {
            break;
        }
        let completed = run.completed.map(|completed| completed + MISSED_AFTER);
        until = until.max(completed.or(run.ended()).unwrap_or(Timestamp::MAX));
    }
    until
}

/// The end of the time in which a controller must start a slot, if nothing prevents it: its start if it need not start. Of
/// rules that change, the one counts that gives it the shortest time.
pub(super) fn chance_until(case: &Case<'_>, view: &View<'_>, number: usize) -> Timestamp {
    if let Some(until) = resumed_chance(case, view, number) {
        return until;
    }
    let chances = view.rules.iter().map(|rules| chance_under(case, view, number, *rules));
    chances.min().expect("a CronJob has a spec")
}

/// The end of that time with this `missed-runs` and this `on-resume`.
fn chance_under(case: &Case<'_>, view: &View<'_>, number: usize, [missed_runs, on_resume]: [CatchUp; 2]) -> Timestamp {
    let until = chance_by(view, number, missed_runs);
    let start = view.slots[number].start;
    let is_touched = view
        .holds
        .iter()
        .any(|hold| hold.from <= until && start <= hold.ends(case).1);
    match on_resume {
        _ if !is_touched => until,
        CatchUp::Skip => start,
        rule @ (CatchUp::Latest | CatchUp::All(_)) => until.min(chance_by(view, number, rule)),
    }
}

fn chance_by(view: &View<'_>, number: usize, rule: CatchUp) -> Timestamp {
    let slot = view.slots[number];
    match rule {
        CatchUp::Latest => slot.over,
        CatchUp::Skip => slot.over.min(slot.start + MISSED_AFTER),
        CatchUp::All(count) => {
            let until = nth_later(view, number, count).map_or(slot.epoch_until, |later| later.start);
            let is_replace = |(_, spec): &(Timestamp, Spec)| spec.policy == Policy::Replace;
            if view.specs(slot.start, until).iter().any(is_replace) {
                slot.over
            } else {
                until
            }
        }
    }
}

/// The chance of a slot that a hold, which the controller knows for certain, held back under `on-resume: all`.
fn resumed_chance(case: &Case<'_>, view: &View<'_>, number: usize) -> Option<Timestamp> {
    let slot = view.slots[number];
    let [[_, CatchUp::All(count)]] = view.rules[..] else {
        return None;
    };
    let hold = view
        .holds
        .iter()
        .find(|hold| hold.from <= slot.start && slot.start <= hold.ends(case).0)?;
    let lives = case.world.lives.iter().map(|life| life.from);
    let begun = lives.take_while(|from| *from <= hold.until).last()?;
    let until = slot.epoch_until.min(hold.until + RESUMED_WITHIN);
    let is_sure = hold.is_known(case, begun)
        && view
            .holds
            .iter()
            .all(|other| other.until <= hold.until || other.from > until)
        && case.obstructions.within(hold.from, until).is_empty()
        && view
            .specs(slot.start, until)
            .iter()
            .all(|(_, spec)| spec.policy != Policy::Replace);
    let is_superseded = nth_later(view, number, count).is_some_and(|later| later.start <= hold.ends(case).1);
    is_sure.then_some(if is_superseded { slot.start } else { until })
}

/// The slot that is this many places later, if the schedule is still the same.
fn nth_later(view: &View<'_>, number: usize, count: usize) -> Option<Slot> {
    let later = view.slots.get(number + count).copied();
    later.filter(|later| later.changed == view.slots[number].changed)
}
