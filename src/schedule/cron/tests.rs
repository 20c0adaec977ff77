//! Tests of B-7, rule by rule. The expected values were recorded from the library.

use super::*;
use crate::schedule::fires::Spec;

fn parsed(text: &str) -> Schedule {
    parse_standard(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

/// Checks that both texts parse to the same schedule, including the star mark.
#[track_caller]
fn check_same(text: &str, other: &str) {
    assert_eq!(parsed(text), parsed(other), "{text:?} and {other:?}");
}

#[track_caller]
fn check_differ(text: &str, other: &str) {
    assert_ne!(parsed(text), parsed(other), "{text:?} and {other:?}");
}

#[track_caller]
fn check_error(text: &str, expected: &str) {
    match parse_standard(text) {
        Ok(schedule) => panic!("{text:?} is accepted as {schedule:?}"),
        Err(error) => assert_eq!(error.to_string(), expected, "{text:?}"),
    }
}

#[test]
fn schedule_takes_at_most_40_bytes() {
    assert!(size_of::<Spec>() <= 40, "{} bytes", size_of::<Spec>());
    assert!(size_of::<Schedule>() <= 40, "{} bytes", size_of::<Schedule>());
}

#[test]
fn the_first_invalid_field_is_reported_b_7_3() {
    check_error("", "empty spec string");
    check_error("* * * *", "expected exactly 5 fields, found 4: [* * * *]");
    check_error("0 * * * * *", "expected exactly 5 fields, found 6: [0 * * * * *]");
    check_error("\t", "expected exactly 5 fields, found 0: []");
    // The first failing field is reported.
    check_error("60 24 * * *", "end of range (60) above maximum (59): 60");
    check_error("0 24 32 * *", "end of range (24) above maximum (23): 24");
}

#[test]
fn zone_prefix_b_7_3() {
    check_same("CRON_TZ=Asia/Tokyo 0 2 * * *", "TZ=Asia/Tokyo 0 2 * * *");
    check_same("TZ= 0 2 * * *", "TZ=UTC 0 2 * * *");
    check_same("TZ=Asia/Tokyo \t 0 2 * * *\u{a0}", "TZ=Asia/Tokyo 0 2 * * *");
    check_same("TZ=Asia/Tokyo  @daily ", "TZ=Asia/Tokyo @daily");
    check_same("TZ=Asia/Tokyo @every 1h ", "@every 1h");
    check_error(
        "tz=UTC 0 2 * * *",
        "expected exactly 5 fields, found 6: [tz=UTC 0 2 * * *]",
    );
    check_error(
        " TZ=UTC 0 2 * * *",
        "expected exactly 5 fields, found 6: [TZ=UTC 0 2 * * *]",
    );
    check_error(
        "TZ=Nowhere/City * * * * *",
        "provided bad location Nowhere/City: unknown time zone Nowhere/City",
    );
    check_error(
        "TZ=asia/tokyo * * * * *",
        "provided bad location asia/tokyo: unknown time zone asia/tokyo",
    );
    check_error(
        "TZ=../etc * * * * *",
        "provided bad location ../etc: time: invalid location name",
    );
    check_error(
        "TZ=/UTC * * * * *",
        "provided bad location /UTC: time: invalid location name",
    );
    // A tab does not end the name.
    check_error(
        "TZ=UTC\t0 2 * * *",
        "provided bad location UTC\t0: unknown time zone UTC\t0",
    );
    check_error("TZ=UTC 2 * * *", "expected exactly 5 fields, found 4: [2 * * *]");
}

#[test]
fn local_zone_equals_no_zone_b_7_2() {
    check_same("TZ=Local 0 2 * * *", "0 2 * * *");
    check_differ("TZ=UTC 0 2 * * *", "0 2 * * *");
}

#[test]
fn descriptors_b_7_4() {
    check_same("@yearly", "0 0 1 1 *");
    check_same("@annually", "@yearly");
    check_same("@monthly", "0 0 1 * *");
    check_same("@weekly", "0 0 * * 0");
    check_same("@daily", "0 0 * * *");
    check_same("@midnight", "@daily");
    check_same("@hourly", "0 * * * *");
    for text in ["@Daily", "@reboot", "@", "@daily ", "@every", "@every1h", "@dailyx"] {
        check_error(text, &format!("unrecognized descriptor: {text}"));
    }
}

#[test]
fn every_b_7_5() {
    check_same("@every 1h30m", "@every 90m");
    check_same("@every 1.5h", "@every 90m");
    check_same("@every 90.999s", "@every 90s");
    check_same("@every 1h1m1s1ms1us1µs1μs1ns", "@every 3661s");
    for second in ["0", "+0", "-1h", "10µs", "1ns", "999ms", "1s", "+1.9s", "1.s", ".5s"] {
        check_same(&format!("@every {second}"), "@every 1s");
    }
    check_same("@every 2562047h47m16.854775807s", "@every 9223372036s");
    // The sum of two of the largest magnitudes wraps to zero.
    check_same("@every 9223372036854775808ns9223372036854775808ns", "@every 1s");
    check_same("@every 0.00000000000000000000000000000000001h", "@every 1s");
    check_same("@every 0.333333333333333333333h", "@every 1200s");
}

#[test]
fn invalid_durations_are_rejected_as_in_go_b_7_5() {
    let check = |duration: &str, reason: &str| {
        check_error(
            &format!("@every {duration}"),
            &format!("failed to parse duration @every {duration}: time: {reason}"),
        );
    };
    check("", r#"invalid duration """#);
    check(" 1h", r#"invalid duration " 1h""#);
    check("-", r#"invalid duration "-""#);
    check("--1h", r#"invalid duration "--1h""#);
    check(".s", r#"invalid duration ".s""#);
    check("h", r#"invalid duration "h""#);
    check("1", r#"missing unit in duration "1""#);
    check("1.", r#"missing unit in duration "1.""#);
    check(
        "9223372036854775808",
        r#"missing unit in duration "9223372036854775808""#,
    );
    check("9223372036854775809", r#"invalid duration "9223372036854775809""#);
    check("1h2", r#"missing unit in duration "1h2""#);
    check("1h ", r#"unknown unit "h " in duration "1h ""#);
    check("1d", r#"unknown unit "d" in duration "1d""#);
    check("1µ", r#"unknown unit "\xc2\xb5" in duration "1\xc2\xb5""#);
    check("1\"", r#"unknown unit "\"" in duration "1\"""#);
    check("1\\\u{7f}", "unknown unit \"\\\\\u{7f}\" in duration \"1\\\\\u{7f}\"");
    check("1\n", r#"unknown unit "\x0a" in duration "1\x0a""#);
    check("9223372036854775808ns", r#"invalid duration "9223372036854775808ns""#);
    check("9223372036854775809ns", r#"invalid duration "9223372036854775809ns""#);
    check("99999999999999999999ns", r#"invalid duration "99999999999999999999ns""#);
    check("2562048h", r#"invalid duration "2562048h""#);
    check("2562047h48m", r#"invalid duration "2562047h48m""#);
}

#[test]
fn white_space_b_7_6() {
    check_same(" 0\t2\n*\u{a0}*\u{3000}* ", "0 2 * * *");
    check_error(" @daily", "expected exactly 5 fields, found 1: [@daily]");
    check_error("@daily ", "unrecognized descriptor: @daily ");
}

#[test]
fn items_of_a_field_b_7_7() {
    check_same("1,,2, * * * *", "1,2 * * * *");
    check_same("1-3 * * * *", "1,2,3 * * * *");
    check_same("5/15 * * * *", "5,20,35,50 * * * *");
    check_same("10-20/5 * * * *", "10,15,20 * * * *");
    check_same("*/25 * * * *", "0,25,50 * * * *");
    check_same("*/100 * * * *", "0 * * * *");
    check_same("7/9223372036854775807 * * * *", "7 * * * *");
    check_same("05,+6,007 * * * *", "5,6,7 * * * *");
    check_same("? ? ? ? ?", "* * * * *");
    check_same("*-foo ?-3 *-1-2 *- ?--", "* * * * *");
    check_same("*-1-2/7 * * * *", "*/7 * * * *");
    check_same("0 0 , * *", "0 0 ,,, * *");
    check_error("1/2/3 * * * *", "too many slashes: 1/2/3");
    check_error("*/1/ * * * *", "too many slashes: */1/");
    check_error("1-2-3 * * * *", "too many hyphens: 1-2-3");
    check_error("1-x-3/1/1 * * * *", "too many hyphens: 1-x-3/1/1");
}

#[test]
fn numbers_b_7_7() {
    let syntax = |text: &str, number: &str| {
        check_error(
            &format!("{text} * * * *"),
            &format!("failed to parse int from {number}: strconv.Atoi: parsing \"{number}\": invalid syntax"),
        );
    };
    syntax("-5", "");
    syntax("5-", "");
    syntax("*/", "");
    syntax("/5", "");
    syntax("x", "x");
    syntax("0x10", "0x10");
    syntax("1_0", "1_0");
    syntax("+", "+");
    syntax("1-+", "+");
    syntax("*/x", "x");
    syntax("**", "**");
    for signs in ["++5", "+-5", "-+5"] {
        syntax(&format!("*/{signs}"), signs);
    }
    syntax("999999999999999999x", "999999999999999999x");
    let range = |number: &str| {
        check_error(
            &format!("{number} * * * *"),
            &format!("failed to parse int from {number}: strconv.Atoi: parsing \"{number}\": value out of range"),
        );
    };
    range("9223372036854775808");
    range("99999999999999999999");
    // Go stops reading at the digit that overflows.
    range("99999999999999999999x");
    check_error(
        "9223372036854775807 * * * *",
        "end of range (9223372036854775807) above maximum (59): 9223372036854775807",
    );
    check_error("*/-1 * * * *", "negative number (-1) not allowed: -1");
    check_error(
        "*/-9223372036854775808 * * * *",
        "negative number (-9223372036854775808) not allowed: -9223372036854775808",
    );
}

#[test]
fn invalid_numbers_are_quoted_as_in_go() {
    let check = |number: &str, quoted: &str| {
        check_error(
            &format!("{number} * * * *"),
            &format!("failed to parse int from {number}: strconv.Atoi: parsing {quoted}: invalid syntax"),
        );
    };
    check("\"", r#""\"""#);
    check("\\", r#""\\""#);
    check("'", r#""'""#);
    check("é", r#""é""#);
    check("日本", r#""日本""#);
    check("e\u{301}", "\"e\u{301}\"");
    check("\u{301}", "\"\u{301}\"");
    check("🦀", r#""🦀""#);
    check("\u{0}\u{7}\u{8}\u{1b}\u{7f}", r#""\x00\a\b\x1b\x7f""#);
    check("\u{200b}\u{feff}\u{ad}", r#""\u200b\ufeff\u00ad""#);
    check("\u{e000}\u{e0001}", r#""\ue000\U000e0001""#);
    check("\u{fffd}", "\"\u{fffd}\"");
}

#[test]
fn names_b_7_7() {
    check_same("0 0 1 JAN-mar,Dec *", "0 0 1 1-3,12 *");
    check_same("0 0 * * sun,Mon-WED/2,6", "0 0 * * 0,1,3,6");
    check_same("0 0 * jan/3 *", "0 0 * 1,4,7,10 *");
    check_same("0 0 * * FRİ", "0 0 * * 5");
    check_error(
        "0 0 * january *",
        r#"failed to parse int from january: strconv.Atoi: parsing "january": invalid syntax"#,
    );
    check_error(
        "0 0 * mon *",
        r#"failed to parse int from mon: strconv.Atoi: parsing "mon": invalid syntax"#,
    );
    check_error(
        "0 0 * */feb *",
        r#"failed to parse int from feb: strconv.Atoi: parsing "feb": invalid syntax"#,
    );
    check_error(
        "jan * * * *",
        r#"failed to parse int from jan: strconv.Atoi: parsing "jan": invalid syntax"#,
    );
}

#[test]
fn bounds_are_checked_in_the_order_of_the_library_b_7_7() {
    check_error("0 0 0 * *", "beginning of range (0) below minimum (1): 0");
    check_error("0 0 0-99/0 * *", "beginning of range (0) below minimum (1): 0-99/0");
    check_error("9-60/0 * * * *", "end of range (60) above maximum (59): 9-60/0");
    check_error("60/5 * * * *", "beginning of range (60) beyond end of range (59): 60/5");
    check_error("9-8/0 * * * *", "beginning of range (9) beyond end of range (8): 9-8/0");
    check_error("*/0 * * * *", "step of range should be a positive number: */0");
    check_error("0 0 * * 7", "end of range (7) above maximum (6): 7");
    check_error(
        "0 0 * * SAT-SUN",
        "beginning of range (6) beyond end of range (0): SAT-SUN",
    );
    check_error("0 22-2 * * *", "beginning of range (22) beyond end of range (2): 22-2");
}

#[test]
fn star_mark_b_7_8() {
    // `*/1` sets the mark, and one such item is enough.
    check_same("0 0 */1 * 1", "0 0 * * 1");
    check_same("0 0 *,13 * 1", "0 0 * * 1");
    check_same("0 0 13,? * 1", "0 0 * * 1");
    // A larger step clears the mark and a full range never sets it, so the day fields are combined as a union.
    check_differ("0 0 */2 * 1", "0 0 1-31/2,*/40 * *");
    check_differ("0 0 1-31 * 1", "0 0 * * 1");
    check_differ("0 0 13 * 0-6", "0 0 13 * *");
    check_same("0 0 */2 * 1", "0 0 1-31/2 * 1");
}

#[test]
fn zone_prefix_without_space_is_an_error_b_7_9() {
    for text in ["TZ=UTC", "CRON_TZ=", "TZ=", "TZ=UTC\t*\t*\t*\t*\t*"] {
        check_error(
            text,
            "invalid schedule format: runtime error: slice bounds out of range [:-1]",
        );
    }
}
