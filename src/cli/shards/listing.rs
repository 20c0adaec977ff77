//! Members, shards and leaders, computed from Leases alone. It reads no clock; ages are computed when they are printed.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::known::Known;
use crate::{
    coordination::{
        Acceptance, Holder, Installation, LeaseKey, LeaseRecord, MemberIdentity, MemberLease, MemberSettings,
        ShardLease, annotation,
    },
    shard::{Bucket, ShardId},
};

/// The listing.
pub(super) struct Listing {
    /// The members, by pod uid.
    pub(super) members: BTreeMap<Box<str>, MemberRow>,
    /// All shards of the installation.
    pub(super) shards: Vec<ShardRow>,
}

/// A member.
pub(super) struct MemberRow {
    pub(super) pod_uid: Box<str>,
    pub(super) lease: MemberLease,
    pub(super) n_shards: usize,
    pub(super) state: MemberState,
}

/// Whether a member takes shards, and the reason if not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MemberState {
    Takes,
    /// It runs all CronJobs by itself (`--alone`).
    RunsAlone,
    Starts,
    Drains,
    /// It is configured with other constants than the installation.
    InstallationDiffers {
        theirs: Box<str>,
    },
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
pub(super) struct ShardRow {
    pub(super) shard: ShardId,
    /// The first and the last of its buckets.
    pub(super) buckets: (u16, u16),
    pub(super) lease: Option<ShardLease>,
    /// Whether its holder is the current incarnation of a member.
    pub(super) is_holder_member: bool,
    /// `None` if the account may not list the CronJobs.
    pub(super) n_cron_jobs: Option<usize>,
}

impl Listing {
    pub(super) fn of(known: &Known) -> Listing {
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
    let read = |record: &LeaseRecord| MemberLease::read(record, known.installation.shard_count);
    let records = known.leases.iter().filter_map(|(key, record)| match key {
        LeaseKey::Member(pod_uid) => Some((pod_uid, record, read(record))),
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
            state: member_state(record, &lease, &known.installation, &takers),
            lease,
        };
        (pod_uid.clone(), row)
    });
    rows.collect()
}

fn member_state(
    record: &LeaseRecord,
    lease: &MemberLease,
    installation: &Installation,
    takers: &[MemberLease],
) -> MemberState {
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
    let is_alone = lease.settings.as_ref().is_some_and(MemberSettings::is_alone);
    match lease.acceptance {
        Acceptance::Now if is_alone => return MemberState::RunsAlone,
        Acceptance::Now => return MemberState::Takes,
        Acceptance::Soon => return MemberState::Starts,
        Acceptance::No => {}
    }
    if !is_alone && *lease.installation != installation.to_string() {
        return MemberState::InstallationDiffers {
            theirs: lease.installation.clone(),
        };
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
    pub(super) fn pod(&self) -> &str {
        self.lease
            .holder
            .member()
            .map_or(&self.pod_uid, |member| &member.pod_name)
    }

    /// Whether its renewal is overdue, by the local clock.
    pub(super) fn is_silent(&self, now: Timestamp) -> bool {
        let limit = SignedDuration::from_secs(self.lease.duration_secs.into());
        let is_alive = self.lease.holder.member().is_some();
        is_alive && self.lease.renewed_at.is_some_and(|at| now.duration_since(at) > limit)
    }
}
