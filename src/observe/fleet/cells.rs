//! What happened in each minute of the last 24 hours, for each namespace.

use super::{cron_job::CronJob, judge, minutes::Minutes, second::Second};
use crate::observe::view::Cell;

/// Number of minutes that are kept beside that of now: the day of the tiles and of the strip.
pub(super) const MINUTES_KEPT: u32 = 24 * 60;

/// The cells of all namespaces, and their sum.
#[derive(Debug, Default)]
pub(super) struct Cells {
    /// By the number of the namespace.
    namespaces: Vec<Minutes>,
    /// Sum over all of them.
    day: Day,
    /// The oldest minute that is kept.
    oldest: u32,
}

/// Sums over the kept minutes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Day {
    pub(super) failed: u64,
    pub(super) lost: u64,
    pub(super) late: u64,
}

impl Cells {
    /// Replaces what one slot adds to its minute.
    pub(super) fn replace(&mut self, namespace: u32, minute: u32, before: Cell, after: Cell) {
        if before == after || minute < self.oldest {
            return;
        }
        let namespace = namespace as usize;
        if namespace >= self.namespaces.len() {
            self.namespaces.resize_with(namespace + 1, Minutes::default);
        }
        let minutes = &mut self.namespaces[namespace];
        let known = minutes.get(minute);
        let cell = minus(plus(known, after), before);
        minutes.set(minute, cell);
        self.day.remove(known);
        self.day.add(cell);
    }

    /// A Job failed whose slot is no longer kept.
    pub(super) fn add_failure(&mut self, namespace: u32, minute: u32) {
        let failure = Cell {
            n_failed: 1,
            ..Cell::default()
        };
        self.replace(namespace, minute, Cell::default(), failure);
    }

    /// Drops minutes that are more than a day old.
    pub(super) fn expire(&mut self, now: Second) {
        let oldest = now.minute().saturating_sub(MINUTES_KEPT);
        if oldest <= self.oldest {
            return;
        }
        self.oldest = oldest;
        for minutes in &mut self.namespaces {
            for cell in minutes.take_before(oldest) {
                self.day.remove(cell);
            }
        }
    }

    /// Drops what happened in a namespace.
    pub(super) fn forget(&mut self, namespace: u32) {
        let minutes = self.namespaces.get_mut(namespace as usize).map(std::mem::take);
        for cell in minutes.unwrap_or_default().take_before(u32::MAX) {
            self.day.remove(cell);
        }
    }

    pub(super) fn day(&self) -> Day {
        self.day
    }

    /// What happened in a namespace from one minute to another, the last exclusive. A minute may come in two parts.
    pub(super) fn between(&self, namespace: u32, from: u32, to: u32) -> impl Iterator<Item = (u32, Cell)> {
        let minutes = self.namespaces.get(namespace as usize).into_iter();
        minutes.flat_map(move |minutes| minutes.between(from, to))
    }
}

impl CronJob {
    /// Follows the outcome of a slot in the minutes. A loss counts at the instant at which the slot was given up: that of
    /// a daily CronJob is a day after the slot. Returns whether anything changed.
    pub(super) fn count(&mut self, index: usize, cells: &mut Cells) -> bool {
        let slot = &self.slots[index];
        let (at, before, after) = (slot.at, slot.counted.cell(), slot.count().cell());
        if before == after {
            return false;
        }
        cells.replace(
            self.namespace_id,
            at.minute(),
            without_loss(before),
            without_loss(after),
        );
        if before.n_lost != after.n_lost {
            let given_up = judge::closes(self, index).unwrap_or(at);
            // The next slot may be another one by now.
            let given_up = self.losses.remove(&at).unwrap_or(given_up);
            cells.replace(
                self.namespace_id,
                given_up.minute(),
                only_loss(before),
                only_loss(after),
            );
            if after.n_lost > 0 {
                self.losses.insert(at, given_up);
            }
        }
        let slot = &mut self.slots[index];
        slot.counted = slot.count();
        true
    }
}

fn without_loss(cell: Cell) -> Cell {
    Cell { n_lost: 0, ..cell }
}

fn only_loss(cell: Cell) -> Cell {
    Cell {
        n_lost: cell.n_lost,
        ..Cell::default()
    }
}

impl Day {
    fn add(&mut self, cell: Cell) {
        self.failed += u64::from(cell.n_failed);
        self.lost += u64::from(cell.n_lost);
        self.late += u64::from(cell.n_late);
    }

    fn remove(&mut self, cell: Cell) {
        self.failed -= u64::from(cell.n_failed);
        self.lost -= u64::from(cell.n_lost);
        self.late -= u64::from(cell.n_late);
    }
}

/// The sum of two cells.
pub(super) fn plus(left: Cell, right: Cell) -> Cell {
    Cell {
        n_runs: left.n_runs + right.n_runs,
        n_late: left.n_late + right.n_late,
        n_failed: left.n_failed + right.n_failed,
        n_lost: left.n_lost + right.n_lost,
    }
}

/// A difference. What is removed was added before.
fn minus(left: Cell, right: Cell) -> Cell {
    Cell {
        n_runs: left.n_runs.saturating_sub(right.n_runs),
        n_late: left.n_late.saturating_sub(right.n_late),
        n_failed: left.n_failed.saturating_sub(right.n_failed),
        n_lost: left.n_lost.saturating_sub(right.n_lost),
    }
}
