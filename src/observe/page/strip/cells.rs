//! The cells of the strip as paths.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use jiff::SignedDuration;
use maud::{Markup, html};

use super::{Scale, TOP};
use crate::observe::{
    slot::Mark,
    view::{Cell, Strip},
};

/// Steps from few to many runs.
const N_LEVELS: u32 = 5;
/// With more cells, lines between them would cover them.
const SEPARATED_MAX: usize = 200;
/// The width of the strip that the hatch is drawn for, in pixels. It is stretched with the cells.
const NOMINAL_WIDTH: usize = 1_060;

/// The appearance of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Shade {
    /// Runs of the past, all on time; the level of their number.
    OnTime(u32),
    /// Starts of the future; the level of their number.
    Ahead(u32),
    Late,
    Failed,
    Lost,
}

impl Shade {
    /// Whether this layer lies below a cell of another appearance, or is its own.
    fn covers(self, cell: Shade) -> bool {
        match (self, cell) {
            (Shade::Ahead(_), _) | (_, Shade::Ahead(_)) => {
                matches!((self, cell), (Shade::Ahead(own), Shade::Ahead(other)) if own <= other)
            }
            (Shade::OnTime(_) | Shade::Late | Shade::Failed, _) => self <= cell,
            (Shade::Lost, _) => self == cell,
        }
    }

    fn class(self) -> String {
        match self {
            Shade::OnTime(level) => format!("p{level}"),
            Shade::Ahead(level) => format!("f{level}"),
            Shade::Late => "late".to_owned(),
            Shade::Failed => "failed".to_owned(),
            Shade::Lost => "lost".to_owned(),
        }
    }
}

/// Whether a cell is in the future.
pub(super) fn is_future(strip: &Strip, index: usize) -> bool {
    let minutes = i64::try_from(index)
        .unwrap_or(i64::MAX)
        .saturating_mul(strip.cell_minutes.into());
    let offset = SignedDuration::from_mins(minutes.min(i64::MAX / 60));
    strip.now.duration_since(strip.from) <= offset
}

/// All rows, in a drawing whose unit is the cell.
pub(super) fn rows(scale: &Scale<'_>, current_namespace: Option<&str>) -> Markup {
    let strip = scale.strip;
    let n_cells = strip.rows.iter().map(|row| row.cells.len()).max().unwrap_or_default();
    let (past_max, future_max) = maxima(strip);
    let height = scale.rows_height();
    html! {
        svg.cells y=(TOP) width="100%" height=(height) viewBox={ "0 0 " (n_cells.max(1)) " " (height) }
            preserveAspectRatio="none" role="img" aria-label="The names of the rows sum them up"
        {
            (hatch(n_cells))
            g stroke-width=(scale.height) {
                @for (index, row) in strip.rows.iter().enumerate() {
                    @let is_dimmed = current_namespace.is_some() && row.namespace.as_deref() != current_namespace;
                    g class=[is_dimmed.then_some("dimmed")] {
                        @let shades = row.cells.iter().enumerate().map(|(at, cell)| {
                            shade(*cell, is_future(strip, at), past_max, future_max)
                        });
                        @for (shade, path) in paths(&shades.collect::<Vec<_>>(), index * scale.pitch + scale.height / 2) {
                            @let stroke = (shade == Shade::Lost).then_some("url(#cell-hatch)");
                            path.(shade.class()) stroke=[stroke] d=(path) {}
                        }
                    }
                }
            }
            @if n_cells <= SEPARATED_MAX {
                path.gaps stroke-width=(height) stroke-dasharray="0.12 0.88" d={ "M-.06 " (height / 2) "H" (n_cells) } {}
            }
        }
    }
}

/// The pattern of lost cells: slanted lines, whose horizontal unit is the cell.
fn hatch(n_cells: usize) -> Markup {
    #[expect(clippy::cast_precision_loss, reason = "a place on a screen")]
    let width = 5.0 * n_cells as f64 / NOMINAL_WIDTH as f64;
    html! {
        pattern id="cell-hatch" width=(format!("{width:.3}")) height="5" patternUnits="userSpaceOnUse" {
            rect.ground width=(format!("{width:.3}")) height="5" {}
            path.line d={ "M0 5L" (format!("{:.3}", width * 0.6)) " 0H" (format!("{width:.3}")) "L" (format!("{:.3}", width * 0.4)) " 5z" } {}
        }
    }
}

/// The largest numbers of runs in a cell of the past and of the future.
fn maxima(strip: &Strip) -> (u32, u32) {
    let cells = strip.rows.iter().flat_map(|row| row.cells.iter().enumerate());
    cells.fold((0, 0), |(past, future), (index, cell)| {
        if is_future(strip, index) {
            (past, future.max(cell.n_runs))
        } else {
            (past.max(cell.n_runs), future)
        }
    })
}

fn shade(cell: Cell, is_future: bool, past_max: u32, future_max: u32) -> Option<Shade> {
    if is_future {
        return (cell.n_runs > 0).then(|| Shade::Ahead(level(cell.n_runs, future_max)));
    }
    Some(match cell.worst()? {
        Mark::Lost => Shade::Lost,
        Mark::Failed => Shade::Failed,
        Mark::Late => Shade::Late,
        Mark::NotObserved | Mark::Skipped | Mark::Succeeded | Mark::Running | Mark::Due => {
            Shade::OnTime(level(cell.n_runs, past_max))
        }
    })
}

/// The level of a number, from 1 to [`N_LEVELS`]. Levels grow with the logarithm: one run must differ from ten, and a
/// thousand from ten thousand.
fn level(number: u32, max: u32) -> u32 {
    let (number, max) = (f64::from(number).ln_1p(), f64::from(max.max(1)).ln_1p());
    let level = (f64::from(N_LEVELS) * number / max).ceil();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 1 and the number of levels"
    )]
    let level = level.clamp(1.0, f64::from(N_LEVELS)) as u32;
    level
}

/// The layers of a row in the order of painting, as horizontal lines: `M0 11h3m2 0h1` covers cells 0 to 2 and 5.
///
/// A layer lies below those after it, so that it also covers their cells of the same half. Its lines are longer then,
/// and fewer.
fn paths(shades: &[Option<Shade>], y: usize) -> BTreeMap<Shade, String> {
    let layers: BTreeSet<Shade> = shades.iter().flatten().copied().collect();
    layers
        .into_iter()
        .map(|layer| (layer, path(shades, layer, y)))
        .collect()
}

fn path(shades: &[Option<Shade>], layer: Shade, y: usize) -> String {
    let is_covered = |shade: &Option<Shade>| shade.is_some_and(|shade| layer.covers(shade));
    let (mut path, mut start, mut last_end) = (String::new(), 0, 0);
    for run in shades.chunk_by(|a, b| is_covered(a) == is_covered(b)) {
        let end = start + run.len();
        if is_covered(&run[0]) {
            let length = run.len();
            // Writing to a string does not fail.
            let _ = if path.is_empty() {
                write!(path, "M{start} {y}h{length}")
            } else {
                write!(path, "m{} 0h{length}", start - last_end)
            };
            last_end = end;
        }
        start = end;
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_covers_those_above_it() {
        let on_time = |level| Some(Shade::OnTime(level));
        let ahead = Some(Shade::Ahead(1));
        let cells = [
            on_time(1),
            on_time(1),
            Some(Shade::Lost),
            None,
            None,
            on_time(1),
            on_time(2),
            None,
            ahead,
        ];
        let paths = paths(&cells, 11);
        let expected = [
            (Shade::OnTime(1), "M0 11h3m2 0h2"),
            (Shade::OnTime(2), "M2 11h1m3 0h1"),
            (Shade::Ahead(1), "M8 11h1"),
            (Shade::Lost, "M2 11h1"),
        ];
        let expected = expected.map(|(shade, path)| (shade, path.to_owned()));
        assert_eq!(paths, expected.into());
    }

    #[test]
    fn levels_grow_with_the_number() {
        assert_eq!(
            [1, 3, 10, 100, 1_000].map(|number| level(number, 1_000)),
            [1, 2, 2, 4, 5]
        );
        assert_eq!([level(1, 1), level(0, 0)], [5, 1]);
    }

    #[test]
    fn the_worst_outcome_decides_the_past_and_the_number_the_future() {
        let cell = Cell {
            n_runs: 9,
            n_late: 1,
            n_failed: 1,
            n_lost: 0,
        };
        assert_eq!(shade(cell, false, 9, 9), Some(Shade::Failed));
        assert_eq!(shade(cell, true, 9, 9), Some(Shade::Ahead(5)));
        assert_eq!(
            shade(
                Cell {
                    n_lost: 1,
                    ..Cell::default()
                },
                false,
                9,
                9
            ),
            Some(Shade::Lost)
        );
        assert_eq!(shade(Cell::default(), false, 9, 9), None);
    }
}
