//! One CronJob with its Jobs and slots.

use std::{collections::BTreeMap, time::Duration};

use jiff::{SignedDuration, Timestamp};

use super::{Case, SKEW, catch_up::Hold, obstructions::Obstructions};
use crate::{
    naive_options::CatchUp,
    sim::{
        scenario::{Scenario, Spec},
        user::job_name,
        world::{CronJob, Deleter, Deletion, Job, World},
    },
};

pub(super) struct View<'a> {
    pub(super) cron_job: &'a CronJob,
    /// The Jobs that it controls, in the order of creation.
    pub(super) jobs: Vec<&'a Job>,
    /// For each of these Jobs, the latest slot up to it.
    last_slots: Vec<Option<Timestamp>>,
    /// The Jobs that users created for it.
    pub(super) manual: Vec<&'a Job>,
    /// The Jobs in another namespace that name it as their controller.
    pub(super) strangers: Vec<&'a Job>,
    /// The Jobs that controllers created, by slot.
    pub(super) runs: BTreeMap<Timestamp, Vec<&'a Job>>,
    pub(super) epochs: Vec<Epoch>,
    /// Every activation during the existence of the CronJob, in order, without those that a calendar excludes.
    pub(super) slots: Vec<Slot>,
    /// The starts of the activations that a calendar excludes, in order.
    pub(super) excluded: Vec<Timestamp>,
    /// The suspensions and freezes, in the order of their ends.
    pub(super) holds: Vec<Hold>,
    /// Every `missed-runs` with its `on-resume` that the CronJob ever had.
    pub(super) rules: Vec<[CatchUp; 2]>,
    /// Jobs without a controller reference, by name. Jobs of the same name existed one after the other.
    foreign: &'a BTreeMap<&'a str, Vec<&'a Job>>,
}

/// A period with one schedule.
pub(super) struct Epoch {
    /// The first spec with the schedule.
    pub(super) spec: Spec,
    pub(super) from: Timestamp,
    pub(super) until: Timestamp,
}

/// An activation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) at: Timestamp,
    /// The slot with the offset of `spread`.
    pub(super) start: Timestamp,
    /// The end of the slot: the next start, the end of the schedule, or the end of the CronJob.
    pub(super) over: Timestamp,
    /// The end of the schedule.
    pub(super) epoch_until: Timestamp,
    /// The time from which the schedule applies. `None` for the first schedule.
    pub(super) changed: Option<Timestamp>,
}

impl<'a> View<'a> {
    /// Returns the views of every CronJob that ever existed.
    pub(super) fn all(case: &Case<'a>) -> Vec<View<'a>> {
        let world = case.world;
        let mut jobs_by_owner = world.jobs_by_owner();
        let mut by_name: BTreeMap<&str, Vec<&Job>> = BTreeMap::new();
        for job in std::mem::take(&mut jobs_by_owner.free) {
            by_name.entry(&job.name).or_default().push(job);
        }
        // All views share the map. The test leaks it, which costs little memory.
        let foreign: &BTreeMap<&str, Vec<&Job>> = Box::leak(Box::new(by_name));
        let view = |cron_job: &'a CronJob| {
            let mut jobs = jobs_by_owner.owned.remove(cron_job.uid.as_str()).unwrap_or_default();
            let strangers = jobs_by_owner.strangers.remove(cron_job.uid.as_str());
            jobs.sort_by_key(|job| job.created);
            let mut runs: BTreeMap<Timestamp, Vec<&Job>> = BTreeMap::new();
            for job in &jobs {
                if let Some(slot) = job.slot {
                    runs.entry(slot).or_default().push(job);
                }
            }
            let mut last_slot = None;
            let mut last_slot_up_to = |job: &&Job| {
                last_slot = job.slot.max(last_slot);
                last_slot
            };
            let epochs = epochs(cron_job, case.end);
            View {
                slots: slots(cron_job, &epochs),
                excluded: excluded(cron_job, &epochs),
                holds: Hold::all(case, cron_job),
                rules: rules(cron_job),
                cron_job,
                last_slots: jobs.iter().map(&mut last_slot_up_to).collect(),
                manual: jobs.iter().filter(|job| !job.is_run()).copied().collect(),
                strangers: strangers.unwrap_or_default(),
                jobs,
                runs,
                epochs,
                foreign,
            }
        };
        world.cron_jobs.iter().map(view).collect()
    }

    /// The latest slot of the Jobs created before an instant.
    pub(super) fn last_slot_before(&self, instant: Timestamp) -> Option<Timestamp> {
        let n_before = self.jobs.partition_point(|job| job.created < instant);
        self.last_slots[..n_before].last().copied().flatten()
    }

    /// The Jobs created between two instants.
    pub(super) fn jobs_created(&self, from: Timestamp, until: Timestamp) -> &[&'a Job] {
        let begin = self.jobs.partition_point(|job| job.created < from);
        let end = self.jobs.partition_point(|job| job.created <= until);
        &self.jobs[begin..end.max(begin)]
    }

    /// The specs that applied at any time between two instants.
    pub(super) fn specs(&self, from: Timestamp, until: Timestamp) -> &'a [(Timestamp, Spec)] {
        let specs = &self.cron_job.specs;
        let begin = specs.partition_point(|(since, _)| *since <= from).saturating_sub(1);
        let end = specs.partition_point(|(since, _)| *since <= until).max(begin + 1);
        &specs[begin..end]
    }

    /// The last Job without a controller reference that had the name of the Job for this slot at its time.
    pub(super) fn foreign_job(&self, slot: Timestamp) -> Option<&'a Job> {
        let name = job_name(&self.cron_job.name, slot);
        let jobs = self.foreign.get(name.as_str()).into_iter().flatten().copied();
        let is_there = |job: &&Job| job.deleted.is_none_or(|deletion| deletion.at > slot - SKEW);
        jobs.filter(is_there).max_by_key(|job| job.created)
    }

    /// The Jobs without a controller reference that have names of Jobs of this CronJob.
    pub(super) fn foreign_jobs(&self) -> impl Iterator<Item = &'a Job> {
        let prefix = format!("{}-", self.cron_job.name);
        let named = self.foreign.range(prefix.as_str()..);
        let is_its = |(name, _): &(&&str, &Vec<&'a Job>)| name.starts_with(&prefix);
        let its: Vec<&Job> = named.take_while(is_its).flat_map(|(_, jobs)| jobs).copied().collect();
        its.into_iter()
    }

    /// The time from which the schedule of the spec at `since` applies.
    pub(super) fn calendar_since(&self, since: Timestamp) -> Timestamp {
        let epochs = &self.epochs;
        let after = epochs.partition_point(|epoch| epoch.from <= since);
        epochs[after.max(1) - 1].from
    }

    pub(super) fn freezes(&self) -> impl Iterator<Item = &Hold> {
        self.holds.iter().filter(|hold| hold.is_freeze)
    }

    /// Whether a freeze forbids starts at an instant for every controller that knows the state of `known_at`.
    pub(super) fn is_frozen(&self, known_at: Timestamp, at: Timestamp) -> bool {
        self.freezes()
            .any(|freeze| freeze.from < known_at && at < freeze.until - SKEW)
    }
}

/// The times of an epoch, as slots: they start an offset later. The creation, which has whole seconds, is no slot.
fn span_of_slots(cron_job: &CronJob, epoch: &Epoch) -> (Timestamp, Timestamp, SignedDuration) {
    let offset = epoch.spec.offset(&cron_job.uid);
    let from = (epoch.from - offset).max(cron_job.created + SignedDuration::from_nanos(1));
    (from, epoch.until - offset, offset)
}

fn slots(cron_job: &CronJob, epochs: &[Epoch]) -> Vec<Slot> {
    let mut slots = Vec::new();
    for (number, epoch) in epochs.iter().enumerate() {
        let (from, until, offset) = span_of_slots(cron_job, epoch);
        let instants = epoch.spec.slots(cron_job.created, from, until);
        let starts = instants.iter().map(|at| *at + offset);
        let ends = starts.clone().skip(1).chain([epoch.until]);
        slots.extend(instants.iter().zip(starts).zip(ends).map(|((at, start), over)| Slot {
            at: *at,
            start,
            over,
            epoch_until: epoch.until,
            changed: (number > 0).then_some(epoch.from),
        }));
    }
    slots
}

fn excluded(cron_job: &CronJob, epochs: &[Epoch]) -> Vec<Timestamp> {
    let of_epoch = |epoch: &Epoch| {
        let (from, until, offset) = span_of_slots(cron_job, epoch);
        let mut instants = epoch.spec.calendar.slots(cron_job.created, from, until);
        instants.retain(|at| epoch.spec.options.excludes(&epoch.spec.calendar, *at));
        instants.into_iter().map(move |at| at + offset).collect::<Vec<_>>()
    };
    epochs.iter().flat_map(of_epoch).collect()
}

fn rules(cron_job: &CronJob) -> Vec<[CatchUp; 2]> {
    let mut rules: Vec<[CatchUp; 2]> = Vec::new();
    for (_, spec) in &cron_job.specs {
        let both = [spec.options.missed_runs(), spec.options.on_resume()];
        if !rules.contains(&both) {
            rules.push(both);
        }
    }
    rules
}

fn epochs(cron_job: &CronJob, end: Timestamp) -> Vec<Epoch> {
    let until = cron_job.deleted.unwrap_or(end);
    let mut epochs: Vec<Epoch> = Vec::new();
    for (since, spec) in &cron_job.specs {
        match epochs.last_mut() {
            Some(last) if last.spec.calendar == spec.calendar => {}
            last => {
                if let Some(last) = last {
                    last.until = *since;
                }
                epochs.push(Epoch {
                    spec: *spec,
                    from: *since,
                    until,
                });
            }
        }
    }
    epochs
}

#[test]
fn job_name_of_a_slot_may_be_reused_after_a_deletion() {
    let slot: Timestamp = "2026-03-08T04:24:00Z".parse().unwrap();
    let before = |seconds| slot - SignedDuration::from_secs(seconds);
    let taken = |uid: &str, from: i64, until: Option<i64>| Job {
        namespace: "default".to_owned(),
        uid: uid.to_owned(),
        name: job_name("job-08", slot),
        owner: None,
        slot: None,
        token: None,
        created: before(from),
        finished: None,
        completed: None,
        deleted: until.map(|until| Deletion {
            at: before(until),
            version: 1,
            by: Deleter::Others,
        }),
    };
    let scenario = Scenario::new(1, Duration::from_mins(20));
    let gone = || taken("1", 100, Some(79));
    let there = || taken("2", 17, None);
    for jobs in [[gone(), there()], [there(), gone()]] {
        let mut world = World::default();
        world.begin(CronJob {
            name: "job-08".to_owned(),
            uid: "0".to_owned(),
            created: before(600),
            specs: vec![(before(600), scenario.specs[0])],
            deleted: None,
            statuses: Vec::new(),
        });
        for job in jobs {
            world.begin_job(job);
        }
        let case = Case {
            scenario: &scenario,
            world: &world,
            obstructions: Obstructions::new(&scenario, &world),
            end: slot,
        };
        let view = &View::all(&case)[0];
        assert_eq!(view.foreign_job(slot).map(|job| job.created), Some(before(17)));
        assert_eq!(view.foreign_jobs().count(), 2);
    }
}
