//! Seeded random schedules, zones and instants.

use std::fmt;

use super::{Zone, zone as load};

/// A small generator (`SplitMix64`). Failing tests print its `Display`.
pub(super) struct Random {
    seed: u64,
    state: u64,
}

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random { seed, state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `min` to `max` inclusive.
    pub(super) fn between(&mut self, min: i64, max: i64) -> i64 {
        let width = max.abs_diff(min) + 1;
        min + i64::try_from(self.next() % width).unwrap()
    }

    pub(super) fn pick<'a, T: ?Sized>(&mut self, items: &[&'a T]) -> &'a T {
        let last = i64::try_from(items.len()).unwrap() - 1;
        items[usize::try_from(self.between(0, last)).unwrap()]
    }
}

impl fmt::Display for Random {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "seed {:#x}, state {:#x}", self.seed, self.state)
    }
}

/// Zones with unusual rules, each of a different kind, and a few ordinary ones. None of them skips a day.
const ZONES: [&str; 26] = [
    "UTC",
    "Africa/Cairo",
    "Africa/Casablanca",
    "America/Asuncion",
    "America/Havana",
    "America/New_York",
    "America/Nuuk",
    "America/Santiago",
    "America/Sao_Paulo",
    "America/St_Johns",
    "Antarctica/Casey",
    "Antarctica/Troll",
    "Asia/Amman",
    "Asia/Beirut",
    "Asia/Gaza",
    "Asia/Kathmandu",
    "Asia/Kolkata",
    "Asia/Tehran",
    "Atlantic/Azores",
    "Australia/Lord_Howe",
    "Europe/Berlin",
    "Europe/Dublin",
    "Europe/London",
    "Pacific/Auckland",
    "Pacific/Chatham",
    "Pacific/Easter",
];

pub(super) fn zone(random: &mut Random) -> Zone {
    load(random.pick(&ZONES))
}

/// An instant from 2000 to 2036. Three in four are within three days of a change of the zone.
pub(super) fn instant(random: &mut Random, zone: &Zone) -> i64 {
    let anywhere = random.between(946_684_800, 2_082_758_400);
    let span = zone.span_at(anywhere);
    let reach = *random.pick(&[&7_200, &93_600, &259_200]);
    match random.between(0, 3) {
        1 | 2 if span.end != i64::MAX => span.end + random.between(-reach, reach),
        3 if span.start != i64::MIN => span.start + random.between(-reach, reach),
        _ => anywhere,
    }
}

/// Five fields in all forms.
pub(super) fn schedule_text(random: &mut Random) -> String {
    [(0, 59), (0, 23), (1, 31), (1, 12), (0, 6)]
        .map(|(min, max)| field(random, min, max))
        .join(" ")
}

fn field(random: &mut Random, min: i64, max: i64) -> String {
    match random.between(0, 9) {
        0..=3 => "*".to_owned(),
        4 => format!("*/{}", random.between(1, max)),
        5 | 6 => random.between(min, max).to_string(),
        _ => {
            let n_items = random.between(1, 3);
            (0..n_items)
                .map(|_| item(random, min, max))
                .collect::<Vec<_>>()
                .join(",")
        }
    }
}

fn item(random: &mut Random, min: i64, max: i64) -> String {
    let low = random.between(min, max);
    match random.between(0, 3) {
        0 => low.to_string(),
        1 => format!("{low}-{}", random.between(low, max)),
        2 => format!("{low}-{}/{}", random.between(low, max), random.between(1, 9)),
        _ => format!("{low}/{}", random.between(1, 20)),
    }
}
