//! Which clients created Jobs in the last 24 hours.

use std::collections::BTreeMap;

use super::{cells::MINUTES_KEPT, second::Second};

/// Number of Jobs with slots by creator and minute of creation.
#[derive(Debug, Default)]
pub(super) struct Creators {
    /// By the number of the creator.
    activities: BTreeMap<u8, Activity>,
}

/// The Jobs of one creator.
#[derive(Debug)]
pub(super) struct Activity {
    by_minute: BTreeMap<u32, u32>,
    pub(super) n_jobs: u64,
    pub(super) last: Second,
}

impl Creators {
    pub(super) fn count(&mut self, creator: u8, created: Second) {
        let activity = self.activities.entry(creator).or_insert_with(|| Activity {
            by_minute: BTreeMap::new(),
            n_jobs: 0,
            last: created,
        });
        *activity.by_minute.entry(created.minute()).or_default() += 1;
        activity.n_jobs += 1;
        activity.last = activity.last.max(created);
    }

    /// Takes a Job back.
    pub(super) fn uncount(&mut self, creator: u8, created: Second) {
        let Some(activity) = self.activities.get_mut(&creator) else {
            return;
        };
        if let Some(n_jobs) = activity
            .by_minute
            .get_mut(&created.minute())
            .filter(|n_jobs| **n_jobs > 0)
        {
            *n_jobs -= 1;
            activity.n_jobs -= 1;
        }
    }

    /// Drops minutes that are more than a day old.
    pub(super) fn expire(&mut self, now: Second) {
        let oldest = now.minute().saturating_sub(MINUTES_KEPT);
        for activity in self.activities.values_mut() {
            while let Some(first) = activity.by_minute.first_entry().filter(|first| *first.key() < oldest) {
                activity.n_jobs -= u64::from(first.remove());
            }
        }
        self.activities.retain(|_, activity| activity.n_jobs > 0);
    }

    /// The creators with their Jobs.
    pub(super) fn activities(&self) -> impl Iterator<Item = (u8, &Activity)> {
        let active = self.activities.iter().filter(|(_, activity)| activity.n_jobs > 0);
        active.map(|(creator, activity)| (*creator, activity))
    }
}
