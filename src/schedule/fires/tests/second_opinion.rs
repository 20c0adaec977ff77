//! Comparisons with other implementations, where their rules and zone data are the same as cronwheel's.
//!
//! `cron` counts the days of the week from 1, requires a day to match both day fields, and interprets `*` and steps
//! differently. Therefore the tests use it with explicit lists, with one schedule for each side of a union, and only
//! in UTC. The zone data of `chrono-tz` are of release 2025b.

use std::str::FromStr as _;

use chrono::{DateTime, Datelike as _, Offset as _, TimeZone as _, Timelike as _, Utc};
use chrono_tz::Tz;

use super::{sample::Random, *};

fn list(bits: u64, shift: u32) -> String {
    let values = (0..64)
        .filter(|value| bits >> value & 1 == 1)
        .map(|value| (value + shift).to_string());
    values.collect::<Vec<_>>().join(",")
}

/// The schedules of `cron` whose union is equivalent to `spec`.
fn other_schedules(spec: &Spec) -> Vec<cron::Schedule> {
    let (days, weekdays) = (list(spec.days_of_month.into(), 0), list(spec.days_of_week.into(), 1));
    let (all_days, all_weekdays) = ("1-31".to_owned(), "1-7".to_owned());
    let day_fields = match spec.day_rule {
        DayRule::Both => vec![(days, weekdays)],
        DayRule::Either => vec![(days, all_weekdays), (all_days, weekdays)],
    };
    let (minutes, hours, months) = (
        list(spec.minutes, 0),
        list(spec.hours.into(), 0),
        list(spec.months.into(), 0),
    );
    let texts = day_fields
        .iter()
        .map(|(days, weekdays)| format!("0 {minutes} {hours} {days} {months} {weekdays}"));
    texts.map(|text| cron::Schedule::from_str(&text).unwrap()).collect()
}

#[test]
fn activations_match_the_cron_crate_in_utc() {
    let mut random = Random::new(0x5eed_0005);
    for _ in 0..2_000 {
        let text = sample::schedule_text(&mut random);
        let spec = spec(&text);
        let mut reference = random.between(946_684_800, 2_082_758_400);
        let others = other_schedules(&spec);
        for _ in 0..4 {
            let after = DateTime::from_timestamp(reference, 0).unwrap();
            let expected = others.iter().filter_map(|other| other.after(&after).next()).min();
            // `cron` searches until the year 2100; cronwheel stops after the fifth year, as the library does.
            let expected = expected
                .filter(|next| next.year() <= after.year() + 5)
                .map(|next| next.timestamp());
            let got = next_of_spec(&spec, &Zone::utc(), reference);
            assert_eq!(got, expected, "{text} from {after}; {random}");
            let Some(next) = got else { break };
            reference = next;
        }
    }
}

/// Zones whose data for these years changed after release 2025b.
pub(super) const DATA_DIFFERS: [&str; 13] = [
    "Africa/Casablanca",
    "Africa/El_Aaiun",
    "America/Edmonton",
    "America/Inuvik",
    "America/Rainy_River",
    "America/Vancouver",
    "America/Winnipeg",
    "America/Yellowknife",
    "Canada/Central",
    "Canada/Mountain",
    "Canada/Pacific",
    "Europe/Chisinau",
    "Europe/Tiraspol",
];

#[test]
fn zone_offsets_match_chrono_tz() {
    let names = chrono_tz::TZ_VARIANTS
        .iter()
        .map(|other| other.name())
        .filter(|name| !DATA_DIFFERS.contains(name));
    let mut n_zones = 0;
    for name in names {
        let (other, zone) = (Tz::from_str(name).unwrap(), zone(name));
        let ends = std::iter::successors(Some(zone.span_at(946_684_800)), |span| Some(zone.span_at(span.end)));
        let ends = ends.map(|span| span.end).take_while(|end| *end < 2_082_758_400);
        let around_changes = ends.flat_map(|end| [end - 1, end]);
        for at in around_changes.chain((946_684_800..2_082_758_400).step_by(1_000_003)) {
            let expected = other.offset_from_utc_datetime(&DateTime::from_timestamp(at, 0).unwrap().naive_utc());
            assert_eq!(
                zone.offset_seconds_at(at),
                expected.fix().local_minus_utc(),
                "{name} at {at}"
            );
        }
        n_zones += 1;
    }
    assert!(n_zones > 570, "only {n_zones} zones were compared");
}

/// Checks every minute of some days for a match in the local time of `chrono-tz`. The library finds the same minutes in
/// zones without a gap at midnight and without shifts by half an hour.
#[test]
fn activations_around_clock_changes_match_chrono_tz() {
    let mut random = Random::new(0x5eed_0006);
    let zones = [
        "America/New_York",
        "Europe/Berlin",
        "Europe/London",
        "Australia/Sydney",
        "Asia/Kolkata",
    ];
    for _ in 0..150 {
        let name = random.pick(&zones);
        let (other, zone) = (Tz::from_str(name).unwrap(), zone(name));
        let text = sample::schedule_text(&mut random);
        let spec = spec(&text);
        let start = sample::instant(&mut random, &zone).div_euclid(60) * 60;
        let end = start + 3 * 86_400;
        let expected: Vec<i64> = (start + 60..end)
            .step_by(60)
            .filter(|at| is_match(&spec, other, *at))
            .collect();
        let first = next_of_spec(&spec, &zone, start);
        let members = std::iter::successors(first, |member| next_of_spec(&spec, &zone, *member));
        let got: Vec<i64> = members.take_while(|member| *member < end).collect();
        assert_eq!(got, expected, "{text} in {name} from {start}; {random}");
    }
}

fn is_match(spec: &Spec, zone: Tz, at: i64) -> bool {
    let local = Utc.timestamp_opt(at, 0).unwrap().with_timezone(&zone);
    let weekday = u8::try_from(local.weekday().num_days_from_sunday()).unwrap();
    spec.has_month(u8::try_from(local.month()).unwrap())
        && spec.has_day(u8::try_from(local.day()).unwrap(), weekday)
        && spec.has_hour(local.hour().into())
        && spec.has_minute(local.minute().into())
}
