//! Schedules of other tools: lines of a crontab, and schedules with seconds or years.
//!
//! AWS has the year last, Quartz has the seconds first and may have the year last. Both write `?` in one of the two day
//! fields, so its place tells them apart, and both count the days of the week from 1, Sunday.

use super::{
    characters::Mended,
    fields::{can_be_mended, is_like_field},
    schedules::Step,
};
use crate::schedule::{CronJobSchedule, Zone, parse_standard};

const TWO_SCHEDULES: &str = "a CronJob has one schedule: create a CronJob for each";

const EITHER_DAY: &str = "both day fields are limited, which Quartz refuses, Spring reads as days that match both, and \
                          Kubernetes as days that match either: let the Job check the date";

const CRONTAB_DAYS: &str = "a crontab reads */ in one day field as days that match both, and Kubernetes as days that \
                            match either: let the Job check the date";

/// Six or seven fields in the order of Kubernetes, and the others.
struct Parts {
    five: Vec<String>,
    seconds: Option<String>,
    year: Option<String>,
    /// Whether days of the week count from 1, Sunday.
    counts_from_one: bool,
    /// The reason, without what to leave out.
    what: String,
}

/// Corrects a schedule with more than five fields, or in `cron(…)`.
pub(super) fn step(text: &str) -> Option<Step> {
    if let Some(inner) = text
        .trim()
        .strip_prefix("cron(")
        .and_then(|text| text.strip_suffix(')'))
    {
        return Some(Mended::new("cron(…) is AWS's", inner.trim()).into());
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.len() < 6 {
        return None;
    }
    let n_fields = words.iter().take(7).take_while(|word| is_like_field(word)).count();
    if is_second_schedule(&words) {
        return Some(Step::Stop(TWO_SCHEDULES.to_owned()));
    }
    if n_fields < words.len() {
        let is_line = n_fields >= 5;
        let reason = || tail_reason(words[n_fields]);
        if is_line && needs_both_days_in_crontab(&words) {
            return Some(Step::Stop(format!("{}; {CRONTAB_DAYS}", reason())));
        }
        return is_line.then(|| Mended::new(reason(), words[..n_fields].join(" ")).into());
    }
    Some(convert(&words))
}

/// Returns the text as the option `schedule` takes it, if it limits seconds or years, which `spec.schedule` cannot have.
/// `None` if the option has no text of that meaning.
pub(super) fn of_option(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    if !(6..=7).contains(&words.len()) || !words.iter().all(|word| is_like_field(word)) || is_second_schedule(&words) {
        return None;
    }
    let parts = parts(&words);
    let seconds = parts.seconds.as_deref().unwrap_or("0");
    let years = parts.year.as_deref().filter(|year| !matches!(*year, "*" | "?"));
    if matches!(seconds, "0" | "00") && years.is_none() {
        return None;
    }
    // The option counts days of the week from 1, Sunday, as Quartz and AWS do.
    if !parts.counts_from_one && parts.five[4].bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let five = parts.five.join(" ");
    let years = years.map(|years| format!(" {years}")).unwrap_or_default();
    let text = format!("{seconds} {five}{years}");
    let every_minute = CronJobSchedule::new("* * * * *", None, &Zone::utc());
    every_minute.with_schedules(&text).is_ok().then_some(text)
}

/// The reason why words after a schedule are left out.
pub(super) fn tail_reason(tail: &str) -> String {
    let what = if tail.starts_with('#') { "comment" } else { "command" };
    format!("leave the {what} out, which belongs to a crontab")
}

/// Whether a second schedule follows, with or without a separator.
fn is_second_schedule(words: &[&str]) -> bool {
    let rest = words.get(5..).unwrap_or_default();
    let rest = match rest.split_first() {
        Some((&(";" | "|" | "||" | "&&" | "," | "and" | "or"), rest)) => rest,
        _ => rest,
    };
    let first = words[..5].join(" ");
    let first = first.trim_end_matches([';', ',']);
    rest.len() >= 5 && parse_standard(first).is_ok() && parse_standard(&rest[..5].join(" ")).is_ok()
}

/// A crontab takes days that match both day fields if one of them begins with a star. In Kubernetes the field must be
/// the star itself.
fn needs_both_days_in_crontab(words: &[&str]) -> bool {
    let days = [words[2], words[4]];
    days.iter().any(|day| day.starts_with("*/")) && days.iter().all(|day| *day != "*")
}

fn convert(fields: &[&str]) -> Step {
    let parts = parts(fields);
    if let Some(year) = parts.year.as_deref().filter(|year| !matches!(*year, "*" | "?")) {
        return Step::Stop(format!(
            "{}: Kubernetes has no years, so a schedule cannot be limited to {year}",
            parts.what
        ));
    }
    let is_limited = |place: usize| !matches!(&*parts.five[place], "*" | "?");
    if parts.seconds.is_some() && is_limited(2) && is_limited(4) {
        return Step::Stop(format!("{}: {EITHER_DAY}", parts.what));
    }
    let mut five = parts.five;
    let mut further = String::new();
    for place in [2, 4] {
        five[place] = five[place].replace('?', "*");
    }
    if parts.counts_from_one {
        let Some(days) = from_zero(&five[4]) else {
            let what = parts.what;
            return Step::Stop(format!(
                "{what}: its days of the week are 1-7, Sunday is 1; correct the day of week"
            ));
        };
        if days != five[4] {
            further += " and count days of the week from 0, Sunday";
        }
        five[4] = days;
    }
    further += match parts.seconds.as_deref() {
        None | Some("0" | "00") => "",
        Some(seconds) if seconds.bytes().all(|byte| byte.is_ascii_digit()) => ", so that Jobs start at second 0",
        Some(_) => ", since a CronJob starts at most one Job a minute",
    };
    let out = match (&parts.seconds, &parts.year) {
        (Some(_), Some(_)) => "the seconds and the year",
        (Some(_), None) => "the seconds",
        (None, _) => "the year",
    };
    Mended::new(format!("{}: leave {out} out{further}", parts.what), five.join(" ")).into()
}

fn parts(fields: &[&str]) -> Parts {
    let owned = |fields: &[&str]| fields.iter().map(|field| (*field).to_owned()).collect::<Vec<_>>();
    let has_question = |places: [usize; 2]| places.iter().any(|place| fields[*place].contains('?'));
    let seconds_first = |what: &str, year: Option<&&str>, counts_from_one| Parts {
        five: owned(&fields[1..6]),
        seconds: Some(fields[0].to_owned()),
        year: year.map(|year| (*year).to_owned()),
        counts_from_one,
        what: what.to_owned(),
    };
    let year_last = |what: &str, counts_from_one| Parts {
        five: owned(&fields[..5]),
        seconds: None,
        year: Some(fields[5].to_owned()),
        counts_from_one,
        what: what.to_owned(),
    };
    let is_year = |field: &str| field.split([',', '-', '/']).any(|part| part.len() == 4);
    match fields.get(6) {
        Some(year) => seconds_first("7 fields are Quartz's", Some(year), true),
        None if has_question([2, 4]) => year_last("6 fields with the year last are AWS's", true),
        None if has_question([3, 5]) => seconds_first("6 fields with the seconds first are Quartz's", None, true),
        None if is_year(fields[5]) => year_last("the sixth field is a year", false),
        None if fields[5] == "*" && !can_be_mended(&owned(&fields[1..])) && can_be_mended(&owned(&fields[..5])) => {
            year_last("the sixth field is a year", false)
        }
        None => seconds_first("the first of 6 fields is the second", None, false),
    }
}

/// Counts days of the week from 0 instead of 1. `None` if a number is outside of 1 to 7.
fn from_zero(days: &str) -> Option<String> {
    let mut shifted = String::new();
    for item in days.split(',') {
        let (range, step) = item.split_at(item.find('/').unwrap_or(item.len()));
        let ends: Vec<String> = range.split('-').map(day_from_zero).collect::<Option<_>>()?;
        if !shifted.is_empty() {
            shifted.push(',');
        }
        shifted += &ends.join("-");
        shifted += step;
    }
    Some(shifted)
}

fn day_from_zero(day: &str) -> Option<String> {
    // The marks of Quartz stay for the advice about them.
    match day.parse::<u8>() {
        Ok(number) => (1..=7).contains(&number).then(|| (number - 1).to_string()),
        Err(_) => Some(day.to_owned()),
    }
}
