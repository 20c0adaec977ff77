//! Namespaces that may no longer be read, and that may be again.

use std::collections::BTreeSet;

use super::script::{World, at, facts};
use crate::{observe::facts::Record, shard::Scope};

const FAILED: &str = "10:00:30 watch
    10:01:01 start 10:01
    10:01:20 fail 10:01
    10:02:01 start 10:02
    10:02:10 succeed 10:02
    10:02:20 wait";

#[test]
fn a_namespace_that_returns_counts_once() {
    let mut world = World::of(FAILED);
    let before = world.fleet.tiles(world.now);
    let n_jobs = |world: &World| -> Vec<u64> {
        let controllers = world.fleet.overview(world.now).controllers;
        controllers.iter().map(|controller| controller.n_jobs).collect()
    };
    assert_eq!((before.n_failed, n_jobs(&world)), (1, vec![2]));
    world.fleet.forget_namespace("shop");
    assert_eq!(world.fleet.tiles(world.now).n_failed, 0);
    assert!(n_jobs(&world).is_empty());
    world.play("10:02:30 watch");
    assert_eq!(world.fleet.tiles(world.now).n_failed, 1);
    assert_eq!(n_jobs(&world), [2]);
}

/// A fleet that watches these namespaces, with the history of another one.
fn watching(namespaces: &[&str], history: &World) -> World {
    let mut world = World::new(history.facts.clone(), 50);
    let scopes: Vec<Scope> = namespaces.iter().map(|name| Scope::Namespace((*name).into())).collect();
    world.fleet.set_scopes(&scopes);
    world.fleet.load(history.records.clone(), history.now);
    world
}

/// `10:01` ran and is gone; the cursor tells that later ones ran too.
fn gone() -> World {
    let mut world = World::new(facts(), 50);
    world.facts.last_schedule_time = Some(at("10:04"));
    world.facts.ttl_seconds_after_finished = Some(0);
    world
}

#[test]
fn a_period_of_other_namespaces_covers_nothing() {
    for (namespaces, expected) in [(["a", "b"], "?"), (["a", "shop"], "LLL?")] {
        let mut former = watching(&namespaces, &gone());
        former.play("10:00:30 watch\n10:04:10 wait");
        // The Jobs were not seen if the namespace was not watched.
        let mut world = watching(&["shop"], &former);
        world.play("10:04:20 watch");
        assert_eq!(world.marks(), expected, "{namespaces:?}");
    }
}

#[test]
fn runs_of_other_namespaces_are_not_loaded() {
    let former = World::of(FAILED);
    for (namespaces, n_failed) in [(&["a"][..], 0), (&["a", "shop"], 1)] {
        let mut world = watching(namespaces, &former);
        world.play("10:02:30 watch");
        assert_eq!(world.fleet.tiles(world.now).n_failed, n_failed, "{namespaces:?}");
    }
}

#[test]
fn the_time_in_which_a_namespace_could_not_be_read_is_not_observed() {
    let mut world = watching(&["a", "shop"], &gone());
    world.play("10:00:30 watch\n10:01:10 wait");
    world.fleet.forget_namespace("shop");
    // The watches of the other namespace stay current.
    world.play("10:04:10 wait");
    let listed = [world.facts.uid.clone()].into();
    world.fleet.apply_cron_job(world.facts.clone(), world.now);
    world.fleet.retain_cron_jobs(&listed, Some("shop"), world.now);
    world.fleet.retain_runs(&BTreeSet::new(), Some("shop"), world.now);
    world.play("10:06:10 wait");
    assert_eq!(world.marks(), "????Ll");
    // So says the history.
    let periods: Vec<Option<Box<str>>> = periods(&world).collect();
    assert_eq!(periods.first(), Some(&Some("a,shop".into())));
    assert!(periods.contains(&Some("a".into())), "{periods:?}");
    assert_eq!(periods.last(), Some(&Some("a,shop".into())));
    let mut again = watching(&["a", "shop"], &world);
    again.play("10:06:20 watch");
    assert_eq!(again.marks().replace('-', "?"), "????Ll");
}

fn periods(world: &World) -> impl Iterator<Item = Option<Box<str>>> {
    world.records.iter().filter_map(|record| match record {
        Record::Observation(period) => Some(period.namespaces.clone()),
        Record::Run { .. } | Record::Change(_) | Record::Freeze(_) => None,
    })
}
