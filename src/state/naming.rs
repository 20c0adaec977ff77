//! The texts that identify a run: its Job's name, and its slot as annotations and messages print it.

use std::fmt::Write;

use jiff::{Timestamp, tz::Offset};

use crate::schedule::Zone;

/// The name of a slot's Job: the CronJob's and the slot's minutes since the epoch (B-11.1).
pub fn job_name(cron_job_name: &str, slot: Timestamp) -> Box<str> {
    let mut name = String::with_capacity(cron_job_name.len() + 12);
    name.push_str(cron_job_name);
    // Writing to a String cannot fail.
    let _ = write!(name, "-{}", slot.as_second() / 60);
    name.into_boxed_str()
}

/// Whether a Job's name is the one that [`job_name`] gives.
pub fn is_job_name(name: &str, cron_job_name: &str, slot: Timestamp) -> bool {
    let minutes = name.strip_prefix(cron_job_name).and_then(|rest| rest.strip_prefix('-'));
    minutes.is_some_and(|digits| {
        digits.bytes().all(|digit| digit.is_ascii_digit())
            && !(digits.len() > 1 && digits.starts_with('0'))
            && digits.parse() == Ok(slot.as_second() / 60)
    })
}

/// A slot in a zone as RFC 3339, in the way of Go: whole seconds, `Z` at offset zero (B-11.3).
pub fn scheduled_timestamp(slot: Timestamp, zone: Option<&Zone>) -> Box<str> {
    let offset_secs = zone.map_or(0, |zone| zone.offset_seconds_at(slot.as_second()));
    let local = Offset::from_seconds(offset_secs)
        .unwrap_or(Offset::UTC)
        .to_datetime(slot);
    let mut text = String::with_capacity(25);
    let _ = write!(
        text,
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
        local.year(),
        local.month(),
        local.day(),
        local.hour(),
        local.minute(),
        local.second()
    );
    if offset_secs == 0 {
        text.push('Z');
    } else {
        let minutes = offset_secs.abs() / 60;
        let sign = if offset_secs < 0 { '-' } else { '+' };
        let _ = write!(text, "{sign}{:02}:{:02}", minutes / 60, minutes % 60);
    }
    text.into_boxed_str()
}

/// A slot in UTC as RFC 1123 with a numeric zone, as `MissSchedule` prints it (B-10.1).
pub fn rfc1123(slot: Timestamp) -> String {
    slot.strftime("%a, %d %b %Y %H:%M:%S +0000").to_string()
}

/// A text in double quotes as Go's `%q` prints it (B-6.2, B-6.4).
pub fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(character);
            }
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            control if (control as u32) < 0x20 || control == '\u{7f}' => {
                let _ = write!(quoted, "\\x{:02x}", control as u32);
            }
            control if control.is_control() || (control.is_whitespace() && control != ' ') => {
                let _ = write!(quoted, "\\u{:04x}", control as u32);
            }
            plain => quoted.push(plain),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a timestamp")
    }

    #[test]
    fn b_11_1_a_name_counts_minutes() {
        let slot = at("2026-05-19T10:00:59Z");
        assert_eq!(&*job_name("hello", slot), "hello-29653080");
        for (name, expected) in [
            ("hello-29653080", true),
            ("hello-29653081", false),
            ("hello-029653080", false),
            ("hello-+29653080", false),
            ("hello", false),
            ("hello-", false),
            ("other-29653080", false),
        ] {
            assert_eq!(is_job_name(name, "hello", slot), expected, "{name}");
        }
    }

    #[test]
    fn b_11_3_no_zone_prints_utc() {
        assert_eq!(
            &*scheduled_timestamp(at("2016-05-19T10:00:00.9Z"), None),
            "2016-05-19T10:00:00Z"
        );
    }

    #[test]
    fn b_10_1_miss_schedule_prints_rfc_1123() {
        assert_eq!(rfc1123(at("2026-05-09T10:00:00Z")), "Sat, 09 May 2026 10:00:00 +0000");
    }

    #[test]
    fn a_quoted_text_is_go_s() {
        assert_eq!(quoted("a \"b\" \\ \n\t\u{1}\u{a0}é"), r#""a \"b\" \\ \n\t\x01\u00a0é""#);
    }
}
