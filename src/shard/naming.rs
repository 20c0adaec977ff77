//! The texts that identify a run: the Job's name, and the slot as printed in annotations and messages.

use jiff::{Timestamp, fmt::temporal::DateTimePrinter, tz::Offset};

use super::{hash::run_hash, ids::Uid};
use crate::schedule::Zone;

/// The name of a slot's Job: the CronJob's name and the slot in minutes since the epoch (B-11.1).
pub fn job_name(cron_job_name: &str, slot: Timestamp) -> Box<str> {
    let mut digits = itoa::Buffer::new();
    let minutes = digits.format(slot.as_second() / 60);
    let mut name = String::with_capacity(cron_job_name.len() + 1 + minutes.len());
    name.push_str(cron_job_name);
    name.push('-');
    name.push_str(minutes);
    name.into_boxed_str()
}

/// The name of a slot's Job if slots have seconds: [`job_name`] with the two digits of the second (O-5.5).
pub fn job_name_with_second(cron_job_name: &str, slot: Timestamp) -> Box<str> {
    let name = job_name(cron_job_name, slot);
    format!("{name}-{:02}", second_of(slot)).into()
}

/// The name of a slot's Job: [`job_name`], or [`job_name_with_second`] if slots have seconds.
pub fn slot_job_name(cron_job_name: &str, slot: Timestamp, has_seconds: bool) -> Box<str> {
    if has_seconds {
        job_name_with_second(cron_job_name, slot)
    } else {
        job_name(cron_job_name, slot)
    }
}

/// Whether a Job has the name that [`job_name`] or [`job_name_with_second`] returns.
pub fn is_job_name(name: &str, cron_job_name: &str, slot: Timestamp) -> bool {
    let of_slot = name.strip_prefix(cron_job_name).and_then(|rest| rest.strip_prefix('-'));
    let mut digits = itoa::Buffer::new();
    let second = of_slot.and_then(|of_slot| of_slot.strip_prefix(digits.format(slot.as_second() / 60)));
    match second.map(str::as_bytes) {
        Some([]) => true,
        Some(&[b'-', tens @ b'0'..=b'5', ones @ b'0'..=b'9']) => {
            i64::from(tens - b'0') * 10 + i64::from(ones - b'0') == second_of(slot)
        }
        Some(_) | None => false,
    }
}

/// Whether a Job has the name of this slot of any CronJob. [`is_job_name`] is for a CronJob whose name is known.
pub fn is_any_job_name(name: &str, slot: Timestamp) -> bool {
    // The name of the CronJob ends before the last part, or before the last two.
    let mut ends = name.rmatch_indices('-').map(|(end, _)| end).take(2);
    ends.any(|end| end > 0 && is_job_name(name, &name[..end], slot))
}

/// The letters and digits of generated names: no vowels, so that they form no words.
const SUFFIX_ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Length of the generated part of the name of [`run_job_name`]. With `-run-`, it takes as many bytes as the minute of a
/// slot, so every name of a CronJob leaves room for it.
const SUFFIX_BYTES: usize = 6;

/// The name of the Job of a run that is asked for (O-10): the same for the same CronJob and token.
pub fn run_job_name(cron_job_name: &str, cron_job: &Uid, token: &str) -> Box<str> {
    let mut name = format!("{cron_job_name}-run-");
    let mut hash = run_hash(cron_job, token);
    for _ in 0..SUFFIX_BYTES {
        // Both are below 27.
        let digit = usize::try_from(hash % 27).unwrap_or(0);
        name.push(char::from(SUFFIX_ALPHABET[digit]));
        hash /= 27;
    }
    name.into()
}

fn second_of(slot: Timestamp) -> i64 {
    slot.as_second().rem_euclid(60)
}

/// Formats a slot in a zone as RFC 3339, like Go: whole seconds, `Z` at offset zero, no seconds in the offset (B-11.3).
pub fn scheduled_timestamp(slot: Timestamp, zone: Option<&Zone>) -> Box<str> {
    const PRINTER: DateTimePrinter = DateTimePrinter::new();
    let offset_secs = zone.map_or(0, |zone| zone.offset_seconds_at(slot.as_second()));
    // The offset is printed without its seconds, and the wall time with them.
    let (minutes, secs) = (offset_secs / 60, offset_secs % 60);
    let shifted = Timestamp::from_second(slot.as_second() + i64::from(secs)).unwrap_or(slot);
    let text = if offset_secs == 0 {
        PRINTER.timestamp_to_string(&shifted)
    } else {
        let offset = Offset::from_seconds(minutes * 60).unwrap_or(Offset::UTC);
        PRINTER.timestamp_with_offset_to_string(&shifted, offset)
    };
    text.into()
}

/// Formats a slot in UTC as RFC 1123 with a numeric zone, like `MissSchedule` (B-10.1).
pub fn rfc1123(slot: Timestamp) -> String {
    slot.strftime("%a, %d %b %Y %H:%M:%S +0000").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a timestamp")
    }

    #[test]
    fn b_11_1_job_name_ends_in_the_minute_of_the_slot() {
        let slot = at("2026-05-19T10:00:59Z");
        assert_eq!(&*job_name("hello", slot), "hello-29653080");
        assert_eq!(&*job_name_with_second("hello", slot), "hello-29653080-59");
        assert_eq!(
            &*job_name_with_second("hello", at("2026-05-19T10:00:00Z")),
            "hello-29653080-00"
        );
        for (name, expected) in [
            ("hello-29653080", true),
            ("hello-29653081", false),
            ("hello-029653080", false),
            ("hello-+29653080", false),
            ("hello-29653080-59", true),
            ("hello-29653080-58", false),
            ("hello-29653080-5", false),
            ("hello-29653080-99", false),
            ("hello-2965308059", false),
            ("hello", false),
            ("hello-", false),
            ("other-29653080", false),
        ] {
            assert_eq!(is_job_name(name, "hello", slot), expected, "{name}");
            let is_of_any = expected || name == "other-29653080";
            assert_eq!(is_any_job_name(name, slot), is_of_any, "{name}");
        }
    }

    #[test]
    fn a_name_is_that_of_a_slot_whatever_the_cron_job_is_called() {
        let slot = at("2026-05-19T10:00:15Z");
        for cron_job_name in ["hello", "a-b", "hello-29653080", "7"] {
            for has_seconds in [false, true] {
                let name = slot_job_name(cron_job_name, slot, has_seconds);
                assert!(is_any_job_name(&name, slot), "{name}");
                assert!(!is_any_job_name(&format!("{name}-00"), slot), "{name}");
            }
        }
        for name in ["29653080", "29653080-15", "hello-15", "hello-run-h45gcc", ""] {
            assert!(!is_any_job_name(name, slot), "{name}");
        }
    }

    #[test]
    fn o_10_the_job_of_a_run_is_named_by_uid_and_token() {
        let (uid, other) = (Uid::new("9f0c1a52-8d7e-4b1f-9a53-6c2d1e0b7f48"), Uid::new("other"));
        let name = run_job_name("hello", &uid, "t1");
        assert_eq!(&*name, "hello-run-h45gcc");
        assert_eq!(run_job_name("hello", &uid, "t1"), name);
        assert_ne!(run_job_name("hello", &uid, "t2"), name);
        assert_ne!(run_job_name("hello", &other, "t1"), name);
        // The longest name that the API server accepts for a CronJob.
        assert_eq!(run_job_name(&"x".repeat(52), &uid, "t1").len(), 63);
    }

    #[test]
    fn b_11_1_a_slot_before_the_epoch_has_a_job_name() {
        let slot = at("1950-01-01T00:00:00Z");
        assert!(is_job_name(&job_name("hello", slot), "hello", slot));
    }

    #[test]
    fn b_11_3_no_zone_prints_utc() {
        assert_eq!(
            &*scheduled_timestamp(at("2016-05-19T10:00:00.9Z"), None),
            "2016-05-19T10:00:00Z"
        );
    }

    #[test]
    fn b_11_3_seconds_of_an_offset_are_not_printed() {
        let monrovia = Zone::load("Africa/Monrovia").expect("a zone");
        assert_eq!(
            &*scheduled_timestamp(at("1970-01-01T00:00:00Z"), Some(&monrovia)),
            "1969-12-31T23:15:30-00:44"
        );
    }

    #[test]
    fn b_10_1_miss_schedule_prints_rfc_1123() {
        assert_eq!(rfc1123(at("2026-05-09T10:00:00Z")), "Sat, 09 May 2026 10:00:00 +0000");
    }
}
