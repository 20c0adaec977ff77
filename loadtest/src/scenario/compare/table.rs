//! A comparison as text: thresholds first, then medians with ranges, then reasons for doubt.

use std::{
    collections::BTreeSet,
    fmt::{self, Display, Formatter},
};

use super::{
    column::{COLUMNS, Column},
    contestant::NAMES,
    result::{ComparisonResult, ROUNDS_FOR_VERDICT},
    slo::Verdict,
    statistics::Summary,
};

/// The controller that the others are compared with.
pub(super) const SUBJECT: &str = NAMES[3];

/// Formats a result as text.
pub(super) struct Table<'a>(pub(super) &'a ComparisonResult);

impl Display for Table<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let result = self.0;
        if let Some(reason) = &result.incomplete {
            writeln!(f, "INCOMPLETE: {reason}\n")?;
        }
        self.write_thresholds(f)?;
        writeln!(f, "{}", heading(result))?;
        writeln!(f, "{}\n", environment_line(result))?;
        write_aligned(f, &figure_rows(result))?;
        if result.has_verdict() {
            writeln!(f, "  ~ the range overlaps with that of {SUBJECT}")?;
        }
        for line in floor_lines(result) {
            writeln!(f, "  {line}")?;
        }
        self.write_flags(f)?;
        self.write_warnings(f)?;
        self.write_verdict(f)
    }
}

impl Table<'_> {
    fn write_thresholds(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let verdicts = self.0.slo.verdicts(self.0);
        if verdicts.is_empty() {
            return Ok(());
        }
        writeln!(f, "Thresholds")?;
        for verdict in &verdicts {
            writeln!(f, "  {}", threshold_line(verdict))?;
        }
        writeln!(f)
    }

    fn write_flags(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nControllers")?;
        for controller in &self.0.controllers {
            let replicas = match controller.replicas {
                1 => String::new(),
                several => format!(", {several} replicas"),
            };
            let flags = controller.flags.join(" ");
            writeln!(f, "  {}: {}{replicas}: {flags}", controller.name, controller.version)?;
        }
        Ok(())
    }

    fn write_warnings(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let warnings = warnings(self.0);
        if warnings.is_empty() {
            return Ok(());
        }
        writeln!(f, "\nWarnings")?;
        warnings.iter().try_for_each(|warning| writeln!(f, "  {warning}"))
    }

    fn write_verdict(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let result = self.0;
        if !result.has_verdict() {
            return writeln!(f, "\n{}", no_verdict_line(result));
        }
        for other in result.controllers.iter().filter(|other| other.name != SUBJECT) {
            writeln!(f, "\nMedians of {SUBJECT} relative to {}", other.name)?;
            let sides = compared(result, &other.name);
            for (title, columns) in [
                ("lower", sides.lower),
                ("higher", sides.higher),
                ("equal or overlapping", sides.undecided),
            ] {
                if !columns.is_empty() {
                    writeln!(f, "  {title}: {}", columns.join("; "))?;
                }
            }
        }
        Ok(())
    }
}

/// Describes the plan of a comparison in one line.
pub(super) fn heading(result: &ComparisonResult) -> String {
    let plan = &result.plan;
    let rounds = match plan.rounds {
        1 => "1 round".to_owned(),
        several => format!("{several} rounds"),
    };
    let failing = match plan.failing_namespaces {
        0 => String::new(),
        some => format!(" ({some} of {})", plan.namespaces),
    };
    let quick = if plan.is_quick { " (quick: indicative)" } else { "" };
    format!(
        "{} {}{failing}, {rounds} of {} min after {} min of warm-up{quick}, started {:.0}",
        plan.cronjobs, plan.scenario, plan.minutes, plan.warm_up_minutes, result.started
    )
}

/// Describes the environment of a comparison in one line.
pub(super) fn environment_line(result: &ComparisonResult) -> String {
    let machine = &result.environment;
    format!(
        "{} cores ({}), {} MiB, Linux {}, {}, revision {}; {}",
        machine.cores,
        machine.processor,
        machine.memory_mib,
        machine.kernel,
        machine.kubernetes,
        result.revision,
        result.plan.target
    )
}

/// A threshold, whether it is met, and the measured figure.
pub(super) fn threshold_line(verdict: &Verdict<'_>) -> String {
    let threshold = verdict.threshold;
    let mark = if verdict.is_met() { '✓' } else { '✗' };
    let measured = verdict
        .measured
        .map_or_else(|| "not measured".to_owned(), |figure| threshold.column.text(figure));
    format!(
        "{mark} {}: {measured}, at most {} ({}, {})",
        threshold.name,
        threshold.at_most,
        threshold.controller,
        threshold.column.title()
    )
}

/// For each controller, the ratio to the floor, and the share of its processor time that the floor does not need.
pub(super) fn floor_lines(result: &ComparisonResult) -> Vec<String> {
    let floor = NAMES[0];
    let median = |name: &str, column: Column| result.summary(name, column).map(|summary| summary.median);
    let line = |name: &str| {
        let late = median(name, Column::LastOfMinuteMs)? / median(floor, Column::LastOfMinuteMs)?;
        let left_out = 1.0 - median(floor, Column::CpuMsPerRun)? / median(name, Column::CpuMsPerRun)?;
        // If times are whole seconds, both may be zero.
        (late.is_finite() && left_out.is_finite()).then(|| {
            format!(
            "{name}: last of a minute at {late:.2} times the floor; {:.0} % of its processor time is work that the floor \
             leaves out (watches, statuses, Events)",
                left_out * 100.0
            )
        })
    };
    let names = result.controllers.iter().map(|one| one.name.as_str());
    names.filter(|name| *name != floor).filter_map(line).collect()
}

/// The warnings of all turns.
pub(super) fn warnings(result: &ComparisonResult) -> Vec<String> {
    let of = |turn: &super::result::Turn| {
        let (round, controller) = (turn.round, turn.controller.clone());
        let with_place = move |warning: &String| format!("round {round}, {controller}: {warning}");
        turn.warnings.iter().map(with_place).collect::<Vec<String>>()
    };
    result.turns.iter().flat_map(of).collect()
}

/// Why there is no verdict.
pub(super) fn no_verdict_line(result: &ComparisonResult) -> String {
    let reason = if result.incomplete.is_some() {
        "the comparison is incomplete".to_owned()
    } else {
        format!("a verdict needs {ROUNDS_FOR_VERDICT} full rounds")
    };
    format!("No verdict, figures are indicative: {reason}.")
}

/// The header, and a row for each column that was measured and each kind of write.
pub(super) fn figure_rows(result: &ComparisonResult) -> Vec<Vec<String>> {
    let names = || result.controllers.iter().map(|controller| controller.name.as_str());
    let mut rows = vec![[""].into_iter().chain(names()).map(str::to_owned).collect()];
    let is_measured = |column: &Column| names().any(|name| result.summary(name, *column).is_some());
    for column in COLUMNS.into_iter().filter(is_measured) {
        let subject = result.summary(SUBJECT, column);
        let cell = |name: &str| {
            let is_subject = name == SUBJECT || !result.has_verdict();
            let subject = subject.filter(|_| !is_subject);
            cell(column, result.summary(name, column), subject)
        };
        let title = column.title().to_owned();
        rows.push([title].into_iter().chain(names().map(cell)).collect());
    }
    let kinds: BTreeSet<&String> = result
        .turns
        .iter()
        .flat_map(|turn| turn.writes_per_run.keys())
        .collect();
    for kind in kinds {
        let cell = |name: &str| cell(Column::WritesPerRun, result.write_summary(name, kind), None);
        let title = format!("  {kind} per run");
        rows.push([title].into_iter().chain(names().map(cell)).collect());
    }
    rows
}

/// The median and the range, with a mark if the range overlaps that of `subject`.
fn cell(column: Column, summary: Option<Summary>, subject: Option<Summary>) -> String {
    let Some(summary) = summary else {
        return "-".to_owned();
    };
    let mark = if subject.is_some_and(|subject| subject.overlaps(&summary)) {
        "~"
    } else {
        ""
    };
    let median = column.text(summary.median);
    if summary.n_turns == 1 {
        return median;
    }
    let (lowest, highest) = (column.text(summary.lowest), column.text(summary.highest));
    format!("{mark}{median} ({lowest} to {highest})")
}

/// The columns, by whether the subject is lower or higher than another controller.
#[derive(Debug, Default, PartialEq)]
struct Sides {
    lower: Vec<String>,
    higher: Vec<String>,
    undecided: Vec<String>,
}

fn compared(result: &ComparisonResult, other: &str) -> Sides {
    let mut sides = Sides::default();
    for column in COLUMNS {
        let (Some(subject), Some(other)) = (result.summary(SUBJECT, column), result.summary(other, column)) else {
            continue;
        };
        let title = column.title().split(',').next().unwrap_or_default();
        let with_ratio = || format!("{title} ({:.2})", subject.median / other.median);
        if subject.overlaps(&other) {
            sides.undecided.push(title.to_owned());
        } else if subject.median < other.median {
            sides.lower.push(with_ratio());
        } else if other.median == 0.0 {
            sides.higher.push(title.to_owned());
        } else {
            sides.higher.push(with_ratio());
        }
    }
    sides
}

/// Writes rows with the first cell left-aligned and the others right-aligned.
pub(super) fn write_aligned(f: &mut Formatter<'_>, rows: &[Vec<String>]) -> fmt::Result {
    let n_columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..n_columns).map(width).collect();
    for row in rows {
        for (position, (cell, width)) in row.iter().zip(&widths).enumerate() {
            if position == 0 {
                write!(f, "{cell:<width$}")?;
            } else {
                write!(f, "  {cell:>width$}")?;
            }
        }
        writeln!(f)?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "table/tests.rs"]
mod tests;
