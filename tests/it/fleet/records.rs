//! The records of a fleet: events with their authors, in order. The oracle judges them.

use std::collections::BTreeMap;

use cronwheel::shard::{Bucket, ShardCount, Uid};
use jiff::{SignedDuration, Timestamp};

use super::{
    load::Plan,
    options::{AskedRun, PlanOptions},
};

/// The maximum delay of an Event behind a burst of creates.
const REPORTED_WITHIN: SignedDuration = SignedDuration::from_secs(10);

/// All records of a fleet.
#[derive(Debug)]
pub(super) struct Records {
    pub(super) shard_count: ShardCount,
    pub(super) cron_jobs: BTreeMap<String, CronJob>,
    /// Every Job that ever existed, by uid.
    pub(super) jobs: BTreeMap<String, Job>,
    /// The changes of each shard's Lease.
    pub(super) shards: BTreeMap<u16, Vec<ShardChange>>,
    /// The changes of each member's Lease, by Pod uid.
    pub(super) members: BTreeMap<String, Vec<MemberChange>>,
    /// The replicas' writes to CronJobs and Jobs, in order.
    pub(super) writes: Vec<Write>,
    /// The writes that replicas requested, successful or not, in order: time, process and CronJob.
    pub(super) requested_writes: Vec<(Timestamp, u64, String)>,
    /// Descriptions of status cursors that moved backwards.
    pub(super) cursors_back: Vec<String>,
    /// Descriptions of shards that two processes led at the same time.
    pub(super) led_twice: Vec<String>,
    pub(super) n_lease_writes: u64,
    /// The number of lists of Jobs, without requests for the current version.
    pub(super) n_job_lists: u64,
    /// The number of creates of a Job that already existed.
    pub(super) n_exists: u64,
    /// The number of creates that admission denied.
    pub(super) n_denied: u64,
    /// The runs that users asked for.
    pub(super) asked: Vec<AskedRun>,
    /// The Warnings of each CronJob: time and reason.
    pub(super) warnings: BTreeMap<String, Vec<(Timestamp, String)>>,
}

#[derive(Debug)]
pub(super) struct CronJob {
    pub(super) plan: Plan,
    pub(super) uid: String,
    pub(super) options: PlanOptions,
    pub(super) created: Timestamp,
    /// When it was deleted, suspended or rescheduled. It has no further runs.
    pub(super) ended: Option<Timestamp>,
    pub(super) shard: u16,
    pub(super) cursor: Option<Timestamp>,
}

#[derive(Debug)]
pub(super) struct Job {
    pub(super) name: String,
    /// The name of the CronJob that owns it.
    pub(super) owner: String,
    pub(super) slot: Option<Timestamp>,
    /// The token of the run that was asked for.
    pub(super) token: Option<String>,
    pub(super) created: Timestamp,
    pub(super) ended: Option<Timestamp>,
}

/// A version of a shard's Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShardChange {
    pub(super) version: u64,
    pub(super) at: Timestamp,
    /// The holder: a process and its life. `None` if the Lease has no holder.
    pub(super) holder: Option<Holder>,
    /// `None` if the Lease is deleted.
    pub(super) term: Option<u64>,
    /// Whether the previous leader wrote the holder, as a transfer.
    pub(super) is_transfer: bool,
}

/// A life of a process. A process starts a new life each time it joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Holder {
    pub(super) process: u64,
    pub(super) life: u64,
}

impl Holder {
    /// The maximum number of lives of a process.
    const LIVES: u64 = 1 << 16;

    pub(super) fn of_incarnation(incarnation: u64) -> Holder {
        Holder {
            process: incarnation / Self::LIVES,
            life: incarnation % Self::LIVES,
        }
    }

    pub(super) fn incarnation(self) -> u64 {
        self.process * Self::LIVES + self.life
    }

    /// Parses `spec.holderIdentity`.
    pub(super) fn parse(identity: &str) -> Option<Holder> {
        let (_, incarnation) = identity.rsplit_once('/')?;
        Some(Holder::of_incarnation(u64::from_str_radix(incarnation, 16).ok()?))
    }
}

/// A version of a member's Lease.
#[derive(Clone, Debug)]
pub(super) struct MemberChange {
    pub(super) at: Timestamp,
    pub(super) holder: Option<Holder>,
    pub(super) evicted_by: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteKind {
    Create,
    Delete,
    Status,
}

/// A successful write of a replica.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) version: u64,
    pub(super) at: Timestamp,
    pub(super) process: u64,
    pub(super) kind: WriteKind,
    pub(super) cron_job: String,
    pub(super) object: String,
}

impl Records {
    pub(super) fn new(shard_count: ShardCount) -> Records {
        Records {
            shard_count,
            cron_jobs: BTreeMap::new(),
            jobs: BTreeMap::new(),
            shards: BTreeMap::new(),
            members: BTreeMap::new(),
            writes: Vec::new(),
            requested_writes: Vec::new(),
            cursors_back: Vec::new(),
            led_twice: Vec::new(),
            n_lease_writes: 0,
            n_job_lists: 0,
            n_exists: 0,
            n_denied: 0,
            asked: Vec::new(),
            warnings: BTreeMap::new(),
        }
    }

    pub(super) fn add_cron_job(&mut self, plan: Plan, uid: &str, created: Timestamp) {
        let shard = Bucket::of(&Uid::new(uid)).shard(self.shard_count).0;
        let cron_job = CronJob {
            created,
            ended: None,
            shard,
            cursor: None,
            uid: uid.to_owned(),
            options: PlanOptions::default(),
            plan,
        };
        self.cron_jobs.insert(cron_job.plan.name.clone(), cron_job);
    }

    /// The current holder of each shard, according to its Lease.
    pub(super) fn holders(&self) -> BTreeMap<u16, Holder> {
        let holder = |(shard, changes): (&u16, &Vec<ShardChange>)| Some((*shard, changes.last()?.holder?));
        self.shards.iter().filter_map(holder).collect()
    }

    /// Whether an Event reported that a create failed, after this slot was due and before its successor could fail.
    pub(super) fn is_reported(&self, plan: &Plan, slot: Timestamp) -> bool {
        let until = slot + plan.period() + REPORTED_WITHIN;
        let is_it = |(at, reason): &(Timestamp, String)| reason == "FailedCreate" && (slot..until).contains(at);
        self.warnings
            .get(&plan.name)
            .is_some_and(|warnings| warnings.iter().any(is_it))
    }

    pub(super) fn held_by(&self, process: u64) -> Vec<u16> {
        let holders = self.holders();
        let held = holders.iter().filter(|(_, holder)| holder.process == process);
        held.map(|(shard, _)| *shard).collect()
    }

    /// The number of moves of each shard from one process to another since an instant.
    pub(super) fn moves_since(&self, since: Timestamp) -> BTreeMap<u16, usize> {
        let moves = |changes: &Vec<ShardChange>| {
            let mut holder = None;
            let mut n_moves = 0;
            for change in changes {
                let Some(next) = change.holder else { continue };
                let is_move = holder.is_some_and(|holder: Holder| holder.process != next.process);
                n_moves += usize::from(is_move && change.at >= since);
                holder = Some(next);
            }
            n_moves
        };
        self.shards
            .iter()
            .map(|(shard, changes)| (*shard, moves(changes)))
            .collect()
    }

    /// The first time after an instant at which another process held a shard.
    pub(super) fn taken_from(&self, process: u64, shard: u16, after: Timestamp) -> Option<Timestamp> {
        let changes = self.shards.get(&shard)?;
        let is_other = |holder: Holder| holder.process != process;
        let taken = changes
            .iter()
            .find(|change| change.at >= after && change.holder.is_some_and(is_other))?;
        Some(taken.at)
    }
}
