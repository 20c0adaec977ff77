//! Suggested corrections of schedules and time zones that do not parse or that the API server refuses.
//!
//! A suggested schedule parses. If the original has a meaning in another dialect, such as Quartz or a crontab, the
//! suggestion fires when the original says, to the minute. Where no text has that meaning, the advice suggests none.

mod characters;
mod dialects;
mod durations;
mod fields;
mod schedules;
mod zones;

pub use self::{
    characters::shown,
    schedules::{never_advice, schedule_advice},
    zones::{zone_advice, zone_note},
};
use crate::schedule::CronJobSchedule;

/// Returns why the API server refuses a schedule or its zone that parses, with the fix (B-16.2).
pub fn refusal(schedule: &CronJobSchedule) -> Option<String> {
    if schedule.names_zone_in_text() {
        return Some("a schedule must not contain TZ: put the zone into spec.timeZone".to_owned());
    }
    let zone = schedule.time_zone.as_deref()?;
    (zone.is_empty() || zone.eq_ignore_ascii_case("Local")).then(|| {
        format!(
            "{zone:?} is no time zone for spec.timeZone: leave the field out, or write a name such as Europe/Berlin"
        )
    })
}

/// Returns the word with the fewest edits, up to `edits_max` and two.
pub(super) fn similar<'a>(word: &str, among: impl Iterator<Item = &'a str>, edits_max: usize) -> Option<&'a str> {
    // No known name is longer, and the time for the distance grows with the product of the lengths.
    if word.len() > 64 {
        return None;
    }
    let distance = |known: &str| strsim::osa_distance(&word.to_lowercase(), &known.to_lowercase());
    among
        .map(|known| (distance(known), known))
        .filter(|(distance, _)| *distance <= edits_max.min(2))
        .min()
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests;
