//! Slots with more than one Job.

use super::script::{World, at, facts, run, schedule};
use crate::shard::Uid;

#[test]
fn two_jobs_of_one_slot_are_doubled() {
    let mut facts = facts();
    facts.schedule = schedule("1 10 * * *");
    facts.last_schedule_time = Some(at("2026-05-04T10:01:00Z"));
    let mut world = World::new(facts, 50);
    world.play("10:00:30 watch\n10:01:01 start 10:01");
    let mut second = run(at("10:01"), at("10:01:02"));
    (second.job_uid, second.job_name) = (Uid::new("second"), "bill-again".into());
    world.fleet.apply_run(second, world.now);
    let found = &world.detail().attention[0];
    assert_eq!((found.trouble.as_str(), found.since), ("doubled", Some(at("10:01"))));
    let expected = "the slot 10:01 UTC has more than one Job: bill-29632921, bill-again";
    assert_eq!(found.reason, expected);
    assert_eq!(world.slot("10:01").other_jobs, ["bill-again".into()]);
    assert!(world.detail().other_runs.is_empty());
    // For a day.
    world.play("10:01:03 succeed 10:01\n2026-05-06T10:00:30Z wait");
    assert_eq!(world.detail().attention.len(), 1);
    world.play("2026-05-06T10:01:01Z start 2026-05-06T10:01:00Z");
    assert!(world.detail().attention.is_empty(), "the slot is a day old");
}
