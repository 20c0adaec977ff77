//! The texts that identify a run: the Job's name, and the slot as printed in annotations and messages.

use jiff::{Timestamp, tz::Offset};

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

/// Whether a Job has the name that [`job_name`] returns.
pub fn is_job_name(name: &str, cron_job_name: &str, slot: Timestamp) -> bool {
    let minutes = name.strip_prefix(cron_job_name).and_then(|rest| rest.strip_prefix('-'));
    minutes == Some(itoa::Buffer::new().format(slot.as_second() / 60))
}

/// Formats a slot in a zone as RFC 3339, like Go: whole seconds, `Z` at offset zero, no seconds in the offset (B-11.3).
pub fn scheduled_timestamp(slot: Timestamp, zone: Option<&Zone>) -> Box<str> {
    let offset_secs = zone.map_or(0, |zone| zone.offset_seconds_at(slot.as_second()));
    let local = Offset::from_seconds(offset_secs)
        .unwrap_or(Offset::UTC)
        .to_datetime(slot);
    // Formatted by hand for speed, because this runs for every due CronJob at the instant of its slot.
    let mut text = *b"0000-00-00T00:00:00+00:00";
    put_digits(&mut text[0..4], local.year().unsigned_abs());
    put_digits(&mut text[5..7], local.month().unsigned_abs().into());
    put_digits(&mut text[8..10], local.day().unsigned_abs().into());
    put_digits(&mut text[11..13], local.hour().unsigned_abs().into());
    put_digits(&mut text[14..16], local.minute().unsigned_abs().into());
    put_digits(&mut text[17..19], local.second().unsigned_abs().into());
    let text = if offset_secs == 0 {
        text[19] = b'Z';
        &text[..20]
    } else {
        // An offset is shorter than a day.
        let minutes = u16::try_from(offset_secs.unsigned_abs() / 60).unwrap_or(0);
        text[19] = if offset_secs < 0 { b'-' } else { b'+' };
        put_digits(&mut text[20..22], minutes / 60);
        put_digits(&mut text[23..25], minutes % 60);
        &text[..]
    };
    // The text is ASCII.
    str::from_utf8(text).unwrap_or_default().into()
}

/// Writes the last decimal digits of a number, padded with zeros.
fn put_digits(place: &mut [u8], mut number: u16) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
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
    fn b_10_1_miss_schedule_prints_rfc_1123() {
        assert_eq!(rfc1123(at("2026-05-09T10:00:00Z")), "Sat, 09 May 2026 10:00:00 +0000");
    }
}
