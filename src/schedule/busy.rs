//! For how long Jobs have run: what held a slot back under Forbid.

use std::cmp::Reverse;

use jiff::Timestamp;

use super::{after, options::MISSED_AFTER};

/// The instant since which Jobs have run, one after the other with gaps of at most [`MISSED_AFTER`], until now. `None` if
/// none runs and none has just ended. A run is its begin and, if it has ended, its end.
///
/// It depends on the Jobs alone, so all replicas find the same one, whenever they began to lead.
pub fn busy_since(runs: impl Iterator<Item = (Timestamp, Option<Timestamp>)>, now: Timestamp) -> Option<Timestamp> {
    let mut runs: Vec<_> = runs.collect();
    runs.sort_by_key(|(_, end)| Reverse(end.unwrap_or(Timestamp::MAX)));
    let mut since = None;
    for (begin, end) in runs {
        let covered = since.unwrap_or(now);
        // The others have ended even earlier.
        if end.is_some_and(|end| after(end, MISSED_AFTER) < covered) {
            break;
        }
        since = Some(begin.min(covered));
    }
    since
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_without_a_longer_gap_than_a_minute_count_as_one() {
        let at = |text: &str| -> Timestamp { format!("2026-05-05T{text}Z").parse().unwrap() };
        for (runs, expected) in [
            (&[] as &[(&str, Option<&str>)], None),
            (&[("09:00:00", None)], Some("09:00:00")),
            (&[("09:00:00", Some("09:59:00"))], Some("09:00:00")),
            (&[("09:00:00", Some("09:58:59"))], None),
            (&[("09:00:00", Some("09:30:00")), ("09:31:00", None)], Some("09:00:00")),
            (&[("09:00:00", Some("09:30:00")), ("09:31:01", None)], Some("09:31:01")),
            (
                &[
                    ("09:50:00", None),
                    ("09:00:00", Some("09:20:00")),
                    ("09:10:00", Some("09:55:00")),
                ],
                Some("09:00:00"),
            ),
            // The clock of another machine is ahead.
            (&[("10:00:01", None)], Some("10:00:00")),
        ] {
            let runs = runs.iter().map(|(begin, end)| (at(begin), end.map(at)));
            assert_eq!(busy_since(runs, at("10:00:00")), expected.map(at));
        }
    }
}
