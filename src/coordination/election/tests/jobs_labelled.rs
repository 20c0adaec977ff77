//! Tests of the proof that every Job of a CronJob has its label: which member publishes it, and which proofs count.

use jiff::Timestamp;

use super::{
    super::Election,
    history::listed,
    stale_view::{at, config, lease},
    world::World,
};
use crate::{
    coordination::{ElectionInput, JobsLabelled, LeaseKey, LeaseRecord, MemberSettings, annotation},
    shard::{ResourceVersion, Scope},
};

fn proof(time: &str, version: u64) -> JobsLabelled {
    JobsLabelled {
        at: format!("2026-05-05T{time}Z").parse().unwrap(),
        version: ResourceVersion(version),
    }
}

fn known(world: &World, at: usize) -> Option<JobsLabelled> {
    world.replicas[at].process.as_ref().unwrap().election.jobs_labelled()
}

#[test]
fn a_proof_reaches_all_replicas_and_outlives_its_author() {
    let mut world = World::new(16, 95);
    let [author, other] = ["a", "b"].map(|name| world.start(name));
    world.run(15_000);
    assert_eq!(known(&world, other), None);
    let first = proof("12:00:00", 7);
    world.input(author, ElectionInput::JobsLabelled(first));
    assert_eq!(known(&world, author), Some(first));
    world.run(2_500);
    assert_eq!(known(&world, other), Some(first), "with the next renewal");
    world.input(author, ElectionInput::JobsLabelled(proof("11:59:00", 9)));
    assert_eq!(known(&world, author), Some(first), "a later one counts");
    world.run(2_500);
    world.drain(author);
    world.run(12_000);
    assert!(world.replicas[author].has_left);
    let newcomer = world.start("c");
    world.run(5_000);
    assert_eq!(known(&world, newcomer), Some(first));
}

/// A Lease with these settings and this proof, if any.
fn member(name: &str, settings: &MemberSettings, proof: Option<JobsLabelled>) -> LeaseRecord {
    let key = LeaseKey::Member(name.into());
    let mut lease = lease(key, 9, &format!("pod/{name}/0000000000000002"));
    let settings = (annotation::SETTINGS.into(), settings.to_string().into());
    let proof = proof.map(|proof| (annotation::JOBS_LABELLED.into(), proof.to_string().into()));
    lease.annotations.extend([settings].into_iter().chain(proof));
    lease
}

/// The proof that counts for a replica that lists these Leases.
fn known_of(leases: Vec<LeaseRecord>) -> Option<JobsLabelled> {
    let mut election = Election::new(config(), at(100));
    election.handle(listed(100, 10, leases), at(100));
    election.jobs_labelled()
}

#[test]
fn a_proof_of_a_member_with_other_settings_is_ignored() {
    let (early, late) = (proof("12:00:00", 7), proof("12:00:10", 8));
    let (ours, theirs) = (config().settings, MemberSettings::of(&[Scope::Cluster], "Europe/Rome"));
    assert_eq!(known_of(vec![member("a", &theirs, Some(late))]), None);
    let both = vec![member("a", &theirs, Some(late)), member("b", &ours, Some(early))];
    assert_eq!(known_of(both), Some(early));
    let of_another_count = LeaseRecord {
        annotations: {
            let mut annotations = member("a", &ours, Some(late)).annotations;
            annotations.insert(annotation::INSTALLATION.into(), "64/fnv1a64-uid-10".into());
            annotations
        },
        ..member("a", &ours, None)
    };
    assert_eq!(known_of(vec![of_another_count]), None);
}

#[test]
fn a_proof_older_than_the_lease_of_a_lone_replica_is_ignored() {
    let alone = MemberSettings::alone("lone", &[Scope::Cluster], "UTC");
    let renewed_at: Timestamp = "2026-05-05T12:00:00Z".parse().unwrap();
    let lone = LeaseRecord {
        renewed_at: Some(renewed_at),
        ..member("lone", &alone, None)
    };
    assert_eq!(lone.duration_secs, 10);
    for (time, counts) in [("11:59:00", false), ("12:00:10", false), ("12:00:10.001", true)] {
        let proof = proof(time, 7);
        let known = known_of(vec![lone.clone(), member("a", &config().settings, Some(proof))]);
        assert_eq!(known, counts.then_some(proof), "{time}");
    }
}
