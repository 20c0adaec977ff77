//! The text of numbers, durations and instants on the screen of `dev`.

use jiff::Timestamp;

use crate::{cli::calendar::duration_text, schedule::Zone};

/// Formats an instant in a zone: `10:01 CEST` on the day of `now`, otherwise with the weekday or the date. Seconds are
/// shown if there are any.
pub(super) fn local_time(instant: Timestamp, now: Timestamp, zone: &Zone) -> String {
    let zone = zone.to_jiff();
    let (at, today) = (instant.to_zoned(zone.clone()), now.to_zoned(zone).date());
    let n_days = at.date().since(today).map_or(i32::MAX, |span| span.get_days());
    let day = match n_days {
        0 => "",
        -6..=6 => "%a ",
        _ if at.year() == today.year() => "%-d %b ",
        _ => "%-d %b %Y ",
    };
    let time = if at.second() == 0 { "%H:%M %Z" } else { "%H:%M:%S %Z" };
    at.strftime(&[day, time].concat()).to_string()
}

/// Formats the time until an instant in whole seconds, rounded up: no slot is due before its instant.
pub(super) fn time_until(instant: Timestamp, now: Timestamp) -> String {
    let left = instant.duration_since(now);
    let seconds = left.as_secs() + i64::from(left.subsec_nanos() > 0);
    duration_text(u64::try_from(seconds).unwrap_or(0))
}

/// Formats an upper bound in seconds in a suitable unit.
pub(super) fn at_most(seconds: f64) -> String {
    if seconds.is_infinite() {
        "over 1 min".to_owned()
    } else if seconds < 1.0 {
        format!("<= {:.1} ms", seconds * 1e3)
    } else {
        format!("<= {seconds:.1} s")
    }
}

pub(super) fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", grouped(count))
}

/// Formats a number with commas between thousands.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Fits text into this number of columns. Control characters become spaces.
pub(super) fn cut(text: &str, columns: usize) -> String {
    let harmless = |character: char| if character.is_control() { ' ' } else { character };
    if text.chars().count() <= columns {
        return text.chars().map(harmless).collect();
    }
    let shown = text.chars().take(columns.saturating_sub(1)).map(harmless);
    shown.chain((columns > 0).then_some('…')).collect()
}

/// Breaks an enumeration at its commas into lines of at most this many columns, unless a part is longer.
pub(super) fn wrapped_at_commas(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in text.split(", ") {
        match lines.last_mut() {
            // A comma follows unless the part is the last.
            Some(line) if line.chars().count() + 2 + part.chars().count() < columns => {
                line.push_str(", ");
                line.push_str(part);
            }
            former => {
                if let Some(line) = former {
                    line.push(',');
                }
                lines.push(part.to_owned());
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_numbers_are_formatted() {
        for (seconds, expected) in [(0, "0s"), (59, "59s"), (3_661, "1h 1m"), (86_400, "1d")] {
            assert_eq!(duration_text(seconds), expected);
        }
        for (number, expected) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), expected);
        }
        for (seconds, expected) in [
            (0.0005, "<= 0.5 ms"),
            (0.25, "<= 250.0 ms"),
            (2.5, "<= 2.5 s"),
            (f64::INFINITY, "over 1 min"),
        ] {
            assert_eq!(at_most(seconds), expected);
        }
    }

    #[test]
    fn the_time_until_a_past_instant_is_zero() {
        let now: Timestamp = "2026-05-05T10:00:00Z".parse().unwrap();
        for (instant, expected) in [
            ("2026-05-05T09:59:55Z", "0s"),
            ("2026-05-05T10:00:00Z", "0s"),
            ("2026-05-05T10:00:00.1Z", "1s"),
        ] {
            assert_eq!(time_until(instant.parse().unwrap(), now), expected);
        }
    }

    #[test]
    fn local_times_have_the_day_if_it_differs() {
        let now: Timestamp = "2026-05-05T10:00:00Z".parse().unwrap();
        for (instant, zone, expected) in [
            ("2026-05-05T10:01:00Z", "Europe/Berlin", "12:01 CEST"),
            ("2026-05-05T10:01:30Z", "UTC", "10:01:30 UTC"),
            ("2026-05-05T23:00:00Z", "Europe/Berlin", "Wed 01:00 CEST"),
            ("2026-05-04T10:00:00Z", "Asia/Tokyo", "Mon 19:00 JST"),
            ("2026-05-28T10:30:00Z", "America/Sao_Paulo", "28 May 07:30 -03"),
            ("2028-02-29T00:00:00Z", "UTC", "29 Feb 2028 00:00 UTC"),
            ("2027-01-01T00:00:00Z", "UTC", "1 Jan 2027 00:00 UTC"),
        ] {
            let zone = Zone::load(zone).unwrap();
            assert_eq!(local_time(instant.parse().unwrap(), now, &zone), expected);
        }
    }

    #[test]
    fn text_is_truncated_or_wrapped_at_commas() {
        assert_eq!(cut("billing/invoice", 15), "billing/invoice");
        assert_eq!(cut("billing/invoice", 9), "billing/…");
        assert_eq!((cut("ab", 1), cut("ab", 0)), ("…".to_owned(), String::new()));
        assert_eq!(cut("a\x1b[2J\tb", 9), "a [2J b");
        assert_eq!(
            wrapped_at_commas("1 lost, 2 slow, 1,003 bad", 15),
            ["1 lost, 2 slow,", "1,003 bad"]
        );
        assert_eq!(wrapped_at_commas("1 lost, 2 slow", 3), ["1 lost,", "2 slow"]);
        assert_eq!(wrapped_at_commas("1 lost", 80), ["1 lost"]);
    }
}
