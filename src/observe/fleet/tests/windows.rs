//! The slots between two instants, known or not.

use super::script::{World, at, facts, schedule};
use crate::observe::{slot::Slot, view::CronJobName};

/// The slots as their times and outcomes: `.` for one of which nothing is known.
fn between(world: &World, from: &str, to: &str, n_max: usize) -> Option<String> {
    let name = CronJobName {
        namespace: "shop".into(),
        name: "bill".into(),
    };
    let cron_job = world.fleet.cron_job(&name).expect("the CronJob");
    let slots = cron_job.slots_between(at(from), at(to), n_max)?;
    let text = |slot: &Slot| {
        let absence = slot.outcome.absence();
        let sign = match absence.as_deref() {
            None => "s",
            Some(text) if text.starts_with("nothing watched") => ".",
            Some(_) => "-",
        };
        format!("{}{sign}", slot.at.strftime("%H:%M:%S"))
    };
    Some(slots.iter().map(text).collect::<Vec<_>>().join(" "))
}

#[test]
fn slots_before_the_oldest_evidence_are_unknown() {
    let world = World::of(
        "10:00:30 watch
         10:01:01 start 10:01
         10:03:01 start 10:03
         10:03:30 wait",
    );
    let all = "09:58:00. 09:59:00. 10:00:00. 10:01:00s 10:02:00- 10:03:00s";
    assert_eq!(between(&world, "09:58", "10:03", 6).as_deref(), Some(all));
    assert_eq!(between(&world, "09:58", "10:03", 5), None, "too many");
    assert_eq!(between(&world, "10:01:01", "10:02:59", 5).as_deref(), Some("10:02:00-"));
    assert_eq!(between(&world, "10:03:01", "10:03:59", 5).as_deref(), Some(""));
}

#[test]
fn no_slot_is_before_the_creation_of_the_cron_job() {
    let mut facts = facts();
    (facts.created, facts.last_schedule_time) = (at("10:00:10"), None);
    let mut world = World::new(facts, 50);
    world.play(
        "10:00:30 watch
         10:02:30 wait",
    );
    assert_eq!(
        between(&world, "09:00", "10:02:30", 9).as_deref(),
        Some("10:01:00- 10:02:00-")
    );
}

#[test]
fn a_job_beside_the_schedule_is_in_its_place() {
    let mut world = World::of(
        "10:00:30 watch
         10:00:40 schedule */2 * * * *
         10:01:01 start 10:01
         10:02:30 wait",
    );
    assert_eq!(
        between(&world, "10:01", "10:02", 9).as_deref(),
        Some("10:01:00s 10:02:00-")
    );
    world.facts.schedule = schedule("0 0 30 2 *");
    world.fleet.apply_cron_job(world.facts.clone(), world.now);
    let none = between(&world, "10:03", "10:09", 9);
    assert_eq!(none.as_deref(), Some(""), "it never runs");
}
