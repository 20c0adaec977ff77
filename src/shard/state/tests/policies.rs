//! B-10.2 to B-10.5: the effect of running Jobs on the next run.

use super::world::{World, at, complete, cron_job, entry, failed, job, manual_job, schedule};
use crate::shard::{
    ConcurrencyPolicy, CronJobRecord, CronJobStatus, DeleteOutcome, InstantOutcome, JobRecord, LookUpOutcome,
    ResourceVersion,
};

/// A CronJob whose Job of 09:59 runs.
fn running(policy: ConcurrencyPolicy) -> World {
    let before = job("hello", "09:59:00");
    let status = CronJobStatus {
        active: vec![entry(&before)],
        ..cron_job("hello").status
    };
    let record = CronJobRecord {
        concurrency_policy: policy,
        status,
        ..cron_job("hello")
    };
    let mut world = World::new("09:59:30", vec![record], vec![before]);
    world.expect(&[]);
    world
}

const BLOCKED: &str =
    "Normal JobAlreadyActive: Not starting job because prior execution is running and concurrency policy is Forbid";

#[test]
fn b_10_5_allow_starts_beside_a_running_job() {
    let mut world = running(ConcurrencyPolicy::Allow);
    world.advance_to("10:00:00");
    world.expect(&["create hello-29632920 for 2026-05-05T10:00:00Z"]);
}

#[test]
fn b_10_3_forbid_waits_and_starts_when_the_job_ends() {
    let mut world = running(ConcurrencyPolicy::Forbid);
    world.advance_to("10:00:00");
    world.expect(&[BLOCKED]);
    world.advance_to("10:00:20");
    world.apply_job(complete(job("hello", "09:59:00"), "10:00:19"));
    world.expect(&[
        "Normal SawCompletedJob: Saw completed job: hello-29632919, condition: Complete",
        "create hello-29632920 for 2026-05-05T10:00:00Z",
        "status last=09:59:00 successful=10:00:19 active=[]",
    ]);
    world.created_all();
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::Created), 1);
}

#[test]
fn b_10_4_a_create_of_every_expires_at_the_next_slot_of_its_grid() {
    let before = job("hello", "09:59:00");
    let status = CronJobStatus {
        active: vec![entry(&before)],
        ..cron_job("hello").status
    };
    let record = CronJobRecord {
        concurrency_policy: ConcurrencyPolicy::Replace,
        schedule: schedule("@every 10m", None),
        status,
        ..cron_job("hello")
    };
    let mut world = World::new("10:08:30", vec![record], vec![before]);
    world.advance_to("10:09:00");
    world.expect(&["delete hello-29632919"]);
    world.advance_to("10:09:05");
    world.answer_delete(DeleteOutcome::Deleted);
    world.effects();
    assert_eq!(world.creates[0].expires_at, Some(at("10:19:00")));
}

#[test]
fn b_15_1_is_on_time_is_false_for_delayed_creates() {
    #[track_caller]
    fn check(name: &str, world: &mut World, is_on_time: bool) {
        world.effects();
        let orders: Vec<bool> = world.creates.iter().map(|order| order.is_on_time).collect();
        assert_eq!(orders, [is_on_time], "{name}");
    }
    let mut world = running(ConcurrencyPolicy::Allow);
    world.advance_to("10:00:00");
    check("due", &mut world, true);

    let mut world = running(ConcurrencyPolicy::Forbid);
    world.advance_to("10:00:20");
    world.apply_job(complete(job("hello", "09:59:00"), "10:00:19"));
    check("held back by Forbid", &mut world, false);

    let mut world = World::new("10:05:30", vec![cron_job("hello")], Vec::new());
    check("caught up on", &mut world, false);
}

#[test]
fn b_10_3_forbid_starts_only_the_latest_slot() {
    let mut world = running(ConcurrencyPolicy::Forbid);
    world.advance_to("10:03:30");
    world.expect(&[BLOCKED, BLOCKED, BLOCKED, BLOCKED]);
    world.apply_job(failed(job("hello", "09:59:00")));
    let effects = world.effects();
    assert_eq!(effects[1], "create hello-29632923 for 2026-05-05T10:03:00Z");
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::HeldByForbid), 3);
}

#[test]
fn b_10_3_forbid_misses_a_slot_when_its_deadline_passes() {
    let before = job("hello", "09:59:00");
    let record = CronJobRecord {
        concurrency_policy: ConcurrencyPolicy::Forbid,
        starting_deadline_seconds: Some(15),
        status: CronJobStatus {
            active: vec![entry(&before)],
            ..cron_job("hello").status
        },
        ..cron_job("hello")
    };
    let mut world = World::new("09:59:30", vec![record], vec![before]);
    world.advance_to("10:00:15");
    world.expect(&[BLOCKED]);
    world.advance_to("10:00:16");
    world.expect(&["Warning MissSchedule: Missed scheduled time to start a job: Tue, 05 May 2026 10:00:00 +0000"]);
    world.apply_job(complete(job("hello", "09:59:00"), "10:00:20"));
    let effects = world.effects();
    assert!(effects.iter().all(|line| !line.starts_with("create")), "{effects:#?}");
    assert_eq!(
        world.shard.outcome_counts().outcome(InstantOutcome::DeadlineExceeded),
        1
    );
}

#[test]
fn b_10_3_forbid_ignores_a_manual_run() {
    let record = CronJobRecord {
        concurrency_policy: ConcurrencyPolicy::Forbid,
        ..cron_job("hello")
    };
    let mut world = World::new("09:59:30", vec![record], vec![manual_job("hello", "by-hand")]);
    world.expect(&["Warning UnexpectedJob: Saw a job that the controller did not create or forgot: by-hand"]);
    world.advance_to("10:00:00");
    world.expect(&["create hello-29632920 for 2026-05-05T10:00:00Z"]);
}

#[test]
fn b_10_3_forbid_counts_a_running_job_missing_from_the_active_list() {
    let record = CronJobRecord {
        concurrency_policy: ConcurrencyPolicy::Forbid,
        ..cron_job("hello")
    };
    let mut world = World::new("09:59:30", vec![record], vec![job("hello", "09:59:00")]);
    world.expect(&["status last=09:59:00 successful=- active=[hello-29632919]"]);
    world.advance_to("10:00:00");
    world.expect(&[BLOCKED]);
}

#[test]
fn b_10_3_forbid_waits_for_the_look_up_of_an_unknown_active_job() {
    let unknown = job("hello", "09:59:00");
    let record = CronJobRecord {
        concurrency_policy: ConcurrencyPolicy::Forbid,
        status: CronJobStatus {
            active: vec![entry(&unknown)],
            ..cron_job("hello").status
        },
        ..cron_job("hello")
    };
    let mut world = World::new("10:00:30", vec![record], vec![]);
    world.expect(&["look up hello-29632919"]);
    world.answer_look_up(LookUpOutcome::Found(Box::new(unknown)));
    world.expect(&[BLOCKED]);
}

#[test]
fn b_10_4_replace_deletes_before_it_creates() {
    let mut world = running(ConcurrencyPolicy::Replace);
    world.advance_to("10:00:00");
    world.expect(&["delete hello-29632919"]);
    world.answer_delete(DeleteOutcome::Deleted);
    world.expect(&[
        "Normal SuccessfulDelete: Deleted job hello-29632919",
        "create hello-29632920 for 2026-05-05T10:00:00Z",
        "status last=09:59:00 successful=- active=[]",
    ]);
    world.created();
    world.expect(&[
        "Normal SuccessfulCreate: Created job hello-29632920",
        "status last=10:00:00 successful=- active=[hello-29632920]",
    ]);
}

#[test]
fn b_10_4_replace_deletes_in_the_order_of_the_active_list() {
    let jobs = ["09:58:00", "09:59:00", "09:57:00"].map(|slot| job("hello", slot));
    let record = CronJobRecord {
        concurrency_policy: ConcurrencyPolicy::Replace,
        status: CronJobStatus {
            active: jobs.iter().map(entry).collect(),
            ..cron_job("hello").status
        },
        ..cron_job("hello")
    };
    let mut world = World::new("10:00:00", vec![record], jobs.to_vec());
    world.expect(&[
        "delete hello-29632918",
        "delete hello-29632919",
        "delete hello-29632917",
    ]);
}

#[test]
fn b_10_4_replace_treats_a_missing_job_as_deleted() {
    let mut world = running(ConcurrencyPolicy::Replace);
    world.advance_to("10:00:00");
    world.effects();
    world.answer_delete(DeleteOutcome::Gone);
    assert_eq!(world.effects()[0], "create hello-29632920 for 2026-05-05T10:00:00Z");
}

#[test]
fn b_10_4_replace_does_not_create_while_a_delete_fails() {
    let mut world = running(ConcurrencyPolicy::Replace);
    world.advance_to("10:00:00");
    world.effects();
    world.answer_delete(DeleteOutcome::Failed {
        message: "webhook down".into(),
        retry_after: None,
    });
    world.expect(&["Warning FailedDelete: Deleted job: webhook down"]);
    world.advance_to("10:00:01");
    world.expect(&["delete hello-29632919"]);
    world.answer_delete(DeleteOutcome::Deleted);
    assert_eq!(world.effects()[1], "create hello-29632920 for 2026-05-05T10:00:00Z");
}

#[test]
fn b_10_4_replace_starts_the_latest_slot_after_slow_deletes() {
    let mut world = running(ConcurrencyPolicy::Replace);
    world.advance_to("10:00:00");
    world.expect(&["delete hello-29632919"]);
    world.advance_to("10:02:30");
    world.expect(&[]);
    world.answer_delete(DeleteOutcome::Deleted);
    assert_eq!(world.effects()[1], "create hello-29632922 for 2026-05-05T10:02:00Z");
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::Superseded), 2);
}

#[test]
fn b_10_4_replace_starts_nothing_if_suspended_during_the_delete() {
    let mut world = running(ConcurrencyPolicy::Replace);
    world.advance_to("10:00:00");
    world.effects();
    world.apply(CronJobRecord {
        concurrency_policy: ConcurrencyPolicy::Replace,
        is_suspended: true,
        resource_version: ResourceVersion(11),
        ..cron_job("hello")
    });
    world.answer_delete(DeleteOutcome::Deleted);
    let effects = world.effects();
    assert!(effects.iter().all(|line| !line.starts_with("create")), "{effects:#?}");
}

#[test]
fn b_10_2_a_running_job_with_the_name_of_the_slot_blocks_it() {
    let unmarked = JobRecord {
        scheduled: None,
        ..job("hello", "10:00:00")
    };
    let status = CronJobStatus {
        active: vec![entry(&unmarked)],
        ..cron_job("hello").status
    };
    let record = CronJobRecord {
        status,
        ..cron_job("hello")
    };
    let mut world = World::new("10:00:30", vec![record], vec![unmarked]);
    world.expect(&[]);
    world.advance_to("10:01:00");
    world.expect(&["create hello-29632921 for 2026-05-05T10:01:00Z"]);
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::AlreadyActive), 1);
    assert!(world.now >= at("10:01:00"));
}

#[test]
fn b_10_3_forbid_waits_for_a_manual_run_on_the_active_list() {
    let by_hand = manual_job("hello", "by-hand");
    let record = CronJobRecord {
        concurrency_policy: ConcurrencyPolicy::Forbid,
        status: CronJobStatus {
            active: vec![entry(&by_hand)],
            ..cron_job("hello").status
        },
        ..cron_job("hello")
    };
    let mut world = World::new("09:59:30", vec![record], vec![by_hand]);
    world.advance_to("10:00:00");
    world.expect(&[
        "Normal JobAlreadyActive: Not starting job because prior execution is running and concurrency policy is Forbid",
    ]);
}
