//! A listing for programs. Members are added, but never removed or changed in meaning; `docs/reference/cli.md` lists
//! them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    known::Known,
    listing::{Listing, MemberRow, ShardRow},
    text::StateText,
};
use crate::{
    coordination::{Holder, MemberIdentity},
    shard::ShardId,
};

/// The whole document.
pub(super) fn document(known: &Known, next_runs: &BTreeMap<ShardId, Timestamp>, now: Timestamp) -> String {
    let view = Listing::of(known);
    let member = |row| member(row, now);
    let shard = |row: &ShardRow| shard(row, next_runs.get(&row.shard).copied());
    let document = json!({
        "at": now.to_string(),
        "namespace": known.namespace,
        "installation": {
            "shardCount": known.installation.shard_count.get(),
            "hashScheme": known.installation.hash_scheme,
        },
        "otherControllers": known.other_controllers.active(now).iter().map(|sighting| json!({
            "evidence": sighting.evidence.as_str(),
            "at": sighting.at.to_string(),
            "message": sighting.to_string(),
        })).collect::<Vec<_>>(),
        "members": view.members.values().map(member).collect::<Vec<_>>(),
        "shards": view.shards.iter().map(shard).collect::<Vec<_>>(),
    });
    format!("{document}\n")
}

fn member(row: &MemberRow, now: Timestamp) -> Value {
    let lease = &row.lease;
    let StateText { word, sentence } = row.state.text();
    json!({
        "podUid": row.pod_uid,
        "holder": identity(lease.holder.member()),
        "shards": row.n_shards,
        "renewedAt": time(lease.renewed_at),
        "durationSeconds": lease.duration_secs,
        "isSilent": row.is_silent(now),
        "state": word,
        "message": sentence,
        "isDraining": lease.is_draining,
        "installation": lease.installation,
        "protocol": lease.protocol,
        "revision": lease.revision,
    })
}

fn shard(row: &ShardRow, next_run: Option<Timestamp>) -> Value {
    let lease = row.lease.as_ref();
    let unknown_holder = match lease.map(|lease| &lease.holder) {
        Some(Holder::NotAMember(text)) => Some(text),
        None | Some(Holder::Nobody | Holder::Member(_)) => None,
    };
    json!({
        "shard": row.shard.0,
        "buckets": {"first": row.buckets.0, "last": row.buckets.1},
        "hasLease": lease.is_some(),
        "holder": identity(lease.and_then(|lease| lease.holder.member())),
        "unknownHolder": unknown_holder,
        "isLed": row.is_holder_member,
        "term": lease.map(|lease| lease.term.0),
        "cronJobs": row.n_cron_jobs,
        "nextRun": time(next_run),
        "acquiredAt": time(lease.and_then(|lease| lease.acquired_at)),
        "firedThrough": time(lease.and_then(|lease| lease.fired_through)),
    })
}

pub(super) fn identity(member: Option<&MemberIdentity>) -> Value {
    member.map_or(Value::Null, |member| {
        json!({
            "pod": member.pod_name,
            "podUid": member.pod_uid,
            "incarnation": member.incarnation.to_string(),
        })
    })
}

pub(super) fn time(at: Option<Timestamp>) -> Option<String> {
    at.map(|at| at.to_string())
}
