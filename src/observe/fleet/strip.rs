//! The heatmap: a row for each namespace, the past by outcomes and the future by starts.

use std::{cmp::Reverse, collections::BTreeMap};

use jiff::Timestamp;

use super::{
    Fleet,
    cells::plus,
    second::{Second, start_of_minute},
};
use crate::{
    observe::{
        forecast::clock_changes,
        view::{Cell, ClockChange, Strip, StripRow},
    },
    schedule::Zone,
};

/// Maximum number of cells of a row: ten minutes each for two days, one minute each up to almost five hours.
const CELLS_MAX: u32 = 288;

/// Lengths of a cell. Each divides a day, so cells begin at round times.
const CELL_MINUTES: [u32; 11] = [1, 2, 5, 10, 15, 20, 30, 60, 120, 360, 1_440];

impl Fleet {
    /// The heatmap from one instant to another, with at most so many rows of single namespaces: those with most trouble
    /// and most runs.
    pub fn strip(&self, from: Timestamp, to: Timestamp, n_rows_max: usize, now: Timestamp) -> Strip {
        let grid = Grid::new(from, to, now);
        let mut rows: Vec<(Box<str>, Vec<Cell>)> = Vec::new();
        for (namespace, id) in self.ids.namespaces() {
            let cells = self.cells_of(namespace, id, &grid);
            let is_empty = cells.iter().all(|cell| *cell == Cell::default());
            if !is_empty {
                rows.push((namespace.into(), cells));
            }
        }
        Strip {
            from: start_of_minute(grid.first_minute),
            to: start_of_minute(grid.end_minute()),
            cell_minutes: grid.cell_minutes,
            now: start_of_minute(grid.first_future_minute()),
            rows: merged(rows, n_rows_max),
            peak: self.forecast.peak().cloned(),
            clock_changes: self.clock_changes(from, to),
        }
    }

    fn cells_of(&self, namespace: &str, id: u32, grid: &Grid) -> Vec<Cell> {
        let mut cells = vec![Cell::default(); grid.n_cells];
        let past = self
            .cells
            .between(id, grid.first_minute, grid.end_minute().min(grid.now_minute + 1));
        for (minute, cell) in past {
            if let Some(sum) = grid.place(minute).and_then(|place| cells.get_mut(place)) {
                *sum = plus(*sum, cell);
            }
        }
        if grid.end_minute() > grid.now_minute {
            let first = Second::floor(self.forecast.from()).minute();
            let starts = self.forecast.starts_by_minute(namespace);
            // The cell of now shows what happened.
            let first_future = grid.first_future_minute().max(grid.now_minute + 1);
            for (minute, n_starts) in (first..).zip(starts).filter(|(minute, _)| *minute >= first_future) {
                if let Some(sum) = grid.place(minute).and_then(|place| cells.get_mut(place)) {
                    sum.n_runs += n_starts;
                }
            }
        }
        cells
    }

    /// The clock changes of all zones of CronJobs between two instants.
    fn clock_changes(&self, from: Timestamp, to: Timestamp) -> Vec<ClockChange> {
        let facts = self.cron_jobs.sorted().filter_map(|cron_job| cron_job.facts.as_deref());
        let zones = facts.map(|facts| facts.schedule.effective_zone());
        let zones: BTreeMap<&str, &Zone> = zones.map(|zone| (zone.name(), zone)).collect();
        clock_changes(zones.into_values(), from, to)
    }
}

/// The rows that stay alone by name, and the sum of the others.
fn merged(mut rows: Vec<(Box<str>, Vec<Cell>)>, n_rows_max: usize) -> Vec<StripRow> {
    rows.sort_by_cached_key(|(_, cells)| {
        let sum = cells.iter().fold(Cell::default(), |sum, cell| plus(sum, *cell));
        Reverse((sum.n_lost + sum.n_failed + sum.n_late, sum.n_runs))
    });
    let rest = rows.split_off(rows.len().min(n_rows_max));
    rows.sort_by(|(left, _), (right, _)| left.cmp(right));
    let rest = rest.into_iter().map(|(_, cells)| cells);
    let rest = rest.reduce(|sum, cells| sum.into_iter().zip(cells).map(|(sum, cell)| plus(sum, cell)).collect());
    let named = rows.into_iter().map(|(namespace, cells)| StripRow {
        namespace: Some(namespace),
        cells,
    });
    let rest = rest.map(|cells| StripRow { namespace: None, cells });
    named.chain(rest).collect()
}

/// The cells of a row.
struct Grid {
    first_minute: u32,
    cell_minutes: u32,
    n_cells: usize,
    now_minute: u32,
}

impl Grid {
    fn new(from: Timestamp, to: Timestamp, now: Timestamp) -> Grid {
        let (first, end) = (Second::floor(from).minute(), Second::floor(to).plus(59).minute());
        let n_minutes = end.saturating_sub(first).max(1);
        let fits = |minutes: &&u32| n_minutes.div_ceil(**minutes) <= CELLS_MAX;
        let cell_minutes = CELL_MINUTES.iter().find(fits).copied().unwrap_or(1_440);
        let first_minute = first - first % cell_minutes;
        let n_cells = end.max(first + 1).saturating_sub(first_minute).div_ceil(cell_minutes);
        Grid {
            first_minute,
            cell_minutes,
            n_cells: n_cells.min(2 * CELLS_MAX) as usize,
            now_minute: Second::floor(now).minute(),
        }
    }

    fn place(&self, minute: u32) -> Option<usize> {
        let place = minute.checked_sub(self.first_minute)? / self.cell_minutes;
        Some(place as usize)
    }

    fn end_minute(&self) -> u32 {
        let n_cells = u32::try_from(self.n_cells).unwrap_or(CELLS_MAX);
        self.first_minute + n_cells * self.cell_minutes
    }

    /// The start of the first cell that is wholly in the future.
    fn first_future_minute(&self) -> u32 {
        let n_past = (self.now_minute + 1)
            .saturating_sub(self.first_minute)
            .div_ceil(self.cell_minutes);
        self.first_minute + n_past * self.cell_minutes
    }
}
