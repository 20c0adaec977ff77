//! `cronwheel next` for a person and in bulk; the recorded answers come back byte for byte.

use clap::Parser;

use super::*;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: NextArgs,
}

const NOW: &str = "2026-03-27T12:00:00Z";

fn run_with(args: &[&str], input: &[u8]) -> Result<String, NextError> {
    let command = Command::try_parse_from([&["next"], args].concat()).unwrap();
    let mut output = Vec::new();
    run(command.args, NOW.parse().unwrap(), input, &mut output)?;
    Ok(String::from_utf8(output).unwrap())
}

#[track_caller]
fn check(args: &[&str], expected: &str) {
    assert_eq!(run_with(args, b"").unwrap(), expected, "{args:?}");
}

#[track_caller]
fn check_error(args: &[&str], expected: &str) {
    assert_eq!(run_with(args, b"").unwrap_err().to_string(), expected, "{args:?}");
}

#[track_caller]
fn check_bulk(input: &[u8], expected: &str) {
    assert_eq!(run_with(&["--stdin"], input).unwrap(), expected);
}

/// The answers to a first line that is malformed and to the lines after it, and the error at the end.
fn run_malformed(input: &[u8]) -> (String, String) {
    let command = Command::parse_from(["next", "--stdin"]);
    let mut output = Vec::new();
    let error = run(command.args, NOW.parse().unwrap(), input, &mut output).unwrap_err();
    (String::from_utf8(output).unwrap(), error.to_string())
}

#[test]
fn activations_are_shown_in_the_zone_and_in_utc() {
    check(
        &["30 2 * * *", "--time-zone", "Europe/Berlin", "-n", "3"],
        "schedule   30 2 * * *\n\
         time zone  Europe/Berlin (data 2026e)\n\
         from       Fri  2026-03-27T13:00:00+01:00\n\
         \n\
         Sat  2026-03-28T02:30:00+01:00  2026-03-28T01:30:00Z\n\
         Mon  2026-03-30T02:30:00+02:00  2026-03-30T00:30:00Z\n\
         Tue  2026-03-31T02:30:00+02:00  2026-03-31T00:30:00Z\n",
    );
}

#[test]
fn the_count_and_the_instant_have_defaults() {
    let shown = run_with(&["@hourly"], b"").unwrap();
    assert!(shown.contains("from       Fri  2026-03-27T12:00:00+00:00\n"), "{shown}");
    assert!(
        shown.ends_with("Fri  2026-03-27T17:00:00+00:00  2026-03-27T17:00:00Z\n"),
        "{shown}"
    );
}

#[test]
fn a_zone_in_the_text_wins_and_is_told_b_7_1() {
    check(
        &["TZ=Asia/Tokyo 0 0 * * *", "--time-zone", "Europe/Berlin", "-n", "1"],
        "schedule   TZ=Asia/Tokyo 0 0 * * *\n\
         time zone  Asia/Tokyo (data 2026e)\n           \
         named by the schedule itself, which Kubernetes does not support\n\
         from       Fri  2026-03-27T21:00:00+09:00\n\
         \n\
         Sat  2026-03-28T00:00:00+09:00  2026-03-27T15:00:00Z\n",
    );
}

#[test]
fn an_end_of_the_activations_is_told() {
    let never = run_with(&["0 0 30 2 *"], b"").unwrap();
    assert!(
        never.ends_with("\n\nnever: no activation within five years\n"),
        "{never}"
    );
    let last = run_with(&["0 0 29 2 *", "--from", "2095-01-01T00:00:00Z"], b"").unwrap();
    assert!(
        last.ends_with("2096-02-29T00:00:00Z\nno further activation within five years\n"),
        "{last}"
    );
}

#[test]
fn json_holds_the_same() {
    let shown = run_with(&["0 0 29 2 *", "--from", "2095-01-01T00:00:00Z", "-o", "json"], b"").unwrap();
    let expected = serde_json::json!({
        "schedule": "0 0 29 2 *",
        "timeZone": "UTC",
        "isZoneInText": false,
        "timeZoneData": "2026e",
        "from": {"local": "2095-01-01T00:00:00+00:00", "utc": "2095-01-01T00:00:00Z"},
        "activations": [{"local": "2096-02-29T00:00:00+00:00", "utc": "2096-02-29T00:00:00Z"}],
        "ends": true,
    });
    assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), expected);
}

#[test]
fn errors_name_the_field_or_flag_and_the_fix() {
    check_error(
        &["0 0 * * 7"],
        "schedule \"0 0 * * 7\": end of range (7) above maximum (6): 7; \
         correct the day of week field, which takes 0-6 or sun-sat, Sunday is 0, as lists, ranges and steps",
    );
    check_error(
        &["*/5 * * *"],
        "schedule \"*/5 * * *\": expected exactly 5 fields, found 4: [*/5 * * *]; \
         write five fields (minute, hour, day of month, month, day of week), or one of @yearly, @monthly, @weekly, \
         @daily, @hourly, or @every with a duration such as 1h30m",
    );
    check_error(
        &["@daily", "--time-zone", "europe/berlin"],
        "--time-zone \"europe/berlin\": unknown time zone europe/berlin; names are case-sensitive, write Europe/Berlin",
    );
    check_error(
        &["@daily", "--time-zone", "CET+1"],
        "--time-zone \"CET+1\": unknown time zone CET+1; \
         write a name of the IANA database, such as America/New_York or Etc/UTC",
    );
    check_error(
        &["@daily", "--from", "yesterday"],
        "--from \"yesterday\": no instant in RFC 3339; \
         write it like 2026-11-21T10:30:00Z or 2026-11-21T11:30:00+01:00",
    );
}

#[test]
fn arguments_that_do_not_go_together_are_refused() {
    for args in [
        &["next"][..],
        &["next", "@daily", "--stdin"],
        &["next", "@daily", "-n", "0"],
        &["next", "@daily", "-n", "1001"],
    ] {
        assert!(Command::try_parse_from(args).is_err(), "{args:?}");
    }
}

#[test]
fn bulk_answers_repeat_the_query() {
    check_bulk(
        b"0 2 * * *\tEurope/Berlin\t2026-03-27T12:00:00.5Z\t2\n\
          0\\t2 * * *\t\t2026-03-27T12:00:00Z\t1\r\n\
          0 0 31 2 *\tBad/Zone\t2026-03-27T12:00:00Z\t3\n\
          0 0 29 2 *\t\t2095-01-01T00:00:00Z\t3\n\
          \\\\\t\t2026-03-27T12:00:00Z\t1",
        "0 2 * * *\tEurope/Berlin\t2026-03-27T12:00:00.5Z\t2\t2026-03-28T01:00:00Z 2026-03-30T00:00:00Z\n\
         0\\t2 * * *\t\t2026-03-27T12:00:00Z\t1\t2026-03-28T02:00:00Z\n\
         0 0 31 2 *\tBad/Zone\t2026-03-27T12:00:00Z\t3\tERR\tunknown time zone Bad/Zone\n\
         0 0 29 2 *\t\t2095-01-01T00:00:00Z\t3\t2096-02-29T00:00:00Z -\n\
         \\\\\t\t2026-03-27T12:00:00Z\t1\tERR\texpected exactly 5 fields, found 1: [\\\\]\n",
    );
    check_bulk(b"", "");
}

#[test]
fn a_line_that_is_no_query_is_told_and_the_rest_goes_on() {
    let good = "@daily\t\t2026-03-27T12:00:00Z\t1\t2026-03-28T00:00:00Z\n";
    let check = |bad: &[u8], message: &str| {
        let input = [bad, b"\n@daily\t\t2026-03-27T12:00:00Z\t1\n"].concat();
        let (answers, error) = run_malformed(&input);
        assert_eq!(answers, format!("BAD\tline 1: {message}\n{good}"));
        assert_eq!(
            error,
            "1 of the lines was not answered; correct the lines that are answered with BAD"
        );
    };
    let columns = "instead of 4: schedule, zone, instant in RFC 3339, count";
    check(b"", &format!("1 columns {columns}"));
    check(b"@daily\t\t2026-03-27T12:00:00Z\t1\t", &format!("5 columns {columns}"));
    check(b"\xff\t\t2026-03-27T12:00:00Z\t1", "not in UTF-8");
    check(&vec![b'x'; 2 << 20], "longer than 1048576 bytes");
    for count in ["0", "-1", "1001", "many", "", "99999999999"] {
        let line = format!("@daily\t\t2026-03-27T12:00:00Z\t{count}");
        check(line.as_bytes(), "the count in column 4 is no number from 1 to 1000");
    }
    for text in [r"\x", r"\", r"a\\\"] {
        let line = format!("{text}\t\t2026-03-27T12:00:00Z\t1");
        check(line.as_bytes(), r"a \ in column 1 that is not one of \t, \n, \r, \\");
    }
    let (answers, error) = run_malformed(b"@daily\t\tnoon\t1\nx\n");
    assert!(
        answers.starts_with("BAD\tline 1: the instant in column 3: ") && answers.lines().count() == 2,
        "{answers}"
    );
    assert_eq!(
        error,
        "2 of the lines were not answered; correct the lines that are answered with BAD"
    );
}

#[test]
fn a_zone_that_is_unknown_is_an_error_in_bulk_too() {
    let query = |schedule: &str, zone: &str| format!("{schedule}\t{zone}\t2026-03-27T12:00:00Z\t1");
    for (schedule, zone, answer) in [
        ("@daily", "Mars/Base", "ERR\tunknown time zone Mars/Base"),
        ("@daily", "europe/berlin", "ERR\tunknown time zone europe/berlin"),
        ("@sometimes", "Mars/Base", "ERR\tunknown time zone Mars/Base"),
        ("@daily", "../UTC", "ERR\ttime: invalid location name"),
        ("@daily", "Europe/Berlin", "2026-03-27T23:00:00Z"),
    ] {
        let query = query(schedule, zone);
        check_bulk(query.as_bytes(), &format!("{query}\t{answer}\n"));
    }
}

#[test]
fn a_long_line_is_answered() {
    for (n_spaces, answer) in [
        (4_087, "2026-03-27T12:01:00Z"),
        (500_000, "ERR\tlonger than 4096 bytes"),
    ] {
        let text = format!("{}* * * * *", " ".repeat(n_spaces));
        let query = format!("{text}\t\t2026-03-27T12:00:00Z\t1");
        check_bulk(query.as_bytes(), &format!("{query}\t{answer}\n"));
    }
}

/// Fails as a pipe does whose reader is gone.
struct ClosedPipe;

impl Write for ClosedPipe {
    fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let command = Command::parse_from(["next", "@daily"]);
    run(command.args, NOW.parse().unwrap(), &b""[..], ClosedPipe).unwrap();
}
