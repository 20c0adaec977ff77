//! What is not known is called so, and what is known only in part.

use jiff::{SignedDuration, Timestamp};

use super::script::{World, at, facts, run, schedule};
use crate::observe::{
    facts::{CronJobFacts, Run, RunResult},
    slot::{Mark, SkipCause, Slot, SlotOutcome},
};

fn succeeded(slot: Timestamp) -> Run {
    let mut job = run(slot, slot + SignedDuration::from_secs(1));
    (job.result, job.finished) = (RunResult::Succeeded, Some(job.created));
    job
}

/// A CronJob whose last Jobs the cluster keeps, and whose status names the last of them.
fn kept(text: &str, kept: &[&str]) -> World {
    let mut facts = facts();
    facts.schedule = schedule(text);
    facts.created = at("2026-04-01T00:00:00Z");
    facts.last_schedule_time = kept.last().map(|slot| at(slot));
    facts.ttl_seconds_after_finished = Some(100);
    let mut world = World::new(facts, 50);
    world
        .jobs
        .extend(kept.iter().map(|slot| (at(slot), succeeded(at(slot)))));
    world.play("10:00:30 watch");
    world
}

/// The slots of a report on the day before 10:00:30.
fn of_day(world: &World) -> Vec<Slot> {
    let cron_jobs: Vec<_> = world.fleet.cron_jobs().collect();
    cron_jobs[0].slots_since(world.now - SignedDuration::from_hours(24))
}

fn n_unknown(slots: &[Slot]) -> usize {
    let unknown = slots.iter().filter(|slot| slot.outcome == SlotOutcome::NotObserved);
    unknown.count()
}

#[test]
fn due_slots_before_the_oldest_evidence_are_unknown() {
    let hourly = kept("0 * * * *", &["08:00", "09:00", "10:00"]);
    let slots = of_day(&hourly);
    assert_eq!((slots.len(), n_unknown(&slots)), (24, 21));
    assert!(slots.is_sorted_by_key(|slot| slot.at));
    let since = hourly.now - SignedDuration::from_hours(24);
    let counted: Vec<u64> = hourly.fleet.cron_jobs().map(|one| one.n_unknown_since(since)).collect();
    assert_eq!(counted, [21]);
    let daily = kept("0 6 * * *", &["2026-05-03T06:00:00Z", "2026-05-04T06:00:00Z", "06:00"]);
    assert_eq!((of_day(&daily).len(), n_unknown(&of_day(&daily))), (3, 0));
    let mut without = kept("0 * * * *", &[]);
    without.facts.last_schedule_time = Some(at("10:00"));
    let mut again = World::new(without.facts, 50);
    again.play("10:00:30 watch");
    assert_eq!((of_day(&again).len(), n_unknown(&of_day(&again))), (24, 24));
    // Before its creation nothing was due.
    again.facts.created = at("07:30");
    let mut young = World::new(again.facts, 50);
    young.play("10:00:30 watch");
    assert_eq!((of_day(&young).len(), n_unknown(&of_day(&young))), (3, 3));
    // Jobs are named by the minute.
    let mut often = World::new(facts(), 50);
    often.facts.schedule = schedule("@every 20s");
    often.play("10:00:30 watch");
    let slots = of_day(&often);
    let same = slots
        .iter()
        .filter(|slot| slot.outcome == SlotOutcome::Skipped(SkipCause::SameMinute));
    assert_eq!((slots.len(), same.count()), (4_320, 2_880));
}

#[test]
fn unknown_slots_are_at_most_those_of_a_week_at_one_each_minute() {
    let mut world = World::new(facts(), 50);
    world.facts.created = at("2026-01-01T00:00:00Z");
    world.play("10:00:30 watch\n10:01:01 start 10:01\n10:01:30 wait");
    let cron_jobs: Vec<_> = world.fleet.cron_jobs().collect();
    let since = at("2026-01-01T00:00:00Z");
    let slots = cron_jobs[0].slots_since(since);
    assert_eq!((slots.len(), n_unknown(&slots)), (10_080, 10_079));
    assert_eq!(slots.last().map(|slot| slot.at), Some(at("10:01")));
    assert!(cron_jobs[0].is_cut_after(since) && !cron_jobs[0].is_cut_after(at("2026-05-04T10:00:00Z")));
}

#[test]
fn a_cron_job_of_which_nothing_is_kept_had_a_slot() {
    let world = kept("0 * * * *", &[]);
    assert_eq!(world.detail().slots.len(), 50, "never started: lost");
    let mut facts = world.facts.clone();
    facts.last_schedule_time = Some(at("10:00"));
    let mut world = World::new(facts, 50);
    world.play("10:00:30 watch");
    let slots = world.detail().slots;
    assert_eq!(
        (slots.len(), slots[0].at, &slots[0].outcome),
        (1, at("10:00"), &SlotOutcome::NotObserved)
    );
    assert_eq!(world.detail().row.marks, [Mark::NotObserved]);
    // A new one had none.
    let mut new = World::new(facts_of_new(), 50);
    new.play("10:00:30 watch");
    assert_eq!((new.detail().slots.len(), new.detail().row.marks.len()), (0, 0));
}

fn facts_of_new() -> CronJobFacts {
    CronJobFacts {
        created: at("10:00:10"),
        last_schedule_time: None,
        ..facts()
    }
}

#[test]
fn lost_slots_beyond_those_that_are_kept_are_told() {
    // Created on 5 April, and never started.
    let mut facts = facts();
    facts.schedule = schedule("0 * * * *");
    (facts.created, facts.last_schedule_time) = (at("2026-04-05T10:30:00Z"), None);
    let mut world = World::new(facts.clone(), 50);
    world.play("10:00:30 watch");
    let found = &world.detail().attention[0];
    assert_eq!(found.since, Some(at("2026-04-05T11:00:00Z")));
    assert!(found.reason.starts_with("lost at least 9"), "{}", found.reason);
    assert!(
        found.reason.contains(" runs between Sun 5 Apr 11:00 and 09:00 UTC: "),
        "{}",
        found.reason
    );
    world.play("12:00:30 wait");
    assert_eq!(
        world.detail().attention[0].since,
        Some(at("2026-04-05T11:00:00Z")),
        "some were dropped"
    );
    // The loss proves what is known.
    let mut report = World::new(facts.clone(), 50);
    report.fleet.keep_since(at("2026-04-05T11:00:00Z"));
    report.play("10:00:30 watch");
    let overview = report.fleet.overview(report.now);
    assert_eq!(overview.known_since, Some(at("2026-04-05T11:00:00Z")));
    // All of them are kept.
    facts.created = at("09:30").checked_sub(SignedDuration::from_hours(24)).unwrap();
    let mut short = World::new(facts, 50);
    short.play("10:00:30 watch");
    let reason = &short.detail().attention[0].reason;
    assert!(
        reason.starts_with("lost 24 runs between Mon 4 May 10:00 and 09:00"),
        "{reason}"
    );
}
