//! What a leader of a shard wrote last or goes by: what the next one must have seen before it decides anything.

use std::fmt;

use crate::state::ResourceVersion;

/// The latest versions of a shard's CronJobs and Jobs that its leader has written or goes by, and those up to which somebody
/// has seen all. Versions of one resource compare as
/// numbers; those of different resources do not, as each may have a store of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WrittenThrough {
    /// Of a status.
    pub cron_jobs: ResourceVersion,
    /// Of a new Job.
    pub jobs: ResourceVersion,
}

impl WrittenThrough {
    /// From its text; none where it is not of this form.
    pub fn parse(text: &str) -> Option<WrittenThrough> {
        let (cron_jobs, jobs) = text.split_once('/')?;
        Some(WrittenThrough {
            cron_jobs: ResourceVersion(cron_jobs.parse().ok()?),
            jobs: ResourceVersion(jobs.parse().ok()?),
        })
    }

    /// Whether whoever has seen so much has seen all of this.
    pub fn is_within(&self, seen: &WrittenThrough) -> bool {
        self.cron_jobs <= seen.cron_jobs && self.jobs <= seen.jobs
    }

    /// What whoever has seen either has seen.
    #[must_use]
    pub fn min(&self, other: &WrittenThrough) -> WrittenThrough {
        WrittenThrough {
            cron_jobs: self.cron_jobs.min(other.cron_jobs),
            jobs: self.jobs.min(other.jobs),
        }
    }

    /// What whoever has seen both has seen.
    #[must_use]
    pub fn max(&self, other: &WrittenThrough) -> WrittenThrough {
        WrittenThrough {
            cron_jobs: self.cron_jobs.max(other.cron_jobs),
            jobs: self.jobs.max(other.jobs),
        }
    }

    /// Takes note of a status that was written.
    pub fn note_status(&mut self, version: ResourceVersion) {
        self.cron_jobs = self.cron_jobs.max(version);
    }

    /// Takes note of a Job that was created.
    pub fn note_job(&mut self, version: ResourceVersion) {
        self.jobs = self.jobs.max(version);
    }
}

impl fmt::Display for WrittenThrough {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.cron_jobs, self.jobs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_it_was_written_and_compares_part_by_part() {
        let mut written = WrittenThrough::default();
        written.note_job(ResourceVersion(30));
        written.note_job(ResourceVersion(20));
        written.note_status(ResourceVersion(41));
        assert_eq!(written.to_string(), "41/30");
        assert_eq!(WrittenThrough::parse("41/30"), Some(written));
        for text in ["", "41", "41/", "/30", "41/30/1", "a/b"] {
            assert_eq!(WrittenThrough::parse(text), None, "{text}");
        }
        let seen = |cron_jobs, jobs| WrittenThrough {
            cron_jobs: ResourceVersion(cron_jobs),
            jobs: ResourceVersion(jobs),
        };
        assert!(written.is_within(&seen(41, 30)) && written.is_within(&seen(50, 31)));
        assert!(!written.is_within(&seen(40, 90)) && !written.is_within(&seen(90, 29)));
    }
}
