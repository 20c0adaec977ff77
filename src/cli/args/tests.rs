//! Tests of the command line and its error messages.

use std::time::Duration;

use clap::CommandFactory;
use jiff::SignedDuration;

use super::*;

fn parse(arguments: &[&str]) -> Result<RunArgs, String> {
    let line = ["cronwheel", "run"].into_iter().chain(arguments.iter().copied());
    let command = Cli::try_parse_from(line).map_err(|error| error.to_string())?.command;
    if let Command::Run(args) = command {
        Ok(args)
    } else {
        Err(format!("{command:?}"))
    }
}

#[test]
fn flags_of_check_without_an_effect_are_refused() {
    let parse = |arguments: &[&str]| {
        let line = ["cronwheel", "check"].into_iter().chain(arguments.iter().copied());
        Cli::try_parse_from(line).map(drop).map_err(|error| error.to_string())
    };
    for (arguments, flag) in [
        (&["--default-time-zone", "Europe/Berlin"][..], "--pre"),
        (
            &["--canary", "--default-time-zone", "Europe/Berlin"],
            "--default-time-zone",
        ),
        (&["--pre", "--wait", "20s"], "--wait"),
        (&["--wait", "20s"], "--canary"),
        (&["--pre", "--namespace-selector", "a=b"], "--namespace-selector"),
        (&["--namespace-selector", "a=b"], "--canary"),
        (&["-n", "shop"], "--pre"),
    ] {
        let error = parse(arguments).unwrap_err();
        assert!(error.contains(flag), "{arguments:?}: {error}");
    }
    for arguments in [
        &["--pre", "--default-time-zone", "Europe/Berlin", "-n", "shop"][..],
        &["--canary", "--wait", "20s", "--namespace-selector", "a=b"],
        &["--canary=shop", "--wait", "20s"],
        &[],
    ] {
        assert_eq!(parse(arguments), Ok(()), "{arguments:?}");
    }
}

#[test]
fn clap_definition_is_valid() {
    Cli::command().debug_assert();
}

#[test]
fn help_of_a_kubectl_plugin_shows_kubectl_cronwheel() {
    #[track_caller]
    fn check(program: &str, usage: &str) {
        let line = [program, "explain", "--help"].map(OsString::from).to_vec();
        let help = Cli::of(line).unwrap_err().to_string();
        assert!(help.contains(&format!("Usage: {usage} explain ")), "{program}: {help}");
    }
    check("/home/dev/.krew/bin/kubectl-cronwheel", "kubectl cronwheel");
    check("kubectl-cronwheel.exe", "kubectl cronwheel");
    check("/usr/bin/cronwheel", "cronwheel");
}

#[test]
fn flags_have_defaults() {
    let args = parse(&[]).unwrap();
    assert_eq!(args.listen.port(), 8080);
    assert_eq!(args.default_time_zone.name(), "UTC");
    assert_eq!(args.status_flush_interval, Duration::from_secs(1));
    assert_eq!(args.max_inflight, 128);
    assert_eq!(args.max_clock_skew, SignedDuration::from_secs(2));
    assert_eq!(args.clock_offset, SignedDuration::ZERO);
}

#[test]
fn durations_are_parsed_with_units() {
    #[track_caller]
    fn check(text: &str, seconds: f64) {
        let args = parse(&["--clock-offset", text]).unwrap();
        assert!(
            (args.clock_offset.as_secs_f64() - seconds).abs() < 1e-9,
            "{text}: {:?}",
            args.clock_offset
        );
    }
    check("0s", 0.0);
    check("500ms", 0.5);
    check("1h30m", 5_400.0);
    check("-2h", -7_200.0);
    check("-90s", -90.0);
}

#[test]
fn commands_take_a_cron_job_and_a_time_as_others_do() {
    for line in [
        "trigger cronjob/report",
        "trigger cj/report --wait --timeout 1d",
        "backfill cronjobs/report --from 1d --to 1d",
        "missed --since 2d",
        "report --since 1w",
    ] {
        let parsed = Cli::try_parse_from(["cronwheel"].into_iter().chain(line.split(' ')));
        assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
    }
    let refused = Cli::try_parse_from(["cronwheel", "trigger", "shop/report"]).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("for a CronJob in a namespace write report -n shop"),
        "{refused}"
    );
}

#[test]
fn invalid_flag_values_are_refused_with_a_remedy() {
    #[track_caller]
    fn check(arguments: &[&str], flag: &str, remedy: &str) {
        let error = parse(arguments).unwrap_err();
        assert!(error.contains(flag) && error.contains(remedy), "{arguments:?}: {error}");
    }
    check(&["--max-inflight", "0"], "--max-inflight", "1..=320");
    check(&["--max-inflight", "321"], "--max-inflight", "1..=320");
    check(
        &["--default-time-zone", "europe/berlin"],
        "--default-time-zone",
        "write Europe/Berlin",
    );
    check(&["--default-time-zone", "Mars/Base"], "--default-time-zone", "IANA");
    check(&["--status-flush-interval", "5"], "--status-flush-interval", "500ms");
    check(
        &["--status-flush-interval", "-1s"],
        "--status-flush-interval",
        "from 0s to 1m",
    );
    check(
        &["--status-flush-interval", "2m"],
        "--status-flush-interval",
        "from 0s to 1m",
    );
    check(&["--max-clock-skew", "100ms"], "--max-clock-skew", "from 1s");
    check(&["--clock-offset", "1e99h"], "--clock-offset", "unit");
    check(
        &["--listen", "localhost"],
        "--listen",
        "write a port, or an address and a port",
    );
    check(&["--namespace", ""], "--namespace", "lower-case");
    check(&["--namespace", "a,b"], "--namespace", "one namespace");
    check(&["--log-level", "loud"], "--log-level", "debug");
    check(
        &["--namespace-selector", "a b"],
        "--namespace-selector",
        "cronwheel.dev/managed=true",
    );
    check(&["--namespace-selector", ""], "--namespace-selector", "omit");
}

#[test]
fn namespaces_are_given_by_name_or_by_label() {
    let args = parse(&["--namespace-selector", "team in (a, b), !legacy"]).unwrap();
    assert_eq!(args.namespace_selector.unwrap().to_string(), "team in (a,b),!legacy");
    let error = parse(&["--namespace", "shop", "--namespace-selector", "a=b"]).unwrap_err();
    assert!(
        error.contains("--namespace <NAME>") && error.contains("--namespace-selector <SELECTOR>"),
        "{error}"
    );
}

#[test]
fn listen_accepts_a_port_or_an_address() {
    for (text, expected) in [
        ("8080", "0.0.0.0:8080"),
        (":8080", "0.0.0.0:8080"),
        ("127.0.0.1:9", "127.0.0.1:9"),
        ("[::1]:9", "[::1]:9"),
    ] {
        assert_eq!(parse(&["--listen", text]).unwrap().listen.to_string(), expected);
    }
    for text in ["localhost", "70000", "127.0.0.1", ""] {
        let error = parse(&["--listen", text]).unwrap_err();
        let expected = format!(
            "error: invalid value '{text}' for '--listen <ADDRESS>': write a port, or an address and a port, such as 8080 \
             or 127.0.0.1:8080\n\nFor more information, try '--help'.\n"
        );
        let missing = "error: a value is required for '--listen <ADDRESS>' but none was supplied";
        assert!(
            error == expected || text.is_empty() && error.contains(missing),
            "{error}"
        );
    }
}

#[test]
fn short_namespace_flag_can_be_repeated() {
    assert_eq!(
        parse(&["-n", "shop", "-n", "team"]).unwrap().namespaces,
        ["shop", "team"]
    );
}

#[test]
fn the_version_has_commit_and_time_zone_data() {
    let version = Cli::command().render_version();
    let expected = format!(
        "cronwheel {} (commit {COMMIT}, time zone data {})\n",
        env!("CARGO_PKG_VERSION"),
        tzdb_version()
    );
    assert_eq!(version, expected);
    assert!(!COMMIT.is_empty());
}

#[test]
fn alone_is_refused_with_what_replaces_it() {
    let error = Cli::try_parse_from(["cronwheel", "run", "--alone"]).unwrap_err();
    let text = with_remedy(error).to_string();
    for part in [
        "unexpected argument '--alone'",
        "leave it out",
        "Role cronwheel-leases",
        "--lease-namespace",
    ] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
    let other = Cli::try_parse_from(["cronwheel", "run", "--other"]).unwrap_err();
    assert!(!with_remedy(other).to_string().contains("leave it out"));
}

#[test]
fn a_trouble_label_is_the_key_of_one_label() {
    use super::values::parse_label_key;

    for key in ["team", "example.com/team", "app.kubernetes.io/part-of", "Team_1"] {
        assert_eq!(parse_label_key(key).as_deref(), Ok(key));
    }
    for key in [
        "",
        "team=a",
        "-team",
        "a/b/c",
        "/team",
        "Example.com/team",
        "team ",
        &"x".repeat(64),
    ] {
        assert!(parse_label_key(key).is_err(), "{key}");
    }
}
