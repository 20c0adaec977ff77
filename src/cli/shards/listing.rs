//! Members, shards and leaders, computed from Leases alone. It reads no clock; ages are computed when they are printed.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::known::Known;
use crate::{
    coordination::{
        Acceptance, Holder, LeaseKey, LeaseRecord, MemberIdentity, MemberLease, MemberSettings, ShardLease, annotation,
    },
    shard::{Bucket, ShardId},
};

/// The listing.
pub(in crate::cli) struct Listing {
    /// The members, by pod uid.
    pub(in crate::cli) members: BTreeMap<Box<str>, MemberRow>,
    /// All shards of the installation.
    pub(in crate::cli) shards: Vec<ShardRow>,
}

/// A member.
pub(in crate::cli) struct MemberRow {
    pub(in crate::cli) pod_uid: Box<str>,
    pub(in crate::cli) lease: MemberLease,
    pub(in crate::cli) n_shards: usize,
    pub(in crate::cli) state: MemberState,
}

/// Whether a member takes shards, and the reason if not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) enum MemberState {
    Takes,
    Starts,
    Drains,
    /// Members with another protocol version take shards.
    ProtocolDiffers {
        others: u16,
    },
    /// Members with other settings take shards.
    SettingsDiffer {
        others: MemberSettings,
    },
    /// The Lease shows no reason.
    Declines,
    /// The incarnation left.
    Left,
    Evicted {
        by: Box<str>,
    },
    /// The holder of its Lease is not a member.
    Usurped {
        by: Box<str>,
    },
}

/// A shard.
pub(in crate::cli) struct ShardRow {
    pub(in crate::cli) shard: ShardId,
    /// The first and the last of its buckets.
    pub(in crate::cli) buckets: (u16, u16),
    pub(in crate::cli) lease: Option<ShardLease>,
    /// Whether its holder is the current incarnation of a member.
    pub(in crate::cli) is_holder_member: bool,
    /// `None` if the account may not list the CronJobs.
    pub(in crate::cli) n_cron_jobs: Option<usize>,
}

impl Listing {
    pub(in crate::cli) fn of(known: &Known) -> Listing {
        let count = known.installation.shard_count;
        let shard_lease = |shard| known.leases.get(&LeaseKey::Shard(shard)).map(ShardLease::read);
        let leases: BTreeMap<ShardId, ShardLease> = count
            .shards()
            .filter_map(|shard| Some((shard, shard_lease(shard)?)))
            .collect();
        let mut n_led: BTreeMap<&MemberIdentity, usize> = BTreeMap::new();
        for holder in leases.values().filter_map(|lease| lease.holder.member()) {
            *n_led.entry(holder).or_default() += 1;
        }
        let members = members(known, &n_led);
        let n_cron_jobs = known.n_cron_jobs();
        let shards = count.shards().map(|shard| {
            let lease = leases.get(&shard).cloned();
            let holder = lease.as_ref().and_then(|lease| lease.holder.member());
            let is_present = |holder: &MemberIdentity| {
                members
                    .get(&holder.pod_uid)
                    .is_some_and(|row: &MemberRow| row.lease.holder.is(holder))
            };
            let n_buckets = Bucket::COUNT / count.get();
            ShardRow {
                shard,
                buckets: (shard.0 * n_buckets, shard.0 * n_buckets + n_buckets - 1),
                is_holder_member: holder.is_some_and(is_present),
                lease,
                n_cron_jobs: n_cron_jobs
                    .as_ref()
                    .map(|counts| counts.get(&shard).copied().unwrap_or(0)),
            }
        });
        Listing {
            shards: shards.collect(),
            members,
        }
    }
}

fn members(known: &Known, n_led: &BTreeMap<&MemberIdentity, usize>) -> BTreeMap<Box<str>, MemberRow> {
    let records = known.leases.iter().filter_map(|(key, record)| match key {
        LeaseKey::Member(pod_uid) => Some((pod_uid, record, MemberLease::read(record))),
        LeaseKey::Shard(_) => None,
    });
    let records: Vec<_> = records.collect();
    let takers = records.iter().filter(|(_, _, lease)| lease.takes_shards());
    let takers: Vec<MemberLease> = takers.map(|(_, _, lease)| lease.clone()).collect();
    let rows = records.into_iter().map(|(pod_uid, record, lease)| {
        let n_shards = lease.holder.member().and_then(|member| n_led.get(member));
        let row = MemberRow {
            pod_uid: pod_uid.clone(),
            n_shards: n_shards.copied().unwrap_or(0),
            state: member_state(record, &lease, &takers),
            lease,
        };
        (pod_uid.clone(), row)
    });
    rows.collect()
}

fn member_state(record: &LeaseRecord, lease: &MemberLease, takers: &[MemberLease]) -> MemberState {
    match &lease.holder {
        Holder::Member(_) => {}
        Holder::NotAMember(by) => return MemberState::Usurped { by: by.clone() },
        Holder::Nobody => {
            let evicted_by = record.annotations.get(annotation::EVICTED_BY);
            return evicted_by.map_or(MemberState::Left, |by| MemberState::Evicted { by: by.clone() });
        }
    }
    if lease.is_draining {
        return MemberState::Drains;
    }
    match lease.acceptance {
        Acceptance::Now => return MemberState::Takes,
        Acceptance::Soon => return MemberState::Starts,
        Acceptance::No => {}
    }
    let mut protocols = takers.iter().map(|taker| taker.protocol);
    if let Some(others) = protocols.find(|others| *others != lease.protocol) {
        return MemberState::ProtocolDiffers { others };
    }
    let mut other_settings = takers.iter().filter_map(|taker| taker.settings.as_ref());
    let differing = lease
        .settings
        .as_ref()
        .and_then(|ours| other_settings.find(|theirs| *theirs != ours));
    differing.map_or(MemberState::Declines, |others| MemberState::SettingsDiffer {
        others: others.clone(),
    })
}

impl MemberRow {
    /// Returns the name of the Pod if it is known, otherwise its uid.
    pub(in crate::cli) fn pod(&self) -> &str {
        self.lease
            .holder
            .member()
            .map_or(&self.pod_uid, |member| &member.pod_name)
    }

    /// Whether its renewal is overdue, by the local clock.
    pub(in crate::cli) fn is_silent(&self, now: Timestamp) -> bool {
        let limit = SignedDuration::from_secs(self.lease.duration_secs.into());
        let is_alive = self.lease.holder.member().is_some();
        is_alive && self.lease.renewed_at.is_some_and(|at| now.duration_since(at) > limit)
    }
}
