//! Options of a CronJob: annotations under `cronwheel.dev/` that add to the built-in controller's behaviour.
//!
//! [`Options::read`] parses them once. A value that cannot be read is reported as an [`InvalidOption`], and the CronJob
//! runs as without that option. Nothing here depends on the process that reads: equal annotations, schedule and uid give
//! equal options.

mod catch_up;
mod spread;
mod words;

use jiff::SignedDuration;

pub(crate) use self::catch_up::MISSED_AFTER;
pub use self::catch_up::{CATCH_UP_COUNT_MAX, CatchUp};
pub(super) use self::catch_up::{Chosen, DueSlots};
use super::{Schedule, cron::duration};

/// An option. Each is one annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OptionName {
    /// Starts a slot later by an offset of the CronJob.
    Spread,
    /// Which missed slots start after an outage.
    MissedRuns,
    /// Which missed slots start after a suspension.
    OnResume,
    /// Passes the slot's time to the Pods.
    PassScheduledTime,
}

impl OptionName {
    /// All options, in the order of the documentation.
    pub const ALL: [OptionName; 4] = [
        OptionName::Spread,
        OptionName::MissedRuns,
        OptionName::OnResume,
        OptionName::PassScheduledTime,
    ];

    /// The annotation.
    pub fn annotation(self) -> &'static str {
        match self {
            OptionName::Spread => "cronwheel.dev/spread",
            OptionName::MissedRuns => "cronwheel.dev/missed-runs",
            OptionName::OnResume => "cronwheel.dev/on-resume",
            OptionName::PassScheduledTime => "cronwheel.dev/pass-scheduled-time",
        }
    }

    /// A valid value.
    pub fn example(self) -> &'static str {
        match self {
            OptionName::Spread => "10m",
            OptionName::MissedRuns => "all 10",
            OptionName::OnResume => "skip",
            OptionName::PassScheduledTime => "true",
        }
    }
}

/// An annotation whose value cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "annotation {} is {value:?}: {problem}; a valid value is {:?}; the CronJob runs as without it",
    .option.annotation(), .option.example()
)]
pub struct InvalidOption {
    /// The option.
    pub option: OptionName,
    /// The value, truncated.
    pub value: Box<str>,
    /// The problem.
    pub problem: Box<str>,
}

/// Longest value that a report repeats, in bytes.
const VALUE_MAX_BYTES: usize = 64;

/// The options of a CronJob. The default is the built-in controller's behaviour.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// `spread`: the window in seconds.
    pub spread_seconds: Option<u32>,
    /// The offset of this CronJob in the window, in seconds; `None` if its uid is not known.
    pub offset_seconds: Option<u32>,
    /// `missed-runs`.
    pub missed_runs: CatchUp,
    /// `on-resume`; without it, `missed-runs` applies.
    pub on_resume: Option<CatchUp>,
    /// `pass-scheduled-time`.
    pub passes_scheduled_time: bool,
    /// The annotations that cannot be used.
    pub invalid: Vec<InvalidOption>,
}

impl Options {
    /// No options.
    pub const NONE: Options = Options {
        spread_seconds: None,
        offset_seconds: None,
        missed_runs: CatchUp::Latest,
        on_resume: None,
        passes_scheduled_time: false,
        invalid: Vec::new(),
    };

    /// Whether a text of annotations may contain an option: a cheap check that almost every CronJob fails.
    pub fn may_be_in(annotations: &str) -> bool {
        let may_be = |option: OptionName| annotations.contains(option.annotation());
        annotations.contains("cronwheel.dev/") && OptionName::ALL.into_iter().any(may_be)
    }

    /// Reads the options from annotations, by name. `schedule` bounds `spread`. `hash` determines the offset: an even
    /// hash of the CronJob's uid.
    pub fn read<'a>(get: impl Fn(&str) -> Option<&'a str>, schedule: Option<&Schedule>, hash: u64) -> Options {
        let mut options = Options::default();
        for option in OptionName::ALL {
            let Some(value) = get(option.annotation()).map(str::trim) else {
                continue;
            };
            if let Err(problem) = options.set(option, value, schedule, hash) {
                options.invalid.push(InvalidOption {
                    option,
                    value: value[..value.floor_char_boundary(VALUE_MAX_BYTES)].into(),
                    problem: problem.into(),
                });
            }
        }
        options
    }

    fn set(&mut self, option: OptionName, value: &str, schedule: Option<&Schedule>, hash: u64) -> Result<(), String> {
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
            OptionName::PassScheduledTime => {
                self.passes_scheduled_time = match value {
                    "true" => true,
                    "false" => false,
                    _ => return Err("it is neither true nor false".into()),
                };
            }
        }
        Ok(())
    }

    /// The offset of this CronJob.
    pub fn offset(&self) -> SignedDuration {
        SignedDuration::from_secs(self.offset_seconds.unwrap_or(0).into())
    }

    /// Whether they choose among due slots otherwise than the built-in controller.
    pub(super) fn choose_slots(&self) -> bool {
        self.missed_runs != CatchUp::Latest || self.on_resume.is_some_and(|rule| rule != CatchUp::Latest)
    }

    /// Whether each of several due slots may start.
    pub(crate) fn start_several(&self) -> bool {
        let is_all = |rule| matches!(rule, CatchUp::All(_));
        is_all(self.missed_runs) || self.on_resume.is_some_and(is_all)
    }

    /// The rule for slots that passed during a suspension or a freeze.
    pub(crate) fn on_resume(&self) -> CatchUp {
        self.on_resume.unwrap_or(self.missed_runs)
    }
}

#[cfg(test)]
mod tests;
