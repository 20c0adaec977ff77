//! Tests of the words for the schedules of the option `schedule`.

use super::*;

#[track_caller]
fn check(text: &str, words: &str) {
    let lines = Lines::parse(text, None).unwrap();
    assert_eq!(describe(&lines), words, "{text:?}");
}

#[test]
fn seconds_and_years_are_described_o_5_1() {
    for (text, words) in [
        ("0 30 2 * * *", "at 02:30 every day"),
        ("15 30 2,14 * * Mon-Fri", "at 02:30:15 and 14:30:15 on Monday to Friday"),
        ("0 */5 * * * *", "every 5 minutes"),
        ("*/10 * * * * *", "every 10 seconds"),
        ("* * * * * *", "every second"),
        ("0,30 * * * * *", "every minute, at seconds 0 and 30"),
        ("0,20 */5 * * * *", "every 5 minutes, at seconds 0 and 20"),
        (
            "15 */5 9-17 * * Mon",
            "every 5 minutes from 09:00 to 17:55, at second 15, on Monday",
        ),
        ("0 0 0 1 1 ? 2027", "at 00:00 on day 1 of January in 2027"),
        (
            "0 0 12 * * * 2027-2029,2031",
            "at 12:00 every day in 2027 to 2029 and 2031",
        ),
        ("20 * * * * * 2027", "every minute, at second 20, in 2027"),
        ("0 0 0 13 * Fri", "at 00:00 on day 13 of every month, only on Friday"),
        ("0 0 0 * * 1", "at 00:00 on Sunday"),
        (
            "@monthly\n0 0 12 15 * *",
            "at 00:00 on day 1 of every month; at 12:00 on day 15 of every month",
        ),
    ] {
        check(text, words);
    }
}

#[test]
fn differences_from_the_schedules_of_kubernetes_are_explained_o_5_1() {
    let surprises = |text| surprises(&Lines::parse(text, None).unwrap());
    assert_eq!(
        surprises("0 0 0 * * 2-6\n0 0 0 * * 7"),
        ["days of the week count from 1, which is Sunday"]
    );
    assert_eq!(
        surprises("0 0 0 13 * Fri"),
        ["both day fields must match: the schedule fires on days that match the day of month and the day of week"]
    );
    for text in ["0 0 0 * * Mon", "0 0 0 ? * *", "0 0 0 1-31 * Mon", "@weekly"] {
        assert!(surprises(text).is_empty(), "{text}");
    }
}
