//! Replicas of several versions and configurations.

use super::{
    super::world::{Journal, World},
    assert_balanced, fleet,
};
use crate::{
    coordination::{Adoption, MemberSettings, PROTOCOL_VERSION, annotation},
    shard::Scope,
};

#[test]
fn f_22_of_two_newcomers_with_different_protocols_the_newer_gives_way() {
    for seed in 0..8 {
        let mut world = World::new(16, seed);
        for (name, protocol) in [("pod-a", PROTOCOL_VERSION), ("pod-b", PROTOCOL_VERSION - 1)] {
            let mut config = world.config(name);
            config.protocol = protocol;
            world.start_with(config);
        }
        world.run(20_000);
        assert_eq!(world.load(), [0, 16], "seed {seed}");
    }
}

#[test]
fn f_22_a_replica_with_another_protocol_takes_no_shards() {
    let mut world = fleet(16, 2, 47);
    let mut config = world.config("newer");
    config.protocol = PROTOCOL_VERSION + 1;
    let newer = world.start_with(config);
    world.run(40_000);
    assert_eq!(world.load()[newer], 0);
    assert_balanced(&world, &[0, 1]);
    let reason = world.overview(newer).no_shards_reason.unwrap();
    assert_eq!(
        reason.to_string(),
        "it has protocol version 3, and members that take shards have 2: to change it scale to zero, change the image \
         everywhere, scale up"
    );
}

/// A former version may have had another number of shards.
#[test]
fn f_22_a_replica_with_another_protocol_and_other_constants_is_respected() {
    let mut world = World::new(16, 53);
    let mut former = world.config("former");
    former.protocol = PROTOCOL_VERSION - 1;
    former.installation.hash_scheme = "former".into();
    let former = world.start_with(former);
    world.run(20_000);
    let newer = world.start("newer");
    world.run(40_000);
    assert_eq!((world.load()[former], world.load()[newer]), (16, 0));
    let reason = world.overview(newer).no_shards_reason.unwrap();
    assert_eq!(reason.name(), "protocol_differs");
}

fn settings(zone: &str) -> MemberSettings {
    MemberSettings::of(&[Scope::Cluster], zone)
}

#[test]
fn a_newcomer_with_another_time_zone_takes_no_shards() {
    // The settings are tested in both orders of the two texts.
    for zone in ["Europe/Berlin", "Zulu"] {
        let mut world = fleet(16, 2, 61);
        let mut config = world.config("other-zone");
        config.settings = settings(zone);
        let newcomer = world.start_with(config);
        world.run(40_000);
        assert_balanced(&world, &[0, 1]);
        assert_eq!(world.load()[newcomer], 0);
        let reason = world.overview(newcomer).no_shards_reason.unwrap();
        assert_eq!(reason.name(), "settings_differ");
    }
}

#[test]
fn a_rolling_update_of_the_time_zone_hands_over_no_shard_between_zones() {
    for (zone, seed) in [("Europe/Berlin", 0), ("Zulu", 1), ("Europe/Berlin", 2), ("Zulu", 3)] {
        let mut world = fleet(16, 3, seed);
        for old in 0..3 {
            let mut config = world.config(&format!("new-{old}"));
            config.settings = settings(zone);
            world.start_with(config);
            world.run(15_000);
            world.journal = Journal::default();
            world.drain(old);
            world.run(12_000);
            assert!(world.replicas[old].has_left, "seed {seed}, replica {old}");
            world.run_until_led(2_000);
            let n_new = world.load()[3..].iter().sum::<usize>();
            assert_eq!(n_new, if old == 2 { 16 } else { 0 }, "seed {seed}, replica {old}");
        }
        let handed_over = |adoption: &Adoption| *adoption == Adoption::HandedOver;
        let leads = &world.journal.leads;
        assert!(
            !leads.iter().take(16).any(|(_, _, _, how)| handed_over(how)),
            "seed {seed}: {leads:?}"
        );
        world.run(40_000);
        assert_balanced(&world, &[3, 4, 5]);
    }
}

#[test]
fn of_two_time_zones_started_at_once_one_leads_everything() {
    for seed in 0..8 {
        let mut world = World::new(16, seed);
        for zone in ["UTC", "Europe/Berlin"] {
            let mut config = world.config(zone);
            config.pod_name = "pod".into();
            config.pod_uid = format!("{:08x}-uid", world.random.below(1 << 32)).into();
            config.settings = settings(zone);
            world.start_with(config);
        }
        world.run(20_000);
        let mut load = world.load();
        load.sort_unstable();
        assert_eq!(load, [0, 16], "seed {seed}");
    }
}

#[test]
fn foreign_annotations_are_preserved() {
    let mut world = fleet(16, 2, 83);
    let key = world.member_key(0);
    let mut lease = world.store.leases[&key].clone();
    world.store.version += 1;
    lease.resource_version.0 = world.store.version;
    lease.annotations.insert("example.com/note".into(), "kept".into());
    world.store.put(lease);
    world.run(10_000);
    let lease = &world.store.leases[&key];
    assert_eq!(&*lease.annotations["example.com/note"], "kept");
    assert!(
        lease.annotations[annotation::RENEWAL].parse::<u64>().unwrap() > 5,
        "the member continues to renew"
    );
    assert_eq!((world.n_moves(), world.replicas[0].exits), (0, 0));
}
