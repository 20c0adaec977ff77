//! Parses the log lines of a replica about its shards, and derives handovers from the logs of all replicas.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

/// An event in the life of a shard, or of all shards of a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnKind {
    /// The replica holds the Lease of the shard.
    Takes {
        /// How the replica got the Lease, such as `handed over`.
        adoption: String,
    },
    /// The replica leads the shard.
    Leads,
    /// The replica starts no more Jobs for the shard.
    Sealed,
    /// The replica no longer holds the shard.
    Leaves {
        /// The reason, such as `HandedOver`.
        reason: String,
    },
    /// The replica has released all shards and joins again as a new member.
    JoinsAnew,
}

/// One log line about shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The time by the replica's own clock if the line has it, otherwise the time of the log line.
    pub at: Timestamp,
    /// The shard. Zero for lines about all shards.
    pub shard: u64,
    /// The term. Zero for lines about all shards.
    pub term: u64,
    /// The event.
    pub kind: TurnKind,
}

impl Turn {
    /// Parses a line. Returns `None` for lines about something else.
    pub(super) fn parse(line: &str) -> Option<Turn> {
        // Most lines are about something else, and this check is cheaper than decoding them.
        if !line.contains("\"shard\"") && !line.contains("lost its membership") {
            return None;
        }
        let line: Value = serde_json::from_str(line).ok()?;
        let text = |member: &str| line.get(member).and_then(Value::as_str);
        let owned = |member: &str| text(member).unwrap_or_default().to_owned();
        let kind = match text("message")? {
            "takes a shard" => TurnKind::Takes {
                adoption: owned("adoption"),
            },
            "leads" => TurnKind::Leads,
            "sealed" => TurnKind::Sealed,
            "leaves a shard" => TurnKind::Leaves {
                reason: owned("reason"),
            },
            message if message.starts_with("lost its membership") => TurnKind::JoinsAnew,
            _ => return None,
        };
        let number = |member: &str| line.get(member).and_then(Value::as_u64);
        Some(Turn {
            at: text("at").or_else(|| text("timestamp"))?.parse().ok()?,
            shard: number("shard").unwrap_or_default(),
            term: number("term").unwrap_or_default(),
            kind,
        })
    }
}

/// The handover of a shard from one replica to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handover {
    /// The shard.
    pub shard: u64,
    /// The term before the handover.
    pub term: u64,
    /// When the old leader stopped starting Jobs.
    pub sealed: Timestamp,
    /// When the new leader could start Jobs.
    pub live: Timestamp,
}

/// Returns the handovers in the logs of all replicas, by the time of the seal. Also returns the number of seals that
/// were not followed by a handover to a leader in the next term, because the shard was released or its target had died.
pub fn handovers<'a>(turns: impl IntoIterator<Item = &'a Turn>) -> (Vec<Handover>, usize) {
    let (mut sealed, mut handed, mut live) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for turn in turns {
        let key = (turn.shard, turn.term);
        match &turn.kind {
            TurnKind::Sealed => drop(sealed.insert(key, turn.at)),
            TurnKind::Takes { adoption } => drop(handed.insert(key, adoption == "handed over")),
            TurnKind::Leads => drop(live.entry(key).or_insert(turn.at)),
            TurnKind::Leaves { .. } | TurnKind::JoinsAnew => {}
        }
    }
    let n_sealed = sealed.len();
    let handover = |((shard, term), sealed)| {
        let next = (shard, term + 1);
        let is_handed_over = handed.get(&next).copied().unwrap_or_default();
        let live = live.get(&next).copied().filter(|_| is_handed_over)?;
        Some(Handover {
            shard,
            term,
            sealed,
            live,
        })
    };
    let mut found: Vec<Handover> = sealed.into_iter().filter_map(handover).collect();
    found.sort_by_key(|handover| handover.sealed);
    let n_without = n_sealed - found.len();
    (found, n_without)
}

/// Returns since when each shard has been led. Includes only shards that a living replica leads in the highest term
/// that any log mentions.
pub fn led_since<'a>(logs: impl IntoIterator<Item = (bool, &'a [Turn])>) -> BTreeMap<u64, Timestamp> {
    // For each shard, the highest term, and the time since which it is led in that term, if it is led.
    let mut last: BTreeMap<u64, (u64, Option<Timestamp>)> = BTreeMap::new();
    for (is_alive, turns) in logs {
        let mut own: BTreeMap<u64, (u64, Option<Timestamp>)> = BTreeMap::new();
        for turn in turns {
            let since = match turn.kind {
                TurnKind::JoinsAnew => {
                    for (_, since) in own.values_mut() {
                        *since = None;
                    }
                    continue;
                }
                TurnKind::Leads => Some(turn.at),
                TurnKind::Takes { .. } | TurnKind::Sealed | TurnKind::Leaves { .. } => None,
            };
            let entry = own.entry(turn.shard).or_default();
            if turn.term >= entry.0 {
                *entry = (turn.term, since);
            }
        }
        for (shard, (term, since)) in own {
            let since = since.filter(|_| is_alive);
            let entry = last.entry(shard).or_default();
            if term > entry.0 || (term == entry.0 && since.is_some()) {
                *entry = (term, since);
            }
        }
    }
    let led = |(shard, (_, since)): (u64, (u64, Option<Timestamp>))| Some((shard, since?));
    last.into_iter().filter_map(led).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millisecond: i64) -> Timestamp {
        Timestamp::from_millisecond(millisecond).unwrap()
    }

    fn turn(millisecond: i64, shard: u64, term: u64, kind: TurnKind) -> Turn {
        Turn {
            at: at(millisecond),
            shard,
            term,
            kind,
        }
    }

    fn takes(adoption: &str) -> TurnKind {
        TurnKind::Takes {
            adoption: adoption.to_owned(),
        }
    }

    fn leaves() -> TurnKind {
        TurnKind::Leaves {
            reason: "HandedOver".to_owned(),
        }
    }

    #[test]
    fn log_lines_are_parsed() {
        let log = |message: &str, rest: &str| {
            format!(
                r#"{{"timestamp":"2026-11-21T20:00:00.500000Z","level":"DEBUG","message":"{message}"{rest},"target":"cronwheel::controller::election"}}"#
            )
        };
        let check = |line: String, expected: Turn| assert_eq!(Turn::parse(&line), Some(expected), "{line}");
        let logged = 1_795_291_200_500;
        check(
            log("takes a shard", r#","shard":7,"term":3,"adoption":"handed over""#),
            turn(logged, 7, 3, takes("handed over")),
        );
        check(
            log("leads", r#","shard":7,"term":3,"at":"2026-11-21T20:00:00.25Z""#),
            turn(logged - 250, 7, 3, TurnKind::Leads),
        );
        check(
            log("sealed", r#","shard":7,"term":3,"at":"2026-11-21T20:00:00.25Z""#),
            turn(logged - 250, 7, 3, TurnKind::Sealed),
        );
        check(
            log("leaves a shard", r#","shard":7,"term":3,"reason":"HandedOver""#),
            turn(logged, 7, 3, leaves()),
        );
        check(
            log(
                "lost its membership: lets all shards go and joins anew",
                r#","reason":"Evicted""#,
            ),
            turn(logged, 0, 0, TurnKind::JoinsAnew),
        );
        assert_eq!(Turn::parse(&log("woken", r#","shard":"x""#)), None);
        assert_eq!(Turn::parse("shard"), None);
    }

    #[test]
    fn handover_lasts_from_the_seal_to_the_next_leader() {
        let given = [
            turn(0, 7, 1, TurnKind::Leads),
            turn(10, 7, 1, TurnKind::Sealed),
            turn(12, 7, 1, leaves()),
            turn(10, 8, 4, TurnKind::Sealed),
            turn(10, 9, 4, TurnKind::Sealed),
        ];
        let taken = [
            turn(13, 7, 2, takes("handed over")),
            turn(15, 7, 2, TurnKind::Leads),
            turn(30, 8, 5, takes("released")),
            turn(35, 8, 5, TurnKind::Leads),
        ];
        let expected = Handover {
            shard: 7,
            term: 1,
            sealed: at(10),
            live: at(15),
        };
        assert_eq!(handovers(given.iter().chain(&taken)), (vec![expected], 2));
    }

    #[test]
    fn led_shards_are_those_of_living_replicas_in_the_highest_term() {
        let dead = [turn(0, 1, 5, TurnKind::Leads), turn(0, 2, 5, TurnKind::Leads)];
        let former = [turn(0, 3, 1, TurnKind::Leads), turn(5, 0, 0, TurnKind::JoinsAnew)];
        let living = [
            turn(3, 1, 6, TurnKind::Leads),
            turn(3, 2, 4, TurnKind::Leads),
            turn(4, 4, 1, TurnKind::Leads),
            turn(9, 4, 1, TurnKind::Sealed),
            turn(9, 5, 1, takes("first")),
        ];
        let logs = [(false, &dead[..]), (true, &former[..]), (true, &living[..])];
        assert_eq!(led_since(logs), BTreeMap::from([(1, at(3))]));
    }
}
