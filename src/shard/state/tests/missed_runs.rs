//! `missed-runs: skip` and a create that has to wait: until when the slot may start, and how it ends then.

use jiff::Timestamp;

use super::world::{World, at, complete, cron_job, entry, job, manual_job, schedule_with};
use crate::shard::{
    ConcurrencyPolicy, CreateOutcome, CronJobRecord, CronJobStatus, InstantOutcome, JobRecord, LookUpOutcome,
    ResourceVersion,
};

const CREATE: &str = "create hello-29632860 for 2026-05-05T09:00:00Z";

/// A CronJob of every full hour with these options, which last ran at 08:00.
fn hourly(options: &[(&str, &str)]) -> CronJobRecord {
    CronJobRecord {
        schedule: schedule_with("0 * * * *", options, u64::MAX / 2 + 1),
        status: CronJobStatus {
            last_schedule_time: Some(at("08:00:00")),
            ..CronJobStatus::default()
        },
        ..cron_job("hello")
    }
}

fn skipping() -> CronJobRecord {
    hourly(&[("missed-runs", "skip")])
}

fn count(world: &World, outcome: InstantOutcome) -> u64 {
    world.shard.outcome_counts().outcome(outcome)
}

/// The shard at 09:00 with the create of that slot.
fn ordered(record: CronJobRecord) -> World {
    let mut world = World::new("08:59:30", vec![record], vec![]);
    world.advance_to("09:00:00");
    world.expect(&[CREATE]);
    world
}

#[test]
fn a_create_expires_a_minute_after_its_start_under_skip_only() {
    let latest = hourly(&[("missed-runs", "latest")]);
    let spread = hourly(&[("missed-runs", "skip"), ("spread", "10m")]);
    let short = CronJobRecord {
        starting_deadline_seconds: Some(30),
        ..skipping()
    };
    for (record, started, expires) in [
        (latest, "09:00:00", "10:00:00"),
        (skipping(), "09:00:00", "09:01:00"),
        (spread, "09:05:00", "09:06:00"),
        (short, "09:00:00", "2026-05-05T09:00:30.000000001Z"),
    ] {
        let mut world = World::new("08:59:30", vec![record], vec![]);
        world.advance_to(started);
        world.expect(&[CREATE]);
        assert_eq!(world.creates[0].expires_at, Some(at(expires)));
        let skew = jiff::SignedDuration::from_secs(2);
        assert_eq!(world.creates[0].store_by, Some(at(expires) - skew));
    }
}

/// The shard after the run of 08:00 has completed, which held back the slot of 09:00.
fn after_the_run(policy: ConcurrencyPolicy, completed: &str) -> World {
    let before = job("hello", "08:00:00");
    let record = CronJobRecord {
        concurrency_policy: policy,
        status: CronJobStatus {
            active: vec![entry(&before)],
            ..skipping().status
        },
        ..skipping()
    };
    let mut world = World::new("08:59:30", vec![record], vec![before.clone()]);
    world.advance_to(completed);
    let ended = JobRecord {
        resource_version: ResourceVersion(30),
        ..before
    };
    world.apply_job(complete(ended, completed));
    world.effects();
    world
}

#[test]
fn a_slot_that_waited_under_forbid_may_start_for_a_minute_after_the_run() {
    for (policy, completed, expires) in [
        (ConcurrencyPolicy::Forbid, "09:30:00", "2026-05-05T09:31:00.000000001Z"),
        (ConcurrencyPolicy::Forbid, "09:00:40", "2026-05-05T09:01:40.000000001Z"),
        (ConcurrencyPolicy::Forbid, "08:59:50", "09:01:00"),
        (ConcurrencyPolicy::Allow, "09:00:40", "09:01:00"),
    ] {
        let mut world = after_the_run(policy, completed);
        world.advance_to(&at(completed).max(at("09:00:00")).to_string());
        world.effects();
        assert_eq!(world.creates.len(), 1, "{policy:?} {completed}");
        assert_eq!(world.creates[0].expires_at, Some(at(expires)), "{policy:?} {completed}");
    }
    let mut world = after_the_run(ConcurrencyPolicy::Forbid, "09:30:00");
    world.advance_to("2026-05-05T09:31:00.000000001Z");
    world.answer_create(CreateOutcome::Withdrawn);
    assert_eq!(world.creates.len(), 0);
    assert_eq!(count(&world, InstantOutcome::Missed), 1);
}

#[test]
fn a_slot_whose_create_expired_is_missed_and_the_next_one_starts() {
    let mut world = ordered(skipping());
    world.advance_to("09:01:00");
    world.answer_create(CreateOutcome::Withdrawn);
    world.expect(&[]);
    assert_eq!(count(&world, InstantOutcome::Missed), 1);
    world.advance_to("09:59:59");
    world.expect(&[]);
    world.advance_to("10:00:00");
    world.expect(&["create hello-29632920 for 2026-05-05T10:00:00Z"]);
}

/// Fails the create of the slot until a minute after its start. Returns when the shard decided last.
fn fail_for_a_minute(world: &mut World, status: u16) -> Timestamp {
    while world.now < at("09:01:00") {
        world.answer_create(CreateOutcome::Failed {
            message: "no".into(),
            status: Some(status),
            retry_after: None,
        });
        world.effects();
        while world.creates.is_empty() && world.now < at("09:01:00") {
            world.now = world.shard.next_wakeup().unwrap();
            world.shard.handle_timeout(world.now);
            world.effects();
        }
    }
    world.now
}

#[test]
fn a_slot_that_is_refused_for_a_minute_ends_then_with_its_reason() {
    for (status, outcome) in [(403, InstantOutcome::RefusedDueToTenant), (500, InstantOutcome::Missed)] {
        let mut world = ordered(CronJobRecord {
            concurrency_policy: ConcurrencyPolicy::Forbid,
            ..hourly(&[("missed-runs", "skip"), ("manual-jobs", "count")])
        });
        assert_eq!(fail_for_a_minute(&mut world, status), at("09:01:00"));
        assert_eq!(count(&world, outcome), 1, "{status}");
        assert_eq!(world.creates.len(), 0);
        // It does not wait for a Job that is seen only now.
        let by_hand = JobRecord {
            started: Some(at("09:00:30")),
            ..manual_job("hello", "by-hand")
        };
        world.apply_job(by_hand.clone());
        world.advance_to("09:10:00");
        let ended = JobRecord {
            resource_version: ResourceVersion(30),
            ..by_hand
        };
        world.apply_job(complete(ended, "09:10:00"));
        world.effects();
        world.advance_to("09:59:59");
        assert_eq!(world.creates.len(), 0);
        assert_eq!(count(&world, outcome), 1, "{status}");
    }
}

#[test]
fn an_unanswered_create_is_settled_by_its_look_up_also_after_the_minute() {
    let unanswered = || CreateOutcome::Unanswered {
        message: "timeout".into(),
        is_unreachable: false,
    };
    for (answer, outcome) in [
        (LookUpOutcome::Gone, InstantOutcome::Missed),
        (
            LookUpOutcome::Found(Box::new(job("hello", "09:00:00"))),
            InstantOutcome::Adopted,
        ),
    ] {
        let mut world = ordered(skipping());
        world.advance_to("09:01:20");
        world.expect(&[]);
        world.answer_create(unanswered());
        world.expect(&["look up hello-29632860"]);
        world.answer_look_up(answer);
        world.advance_to("09:59:59");
        world.effects();
        assert_eq!(count(&world, outcome), 1, "{outcome:?}");
        assert_eq!(world.creates.len(), 0, "no other create");
    }
}

#[test]
fn a_slot_of_a_suspension_that_on_resume_starts_has_more_than_the_minute() {
    let options = [("missed-runs", "skip"), ("on-resume", "latest")];
    let record = |is_suspended, version| CronJobRecord {
        is_suspended,
        resource_version: ResourceVersion(version),
        ..hourly(&options)
    };
    let mut world = World::new("08:59:30", vec![record(true, 10)], vec![]);
    world.advance_to("09:00:20");
    world.apply(record(false, 11));
    world.expect(&[CREATE]);
    world.advance_to("09:01:00");
    world.answer_create(CreateOutcome::Withdrawn);
    world.expect(&[CREATE]);
    assert_eq!(world.creates[0].expires_at, Some(at("10:00:00")));
}
