//! Options of a namespace in a shard: freezes, and defaults for its CronJobs.

use jiff::SignedDuration;

use super::world::{World, at, cron_job, hourly, schedule_with, uid};
use crate::{
    schedule::{after, options::Freeze},
    shard::{CronJobRecord, InstantOutcome, ResourceVersion, ShardPhase, hash::even_hash},
};

/// A leading shard with this CronJob, whose namespace has these options since 06:30.
fn world(record: CronJobRecord, options: &[(&str, &str)]) -> World {
    let mut world = World::selecting("06:30:00", vec![record], vec![]);
    world.select_with(options);
    world.effects();
    world
}

fn count(world: &World, outcome: InstantOutcome) -> u64 {
    world.shard.outcome_counts().outcome(outcome)
}

const UNTIL_9_30: &[(&str, &str)] = &[("freeze-until", "2026-05-05T09:30:00Z"), ("freeze-reason", "migration")];

#[test]
fn nothing_starts_in_a_frozen_namespace_and_its_slots_are_counted() {
    let mut world = world(hourly(&[]), UNTIL_9_30);
    world.advance_to("09:29:59");
    world.expect(&[]);
    assert_eq!(
        count(&world, InstantOutcome::Frozen),
        2,
        "07:00 and 08:00; 09:00 is open"
    );
    // Then the latest slot starts, as after a suspension.
    world.advance_to("09:30:00");
    world.expect(&["create hello-29632860 for 2026-05-05T09:00:00Z"]);
    world.created();
    world.effects();
    world.advance_to("10:00:00");
    world.expect(&["create hello-29632920 for 2026-05-05T10:00:00Z"]);
}

#[test]
fn on_resume_chooses_the_slots_of_a_freeze() {
    for (on_resume, slots, n_frozen) in [
        ("skip", &[] as &[_], 3),
        ("latest", &["09:00:00"], 2),
        ("all 2", &["08:00:00"], 1),
    ] {
        let mut world = world(hourly(&[("on-resume", on_resume)]), UNTIL_9_30);
        world.advance_to("09:30:00");
        world.effects();
        let started: Vec<_> = world.creates.iter().map(|order| order.slot).collect();
        let slots: Vec<_> = slots.iter().map(|slot| at(slot)).collect();
        assert_eq!(started, slots, "{on_resume}");
        assert_eq!(count(&world, InstantOutcome::Frozen), n_frozen, "{on_resume}");
    }
}

#[test]
fn the_next_leader_knows_from_the_annotation_which_slots_were_frozen() {
    // It begins after the freeze, whose annotation is still there.
    let mut world = World::selecting("09:40:00", vec![hourly(&[("on-resume", "skip")])], vec![]);
    world.select_with(UNTIL_9_30);
    world.advance_to("09:59:59");
    world.expect(&[]);
    let counts = [InstantOutcome::Frozen, InstantOutcome::Suspended].map(|outcome| count(&world, outcome));
    assert_eq!(counts, [3, 0]);
    world.advance_to("10:00:00");
    world.expect(&["create hello-29632920 for 2026-05-05T10:00:00Z"]);
}

#[test]
fn a_leader_that_begins_during_a_freeze_starts_the_latest_slot_at_its_end() {
    let mut world = World::selecting("09:20:00", vec![], vec![]);
    world.select_with(UNTIL_9_30);
    world.list(vec![hourly(&[])], vec![]);
    world.advance_to("09:29:59");
    world.expect(&[]);
    world.advance_to("09:30:00");
    world.expect(&["create hello-29632860 for 2026-05-05T09:00:00Z"]);
}

#[test]
fn a_thawed_namespace_starts_at_once() {
    for (on_resume, started) in [("latest", 1), ("skip", 0)] {
        let mut world = world(hourly(&[("on-resume", on_resume)]), UNTIL_9_30);
        world.advance_to("08:15:00");
        world.select_with(&[]);
        world.effects();
        assert_eq!(world.creates.len(), started, "{on_resume}");
        world.advance_to("08:59:59");
        world.effects();
        assert_eq!(world.creates.len(), started, "{on_resume}");
    }
}

#[test]
fn the_end_of_a_freeze_is_known_after_its_annotation_is_removed() {
    for options in [&[][..], &[("freeze-until", "2026-05-05T09:50:00Z")]] {
        let mut world = world(hourly(&[("on-resume", "skip")]), UNTIL_9_30);
        world.advance_to("09:40:00");
        world.expect(&[]);
        world.select_with(options);
        world.advance_to("09:45:00");
        world.select_with(&[]);
        world.advance_to("09:59:59");
        world.expect(&[]);
        world.advance_to("10:00:00");
        world.expect(&["create hello-29632920 for 2026-05-05T10:00:00Z"]);
    }
}

#[test]
fn a_create_that_waits_is_withdrawn_by_a_freeze() {
    let mut world = world(hourly(&[]), &[]);
    world.advance_to("07:00:00");
    world.expect(&["create hello-29632740 for 2026-05-05T07:00:00Z"]);
    world.select_with(UNTIL_9_30);
    world.expect(&["withdraw the create of hello"]);
    world.answer_create(crate::shard::CreateOutcome::Withdrawn);
    world.advance_to("07:30:00");
    world.expect(&[]);
    assert_eq!(count(&world, InstantOutcome::Frozen), 0, "07:00 is open");
}

#[test]
fn a_freeze_that_is_prolonged_holds_on() {
    let mut world = world(hourly(&[]), UNTIL_9_30);
    world.advance_to("09:20:00");
    world.select_with(&[("freeze-until", "2026-05-05T11:30:00Z")]);
    world.advance_to("11:29:59");
    world.expect(&[]);
    world.advance_to("11:30:00");
    world.expect(&["create hello-29632980 for 2026-05-05T11:00:00Z"]);
}

#[test]
fn a_freeze_holds_a_spread_slot_by_the_instant_of_its_start() {
    let spread = |hash| schedule_with("25 * * * *", &[("spread", "10m"), ("on-resume", "skip")], hash);
    let hash = even_hash(uid("hello").to_string().as_bytes());
    let start = spread(hash).start_of(at("09:25:00"));
    for (until, n_started) in [(start, 1), (after(start, SignedDuration::from_secs(1)), 0)] {
        let record = CronJobRecord {
            schedule: spread(hash),
            ..hourly(&[])
        };
        let mut world = world(record, &[("freeze-until", &until.to_string())]);
        world.advance_to("09:40:00");
        world.effects();
        assert_eq!(
            world.creates.len(),
            n_started,
            "frozen until {until}, and the start is at {start}"
        );
    }
}

#[test]
fn a_default_of_the_namespace_moves_its_cron_jobs_until_it_is_removed() {
    let mut world = world(hourly(&[]), &[("spread", "10m")]);
    world.advance_to("07:00:30");
    world.expect(&[]);
    world.select_with(&[]);
    world.expect(&["create hello-29632740 for 2026-05-05T07:00:00Z"]);
}

#[test]
fn an_observed_cron_job_takes_the_default_of_its_namespace() {
    let mut world = world(hourly(&[]), &[("missed-runs", "skip")]);
    let other = CronJobRecord {
        resource_version: ResourceVersion(11),
        ..cron_job("other")
    };
    world.jump_to("10:05:00");
    world.apply(CronJobRecord {
        schedule: schedule_with("0 * * * *", &[], 0),
        ..other
    });
    world.expect(&[]);
    assert_eq!(
        count(&world, InstantOutcome::Missed),
        5,
        "07:00 to 10:00, and 10:00 of the other"
    );
}

#[test]
fn a_standby_replica_follows_a_freeze() {
    let mut world = World::on_standby("06:30:00", vec![], vec![]);
    world.shard.namespaces = crate::shard::ManagedNamespaces::selected();
    world.list(vec![hourly(&[("on-resume", "skip")])], vec![]);
    world.select_with(UNTIL_9_30);
    world.advance_to("08:30:00");
    world.select_with(&[]);
    assert_eq!(world.shard.phase(), ShardPhase::Standby);
    world.lead();
    world.advance_to("08:59:59");
    world.expect(&[]);
    world.advance_to("09:00:00");
    world.expect(&["create hello-29632860 for 2026-05-05T09:00:00Z"]);
}

#[test]
fn the_later_end_of_the_freezes_of_namespace_and_installation_counts() {
    for (until, starts) in [("08:30:00", "09:30:00"), ("11:30:00", "11:30:00")] {
        let mut world = world(hourly(&[]), UNTIL_9_30);
        world.shard.freeze_all(Some(Freeze {
            until: at(until),
            reason: "upgrade".into(),
        }));
        let before = after(at(starts), SignedDuration::from_secs(-1));
        world.advance_to(&before.to_string());
        world.expect(&[]);
        world.advance_to(starts);
        assert_eq!(world.effects().len(), 1, "frozen until {until}");
    }
}

#[test]
fn a_frozen_installation_needs_no_frozen_namespace() {
    let mut world = World::new("06:30:00", vec![], vec![]);
    world.shard.freeze_all(Some(Freeze {
        until: at("09:30:00"),
        reason: "".into(),
    }));
    world.list(vec![hourly(&[("on-resume", "skip")])], vec![]);
    world.advance_to("09:59:59");
    world.expect(&[]);
    assert_eq!(count(&world, InstantOutcome::Frozen), 3);
    world.advance_to("10:00:00");
    world.expect(&["create hello-29632920 for 2026-05-05T10:00:00Z"]);
}
