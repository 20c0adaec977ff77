//! Resource versions of the CronJobs and of the Jobs: those that a leader wrote or knew, which the next leader
//! must observe before it decides, and those that a replica has observed.

use std::fmt;

use crate::shard::ResourceVersion;

/// A pair of resource versions. Versions of one resource compare as numbers; those of different resources do not, since
/// each resource may have its own store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ResourceVersions {
    /// The version of CronJobs, which covers their statuses.
    pub cron_jobs: ResourceVersion,
    /// The version of Jobs.
    pub jobs: ResourceVersion,
}

impl ResourceVersions {
    /// Parses the text form. Returns `None` for any other text.
    pub fn parse(text: &str) -> Option<ResourceVersions> {
        let (cron_jobs, jobs) = text.split_once('/')?;
        Some(ResourceVersions {
            cron_jobs: ResourceVersion(cron_jobs.parse().ok()?),
            jobs: ResourceVersion(jobs.parse().ok()?),
        })
    }

    /// Whether an observer of `seen` has observed all of `self`.
    pub fn is_within(&self, seen: &ResourceVersions) -> bool {
        self.cron_jobs <= seen.cron_jobs && self.jobs <= seen.jobs
    }

    /// The lower version of each resource, which an observer of either pair has observed.
    #[must_use]
    pub fn min(&self, other: &ResourceVersions) -> ResourceVersions {
        ResourceVersions {
            cron_jobs: self.cron_jobs.min(other.cron_jobs),
            jobs: self.jobs.min(other.jobs),
        }
    }

    /// The higher version of each resource, which only an observer of both pairs has observed.
    #[must_use]
    pub fn max(&self, other: &ResourceVersions) -> ResourceVersions {
        ResourceVersions {
            cron_jobs: self.cron_jobs.max(other.cron_jobs),
            jobs: self.jobs.max(other.jobs),
        }
    }
}

impl fmt::Display for ResourceVersions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.cron_jobs, self.jobs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resource_versions_round_trip_and_compare_by_part() {
        let seen = |cron_jobs, jobs| ResourceVersions {
            cron_jobs: ResourceVersion(cron_jobs),
            jobs: ResourceVersion(jobs),
        };
        let written = seen(0, 30).max(&seen(41, 20));
        assert_eq!(written.to_string(), "41/30");
        assert_eq!(ResourceVersions::parse("41/30"), Some(written));
        for text in ["", "41", "41/", "/30", "41/30/1", "a/b"] {
            assert_eq!(ResourceVersions::parse(text), None, "{text}");
        }
        assert!(written.is_within(&seen(41, 30)) && written.is_within(&seen(50, 31)));
        assert!(!written.is_within(&seen(40, 90)) && !written.is_within(&seen(90, 29)));
    }
}
