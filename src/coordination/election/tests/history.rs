//! Tests of a consistent list of Leases that contradicts the observed history, as after a restore of etcd.

use super::{
    super::Election,
    stale_view::{at, config, lease},
};
use crate::{
    coordination::{ElectionInput, LeaseKey, LeaseList, LeaseRecord},
    shard::{ResourceVersion, ShardId},
};

pub(super) fn listed(requested_at: u64, version: u64, leases: Vec<LeaseRecord>) -> ElectionInput {
    ElectionInput::Listed {
        requested_at: at(requested_at),
        list: LeaseList {
            resource_version: ResourceVersion(version),
            leases,
        },
    }
}

fn them(version: u64) -> LeaseRecord {
    lease(LeaseKey::Member("them".into()), version, "pod/them/0000000000000002")
}

fn shard(version: u64) -> LeaseRecord {
    lease(LeaseKey::Shard(ShardId(0)), version, "")
}

/// An election whose first list, at version 60, contained the other member at 50 and the shard at 55.
fn election() -> Election {
    let mut election = Election::new(config(), at(100));
    let first = listed(100, 60, vec![them(50), shard(55)]);
    assert!(!election.is_contradicted_by(&first), "nothing was known before");
    election.handle(first, at(101));
    election
}

#[test]
fn a_list_older_than_the_view_contradicts_it() {
    let election = election();
    assert!(election.is_contradicted_by(&listed(102, 59, vec![them(50), shard(55)])));
    assert!(!election.is_contradicted_by(&listed(102, 60, vec![them(50), shard(55)])));
    assert!(
        !election.is_contradicted_by(&listed(102, 70, Vec::new())),
        "Leases may be deleted"
    );
}

#[test]
fn an_older_lease_in_a_newer_list_contradicts_the_view() {
    let election = election();
    assert!(election.is_contradicted_by(&listed(102, 1_000_060, vec![them(49), shard(55)])));
    assert!(election.is_contradicted_by(&listed(102, 1_000_060, vec![them(50), shard(54)])));
}

#[test]
fn changes_after_the_list_request_do_not_contradict_the_view() {
    let mut election = election();
    election.view.apply(&shard(65), None, at(104));
    assert!(!election.is_contradicted_by(&listed(103, 62, vec![them(50), shard(55)])));
    assert!(election.is_contradicted_by(&listed(105, 66, vec![them(50), shard(55)])));
}
