//! Tests of queued requests, which obey the latest version of their CronJob.

use std::sync::Arc;

use super::world::{World, at, cron_job, entry, job, schedule, uid};
use crate::shard::{
    ConcurrencyPolicy, CreateOutcome, CronJobRecord, CronJobStatus, DeleteOutcome, Input, InstantOutcome, JobTemplate,
    ResourceVersion,
};

const WITHDRAW: &str = "withdraw the create of hello";
const AGAIN: &str = "create hello-29632920 for 2026-05-05T10:00:00Z";

/// A CronJob whose create of 10:00 is queued.
fn ordered() -> World {
    let mut world = World::new("09:59:30", vec![cron_job("hello")], vec![]);
    world.advance_to("10:00:00");
    world.expect(&[AGAIN]);
    world.now = at("10:00:20");
    world
}

fn changed(record: CronJobRecord) -> CronJobRecord {
    CronJobRecord {
        resource_version: ResourceVersion(11),
        ..record
    }
}

fn with_template(text: &str) -> CronJobRecord {
    let template = JobTemplate {
        body: text.into(),
        ..(*cron_job("hello").template).clone()
    };
    changed(CronJobRecord {
        template: Arc::new(template),
        ..cron_job("hello")
    })
}

#[track_caller]
fn check_ends(change: CronJobRecord, outcome: InstantOutcome) {
    let mut world = ordered();
    world.apply(change);
    world.expect(&[WITHDRAW]);
    world.answer_create(CreateOutcome::Withdrawn);
    world.expect(&[]);
    world.advance_to("10:00:59");
    world.expect(&[]);
    world.advance_to("10:01:30");
    world.effects();
    assert_eq!(world.shard.outcome_counts().outcome(outcome), 1, "{outcome:?}");
}

#[test]
fn a_queued_create_is_withdrawn_when_its_cron_job_is_suspended() {
    let suspended = CronJobRecord {
        is_suspended: true,
        ..cron_job("hello")
    };
    check_ends(changed(suspended), InstantOutcome::Suspended);
}

#[test]
fn a_queued_create_is_withdrawn_when_its_cron_job_is_being_deleted() {
    let deleting = CronJobRecord {
        is_deleting: true,
        ..cron_job("hello")
    };
    check_ends(changed(deleting), InstantOutcome::Deleted);
}

#[test]
fn a_queued_create_is_withdrawn_when_the_schedule_changes() {
    let rescheduled = CronJobRecord {
        schedule: schedule("30 * * * *", None),
        ..cron_job("hello")
    };
    check_ends(changed(rescheduled), InstantOutcome::ScheduleChanged);
    // A slot of the new schedule becomes due after the change, before the order is answered.
    let mut world = ordered();
    world.apply(changed(CronJobRecord {
        schedule: schedule("@every 1s", None),
        ..cron_job("hello")
    }));
    world.expect(&[WITHDRAW]);
    world.now = at("10:00:25");
    world.answer_create(CreateOutcome::Withdrawn);
    world.expect(&["create hello-29632920 for 2026-05-05T10:00:25Z"]);
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::ScheduleChanged), 1);
}

#[test]
fn a_queued_create_is_withdrawn_when_its_cron_job_is_gone() {
    let mut world = ordered();
    world.input(Input::CronJobDeleted(uid("hello")));
    world.expect(&[WITHDRAW]);
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::Deleted), 1);
    world.answer_create(CreateOutcome::Withdrawn);
    world.expect(&[]);
}

#[test]
fn a_queued_create_is_withdrawn_when_its_cron_job_is_undecodable() {
    let mut world = ordered();
    world.input(Input::CronJobUndecodable(uid("hello")));
    world.expect(&[WITHDRAW]);
    world.answer_create(CreateOutcome::Withdrawn);
    world.expect(&[]);
    world.advance_to("10:00:40");
    world.expect(&[]);
    world.apply(changed(cron_job("hello")));
    world.expect(&[AGAIN]);
}

#[test]
fn a_queued_create_is_replaced_when_the_template_changes() {
    let mut world = ordered();
    world.apply(with_template("new"));
    world.expect(&[WITHDRAW]);
    world.answer_create(CreateOutcome::Withdrawn);
    world.expect(&[AGAIN]);
    assert_eq!(world.creates[0].template.body.as_str(), Some("new"));
    world.created_all();
    assert_eq!(world.shard.outcome_counts().due_instants, 1);
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::Created), 1);
}

#[test]
fn a_queued_create_is_decided_again_when_the_deadline_changes() {
    let mut world = ordered();
    world.apply(changed(CronJobRecord {
        starting_deadline_seconds: Some(15),
        ..cron_job("hello")
    }));
    world.expect(&[WITHDRAW]);
    world.answer_create(CreateOutcome::Withdrawn);
    world.expect(&["Warning MissSchedule: Missed scheduled time to start a job: Tue, 05 May 2026 10:00:00 +0000"]);
}

#[test]
fn a_create_already_sent_is_not_repeated_for_a_new_template() {
    let mut world = ordered();
    world.apply(with_template("new"));
    world.expect(&[WITHDRAW]);
    world.advance_to("10:00:50");
    world.expect(&[]);
    world.created();
    world.expect(&[
        "Normal SuccessfulCreate: Created job hello-29632920",
        "status last=10:00:00 successful=- active=[hello-29632920]",
    ]);
}

#[test]
fn a_failed_create_is_not_retried_after_a_schedule_change() {
    let mut world = ordered();
    world.apply(changed(CronJobRecord {
        schedule: schedule("30 * * * *", None),
        ..cron_job("hello")
    }));
    world.expect(&[WITHDRAW]);
    world.refused("no");
    world.expect(&["Warning FailedCreate: Error creating job: no"]);
    world.advance_to("10:05:00");
    world.expect(&[]);
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::ScheduleChanged), 1);
}

#[test]
fn a_status_change_withdraws_nothing() {
    let mut world = ordered();
    world.apply(changed(CronJobRecord {
        status: CronJobStatus {
            last_successful_time: Some(at("09:59:30")),
            ..cron_job("hello").status
        },
        ..cron_job("hello")
    }));
    world.expect(&[]);
}

#[test]
fn a_queued_replace_delete_is_withdrawn_when_suspended() {
    let before = job("hello", "09:59:00");
    let record = CronJobRecord {
        concurrency_policy: ConcurrencyPolicy::Replace,
        status: CronJobStatus {
            active: vec![entry(&before)],
            ..cron_job("hello").status
        },
        ..cron_job("hello")
    };
    let mut world = World::new("09:59:30", vec![record.clone()], vec![before]);
    world.advance_to("10:00:00");
    world.expect(&["delete hello-29632919"]);
    world.apply(changed(CronJobRecord {
        is_suspended: true,
        ..record.clone()
    }));
    world.expect(&["withdraw the delete of uid-hello-29632919"]);
    world.answer_delete(DeleteOutcome::Withdrawn);
    world.expect(&[]);
    // The Job still counts as running.
    world.apply(CronJobRecord {
        resource_version: ResourceVersion(12),
        ..record
    });
    world.expect(&["delete hello-29632919"]);
    world.answer_delete(DeleteOutcome::Deleted);
    world.expect(&[
        "Normal SuccessfulDelete: Deleted job hello-29632919",
        AGAIN,
        "status last=09:59:00 successful=- active=[]",
    ]);
}
