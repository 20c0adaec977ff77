//! What members must agree on before they share shards out, and what they may do only when all can.

use std::fmt;

use crate::state::sharding::{HASH_SCHEME, ShardCount};

/// What was fixed at installation. A replica that has it otherwise owns nothing, since its shards are other CronJobs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Installation {
    /// How many shards.
    pub shard_count: ShardCount,
    /// How a CronJob's bucket is found.
    pub hash_scheme: Box<str>,
}

impl Installation {
    /// One with the hash that this program knows.
    pub fn of(shard_count: ShardCount) -> Installation {
        Installation {
            shard_count,
            hash_scheme: HASH_SCHEME.into(),
        }
    }
}

impl fmt::Display for Installation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.shard_count.get(), self.hash_scheme)
    }
}

/// The versions of this protocol that a member can follow, both included.
///
/// Version 1 gives a shard away by leaving its Lease without a holder. Version 2 warms the next leader first, and hands
/// over with one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProtocolRange {
    /// The oldest.
    pub min: u16,
    /// The newest.
    pub max: u16,
}

impl ProtocolRange {
    /// What this program can.
    pub const OURS: ProtocolRange = ProtocolRange { min: 1, max: 2 };
    /// Since when a shard is handed over by a transfer.
    pub(super) const TRANSFER: u16 = 2;

    /// The newest version that all of these can follow; none where there is no such version.
    pub fn effective(ranges: impl Iterator<Item = ProtocolRange>) -> Option<u16> {
        let common = ranges.reduce(|common, range| ProtocolRange {
            min: common.min.max(range.min),
            max: common.max.min(range.max),
        })?;
        (common.min <= common.max).then_some(common.max)
    }

    /// From the text of an annotation.
    pub(super) fn parse(text: &str) -> Option<ProtocolRange> {
        let (min, max) = text.split_once('-')?;
        Some(ProtocolRange {
            min: min.parse().ok()?,
            max: max.parse().ok()?,
        })
    }
}

impl fmt::Display for ProtocolRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.min, self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_that_all_can_follow_is_followed() {
        let range = |(min, max)| ProtocolRange { min, max };
        for (ranges, effective) in [
            (vec![], None),
            (vec![(1, 2)], Some(2)),
            (vec![(1, 2), (1, 1), (1, 3)], Some(1)),
            (vec![(1, 2), (2, 3)], Some(2)),
            (vec![(1, 1), (2, 2)], None),
        ] {
            assert_eq!(
                ProtocolRange::effective(ranges.iter().copied().map(range)),
                effective,
                "{ranges:?}"
            );
        }
    }

    #[test]
    fn what_must_agree_is_read_as_it_was_written() {
        assert_eq!(
            Installation::of(ShardCount::default()).to_string(),
            "256/fnv1a64-uid-10"
        );
        assert_eq!(
            ProtocolRange::parse(&ProtocolRange::OURS.to_string()),
            Some(ProtocolRange::OURS)
        );
        assert_eq!(ProtocolRange::parse("2"), None);
    }
}
