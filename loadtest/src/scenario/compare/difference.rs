//! Compares two results, such as before and after a change.

use std::fmt::{self, Display, Formatter};

use super::{
    column::{COLUMNS, Column},
    result::{ComparisonResult, ControllerInfo, Plan},
    scenario::Scenario,
    table::{environment_line, heading, write_aligned},
};

/// Formats two results side by side.
pub(super) struct Difference<'a> {
    pub(super) old: &'a ComparisonResult,
    pub(super) new: &'a ComparisonResult,
}

impl Display for Difference<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (title, result) in [("old", self.old), ("new", self.new)] {
            writeln!(f, "{title}: {}", heading(result))?;
            writeln!(f, "     {}", environment_line(result))?;
            if let Some(reason) = &result.incomplete {
                writeln!(f, "     INCOMPLETE: {reason}")?;
            }
        }
        let obstacles = self.obstacles();
        for obstacle in &obstacles {
            writeln!(f, "No ratios: {obstacle}.")?;
        }
        for controller in &self.old.controllers {
            let Some(new) = self.new.controllers.iter().find(|new| new.name == controller.name) else {
                continue;
            };
            writeln!(f)?;
            write_flags(f, controller, new)?;
            write_aligned(f, &self.rows(&controller.name, obstacles.is_empty()))?;
        }
        writeln!(
            f,
            "\n~ the ranges overlap; without three full rounds on both sides nothing is marked."
        )
    }
}

impl Difference<'_> {
    /// The reasons why ratios of the figures would be meaningless.
    fn obstacles(&self) -> Vec<&'static str> {
        let mut obstacles = Vec::new();
        if self.old.environment != self.new.environment {
            obstacles.push("the environments differ");
        }
        if load(&self.old.plan) != load(&self.new.plan) {
            obstacles.push("the loads differ");
        }
        obstacles
    }

    fn rows(&self, controller: &str, with_ratios: bool) -> Vec<Vec<String>> {
        let mut head = vec![controller.to_owned(), "old".to_owned(), "new".to_owned()];
        if with_ratios {
            head.push("new to old".to_owned());
        }
        let rows = COLUMNS
            .into_iter()
            .filter_map(|column| self.row(controller, column, with_ratios));
        [head].into_iter().chain(rows).collect()
    }

    /// Returns a row of the table, or `None` if neither result has the column.
    fn row(&self, controller: &str, column: Column, with_ratios: bool) -> Option<Vec<String>> {
        let (old, new) = (
            self.old.summary(controller, column),
            self.new.summary(controller, column),
        );
        if old.is_none() && new.is_none() {
            return None;
        }
        let text = |median: Option<f64>| median.map_or_else(|| "-".to_owned(), |median| column.text(median));
        let medians = [old, new].map(|summary| text(summary.map(|summary| summary.median)));
        let mut row = vec![format!("  {}", column.title())];
        row.extend(medians);
        if with_ratios {
            row.push(match (old, new) {
                (Some(old), Some(new)) => {
                    let is_marked = self.old.has_verdict() && self.new.has_verdict() && old.overlaps(&new);
                    ratio(old.median, new.median, is_marked)
                }
                _ => String::new(),
            });
        }
        Some(row)
    }
}

fn ratio(old: f64, new: f64, is_marked: bool) -> String {
    let mark = if is_marked { "~" } else { "" };
    if old == 0.0 {
        // There is no ratio to zero. The figures themselves are in the table.
        return mark.to_owned();
    }
    format!("{mark}{:.2}", new / old)
}

/// The part of a plan that determines the figures. The number of rounds does not.
fn load(plan: &Plan) -> Plan {
    Plan {
        rounds: 0,
        // In other scenarios the seed only determines the order of turns.
        seed: if plan.scenario == Scenario::Mixed { plan.seed } else { 0 },
        ..*plan
    }
}

fn write_flags(f: &mut Formatter<'_>, old: &ControllerInfo, new: &ControllerInfo) -> fmt::Result {
    if old == new {
        return Ok(());
    }
    for (title, info) in [("old", old), ("new", new)] {
        let flags = info.flags.join(" ");
        writeln!(f, "{title}: {}, replicas {}, {flags}", info.version, info.replicas)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::compare::result::tests::result;

    fn text(old: &ComparisonResult, new: &ComparisonResult) -> String {
        Difference { old, new }.to_string()
    }

    /// The lines with the p99: of the built-in controller, then of cronwheel.
    fn p99_lines(text: &str) -> Vec<Vec<&str>> {
        text.lines()
            .filter(|line| line.contains("p99, ms"))
            .map(|line| line.split_ascii_whitespace().skip(3).collect())
            .collect()
    }

    #[test]
    fn medians_are_shown_with_their_ratio() {
        let text = text(
            &result(&[1_000.0, 2_000.0, 3_000.0], &[8_000.0; 3]),
            &result(&[500.0; 3], &[8_000.0; 3]),
        );
        assert_eq!(p99_lines(&text), [["8000", "8000", "~1.00"], ["2000", "500", "0.25"]]);
        assert!(!text.contains("No ratios"), "{text}");
    }

    #[test]
    fn ratios_are_omitted_for_different_environments_or_loads() {
        let old = result(&[1_000.0; 3], &[8_000.0; 3]);
        let check = |change: fn(&mut ComparisonResult), reason: &str| {
            let mut new = old.clone();
            change(&mut new);
            let text = text(&old, &new);
            assert!(text.contains(reason), "{text}");
            assert_eq!(p99_lines(&text)[1], ["1000", "1000"], "{text}");
        };
        check(|new| new.environment.cores = 64, "No ratios: the environments differ.");
        check(|new| new.plan.cronjobs = 7, "No ratios: the loads differ.");
    }

    #[test]
    fn number_of_rounds_does_not_change_the_load() {
        let text = text(&result(&[1_000.0; 3], &[1.0; 3]), &result(&[2_000.0], &[1.0]));
        assert_eq!(p99_lines(&text)[1], ["1000", "2000", "2.00"], "{text}");
    }

    #[test]
    fn missing_controller_is_a_dash_and_incompleteness_is_stated() {
        let mut new = result(&[2_000.0], &[]);
        new.incomplete = Some("interrupted".into());
        let text = text(&result(&[1_000.0], &[8_000.0]), &new);
        assert!(text.contains("INCOMPLETE: interrupted"), "{text}");
        assert_eq!(p99_lines(&text)[0], ["8000", "-"], "{text}");
    }

    #[test]
    fn flags_are_printed_where_they_differ() {
        let old = result(&[1.0], &[1.0]);
        let mut new = old.clone();
        assert!(!text(&old, &new).contains("--flag"));
        new.controllers[1].flags = vec!["--max-inflight=64".into()];
        assert!(text(&old, &new).contains("new: 1, replicas 1, --max-inflight=64\n"));
    }

    #[test]
    fn ratio_to_zero_is_omitted() {
        assert_eq!(ratio(0.0, 3.0, false), "");
        assert_eq!(ratio(0.0, 0.0, true), "~");
        assert_eq!(ratio(2.0, 3.0, false), "1.50");
    }
}
