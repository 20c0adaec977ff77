//! The figures by which controllers are compared. Lower is better for each of them.

use serde::{Deserialize, Serialize};

/// A figure of a turn. Lateness is the time from the nominal instant to the arrival of the create at the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Column {
    LatenessP50Ms,
    LatenessP90Ms,
    LatenessP99Ms,
    LatenessP999Ms,
    /// The maximum over the minutes of the lateness of the first create.
    FirstOfMinuteMs,
    /// The maximum over the minutes of the lateness of the last create.
    LastOfMinuteMs,
    Missed,
    Doubled,
    /// Creates while the previous Job of the CronJob was certainly running.
    Overlaps,
    WritesPerRun,
    EventWritesPerRun,
    AllWritesPerRun,
    CpuMsPerRun,
    CpuMsPerSecond,
    PeakMemoryMib,
    StatusAgeP99Ms,
    /// The lateness p99 in the minutes before namespaces are disturbed.
    LatenessUndisturbedP99Ms,
    /// The lateness p99 of the other namespaces during the disturbance, relative to the minutes before.
    LatenessP99Ratio,
    /// Creates in all failing namespaces while they fail.
    CreatesPerSecondOfFailing,
    /// The time from the end of the refusals until every refused CronJob has had a successful create.
    RecoveryMs,
}

/// All columns, in the order of the table.
pub(crate) const COLUMNS: [Column; 20] = [
    Column::LatenessP50Ms,
    Column::LatenessP90Ms,
    Column::LatenessP99Ms,
    Column::LatenessP999Ms,
    Column::FirstOfMinuteMs,
    Column::LastOfMinuteMs,
    Column::Missed,
    Column::Doubled,
    Column::Overlaps,
    Column::WritesPerRun,
    Column::EventWritesPerRun,
    Column::AllWritesPerRun,
    Column::CpuMsPerRun,
    Column::CpuMsPerSecond,
    Column::PeakMemoryMib,
    Column::StatusAgeP99Ms,
    Column::LatenessUndisturbedP99Ms,
    Column::LatenessP99Ratio,
    Column::CreatesPerSecondOfFailing,
    Column::RecoveryMs,
];

impl Column {
    /// The title in a table.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Column::LatenessP50Ms => "lateness p50, ms",
            Column::LatenessP90Ms => "lateness p90, ms",
            Column::LatenessP99Ms => "lateness p99, ms",
            Column::LatenessP999Ms => "lateness p99.9, ms",
            Column::FirstOfMinuteMs => "first of a minute, ms",
            Column::LastOfMinuteMs => "last of a minute, ms",
            Column::Missed => "missed runs",
            Column::Doubled => "doubled runs",
            Column::Overlaps => "overlapping runs",
            Column::WritesPerRun => "writes per run, without Events",
            Column::EventWritesPerRun => "writes of Events per run",
            Column::AllWritesPerRun => "all writes per run",
            Column::CpuMsPerRun => "processor time per run, ms",
            Column::CpuMsPerSecond => "processor time per second, ms",
            Column::PeakMemoryMib => "peak memory, MiB",
            Column::StatusAgeP99Ms => "status age p99, ms",
            Column::LatenessUndisturbedP99Ms => "lateness p99 before the disturbance, ms",
            Column::LatenessP99Ratio => "lateness p99 relative to before the disturbance",
            Column::CreatesPerSecondOfFailing => "creates per second in failing namespaces",
            Column::RecoveryMs => "from the end of the refusals to the last start, ms",
        }
    }

    /// The title without the unit.
    pub(crate) fn name(self) -> &'static str {
        let title = self.title();
        let title = title.strip_suffix(", ms").unwrap_or(title);
        title.strip_suffix(", MiB").unwrap_or(title)
    }

    /// Formats a figure for documents, with its unit.
    pub(crate) fn quoted(self, figure: f64) -> String {
        let text = self.text(figure);
        let is_time_per_something = matches!(self, Column::CpuMsPerRun | Column::CpuMsPerSecond);
        if self.title().ends_with(", MiB") {
            format!("{text} MiB")
        } else if !self.title().ends_with(", ms") {
            text
        } else if is_time_per_something || figure < 1_000.0 {
            format!("{text} ms")
        } else if figure < 10_000.0 {
            format!("{:.2} s", figure / 1e3)
        } else {
            format!("{:.1} s", figure / 1e3)
        }
    }

    /// Formats a figure for readers, without its unit.
    pub(crate) fn text(self, figure: f64) -> String {
        match self {
            Column::Missed | Column::Doubled | Column::Overlaps => {
                // The median of two counts may be fractional.
                let decimals = usize::from(figure.fract() != 0.0);
                format!("{figure:.decimals$}")
            }
            Column::WritesPerRun
            | Column::EventWritesPerRun
            | Column::AllWritesPerRun
            | Column::CpuMsPerRun
            | Column::CpuMsPerSecond
            | Column::LatenessP99Ratio => format!("{figure:.2}"),
            Column::LatenessP50Ms
            | Column::LatenessP90Ms
            | Column::LatenessP99Ms
            | Column::LatenessP999Ms
            | Column::FirstOfMinuteMs
            | Column::LastOfMinuteMs
            | Column::PeakMemoryMib
            | Column::StatusAgeP99Ms
            | Column::LatenessUndisturbedP99Ms
            | Column::CreatesPerSecondOfFailing
            | Column::RecoveryMs => format!("{figure:.*}", usize::from(figure.abs() < 100.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_column_is_in_the_table_once() {
        let distinct: BTreeSet<Column> = COLUMNS.into_iter().collect();
        assert_eq!(distinct.len(), COLUMNS.len());
        let in_order: Vec<Column> = distinct.into_iter().collect();
        assert_eq!(in_order, COLUMNS);
    }

    #[test]
    fn column_names_in_files_match_the_code() {
        let name = |column: Column| serde_json::to_string(&column).unwrap();
        assert_eq!(name(Column::LatenessP999Ms), "\"lateness_p999_ms\"");
        assert_eq!(name(Column::CpuMsPerRun), "\"cpu_ms_per_run\"");
    }

    #[test]
    fn figures_in_pages_have_units() {
        let check = |column: Column, figure: f64, expected: &str| assert_eq!(column.quoted(figure), expected);
        check(Column::LatenessP99Ms, 4.21, "4.2 ms");
        check(Column::LatenessP99Ms, 1_874.0, "1.87 s");
        check(Column::StatusAgeP99Ms, 57_804.0, "57.8 s");
        check(Column::CpuMsPerRun, 1.515, "1.51 ms");
        check(Column::PeakMemoryMib, 21.7, "21.7 MiB");
        check(Column::AllWritesPerRun, 5.06, "5.06");
        check(Column::CreatesPerSecondOfFailing, 14.25, "14.2");
        check(Column::RecoveryMs, 4_100.0, "4.10 s");
        assert_eq!(Column::LatenessP999Ms.name(), "lateness p99.9");
    }

    #[test]
    fn figures_are_rounded_by_column() {
        let check = |column: Column, figure: f64, expected: &str| assert_eq!(column.text(figure), expected);
        check(Column::Missed, 3.0, "3");
        check(Column::Missed, 2.5, "2.5");
        check(Column::CpuMsPerRun, 2.345, "2.35");
        check(Column::LatenessP99Ms, 3.21, "3.2");
        check(Column::LatenessP99Ms, 58_123.4, "58123");
    }
}
