//! The list of CronJobs, filtered.

use jiff::Timestamp;

use super::{
    Fleet,
    attention::DAY_SECONDS,
    cron_job::CronJob,
    cron_job_view::{RunTimes, unknown_cursor},
    due_slots,
    freezes::Freezes,
    second::Second,
    slot_record::{Outcome, SlotRecord},
    words,
};
use crate::{
    observe::{
        facts::CronJobFacts,
        forecast::ForecastInput,
        slot::Mark,
        view::{Filter, Next, Row, Rows, StateFilter},
    },
    schedule::thaw::FrozenCronJob,
};

/// Number of slots of a row.
const MARKS_MAX: usize = 10;

/// Number of next slots that are looked at: at a clock change, their starts have another order.
const NEXT_EXAMINED_MAX: usize = 3;

/// A CronJob is due if its next slot is within this time.
const DUE_SECONDS: i64 = 3_600;

impl Fleet {
    /// A page of the CronJobs that match, by namespace and name.
    pub fn rows(&self, filter: &Filter, now: Timestamp) -> Rows {
        let matcher = Matcher::new(filter, &self.inherited.freezes, now);
        let mut page = Rows {
            rows: Vec::new(),
            n_matching: 0,
            n_all: self.cron_jobs.n_named(),
        };
        for cron_job in self.cron_jobs.sorted() {
            let Some(facts) = cron_job
                .facts
                .as_deref()
                .filter(|facts| matcher.matches(cron_job, facts))
            else {
                continue;
            };
            if page.n_matching >= filter.offset && page.rows.len() < filter.limit {
                let frozen_until = self.present_freeze(cron_job, now).map(|(until, _)| until);
                page.rows.push(row(cron_job, facts, (now, frozen_until)));
            }
            page.n_matching += 1;
        }
        page
    }
}

/// A CronJob in the list.
pub(super) fn row(
    cron_job: &CronJob,
    facts: &CronJobFacts,
    (now, frozen_until): (Timestamp, Option<Timestamp>),
) -> Row {
    let second = Second::floor(now);
    let first = cron_job.slots.len().saturating_sub(MARKS_MAX);
    let times = RunTimes::of(cron_job);
    let known = cron_job.slots[first..].iter().map(|slot| mark(slot, second));
    let unknown = unknown_cursor(cron_job).map(|_| Mark::NotObserved);
    Row {
        cron_job: cron_job.name.clone(),
        schedule_text: words::schedule_text(facts),
        schedule: facts.schedule.text.clone(),
        zone: facts.schedule.effective_zone().clone(),
        concurrency_policy: facts.concurrency_policy,
        starting_deadline_seconds: facts.starting_deadline_seconds,
        marks: unknown.into_iter().chain(known).collect(),
        run_time_p50: times.percentile(50),
        run_time_p95: times.percentile(95),
        next: next(cron_job, facts, (now, frozen_until)),
    }
}

/// The appearance of a slot, as [`Slot::mark`](crate::observe::slot::Slot::mark) gives it.
pub(super) fn mark(slot: &SlotRecord, now: Second) -> Mark {
    match slot.outcome {
        Outcome::Failed => Mark::Failed,
        _ if slot.has_late_job() => Mark::Late,
        Outcome::Running => Mark::Running,
        Outcome::Succeeded => Mark::Succeeded,
        Outcome::Open if slot.is_late_now(now) => Mark::Late,
        Outcome::Open => Mark::Due,
        Outcome::Lost(_) => Mark::Lost,
        Outcome::NotObserved
        | Outcome::Gone
        | Outcome::CalendarUnread
        | Outcome::FreezeUnknown
        | Outcome::SuspensionUnknown => Mark::NotObserved,
        Outcome::Deleted
        | Outcome::Suspended
        | Outcome::HeldByForbid
        | Outcome::ScheduleChanged
        | Outcome::Deleting
        | Outcome::SameMinute
        | Outcome::Missed
        | Outcome::Resumed
        | Outcome::Frozen
        | Outcome::Excluded => Mark::Skipped,
    }
}

/// The next slot, or why there is none.
fn next(cron_job: &CronJob, facts: &CronJobFacts, (now, frozen_until): (Timestamp, Option<Timestamp>)) -> Next {
    if facts.is_deleting {
        return Next::Deleting;
    }
    let next = if cron_job.enumerated.is_some() {
        next_start(cron_job, facts, Second::floor(now)).map(Second::timestamp)
    } else {
        let next = facts
            .schedule
            .next_run(facts.last_schedule_time.unwrap_or(facts.created), now);
        next.map(|next| facts.schedule.start_of(next))
    };
    match (next, blocked_slot(cron_job)) {
        (None, _) => Next::Never,
        _ if facts.is_suspended => Next::Suspended,
        (Some(_), Some(slot)) => Next::HeldBack(slot.at.timestamp()),
        (Some(next), None) => frozen_until
            .filter(|until| next < *until)
            .map_or(Next::At(next), Next::Frozen),
    }
}

/// The next start: that of the next slot, or of one that waits for its start.
fn next_start(cron_job: &CronJob, facts: &CronJobFacts, now: Second) -> Option<Second> {
    let waiting = Some(facts).filter(|facts| facts.schedule.has_options() && cron_job.next.is_some());
    let waiting = waiting.and_then(|facts| cron_job.first_start(facts, now.plus(1)));
    waiting.or(cron_job.next_start())
}

/// The slot that Forbid holds back.
fn blocked_slot(cron_job: &CronJob) -> Option<&SlotRecord> {
    cron_job
        .slots
        .last()
        .filter(|slot| slot.outcome == Outcome::HeldByForbid)
}

struct Matcher<'a> {
    filter: &'a Filter,
    freezes: &'a Freezes,
    words: Vec<String>,
    second: Second,
    day_start: Second,
}

impl<'a> Matcher<'a> {
    fn new(filter: &'a Filter, freezes: &'a Freezes, now: Timestamp) -> Matcher<'a> {
        let second = Second::floor(now);
        Matcher {
            filter,
            freezes,
            words: filter.text.split_whitespace().map(search_word).collect(),
            second,
            day_start: second.plus(-DAY_SECONDS),
        }
    }

    fn matches(&self, cron_job: &CronJob, facts: &CronJobFacts) -> bool {
        let namespace = self.filter.namespace.as_ref();
        namespace.is_none_or(|namespace| *namespace == cron_job.name.namespace)
            && self
                .filter
                .state
                .is_none_or(|state| self.has_state(cron_job, facts, state))
            && self.words.iter().all(|word| has_word(cron_job, facts, word))
            && self.has_slot(cron_job, facts)
    }

    fn has_state(&self, cron_job: &CronJob, facts: &CronJobFacts, state: StateFilter) -> bool {
        let is_recent = |at: Option<Second>| at.is_some_and(|at| at >= self.day_start);
        match state {
            StateFilter::Running => cron_job.n_running() > 0,
            StateFilter::Late => is_recent(cron_job.last.late) || is_late_now(cron_job, self.second),
            StateFilter::Failed => is_recent(cron_job.last.failed),
            StateFilter::Lost => cron_job.lost_after(self.day_start).is_some(),
            StateFilter::Suspended => facts.is_suspended,
            StateFilter::Never => is_never(cron_job),
            StateFilter::Due => !facts.is_suspended && !facts.is_deleting && self.is_due(cron_job, facts),
            StateFilter::Blocked => blocked_slot(cron_job).is_some(),
            StateFilter::Frozen => self.frozen(cron_job, facts).is_some(),
        }
    }

    /// Whether the CronJob starts something soon.
    fn is_due(&self, cron_job: &CronJob, facts: &CronJobFacts) -> bool {
        let end = self.second.plus(DUE_SECONDS);
        let Some(frozen) = self.frozen(cron_job, facts) else {
            return next_start(cron_job, facts, self.second).is_some_and(|next| next <= end);
        };
        let until = Second::ceil(frozen.until);
        let next = || cron_job.first_start(facts, until);
        until <= end && (next().is_some_and(|next| next <= end) || !frozen.starts().is_empty())
    }

    /// The CronJob in the freeze that holds it back.
    fn frozen<'b>(&self, cron_job: &CronJob, facts: &'b CronJobFacts) -> Option<FrozenCronJob<'b>> {
        let freeze = self.freezes.present(&cron_job.name.namespace, self.second)?;
        let until = freeze.end().timestamp();
        let input = (!cron_job.ignores_options()).then(|| ForecastInput::in_freeze(facts, until))?;
        input.frozen(self.second.timestamp())
    }

    /// Whether a slot was due, or something starts, in the span: past minutes have slots, those of the forecast have starts.
    fn has_slot(&self, cron_job: &CronJob, facts: &CronJobFacts) -> bool {
        let Some((from, to)) = self.filter.slots_between else {
            return true;
        };
        let (from, to) = (Second::ceil(from), Second::ceil(to));
        let present = self.second.plus(1).max(from).min(to);
        was_due(cron_job, facts, (from, present)) || self.starts_between(cron_job, facts, (present, to))
    }

    /// Whether something starts between two instants that are ahead.
    fn starts_between(&self, cron_job: &CronJob, facts: &CronJobFacts, (from, to): (Second, Second)) -> bool {
        if from >= to || facts.is_suspended || facts.is_deleting {
            return false;
        }
        let frozen = self.frozen(cron_job, facts);
        let thaw = frozen.as_ref().map(|frozen| Second::ceil(frozen.until));
        let is_thawed = thaw.is_some_and(|thaw| from <= thaw && thaw < to);
        if is_thawed && frozen.is_some_and(|frozen| !frozen.starts().is_empty()) {
            return true;
        }
        let from = thaw.map_or(from, |thaw| from.max(thaw));
        // With `spread`, the slot is before its start.
        let is_in = |at: Timestamp| (from..to).contains(&Second::floor(at));
        let next = cron_job.next_slots(facts, from.plus(-1)).take(NEXT_EXAMINED_MAX);
        let mut next = next.take_while(|next| Second::floor(next.at) < to);
        next.any(|next| is_in(next.at) || is_in(next.start))
    }
}

/// Whether a slot was due between two instants, of which the last is excluded, and the CronJob existed and was not
/// suspended.
fn was_due(cron_job: &CronJob, facts: &CronJobFacts, (from, to): (Second, Second)) -> bool {
    let from = from.max(Second::floor(facts.created).plus(1));
    cron_job.eras.wanted_spans().any(|(begin, end)| {
        let (begin, end) = (begin.max(from), end.min(to));
        begin < end && due_slots::next_after(cron_job, begin.plus(-1)).is_some_and(|slot| slot < end)
    })
}

/// Whether a slot is due, late and without a Job.
pub(super) fn is_late_now(cron_job: &CronJob, now: Second) -> bool {
    cron_job.slots.iter().rev().any(|slot| slot.is_late_now(now))
}

/// Whether the schedule never matches or is invalid.
pub(super) fn is_never(cron_job: &CronJob) -> bool {
    cron_job.enumerated.is_some() && cron_job.next.is_none()
}

/// A word of the search. Names are in lower case, and labels as they are.
fn search_word(word: &str) -> String {
    if word.contains('=') {
        word.to_owned()
    } else {
        word.to_lowercase()
    }
}

/// Whether a word is part of `namespace/name`, or a label as `key=value`.
fn has_word(cron_job: &CronJob, facts: &CronJobFacts, word: &str) -> bool {
    if let Some((key, value)) = word.split_once('=') {
        return facts.labels.get(key) == Some(value);
    }
    let (namespace, name) = (&cron_job.name.namespace, &cron_job.name.name);
    match word.split_once('/') {
        Some((end, start)) => namespace.ends_with(end) && name.starts_with(start),
        None => namespace.contains(word) || name.contains(word),
    }
}
