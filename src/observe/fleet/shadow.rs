//! What cronwheel would have done with a slot: its own decision on the facts of that instant.

use jiff::{SignedDuration, Timestamp};

use super::{
    cron_job::CronJob,
    era::Era,
    freezes::{Freezes, Frozen},
    holders,
    observations::Observations,
    release::{Release, release},
    second::Second,
    slot_record::{Outcome, SlotRecord},
    words,
};
use crate::{
    observe::{
        facts::{CronJobFacts, RunResult},
        slot::{Ended, LATE_AFTER, Shadow},
    },
    schedule::{
        ConcurrencyPolicy, CronJobSchedule,
        busy::busy_since,
        options::NamedCalendar,
        policy::{self, Decision, Facts, SkipReason},
    },
};

/// Why cronwheel waits for a Job that runs, too.
const HELD_BY_FORBID: &str = "B-10.3: concurrencyPolicy is Forbid and an earlier Job ran until the next slot";

/// Why a slot of an excluded date has no Job.
const EXCLUDED: &str = "O-11: the slot is on a date of the calendar that not-on names";

/// Why the slots of a minute after the first have no Job.
const SAME_MINUTE: &str = "B-11.1: Jobs are named by the minute, and the minute has an earlier slot";

/// The decision on a slot. `None` if the facts of that instant are not known.
pub(super) fn with_cronwheel(
    cron_job: &CronJob,
    (observations, freezes): (&Observations, &Freezes),
    place: usize,
) -> Option<Shadow> {
    let facts = cron_job.facts.as_deref()?;
    let slot = cron_job.slots.get(place)?;
    let era = cron_job.eras.get(cron_job.eras.index_at(slot.at))?;
    // The options count here, whoever runs the CronJob.
    let schedule = era.schedule(facts);
    let start = Second::floor(schedule.start_of(slot.at.timestamp()));
    let namespace = &cron_job.name.namespace;
    let are_jobs_known = era.policy != ConcurrencyPolicy::Forbid || observations.covers(namespace, start, start);
    let not_on = schedule.options().not_on.as_ref();
    let is_calendar_known = not_on.is_none_or(|not_on| not_on.calendar != NamedCalendar::Unknown);
    let is_known = cron_job.eras.are_known_at(slot.at) && are_jobs_known && is_calendar_known;
    if slot.outcome == Outcome::NotObserved || !is_known {
        return None;
    }
    let before = place.checked_sub(1).and_then(|before| cron_job.slots.get(before));
    if !schedule.has_seconds() && before.is_some_and(|before| before.at.minute() == slot.at.minute()) {
        return Some(Shadow::Holds(SAME_MINUTE));
    }
    // An earlier slot may be due instead.
    if !era.is_deleting && schedule.excludes(slot.at.timestamp()) {
        return Some(Shadow::Holds(EXCLUDED));
    }
    let frozen_at = |instant| freezes.at(namespace, instant);
    let is_doubtful = |instant| matches!(frozen_at(instant), Some(Frozen::Perhaps(_)));
    let last = observations.last().map(Second::floor)?;
    let release = release(&cron_job.eras, frozen_at, start, last);
    if is_doubtful(start) || release.is_some_and(|release| is_doubtful(release.at)) {
        return None;
    }
    let case = Case {
        cron_job,
        facts,
        place,
        slot,
        era,
        schedule,
        start,
    };
    let frozen_until = match frozen_at(start) {
        Some(Frozen::Yes(span)) => Some(span.end()),
        Some(Frozen::Perhaps(_)) | None => None,
    };
    let thawed = freezes.ended_before(namespace, start);
    let hold = Hold {
        is_suspended: cron_job.eras.is_suspended_at(start),
        frozen_until,
        ended: cron_job.eras.resumed_before(start).max(thawed),
        was_awaited: true,
    };
    Some(match case.decision(&hold, start) {
        Decision::Start { .. } => Shadow::Starts,
        Decision::Skip(SkipReason::HeldByForbid(_)) => case.after_holder(start),
        Decision::Skip(reason) => match release.and_then(|release| case.at_release(release)) {
            Some(then) => then,
            // What else starts after a freeze depends on all slots that it held back.
            None if frozen_until.is_some_and(|until| slot.has_job() && until <= slot.created) => return None,
            None => Shadow::Holds(reason_text(&reason)),
        },
    })
}

/// A slot, and what determines what becomes of it.
struct Case<'a> {
    cron_job: &'a CronJob,
    facts: &'a CronJobFacts,
    place: usize,
    slot: &'a SlotRecord,
    era: &'a Era,
    schedule: &'a CronJobSchedule,
    start: Second,
}

/// What suspensions and freezes say at the instant of a decision.
struct Hold {
    is_suspended: bool,
    frozen_until: Option<Second>,
    /// The end of the last one.
    ended: Option<Second>,
    /// Whether cronwheel waited for the slot.
    was_awaited: bool,
}

impl Case<'_> {
    fn decision(&self, hold: &Hold, at: Second) -> Decision {
        let Case {
            cron_job,
            facts,
            slot,
            era,
            schedule,
            ..
        } = self;
        let before = self.place.checked_sub(1).and_then(|before| cron_job.slots.get(before));
        let counts_manual_jobs = schedule.options().counts_manual_jobs;
        let decided = policy::decide(
            &Facts {
                schedule,
                is_deleting: era.is_deleting,
                is_suspended: hold.is_suspended,
                created: facts.created,
                last_schedule_time: before.map(|before| before.at.timestamp()),
                starting_deadline_seconds: era.deadline_seconds,
                concurrency_policy: era.policy,
                n_active_jobs: n_active_jobs(cron_job, slot.at, at, counts_manual_jobs),
                is_active_slot: &|_| false,
                schedule_changed: None,
                frozen_until: hold.frozen_until.map(Second::timestamp),
                resumed: hold.ended.map(Second::timestamp),
                busy_since: busy(cron_job, slot.at, at),
                armed: Some(slot.at.timestamp()),
                was_awaited: hold.was_awaited,
            },
            at.timestamp(),
        );
        decided.decision
    }

    /// What becomes of the slot at the end of what held it back. `None` if it does not start.
    fn at_release(&self, release: Release) -> Option<Shadow> {
        let hold = Hold {
            is_suspended: false,
            frozen_until: None,
            ended: Some(release.at.plus(-1)),
            was_awaited: false,
        };
        let decision = self.decision(&hold, release.at);
        let is_this = decision.slot().map(Second::floor) == Some(self.slot.at);
        match decision {
            Decision::Start { .. } if is_this => {
                let wait = release.at.duration_since(self.start);
                Some(Shadow::StartsAfter(wait, release.ended))
            }
            Decision::Skip(SkipReason::HeldByForbid(_)) if is_this => Some(self.after_holder(release.at)),
            Decision::Start { .. } | Decision::Skip(_) => None,
        }
    }

    /// Forbid: a slot that can start from an instant on starts when the Job before it ends, unless the next slot or the
    /// deadline comes first.
    fn after_holder(&self, from: Second) -> Shadow {
        let start_of = |slot: Second| Second::floor(self.schedule.start_of(slot.timestamp()));
        let next = self.cron_job.slots.get(self.place + 1).map(|next| next.at);
        let next = next.or(self.cron_job.next).map(start_of);
        let expiry = policy::order_expiry(self.start.timestamp(), self.era.deadline_seconds).map(Second::floor);
        let end = holders::holder_at(self.cron_job, self.place, from).and_then(|(_, end)| end);
        let is_in_time =
            |end: &Second| next.is_none_or(|next| *end < next) && expiry.is_none_or(|expiry| *end <= expiry);
        match end.filter(is_in_time) {
            Some(end) => Shadow::StartsAfter(end.duration_since(self.start), Ended::Job),
            None => Shadow::Holds(HELD_BY_FORBID),
        }
    }
}

/// The Jobs of slots before another that ran at an instant.
fn n_active_jobs(cron_job: &CronJob, before: Second, at: Second, counts_manual_jobs: bool) -> usize {
    let is_active = |created: Second, end: Option<Second>| created <= at && end.is_none_or(|end| end > at);
    let slots = cron_job.slots.iter().take_while(|slot| slot.at < before);
    let slots = slots.filter(|slot| slot.has_job() && is_active(slot.created, slot.job_end()));
    let others = cron_job.other_runs.iter();
    let others = others.filter(|other| {
        let run = &other.run;
        let end = (run.result != RunResult::Running).then(|| Second::floor(run.finished.unwrap_or(run.created)));
        other.is_active_before(before, counts_manual_jobs) && is_active(Second::floor(run.created), end)
    });
    slots.count() + others.count()
}

/// The instant since which Jobs of earlier slots have run.
fn busy(cron_job: &CronJob, before: Second, at: Second) -> Option<Timestamp> {
    let slots = cron_job.slots.iter().take_while(|slot| slot.at < before);
    let slots = slots.filter(|slot| slot.has_job() && slot.created <= at);
    let runs = slots.map(|slot| {
        let end = slot.job_end().filter(|end| *end <= at);
        (slot.created.timestamp(), end.map(Second::timestamp))
    });
    busy_since(runs, at.timestamp())
}

fn reason_text(reason: &SkipReason) -> &'static str {
    match reason {
        SkipReason::Deleting => "B-6.1: the CronJob is being deleted",
        SkipReason::UnknownTimeZone(_) => "B-6.2: the time zone is unknown",
        SkipReason::Suspended => "B-6.3: the CronJob is suspended",
        SkipReason::Frozen(_) => "O-7: the namespace is frozen",
        SkipReason::Unparseable(_) => "B-6.4: the schedule is invalid",
        SkipReason::NeverRuns(_) => "B-6.5: the schedule never matches",
        SkipReason::NotDue => "B-9.5: no slot is due",
        SkipReason::ScheduleChanged(_) => "B-2.2: the schedule changed after the slot",
        SkipReason::DeadlineExceeded(_) => "B-10.1: startingDeadlineSeconds has passed",
        SkipReason::AlreadyActive(_) => "B-10.2: a running Job has the name of the slot",
        SkipReason::HeldByForbid(_) => HELD_BY_FORBID,
        SkipReason::Missed(_) => "O-2: the slot was missed, and missed-runs is skip",
        SkipReason::Excluded(_) => EXCLUDED,
        SkipReason::Resumed(_) => {
            "O-3: the slot passed while the CronJob was held back, and on-resume, or without it missed-runs, is skip"
        }
    }
}

/// A difference between what happened and what cronwheel would have done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Difference {
    /// The slot was lost; cronwheel would have started it at the slot.
    Lost,
    /// The same so much later, when something ended.
    LostThen(SignedDuration, Ended),
    /// The Job was late; cronwheel would have started it at the slot.
    Late,
}

/// Consecutive slots with the same difference.
struct Stretch {
    difference: Difference,
    first: Second,
    last: Second,
    n_slots: u32,
    lateness_max_seconds: u32,
}

/// The differences of a CronJob in plain words, the oldest first.
pub(super) fn differences(
    cron_job: &CronJob,
    facts: &CronJobFacts,
    known: (&Observations, &Freezes),
    now: Timestamp,
) -> Vec<String> {
    let mut stretches: Vec<Stretch> = Vec::new();
    let mut is_consecutive = false;
    for (place, slot) in cron_job.slots.iter().enumerate() {
        let shadow = with_cronwheel(cron_job, known, place);
        let start = facts.schedule.start_of(slot.at.timestamp());
        let Some(difference) = shadow.and_then(|shadow| difference(slot, &shadow, Second::floor(start))) else {
            is_consecutive = false;
            continue;
        };
        let lateness_seconds = slot.created.since(slot.startable());
        match stretches
            .last_mut()
            .filter(|last| is_consecutive && last.difference == difference)
        {
            Some(stretch) => {
                stretch.last = slot.at;
                stretch.n_slots += 1;
                stretch.lateness_max_seconds = stretch.lateness_max_seconds.max(lateness_seconds);
            }
            None => stretches.push(Stretch {
                difference,
                first: slot.at,
                last: slot.at,
                n_slots: 1,
                lateness_max_seconds: lateness_seconds,
            }),
        }
        is_consecutive = true;
    }
    stretches.iter().map(|stretch| stretch.text(facts, now)).collect()
}

/// `start` is that of cronwheel, which follows the option `spread`.
fn difference(slot: &SlotRecord, shadow: &Shadow, start: Second) -> Option<Difference> {
    let is_late = slot.has_late_job() && slot.created > start.plus_duration(LATE_AFTER);

    match shadow {
        Shadow::Starts if slot.is_lost() => Some(Difference::Lost),
        Shadow::StartsAfter(wait, ended) if slot.is_lost() => Some(Difference::LostThen(*wait, *ended)),
        Shadow::Starts if is_late => Some(Difference::Late),
        Shadow::Starts | Shadow::StartsAfter(..) | Shadow::Holds(_) => None,
    }
}

impl Stretch {
    fn text(&self, facts: &CronJobFacts, now: Timestamp) -> String {
        let zone = facts.schedule.effective_zone();
        let time = |at: Second| words::time_text(at.timestamp(), now, zone);
        let (first, last) = (time(self.first), time(self.last));
        let times = if self.n_slots == 1 {
            first
        } else {
            format!("{first} to {last}")
        };
        let them = match self.n_slots {
            1 => "it".to_owned(),
            2 => "both of them".to_owned(),
            n_slots => format!("all {n_slots} of them"),
        };
        let is_spread = facts.schedule.options().offset_seconds > Some(0);
        let slots = match (self.n_slots, is_spread) {
            (1, false) => "its slot",
            (_, false) => "their slots",
            (1, true) => "its time in the window of spread",
            (_, true) => "their times in the window of spread",
        };
        let lateness = words::duration_text(self.lateness_max_seconds);
        match self.difference {
            Difference::Lost => format!("{times}: lost; cronwheel would have started {them} at {slots}"),
            Difference::LostThen(wait, ended) => {
                let wait = words::duration_text(u32::try_from(wait.as_secs()).unwrap_or(u32::MAX));
                let when = ended.when();
                format!("{times}: lost; cronwheel would have started {them} {wait} after {slots}, {when}")
            }
            Difference::Late if self.n_slots == 1 => {
                format!("{times}: started {lateness} late; cronwheel would have started it at {slots}")
            }
            Difference::Late => {
                format!("{times}: started up to {lateness} late; cronwheel would have started {them} at {slots}")
            }
        }
    }
}
