//! Jobs that a user started again, that the next one replaced, and that share a minute.

use super::script::{World, at, run};
use crate::{
    observe::slot::{LATE_AFTER, Slot, SlotOutcome},
    shard::naming,
};

fn is_backfilled(slot: &Slot) -> bool {
    matches!(
        slot.outcome,
        SlotOutcome::Started {
            is_backfilled: true,
            ..
        }
    )
}

fn replaced_by(slot: &Slot) -> Option<&str> {
    match &slot.outcome {
        SlotOutcome::Started { replaced_by, .. } => replaced_by.as_deref(),
        SlotOutcome::Open
        | SlotOutcome::Lost(_)
        | SlotOutcome::Skipped(_)
        | SlotOutcome::NotObserved
        | SlotOutcome::Undecided(_) => None,
    }
}

#[test]
fn a_job_of_a_backfill_is_not_late() {
    let script = "10:00:30 watch
        10:02:01 start 10:02
        10:02:40 backfill
        10:02:41 start 10:01
        10:02:59 succeed 10:01";
    let world = World::of(script);
    let slots = [world.slot("10:01"), world.slot("10:02")];
    assert_eq!(slots.each_ref().map(is_backfilled), [true, false]);
    assert_eq!(slots[0].lateness(), None);
    assert_eq!(world.marks(), "sr");
    let overview = world.fleet.overview(world.now);
    assert_eq!((overview.tiles.n_late, overview.tiles.n_lost), (0, 0));
    let lateness = overview
        .controllers
        .iter()
        .filter_map(|controller| controller.lateness_p50);
    assert!(lateness.max() <= Some(LATE_AFTER), "{:?}", overview.controllers);
    let after_restart = world.restarted(50);
    assert!(is_backfilled(&after_restart.slot("10:01")));
    assert_eq!(after_restart.marks(), "sr");
}

#[test]
fn a_job_that_the_next_one_replaced_names_it() {
    let replaced = "10:00:30 watch
        10:00:31 replace
        10:01:01 start 10:01
        10:02:01 delete 10:01
        10:02:02 start 10:02";
    let world = World::of(replaced);
    let successor = naming::job_name("bill", at("10:02"));
    assert_eq!(replaced_by(&world.slot("10:01")), Some(&*successor));
    assert_eq!(replaced_by(&world.slot("10:02")), None);
    for (case, script) in [
        (
            "a user deleted it long before",
            replaced.replace("10:02:01 delete", "10:01:30 delete"),
        ),
        ("the policy is another", replaced.replace("replace", "wait")),
    ] {
        assert_eq!(replaced_by(&World::of(&script).slot("10:01")), None, "{case}");
    }
}

#[test]
fn each_slot_of_a_schedule_with_seconds_has_a_job() {
    let script = "10:00:30 cronwheel
        10:00:31 options schedule=*/20 * * * * *
        10:00:32 watch
        10:00:41 start 10:00:40
        10:01:01 start 10:01:00
        10:01:21 start 10:01:20
        10:01:46 wait";
    let mut world = World::of(script);
    assert!(world.marks().ends_with("rrrl"), "{}", world.marks());
    let mut named = run(at("10:01:40"), at("10:01:47"));
    named.job_name = naming::job_name_with_second("bill", at("10:01:40"));
    named.creator = crate::observe::facts::Creator::Cronwheel;
    world.fleet.apply_run(named.clone(), world.now);
    let SlotOutcome::Started { job_name, .. } = world.slot("10:01:40").outcome else {
        panic!("no Job");
    };
    assert_eq!(job_name, named.job_name);
}
