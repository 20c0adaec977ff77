//! The time for which a controller was at its limit.
//!
//! Most slots lie on whole minutes, and a controller with time to spare creates their Jobs at once. At its limit it
//! creates some in every second, at a steady rate, until it has caught up.

use jiff::SignedDuration;

use super::second::Second;
use crate::observe::view::BusyTime;

/// Seconds that are counted.
const SECONDS: usize = 3_600;
/// A shorter time is no sign of a limit.
const SECONDS_MIN: usize = 10;
/// A client may send some requests at once after a pause.
const BURST_SECONDS: usize = 2;

/// Number of Jobs by the second of their creation.
pub(super) struct Pace {
    since: Second,
    by_second: Vec<u32>,
}

impl Pace {
    /// Of the hour after this second.
    pub(super) fn since(since: Second) -> Pace {
        Pace {
            since,
            by_second: vec![0; SECONDS + 1],
        }
    }

    pub(super) fn count(&mut self, created: Second) {
        let second = usize::try_from(created.since(self.since)).ok();
        if let Some(number) = second.and_then(|second| self.by_second.get_mut(second)) {
            *number += 1;
        }
    }

    /// The longest time at the limit; of two, the later one.
    pub(super) fn longest_busy_time(&self) -> Option<BusyTime> {
        let mut begin = 0;
        let mut longest: Option<(usize, &[u32])> = None;
        for part in self.by_second.chunk_by(|a, b| (*a == 0) == (*b == 0)) {
            if is_at_limit(part) && longest.is_none_or(|(_, other)| other.len() <= part.len()) {
                longest = Some((begin, part));
            }
            begin += part.len();
        }
        let (begin, part) = longest?;
        let seconds = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        Some(BusyTime {
            from: self.since.plus(seconds(begin)).timestamp(),
            duration: SignedDuration::from_secs(seconds(part.len())),
            jobs_per_second: mean(&part[BURST_SECONDS..]),
        })
    }
}

/// Whether seconds that follow each other have new Jobs all, and none many more than the others.
fn is_at_limit(seconds: &[u32]) -> bool {
    if seconds.len() < SECONDS_MIN || seconds[0] == 0 {
        return false;
    }
    let steady = &seconds[BURST_SECONDS..];
    let most = steady.iter().copied().max().unwrap_or_default();
    u64::from(most) <= 2 * mean(steady)
}

/// The mean of numbers, rounded. It is at least 1 if all of them are.
fn mean(numbers: &[u32]) -> u64 {
    let (sum, len) = (
        numbers.iter().copied().map(u64::from).sum::<u64>(),
        numbers.len() as u64,
    );
    (sum + len / 2).checked_div(len).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    /// At seconds after ten o'clock, so many Jobs each.
    fn longest(parts: &[(i64, i64, usize)]) -> Option<(String, i64, u64)> {
        let ten: Timestamp = "2026-05-05T10:00:00Z".parse().unwrap();
        let mut pace = Pace::since(Second::floor(ten));
        for (from, to, n_jobs) in parts {
            for second in *from..*to {
                for _ in 0..*n_jobs {
                    pace.count(Second::floor(ten).plus(second));
                }
            }
        }
        let busy = pace.longest_busy_time()?;
        let from = busy.from.strftime("%H:%M:%S").to_string();
        Some((from, busy.duration.as_secs(), busy.jobs_per_second))
    }

    #[test]
    fn a_steady_rate_for_a_long_time_is_a_limit() {
        for (parts, expected) in [
            (&[][..], None),
            // 500 Jobs at once.
            (&[(0, 1, 500)], None),
            (&[(0, 2, 250)], None),
            // Two minutes, in which it needs 58 s and 20 s after a burst.
            (
                &[(60, 61, 15), (61, 118, 9), (120, 121, 15), (121, 140, 9)],
                Some(("10:01:00", 58, 9)),
            ),
            // Of two that are as long, the later one counts.
            (&[(60, 80, 9), (120, 140, 5)], Some(("10:02:00", 20, 5))),
            // It never catches up.
            (&[(60, 600, 9)], Some(("10:01:00", 540, 9))),
            // Less than ten seconds.
            (&[(60, 69, 9)], None),
            // A few in many seconds, and most of them at once.
            (&[(60, 80, 1), (70, 71, 40)], None),
            // Pauses.
            (&[(60, 65, 9), (66, 71, 9), (72, 77, 9)], None),
            // A slow API server is a limit too.
            (&[(60, 90, 1), (70, 80, 1)], Some(("10:01:00", 30, 1))),
            // Another hour.
            (&[(3_601, 3_700, 9)], None),
        ] {
            let expected = expected.map(|(from, seconds, rate)| (from.to_owned(), seconds, rate));
            assert_eq!(longest(parts), expected, "{parts:?}");
        }
    }
}
