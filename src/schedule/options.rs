//! Options of a CronJob: annotations under `cronwheel.dev/` that add to the built-in controller's behaviour.
//!
//! [`Options::read`] parses them once. A value that cannot be read is reported as an [`InvalidOption`], and the CronJob
//! runs as without that option. Nothing here depends on the process that reads: equal annotations, schedule and uid give
//! equal options.

mod calendar;
mod catch_up;
mod invalid;
mod namespace;
mod run_now;
mod spread;
mod words;

use std::sync::Arc;

use jiff::SignedDuration;

#[cfg(test)]
pub(crate) use self::calendar::date_of;
pub(crate) use self::{
    calendar::Day,
    catch_up::MISSED_AFTER,
    run_now::{TOKENS_REMEMBERED_MAX, may_be_done, read_token, with_token_done},
};
pub use self::{
    calendar::{
        CALENDAR_BYTES_MAX, CALENDAR_ENTRIES_MAX, CALENDAR_LABEL, Calendar, ExcludedDays, NamedCalendar, NotOn,
    },
    catch_up::{CATCH_UP_COUNT_MAX, CatchUp},
    invalid::InvalidOption,
    namespace::{ALERTS_ANNOTATION, Freeze, NamespaceOptions, freeze_end, is_without_end},
    run_now::{RUN_DONE_ANNOTATION, tokens_of},
};
pub(super) use self::{
    catch_up::{Chosen, DueSlots},
    invalid::ValueProblem,
};
use super::{ClockChange, Schedule, cron::duration};

/// An option. Each is one annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OptionName {
    /// Starts a slot later by an offset of the CronJob.
    Spread,
    /// Which missed slots start after an outage.
    MissedRuns,
    /// Which missed slots start after a suspension.
    OnResume,
    /// Other schedules than `spec.schedule`, with seconds and years.
    Schedule,
    /// What happens to a slot that a clock change skips or repeats.
    ClockChange,
    /// Passes the slot's time to the Pods.
    PassScheduledTime,
    /// The calendar on whose dates nothing starts.
    NotOn,
    /// Asks for one run, once for each value.
    RunNow,
    /// Whether Forbid and Replace count Jobs that others create.
    ManualJobs,
    /// Until when nothing starts in a namespace.
    FreezeUntil,
}

impl OptionName {
    /// The options of a CronJob, in the order of the documentation.
    pub const OF_CRON_JOB: [OptionName; 9] = [
        // First, because the others depend on it.
        OptionName::Schedule,
        OptionName::Spread,
        OptionName::MissedRuns,
        OptionName::OnResume,
        OptionName::ClockChange,
        OptionName::PassScheduledTime,
        OptionName::NotOn,
        OptionName::RunNow,
        OptionName::ManualJobs,
    ];

    /// The options that a namespace can set for its CronJobs.
    pub const OF_NAMESPACE: [OptionName; 3] = [OptionName::Spread, OptionName::MissedRuns, OptionName::ClockChange];

    /// The annotation.
    pub const fn annotation(self) -> &'static str {
        match self {
            OptionName::Spread => "cronwheel.dev/spread",
            OptionName::MissedRuns => "cronwheel.dev/missed-runs",
            OptionName::OnResume => "cronwheel.dev/on-resume",
            OptionName::Schedule => "cronwheel.dev/schedule",
            OptionName::ClockChange => "cronwheel.dev/clock-change",
            OptionName::PassScheduledTime => "cronwheel.dev/pass-scheduled-time",
            OptionName::NotOn => "cronwheel.dev/not-on",
            OptionName::RunNow => "cronwheel.dev/run-now",
            OptionName::ManualJobs => "cronwheel.dev/manual-jobs",
            OptionName::FreezeUntil => "cronwheel.dev/freeze-until",
        }
    }

    /// A valid value.
    pub fn example(self) -> &'static str {
        match self {
            OptionName::Spread => "10m",
            OptionName::MissedRuns => "all 10",
            OptionName::OnResume => "skip",
            OptionName::Schedule => "*/15 * 8-18 * * Mon-Fri",
            OptionName::ClockChange => "once",
            OptionName::PassScheduledTime => "true",
            OptionName::NotOn => "holidays",
            OptionName::RunNow => "2026-12-24-a",
            OptionName::ManualJobs => "count",
            OptionName::FreezeUntil => "2026-12-27T06:00:00Z",
        }
    }
}

/// Longest value that is kept, in bytes.
const VALUE_MAX_BYTES: usize = 64;

/// A value without spaces around it, truncated. No valid value is truncated, and none is valid because it is.
fn kept(value: &str) -> Box<str> {
    const END: &str = "…";
    let value = value.trim();
    if value.len() <= VALUE_MAX_BYTES {
        return value.into();
    }
    let begin = &value[..value.floor_char_boundary(VALUE_MAX_BYTES - END.len())];
    [begin, END].concat().into()
}

/// The options of a CronJob. The default is the built-in controller's behaviour.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option that is there or not")]
pub struct Options {
    /// `spread`: the window in seconds.
    pub spread_seconds: Option<u32>,
    /// The offset of this CronJob in the window, in seconds; `None` if its uid is not known.
    pub offset_seconds: Option<u32>,
    /// `missed-runs`.
    pub missed_runs: CatchUp,
    /// `on-resume`; without it, `missed-runs` applies.
    pub on_resume: Option<CatchUp>,
    /// `clock-change`.
    pub clock_change: ClockChange,
    /// Whether `clock-change` changes nothing, because the schedule has all hours or is an interval.
    pub(super) is_clock_change_idle: bool,
    /// `pass-scheduled-time`.
    pub passes_scheduled_time: bool,
    /// `schedule`: whether it replaces `spec.schedule`.
    pub has_schedules: bool,
    /// `not-on`.
    pub not_on: Option<NotOn>,
    /// `run-now`: the token of the run that is asked for.
    pub run_now: Option<Box<str>>,
    /// `manual-jobs`.
    pub counts_manual_jobs: bool,
    /// The annotations that cannot be used.
    pub invalid: Vec<InvalidOption>,
    /// The problem of `schedule`.
    invalid_schedules: Option<InvalidOption>,
    /// The other annotations of the CronJob itself, in the order of [`OptionName::OF_CRON_JOB`].
    own: Vec<(OptionName, Box<str>)>,
}

impl Options {
    /// No options.
    pub const NONE: Options = Options {
        spread_seconds: None,
        offset_seconds: None,
        missed_runs: CatchUp::Latest,
        on_resume: None,
        clock_change: ClockChange::Literal,
        is_clock_change_idle: false,
        passes_scheduled_time: false,
        has_schedules: false,
        not_on: None,
        run_now: None,
        counts_manual_jobs: false,
        invalid: Vec::new(),
        invalid_schedules: None,
        own: Vec::new(),
    };

    /// Whether a text of annotations may contain an option: a cheap check that almost every CronJob fails.
    pub fn may_be_in(annotations: &str) -> bool {
        let may_be = |option: OptionName| annotations.contains(option.annotation());
        annotations.contains("cronwheel.dev/") && OptionName::OF_CRON_JOB.into_iter().any(may_be)
    }

    /// Reads the options from the annotations of a CronJob, by name. `schedule` bounds `spread`. `hash` determines the
    /// offset: an even hash of the CronJob's uid.
    pub fn read<'a>(get: impl Fn(&str) -> Option<&'a str>, schedule: Option<&Schedule>, hash: u64) -> Options {
        let own = |option: OptionName| Some((option, kept(get(option.annotation())?)));
        let others = OptionName::OF_CRON_JOB.into_iter();
        let others = others.filter(|option| *option != OptionName::Schedule);
        Options::of(others.filter_map(own).collect(), None, schedule, hash)
    }

    /// Adds the option `schedule`, which is used or has a problem.
    pub(super) fn set_schedules(&mut self, value: &str, result: Result<(), ValueProblem>) {
        self.has_schedules = result.is_ok();
        self.invalid_schedules = result
            .err()
            .map(|problem| InvalidOption::new(OptionName::Schedule, false, value, problem));
        self.invalid.extend(self.invalid_schedules.clone());
    }

    /// The same options in a namespace. An annotation of the CronJob wins over that of its namespace.
    #[must_use]
    pub fn within(&self, namespace: Option<&NamespaceOptions>, schedule: Option<&Schedule>, hash: u64) -> Options {
        let mut options = Options::of(self.own.clone(), namespace, schedule, hash);
        options.has_schedules = self.has_schedules;
        options.invalid_schedules.clone_from(&self.invalid_schedules);
        options.invalid.extend(self.invalid_schedules.clone());
        options
    }

    fn of(
        own: Vec<(OptionName, Box<str>)>,
        namespace: Option<&NamespaceOptions>,
        schedule: Option<&Schedule>,
        hash: u64,
    ) -> Options {
        let mut options = Options {
            invalid: namespace.map_or_else(Vec::new, |namespace| namespace.invalid.clone()),
            ..Options::NONE
        };
        for option in OptionName::OF_CRON_JOB {
            let of_cron_job = own.iter().find(|(name, _)| *name == option);
            let of_cron_job = of_cron_job.map(|(_, value)| (false, &**value));
            let of_namespace = namespace.and_then(|namespace| Some((true, namespace.default_of(option)?)));
            // An invalid value counts as absent.
            for (is_of_namespace, value) in of_cron_job.into_iter().chain(of_namespace) {
                match options.set(option, value, schedule, hash) {
                    Ok(()) => break,
                    Err(problem) => {
                        let invalid = InvalidOption::new(option, is_of_namespace, value, problem);
                        options.invalid.push(invalid);
                    }
                }
            }
        }
        options.own = own;
        options
    }

    fn set(
        &mut self,
        option: OptionName,
        value: &str,
        schedule: Option<&Schedule>,
        hash: u64,
    ) -> Result<(), ValueProblem> {
        if value == "none" {
            return Ok(());
        }
        match option {
            OptionName::Spread => {
                let seconds = spread::window_seconds(value, schedule)?;
                self.spread_seconds = Some(seconds);
                self.offset_seconds = Some(spread::offset_seconds(hash, seconds));
            }
            OptionName::MissedRuns => self.missed_runs = CatchUp::read(value)?,
            OptionName::OnResume => self.on_resume = Some(CatchUp::read(value)?),
            OptionName::ClockChange => {
                let clock_change = ClockChange::of_name(value);
                self.clock_change = clock_change.ok_or("it is neither literal nor once")?;
            }
            OptionName::PassScheduledTime => {
                self.passes_scheduled_time = match value {
                    "true" => true,
                    "false" => false,
                    _ => return Err("it is neither true nor false".into()),
                };
            }
            OptionName::NotOn => self.not_on = Some(NotOn::read(value)?),
            OptionName::RunNow => self.run_now = Some(run_now::read_token(value)?),
            OptionName::ManualJobs => {
                if value != "count" {
                    return Err("it is not count".into());
                }
                self.counts_manual_jobs = true;
            }
            // Read elsewhere: one replaces the schedule, the other belongs to the namespace.
            OptionName::Schedule | OptionName::FreezeUntil => {}
        }
        Ok(())
    }

    /// Whether these options treat slots as the others do. A run that is asked for has no slot.
    pub fn treat_slots_like(&self, others: &Options) -> bool {
        let without_run = |options: &Options| {
            let mut options = options.clone();
            options.run_now = None;
            options.own.retain(|(option, _)| *option != OptionName::RunNow);
            options.invalid.retain(|invalid| invalid.option != OptionName::RunNow);
            options
        };
        self == others || without_run(self) == without_run(others)
    }

    /// The offset of this CronJob.
    pub fn offset(&self) -> SignedDuration {
        SignedDuration::from_secs(self.offset_seconds.unwrap_or(0).into())
    }

    /// Takes the calendar that `not-on` names, or its problem.
    pub(super) fn set_calendar(&mut self, found: Result<Arc<Calendar>, String>) {
        let Some(not_on) = &mut self.not_on else { return };
        self.invalid.retain(|invalid| invalid.option != OptionName::NotOn);
        match found {
            Ok(calendar) => not_on.calendar = NamedCalendar::Known(calendar),
            Err(problem) => {
                not_on.calendar = NamedCalendar::Unusable;
                let invalid = InvalidOption::new(OptionName::NotOn, false, &not_on.name, problem);
                self.invalid.push(invalid);
            }
        }
    }

    /// Whether they choose among due slots otherwise than the built-in controller.
    pub(super) fn choose_slots(&self) -> bool {
        self.not_on.as_ref().is_some_and(|not_on| not_on.known().is_some())
            || self.missed_runs != CatchUp::Latest
            || self.on_resume.is_some_and(|rule| rule != CatchUp::Latest)
    }

    /// Whether each of several due slots may start.
    pub(crate) fn start_several(&self) -> bool {
        let is_all = |rule| matches!(rule, CatchUp::All(_));
        is_all(self.missed_runs) || self.on_resume.is_some_and(is_all)
    }

    /// The options that change when something starts.
    pub fn of_starts(&self) -> Vec<OptionName> {
        let changes = [
            (OptionName::Schedule, self.has_schedules),
            (OptionName::Spread, self.spread_seconds.is_some()),
            (OptionName::MissedRuns, self.missed_runs != CatchUp::Latest),
            (OptionName::OnResume, self.on_resume() != self.missed_runs),
            (
                OptionName::ClockChange,
                self.clock_change != ClockChange::Literal && !self.is_clock_change_idle,
            ),
            (OptionName::NotOn, self.not_on.is_some()),
            (OptionName::ManualJobs, self.counts_manual_jobs),
        ];
        let changes = changes.into_iter().filter(|(_, is_change)| *is_change);
        changes.map(|(option, _)| option).collect()
    }

    /// The rule for slots that passed during a suspension or a freeze.
    pub(crate) fn on_resume(&self) -> CatchUp {
        self.on_resume.unwrap_or(self.missed_runs)
    }
}

#[cfg(test)]
mod tests;
