//! The text that readers see.

use super::*;
use crate::scenario::compare::result::tests::result;

fn text(cronwheel: &[f64], builtin: &[f64]) -> String {
    Table(&result(cronwheel, builtin)).to_string()
}

fn line<'a>(text: &'a str, begin: &str) -> &'a str {
    text.lines()
        .find(|line| line.trim_start().starts_with(begin))
        .unwrap_or_else(|| panic!("no line {begin:?} in\n{text}"))
}

#[test]
fn thresholds_come_first_with_the_measured_figure() {
    let met = text(&[900.0; 3], &[1.0; 3]);
    assert!(
        met.starts_with("Thresholds\n  ✓ p99: 900, at most 1000 (cronwheel, lateness p99, ms)\n"),
        "{met}"
    );
    let missed = text(&[2_000.0; 3], &[1.0; 3]);
    assert!(missed.contains("  ✗ p99: 2000, at most 1000 "), "{missed}");
}

#[test]
fn figures_are_medians_with_their_range() {
    let text = text(&[1_000.0, 3_000.0, 2_000.0], &[7_000.0, 8_000.0, 9_000.0]);
    let line = line(&text, "lateness p99, ms  ");
    assert!(line.contains("  8000 (7000 to 9000)"), "{line}");
    assert!(line.ends_with("  2000 (1000 to 3000)"), "{line}");
}

#[test]
fn overlapping_ranges_are_marked_from_three_rounds_on() {
    let check = |cronwheel: &[f64], builtin: &[f64], expected: bool| {
        let text = text(cronwheel, builtin);
        let line = line(&text, "lateness p99, ms  ");
        assert_eq!(line.contains('~'), expected, "{line}");
    };
    check(&[1_000.0, 2_000.0, 5_000.0], &[4_000.0, 8_000.0, 9_000.0], true);
    check(&[1_000.0, 2_000.0, 3_000.0], &[4_000.0, 8_000.0, 9_000.0], false);
    check(&[1_000.0, 5_000.0], &[4_000.0, 8_000.0], false);
}

#[test]
fn a_verdict_says_which_columns_differ() {
    let verdict = text(&[1_000.0, 2_000.0, 3_000.0], &[8_000.0, 8_000.0, 8_000.0]);
    assert!(
        verdict.contains("Medians of cronwheel relative to built-in\n  lower: lateness p99 (0.25)\n"),
        "{verdict}"
    );
    assert!(
        verdict.contains("  equal or overlapping: missed runs; processor time per run"),
        "{verdict}"
    );
    assert!(!verdict.contains("No verdict"));
    let few = text(&[1_000.0, 2_000.0], &[8_000.0, 8_000.0]);
    assert!(
        few.ends_with("No verdict, figures are indicative: a verdict needs 3 full rounds.\n"),
        "{few}"
    );
    assert!(!few.contains("lower:"), "{few}");
}

#[test]
fn ratio_to_zero_is_omitted() {
    let text = text(&[1_000.0; 3], &[0.0; 3]);
    assert!(text.contains("  higher: lateness p99\n"), "{text}");
}

#[test]
fn incomplete_result_is_marked_in_the_first_line() {
    let mut result = result(&[1.0], &[]);
    result.incomplete = Some("interrupted".into());
    result.turns[0].warnings.push("the machine was busy".into());
    let text = Table(&result).to_string();
    assert!(text.starts_with("INCOMPLETE: interrupted\n"), "{text}");
    let line = line(&text, "lateness p99, ms  ");
    assert_eq!(
        line.split_ascii_whitespace().collect::<Vec<_>>()[3..],
        ["-", "1.0"],
        "{line}"
    );
    assert!(text.contains("  round 1, cronwheel: the machine was busy\n"), "{text}");
    assert!(text.contains("the comparison is incomplete"), "{text}");
}

#[test]
fn the_flags_of_each_controller_are_printed() {
    assert!(text(&[1.0], &[1.0]).contains("  built-in: 1: --flag\n"));
}

#[test]
fn floor_lines_compare_controllers_with_the_floor() {
    let mut result = result(&[1_000.0], &[7_000.0]);
    assert!(floor_lines(&result).is_empty());
    result.controllers.insert(
        0,
        crate::scenario::compare::result::ControllerInfo {
            name: "floor".into(),
            ..result.controllers[0].clone()
        },
    );
    for turn in &mut result.turns {
        turn.figures.insert(Column::LastOfMinuteMs, 1_200.0);
    }
    let mut floor = result.turns[0].clone();
    floor.controller = "floor".into();
    floor
        .figures
        .extend([(Column::LastOfMinuteMs, 1_000.0), (Column::CpuMsPerRun, 0.5)]);
    result.turns.push(floor);
    let lines = floor_lines(&result);
    assert_eq!(lines.len(), 2);
    assert!(
        lines[1].starts_with("cronwheel: last of a minute at 1.20 times the floor; 75 % of"),
        "{lines:?}"
    );
}
