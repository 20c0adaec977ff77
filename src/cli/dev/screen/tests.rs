//! Numbers in, lines out.

use super::*;

fn at(time: &str) -> Timestamp {
    format!("2026-05-05T{time}Z").parse().unwrap()
}

fn guide() -> Guide {
    Guide {
        api_server: "http://127.0.0.1:6440".to_owned(),
        metrics: "http://127.0.0.1:41951/metrics".to_owned(),
        commands: vec![
            "kubectl --kubeconfig cronwheel-dev.kubeconfig apply -f examples/hello.yaml".to_owned(),
            "kubectl --kubeconfig cronwheel-dev.kubeconfig get cronjobs,jobs".to_owned(),
        ],
    }
}

fn picture() -> Picture {
    Picture {
        now: at("10:00:23.25"),
        up: SignedDuration::from_secs(133),
        figures: Figures {
            n_cron_jobs: 1_000,
            n_suspended: 20,
            n_fires: 412,
            n_running: 37,
            n_complete: 1_204,
            n_failed: 12,
            next_fires: vec![
                NextFire {
                    name: "default/hello".to_owned(),
                    schedule: "* * * * * Europe/Berlin".to_owned(),
                    at: at("10:01:00"),
                },
                NextFire {
                    name: "shop/nightly".to_owned(),
                    schedule: "@daily".to_owned(),
                    at: "2026-05-08T12:30:24Z".parse().unwrap(),
                },
            ],
            latest_fires: vec![LatestFire {
                name: "default/hello-29632920".to_owned(),
                slot: at("10:00:00"),
                state: "Complete",
            }],
        },
        lateness: Some(Lateness {
            p50_seconds: 0.00123,
            max_seconds: 0.0075,
        }),
        outcome_counts: outcome_counts(
            1_300,
            &[(InstantOutcome::Created, 1_216), (InstantOutcome::AlreadyActive, 80)],
            4,
        ),
        n_to_fill: 0,
        log: vec![
            "2026-05-05T10:00:01.743938Z  INFO cronwheel::runtime::tasks: going down signal=\"SIGINT\"".to_owned(),
        ],
    }
}

fn outcome_counts(due_instants: u64, outcomes: &[(InstantOutcome, u64)], open_instants: u64) -> OutcomeCounts {
    let mut outcome_counts = OutcomeCounts {
        due_instants,
        open_instants,
        ..OutcomeCounts::default()
    };
    for (outcome, count) in outcomes {
        outcome_counts.outcomes[*outcome as usize] = *count;
    }
    outcome_counts
}

fn text(picture: &Picture, columns: usize, rows: usize) -> Vec<String> {
    let lines = picture.screen(&guide(), Size { columns, rows });
    lines.into_iter().map(|line| line.text).collect()
}

#[test]
fn a_screen_says_it_all() {
    let expected = "\
cronwheel dev, up 2m 13s. Ctrl-C ends it.

API server   http://127.0.0.1:6440
metrics      http://127.0.0.1:41951/metrics
Try, in another terminal:
  kubectl --kubeconfig cronwheel-dev.kubeconfig apply -f examples/hello.yaml
  kubectl --kubeconfig cronwheel-dev.kubeconfig get cronjobs,jobs

CronJobs     1,000, 20 suspended
last minute  412 fires, lateness p50 1.2 ms, max <= 7.5 ms
Jobs         37 running, 1,204 complete, 12 failed
due instants 1,300: 1,216 created, 80 already active, 4 open

NEXT FIRES                             SCHEDULE                     IN
default/hello                          * * * * * Europe/Berlin      37s
shop/nightly                           @daily                       3d 2h

LATEST JOBS                            SLOT                         STATE
default/hello-29632920                 2026-05-05T10:00:00Z         Complete

LOG
10:00:01 INFO  going down signal=\"SIGINT\"";
    assert_eq!(text(&picture(), 80, 24).join("\n"), expected);
}

#[test]
fn a_small_screen_is_never_overrun() {
    for (columns, rows) in [(80, 24), (79, 20), (40, 12), (20, 5), (1, 1), (200, 60), (0, 0)] {
        let lines = text(&picture(), columns, rows);
        assert!(lines.len() <= rows, "{columns} x {rows}: {} lines", lines.len());
        for line in &lines {
            assert!(line.chars().count() <= columns, "{columns} x {rows}: {line:?}");
        }
    }
}

#[test]
fn lists_and_log_fill_a_screen() {
    let size = Size { columns: 80, rows: 50 };
    let n_listed = Picture::n_listed(size, &guide());
    let mut picture = picture();
    picture.figures.next_fires = vec![picture.figures.next_fires[0].clone(); n_listed];
    picture.figures.latest_fires = vec![picture.figures.latest_fires[0].clone(); n_listed];
    picture.log = vec![picture.log[0].clone(); 10];
    let n_lines = text(&picture, 80, 50).len();
    assert!((49..=50).contains(&n_lines), "{n_lines}");
    // What is at the end is not cut off.
    let last = text(&picture, 80, 50).pop().unwrap();
    assert!(last.contains("going down"), "{last}");
}

#[test]
fn a_quiet_beginning_says_so() {
    let quiet = Picture {
        now: at("10:00:00"),
        n_to_fill: 66_000,
        ..Picture::default()
    };
    let lines = text(&quiet, 80, 24);
    let figures = &lines[8..12];
    assert_eq!(
        figures,
        [
            "CronJobs     0, 66,000 more to come",
            "last minute  0 fires",
            "Jobs         0 running, 0 complete, 0 failed",
            "due instants none yet"
        ]
    );
    assert!(!lines.contains(&"LOG".to_owned()));
    assert_eq!(
        quiet.log_line(),
        "2026-05-05T10:00:00Z 0 CronJobs; last minute 0 fires; Jobs 0 running, 0 complete, 0 failed"
    );
}

#[test]
fn without_a_screen_it_is_one_line() {
    assert_eq!(
        picture().log_line(),
        "2026-05-05T10:00:23Z 1,000 CronJobs; last minute 412 fires, lateness p50 1.2 ms, max <= 7.5 ms; Jobs 37 running, \
         1,204 complete, 12 failed, next default/hello in 37s"
    );
}

#[test]
fn what_could_speak_to_the_terminal_does_not() {
    let mut picture = picture();
    picture.figures.next_fires[0].schedule = "\x1b[2J*\t*\r\n* * *".to_owned();
    picture.log = vec!["\x1b]0;title\x07".to_owned()];
    for line in text(&picture, 80, 24) {
        assert!(!line.contains(char::is_control), "{line:?}");
    }
    assert!(!picture.log_line().contains(char::is_control));
}

#[test]
fn a_command_that_is_too_wide_is_broken_as_a_shell_takes_it() {
    let command = "kubectl --kubeconfig k create cronjob hello --schedule='* * * * *' -- echo hello";
    assert_eq!(
        wrapped(command, 40),
        [
            "  kubectl --kubeconfig k create \\",
            "    cronjob hello \\",
            "    --schedule='* * * * *' -- echo \\",
            "    hello"
        ]
    );
    assert_eq!(wrapped(command, 200), [format!("  {command}")]);
    for columns in 0..100 {
        let joined = wrapped(command, columns).join("\n").replace(" \\\n    ", " ");
        assert_eq!(joined, format!("  {command}"), "{columns}");
    }
}

#[test]
fn durations_numbers_and_seconds_read_well() {
    for (seconds, expected) in [
        (0, "0s"),
        (59, "59s"),
        (3_661, "1h 1m 1s"),
        (86_400, "1d 0h"),
        (-5, "0s"),
    ] {
        assert_eq!(duration_text(SignedDuration::from_secs(seconds)), expected);
    }
    for (number, expected) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
        assert_eq!(grouped(number), expected);
    }
    for (seconds, expected) in [
        (0.0005, "<= 0.5 ms"),
        (0.25, "<= 250.0 ms"),
        (2.5, "<= 2.5 s"),
        (f64::INFINITY, "over 1 min"),
    ] {
        assert_eq!(at_most("<= ", seconds), expected);
    }
}
