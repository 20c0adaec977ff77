//! Corrections of single fields of a schedule with five.

use super::{characters::Mended, schedules::Step};
use crate::schedule::parse_standard;

/// A field of a schedule.
struct Field {
    name: &'static str,
    /// Its values in words.
    values: &'static str,
    min: u8,
    max: u8,
    /// The names of values, from `min` on.
    names: &'static [&'static str],
}

const N_FIELDS: usize = 5;

const FIELDS: [Field; N_FIELDS] = [
    Field::new("minute", "0-59", (0, 59), &[]),
    Field::new("hour", "0-23", (0, 23), &[]),
    Field::new("day of month", "1-31", (1, 31), &[]),
    Field::new("month", "1-12 or jan-dec", (1, 12), &MONTHS),
    Field::new("day of week", "0-6 or sun-sat, Sunday is 0", (0, 6), &DAYS),
];

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

const DAYS: [&str; 7] = [
    "sunday",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
];

/// The position of the day of the week.
const WEEKDAY: usize = 4;

const QUARTZ: &str = "L, W and # are Quartz's, and Kubernetes has nothing like them: list the days, such as 28-31 \
                      for L or 1-7 for #1, and let the Job check the date";

const JENKINS: &str = "H is Jenkins's, which chooses a value: write a number";

impl Field {
    const fn new(
        name: &'static str,
        values: &'static str,
        (min, max): (u8, u8),
        names: &'static [&'static str],
    ) -> Field {
        Field {
            name,
            values,
            min,
            max,
            names,
        }
    }

    /// The value of a number or a name of any length from three letters.
    fn value(&self, text: &str) -> Option<u8> {
        if let Some(at) = self.position_of_name(text) {
            return Some(self.min + at);
        }
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|_| is_number)
    }

    fn position_of_name(&self, text: &str) -> Option<u8> {
        let lower = text.to_ascii_lowercase();
        let at = self
            .names
            .iter()
            .position(|name| lower.len() >= 3 && name.starts_with(&lower))?;
        u8::try_from(at).ok()
    }
}

/// Whether a word can be part of a field: numbers, stars, names of days and months, and Quartz's marks.
pub(super) fn is_like_field(word: &str) -> bool {
    let is_name = |part: &str| FIELDS.iter().any(|field| field.position_of_name(part).is_some());
    let is_part = |part: &str| {
        let stem = part.trim_matches(|c: char| c.is_ascii_digit());
        matches!(stem, "" | "*" | "?" | "L" | "W" | "LW" | "H") && !part.is_empty() || is_name(part)
    };
    word.split([',', '-', '/', '#']).all(is_part)
}

/// Names the field that matches nothing because it has no value at all.
pub(super) fn empty_field(text: &str) -> Option<String> {
    let texts: Vec<&str> = text.split_whitespace().collect();
    let is_empty = |field: &&str| field.split(',').all(str::is_empty);
    let at = texts.iter().position(is_empty)?;
    let Field { name, values, .. } = FIELDS.get(at)?;
    Some(format!("the {name} field has no value: write {values}, or *"))
}

/// Corrects the wrong fields of five.
pub(super) fn step(text: &str) -> Option<Step> {
    let texts: Vec<&str> = text.split_whitespace().collect();
    if texts.len() != N_FIELDS {
        return None;
    }
    let mut reasons: Vec<String> = Vec::new();
    let mut mended: Vec<String> = Vec::new();
    for (place, field) in texts.iter().enumerate() {
        if !is_wrong(place, field) {
            mended.push((*field).to_owned());
            continue;
        }
        if matches!(place, 2 | WEEKDAY) && is_quartz(field) {
            return Some(Step::Stop(QUARTZ.to_owned()));
        }
        if field.starts_with('H') {
            return Some(Step::Stop(JENKINS.to_owned()));
        }
        let Some(Mended { reason, text }) = mend(place, field).filter(|mended| !is_wrong(place, &mended.text)) else {
            let Field { name, values, .. } = FIELDS[place];
            let advice = format!("correct the {name} field, which takes {values}, as lists, ranges and steps");
            return Some(Step::Stop(advice));
        };
        reasons.push(reason);
        mended.push(text);
    }
    let is_changed = !reasons.is_empty();
    is_changed.then(|| Mended::new(reasons.join("; "), mended.join(" ")).into())
}

/// Whether five fields parse, as they are or corrected.
pub(super) fn can_be_mended(fields: &[String]) -> bool {
    let text = fields.join(" ");
    let is_mended = |step| matches!(step, Some(Step::Mended(_)));
    parse_standard(&text).is_ok() || is_mended(step(&text))
}

/// Whether a field does not parse in its place.
fn is_wrong(place: usize, field: &str) -> bool {
    let mut alone = ["*"; N_FIELDS];
    alone[place] = field;
    parse_standard(&alone.join(" ")).is_err()
}

/// `L`, `6L`, `L-3`, `15W`, `LW`, `6#3`, and lists with them.
fn is_quartz(field: &str) -> bool {
    let is_marked = |item: &str| {
        let stem = item.trim_matches(|c: char| c.is_ascii_digit() || c == '-');
        let is_last_day = item
            .strip_suffix('L')
            .is_some_and(|day| FIELDS[WEEKDAY].value(day).is_some());
        item.contains('#') || matches!(stem, "L" | "W" | "LW") || is_last_day
    };
    field.split(',').any(is_marked)
}

fn mend(place: usize, field: &str) -> Option<Mended> {
    let mut reasons: Vec<String> = Vec::new();
    let mut items: Vec<String> = Vec::new();
    for item in field.split(',') {
        if is_wrong(place, item) {
            let Mended { reason, text } = mend_item(place, item)?;
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
            items.push(text);
        } else {
            items.push(item.to_owned());
        }
    }
    Some(Mended::new(reasons.join("; "), items.join(",")))
}

/// Corrects long names, 7 for Sunday, and ranges that pass the end of the field.
fn mend_item(place: usize, item: &str) -> Option<Mended> {
    let field = &FIELDS[place];
    let (range, step) = item
        .split_once('/')
        .map_or((item, None), |(range, step)| (range, Some(step)));
    let (first, last) = range
        .split_once('-')
        .map_or((range, None), |(first, last)| (first, Some(last)));
    let names: Vec<&str> = [Some(first), last]
        .into_iter()
        .flatten()
        .filter(|name| name.len() > 3)
        .collect();
    if let Some(long) = names.iter().find(|name| field.position_of_name(name).is_some()) {
        let text = names
            .iter()
            .filter(|name| field.position_of_name(name).is_some())
            .fold(item.to_owned(), |text, name| {
                text.replacen(*name, &name[..3].to_ascii_lowercase(), 1)
            });
        let reason = format!(
            "names have three letters, such as {} for {long}",
            long[..3].to_ascii_lowercase()
        );
        return Some(split(place, &text).map_or_else(
            || Mended::new(reason.clone(), text.clone()),
            |further| Mended::new(format!("{reason}; {}", further.reason), further.text),
        ));
    }
    if place == WEEKDAY && (first == "7" || last == Some("7")) {
        return Some(Mended::new(
            "7 is no day, Sunday is 0",
            with_sunday(field, first, last, step)?,
        ));
    }
    split(place, item)
}

/// Writes a range that begins or ends with 7 with Sunday as 0.
fn with_sunday(field: &Field, first: &str, last: Option<&str>, step: Option<&str>) -> Option<String> {
    let first = field.value(first)?;
    let last = last.map_or(Some(first), |last| field.value(last))?;
    let values = stepped(first..=last, step)?.map(|value| value % 7);
    match (first, last, step) {
        (7, 7, _) => Some("0".to_owned()),
        (7, last, None) => Some(format!("0-{last}")),
        (first, 7, None) if first < 6 => Some(format!("{first}-6,0")),
        _ => Some(list(values)),
    }
}

/// `22-5` of the hour becomes `22-23,0-5`.
fn split(place: usize, item: &str) -> Option<Mended> {
    let field = &FIELDS[place];
    let (range, step) = item
        .split_once('/')
        .map_or((item, None), |(range, step)| (range, Some(step)));
    let (first_text, last_text) = range.split_once('-')?;
    let (first, last) = (field.value(first_text)?, field.value(last_text)?);
    if first <= last || first > field.max || last < field.min {
        return None;
    }
    let (max, min) = if field.position_of_name(first_text).is_some() {
        let name = |at: usize| field.names[at][..3].to_owned();
        (name(field.names.len() - 1), name(0))
    } else {
        (field.max.to_string(), field.min.to_string())
    };
    let range = |from: &str, to: &str| {
        if from == to {
            from.to_owned()
        } else {
            format!("{from}-{to}")
        }
    };
    let text = if step.is_some() {
        let n_values = field.max - field.min + 1;
        let walked = stepped(first..=last + n_values, step)?;
        list(walked.map(|value| if value > field.max { value - n_values } else { value }))
    } else {
        format!("{},{}", range(first_text, &max), range(&min, last_text))
    };
    let reason = format!("a range ends no earlier than it begins, so split {item} into {text}");
    Some(Mended::new(reason, text))
}

fn stepped(range: std::ops::RangeInclusive<u8>, step: Option<&str>) -> Option<impl Iterator<Item = u8>> {
    let step: usize = step.map_or(Some(1), |step| step.parse().ok())?;
    (step > 0).then(|| range.step_by(step))
}

fn list(values: impl Iterator<Item = u8>) -> String {
    let values: Vec<String> = values.map(|value| value.to_string()).collect();
    values.join(",")
}
