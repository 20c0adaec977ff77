//! The starts of the near future: how many Jobs each minute starts in each namespace, and where the peak is.
//!
//! CronJobs with the same activations share one set of minutes, so 20,000 CronJobs cost little more than their distinct
//! schedules. A minute counts once for a CronJob, since Jobs are named by the minute, unless its option `schedule` has
//! seconds. At the end of a freeze, the slots that it held back start as the options say, all in that minute.

mod input;
mod minutes;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

pub use self::input::ForecastInput;
use self::{
    input::{ChainKey, chain_key},
    minutes::MinuteSet,
};
use super::view::{ClockChange, Peak};
use crate::schedule::{CronJobSchedule, Zone, after};

const MINUTE_SECONDS: i64 = 60;

/// Maximum length of a forecast. It bounds the memory of a set of minutes to 6 KB.
const MINUTES_MAX: i64 = 32 * 24 * 60;

/// Maximum number of starts that are computed for schedules with seconds: those of a day of eleven CronJobs that run each
/// second. Of further such schedules, a minute counts once.
const STARTS_WITH_SECONDS_MAX: u32 = 1_000_000;

/// A start that is this far from the others of its CronJob belongs to a CronJob that runs hourly or less often.
const HOUR_MINUTES: i64 = 60;

/// The starts from one instant to another.
#[derive(Clone, Debug)]
pub struct Forecast {
    from: Timestamp,
    to: Timestamp,
    /// The minute of `from`, counted from the epoch.
    first_minute: i64,
    chains: BTreeMap<ChainKey, usize>,
    /// By the numbers that `chains` holds.
    minutes: Vec<MinuteSet>,
    n_starts_with_seconds: u32,
    /// Number of CronJobs of each chain, for each namespace.
    namespaces: BTreeMap<Box<str>, BTreeMap<usize, u32>>,
    /// Number of starts of held back slots at the end of a freeze, by place of the minute, for each namespace.
    thaws: BTreeMap<Box<str>, BTreeMap<usize, u32>>,
    /// Number of starts in each minute.
    totals: Vec<u64>,
    /// Kept, because it takes all namespaces with their chains to find it.
    peak: Option<Peak>,
    clock_changes: Vec<ClockChange>,
}

impl Forecast {
    /// Computes the starts of `cron_jobs` from `from`, inclusive, to `to`, exclusive, at most 32 days. CronJobs that are
    /// suspended or being deleted start nothing.
    pub fn new<'a, I: Into<ForecastInput<'a>>>(
        cron_jobs: impl Iterator<Item = I>,
        from: Timestamp,
        to: Timestamp,
    ) -> Forecast {
        let first_minute = minute_of(from);
        let n_minutes = (ceil_minute_of(to) - first_minute).clamp(0, MINUTES_MAX);
        let mut forecast = Forecast {
            from,
            to: to.min(start_of(first_minute + n_minutes)).max(from),
            first_minute,
            chains: BTreeMap::new(),
            minutes: Vec::new(),
            n_starts_with_seconds: 0,
            namespaces: BTreeMap::new(),
            thaws: BTreeMap::new(),
            totals: vec![0; usize::try_from(n_minutes).unwrap_or_default()],
            peak: None,
            clock_changes: Vec::new(),
        };
        let mut zones = BTreeMap::new();
        for cron_job in cron_jobs {
            forecast.add(cron_job.into(), &mut zones);
        }
        forecast.add_totals();
        forecast.peak = forecast.find_peak();
        forecast.clock_changes = clock_changes(zones.into_values(), forecast.from, forecast.to);
        forecast
    }

    /// The first instant.
    pub fn from(&self) -> Timestamp {
        self.from
    }

    /// The end, exclusive.
    pub fn to(&self) -> Timestamp {
        self.to
    }

    /// Number of starts in a namespace in the minute that contains an instant.
    pub fn starts(&self, namespace: &str, minute: Timestamp) -> u32 {
        let (Some(chains), Some(place)) = (self.namespaces.get(namespace), self.place_of(minute)) else {
            return 0;
        };
        let starts = chains.iter();
        let starts = starts.map(|(chain, n_cron_jobs)| n_cron_jobs * self.minutes[*chain].n_starts(place));
        let thaws = self.thaws.get(namespace).and_then(|thaws| thaws.get(&place));
        starts.chain(thaws.copied()).sum()
    }

    /// Number of starts from the minute that contains `from` to the last minute that begins before `to`.
    pub fn n_starts_between(&self, from: Timestamp, to: Timestamp) -> u64 {
        self.totals[self.places_between(from, to)].iter().sum()
    }

    /// Number of starts in each minute of a namespace, beginning with the minute that contains [`Forecast::from`]. For a
    /// whole row this is faster than [`Forecast::starts`].
    pub fn starts_by_minute(&self, namespace: &str) -> Vec<u32> {
        let mut starts = vec![0; self.totals.len()];
        for (chain, n_cron_jobs) in self.namespaces.get(namespace).into_iter().flatten() {
            let minutes = &self.minutes[*chain];
            for place in minutes.places() {
                starts[place] += n_cron_jobs * minutes.n_starts(place);
            }
        }
        for (place, n_starts) in self.thaws.get(namespace).into_iter().flatten() {
            starts[*place] += n_starts;
        }
        starts
    }

    /// The namespaces with CronJobs that may start something, by name.
    pub fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.namespaces.keys().map(AsRef::as_ref)
    }

    /// The minute with the most starts, the earliest if there are several. `None` without starts.
    pub fn peak(&self) -> Option<&Peak> {
        self.peak.as_ref()
    }

    /// The clock changes of the zones of CronJobs that may start something, by time and zone.
    pub fn clock_changes(&self) -> &[ClockChange] {
        &self.clock_changes
    }

    /// Whether a CronJob starts in the minute that contains an instant, and neither within an hour before nor after it:
    /// it runs hourly or less often.
    pub fn starts_hourly_or_less_at<'a>(&self, cron_job: impl Into<ForecastInput<'a>>, minute: Timestamp) -> bool {
        let chain = chain_key(cron_job.into(), self.from).and_then(|key| self.chains.get(&key));
        let (Some(chain), Some(place)) = (chain, self.place_of(minute)) else {
            return false;
        };
        let reach = usize::try_from(HOUR_MINUTES - 1).unwrap_or_default();
        let near = place.saturating_sub(reach)..self.totals.len().min(place + reach + 1);
        let minutes = &self.minutes[*chain];
        minutes.has(place) && near.filter(|place| minutes.has(*place)).count() == 1
    }

    fn add<'a>(&mut self, input: ForecastInput<'a>, zones: &mut BTreeMap<&'a str, &'a Zone>) {
        let Some(key) = chain_key(input, self.from) else {
            return;
        };
        let cron_job = input.facts;
        if key.first.is_none() {
            let zone = cron_job.schedule.effective_zone();
            zones.insert(zone.name(), zone);
        }
        let chain = if let Some(chain) = self.chains.get(&key) {
            *chain
        } else {
            let minutes = self.minutes_of(&cron_job.schedule, &key);
            self.minutes.push(minutes);
            self.chains.insert(key, self.minutes.len() - 1);
            self.minutes.len() - 1
        };
        if !self.namespaces.contains_key(&cron_job.namespace) {
            self.namespaces.insert(cron_job.namespace.clone(), BTreeMap::new());
        }
        if let Some(chains) = self.namespaces.get_mut(&cron_job.namespace) {
            *chains.entry(chain).or_default() += 1;
        }
        self.add_thaw(input);
    }

    /// Adds what a CronJob starts at the end of a freeze.
    fn add_thaw(&mut self, input: ForecastInput<'_>) {
        let frozen = input.frozen(self.from).filter(|frozen| frozen.until < self.to);
        let Some((frozen, place)) = frozen.and_then(|frozen| Some((frozen, self.place_of(frozen.until)?))) else {
            return;
        };
        let n_starts = u32::try_from(frozen.starts().len()).unwrap_or(u32::MAX);
        if n_starts > 0 {
            let thaws = self.thaws.entry(input.facts.namespace.clone()).or_default();
            *thaws.entry(place).or_default() += n_starts;
        }
    }

    /// The minutes of the starts of one chain of activations.
    fn minutes_of(&mut self, schedule: &CronJobSchedule, key: &ChainKey) -> MinuteSet {
        let first = key.first;
        let is_by_second = schedule.has_seconds() && self.n_starts_with_seconds < STARTS_WITH_SECONDS_MAX;
        let mut minutes = MinuteSet::new(self.totals.len(), is_by_second);
        let Ok(parsed) = &schedule.parsed else {
            return minutes;
        };
        let next = |at: &Timestamp| {
            let next = parsed.next_after(*at, &schedule.default_zone);
            match first {
                // Of an interval below a minute, only the first activation of each minute starts a Job.
                Some(first) if next.is_some_and(|next| minute_of(next) == minute_of(*at)) => {
                    schedule.next_run(first, end_of_minute(*at))
                }
                None if schedule.has_seconds() && !is_by_second => {
                    parsed.next_after(end_of_minute(*at), &schedule.default_zone)
                }
                _ => next,
            }
        };
        let from = after(before(self.from), -key.offset);
        let first = first.or_else(|| parsed.next_after(from, &schedule.default_zone));
        let slots = std::iter::successors(first, next);
        let exclusion = key.calendar.as_ref().and_then(|_| schedule.exclusion());
        let slots = slots.filter(|at| exclusion.is_none_or(|exclusion| !exclusion.excludes(*at)));
        let starts = slots.map(|at| after(at, key.offset));
        // The end of a freeze may be far beyond the time of the forecast.
        let starts = starts.take_while(|start| *start < self.to);
        let mut n_starts = 0;
        for start in starts.filter(|start| key.frozen_until.is_none_or(|until| until <= *start)) {
            if let Some(place) = self.place_of(start) {
                minutes.insert(place);
            }
            n_starts += u32::from(is_by_second);
        }
        self.n_starts_with_seconds += n_starts;
        minutes
    }

    fn add_totals(&mut self) {
        let mut n_cron_jobs = vec![0_u64; self.minutes.len()];
        for (chain, n) in self.namespaces.values().flatten() {
            n_cron_jobs[*chain] += u64::from(*n);
        }
        for (minutes, n) in self.minutes.iter().zip(n_cron_jobs) {
            for place in minutes.places() {
                self.totals[place] += n * u64::from(minutes.n_starts(place));
            }
        }
        for (place, n_starts) in self.thaws.values().flatten() {
            self.totals[*place] += u64::from(*n_starts);
        }
    }

    fn find_peak(&self) -> Option<Peak> {
        let minutes = self.totals.iter().enumerate();
        let (place, n_starts) = minutes.rev().max_by_key(|(_, n_starts)| **n_starts)?;
        let at = start_of(self.first_minute + i64::try_from(place).ok()?);
        let names = self.namespaces.keys().rev();
        let (n_starts_in_namespace, namespace) = names
            .map(|name| (self.starts(name, at), name))
            .max_by_key(|(n, _)| *n)?;
        (*n_starts > 0).then(|| Peak {
            at,
            n_starts: *n_starts,
            namespace: namespace.clone(),
            n_starts_in_namespace: n_starts_in_namespace.into(),
        })
    }

    fn place_of(&self, at: Timestamp) -> Option<usize> {
        let place = usize::try_from(minute_of(at) - self.first_minute).ok()?;
        (place < self.totals.len()).then_some(place)
    }

    fn places_between(&self, from: Timestamp, to: Timestamp) -> std::ops::Range<usize> {
        let place = |minute: i64| usize::try_from(minute - self.first_minute).unwrap_or_default();
        let end = place(ceil_minute_of(to)).min(self.totals.len());
        place(minute_of(from)).min(end)..end
    }
}

/// The clock changes of zones from one instant to another, exclusive, by time and zone.
pub(super) fn clock_changes<'a>(
    zones: impl IntoIterator<Item = &'a Zone>,
    from: Timestamp,
    to: Timestamp,
) -> Vec<ClockChange> {
    let mut changes = BTreeSet::new();
    for zone in zones {
        let first = zone.next_change_after(before(from).as_second());
        let all = std::iter::successors(first, |change| zone.next_change_after(change.at));
        for change in all.take_while(|change| change.at < to.as_second()) {
            changes.insert((change.at, zone.name(), change.after_seconds - change.before_seconds));
        }
    }
    let change = |(at, zone, forward_seconds): (i64, &str, i32)| {
        Some(ClockChange {
            at: Timestamp::from_second(at).ok()?,
            zone: zone.into(),
            forward_seconds,
        })
    };
    changes.into_iter().filter_map(change).collect()
}

/// The number of the minute that contains an instant.
fn minute_of(at: Timestamp) -> i64 {
    at.as_millisecond().div_euclid(1_000 * MINUTE_SECONDS)
}

/// The number of the first minute that begins at or after an instant.
fn ceil_minute_of(at: Timestamp) -> i64 {
    minute_of(at) + i64::from(start_of(minute_of(at)) < at)
}

fn start_of(minute: i64) -> Timestamp {
    Timestamp::from_second(minute.saturating_mul(MINUTE_SECONDS)).unwrap_or(Timestamp::MAX)
}

/// The last second of the minute that contains an instant.
fn end_of_minute(at: Timestamp) -> Timestamp {
    Timestamp::from_second((minute_of(at) + 1) * MINUTE_SECONDS - 1).unwrap_or(Timestamp::MAX)
}

/// The latest instant before another: an activation at `at` comes after it.
fn before(at: Timestamp) -> Timestamp {
    at.checked_sub(jiff::SignedDuration::from_nanos(1)).unwrap_or(at)
}

#[cfg(test)]
mod tests;
