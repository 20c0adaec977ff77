//! The scenarios F1 to F32 of `docs/spec/sharding.md`, each with the figures that it must meet.

mod admission;
mod beginnings;
mod clocks;
mod controllers;
mod crashes;
mod edits;
mod foreign_jobs;
mod freezes;
mod handovers;
mod leases;
mod outages;
mod returns;
mod scaling;
mod settings;
mod single;
mod versions;

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use serde_json::Value;

use super::cluster::Fleet;

const THREE: [&str; 3] = ["a", "b", "c"];
const FOUR: [&str; 4] = ["a", "b", "c", "d"];

/// The maximum time from the last activity of a process until all its shards have another holder.
const TAKEN_WITHIN: Duration = Duration::from_millis(10_500);

/// Starts replicas, waits until they have settled, and asserts that every shard is led.
async fn begin(fleet: &mut Fleet, names: &[&str]) {
    fleet.start_all(names);
    fleet.at(0, 50.0).await;
    fleet.all_led(Duration::ZERO).await;
    let shares = fleet.shares();
    let (least, most) = (shares.values().min().unwrap(), shares.values().max().unwrap());
    assert!(most - least <= 1, "{shares:?}");
}

/// The evicted members, by Pod uid.
fn evicted(fleet: &Fleet) -> Vec<String> {
    let records = fleet.records();
    let is_evicted = |changes: &Vec<_>| {
        changes
            .iter()
            .any(|change: &super::records::MemberChange| change.evicted_by.is_some())
    };
    let evicted = records.members.iter().filter(|(_, changes)| is_evicted(changes));
    evicted.map(|(pod_uid, _)| pod_uid.clone()).collect()
}

/// The number of moves of each shard from one process to another since an instant, without shards that did not move.
fn moves(fleet: &Fleet, since: Timestamp) -> BTreeMap<u16, usize> {
    let moves = fleet.records().moves_since(since).into_iter();
    moves.filter(|(_, n_moves)| *n_moves > 0).collect()
}

/// Asserts that each of these shards moved once and that no other shard moved.
fn assert_moved_once(fleet: &Fleet, shards: &[u16], since: Timestamp) {
    let once: BTreeMap<u16, usize> = shards.iter().map(|shard| (*shard, 1)).collect();
    assert_eq!(moves(fleet, since), once);
}

/// Asserts that no CronJob has more complete Jobs than its history limit of one. Its leader then knows all of them.
async fn assert_history_kept(fleet: &Fleet) {
    let jobs = fleet.request("GET", "/apis/batch/v1/jobs", &Value::Null).await.unwrap();
    let mut n_complete: BTreeMap<&str, usize> = BTreeMap::new();
    for job in jobs["items"].as_array().unwrap() {
        let owner = job["metadata"]["ownerReferences"][0]["name"].as_str().unwrap();
        let is_complete = job["status"]["completionTime"].is_string();
        *n_complete.entry(owner).or_default() += usize::from(is_complete);
    }
    assert!(!n_complete.is_empty());
    assert!(n_complete.values().all(|n| *n <= 1), "{n_complete:?}");
}

/// The time until another process held the last of these shards.
fn taken(fleet: &Fleet, process: u64, shards: &[u16], after: Timestamp) -> Duration {
    let records = fleet.records();
    let taken = shards.iter().map(|shard| {
        let taken = records.taken_from(process, *shard, after);
        taken.unwrap_or_else(|| panic!("shard {shard} was not taken from {process}"))
    });
    let last = taken.max().unwrap();
    last.duration_since(after).try_into().unwrap()
}
