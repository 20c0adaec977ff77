//! A schedule of five fields in the grammar of the option `schedule` (O-5), for messages that recommend a value.

use super::parse_standard;

/// The names that the option has for the days of the week, which it counts from 1.
const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/// The lines with the second 0 in front of those that have five fields. `None` if none has.
pub(super) fn lines_with_second(text: &str) -> Option<String> {
    let filled = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let has_five = filled().any(|line| with_second(line).is_some());
    let lines: Vec<String> = filled()
        .map(|line| with_second(line).unwrap_or_else(|| line.to_owned()))
        .collect();
    has_five.then(|| lines.join("\n"))
}

/// The schedule with the same activations. `None` if the text is no schedule of five fields, or the option has none.
fn with_second(text: &str) -> Option<String> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let &[minute, hour, day, month, weekday] = fields.as_slice() else {
        return None;
    };
    // Of two limited fields, one must match in five fields, and both in the option (B-7.8, O-5.1).
    let is_any = |field: &str| matches!(field, "*" | "?");
    if parse_standard(text).is_err() || !(is_any(day) || is_any(weekday)) {
        return None;
    }
    Some(format!("0 {minute} {hour} {day} {month} {}", named_days(weekday)?))
}

/// The days of the week with names instead of numbers. `None` for steps from a number, which have no names.
fn named_days(field: &str) -> Option<String> {
    let items: Option<Vec<String>> = field.split(',').map(named_item).collect();
    items.map(|items| items.join(","))
}

fn named_item(item: &str) -> Option<String> {
    if !item.bytes().any(|byte| byte.is_ascii_digit()) || item.starts_with("*/") {
        return Some(item.to_owned());
    }
    let name = |day: &str| match day.parse::<usize>() {
        Ok(number) => DAYS.get(number).map(|name| (*name).to_owned()),
        Err(_) => Some(day.to_owned()).filter(|day| !day.contains('/')),
    };
    let ends: Option<Vec<String>> = item.split('-').map(name).collect();
    ends.map(|ends| ends.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{CronJobSchedule, Zone};

    fn activations(schedule: &CronJobSchedule) -> Vec<jiff::Timestamp> {
        let next = |at: &jiff::Timestamp| schedule.next_wanted(*at);
        let first = "2026-01-01T00:00:00Z".parse().unwrap();
        std::iter::successors(Some(first), next).take(200).collect()
    }

    #[test]
    fn a_schedule_with_a_second_has_the_same_activations() {
        for (text, expected) in [
            ("0 3 * * *", Some("0 0 3 * * *")),
            ("*/15  8-18 * * 1-5", Some("0 */15 8-18 * * Mon-Fri")),
            ("0 3 * * 0,3", Some("0 0 3 * * Sun,Wed")),
            ("0 3 * * */2", Some("0 0 3 * * */2")),
            ("5/20 3 1-7 jan *", Some("0 5/20 3 1-7 jan *")),
            ("0 3 ? * MON-FRI", Some("0 0 3 ? * MON-FRI")),
            // Days that match either field.
            ("0 3 1 * 1", None),
            ("0 3 * * 1/2", None),
            ("0 3 * * 7", None),
            ("0 0 3 * * *", None),
            ("@daily", None),
            ("a b c d e", None),
            ("", None),
        ] {
            let found = with_second(text);
            assert_eq!(found.as_deref(), expected, "{text}");
            if let Some(found) = found {
                let schedule = || CronJobSchedule::new(text, None, &Zone::utc());
                let of_option = schedule().with_schedules(&found).unwrap();
                assert_eq!(activations(&of_option), activations(&schedule()), "{text}: {found}");
            }
        }
    }

    #[test]
    fn lines_keep_their_order() {
        assert_eq!(
            lines_with_second("0 3 * * *\n\n 30 0 4 * * *").as_deref(),
            Some("0 0 3 * * *\n30 0 4 * * *")
        );
        assert_eq!(lines_with_second("30 0 4 * * *\noften"), None);
    }
}
