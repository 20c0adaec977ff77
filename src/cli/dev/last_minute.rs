//! Counts what happened within the last minute.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};

/// The period of the counts.
pub(super) const WINDOW: SignedDuration = SignedDuration::from_mins(1);

/// A count for each second with one, so that its size does not depend on the number of starts.
#[derive(Default)]
pub(super) struct LastMinute {
    /// The start of each second and its count, oldest first.
    seconds: VecDeque<(i64, usize)>,
}

impl LastMinute {
    /// Counts something that happens now.
    pub(super) fn add(&mut self, now: Timestamp) {
        let second = now.as_second();
        match self.seconds.back_mut() {
            // A clock that was set back counts in the last second.
            Some((last, count)) if *last >= second => *count += 1,
            Some(_) | None => self.seconds.push_back((second, 1)),
        }
        self.forget(now);
    }

    /// Returns the count of the last sixty seconds.
    pub(super) fn count(&mut self, now: Timestamp) -> usize {
        self.forget(now);
        self.seconds.iter().map(|(_, count)| count).sum()
    }

    fn forget(&mut self, now: Timestamp) {
        let oldest = now.as_second() - WINDOW.as_secs();
        while self.seconds.front().is_some_and(|(second, _)| *second <= oldest) {
            self.seconds.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_sixty_seconds_count() {
        let at = |milliseconds| Timestamp::from_millisecond(milliseconds).unwrap();
        let mut minute = LastMinute::default();
        assert_eq!(minute.count(at(0)), 0);
        for milliseconds in [500, 900, 30_000] {
            minute.add(at(milliseconds));
        }
        assert_eq!(minute.count(at(59_999)), 3);
        assert_eq!(minute.count(at(60_000)), 1);
        minute.add(at(29_000));
        assert_eq!(minute.count(at(60_000)), 2, "the clock was set back");
        assert_eq!(minute.count(at(90_000)), 0);
        assert!(minute.seconds.is_empty());
    }
}
