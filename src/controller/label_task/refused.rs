//! Queue of Jobs whose label was refused. They are tried again later, so that they delay no other Job.
//!
//! Bounded: a full queue drops a Job and counts it. The next list of Jobs without a label returns it.

use std::{collections::BTreeMap, time::Duration};

use crate::shard::{BootInstant, JobRecord, Uid, back_off::BackOff};

/// Pause after the first refusal. Each further refusal doubles it.
const PAUSE_MIN: Duration = Duration::from_millis(250);

/// Maximum pause: a policy that always refuses costs one request per Job in this time.
pub(super) const PAUSE_MAX: Duration = Duration::from_mins(5);

const PAUSES: BackOff = BackOff {
    first: PAUSE_MIN,
    longest: PAUSE_MAX,
};

/// Capacity of the queue. With names of maximum length, the Jobs take about 2 MiB.
pub(super) const WAITING_MAX: usize = 4096;

/// A Job and its number of refusals.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) job: JobRecord,
    pub(super) n_refusals: u32,
}

/// The queue, ordered by the instant of the next attempt.
#[derive(Debug, Default)]
pub(super) struct RefusedJobs(BTreeMap<(BootInstant, Uid), Refused>);

impl RefusedJobs {
    /// Returns the number of waiting Jobs.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a refused Job. Returns false if the queue was full and a Job was dropped. It is a Job of the namespace with
    /// the most waiting Jobs, so that a tenant whose policy refuses every label displaces no other tenant.
    pub(super) fn put(&mut self, refused: Refused, now: BootInstant) -> bool {
        let uid = refused.job.uid.clone();
        self.take(&uid);
        let again_at = now + PAUSES.after(refused.n_refusals);
        self.0.insert((again_at, uid), refused);
        if self.len() <= WAITING_MAX {
            return true;
        }
        let crowded = self.most_crowded_namespace();
        let is_crowding = |(_, refused): &(_, &Refused)| Some(&refused.job.namespace) == crowded.as_ref();
        let last = self.0.iter().rev().find(is_crowding).map(|(place, _)| place.clone());
        if let Some(place) = last {
            self.0.remove(&place);
        }
        false
    }

    fn most_crowded_namespace(&self) -> Option<Box<str>> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for refused in self.0.values() {
            *counts.entry(&*refused.job.namespace).or_default() += 1;
        }
        counts
            .into_iter()
            .max_by_key(|(_, count)| *count)
            .map(|(namespace, _)| namespace.into())
    }

    /// Removes a Job that the watch delivered again. Returns its number of refusals.
    pub(super) fn take(&mut self, uid: &Uid) -> u32 {
        let place = self.0.keys().find(|(_, waiting)| waiting == uid).cloned();
        let refused = place.and_then(|place| self.0.remove(&place));
        refused.map_or(0, |refused| refused.n_refusals)
    }

    /// Returns the instant of the first attempt that is due.
    pub(super) fn next_at(&self) -> Option<BootInstant> {
        self.0.keys().next().map(|(at, _)| *at)
    }

    /// Removes the Job whose attempt has been due for the longest time.
    pub(super) fn pop_due(&mut self, now: BootInstant) -> Option<Refused> {
        let first = self.0.first_entry().filter(|first| first.key().0 <= now)?;
        Some(first.remove())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::{ResourceVersion, ShardLabels};

    fn refused(name: &str, n_refusals: u32) -> Refused {
        Refused {
            job: JobRecord {
                uid: Uid::new(name),
                namespace: "default".into(),
                name: name.into(),
                resource_version: ResourceVersion(1),
                controller: None,
                scheduled: None,
                finish: None,
                started: None,
                completed: None,
                shard_labels: ShardLabels::default(),
            },
            n_refusals,
        }
    }

    fn at(millis: u64) -> BootInstant {
        BootInstant::after_boot(Duration::from_millis(millis))
    }

    #[test]
    fn a_refused_job_is_retried_with_doubling_back_off() {
        for (n_refusals, millis) in [
            (1, 250),
            (2, 500),
            (3, 1_000),
            (11, 256_000),
            (12, 300_000),
            (99, 300_000),
        ] {
            let mut jobs = RefusedJobs::default();
            assert!(jobs.put(refused("a", n_refusals), at(0)));
            assert_eq!(jobs.next_at(), Some(at(millis)), "{n_refusals}");
            assert!(jobs.pop_due(at(millis - 1)).is_none(), "{n_refusals}");
            assert_eq!(jobs.pop_due(at(millis)).unwrap().n_refusals, n_refusals);
            assert_eq!((jobs.len(), jobs.next_at()), (0, None));
        }
    }

    #[test]
    fn a_job_is_queued_once_and_the_longest_due_comes_first() {
        let mut jobs = RefusedJobs::default();
        jobs.put(refused("a", 3), at(0));
        jobs.put(refused("b", 1), at(0));
        jobs.put(refused("b", 2), at(0));
        assert_eq!(jobs.len(), 2);
        assert_eq!(&*jobs.pop_due(at(5_000)).unwrap().job.name, "b");
        assert_eq!(jobs.take(&Uid::new("a")), 3);
        assert_eq!(jobs.take(&Uid::new("a")), 0);
        assert!(jobs.pop_due(at(5_000)).is_none());
    }

    #[test]
    fn a_full_queue_drops_a_job_of_the_largest_namespace() {
        let mut jobs = RefusedJobs::default();
        for number in 0..WAITING_MAX {
            assert!(jobs.put(refused(&number.to_string(), 1), at(0)));
        }
        assert!(jobs.put(refused("0", 2), at(0)), "it waits already");
        let mut other = refused("other", 9);
        other.job.namespace = "shop".into();
        assert!(!jobs.put(other, at(0)));
        assert_eq!(
            jobs.take(&Uid::new("other")),
            9,
            "it waits in the place of one of the others"
        );
        assert!(jobs.put(refused("one more", 1), at(0)));
        assert!(!jobs.put(refused("yet one more", 1), at(0)));
        assert_eq!(jobs.len(), WAITING_MAX);
    }
}
