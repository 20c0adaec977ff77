//! Tests of a response that delivers a Lease ahead of the watch, with an incarnation that the watch has not
//! delivered.

use std::{collections::BTreeMap, time::Duration};

use super::{
    super::{Election, ElectionConfig, Guards},
    history::listed,
};
use crate::{
    coordination::{
        ElectionEffect, ElectionInput, Incarnation, Installation, LeaseAnswer, LeaseKey, LeaseRecord, MemberSettings,
        PROTOCOL_VERSION, RequestId, Timing, annotation,
    },
    shard::{BootInstant, ResourceVersion, ShardCount, ShardId, ShardReport},
};

pub(super) fn at(seconds: u64) -> BootInstant {
    BootInstant::after_boot(Duration::from_secs(seconds))
}

pub(super) fn lease(key: LeaseKey, version: u64, holder: &str) -> LeaseRecord {
    let installation = Installation::of(ShardCount::ONE).to_string();
    let protocol = PROTOCOL_VERSION.to_string();
    let annotations = [
        (annotation::ACCEPTS, "now"),
        (annotation::INSTALLATION, &installation),
        (annotation::PROTOCOL, &protocol),
        (annotation::RENEWAL, "1"),
    ];
    LeaseRecord {
        key,
        resource_version: ResourceVersion(version),
        holder: holder.into(),
        duration_secs: 10,
        transitions: version,
        renewed_at: None,
        acquired_at: None,
        annotations: BTreeMap::from(annotations.map(|(name, text)| (name.into(), text.into()))),
    }
}

/// The request among these effects that concerns a Lease.
fn request(effects: &[ElectionEffect], wanted: &LeaseKey) -> Option<RequestId> {
    effects.iter().find_map(|effect| {
        let (request, key) = match effect {
            ElectionEffect::Write { request, write, .. } => (request, &write.key),
            ElectionEffect::Read { request, key } | ElectionEffect::Delete { request, key, .. } => (request, key),
            ElectionEffect::Relist
            | ElectionEffect::ActUntil(_)
            | ElectionEffect::Fence
            | ElectionEffect::Lead { .. }
            | ElectionEffect::Stop { .. }
            | ElectionEffect::Seal(_)
            | ElectionEffect::Rejoin(_)
            | ElectionEffect::Left
            | ElectionEffect::Exit(_) => return None,
        };
        (key == wanted).then_some(*request)
    })
}

pub(super) fn config() -> ElectionConfig {
    ElectionConfig {
        pod_name: "pod".into(),
        pod_uid: "us".into(),
        incarnation: Incarnation(1),
        revision: "one".into(),
        protocol: PROTOCOL_VERSION,
        installation: Installation::of(ShardCount::ONE),
        settings: MemberSettings::of(&[crate::shard::Scope::Cluster], "UTC"),
        timing: Timing::DEFAULT,
    }
}

/// Whether a replica takes a shard from an incarnation that began after the events that its watch has delivered.
fn takes_from_new_member(guards: Guards) -> bool {
    let us = LeaseKey::Member("us".into());
    let them = LeaseKey::Member("them".into());
    let shard = LeaseKey::Shard(ShardId(0));
    let mut election = Election::new(config(), at(100));
    election.guards = guards;
    election.handle(ElectionInput::Shards(ShardReport::Synced), at(100));
    // The other replica leads in its second incarnation. It releases the shard, and this replica requests it.
    let leases = vec![lease(them, 9, "pod/them/0000000000000002"), lease(shard.clone(), 8, "")];
    let listed = listed(100, 10, leases);
    let join = request(&election.handle(listed, at(100)), &us).unwrap();
    let joined = lease(us, 11, "pod/us/0000000000000001");
    let answer = LeaseAnswer::Done(Box::new(joined.clone()));
    let mut effects = election.handle(ElectionInput::Answered { request: join, answer }, at(100));
    effects.extend(election.handle(ElectionInput::Applied(joined), at(100)));
    effects.extend(election.handle_timeout(at(101)));
    let take = request(&effects, &shard).unwrap();
    // The other replica, in its third incarnation, takes the shard first. A read returns this before the watch does.
    let answer = LeaseAnswer::Conflict;
    let effects = election.handle(ElectionInput::Answered { request: take, answer }, at(101));
    let read = request(&effects, &shard).unwrap();
    let answer = LeaseAnswer::Done(Box::new(lease(shard.clone(), 14, "pod/them/0000000000000003")));
    let mut effects = election.handle(ElectionInput::Answered { request: read, answer }, at(101));
    effects.extend(election.handle_timeout(at(103)));
    request(&effects, &shard).is_some()
}

#[test]
fn a_member_not_yet_seen_by_the_watch_is_not_considered_gone() {
    assert!(!takes_from_new_member(Guards::ALL));
    let guards = Guards {
        whole_view: false,
        ..Guards::ALL
    };
    assert!(takes_from_new_member(guards), "without the guard, the shard is taken");
}
