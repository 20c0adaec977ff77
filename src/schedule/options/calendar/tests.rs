//! Tests of the lines of a calendar.

use super::*;

fn read(text: &str) -> Result<Calendar, String> {
    Calendar::read([("dates", text)].into_iter())
}

fn entries(text: &str) -> Vec<String> {
    let calendar = read(text).unwrap();
    let line = |days: &ExcludedDays| format!("{}..{} {}", days.first_date(), days.last_date(), days.note);
    calendar.stretches().iter().map(line).collect()
}

#[test]
fn a_line_is_a_date_or_a_range_with_a_note() {
    for (text, expected) in [
        ("2026-12-25", &["2026-12-25..2026-12-25 "] as &[_]),
        (
            "  2026-12-25\tChristmas Day \r\n\n# more\n",
            &["2026-12-25..2026-12-25 Christmas Day"],
        ),
        (
            "2026-12-25 # Christmas\u{1b}[0m",
            &["2026-12-25..2026-12-25 Christmas[0m"],
        ),
        ("2028-02-29..2028-02-29", &["2028-02-29..2028-02-29 "]),
        ("2027-01-01..9999-12-31 closed", &["2027-01-01..9999-12-31 closed"]),
        ("1969-12-31", &["1969-12-31..1969-12-31 "]),
        (
            "2027-01-01 New Year\n2026-12-24..2026-12-26 Christmas",
            &["2026-12-24..2026-12-26 Christmas", "2027-01-01..2027-01-01 New Year"],
        ),
        // A day in several entries belongs to the one that begins first.
        (
            "2026-12-25 b\n2026-12-24..2026-12-26 a\n2026-12-26..2026-12-28 c",
            &["2026-12-24..2026-12-26 a", "2026-12-27..2026-12-28 c"],
        ),
        ("", &[]),
    ] {
        assert_eq!(entries(text), expected, "{text:?}");
    }
}

#[test]
fn a_line_that_cannot_be_read_is_named_with_an_example() {
    for (text, problem) in [
        (
            "2026-12-24\n25.12.2026",
            "line 2: \"25.12.2026\" does not begin with a date or a range of dates",
        ),
        (
            "2026-13-01",
            "line 1: \"2026-13-01\" does not begin with a date or a range of dates",
        ),
        (
            "2026-02-29",
            "line 1: \"2026-02-29\" does not begin with a date or a range of dates",
        ),
        (
            "20261225",
            "line 1: \"20261225\" does not begin with a date or a range of dates",
        ),
        (
            "2026-12-24..",
            "line 1: \"2026-12-24..\" does not begin with a date or a range of dates",
        ),
        (
            "2026-12-26..2026-12-24",
            "line 1: \"2026-12-26..2026-12-24\" is a range whose end is before its beginning",
        ),
    ] {
        let expected = format!("key \"dates\", {problem}; a valid line is \"2026-12-24..2026-12-26 Christmas\"");
        assert_eq!(read(text).unwrap_err(), expected);
    }
    let long = read(&"x".repeat(10_000)).unwrap_err();
    assert!(long.len() < 300, "{long}");
}

#[test]
fn a_second_date_is_no_note() {
    for (rest, is_note) in [
        (" .. 2026-12-26 Christmas", false),
        (" ..2026-12-26", false),
        (" ... 2026-12-26", false),
        (" - 2026-12-26", false),
        (" -2026-12-26", false),
        (" – 2026-12-26", false),
        (" to 2026-12-26, closed", false),
        (" , 2026-12-26", false),
        (" 2026-12-26", false),
        ("  2026-12-26..2026-12-28", false),
        (" .. 2026-12-32", false),
        (" - Christmas", true),
        (" to be moved", true),
        (" ..", true),
        (" # 2026-12-26 follows", true),
        (" through 2026-12-26", false),
        (" until 2026-12-26", false),
        (" bis 2026-12-26", false),
        (" & 2026-12-26", false),
        (" / 2026-12-26", false),
        (" … 2026-12-26", false),
        (" Christmas, 2026-12-26 Boxing Day", false),
        (" 2026-12-26T00:00:00Z", false),
        (" #2026-12-26", true),
        (" 2026-12-2", true),
        (" 2026 is over", true),
    ] {
        let line = format!("2026-12-24{rest}");
        let expected = format!(
            "key \"dates\", line 1: {line:?} has a second date; write a range without spaces, each other date in a line of \
             its own, and # before a note with a date; a valid line is \"2026-12-24..2026-12-26 Christmas\""
        );
        match read(&line) {
            Ok(calendar) => assert!(is_note && calendar.stretches().len() == 1, "{line}"),
            Err(problem) => assert_eq!((problem, is_note), (expected, false), "{line}"),
        }
    }
}

#[test]
fn a_calendar_has_limits() {
    let line = "2026-12-25\n";
    assert!(read(&line.repeat(CALENDAR_ENTRIES_MAX)).is_ok());
    assert_eq!(
        read(&line.repeat(CALENDAR_ENTRIES_MAX + 1)).unwrap_err(),
        "it has more than 4096 dates and ranges"
    );
    let half = "#".repeat(CALENDAR_BYTES_MAX / 2);
    let with = |more: &'static str| Calendar::read([("a", &*half), ("b", &*half), ("c", more)].into_iter());
    assert!(with("").is_ok());
    assert_eq!(with(" ").unwrap_err(), "it has more than 256 KiB");
}

#[test]
fn adjacent_entries_are_one_stretch() {
    let calendar = read("2026-12-24\n2026-12-25..2026-12-26\n2026-12-28\n2026-12-29").unwrap();
    let day = |text: &str| day(text).unwrap();
    for (date, expected) in [
        ("2026-12-23", None),
        ("2026-12-24", Some(("2026-12-24", "2026-12-26"))),
        ("2026-12-26", Some(("2026-12-24", "2026-12-26"))),
        ("2026-12-27", None),
        ("2026-12-28", Some(("2026-12-28", "2026-12-29"))),
        ("2026-12-30", None),
    ] {
        let expected = expected.map(|(first, last)| (day(first), day(last)));
        assert_eq!(calendar.around(day(date)), expected, "{date}");
        assert_eq!(calendar.find(day(date)).is_some(), expected.is_some(), "{date}");
    }
}

#[test]
fn a_name_of_a_config_map_is_read() {
    for name in ["holidays", "bank.holidays-2026", &"a".repeat(63)] {
        assert_eq!(*NotOn::read(name).unwrap().name, *name);
    }
    for name in [
        "",
        "Holidays",
        "shop/holidays",
        "2026-12-25, 2026-12-26",
        ".",
        "..",
        "-",
        "a-",
        ".a",
        "a..b",
        "a.-b",
        &"a".repeat(64),
    ] {
        assert!(NotOn::read(name).is_err(), "{name}");
    }
}
