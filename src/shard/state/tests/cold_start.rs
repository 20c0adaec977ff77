//! B-1.3, B-9: decisions at the time when the lists are complete.

use super::world::{World, at, complete, cron_job, entry, job, schedule, uid};
use crate::{
    schedule::Zone,
    shard::{
        ConcurrencyPolicy, CronJobRecord, CronJobSchedule, CronJobStatus, Input, InstantOutcome, ResourceVersion,
        Scope, ShardConfig, ShardState, WatchedResource,
    },
};
use jiff::SignedDuration;

fn last(record: CronJobRecord, last: Option<&str>) -> CronJobRecord {
    CronJobRecord {
        status: CronJobStatus {
            last_schedule_time: last.map(at),
            ..record.status.clone()
        },
        ..record
    }
}

#[test]
fn b_1_3_nothing_is_decided_before_both_lists_are_complete() {
    let now = at("10:00:00");
    let mut shard = ShardState::new(
        ShardConfig {
            clock_skew_max: SignedDuration::from_secs(2),
            scopes: vec![Scope::Cluster],
        },
        now,
    );
    shard.lead(now);
    shard.handle(Input::list_begun(WatchedResource::CronJobs, Scope::Cluster), now);
    shard.handle(Input::CronJobApplied(Box::new(cron_job("hello"))), now);
    shard.handle(Input::list_done(WatchedResource::CronJobs, Scope::Cluster), now);
    shard.handle(Input::list_begun(WatchedResource::Jobs, Scope::Cluster), now);
    shard.handle_timeout(now);
    assert!(shard.poll_effect().is_none());
    assert_eq!(shard.next_wakeup(), None);
    shard.handle(Input::list_done(WatchedResource::Jobs, Scope::Cluster), now);
    assert!(shard.poll_effect().is_some());
}

#[test]
fn b_9_4_only_the_latest_missed_slot_is_started() {
    let mut world = World::new("10:05:30", vec![cron_job("hello")], vec![]);
    world.expect(&["create hello-29632925 for 2026-05-05T10:05:00Z"]);
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::Superseded), 5);
    assert_eq!(world.shard.outcome_counts().due_instants, 6);
}

#[test]
fn b_9_4_more_than_100_missed_slots_cause_only_a_warning() {
    let mut world = World::new("12:00:30", vec![cron_job("hello")], vec![]);
    world.expect(&[
        "Warning TooManyMissedTimes: too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew",
        "create hello-29633040 for 2026-05-05T12:00:00Z",
    ]);
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::Superseded), 120);
}

#[test]
fn b_9_3_an_irregular_schedule_loses_no_slot() {
    // An example from the upstream source: the estimate from the first gap misses Friday 12:30.
    let irregular = CronJobRecord {
        schedule: schedule("30 10,11,12 * * 1-5", None),
        ..cron_job("hello")
    };
    let irregular = last(irregular, Some("2026-05-07T10:30:00Z"));
    let mut world = World::new("2026-05-08T16:30:00Z", vec![irregular], vec![]);
    world.expect(&["create hello-29637390 for 2026-05-08T12:30:00Z"]);
}

#[test]
fn b_9_1_first_slot_is_counted_from_the_creation() {
    let new = last(
        CronJobRecord {
            created: at("10:00:10"),
            ..cron_job("hello")
        },
        None,
    );
    let mut world = World::new("10:00:30", vec![new], vec![]);
    world.expect(&[]);
    world.advance_to("10:01:00");
    world.expect(&["create hello-29632921 for 2026-05-05T10:01:00Z"]);
}

#[test]
fn b_16_4_no_job_starts_before_a_future_cursor() {
    let mut world = World::new("10:00:30", vec![last(cron_job("hello"), Some("11:00:00"))], vec![]);
    world.advance_to("11:00:30");
    world.expect(&[
        "Warning LastScheduleTimeInFuture: status.lastScheduleTime 2026-05-05T11:00:00Z is in the future: \
                    no job starts before then; correct it in the status subresource",
    ]);
    world.advance_to("11:01:00");
    world.expect(&["create hello-29632981 for 2026-05-05T11:01:00Z"]);
}

#[test]
fn a_slot_not_recorded_before_a_crash_is_not_started_again() {
    let mut world = World::new("10:00:30", vec![cron_job("hello")], vec![job("hello", "10:00:00")]);
    world.expect(&["status last=10:00:00 successful=- active=[hello-29632920]"]);
}

#[test]
fn b_10_1_an_unrecorded_finished_job_is_recorded_and_not_missed() {
    let record = CronJobRecord {
        schedule: schedule("*/30 * * * *", None),
        starting_deadline_seconds: Some(0),
        ..cron_job("hello")
    };
    let ran = complete(job("hello", "10:00:00"), "10:00:20");
    let mut world = World::new("10:01:30", vec![record], vec![ran]);
    world.expect(&["status last=10:00:00 successful=10:00:20 active=[]"]);
    assert_eq!(
        world.shard.outcome_counts().outcome(InstantOutcome::DeadlineExceeded),
        0
    );
}

#[test]
fn an_unrecorded_finished_job_is_recorded_while_suspended() {
    let record = CronJobRecord {
        is_suspended: true,
        ..cron_job("hello")
    };
    let ran = complete(job("hello", "10:00:00"), "10:00:20");
    let mut world = World::new("10:01:30", vec![record], vec![ran]);
    world.expect(&["status last=10:00:00 successful=10:00:20 active=[]"]);
}

#[test]
fn a_relist_removes_deleted_objects() {
    let mut world = World::new("09:59:30", vec![cron_job("hello"), cron_job("gone")], vec![]);
    world.list(vec![cron_job("hello")], vec![]);
    world.advance_to("10:00:00");
    world.expect(&["create hello-29632920 for 2026-05-05T10:00:00Z"]);
    assert_eq!(world.shard.sizes().cron_jobs, 1);
}

#[test]
fn a_relist_keeps_undecodable_jobs() {
    // B-10.3: if the Job were considered gone, another run would start beside it.
    let running = job("hello", "09:59:00");
    let record = CronJobRecord {
        concurrency_policy: ConcurrencyPolicy::Forbid,
        status: CronJobStatus {
            active: vec![entry(&running)],
            ..cron_job("hello").status
        },
        ..cron_job("hello")
    };
    let mut world = World::new("09:59:30", vec![record], vec![running.clone()]);
    world.input(Input::list_begun(WatchedResource::Jobs, Scope::Cluster));
    world.input(Input::JobUndecodable(running.uid.clone()));
    world.input(Input::JobUndecodable(uid("unknown")));
    world.input(Input::list_done(WatchedResource::Jobs, Scope::Cluster));
    assert_eq!(world.shard.sizes().jobs, 1);
    world.advance_to("10:00:00");
    world.expect(&[
        "Normal JobAlreadyActive: Not starting job because prior execution is running and concurrency policy is Forbid",
    ]);
}

#[test]
fn an_undecodable_cron_job_starts_nothing_until_it_is_fixed() {
    let mut world = World::new("09:59:30", vec![cron_job("hello")], vec![]);
    world.input(Input::list_begun(WatchedResource::CronJobs, Scope::Cluster));
    world.input(Input::CronJobUndecodable(uid("hello")));
    world.input(Input::CronJobUndecodable(uid("unknown")));
    world.input(Input::list_done(WatchedResource::CronJobs, Scope::Cluster));
    world.advance_to("10:03:00");
    world.apply_job(job("hello", "10:00:00"));
    world.expect(&[]);
    let sizes = world.shard.sizes();
    assert_eq!((sizes.cron_jobs, sizes.jobs, sizes.wheel_entries), (1, 1, 0));
    world.apply(CronJobRecord {
        resource_version: ResourceVersion(12),
        ..cron_job("hello")
    });
    world.expect(&[
        "create hello-29632923 for 2026-05-05T10:03:00Z",
        "status last=10:00:00 successful=- active=[hello-29632920]",
    ]);
}

#[test]
fn a_job_created_during_a_relist_survives_it() {
    let mut world = World::new("09:59:30", vec![cron_job("hello")], vec![]);
    world.advance_to("10:00:00");
    world.effects();
    world.input(Input::list_begun(WatchedResource::Jobs, Scope::Cluster));
    world.created();
    world.input(Input::list_done(WatchedResource::Jobs, Scope::Cluster));
    world.expect(&[
        "Normal SuccessfulCreate: Created job hello-29632920",
        "status last=10:00:00 successful=- active=[hello-29632920]",
    ]);
    assert_eq!(world.shard.sizes().jobs, 1);
}

#[test]
fn a_clock_that_jumps_forward_starts_each_cron_job_once() {
    let mut world = World::new("09:59:30", vec![cron_job("hello"), cron_job("other")], vec![]);
    world.jump_to("13:00:10");
    let creates: Vec<String> = world
        .effects()
        .into_iter()
        .filter(|line| line.starts_with("create"))
        .collect();
    assert_eq!(
        creates,
        [
            "create hello-29633100 for 2026-05-05T13:00:00Z",
            "create other-29633100 for 2026-05-05T13:00:00Z"
        ]
    );
}

#[test]
fn a_clock_that_is_set_back_starts_nothing_twice() {
    let mut world = World::new("09:59:30", vec![cron_job("hello")], vec![]);
    world.advance_to("10:00:00");
    world.created_all();
    world.jump_to("09:00:00");
    world.advance_to("10:00:59");
    world.expect(&[
        "Warning LastScheduleTimeInFuture: status.lastScheduleTime 2026-05-05T09:59:00Z is in the future: \
                    no job starts before then; correct it in the status subresource",
    ]);
    world.advance_to("10:01:00");
    world.expect(&["create hello-29632921 for 2026-05-05T10:01:00Z"]);
}

#[test]
fn every_fires_on_its_grid_after_the_clock_is_set_back() {
    let record = CronJobRecord {
        schedule: schedule("@every 30s", None),
        created: at("10:00:00"),
        ..last(cron_job("hello"), None)
    };
    let mut world = World::new("10:01:00", vec![], vec![]);
    world.now = at("10:00:10");
    world.apply(record);
    world.jump_to("10:00:11");
    world.expect(&[]);
    world.advance_to("10:00:30");
    world.expect(&["create hello-29632920 for 2026-05-05T10:00:30Z"]);
}

#[test]
fn every_fires_on_time_after_the_clock_is_set_back_by_seconds() {
    let record = CronJobRecord {
        schedule: schedule("@every 30s", None),
        created: at("10:00:00"),
        ..last(cron_job("hello"), None)
    };
    let mut world = World::new("10:00:01", vec![record], vec![]);
    world.jump_to("10:00:29");
    world.expect(&[]);
    world.jump_to("10:00:12");
    world.apply(CronJobRecord {
        schedule: schedule("@every 10s", None),
        resource_version: ResourceVersion(11),
        created: at("10:00:00"),
        ..last(cron_job("hello"), None)
    });
    world.advance_to("10:00:20");
    world.expect(&["create hello-29632920 for 2026-05-05T10:00:20Z"]);
}

#[test]
fn a_new_cron_job_fires_after_the_clock_is_set_back() {
    let mut world = World::new("12:00:00", vec![cron_job("hello")], vec![]);
    world.created_all();
    world.jump_to("11:00:00");
    let new = last(
        CronJobRecord {
            created: at("11:00:00"),
            ..cron_job("new")
        },
        None,
    );
    world.apply(new);
    world.advance_to("11:01:00");
    world.expect(&["create new-29632981 for 2026-05-05T11:01:00Z"]);
}

#[test]
fn b_9_6_next_wakeup_is_the_slot() {
    let mut world = World::new("09:59:30", vec![cron_job("hello")], vec![]);
    assert_eq!(world.shard.next_wakeup(), Some(at("10:00:00")));
}

#[test]
fn b_7_2_schedule_without_a_zone_uses_the_default_zone() {
    let in_tokyo = CronJobRecord {
        schedule: CronJobSchedule::new("0 19 * * *", None, &Zone::load("Asia/Tokyo").expect("a zone")),
        ..cron_job("hello")
    };
    let mut world = World::new("09:59:30", vec![in_tokyo], vec![]);
    world.advance_to("10:00:00");
    // The annotation is in UTC, since the CronJob names no zone (B-11.3).
    world.expect(&["create hello-29632920 for 2026-05-05T10:00:00Z"]);
}
