//! Tests of the lines on the screen.

use std::path::Path;

use super::*;
use crate::cli::dev::figures::Subject;

fn at(time: &str) -> Timestamp {
    format!("2026-05-05T{time}Z").parse().unwrap()
}

fn guide() -> Guide {
    Guide {
        api_server: "http://127.0.0.1:6440".to_owned(),
        metrics: "http://127.0.0.1:41951/metrics".to_owned(),
        hints: Hints::new("cronwheel", Path::new("cronwheel-dev.kubeconfig"), true),
    }
}

fn row(cells: [&str; 3]) -> Row {
    cells.map(str::to_owned)
}

fn picture() -> Picture {
    Picture {
        now: at("10:00:23.25"),
        up: SignedDuration::from_secs(133),
        is_ending: false,
        figures: Figures {
            n_cron_jobs: 1_000,
            n_suspended: 20,
            n_blocked: 3,
            n_never: 1,
            n_starts: 412,
            n_running: 37,
            n_complete: 1_204,
            n_failed: 12,
            runs: RunCounts {
                started: 1_216,
                held_back: 80,
                waiting: 4,
                missed: 0,
                doubled: 0,
            },
            next_runs: vec![
                row(["default/hello", "* * * * * Europe/Berlin", "in 37s, 12:01 CEST"]),
                row(["shop/slow", "* * * * *", "Forbid: slow-29632920 runs"]),
                row(["shop/off", "@daily", "suspended"]),
                row(["shop/odd", "0 0 30 2 *", "never"]),
            ],
            latest_jobs: vec![row(["default/hello-29632920", "12:00 CEST", "Complete"])],
            subject: Some(Subject {
                namespace: "default".to_owned(),
                name: "hello".to_owned(),
                is_suspended: false,
                has_run: true,
                has_manual_job: false,
            }),
        },
        lateness: Some(Lateness {
            p50_seconds: 0.00123,
            max_seconds: 0.0075,
        }),
        faults: None,
        n_to_fill: 0,
        log: vec![
            "time=2026-05-05T10:00:01.743938Z level=info target=cronwheel::controller::tasks msg=\"going down\" \
             signal=SIGINT"
                .to_owned(),
        ],
    }
}

fn text(picture: &Picture, columns: usize, rows: usize) -> Vec<String> {
    let lines = picture.screen(&guide(), Size { columns, rows });
    lines.into_iter().map(|line| line.text).collect()
}

#[test]
fn the_full_screen_is_rendered() {
    let expected = "\
cronwheel dev, up 2m 13s. Ctrl-C ends it.

API server   http://127.0.0.1:6440
metrics      http://127.0.0.1:41951/metrics
Try, in another terminal:
  kubectl --kubeconfig cronwheel-dev.kubeconfig get cronjobs,jobs -A
  kubectl --kubeconfig cronwheel-dev.kubeconfig create job manual \\
    --from=cronjob/hello

CronJobs     1,000, 20 suspended, 3 blocked by Forbid, 1 never due
last minute  412 starts, lateness p50 <= 1.2 ms, max <= 7.5 ms
Jobs         37 running, 1,204 complete, 12 failed
runs         1,216 started, 80 held back, 4 waiting, 0 missed, 0 doubled

CRONJOB                 SCHEDULE                 NEXT RUN
default/hello           * * * * * Europe/Berlin  in 37s, 12:01 CEST
shop/slow               * * * * *                Forbid: slow-29632920 runs
shop/off                @daily                   suspended
shop/odd                0 0 30 2 *               never

LATEST JOB              SLOT                     STATE
default/hello-29632920  12:00 CEST               Complete

LOG
10:00:01 INFO  going down signal=SIGINT";
    assert_eq!(text(&picture(), 80, 25).join("\n"), expected);
}

#[test]
fn a_small_screen_omits_less_important_lines() {
    let expected = "\
cronwheel dev, up 2m 13s. Ctrl-C ends it.

CronJobs     1,000, 20 suspended,
             3 blocked by Forbid, 1 never due
last minute  412 starts, lateness p50 <= 1.2 ms,
             max <= 7.5 ms
Jobs         37 running, 1,204 complete, 12 failed
runs         1,216 started, 80 held back,
             4 waiting, 0 missed, 0 doubled

CRONJOB      SCHEDULE    NEXT RUN
default/he…  * * * * *…  in 37s, 12:01 CEST
shop/slow    * * * * *   Forbid: slow-29632920 runs

LATEST JOB   SLOT        STATE
default/he…  12:00 CEST  Complete";
    assert_eq!(text(&picture(), 51, 16).join("\n"), expected);
}

#[test]
fn injected_faults_are_shown() {
    let mut picture = picture();
    picture.faults = Some(FaultCounts::default());
    let lines = text(&picture, 80, 40);
    assert!(lines.contains(&"injected     0 faults".to_owned()), "{lines:?}");
}

#[test]
fn totals_are_printed_on_one_line() {
    let mut picture = picture();
    let expected = "cronwheel dev ran for 2m 13s: runs 1,216 started, 80 held back, 4 waiting, 0 missed, 0 doubled";
    assert_eq!(picture.totals_line(), expected);
    picture.faults = Some(FaultCounts::default());
    assert_eq!(picture.totals_line(), format!("{expected}; 0 faults"));
    // The clock was set back.
    picture.up = SignedDuration::from_secs(-5);
    assert!(picture.totals_line().starts_with("cronwheel dev ran for 0s: "));
}

#[test]
fn the_title_shows_the_shutdown() {
    let mut picture = picture();
    picture.is_ending = true;
    assert_eq!(
        text(&picture, 80, 1),
        ["cronwheel dev, up 2m 13s. Ending; Ctrl-C ends it at once."]
    );
}

#[test]
fn output_fits_every_screen_size() {
    for (columns, rows) in [
        (80, 24),
        (79, 20),
        (60, 15),
        (40, 12),
        (20, 5),
        (1, 1),
        (200, 60),
        (0, 0),
    ] {
        let lines = text(&picture(), columns, rows);
        assert!(lines.len() <= rows, "{columns} x {rows}: {} lines", lines.len());
        for line in &lines {
            assert!(line.chars().count() <= columns, "{columns} x {rows}: {line:?}");
        }
    }
}

#[test]
fn lists_and_log_fill_a_screen() {
    let mut picture = picture();
    picture.figures.next_runs = vec![picture.figures.next_runs[0].clone(); 50];
    picture.figures.latest_jobs = vec![picture.figures.latest_jobs[0].clone(); 50];
    picture.log = vec![picture.log[0].clone(); 50];
    let lines = text(&picture, 80, 50);
    assert_eq!(lines.len(), 50);
    let count = |part: &str| lines.iter().filter(|line| line.contains(part)).count();
    assert_eq!(
        [count("in 37s"), count("Complete"), count("going down")],
        [14, 13, 4],
        "{lines:?}"
    );
}

#[test]
fn rows_are_divided_by_demand() {
    #[track_caller]
    fn check(n_rows: usize, wanted: [usize; 3], expected: [usize; 3]) {
        assert_eq!(shares(n_rows, wanted), expected);
    }
    check(26, [50, 50, 50], [8, 8, 4]);
    check(26, [2, 50, 50], [2, 14, 4]);
    check(26, [2, 3, 50], [2, 3, 15]);
    check(26, [0, 0, 0], [0, 0, 0]);
    check(9, [50, 50, 0], [3, 2, 0]);
    check(3, [50, 50, 50], [0, 0, 0]);
}

#[test]
fn an_empty_screen_is_rendered() {
    let quiet = Picture {
        now: at("10:00:00"),
        n_to_fill: 66_000,
        ..Picture::default()
    };
    let expected = "\
cronwheel dev, up 0s. Ctrl-C ends it.

API server   http://127.0.0.1:6440
metrics      http://127.0.0.1:41951/metrics
Try, in another terminal:
  kubectl --kubeconfig cronwheel-dev.kubeconfig get cronjobs,jobs -A

CronJobs     0, 66,000 more to come
last minute  0 starts
Jobs         0 running, 0 complete, 0 failed
runs         0 started, 0 missed, 0 doubled";
    assert_eq!(text(&quiet, 80, 24).join("\n"), expected);
    assert_eq!(
        quiet.log_line(),
        "2026-05-05T10:00:00Z 0 CronJobs; last minute 0 starts; Jobs 0 running, 0 complete, 0 failed; runs 0 started, 0 \
         missed, 0 doubled"
    );
}

#[test]
fn without_a_terminal_the_state_is_one_line() {
    let mut picture = picture();
    picture.faults = Some(FaultCounts::default());
    assert_eq!(
        picture.log_line(),
        "2026-05-05T10:00:23Z 1,000 CronJobs; last minute 412 starts, lateness p50 <= 1.2 ms, max <= 7.5 ms; Jobs 37 \
         running, 1,204 complete, 12 failed; runs 1,216 started, 80 held back, 4 waiting, 0 missed, 0 doubled; 0 faults, \
         next default/hello in 37s, 12:01 CEST"
    );
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let mut picture = picture();
    picture.figures.next_runs[0][0] = "\x1b[2J*\t*\r\n* * *".to_owned();
    picture.figures.next_runs[1][1] = "\x1b[2J*\t*\r\n* * *".to_owned();
    picture.log = vec!["\x1b]0;title\x07".to_owned()];
    for line in text(&picture, 80, 24) {
        assert!(!line.contains(char::is_control), "{line:?}");
    }
    assert!(!picture.log_line().contains(char::is_control));
}
