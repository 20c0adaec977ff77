//! Tests of `cronwheel next` in its text, JSON and bulk forms. Bulk output equals the recorded answers byte for byte.

mod files;

use clap::Parser;

use super::*;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: NextArgs,
}

const NOW: &str = "2026-03-27T12:00:00Z";

fn run_with(args: &[&str], input: &[u8]) -> Result<String, CommandError> {
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

/// Runs bulk input with a malformed line. Returns the output and the error.
fn run_malformed(input: &[u8]) -> (String, String) {
    let command = Command::parse_from(["next", "--stdin"]);
    let mut output = Vec::new();
    let error = run(command.args, NOW.parse().unwrap(), input, &mut output).unwrap_err();
    (String::from_utf8(output).unwrap(), error.to_string())
}

/// Runs a command that fails. Returns the output and the error.
fn run_refused(args: &[&str]) -> (String, String) {
    let command = Command::try_parse_from([&["next"], args].concat()).unwrap();
    let mut output = Vec::new();
    let error = run(command.args, NOW.parse().unwrap(), &b""[..], &mut output).unwrap_err();
    (String::from_utf8(output).unwrap(), error.to_string())
}

#[test]
fn schedule_and_clock_changes_are_described_b_8_4() {
    check(
        &["30 2 * * *", "--time-zone", "Europe/Berlin", "-n", "3"],
        "30 2 * * * in Europe/Berlin: at 02:30 every day\n\
         \n\
         in 13h 30m, Sat 2026-03-28 02:30 CET (01:30 UTC)\n\
         Sun 2026-03-29: clocks go forward from 02:00 to 03:00, so there is no run on that day: 02:30 is lost\n\
         in 2d 12h, Mon 2026-03-30 02:30 CEST (00:30 UTC)\n\
         in 3d 12h, Tue 2026-03-31 02:30 CEST (00:30 UTC)\n",
    );
}

#[test]
fn the_utc_date_is_shown_if_it_differs() {
    check(
        &["@daily", "--tz", "Asia/Tokyo", "-n", "1"],
        "@daily in Asia/Tokyo: at 00:00 every day\n\
         \n\
         in 3h, Sat 2026-03-28 00:00 JST (Fri 2026-03-27 15:00 UTC)\n",
    );
}

#[test]
fn the_time_zone_flag_has_aliases() {
    for flag in ["--time-zone", "--tz", "--timezone"] {
        let output = run_with(&["@daily", flag, "Asia/Tokyo", "-n", "1"], b"").unwrap();
        assert!(output.starts_with("@daily in Asia/Tokyo: "), "{output}");
    }
}

#[test]
fn count_and_start_have_defaults() {
    check(
        &["@hourly"],
        "@hourly in UTC, the default time zone: every hour\n\
         \n\
         in 1h, Fri 2026-03-27 13:00 UTC\n\
         in 2h, Fri 2026-03-27 14:00 UTC\n\
         in 3h, Fri 2026-03-27 15:00 UTC\n\
         in 4h, Fri 2026-03-27 16:00 UTC\n\
         in 5h, Fri 2026-03-27 17:00 UTC\n",
    );
}

#[test]
fn from_takes_an_instant_a_date_and_a_local_time() {
    for (from, printed_from) in [
        ("2026-11-21", "Sat 2026-11-21 00:00 CET (Fri 2026-11-20 23:00 UTC)"),
        ("2026-11-21T10:30", "Sat 2026-11-21 10:30 CET (09:30 UTC)"),
        ("2026-11-21T10:30:05Z", "Sat 2026-11-21 11:30:05 CET (10:30:05 UTC)"),
    ] {
        let args = ["0 12 * * *", "--tz", "Europe/Berlin", "-n", "1", "--from", from];
        let output = run_with(&args, b"").unwrap();
        let expected = format!("0 12 * * * in Europe/Berlin: at 12:00 every day\nfrom {printed_from}\n\nin ");
        assert!(output.starts_with(&expected), "{output}");
        assert!(output.ends_with("Sat 2026-11-21 12:00 CET (11:00 UTC)\n"), "{output}");
    }
}

#[test]
fn surprises_are_noted_before_the_runs() {
    check(
        &["@every 40s", "-n", "2"],
        "@every 40s: every 40s, counted from the last slot that was started, else from the creation\n\
         note: Jobs are named by the minute, so only the first instant of each minute starts one\n\
         \n\
         in 40s, Fri 2026-03-27 12:00:40 UTC\n\
         in 1m 20s, Fri 2026-03-27 12:01:20 UTC\n",
    );
}

#[test]
fn next_answers_what_the_api_server_refuses_with_an_error_b_16_2() {
    let (output, error) = run_refused(&["TZ=Asia/Tokyo 0 0 * * *", "--time-zone", "Europe/Berlin", "-n", "1"]);
    assert_eq!(
        output,
        "TZ=Asia/Tokyo 0 0 * * * in Asia/Tokyo, which the schedule names: at 00:00 every day\n\
         \n\
         in 3h, Sat 2026-03-28 00:00 JST (Fri 2026-03-27 15:00 UTC)\n"
    );
    assert_eq!(
        error,
        "refused by the API server: a schedule must not contain TZ: put the zone into spec.timeZone"
    );
    for zone in ["", "Local"] {
        let (_, error) = run_refused(&["@daily", "--time-zone", zone]);
        assert_eq!(
            error,
            format!(
                "refused by the API server: {zone:?} is no time zone for spec.timeZone: leave the field out, or write a \
                 name such as Europe/Berlin"
            )
        );
    }
}

#[test]
fn a_schedule_that_never_fires_is_an_error() {
    let (output, error) = run_refused(&["0 0 30 2 *"]);
    assert_eq!(
        output,
        "0 0 30 2 * in UTC, the default time zone: at 00:00 on day 30 of February\n\
         \n\
         never: no instant within five years matches\n"
    );
    assert_eq!(
        error,
        "never: schedule \"0 0 30 2 *\" matches no instant within five years; correct its day of month or its month"
    );
}

#[test]
fn the_end_of_the_activations_is_shown() {
    let last = run_with(&["0 0 29 2 *", "--from", "2095-01-01T00:00:00Z"], b"").unwrap();
    assert!(
        last.ends_with(" Wed 2096-02-29 00:00 UTC\nno further activation within five years\n"),
        "{last}"
    );
}

#[test]
fn json_output_is_complete() {
    let output = run_with(&["0 0 29 2 *", "--from", "2095-01-01T00:00:00Z", "-o", "json"], b"").unwrap();
    let expected = serde_json::json!({
        "schedule": "0 0 29 2 *",
        "description": "at 00:00 on day 29 of February",
        "notes": [],
        "timeZone": "UTC",
        "isZoneInText": false,
        "timeZoneData": "2026e",
        "from": {"local": "2095-01-01T00:00:00+00:00", "utc": "2095-01-01T00:00:00Z"},
        "activations": [{"local": "2096-02-29T00:00:00+00:00", "utc": "2096-02-29T00:00:00Z"}],
        "ends": true,
    });
    assert_eq!(serde_json::from_str::<serde_json::Value>(&output).unwrap(), expected);
}

#[test]
fn errors_name_the_field_or_flag_and_the_fix() {
    check_error(
        &["@daily", "--time-zone", "europe/berlin"],
        "refused by the API server: --time-zone \"europe/berlin\": unknown time zone europe/berlin; names are \
         case-sensitive, write Europe/Berlin",
    );
    check_error(
        &["@daily", "--from", "yesterday"],
        "--from \"yesterday\": not an instant; write it like 2026-11-21T10:30:00Z, or 2026-11-21 for midnight in the \
         time zone",
    );
    check_error(
        &["30", "2", "1", "*", "*"],
        "5 arguments instead of one schedule, because the shell expands * and splits at spaces; quote the schedule, such \
         as cronwheel next '30 2 1 * *'",
    );
    check_error(
        &["30", "2", "Cargo.toml", "src"],
        "4 arguments instead of one schedule, because the shell expands * and splits at spaces; quote the schedule, such \
         as cronwheel next '*/5 * * * *'",
    );
    check_error(
        &["30 2 * * *", "Europe/Berlin"],
        "\"Europe/Berlin\" is more than the schedule; give the time zone by --tz Europe/Berlin",
    );
    check_error(
        &["30 2 * * *", "2026-11-21", "Berlin"],
        "\"2026-11-21 Berlin\" is more than the schedule; give one schedule, the time zone by --tz, and the start by --from",
    );
}

#[test]
fn a_change_of_half_an_hour_disturbs_hourly_schedules() {
    let changes = |schedule: &str, from: &str| {
        let args = [schedule, "--tz", "Australia/Lord_Howe", "-n", "3", "--from", from];
        let output = run_with(&args, b"").unwrap();
        output
            .lines()
            .filter(|line| line.contains("clocks go"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let forward = "Sun 2026-10-04: clocks go forward from 02:00 to 02:30";
    let back = "Sun 2026-04-05: clocks go back from 02:00 to 01:30";
    assert_eq!(
        changes("15 * * * *", "2026-10-04T01:00"),
        [format!("{forward}, so 02:15 is lost")]
    );
    assert_eq!(
        changes("45 * * * *", "2026-04-05T00:00"),
        [format!("{back}, so 01:45 runs twice")]
    );
    assert_eq!(changes("45 * * * *", "2026-10-04T01:00"), [forward]);
    assert_eq!(changes("*/30 * * * *", "2026-10-04T01:00"), [forward]);
}

#[test]
fn common_mistakes_get_a_hint() {
    let form = "write five fields (minute, hour, day of month, month, day of week), or one of @yearly, @monthly, \
                @weekly, @daily, @hourly, or @every with a duration such as 1h30m";
    for (text, advice) in [
        (
            "0 24 * * *",
            "correct the hour field, which takes 0-23, as lists, ranges and steps",
        ),
        ("*/5 * * *", form),
        (
            "0 0 * * 6#3",
            "L, W and # are Quartz's, and Kubernetes has nothing like them: list the days, such as 28-31 for L or 1-7 for \
             #1, and let the Job check the date",
        ),
        (
            "0 30 2 * * *",
            "the first of 6 fields is the second: leave the seconds out: write '30 2 * * *' (at 02:30 every day)",
        ),
        (
            "TZ=Europe/Berln 0 2 * * *",
            "put the zone into spec.timeZone; did you mean Europe/Berlin?",
        ),
        ("TZ=UTC 0 2 * *", &format!("put the zone into spec.timeZone; {form}")),
        (
            "CRON_TZ=UTC  0 0 2 * * *",
            "put the zone into spec.timeZone; the first of 6 fields is the second: leave the seconds out: write '0 2 * * *' \
             (at 02:00 every day)",
        ),
        ("TZ=UTC", &format!("put the zone into spec.timeZone; {form}")),
    ] {
        let error = run_with(&[text], b"").unwrap_err().to_string();
        let start = format!("refused by the API server: schedule {text:?}: ");
        assert!(error.starts_with(&start), "{error}");
        assert!(error.ends_with(&format!("; {advice}")), "{error}");
    }
}

#[test]
fn unknown_zones_get_a_hint() {
    let other = "write a name of the IANA database, such as America/New_York or Etc/UTC";
    for (zone, advice) in [
        ("Europe/Berln", "did you mean Europe/Berlin?"),
        ("Berlin", "did you mean Europe/Berlin?"),
        ("Berln", "did you mean Europe/Berlin?"),
        ("New York", "did you mean America/New_York?"),
        ("CET+1", other),
        ("Mars/Base", other),
    ] {
        check_error(
            &["@daily", "--tz", zone],
            &format!("refused by the API server: --time-zone {zone:?}: unknown time zone {zone}; {advice}"),
        );
    }
}

#[test]
fn invalid_arguments_are_refused() {
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
fn bulk_answers_compute_no_further_activation() {
    let mut n_computed = 0;
    let next = |at: Timestamp| {
        n_computed += 1;
        Some(at + jiff::SignedDuration::from_mins(1))
    };
    let answer = bulk::activations(NOW.parse().unwrap(), 2, next);
    assert_eq!(answer, "2026-03-27T12:01:00Z 2026-03-27T12:02:00Z");
    assert_eq!(n_computed, 2);
}

#[test]
fn a_malformed_bulk_line_does_not_stop_the_others() {
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
fn an_unknown_zone_is_an_error_in_bulk() {
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
fn a_long_bulk_line_is_answered() {
    for (n_spaces, answer) in [
        (4_087, "2026-03-27T12:01:00Z"),
        (500_000, "ERR\tlonger than 4096 bytes"),
    ] {
        let text = format!("{}* * * * *", " ".repeat(n_spaces));
        let query = format!("{text}\t\t2026-03-27T12:00:00Z\t1");
        check_bulk(query.as_bytes(), &format!("{query}\t{answer}\n"));
    }
}
