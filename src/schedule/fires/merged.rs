//! The times of several schedules as one ascending sequence.

use super::WallTimes;

/// The wall-clock seconds after `wall` of all schedules, each once for every schedule that has it. A step searches one
/// schedule: a search may take microseconds, and a sequence thousands of steps.
pub(super) fn times_after(schedules: Vec<&dyn WallTimes>, wall: i64) -> impl Iterator<Item = i64> {
    let first = |schedule: &&dyn WallTimes| schedule.first_after(wall);
    let mut nexts: Vec<Option<i64>> = schedules.iter().map(first).collect();
    std::iter::from_fn(move || {
        let filled = nexts
            .iter()
            .enumerate()
            .filter_map(|(place, next)| Some(((*next)?, place)));
        let (earliest, place) = filled.min()?;
        nexts[place] = schedules[place].first_after(earliest);
        Some(earliest)
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Multiples of a period up to a last one, and the number of searches for them.
    struct Counted {
        period: i64,
        last: i64,
        n_searches: Cell<usize>,
    }

    impl WallTimes for Counted {
        fn first_after(&self, wall: i64) -> Option<i64> {
            self.n_searches.set(self.n_searches.get() + 1);
            let next = (wall.div_euclid(self.period) + 1) * self.period;
            (next <= self.last).then_some(next)
        }

        fn last_until(&self, _wall: i64, _wall_min: i64) -> Option<i64> {
            None
        }
    }

    #[test]
    fn a_step_searches_only_the_schedule_whose_time_was_taken() {
        let counted = |period, last| Counted {
            period,
            last,
            n_searches: Cell::new(0),
        };
        let schedules = [counted(2, 100), counted(3, 6), counted(90, 100), counted(1, 0)];
        let sources = schedules.iter().map(|schedule| schedule as &dyn WallTimes).collect();
        let times: Vec<i64> = times_after(sources, 0).take(8).collect();
        assert_eq!(times, [2, 3, 4, 6, 6, 8, 10, 12]);
        assert_eq!(schedules.map(|schedule| schedule.n_searches.get()), [7, 3, 1, 1]);
    }
}
