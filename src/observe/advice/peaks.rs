//! Minutes with many starts, and who could move.

use jiff::SignedDuration;

use super::{CronJobAdviceInput, entry};
use crate::observe::{forecast::Forecast, view::Advice, words::thousands};

/// Fewer starts in one minute trouble no controller: the built-in one takes a few requests for each of them, and sends
/// twenty a second.
const STARTS_MIN: u64 = 50;

/// Fewer CronJobs to spread over ten minutes make no difference.
const MOVABLE_MIN: usize = 10;

/// A forecast up to this long names each time of day once.
const DAY: SignedDuration = SignedDuration::from_hours(24);

pub(super) fn advice(cron_jobs: &[CronJobAdviceInput<'_>], forecast: &Forecast) -> Option<Advice> {
    let peak = forecast.peak().filter(|peak| peak.n_starts >= STARTS_MIN)?;
    let is_movable = |input: &&CronJobAdviceInput<'_>| forecast.starts_hourly_or_less_at(*input, peak.at);
    let movable: Vec<&CronJobAdviceInput<'_>> = cron_jobs.iter().filter(is_movable).collect();
    if movable.len() < MOVABLE_MIN {
        return None;
    }
    let is_one_day = forecast.to().duration_since(forecast.from()) <= DAY;
    let form = if is_one_day { "%H:%M UTC" } else { "%-d %b %H:%M UTC" };
    let sentence = format!(
        "{} starts {} Jobs in one minute; {} of them run hourly or less often and could be spread over ten minutes.",
        peak.at.strftime(form),
        thousands(peak.n_starts),
        thousands(movable.len() as u64),
    );
    Some(entry("PeakMinute", sentence, &movable))
}
