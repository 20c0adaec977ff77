//! What happened in the minutes of one namespace, in few bytes: a fleet can hold a day of minutes of each namespace.

use crate::observe::view::Cell;

/// Largest step in which the space for minutes grows. Doubling would waste half of it.
const STEP_MAX: usize = 64;

/// The numbers of a namespace by minute. Minutes in which nothing happened take no space, and those without problems take
/// eight bytes.
#[derive(Debug, Default)]
pub(super) struct Minutes {
    runs: ByMinute<u32>,
    problems: ByMinute<Problems>,
}

/// The rare part of a [`Cell`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Problems {
    late: u32,
    failed: u32,
    lost: u32,
}

/// Values by minute, the oldest first. The default value is not kept.
#[derive(Debug, Default)]
struct ByMinute<T>(Vec<(u32, T)>);

impl Minutes {
    pub(super) fn get(&self, minute: u32) -> Cell {
        cell(self.runs.get(minute), self.problems.get(minute))
    }

    pub(super) fn set(&mut self, minute: u32, cell: Cell) {
        let Cell {
            n_runs,
            n_late,
            n_failed,
            n_lost,
        } = cell;
        self.runs.set(minute, n_runs);
        self.problems.set(
            minute,
            Problems {
                late: n_late,
                failed: n_failed,
                lost: n_lost,
            },
        );
    }

    /// Takes the minutes before another.
    pub(super) fn take_before(&mut self, minute: u32) -> Vec<Cell> {
        let runs = self
            .runs
            .take_before(minute)
            .map(|runs| cell(runs, Problems::default()));
        let problems = self.problems.take_before(minute).map(|problems| cell(0, problems));
        runs.chain(problems).collect()
    }

    /// The cells from one minute to another, the last exclusive. The runs of a minute and its problems come apart.
    pub(super) fn between(&self, from: u32, to: u32) -> impl Iterator<Item = (u32, Cell)> {
        let runs = self.runs.between(from, to).iter();
        let runs = runs.map(|(minute, runs)| (*minute, cell(*runs, Problems::default())));
        let problems = self.problems.between(from, to).iter();
        runs.chain(problems.map(|(minute, problems)| (*minute, cell(0, *problems))))
    }
}

fn cell(n_runs: u32, problems: Problems) -> Cell {
    Cell {
        n_runs,
        n_late: problems.late,
        n_failed: problems.failed,
        n_lost: problems.lost,
    }
}

impl<T: Copy + Default + PartialEq> ByMinute<T> {
    fn place(&self, minute: u32) -> usize {
        self.0.partition_point(|(other, _)| *other < minute)
    }

    fn get(&self, minute: u32) -> T {
        let found = self.0.get(self.place(minute)).filter(|(other, _)| *other == minute);
        found.map_or_else(T::default, |(_, value)| *value)
    }

    fn set(&mut self, minute: u32, value: T) {
        let place = self.place(minute);
        let is_kept = value != T::default();
        match self.0.get_mut(place).filter(|(other, _)| *other == minute) {
            Some((_, known)) if is_kept => *known = value,
            Some(_) => {
                self.0.remove(place);
            }
            None if is_kept => {
                if self.0.len() == self.0.capacity() {
                    self.0.reserve_exact((self.0.len() / 4).clamp(4, STEP_MAX));
                }
                self.0.insert(place, (minute, value));
            }
            None => {}
        }
    }

    fn take_before(&mut self, minute: u32) -> impl Iterator<Item = T> {
        let place = self.place(minute);
        self.0.drain(..place).map(|(_, value)| value)
    }

    fn between(&self, from: u32, to: u32) -> &[(u32, T)] {
        let first = self.place(from);
        &self.0[first..self.place(to).max(first)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_come_back_as_they_were_set() {
        let mut minutes = Minutes::default();
        let late = Cell {
            n_late: 2,
            ..Cell::default()
        };
        let both = Cell { n_runs: 7, ..late };
        for (minute, value) in [
            (30, both),
            (10, late),
            (
                20,
                Cell {
                    n_runs: 1,
                    ..Cell::default()
                },
            ),
            (20, both),
        ] {
            minutes.set(minute, value);
            assert_eq!(minutes.get(minute), value, "minute {minute}");
        }
        assert_eq!(minutes.get(11), Cell::default());
        let sums = |from, to| {
            minutes.between(from, to).fold((0, 0), |(runs, late), (_, cell)| {
                (runs + cell.n_runs, late + cell.n_late)
            })
        };
        assert_eq!(
            (sums(0, 40), sums(10, 20), sums(11, 20), sums(20, 11)),
            ((14, 6), (0, 2), (0, 0), (0, 0))
        );
    }

    #[test]
    fn empty_and_old_minutes_are_not_kept() {
        let mut minutes = Minutes::default();
        for minute in 0..100 {
            minutes.set(
                minute,
                Cell {
                    n_runs: 1,
                    n_lost: minute % 2,
                    ..Cell::default()
                },
            );
        }
        minutes.set(50, Cell::default());
        let taken = minutes.take_before(60);
        let n_runs: u32 = taken.iter().map(|cell| cell.n_runs).sum();
        let n_lost: u32 = taken.iter().map(|cell| cell.n_lost).sum();
        assert_eq!(
            (n_runs, n_lost, minutes.runs.0.len(), minutes.problems.0.len()),
            (59, 30, 40, 20)
        );
    }
}
