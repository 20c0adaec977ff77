//! The activations of a CronJob, by arithmetic on minutes and a table of five nights, without schedule parser and zone
//! data.

use jiff::{SignedDuration, Timestamp};

use crate::random::Random;

/// A time zone with a single change of its offset. Offsets are in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Zone {
    pub(super) name: &'static str,
    /// When the offset changes, in seconds since the epoch.
    changes_at: i64,
    before: i64,
    after: i64,
}

/// The nights on which simulations are centred, each with a zone. The offsets of all zones but the first change then.
const NIGHTS: [Zone; 5] = [
    // 2026-05-05T00:00:00Z, an ordinary night.
    zone("Asia/Kolkata", 1_777_939_200, 19_800, 19_800),
    // 2026-03-29T01:00:00Z and 2026-10-25T01:00:00Z.
    zone("Europe/Berlin", 1_774_746_000, 3_600, 7_200),
    zone("Europe/Berlin", 1_792_890_000, 7_200, 3_600),
    // 2026-03-08T07:00:00Z and 2026-11-01T06:00:00Z.
    zone("America/New_York", 1_772_953_200, -18_000, -14_400),
    zone("America/New_York", 1_793_512_800, -14_400, -18_000),
];

const fn zone(name: &'static str, changes_at: i64, before: i64, after: i64) -> Zone {
    Zone {
        name,
        changes_at,
        before,
        after,
    }
}

impl Zone {
    pub(super) fn draw(random: &mut Random) -> Zone {
        random.pick(&NIGHTS)
    }

    /// The start of a simulation of this length that is centred on the night. The start is half past a minute.
    pub(super) fn start(&self, length: SignedDuration) -> Timestamp {
        let half = (length.as_secs() / 2).min(12 * 3600) / 60 * 60;
        Timestamp::from_second(self.changes_at - half - 150).unwrap()
    }

    /// The date of the night by UTC, as the number of days since the epoch.
    pub(super) fn day_of_change(&self) -> i64 {
        self.changes_at.div_euclid(86_400)
    }

    /// The time that the clock shows, in seconds since the epoch.
    fn wall(&self, second: i64) -> i64 {
        let offset = if second < self.changes_at {
            self.before
        } else {
            self.after
        };
        second + offset
    }

    /// Whether the clock shows this minute of a day, or a later time, for the first time (O-6.1).
    fn is_first_at(&self, minute: i64, second: i64) -> bool {
        let last_before_change = Some(self.changes_at).filter(|changes_at| *changes_at < second);
        let shown = [second, last_before_change.unwrap_or(second)].map(|second| self.wall(second - 60));
        let n_days = |wall: i64| (wall - minute * 60).div_euclid(86_400);
        shown.into_iter().all(|shown| n_days(shown) < n_days(self.wall(second)))
    }

    /// The minute of the local day.
    fn minute_of_day(&self, second: i64) -> i64 {
        self.wall(second).rem_euclid(86_400) / 60
    }
}

/// A schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Calendar {
    /// Every n minutes. A divisor of 60 and of every zone's offset.
    Minutes(i64),
    /// At this minute of each local hour.
    Hourly { minute: i64, zone: Zone },
    /// At this minute of each local day, and with `clock-change: once` exactly once.
    Daily { minute: i64, zone: Zone, is_once: bool },
    /// Every n seconds from an anchor.
    Every { seconds: i64 },
}

impl Calendar {
    /// Draws a schedule. Most schedules have short periods, so that runs are always due. `zone` is the zone of the
    /// night. `start` and `length` determine the times of day that occur.
    pub(super) fn draw(random: &mut Random, zone: Zone, start: Timestamp, length: SignedDuration) -> Calendar {
        match random.below(24) {
            0 => Calendar::Hourly {
                minute: random.between(0, 59),
                zone,
            },
            1 | 2 => {
                let some_time = start.as_second() + random.between(0, length.as_secs());
                let minute = zone.minute_of_day(some_time);
                let around_the_change = random.pick(&[0, 60, 90, 119, 120, 150, 179, 180]);
                Calendar::Daily {
                    minute: random.pick(&[minute, minute, around_the_change]),
                    zone,
                    is_once: false,
                }
            }
            3 => Calendar::Every {
                seconds: random.pick(&[60, 61, 90, 150, 420, 3_600]),
            },
            4 => Calendar::Minutes(random.pick(&[15, 30])),
            5 | 6 => Calendar::Minutes(random.pick(&[2, 3, 5, 10])),
            _ => Calendar::Minutes(1),
        }
    }

    /// `spec.schedule`.
    pub(super) fn text(&self) -> String {
        match self {
            Calendar::Minutes(1) => "* * * * *".to_owned(),
            Calendar::Minutes(n) => format!("*/{n} * * * *"),
            Calendar::Hourly { minute, .. } => format!("{minute} * * * *"),
            Calendar::Daily { minute, .. } => format!("{} {} * * *", minute % 60, minute / 60),
            Calendar::Every { seconds } => format!("@every {seconds}s"),
        }
    }

    /// `spec.timeZone`.
    pub(super) fn time_zone(&self) -> Option<&'static str> {
        match self {
            Calendar::Hourly { zone, .. } | Calendar::Daily { zone, .. } => Some(zone.name),
            Calendar::Minutes(_) | Calendar::Every { .. } => None,
        }
    }

    /// Draws `clock-change: once` for a schedule that it changes.
    pub(super) fn draw_clock_change(&mut self, random: &mut Random) {
        if let Calendar::Daily { is_once, .. } = self {
            *is_once = random.is_one_in(3);
        }
    }

    /// The annotation `clock-change`.
    pub(super) fn clock_change(&self) -> Option<&'static str> {
        matches!(self, Calendar::Daily { is_once: true, .. }).then_some("once")
    }

    /// The shortest time between two activations on a clock without changes.
    pub(super) fn shortest_seconds(&self) -> i64 {
        match self {
            Calendar::Minutes(n) => n * 60,
            Calendar::Hourly { .. } => 3_600,
            Calendar::Daily { .. } => 86_400,
            Calendar::Every { seconds } => *seconds,
        }
    }

    /// The date of an instant in the zone, as the number of days since the epoch.
    pub(super) fn day(&self, instant: Timestamp) -> i64 {
        let second = instant.as_second();
        let wall = match self {
            Calendar::Hourly { zone, .. } | Calendar::Daily { zone, .. } => zone.wall(second),
            Calendar::Minutes(_) | Calendar::Every { .. } => second,
        };
        wall.div_euclid(86_400)
    }

    /// The activations from `from` until before `until`, in order. Those of `Every` start after `anchor`.
    pub(super) fn slots(&self, anchor: Timestamp, from: Timestamp, until: Timestamp) -> Vec<Timestamp> {
        let (begun, period) = match self {
            Calendar::Every { seconds } => (anchor.as_second() + seconds, *seconds),
            Calendar::Minutes(n) => (0, n * 60),
            Calendar::Hourly { .. } | Calendar::Daily { .. } => (0, 60),
        };
        let n_periods = (from.as_second() - begun + period - 1).div_euclid(period).max(0);
        let mut slots = Vec::new();
        let mut second = begun + n_periods * period;
        while second <= until.as_second() {
            let slot = Timestamp::from_second(second).unwrap();
            if (from..until).contains(&slot) && self.is_due(second) {
                slots.push(slot);
            }
            second += period;
        }
        slots
    }

    /// Whether an instant of the grid is an activation.
    fn is_due(&self, second: i64) -> bool {
        match self {
            Calendar::Minutes(_) | Calendar::Every { .. } => true,
            Calendar::Hourly { minute, zone } => zone.minute_of_day(second) % 60 == *minute,
            Calendar::Daily { minute, zone, is_once } if *is_once => zone.is_first_at(*minute, second),
            Calendar::Daily { minute, zone, .. } => zone.minute_of_day(second) == *minute,
        }
    }
}

#[test]
fn daily_slot_is_skipped_or_repeated_on_nights_of_a_clock_change() {
    let at = |text: &str| text.parse::<Timestamp>().unwrap();
    let half_past_two = |zone: Zone, is_once: bool| {
        let change = Timestamp::from_second(zone.changes_at).unwrap();
        let calendar = Calendar::Daily {
            minute: 150,
            zone,
            is_once,
        };
        let day = SignedDuration::from_hours(12);
        calendar.slots(change, change - day, change + day)
    };
    assert_eq!(half_past_two(NIGHTS[0], true), half_past_two(NIGHTS[0], false));
    assert_eq!(half_past_two(NIGHTS[1], false), []);
    assert_eq!(half_past_two(NIGHTS[1], true), [at("2026-03-29T01:00:00Z")]);
    let twice = ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"].map(at);
    assert_eq!(half_past_two(NIGHTS[2], false), twice);
    assert_eq!(half_past_two(NIGHTS[2], true), twice[..1]);
    let of_new_york = half_past_two(NIGHTS[4], false);
    assert_eq!(of_new_york, [at("2026-11-01T07:30:00Z")], "one is repeated there");
    let every = Calendar::Every { seconds: 90 };
    let slots = every.slots(
        at("2026-05-05T12:00:10Z"),
        at("2026-05-05T12:00:00Z"),
        at("2026-05-05T12:04:00Z"),
    );
    assert_eq!(slots, ["2026-05-05T12:01:40Z", "2026-05-05T12:03:10Z"].map(at));
}
