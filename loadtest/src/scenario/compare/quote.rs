//! Figures of a result as tables for documents, with rounding.

use std::path::Path;

use anyhow::{Context as _, ensure};
use serde::{
    Deserialize as _,
    de::{IntoDeserializer as _, value::Error},
};

use super::{column::Column, output, result::ComparisonResult, statistics::Summary, table::SUBJECT};

/// A table with a row per column and a cell per controller.
pub(crate) fn figures(path: &Path, columns: &[&str]) -> anyhow::Result<String> {
    let result = read_complete(path)?;
    let names: Vec<&str> = result.controllers.iter().map(|one| one.name.as_str()).collect();
    let mut rows = vec![row("", &names), format!("|---|{}", "---|".repeat(names.len()))];
    for name in columns {
        let column = column(name)?;
        let cell = |name: &&str| {
            let summary = result.summary(name, column);
            summary.map(|summary| cell(column, summary)).unwrap_or_default()
        };
        rows.push(row(column.name(), &names.iter().map(cell).collect::<Vec<_>>()));
    }
    Ok(rows.join("\n") + "\n")
}

/// A table with a row per `COLUMN/CONTROLLER<=AIM`: the ratio of cronwheel to the controller, with the aim.
pub(crate) fn ratios(path: &Path, items: &[&str]) -> anyhow::Result<String> {
    let result = read_complete(path)?;
    let mut rows = vec![
        row("", &[SUBJECT, "Compared with", "Ratio", "Aim, at most"]),
        "|---|---|---|---|---|".to_owned(),
    ];
    for item in items {
        rows.push(ratio(&result, item).with_context(|| (*item).to_owned())?);
    }
    Ok(rows.join("\n") + "\n")
}

/// A table with a row per `COLUMN<=AIM`, or `COLUMN` without an aim, of cronwheel.
pub(crate) fn aims(path: &Path, items: &[&str]) -> anyhow::Result<String> {
    let result = read_complete(path)?;
    let mut rows = vec![row("", &[SUBJECT, "Aim, at most"]), "|---|---|---|".to_owned()];
    for item in items {
        let (name, aim) = item
            .split_once("<=")
            .map_or((*item, None), |(name, aim)| (name, Some(aim)));
        let column = column(name)?;
        let summary = result.summary(SUBJECT, column);
        let summary = summary.with_context(|| format!("{item}: not measured"))?;
        let cells = [cell(column, summary), aim_cell(column, summary.median, aim, item)?];
        rows.push(row(column.name(), &cells));
    }
    Ok(rows.join("\n") + "\n")
}

/// Formats an aim, which is empty where there is none.
fn aim_cell(column: Column, median: f64, aim: Option<&str>, item: &str) -> anyhow::Result<String> {
    let Some(aim) = aim else {
        return Ok(String::new());
    };
    let aim: f64 = aim.parse().with_context(|| format!("{item}: the aim is no number"))?;
    let missed = if median > aim { ": **missed**" } else { "" };
    Ok(format!("{}{missed}", column.quoted(aim)))
}

fn ratio(result: &ComparisonResult, item: &str) -> anyhow::Result<String> {
    let (names, aim) = item.split_once("<=").context("no aim")?;
    let (name, other) = names.split_once('/').context("no controller")?;
    let aim: f64 = aim.parse().context("the aim is no number")?;
    let column = column(name)?;
    let median = |controller: &str| {
        let summary = result.summary(controller, column);
        summary.map(|summary| summary.median).context("not measured")
    };
    let (own, others) = (median(SUBJECT)?, median(other)?);
    let ratio = own / others;
    let missed = if ratio > aim { ": **missed**" } else { "" };
    let cells = [
        column.quoted(own),
        format!("{other}: {}", column.quoted(others)),
        format!("{ratio:.2}"),
        format!("{aim:.2}{missed}"),
    ];
    Ok(row(column.name(), &cells))
}

/// Formats a row, without the end of the line. An empty cell is narrow.
fn row(title: &str, cells: &[impl AsRef<str>]) -> String {
    let cells = [title].into_iter().chain(cells.iter().map(AsRef::as_ref));
    let cells: Vec<String> = cells
        .map(|cell| {
            if cell.is_empty() {
                " ".to_owned()
            } else {
                format!(" {cell} ")
            }
        })
        .collect();
    format!("|{}|", cells.join("|"))
}

fn read_complete(path: &Path) -> anyhow::Result<ComparisonResult> {
    let result = output::read(path)?;
    ensure!(result.incomplete.is_none(), "{} is incomplete", path.display());
    Ok(result)
}

fn column(name: &str) -> anyhow::Result<Column> {
    let deserializer: serde::de::value::StrDeserializer<'_, Error> = name.into_deserializer();
    Column::deserialize(deserializer).with_context(|| format!("there is no column {name}"))
}

/// Formats the median, and the range if there are several turns.
fn cell(column: Column, summary: Summary) -> String {
    let median = column.quoted(summary.median);
    if summary.n_turns == 1 || summary.lowest.total_cmp(&summary.highest).is_eq() {
        return median;
    }
    let (lowest, highest) = (column.quoted(summary.lowest), column.quoted(summary.highest));
    format!("{median} ({lowest} to {highest})")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn file() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("results/2026-11-24-two-cores-quick.json")
    }

    #[test]
    fn figures_are_quoted_with_units() {
        let table = figures(&file(), &["lateness_p99_ms", "missed", "status_age_p99_ms"]).unwrap();
        let expected = "| | floor | built-in | built-in-unthrottled | cronwheel |\n\
             |---|---|---|---|---|\n\
             | lateness p99 | 448 ms | 57.8 s | 1.87 s | 493 ms |\n\
             | missed runs | 0 | 0 | 0 | 0 |\n\
             | status age p99 | | 302 ms | 20.6 ms | 1.16 s |\n";
        assert_eq!(table, expected);
    }

    #[test]
    fn ratio_marks_a_missed_aim() {
        let table = ratios(
            &file(),
            &["cpu_ms_per_run/built-in<=0.1", "peak_memory_mib/built-in<=0.33"],
        )
        .unwrap();
        let rows: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(
            rows,
            [
                "| processor time per run | 1.52 ms | built-in: 3.52 ms | 0.43 | 0.10: **missed** |",
                "| peak memory | 21.7 MiB | built-in: 90.1 MiB | 0.24 | 0.33 |",
            ]
        );
    }

    #[test]
    fn aim_is_shown_beside_its_figure() {
        let table = aims(&file(), &["lateness_p50_ms<=2", "missed<=0", "peak_memory_mib"]).unwrap();
        let rows: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(
            rows,
            [
                "| lateness p50 | 228 ms | 2.0 ms: **missed** |",
                "| missed runs | 0 | 0 |",
                "| peak memory | 21.7 MiB | |",
            ]
        );
    }

    #[test]
    fn ranges_are_shown_for_several_turns() {
        let summary = Summary::of(&[1_234.0, 2.0, 45_678.0]).unwrap();
        assert_eq!(cell(Column::LatenessP50Ms, summary), "1.23 s (2.0 ms to 45.7 s)");
        assert_eq!(cell(Column::Missed, Summary::of(&[0.0, 0.0]).unwrap()), "0");
    }
}
