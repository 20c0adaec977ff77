//! Tests of the number of due instants, counted by hand rather than by the balance of the counts alone.

use super::world::{World, at, complete, cron_job, entry, job, schedule};
use crate::shard::{
    ConcurrencyPolicy, CreateOutcome, CronJobRecord, CronJobStatus, FiredThrough, InstantOutcome, JobRecord,
    ResourceVersion,
};

fn edited(record: CronJobRecord) -> CronJobRecord {
    CronJobRecord {
        successful_jobs_history_limit: Some(1),
        resource_version: ResourceVersion(11),
        ..record
    }
}

#[test]
fn slots_passed_during_a_pending_create_are_counted_once() {
    let mut world = World::new("09:59:30", vec![cron_job("hello")], vec![]);
    world.advance_to("10:00:00");
    world.effects();
    world.apply(edited(cron_job("hello")));
    world.advance_to("10:03:30");
    world.refused("no");
    world.effects();
    assert_eq!(world.shard.outcome_counts().due_instants, 4);
    assert_eq!(
        world.shard.outcome_counts().outcome(InstantOutcome::RefusedDueToTenant),
        1
    );
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::Superseded), 2);
}

fn failed(status: Option<u16>) -> CreateOutcome {
    CreateOutcome::Failed {
        message: "no".into(),
        status,
        retry_after: None,
    }
}

/// Answers to a create, each with whether the tenant causes it.
fn refusals() -> Vec<(CreateOutcome, bool)> {
    let message = || "no".into();
    vec![
        (failed(Some(403)), true),
        (failed(Some(404)), true),
        (failed(Some(429)), true),
        (CreateOutcome::NamespaceTerminating, true),
        (CreateOutcome::Invalid { message: message() }, true),
        (failed(Some(409)), false),
        (failed(Some(500)), false),
        (failed(None), false),
        (CreateOutcome::NotPermitted { message: message() }, false),
    ]
}

/// Answers all creates like this until the given time.
fn refuse_until(world: &mut World, answer: &CreateOutcome, text: &str) {
    while let Some(next) = world.shard.next_wakeup().filter(|next| *next <= at(text)) {
        world.advance_to(&next.to_string());
        world.effects();
        while !world.creates.is_empty() {
            world.answer_create(answer.clone());
        }
        world.effects();
    }
    world.advance_to(text);
}

#[test]
fn slots_that_the_tenant_causes_to_be_refused_are_not_superseded() {
    for (answer, is_tenants) in refusals() {
        let mut world = World::new("09:59:30", vec![cron_job("hello")], vec![]);
        refuse_until(&mut world, &answer, "10:10:00");
        let outcome = |outcome| world.shard.outcome_counts().outcome(outcome);
        let counted = (
            outcome(InstantOutcome::RefusedDueToTenant),
            outcome(InstantOutcome::Superseded),
        );
        assert_eq!(counted, if is_tenants { (10, 0) } else { (0, 10) }, "{answer:?}");
    }
}

#[test]
fn the_last_answer_decides_whether_a_passed_slot_was_refused() {
    let mut world = World::new("09:59:30", vec![cron_job("hello")], vec![]);
    world.advance_to("10:00:00");
    world.effects();
    world.answer_create(failed(Some(403)));
    let message = "no".into();
    refuse_until(&mut world, &CreateOutcome::NotPermitted { message }, "10:01:00");
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::Superseded), 1);
    assert_eq!(
        world.shard.outcome_counts().outcome(InstantOutcome::RefusedDueToTenant),
        0
    );
}

#[test]
fn slots_that_the_tenant_causes_to_be_refused_are_not_lost_to_their_deadline() {
    let record = CronJobRecord {
        starting_deadline_seconds: Some(30),
        ..cron_job("hello")
    };
    for (answer, is_tenants) in refusals() {
        let mut world = World::new("09:59:30", vec![record.clone()], vec![]);
        refuse_until(&mut world, &answer, "10:09:59");
        let outcome = |outcome| world.shard.outcome_counts().outcome(outcome);
        let counted = (
            outcome(InstantOutcome::RefusedDueToTenant),
            outcome(InstantOutcome::DeadlineExceeded),
        );
        assert_eq!(counted, if is_tenants { (10, 0) } else { (0, 10) }, "{answer:?}");
    }
}

#[test]
fn a_longer_deadline_revives_a_slot_that_was_refused_until_its_deadline() {
    let record = CronJobRecord {
        starting_deadline_seconds: Some(30),
        ..cron_job("hello")
    };
    let mut world = World::new("09:59:30", vec![record.clone()], vec![]);
    refuse_until(&mut world, &failed(Some(403)), "10:00:45");
    world.apply(edited(CronJobRecord {
        starting_deadline_seconds: Some(300),
        ..record
    }));
    world.expect(&["create hello-29632920 for 2026-05-05T10:00:00Z"]);
}

#[test]
fn slots_past_their_deadline_are_counted() {
    let record = CronJobRecord {
        starting_deadline_seconds: Some(120),
        ..cron_job("hello")
    };
    let world = World::new("10:10:30", vec![record], vec![]);
    assert_eq!(world.shard.outcome_counts().due_instants, 11);
}

#[test]
fn suspended_slots_passed_in_one_step_are_counted() {
    let suspended = CronJobRecord {
        is_suspended: true,
        ..cron_job("hello")
    };
    let mut world = World::new("09:59:30", vec![suspended.clone()], vec![]);
    world.jump_to("10:10:30");
    assert_eq!(world.shard.outcome_counts().due_instants, 11);
    world.apply(CronJobRecord {
        is_suspended: false,
        ..edited(suspended)
    });
    world.expect(&["create hello-29632930 for 2026-05-05T10:10:00Z"]);
    assert_eq!(world.shard.outcome_counts().due_instants, 11);
}

/// A CronJob whose Job of 09:59 holds back the next slots by Forbid, with this Job.
fn held_back_by_forbid() -> (CronJobRecord, JobRecord) {
    let running = job("hello", "09:59:00");
    let record = CronJobRecord {
        concurrency_policy: ConcurrencyPolicy::Forbid,
        status: CronJobStatus {
            active: vec![entry(&running)],
            ..cron_job("hello").status
        },
        ..cron_job("hello")
    };
    (record, running)
}

#[test]
fn slots_that_the_last_leader_counted_are_not_counted_again() {
    let (record, running) = held_back_by_forbid();
    let mut world = World::on_standby("20:00:30", vec![record], vec![running]);
    world.shard.fired_through = Some(FiredThrough::Seal(at("19:57:59")));
    world.lead();
    assert_eq!(world.shard.outcome_counts().due_instants, 3);
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::HeldByForbid), 2);
}

#[test]
fn a_crash_counts_only_slots_since_the_last_renewal_and_the_one_that_was_open() {
    let minutely = CronJobRecord {
        schedule: schedule("* * * * *", None),
        ..cron_job("hello")
    };
    // Every slot since 10:00 was refused, so the cursor has not moved.
    let cases = [("20:00:08", 0), ("20:01:09", 1), ("20:03:09", 3)];
    for (led_at, n_superseded) in cases {
        let mut world = World::on_standby(led_at, vec![minutely.clone()], Vec::new());
        world.shard.fired_through = Some(FiredThrough::Renewal(at("20:00:02")));
        world.lead();
        let n_counted = world.shard.outcome_counts().outcome(InstantOutcome::Superseded);
        assert_eq!(n_counted, n_superseded, "led at {led_at}");
    }
}

#[test]
fn slots_held_back_by_forbid_before_a_crash_are_not_lost() {
    let (record, running) = held_back_by_forbid();
    let world = World::new("20:00:30", vec![record], vec![running]);
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::HeldByForbid), 600);
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::Superseded), 0);
}

#[test]
fn slots_before_the_first_decision_about_a_suspended_cron_job_are_not_lost() {
    let daily = CronJobRecord {
        schedule: schedule("0 9 * * *", None),
        status: CronJobStatus {
            last_schedule_time: Some(at("2026-01-01T09:00:00Z")),
            ..CronJobStatus::default()
        },
        is_suspended: true,
        ..cron_job("hello")
    };
    let mut world = World::new("10:00:30", vec![daily.clone()], vec![]);
    world.effects();
    world.apply(CronJobRecord {
        is_suspended: false,
        ..edited(daily)
    });
    assert_eq!(world.shard.outcome_counts().due_instants, 1);
    let effects = world.effects();
    assert!(effects.iter().any(|line| line.starts_with("create")), "{effects:#?}");
}

#[test]
fn each_minutely_slot_is_counted() {
    let mut world = World::new("09:59:30", vec![cron_job("hello")], vec![]);
    for minute in 0..10 {
        world.advance_to(&format!("10:{minute:02}:00"));
        world.created_all();
        assert_eq!(world.shard.outcome_counts().due_instants, minute + 1);
    }
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::Created), 10);
}

#[test]
fn a_longer_deadline_revives_a_missed_slot_held_back_by_forbid() {
    let (held_back, before) = held_back_by_forbid();
    let record = CronJobRecord {
        starting_deadline_seconds: Some(15),
        ..held_back
    };
    let mut world = World::new("09:59:30", vec![record.clone()], vec![before]);
    world.advance_to("10:00:30");
    world.effects();
    world.apply(edited(record.clone()));
    world.expect(&[]);
    world.apply(CronJobRecord {
        starting_deadline_seconds: Some(300),
        resource_version: ResourceVersion(12),
        ..record
    });
    world.expect(&[
        "Normal JobAlreadyActive: Not starting job because prior execution is running and concurrency policy is Forbid",
    ]);
    world.apply_job(complete(job("hello", "09:59:00"), "10:00:31"));
    let effects = world.effects();
    assert!(
        effects.iter().any(|line| line.starts_with("create hello-29632920")),
        "{effects:#?}"
    );
}

#[test]
fn forbid_with_deadline_zero_reports_the_missed_slot_within_a_second() {
    let (held_back, before) = held_back_by_forbid();
    let record = CronJobRecord {
        starting_deadline_seconds: Some(0),
        ..held_back
    };
    let mut world = World::new("09:59:30", vec![record], vec![before]);
    world.jump_to("2026-05-05T10:00:00.005Z");
    world.effects();
    world.advance_to("10:00:01");
    world.expect(&["Warning MissSchedule: Missed scheduled time to start a job: Tue, 05 May 2026 10:00:00 +0000"]);
    assert!(world.now >= at("10:00:01"));
}
