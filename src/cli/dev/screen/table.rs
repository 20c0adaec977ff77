//! Two tables of three columns with common widths.

use crate::cli::dev::{figures::Row, text::cut};

/// The gap between two columns.
const GAP: &str = "  ";

/// The width below which a column is not made narrower.
const COLUMN_MIN: usize = 10;

/// Formats two tables, each as its title and its rows; without rows it is empty. If the width does not suffice, the
/// middle column is cut first, then the first.
pub(super) fn table(titles: [Row; 2], tables: [&[Row]; 2], columns: usize) -> [Vec<String>; 2] {
    let all = || titles.iter().chain(tables.into_iter().flatten());
    let width = |column: usize| all().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let last = width(2);
    let room = columns.saturating_sub(last + 2 * GAP.len());
    let middle = width(1).min(room.saturating_sub(width(0)).max(COLUMN_MIN));
    let first = width(0).min(room.saturating_sub(middle).max(COLUMN_MIN));
    let line = |row: &Row| {
        let (name, middle_cell) = (cut(&row[0], first), cut(&row[1], middle));
        format!("{name:<first$}{GAP}{middle_cell:<middle$}{GAP}{}", row[2])
    };
    let mut tables = tables.into_iter();
    titles.map(|title| match tables.next() {
        Some(rows) if !rows.is_empty() => std::iter::once(&title).chain(rows).map(line).collect(),
        Some(_) | None => Vec::new(),
    })
}
