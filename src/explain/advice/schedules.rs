//! Corrections of schedules. Each step corrects one thing, until the schedule parses or no correction is left.

use super::{
    characters::{self, Mended, shown},
    dialects, durations, fields, similar,
    zones::zone_advice,
};
use crate::schedule::{Schedule, Zone, describe::describe, options::OptionName, parse_standard};

/// More corrections than a text of any known dialect needs.
const STEPS_MAX: usize = 8;

/// Longer texts are no schedules, and get the general advice.
const LENGTH_MAX: usize = 1_024;

const DESCRIPTORS: [&str; 7] = [
    "@yearly",
    "@annually",
    "@monthly",
    "@weekly",
    "@daily",
    "@midnight",
    "@hourly",
];

/// Descriptors of other tools, with the same times of day.
const FOREIGN_DESCRIPTORS: [(&str, &str); 4] = [
    ("@every_minute", "* * * * *"),
    ("@minutely", "* * * * *"),
    ("@quarterly", "0 0 1 1,4,7,10 *"),
    ("@semiannually", "0 0 1 1,7 *"),
];

const FORM: &str = "write five fields (minute, hour, day of month, month, day of week), or one of @yearly, @monthly, \
                    @weekly, @daily, @hourly, or @every with a duration such as 1h30m";

/// A correction.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A text that is nearer to a schedule.
    Mended(Mended),
    /// Advice without a text that has the same meaning.
    Stop(String),
}

impl From<Mended> for Step {
    fn from(mended: Mended) -> Step {
        Step::Mended(mended)
    }
}

/// Returns the correction of a schedule that does not parse, and the option of cronwheel that takes it as it is.
pub fn schedule_advice(text: &str) -> String {
    let mut of_option = None;
    let advice = correction(text, |text| {
        if of_option.is_none() && text.len() <= LENGTH_MAX {
            of_option = dialects::of_option(text);
        }
    });
    match of_option {
        Some(text) => format!(
            "{advice}; cronwheel runs '{text}' as the annotation {}, beside a valid spec.schedule",
            OptionName::Schedule.annotation()
        ),
        None => advice,
    }
}

/// Corrects a text step by step. `look` sees the text before each step.
fn correction(text: &str, mut look: impl FnMut(&str)) -> String {
    let mut current = text.to_owned();
    let mut reasons: Vec<String> = Vec::new();
    for _ in 0..STEPS_MAX {
        look(&current);
        match step(&current) {
            Step::Mended(Mended { reason, text }) => {
                reasons.push(reason);
                current = text;
            }
            Step::Stop(advice) => {
                // A zone in the text has been named already, and the rest stands for itself.
                let is_named = reasons.iter().all(|reason| reason.starts_with(ZONE_REASON)) || current.is_empty();
                reasons.push(if is_named {
                    advice
                } else {
                    format!("then '{}' remains: {advice}", shown(&current))
                });
                return reasons.join("; ");
            }
        }
        if let Ok(schedule) = parse_standard(&current) {
            return suggestion(&reasons, &current, &schedule);
        }
    }
    FORM.to_owned()
}

/// Returns the advice for a schedule that parses and never fires: the field without a value, or the date that does not
/// occur.
pub fn never_advice(text: &str) -> String {
    let rest = zone_prefix(text).map_or(text, |(_, rest)| rest);
    fields::empty_field(rest).unwrap_or_else(|| "correct its day of month or its month".to_owned())
}

fn suggestion(reasons: &[String], text: &str, schedule: &Schedule) -> String {
    // The words of an interval only repeat it.
    let words = if schedule.is_every() {
        String::new()
    } else {
        format!(" ({})", describe(schedule))
    };
    let text: Vec<&str> = text.split_whitespace().collect();
    format!("{}: write '{}'{words}", reasons.join("; "), text.join(" "))
}

fn step(text: &str) -> Step {
    if text.len() > LENGTH_MAX {
        return Step::Stop(FORM.to_owned());
    }
    zone_step(text)
        .or_else(|| characters::mend(text).map(Step::from))
        .or_else(|| descriptor_step(text))
        .or_else(|| durations::mend_rate(text).map(Step::from))
        .or_else(|| durations::mend(text.trim()).map(Step::from))
        .or_else(|| dialects::step(text))
        .or_else(|| fields::step(text))
        .unwrap_or_else(|| Step::Stop(FORM.to_owned()))
}

const ZONE_REASON: &str = "put the zone into spec.timeZone";

/// Splits `TZ=Europe/Berlin 0 5 * * *` into the zone and the rest.
fn zone_prefix(text: &str) -> Option<(&str, &str)> {
    let prefixed = text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ="))?;
    let (zone, rest) = prefixed.split_once(' ').unwrap_or((prefixed, ""));
    Some((zone, rest.trim()))
}

fn zone_step(text: &str) -> Option<Step> {
    let (zone, rest) = zone_prefix(text)?;
    let reason = if zone == "Local" || Zone::load(zone).is_ok() {
        ZONE_REASON.to_owned()
    } else {
        format!("{ZONE_REASON}; {}", zone_advice(zone))
    };
    if parse_standard(rest).is_ok() {
        return Some(Step::Stop(reason));
    }
    Some(Mended::new(reason, rest).into())
}

fn descriptor_step(text: &str) -> Option<Step> {
    let trimmed = text.trim();
    if trimmed.starts_with('@')
        && let Some(mended) = characters::mend_ends(text)
    {
        return Some(mended.into());
    }
    let (word, rest) = trimmed.split_once(char::is_whitespace).unwrap_or((trimmed, ""));
    let lower = word.to_ascii_lowercase();
    if !rest.is_empty() {
        let is_line = DESCRIPTORS.contains(&word);
        return is_line.then(|| Mended::new(dialects::tail_reason(rest), word).into());
    }
    let with_sign = format!("@{lower}");
    if DESCRIPTORS.contains(&with_sign.as_str()) {
        return Some(Mended::new("descriptors begin with @", with_sign).into());
    }
    if !word.starts_with('@') {
        return None;
    }
    if DESCRIPTORS.contains(&lower.as_str()) {
        return Some(Mended::new("descriptors are in lower case", lower).into());
    }
    if let Some((_, fields)) = FOREIGN_DESCRIPTORS.iter().find(|(name, _)| *name == lower) {
        return Some(Mended::new(format!("Kubernetes has no {word}"), *fields).into());
    }
    let meant = meant_descriptor(&lower)?;
    Some(Step::Stop(format!("did you mean {meant}?")))
}

/// `@day`, and descriptors with one typing error.
fn meant_descriptor(lower: &str) -> Option<&'static str> {
    let of_stem = match lower {
        "@day" => Some("@daily"),
        _ => DESCRIPTORS
            .into_iter()
            .find(|known| known.strip_suffix("ly") == Some(lower)),
    };
    of_stem.or_else(|| similar(lower, DESCRIPTORS.into_iter(), 1))
}
