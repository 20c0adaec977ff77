//! Tiles and controllers: the first part of the page.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::{
    Fleet,
    busy_time::Pace,
    rows,
    second::{Second, start_of_minute},
    slot_record::{Outcome, SlotRecord},
};
use crate::observe::{
    facts::Creator,
    view::{BusyTime, ControllerActivity, Overview, Tiles},
};

const HOUR: SignedDuration = SignedDuration::from_hours(1);

impl Fleet {
    /// The first part of the page. The caller adds the advice.
    pub fn overview(&self, now: Timestamp) -> Overview {
        Overview {
            now,
            tiles: self.tiles(now),
            controllers: self.controllers(now),
            known_since: self.known_since(),
            attention: self.attention(now),
            advice: Vec::new(),
        }
    }

    /// The figures of the tiles.
    pub fn tiles(&self, now: Timestamp) -> Tiles {
        let second = Second::floor(now);
        let day = self.cells.day();
        let mut tiles = Tiles {
            n_cron_jobs: self.cron_jobs.n_named(),
            n_failed: day.failed,
            n_lost: day.lost,
            n_late: day.late,
            n_due_next_hour: self.n_due_within_hour(now),
            ..Tiles::default()
        };
        for cron_job in self.cron_jobs.sorted() {
            let is_suspended = cron_job.facts.as_deref().is_some_and(|facts| facts.is_suspended);
            tiles.n_suspended += usize::from(is_suspended);
            tiles.n_never += usize::from(rows::is_never(cron_job));
            let n_running = cron_job.n_running();
            tiles.n_running += n_running;
            tiles.n_cron_jobs_running += usize::from(n_running > 0);
            tiles.n_late_now += usize::from(rows::is_late_now(cron_job, second));
        }
        tiles
    }

    /// Number of starts in the hour after the minute of `now`, whose own starts are due already.
    fn n_due_within_hour(&self, now: Timestamp) -> u64 {
        let next_minute = start_of_minute(Second::floor(now).minute() + 1);
        let end = now.saturating_add(HOUR).unwrap_or(now);
        self.forecast.n_starts_between(next_minute, end)
    }

    fn controllers(&self, now: Timestamp) -> Vec<ControllerActivity> {
        let mut lateness = self.lateness_of_last_hour(now);
        let activities = self.creators.activities();
        let mut controllers: Vec<ControllerActivity> = activities
            .map(|(id, activity)| ControllerActivity {
                creator: self.ids.creator(id).clone(),
                n_jobs: activity.n_jobs,
                last: activity.last.timestamp(),
                lateness_p50: lateness.get_mut(&id).and_then(|seconds| median(seconds)),
                busy_time: self.busy_time(id, now),
            })
            .collect();
        controllers.sort_by(|a, b| b.n_jobs.cmp(&a.n_jobs).then_with(|| a.creator.cmp(&b.creator)));
        controllers
    }

    /// The lateness of the Jobs of the last hour in seconds, by creator.
    fn lateness_of_last_hour(&self, now: Timestamp) -> BTreeMap<u8, Vec<u32>> {
        let since = Second::floor(now).plus(-HOUR.as_secs());
        let mut lateness: BTreeMap<u8, Vec<u32>> = BTreeMap::new();
        for cron_job in self.cron_jobs.sorted() {
            let recent = cron_job.slots.iter().rev().take_while(|slot| slot.at >= since);
            for slot in recent.filter(|slot| slot.has_job() && !slot.is_backfilled()) {
                let seconds = slot.created.since(slot.startable());
                lateness.entry(slot.creator).or_default().push(seconds);
            }
        }
        lateness
    }

    /// The longest time of the last hour for which the built-in controller was at its limit. Jobs that nobody saw come do
    /// not count: those that are still kept would tell of a lower rate.
    fn busy_time(&self, creator: u8, now: Timestamp) -> Option<BusyTime> {
        if *self.ids.creator(creator) != Creator::BuiltIn {
            return None;
        }
        let since = Second::floor(now).plus(-HOUR.as_secs());
        let mut pace = Pace::since(since);
        for cron_job in self.cron_jobs.sorted() {
            let recent = cron_job.slots.iter().rev().take_while(|slot| slot.at >= since);
            // A slot of `@every` may lie on any second.
            let created = recent.filter(|slot| {
                let is_of_minute = slot.at.is_whole_minute() && slot.startable() == slot.at;
                is_of_minute && slot.has_job() && slot.creator == creator
            });
            let namespace = &cron_job.name.namespace;
            for slot in created.filter(|slot| self.observations.covers(namespace, slot.at, slot.created)) {
                pace.count(slot.created);
            }
        }
        pace.longest_busy_time()
    }

    fn known_since(&self) -> Option<Timestamp> {
        let cron_jobs = self.cron_jobs.sorted();
        let is_known = |slot: &&SlotRecord| slot.outcome != Outcome::NotObserved;
        let oldest = cron_jobs.filter_map(|cron_job| cron_job.slots.iter().find(is_known));
        // Without a Job, that is the instant of the slot.
        let oldest = oldest.map(|slot| slot.created.timestamp());
        oldest.chain(self.observations.first()).min()
    }
}

fn median(seconds: &mut [u32]) -> Option<SignedDuration> {
    let place = seconds.len().div_ceil(2).checked_sub(1)?;
    let (_, median, _) = seconds.select_nth_unstable(place);
    Some(SignedDuration::from_secs((*median).into()))
}
