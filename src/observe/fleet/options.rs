//! What the options of a CronJob change for its slots. The built-in controller ignores them: they count where cronwheel
//! creates the Jobs.

use super::{
    cron_job::CronJob,
    due_slots,
    freezes::Freezes,
    names::{BUILT_IN, CRONWHEEL},
    second::Second,
    slot_record::SlotRecord,
};
use crate::{
    observe::{facts::CronJobFacts, forecast::ForecastInput, view::NextSlot},
    schedule::{
        ConcurrencyPolicy, CronJobSchedule,
        options::{CatchUp, ExcludedDays, MISSED_AFTER, NamedCalendar, Options},
    },
};

/// Number of slots on either side that are looked at for a Job of one of the controllers.
const SLOTS_EXAMINED_MAX: usize = 64;

/// Creation times have whole seconds, and the clocks of two machines differ: a slot is missed this much later.
const SLACK_SECONDS: i64 = 2;

/// Whether the controller that runs a CronJob follows its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Runner {
    /// The built-in controller creates the Jobs.
    BuiltIn,
    /// cronwheel does, or nobody has created one yet.
    Cronwheel,
}

/// The controller of a slot: the creator of its Job or of the nearest one before it, otherwise after it.
fn runner(slots: &[SlotRecord], place: usize) -> Runner {
    let of_slot = |slot: &SlotRecord| match slot.creator {
        BUILT_IN if slot.has_job() => Some(Runner::BuiltIn),
        CRONWHEEL if slot.has_job() => Some(Runner::Cronwheel),
        _ => None,
    };
    let (before, after) = slots.split_at(slots.len().min(place + 1));
    let before = before.iter().rev().take(SLOTS_EXAMINED_MAX).find_map(of_slot);
    let after = || after.iter().take(SLOTS_EXAMINED_MAX).find_map(of_slot);
    before.or_else(after).unwrap_or(Runner::Cronwheel)
}

impl CronJob {
    /// Whether the built-in controller runs this CronJob, so that its options change nothing.
    pub(super) fn ignores_options(&self) -> bool {
        runner(&self.slots, self.slots.len()) == Runner::BuiltIn
    }

    /// What the forecast needs.
    pub(super) fn forecast_input(&self, freezes: &Freezes) -> Option<ForecastInput<'_>> {
        let facts = self.facts.as_deref()?;
        let thaw = freezes.last_end(&self.name.namespace);
        let ignores_options = (facts.schedule.has_options() || thaw.is_some()) && self.ignores_options();
        Some(ForecastInput {
            facts,
            ignores_options,
            frozen_until: thaw.filter(|_| !ignores_options).map(Second::timestamp),
        })
    }

    /// What cannot be followed of the options, and that they are ignored.
    pub(super) fn option_warnings(&self, facts: &CronJobFacts) -> Vec<String> {
        let options = facts.schedule.options();
        let mut warnings: Vec<String> = options.invalid.iter().map(ToString::to_string).collect();
        if !options.sentences(facts.concurrency_policy).is_empty() && self.ignores_options() {
            let warning = "the built-in controller creates the Jobs of this CronJob and ignores its options";
            warnings.push(warning.to_owned());
        }
        warnings
    }

    /// The next slots with their starts, the earliest first, with those that wait for their start.
    pub(super) fn next_slots(&self, facts: &CronJobFacts, now: Second) -> impl Iterator<Item = NextSlot> {
        let offset = facts.schedule.options().offset().as_secs();
        let wanted_after = move |at| self.wanted_from(due_slots::next_after(self, at)?);
        let first = wanted_after(now.plus(-offset));
        let slots = std::iter::successors(first, move |at| wanted_after(*at));
        // Later slots are clamped to the last second.
        let slots = slots.take_while(|at| *at < Second::MAX);
        let slots = slots.map(|at| (at, self.start_at(self.slots.len(), at)));
        let later = slots.filter(move |(_, start)| *start > now);
        later.map(|(at, start)| NextSlot {
            at: at.timestamp(),
            start: start.timestamp(),
        })
    }

    /// The schedule in force at an instant, if the CronJob had options then and they are followed. `place` is that of the
    /// slot.
    fn with_options(&self, place: usize, at: Second) -> Option<&CronJobSchedule> {
        let facts = self.facts.as_deref()?;
        let era = self.eras.get(self.eras.index_at(at))?;
        let schedule = Some(era.schedule(facts)).filter(|schedule| schedule.has_options())?;
        (runner(&self.slots, place) == Runner::Cronwheel).then_some(schedule)
    }

    /// Whether a slot follows options and freezes: cronwheel runs the CronJob.
    pub(super) fn follows_cronwheel_at(&self, place: usize) -> bool {
        runner(&self.slots, place) == Runner::Cronwheel
    }

    /// The entry of the calendar that excludes a slot.
    pub(super) fn excluded_days(&self, place: usize) -> Option<&ExcludedDays> {
        let at = self.slots.get(place)?.at;
        let exclusion = self.with_options(place, at)?.exclusion()?;
        exclusion.entry(at.timestamp())
    }

    /// The calendar that excludes a slot before those that are known, and its note.
    pub(super) fn excluded_at(&self, at: Second) -> Option<(Box<str>, Box<str>)> {
        let schedule = self.with_options(0, at)?;
        let entry = schedule.exclusion()?.entry(at.timestamp())?;
        let not_on = schedule.options().not_on.as_ref()?;
        Some(((*not_on.name).into(), entry.note.clone()))
    }

    /// The name of the calendar of a slot.
    pub(super) fn calendar_at(&self, place: usize) -> Option<&str> {
        let not_on = self.options_at(place).not_on.as_ref()?;
        Some(&*not_on.name)
    }

    /// Whether the calendar of a slot was not read.
    pub(super) fn lacks_calendar_at(&self, place: usize) -> bool {
        let not_on = self.options_at(place).not_on.as_ref();
        not_on.is_some_and(|not_on| not_on.calendar == NamedCalendar::Unknown)
    }

    /// The first slot from this one on that no calendar excludes.
    fn wanted_from(&self, slot: Second) -> Option<Second> {
        let schedule = self.with_options(self.slots.len(), slot);
        let Some(schedule) = schedule.filter(|schedule| schedule.exclusion().is_some()) else {
            return Some(slot);
        };
        schedule.wanted_from(slot.timestamp()).map(Second::floor)
    }

    /// The options that decide a slot.
    pub(super) fn options_at(&self, place: usize) -> &Options {
        static NONE: Options = Options::NONE;
        let slot = self.slots.get(place);
        let schedule = slot.and_then(|slot| self.with_options(place, slot.at));
        schedule.map_or(&NONE, CronJobSchedule::options)
    }

    /// Whether the schedule before the slots that are known has seconds.
    pub(super) fn has_seconds_before(&self, at: Second) -> bool {
        self.with_options(0, at).is_some_and(CronJobSchedule::has_seconds)
    }

    /// Whether a slot has a Job of its own although its minute has others: its schedule has seconds.
    pub(super) fn has_seconds_at(&self, place: usize) -> bool {
        let slot = self.slots.get(place);
        let schedule = slot.and_then(|slot| self.with_options(place, slot.at));
        schedule.is_some_and(CronJobSchedule::has_seconds)
    }

    /// The instant at which a slot starts: later than the slot by the offset of `spread`.
    pub(super) fn start_of(&self, place: usize) -> Option<Second> {
        let at = self.slots.get(place)?.at;
        Some(self.start_at(place, at))
    }

    /// The start of the next slot.
    pub(super) fn next_start(&self) -> Option<Second> {
        let next = self.wanted_from(self.next?)?;
        Some(self.start_at(self.slots.len(), next))
    }

    /// The start of a slot that is not due yet.
    pub(super) fn start_at(&self, place: usize, at: Second) -> Second {
        let schedule = self.with_options(place, at);
        schedule.map_or(at, |schedule| Second::floor(schedule.start_of(at.timestamp())))
    }

    /// The first start at or after an instant, of a slot that is due or not.
    pub(super) fn first_start(&self, facts: &CronJobFacts, from: Second) -> Option<Second> {
        let offset = facts.schedule.options().offset().as_secs();
        let before = from.plus(-offset - 1);
        let wanted_after = move |at| self.wanted_from(due_slots::next_after(self, at)?);
        let starts = std::iter::successors(wanted_after(before), |at| wanted_after(*at));
        // The window is shorter than the distance of two slots, except at a clock change.
        let starts = starts.map(|at| self.start_at(self.slots.len(), at)).take(3);
        starts.filter(|start| *start >= from).min()
    }

    /// The instant at which a controller no longer starts a slot because of later ones, by a rule. Under `all`, that is the
    /// start of the slot with which it is no longer among the last ones, or the creation of a later Job: the oldest starts
    /// first.
    pub(super) fn superseded_at(&self, place: usize, rule: CatchUp) -> Option<Second> {
        let n_later = match rule {
            CatchUp::All(count) if !self.is_replace_at(place) => usize::from(count),
            CatchUp::All(_) | CatchUp::Latest | CatchUp::Skip => 1,
        };
        // Slots that a calendar excludes push out none.
        let wanted = (place + 1..self.slots.len()).filter(|later| self.excluded_days(*later).is_none());
        let mut n_wanted = 0;
        let last = wanted.inspect(|_| n_wanted += 1).nth(n_later - 1);
        let pushed_out = match last {
            Some(last) => self.start_of(last),
            None if n_wanted + 1 == n_later => self.next_start(),
            None => None,
        };
        if n_later == 1 {
            return pushed_out;
        }
        let later = self.slots.iter().skip(place + 1).take(n_later);
        let overtaken = later.filter(|slot| slot.has_job()).map(|slot| slot.created).min();
        pushed_out.into_iter().chain(overtaken).min()
    }

    fn is_replace_at(&self, place: usize) -> bool {
        let era = self.slots.get(place).map(|slot| self.eras.index_at(slot.at));
        let era = era.and_then(|index| self.eras.get(index));
        era.is_some_and(|era| era.policy == ConcurrencyPolicy::Replace)
    }

    /// The instant from which `missed-runs: skip` no longer starts a slot that could start at `startable`.
    pub(super) fn missed_at(&self, place: usize, startable: Second) -> Option<Second> {
        let is_skip = self.options_at(place).missed_runs == CatchUp::Skip;
        is_skip.then(|| startable.plus(MISSED_AFTER.as_secs() + SLACK_SECONDS))
    }
}
