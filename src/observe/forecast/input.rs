//! What decides the starts of one CronJob.

use jiff::{SignedDuration, Timestamp};

use super::before;
use crate::{
    observe::facts::CronJobFacts,
    schedule::{after, due, thaw::FrozenCronJob},
};

/// A CronJob, and whether its options count.
#[derive(Clone, Copy, Debug)]
pub struct ForecastInput<'a> {
    /// The CronJob.
    pub facts: &'a CronJobFacts,
    /// Whether the built-in controller runs it, which ignores its options.
    pub ignores_options: bool,
    /// The end of a freeze: nothing starts before.
    pub frozen_until: Option<Timestamp>,
}

impl<'a> From<&'a CronJobFacts> for ForecastInput<'a> {
    fn from(facts: &'a CronJobFacts) -> ForecastInput<'a> {
        ForecastInput {
            facts,
            ignores_options: false,
            frozen_until: None,
        }
    }
}

impl<'a> ForecastInput<'a> {
    /// A CronJob that follows a freeze until this instant.
    pub(in crate::observe) fn in_freeze(facts: &'a CronJobFacts, until: Timestamp) -> ForecastInput<'a> {
        ForecastInput {
            frozen_until: Some(until),
            ..ForecastInput::from(facts)
        }
    }

    /// The CronJob in a freeze that holds at an instant.
    pub(in crate::observe) fn frozen(&self, at: Timestamp) -> Option<FrozenCronJob<'a>> {
        let facts = self.facts;
        Some(FrozenCronJob {
            schedule: &facts.schedule,
            created: facts.created,
            last_schedule_time: facts.last_schedule_time,
            starting_deadline_seconds: facts.starting_deadline_seconds,
            concurrency_policy: facts.concurrency_policy,
            until: self.frozen_until.filter(|until| at < *until)?,
        })
    }

    /// The time from a slot to its start.
    fn offset(&self) -> SignedDuration {
        if self.ignores_options {
            SignedDuration::ZERO
        } else {
            self.facts.schedule.options().offset()
        }
    }
}

/// What decides the starts of a CronJob.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ChainKey {
    pub(super) text: Box<str>,
    pub(super) time_zone: Option<Box<str>>,
    pub(super) default_zone: Box<str>,
    pub(super) options: Option<Box<str>>,
    /// The first activation of an interval, which differs from CronJob to CronJob.
    pub(super) first: Option<Timestamp>,
    /// The time from a slot to its start.
    pub(super) offset: SignedDuration,
    /// Namespace and name of the calendar on whose dates nothing starts.
    pub(super) calendar: Option<(Box<str>, Box<str>)>,
    /// The end of a freeze in the time of the forecast.
    pub(super) frozen_until: Option<Timestamp>,
}

/// `None` for a CronJob that starts nothing.
pub(super) fn chain_key(input: ForecastInput<'_>, from: Timestamp) -> Option<ChainKey> {
    let (cron_job, offset) = (input.facts, input.offset());
    let schedule = &cron_job.schedule;
    let parsed = schedule.parsed.as_ref().ok()?;
    let has_zone = !matches!(schedule.zone, Some(Err(_)));
    if cron_job.is_suspended || cron_job.is_deleting || !has_zone {
        return None;
    }
    let anchor = cron_job.last_schedule_time.unwrap_or(cron_job.created);
    let first = if parsed.is_every() {
        let instant = after(before(from), -offset);
        Some(due::next_in_chain(parsed, &schedule.default_zone, anchor, instant)?)
    } else {
        None
    };
    let calendar = schedule.options().not_on.as_ref();
    let calendar = calendar.filter(|not_on| !input.ignores_options && not_on.known().is_some());
    Some(ChainKey {
        text: schedule.text.clone(),
        time_zone: schedule.time_zone.clone(),
        default_zone: schedule.default_zone.name().into(),
        options: parsed.options_key(),
        first,
        offset,
        calendar: calendar.map(|not_on| (cron_job.namespace.clone(), not_on.name.clone())),
        frozen_until: input.frozen_until.filter(|until| from < *until),
    })
}
