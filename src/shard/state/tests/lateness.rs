//! The instant from which the lateness of a run counts, and the runs that their tenant delays.

use super::world::{World, at, complete, cron_job, entry, job, schedule, schedule_with};
use crate::shard::{
    ConcurrencyPolicy, CreateOutcome, CronJobRecord, CronJobStatus, DeleteOutcome, JobRecord, NamespaceUpdate,
    ResourceVersion,
};

const YESTERDAY: &str = "2026-05-04T10:00:00Z";

/// A CronJob that runs daily at 10:00, and ran last yesterday.
fn daily() -> CronJobRecord {
    CronJobRecord {
        schedule: schedule("0 10 * * *", None),
        status: CronJobStatus {
            last_schedule_time: Some(at(YESTERDAY)),
            ..CronJobStatus::default()
        },
        ..cron_job("hello")
    }
}

fn changed(record: &CronJobRecord) -> CronJobRecord {
    CronJobRecord {
        resource_version: ResourceVersion(record.resource_version.0 + 1),
        ..record.clone()
    }
}

/// The Job of yesterday's run, and the CronJob with it on its active list.
fn running(policy: ConcurrencyPolicy) -> (CronJobRecord, JobRecord) {
    let before = job("hello", YESTERDAY);
    let mut record = CronJobRecord {
        concurrency_policy: policy,
        ..daily()
    };
    record.status.active.push(entry(&before));
    (record, before)
}

/// Expects that one create is ordered, and the instant from which its lateness counts.
#[track_caller]
fn check(world: &mut World, late_from: Option<&str>) {
    world.effects();
    let orders: Vec<_> = world.creates.iter().map(|order| order.late_from).collect();
    assert_eq!(orders, [late_from.map(at)]);
}

#[test]
fn a_due_run_and_a_catch_up_are_late_from_their_slot() {
    let mut world = World::new("09:59:30", vec![daily()], vec![]);
    world.advance_to("10:00:00");
    check(&mut world, Some("10:00:00"));
    // Nobody led the shard for 90 minutes.
    let mut world = World::new("11:30:00", vec![daily()], vec![]);
    check(&mut world, Some("10:00:00"));
}

#[test]
fn a_spread_run_is_late_from_its_place_in_the_window() {
    let record = CronJobRecord {
        schedule: schedule_with("0 10 * * *", &[("spread", "10m")], u64::MAX / 2),
        ..daily()
    };
    let start = record.schedule.start_of(at("10:00:00"));
    assert!(at("10:04:00") < start && start < at("10:06:00"), "{start}");
    let mut world = World::new("11:30:00", vec![record], vec![]);
    check(&mut world, Some(&start.to_string()));
}

#[test]
fn a_run_that_was_suspended_is_not_late() {
    let suspended = CronJobRecord {
        is_suspended: true,
        ..daily()
    };
    let resumed = CronJobRecord {
        is_suspended: false,
        ..changed(&suspended)
    };
    let mut world = World::new("09:59:30", vec![suspended.clone()], vec![]);
    world.advance_to("11:30:00");
    world.apply(resumed.clone());
    check(&mut world, None);
    // The leader began during the suspension.
    let mut world = World::new("11:00:00", vec![suspended.clone()], vec![]);
    world.advance_to("11:30:00");
    world.apply(resumed.clone());
    check(&mut world, None);
    // The suspension ended while this replica was on standby.
    let mut world = World::on_standby("11:00:00", vec![suspended], vec![]);
    world.advance_to("11:20:00");
    world.apply(resumed);
    world.advance_to("11:30:00");
    world.lead();
    check(&mut world, None);
}

#[test]
fn a_run_after_the_end_of_a_suspension_is_late_from_its_slot() {
    let suspended = CronJobRecord {
        is_suspended: true,
        ..daily()
    };
    let resumed = CronJobRecord {
        is_suspended: false,
        ..changed(&suspended)
    };
    let mut world = World::on_standby("09:00:00", vec![suspended], vec![]);
    world.apply(resumed);
    world.advance_to("11:30:00");
    world.lead();
    check(&mut world, Some("10:00:00"));
}

#[test]
fn a_run_of_a_frozen_namespace_is_not_late() {
    let freeze = [("freeze-until", "2026-05-05T11:00:00Z")];
    let mut world = World::selecting("09:30:00", vec![daily()], vec![]);
    world.select_with(&freeze);
    world.advance_to("11:00:00");
    check(&mut world, None);
    // The leader begins after the freeze, whose annotation remains.
    let mut world = World::selecting("11:30:00", vec![daily()], vec![]);
    world.select_with(&freeze);
    check(&mut world, None);
    // The freeze ends early.
    let mut world = World::selecting("09:30:00", vec![daily()], vec![]);
    world.select_with(&freeze);
    world.advance_to("10:30:00");
    world.select();
    check(&mut world, None);
}

#[test]
fn a_run_before_its_namespace_was_selected_is_not_late() {
    let selected_at = |text: &str, is_known: bool| {
        let mut world = World::selecting(text, vec![daily()], vec![]);
        if is_known {
            for update in [NamespaceUpdate::ListBegun, NamespaceUpdate::ListDone] {
                world.shard.namespaces.apply(update, world.now);
            }
        }
        world.select();
        world
    };
    check(&mut selected_at("11:30:00", true), None);
    // In the first list of a process, the namespace may have been selected for long.
    check(&mut selected_at("11:30:00", false), Some("10:00:00"));
    let mut world = selected_at("09:30:00", true);
    world.advance_to("10:00:00");
    check(&mut world, Some("10:00:00"));
}

#[test]
fn a_run_before_the_first_leadership_of_its_shard_is_not_late() {
    for (first_led, late_from) in [(Some(at("11:30:00")), None), (None, Some("10:00:00"))] {
        let mut world = World::on_standby("11:30:00", vec![daily()], vec![]);
        world.shard.first_led = first_led;
        world.lead();
        check(&mut world, late_from);
    }
}

#[test]
fn a_run_that_forbid_held_back_is_not_late() {
    let (record, before) = running(ConcurrencyPolicy::Forbid);
    let mut world = World::new("09:59:30", vec![record.clone()], vec![before.clone()]);
    world.advance_to("10:20:00");
    world.apply_job(complete(before.clone(), "10:20:00"));
    check(&mut world, None);
    // The Job ended in an outage, while nothing was decided: Forbid would have waited for its end.
    let mut world = World::new("11:30:00", vec![record], vec![complete(before, "10:20:00")]);
    check(&mut world, Some("10:20:00"));
}

#[test]
fn a_run_that_replaces_another_is_late_from_its_slot() {
    let (record, before) = running(ConcurrencyPolicy::Replace);
    let mut world = World::new("09:59:30", vec![record], vec![before]);
    world.advance_to("10:00:02");
    world.effects();
    world.answer_delete(DeleteOutcome::Deleted);
    check(&mut world, Some("10:00:00"));
}

#[test]
fn a_retried_run_is_late_unless_its_tenant_caused_the_refusal() {
    for (status, late_from) in [(403, None), (500, Some("10:00:00"))] {
        let mut world = World::new("09:59:30", vec![daily()], vec![]);
        world.advance_to("10:00:00");
        world.effects();
        world.answer_create(CreateOutcome::Failed {
            message: "no".into(),
            status: Some(status),
            retry_after: None,
        });
        world.advance_to("10:02:00");
        check(&mut world, late_from);
    }
}

#[test]
fn a_run_that_a_later_deadline_makes_possible_is_not_late() {
    let lost = CronJobRecord {
        starting_deadline_seconds: Some(60),
        ..daily()
    };
    let mut world = World::new("11:30:00", vec![lost.clone()], vec![]);
    world.effects();
    assert!(world.creates.is_empty());
    world.apply(CronJobRecord {
        starting_deadline_seconds: Some(86_400),
        ..changed(&lost)
    });
    check(&mut world, None);
}
