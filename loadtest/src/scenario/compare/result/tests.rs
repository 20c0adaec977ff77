//! A result for tests, and tests of its accessors.

use super::*;
use crate::scenario::compare::slo::Threshold;

/// A turn with a p99 and processor time.
pub(crate) fn turn(round: u32, controller: &str, p99_ms: f64) -> Turn {
    Turn {
        round,
        controller: controller.into(),
        started: Timestamp::from_second(1_795_257_360).unwrap(),
        expected: 500,
        figures: BTreeMap::from([
            (Column::LatenessP99Ms, p99_ms),
            (Column::Missed, 0.0),
            (Column::CpuMsPerRun, 2.0),
        ]),
        writes_per_run: BTreeMap::from([("create jobs".into(), 1.0)]),
        creates_by_second: vec![400, 100],
        lateness_curve: vec![(0.0, 2.0), (0.5, p99_ms / 2.0), (0.99, p99_ms), (1.0, p99_ms * 1.5)],
        samples: vec![
            Sample {
                second: -1.0,
                cpu_ms: 10.0,
                memory_mib: 20.0,
            },
            Sample {
                second: 59.0,
                cpu_ms: 1_010.0,
                memory_mib: 25.0,
            },
        ],
        phases: vec![Phase {
            name: "measured".into(),
            begin_second: 0.0,
            end_second: 60.0,
        }],
        marks: Vec::new(),
        warnings: Vec::new(),
    }
}

/// Two controllers, with one turn for each p99.
pub(crate) fn result(cronwheel: &[f64], builtin: &[f64]) -> ComparisonResult {
    let info = |name: &str| ControllerInfo {
        name: name.into(),
        version: "1".into(),
        replicas: 1,
        flags: vec!["--flag".into()],
    };
    let turns = |name: &'static str, figures: &[f64]| {
        let of = |(round, figure): (u32, &f64)| turn(round, name, *figure);
        (1..).zip(figures).map(of).collect::<Vec<Turn>>()
    };
    let mut all = turns("built-in", builtin);
    all.extend(turns("cronwheel", cronwheel));
    ComparisonResult {
        format: FORMAT,
        incomplete: None,
        started: Timestamp::from_second(1_795_257_300).unwrap(),
        revision: "abc1234".into(),
        command: vec!["loadtest".into(), "compare".into()],
        plan: Plan {
            is_quick: false,
            scenario: Scenario::Minutely,
            target: TargetKind::Testbed,
            rounds: u32::try_from(cronwheel.len()).unwrap(),
            seed: 0,
            cronjobs: 500,
            namespaces: 5,
            failing_namespaces: 0,
            job_seconds: 3,
            warm_up_minutes: 1,
            minutes: 2,
            settle_seconds: 60,
        },
        environment: Environment {
            cores: 2,
            processor: "x".into(),
            ..Environment::default()
        },
        controllers: vec![info("built-in"), info("cronwheel")],
        slo: Slo {
            thresholds: vec![Threshold {
                name: "p99".into(),
                controller: "cronwheel".into(),
                column: Column::LatenessP99Ms,
                at_most: 1_000.0,
            }],
        },
        turns: all,
    }
}

#[test]
fn result_round_trips_through_json() {
    let mut result = result(&[1.0, 2.5], &[3.0, 4.0]);
    result.incomplete = Some("interrupted".into());
    let text = serde_json::to_string_pretty(&result).unwrap();
    assert_eq!(serde_json::from_str::<ComparisonResult>(&text).unwrap(), result);
    assert!(text.contains("\"lateness_p99_ms\": 2.5"), "{text}");
}

#[test]
fn summary_covers_the_turns_of_one_controller() {
    let result = result(&[1.0, 2.0, 9.0], &[30.0, 40.0, 50.0]);
    let median = |controller: &str, column: Column| result.summary(controller, column).map(|it| it.median);
    assert_eq!(median("cronwheel", Column::LatenessP99Ms), Some(2.0));
    assert_eq!(median("built-in", Column::LatenessP99Ms), Some(40.0));
    assert_eq!(median("cronwheel", Column::Doubled), None);
    assert_eq!(median("other", Column::LatenessP99Ms), None);
    let writes = |kind: &str| result.write_summary("cronwheel", kind).map(|it| it.median);
    assert_eq!(writes("create jobs"), Some(1.0));
    assert_eq!(writes("patch events"), Some(0.0));
}

#[test]
fn a_verdict_needs_three_whole_rounds() {
    let three = result(&[1.0, 1.0, 1.0], &[1.0, 1.0, 1.0]);
    assert!(three.has_verdict());
    assert!(!result(&[1.0, 1.0], &[1.0, 1.0]).has_verdict());
    let mut quick = three.clone();
    quick.plan.is_quick = true;
    assert!(!quick.has_verdict());
    let mut broken_off = three;
    broken_off.incomplete = Some("interrupted".into());
    assert!(!broken_off.has_verdict());
}
