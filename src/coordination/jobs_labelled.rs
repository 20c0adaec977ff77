//! The proof that every Job of a CronJob has the label of its shard. With it, a replica that takes a shard does not list
//! the Jobs without that label, most of which may belong to no CronJob.

use std::fmt;

use jiff::{SignedDuration, Timestamp};

use crate::shard::ResourceVersion;

/// As of `version`, every Job that a CronJob controls had the label of its shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobsLabelled {
    /// An instant at which `version` was not older than the current version.
    pub at: Timestamp,
    /// The version.
    pub version: ResourceVersion,
}

impl JobsLabelled {
    /// The maximum age of a proof that counts. It is less than a minute, the shortest interval of a cron schedule. So a
    /// Job that has lost its label since the proof is on the active list of its CronJob, and is looked up by name, or it
    /// is the Job of the last slot, and is found by its name when the slot is decided. The age is more than a replica
    /// needs to prove it again, and more than it needs to take the shards of a replica that has crashed.
    pub const AGE_MAX: SignedDuration = SignedDuration::from_secs(45);

    /// Whether the proof counts at this instant. The instants may be of different clocks.
    pub fn counts_at(&self, now: Timestamp) -> bool {
        now.duration_since(self.at).abs() <= Self::AGE_MAX
    }

    /// Parses the text of an annotation.
    pub fn parse(text: &str) -> Option<JobsLabelled> {
        let (at, version) = text.split_once(' ')?;
        Some(JobsLabelled {
            at: at.parse().ok()?,
            version: ResourceVersion(version.parse().ok()?),
        })
    }
}

/// The text of an annotation.
impl fmt::Display for JobsLabelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.at, self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_round_trips() {
        let proof = JobsLabelled {
            at: "2026-05-05T12:00:30.25Z".parse().unwrap(),
            version: ResourceVersion(1_234),
        };
        assert_eq!(proof.to_string(), "2026-05-05T12:00:30.25Z 1234");
        assert_eq!(JobsLabelled::parse(&proof.to_string()), Some(proof));
        for text in [
            "",
            "noon 7",
            "2026-05-05T12:00:30Z",
            "2026-05-05T12:00:30Z -1",
            "2026-05-05T12:00:30Z 1 2",
        ] {
            assert_eq!(JobsLabelled::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_proof_is_valid_for_45_seconds() {
        let at = |text: &str| -> Timestamp { format!("2026-05-05T{text}Z").parse().unwrap() };
        let proof = JobsLabelled {
            at: at("12:01:00"),
            version: ResourceVersion(1),
        };
        for (now, counts) in [
            ("12:01:00", true),
            ("12:01:45", true),
            ("12:01:45.001", false),
            ("12:00:58", true),
            ("12:00:14", false),
        ] {
            assert_eq!(proof.counts_at(at(now)), counts, "{now}");
        }
    }
}
