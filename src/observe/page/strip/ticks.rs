//! The times above the strip.

use jiff::Timestamp;

use super::super::{clock::Clock, query::SPAN_MAX};
use crate::observe::view::Strip;

const HOUR_SECONDS: i64 = 3_600;

/// A stretch of the strip that a link zooms to.
pub(super) struct Tick {
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
    /// The time of day at its start.
    pub(super) label: String,
    pub(super) has_label: bool,
    /// Whether a zoom shows more than the strip does.
    pub(super) can_zoom: bool,
}

/// The stretches of a strip by its length in seconds: their length, and the distance between labels.
const STEPS_SECONDS: [(i64, i64, i64); 5] = [
    (20 * 60, 60, 60),
    (HOUR_SECONDS, 300, 300),
    (3 * HOUR_SECONDS, 900, 900),
    (14 * HOUR_SECONDS, HOUR_SECONDS, HOUR_SECONDS),
    (26 * HOUR_SECONDS, HOUR_SECONDS, 2 * HOUR_SECONDS),
];

/// The share of a strip in percent that a label needs, as an hour and with minutes. The end of the strip would cut it off.
const LABEL_PERCENT: (i64, i64) = (2, 4);

/// The stretches, aligned to the times of day of the home zone.
pub(super) fn ticks(strip: &Strip, clock: &Clock) -> Vec<Tick> {
    let (from, to) = (
        strip.from.as_second(),
        strip.to.as_second().min(strip.from.as_second() + SPAN_MAX.as_secs()),
    );
    let fitting = STEPS_SECONDS.into_iter().find(|(length, ..)| to - from <= *length);
    let (_, step, label_step) = fitting.unwrap_or((0, HOUR_SECONDS, 3 * HOUR_SECONDS));
    let is_hours = step == HOUR_SECONDS && to - from > 14 * HOUR_SECONDS;
    let label_percent = if is_hours { LABEL_PERCENT.0 } else { LABEL_PERCENT.1 };
    let has_room = |at: i64| (to - at) * 100 >= (to - from) * label_percent;
    let wall_seconds = |at: i64| at + i64::from(clock.home.offset_seconds_at(at));
    let first = from + (-wall_seconds(from)).rem_euclid(step);
    let mut ticks = Vec::new();
    let mut at = first;
    while at < to {
        let (Ok(start), Ok(end)) = (Timestamp::from_second(at), Timestamp::from_second(at + step)) else {
            break;
        };
        let time = clock.time_of_day(start);
        ticks.push(Tick {
            from: start,
            to: end,
            has_label: wall_seconds(at).rem_euclid(label_step) == 0 && has_room(at),
            // Whole hours need no minutes where there are many.
            label: if is_hours { time[..2].to_owned() } else { time },
            can_zoom: step > 60,
        });
        at += step;
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Zone;

    #[test]
    fn the_end_of_the_strip_cuts_no_label_off() {
        let labels = |from: &str, to: &str| {
            let [from, to] = [from, to].map(|at| at.parse().unwrap());
            let strip = Strip {
                from,
                to,
                cell_minutes: 15,
                now: from,
                rows: Vec::new(),
                peak: None,
                clock_changes: Vec::new(),
            };
            let ticks = ticks(&strip, &Clock::new(from, Zone::utc()));
            let labels = ticks.into_iter().filter(|tick| tick.has_label);
            labels.map(|tick| tick.label).collect::<Vec<_>>()
        };
        let day = labels("2026-11-26T12:15:00Z", "2026-11-28T12:15:00Z");
        assert_eq!((day.len(), day.last().unwrap().as_str()), (15, "09"));
        assert_eq!(
            labels("2026-11-26T13:15:00Z", "2026-11-28T13:15:00Z").last().unwrap(),
            "12"
        );
        let hour = labels("2026-11-26T12:02:00Z", "2026-11-26T13:02:00Z");
        assert_eq!(
            (hour.first().unwrap().as_str(), hour.last().unwrap().as_str()),
            ("12:05", "12:55")
        );
    }
}
