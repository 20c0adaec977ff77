//! Schedule texts and their descriptions.

use super::*;
use crate::schedule::parse_standard;

#[test]
fn schedules_are_described_in_words() {
    for (text, words) in [
        ("* * * * *", "every minute"),
        ("*/5 * * * *", "every 5 minutes"),
        ("0-59/15 * * * *", "every 15 minutes"),
        ("5/15 * * * *", "every 15 minutes from minute 5"),
        (
            "*/7 * * * *",
            "at minutes 0, 7, 14, 21, 28, 35, 42, 49 and 56 of every hour",
        ),
        ("0 * * * *", "every hour"),
        ("@hourly", "every hour"),
        ("17 * * * *", "at minute 17 of every hour"),
        ("10,40 * * * *", "at minutes 10 and 40 of every hour"),
        ("0 */2 * * *", "every 2 hours from 00:00"),
        ("30 1-23/2 * * 1", "every 2 hours from 01:30 on Monday"),
        ("30 2 * * *", "at 02:30 every day"),
        ("@daily", "at 00:00 every day"),
        ("0,30 9,17 * * *", "at 09:00, 09:30, 17:00 and 17:30 every day"),
        ("* 9-17 * * *", "every minute from 09:00 to 17:59 every day"),
        (
            "*/20 9-17 * * 1-5",
            "every 20 minutes from 09:00 to 17:40 on Monday to Friday",
        ),
        ("*/20 8 * * *", "every 20 minutes from 08:00 to 08:40 every day"),
        ("*/20 1,5 * * *", "every 20 minutes of hours 1 and 5 every day"),
        (
            "0 1-3,5,7-20 * * *",
            "at minute 0 of hours 1 to 3, 5 and 7 to 20 every day",
        ),
        ("1,2,4 6-10 * * *", "at minutes 1, 2 and 4 of hours 6 to 10 every day"),
        ("0 12 * * 0,6", "at 12:00 on Sunday and Saturday"),
        ("@weekly", "at 00:00 on Sunday"),
        ("0 12 1 * *", "at 12:00 on day 1 of every month"),
        ("0 12 1,15 * *", "at 12:00 on days 1 and 15 of every month"),
        ("@yearly", "at 00:00 on day 1 of January"),
        ("0 0 * 6-8 *", "at 00:00 every day in June to August"),
        ("0 0 * jun mon", "at 00:00 on Monday in June"),
        ("*/10 * * 1,7 *", "every 10 minutes in January and July"),
        (
            "@every 90m",
            "every 1h 30m, counted from the last slot that was started, else from the creation",
        ),
    ] {
        check(text, words);
    }
}

#[test]
fn b_7_8_the_day_rule_is_described() {
    for (text, words) in [
        ("0 0 13 * 5", "at 00:00 on day 13 of every month and on Friday"),
        ("0 0 13 * 0-6", "at 00:00 every day"),
        ("0 0 1-31 * 5", "at 00:00 every day"),
        (
            "0 0 */2 * 5",
            "at 00:00 on days 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29 and 31 of every \
                         month and on Friday",
        ),
        ("0 0 */1 * 5", "at 00:00 on Friday"),
        ("0 0 *,13 * 5", "at 00:00 on Friday"),
        ("0 0 , * 5", "at 00:00 on Friday"),
    ] {
        check(text, words);
    }
}

#[test]
fn b_7_7_empty_fields_are_described_as_never() {
    check(", * * * *", "never: no minute matches");
    check("* , * * *", "never: no hour matches");
    check("* * * , *", "never: no month matches");
    check("* * , * *", "never: no day matches");
    check("* * , * ,", "never: no day matches");
}

const SURPRISES: &[(&str, &str)] = &[
    (
        "0 0 29/2 * *",
        "29/2 is uneven: steps start again with every month, so the last one takes 29 or 30 days",
    ),
    (
        "*/7 * * * *",
        "*/7 is uneven: steps start again with every hour, so the last one takes 4 minutes",
    ),
    (
        "0 */23 * * *",
        "*/23 is uneven: steps start again with every day, so the last one takes 1 hour",
    ),
    (
        "*/90 * * * *",
        "*/90 matches minute 0 alone: steps start again with every hour; for every 90 minutes write @every 90m",
    ),
    (
        "0/25 * * * *",
        "0/25 is uneven: steps start again with every hour, so the last one takes 10 minutes",
    ),
    (
        "5/25 * * * *",
        "5/25 is uneven: steps start again with every hour, so the last one takes 10 minutes",
    ),
    (
        "40/30 * * * *",
        "40/30 matches minute 40 alone: steps start again with every hour",
    ),
    (
        "0 0 */2 * *",
        "*/2 is uneven: steps start again with every month, so the last one takes 1 or 2 days",
    ),
    (
        "0 0 */14 * *",
        "*/14 is uneven: steps start again with every month, so the last one takes 1 to 14 days",
    ),
    (
        "0 0 */31 * *",
        "*/31 matches day 1 alone: steps start again with every month",
    ),
    (
        "0 0 1 */5 *",
        "*/5 is uneven: steps start again with every year, so the last one takes 2 months",
    ),
    (
        "0 0 * * */2",
        "*/2 is uneven: steps start again with every week, so the last one takes 1 day",
    ),
    (
        "0 0 13 * 5",
        "either day field is enough: the schedule fires on days that match the day of month or the day of week",
    ),
    ("0 0 ? * 5", "? is Quartz's; here it means the same as *"),
    (
        "@every 5s",
        "Jobs are named by the minute, so only the first instant of each minute starts one",
    ),
];

#[test]
fn b_7_7_surprising_schedules_are_explained() {
    let surprises = |text| surprises(text, &parse_standard(text).unwrap());
    for (text, sentence) in SURPRISES {
        assert_eq!(surprises(text), [*sentence], "{text}");
    }
    for text in [
        "*/15 */6 * * *",
        "7/15 2/6 * * *",
        "*/1 */1 */1 */1 */1",
        "0 0 1 */3 *",
        "0 0 13 * *",
        "0 0 * * 5",
        "@every 1m",
        "@daily",
        "0 0 13 * ,",
    ] {
        assert!(surprises(text).is_empty(), "{text}");
    }
}

#[track_caller]
fn check(text: &str, words: &str) {
    assert_eq!(describe(&parse_standard(text).unwrap()), words, "{text}");
}
