//! The options of a CronJob, after `docs/spec/options.md` and without code of the controller.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::calendar::Calendar;
use crate::{
    naive_options::{CatchUp, spread_offset},
    random::Random,
};

/// The ConfigMap that `not-on` names.
pub(super) const CALENDAR_NAME: &str = "holidays";

/// The options of a CronJob. Most CronJobs have none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// The window of `spread`, in seconds.
    pub(super) spread_seconds: Option<i64>,
    pub(super) missed_runs: Option<CatchUp>,
    pub(super) on_resume: Option<CatchUp>,
    /// The date that the calendar of `not-on` excludes, as the number of days since the epoch.
    pub(super) excluded_day: Option<i64>,
    /// The token of `run-now`.
    pub(super) token: Option<u32>,
}

impl Options {
    /// Draws options, or none for three in four CronJobs.
    pub(super) fn draw(random: &mut Random, calendar: Calendar, excluded_day: i64) -> Options {
        if !random.is_one_in(4) {
            return Options::default();
        }
        let shortest = calendar.shortest_seconds();
        let window = random.pick(&[20, shortest / 2, shortest - 1]).min(3_599);
        let (missed_runs, on_resume) = draw_rules(random);
        Options {
            spread_seconds: random.is_one_in(2).then_some(window),
            missed_runs: random.is_one_in(2).then_some(missed_runs),
            on_resume: random.is_one_in(3).then_some(on_resume),
            excluded_day: random.is_one_in(12).then_some(excluded_day),
            token: None,
        }
    }

    /// Whether `missed-runs` or `on-resume` is set.
    pub(super) fn has_rules(&self) -> bool {
        self.missed_runs.is_some() || self.on_resume.is_some()
    }

    /// `metadata.annotations` for a patch. Those that are not set are null, which removes them.
    pub(super) fn annotations(&self, calendar: &Calendar) -> Map<String, Value> {
        let texts = [
            ("spread", self.spread_seconds.map(|seconds| format!("{seconds}s"))),
            ("missed-runs", self.missed_runs.map(CatchUp::text)),
            ("on-resume", self.on_resume.map(CatchUp::text)),
            ("not-on", self.excluded_day.map(|_| CALENDAR_NAME.to_owned())),
            ("run-now", self.token.map(token_text)),
            ("clock-change", calendar.clock_change().map(str::to_owned)),
        ];
        let annotation = |(option, text): (&str, Option<String>)| (format!("cronwheel.dev/{option}"), json!(text));
        texts.into_iter().map(annotation).collect()
    }

    /// The time from a slot to its start (O-1). A window that is not below the shortest distance of two slots has no
    /// effect.
    pub(super) fn offset(&self, calendar: &Calendar, uid: &str) -> SignedDuration {
        let window = self
            .spread_seconds
            .filter(|window| *window < calendar.shortest_seconds());
        spread_offset(uid, window.unwrap_or(0))
    }

    pub(super) fn excludes(&self, calendar: &Calendar, slot: Timestamp) -> bool {
        self.excluded_day == Some(calendar.day(slot))
    }

    /// The rule for missed slots.
    pub(super) fn missed_runs(&self) -> CatchUp {
        self.missed_runs.unwrap_or_default()
    }

    /// The rule for the slots that a suspension or a freeze held back.
    pub(super) fn on_resume(&self) -> CatchUp {
        self.on_resume.unwrap_or(self.missed_runs())
    }
}

/// Draws values of `missed-runs` and `on-resume`.
pub(super) fn draw_rules(random: &mut Random) -> (CatchUp, CatchUp) {
    let missed_runs = random.pick(&[CatchUp::Skip, CatchUp::All(2), CatchUp::All(4), CatchUp::All(10)]);
    let on_resume = random.pick(&[CatchUp::Latest, CatchUp::Skip, CatchUp::All(3)]);
    (missed_runs, on_resume)
}

/// The text of a token.
fn token_text(token: u32) -> String {
    format!("ask-{token}")
}

/// The token with this text.
pub(super) fn read_token(text: &str) -> u32 {
    let number = text.strip_prefix("ask-").and_then(|number| number.parse().ok());
    number.unwrap_or_else(|| panic!("{text:?} is no token of a user"))
}

/// The latest of the answered tokens.
pub(super) fn latest_token(answered: &str) -> u32 {
    read_token(answered.split(',').next().unwrap_or_default())
}

#[test]
fn a_window_that_is_not_below_the_shortest_distance_has_no_effect() {
    let offset = |window: i64| {
        let options = Options {
            spread_seconds: Some(window),
            ..Options::default()
        };
        options.offset(&Calendar::Minutes(1), "a").as_secs()
    };
    assert_eq!([59, 60, 600].map(offset), [30, 0, 0]);
}
