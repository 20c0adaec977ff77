//! Tests of late, missing and outdated answers. They cause no second Job for a slot, no restored Job and no overlap.

use super::world::{World, at, complete, cron_job, entry, gone, job, schedule, uid};
use crate::shard::{
    ConcurrencyPolicy, CreateOutcome, CronJobRecord, CronJobStatus, DeleteOutcome, Input, InstantOutcome, JobRecord,
    JobTemplate, LookUpOutcome, ResourceVersion, Scope, WatchedResource,
};

const BLOCKED: &str =
    "Normal JobAlreadyActive: Not starting job because prior execution is running and concurrency policy is Forbid";

fn forbid() -> CronJobRecord {
    CronJobRecord {
        concurrency_policy: ConcurrencyPolicy::Forbid,
        ..cron_job("hello")
    }
}

fn unanswered(world: &mut World) {
    world.answer_create(CreateOutcome::Unanswered {
        message: "connection reset".into(),
        is_unreachable: true,
    });
}

fn ordered(record: CronJobRecord) -> World {
    let mut world = World::new("09:59:30", vec![record], vec![]);
    world.advance_to("10:00:00");
    world.expect(&["create hello-29632920 for 2026-05-05T10:00:00Z"]);
    world
}

#[test]
fn b_12_6_an_unanswered_create_is_looked_up_before_any_retry() {
    let mut world = ordered(cron_job("hello"));
    unanswered(&mut world);
    world.expect(&["look up hello-29632920"]);
    world.answer_look_up(LookUpOutcome::Found(Box::new(job("hello", "10:00:00"))));
    world.expect(&["status last=10:00:00 successful=- active=[hello-29632920]"]);
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::Adopted), 1);
}

#[test]
fn a_create_lost_twice_is_reported() {
    let mut world = ordered(cron_job("hello"));
    unanswered(&mut world);
    world.expect(&["look up hello-29632920"]);
    world.answer_look_up(LookUpOutcome::Gone);
    world.expect(&[]);
    world.advance_to("10:00:01");
    world.expect(&["create hello-29632920 for 2026-05-05T10:00:00Z"]);
    unanswered(&mut world);
    world.expect(&["look up hello-29632920"]);
    world.answer_look_up(LookUpOutcome::Gone);
    world.expect(&["Warning FailedCreate: Error creating job: connection reset"]);
}

#[test]
fn a_look_up_for_the_active_list_does_not_answer_for_the_slot() {
    // The look-up of the entry was sent before the create, so its answer is no evidence about the create.
    let mut record = cron_job("hello");
    record.status.active = vec![entry(&job("hello", "10:00:00"))];
    let mut world = World::new("09:59:30", vec![record], vec![]);
    world.expect(&["look up hello-29632920"]);
    world.advance_to("10:00:00");
    world.expect(&["create hello-29632920 for 2026-05-05T10:00:00Z"]);
    unanswered(&mut world);
    world.expect(&["look up hello-29632920"]);
    world.answer_look_up(LookUpOutcome::Gone);
    world.effects();
    world.advance_to("10:00:30");
    world.expect(&[]);
    world.answer_look_up(LookUpOutcome::Found(Box::new(job("hello", "10:00:00"))));
    world.expect(&["status last=10:00:00 successful=- active=[hello-29632920]"]);
}

#[test]
fn an_unanswered_create_without_a_job_is_retried() {
    let mut world = ordered(cron_job("hello"));
    unanswered(&mut world);
    world.effects();
    world.answer_look_up(LookUpOutcome::Gone);
    world.advance_to("10:00:01");
    world.expect(&["create hello-29632920 for 2026-05-05T10:00:00Z"]);
}

#[test]
fn a_failed_look_up_of_a_slot_is_retried() {
    let mut world = ordered(cron_job("hello"));
    unanswered(&mut world);
    world.effects();
    for _ in 0..3 {
        world.answer_look_up(LookUpOutcome::Failed {
            message: "down".into(),
            retry_after: None,
        });
        world.expect(&[]);
        let retry = world.shard.next_wakeup().expect("a retry");
        world.advance_to(&retry.to_string());
        world.expect(&["look up hello-29632920"]);
    }
}

#[test]
fn forbid_starts_no_later_slot_while_a_create_is_unanswered() {
    let mut world = ordered(forbid());
    world.advance_to("10:01:00");
    unanswered(&mut world);
    world.expect(&["look up hello-29632920"]);
    world.answer_look_up(LookUpOutcome::Found(Box::new(job("hello", "10:00:00"))));
    world.expect(&[BLOCKED, "status last=10:00:00 successful=- active=[hello-29632920]"]);
}

#[test]
fn history_keeps_a_job_whose_create_is_unanswered() {
    let mut world = ordered(CronJobRecord {
        successful_jobs_history_limit: Some(0),
        ..cron_job("hello")
    });
    world.apply_job(job("hello", "10:00:00"));
    world.effects();
    world.stored("hello");
    world.apply_job(complete(job("hello", "10:00:00"), "10:00:02"));
    let effects = world.effects();
    assert!(!effects.iter().any(|line| line.starts_with("delete")), "{effects:#?}");
    world.created();
    assert!(world.effects().contains(&"delete hello-29632920".to_owned()));
}

#[test]
fn a_job_deleted_during_its_look_up_is_not_created_again() {
    let mut world = ordered(cron_job("hello"));
    unanswered(&mut world);
    world.effects();
    world.apply_job(JobRecord {
        scheduled: None,
        ..job("hello", "10:00:00")
    });
    world.input(gone(&uid("hello-29632920"), "hello"));
    world.effects();
    world.answer_look_up(LookUpOutcome::Gone);
    world.expect(&["status last=10:00:00 successful=- active=[]"]);
}

#[test]
fn a_late_look_up_response_does_not_restore_a_deleted_job() {
    let mut world = ordered(forbid());
    unanswered(&mut world);
    world.effects();
    world.apply_job(job("hello", "10:00:00"));
    world.input(gone(&uid("hello-29632920"), "hello"));
    world.effects();
    world.answer_look_up(LookUpOutcome::Found(Box::new(job("hello", "10:00:00"))));
    assert_eq!(world.shard.sizes().jobs, 0);
    world.advance_to("10:01:00");
    assert!(
        world
            .effects()
            .contains(&"create hello-29632921 for 2026-05-05T10:01:00Z".to_owned())
    );
}

#[test]
fn b_12_5_a_created_job_without_its_annotation_counts_as_running() {
    let mut world = ordered(forbid());
    world.apply_job(JobRecord {
        scheduled: None,
        ..job("hello", "10:00:00")
    });
    world.created();
    world.effects();
    world.advance_to("10:01:00");
    world.expect(&[BLOCKED]);
}

#[test]
fn b_5_4_a_job_absent_from_a_relist_is_looked_up_first() {
    let before = job("hello", "09:59:00");
    let status = CronJobStatus {
        active: vec![entry(&before)],
        ..cron_job("hello").status
    };
    let mut world = World::new("09:59:30", vec![CronJobRecord { status, ..forbid() }], vec![before]);
    world.advance_to("10:00:00");
    world.expect(&[BLOCKED]);
    world.input(Input::list_begun(WatchedResource::Jobs, Scope::Cluster));
    world.input(Input::list_done(WatchedResource::Jobs, Scope::Cluster));
    world.expect(&["look up hello-29632919"]);
    world.answer_look_up(LookUpOutcome::Found(Box::new(job("hello", "09:59:00"))));
    world.expect(&[]);
}

#[test]
fn every_goes_on_when_a_retry_and_the_next_slot_coincide() {
    let status = CronJobStatus {
        last_schedule_time: Some(at("10:00:00")),
        ..CronJobStatus::default()
    };
    let every = CronJobRecord {
        schedule: schedule("@every 110s", None),
        status,
        ..cron_job("hello")
    };
    let mut world = World::new("10:01:00", vec![every], vec![]);
    world.advance_to("10:01:50");
    world.effects();
    world.refused("quota");
    world.effects();
    world.jump_to("10:03:40");
    world.created_all();
    world.advance_to("10:05:30");
    world.expect(&["create hello-29632925 for 2026-05-05T10:05:30Z"]);
}

#[test]
fn an_edit_at_the_slot_does_not_lose_a_short_deadline_slot() {
    let record = CronJobRecord {
        starting_deadline_seconds: Some(0),
        ..cron_job("hello")
    };
    let mut world = World::new("09:59:30", vec![record.clone()], vec![]);
    world.now = at("2026-05-05T10:00:00.004Z");
    world.apply(CronJobRecord {
        successful_jobs_history_limit: Some(1),
        resource_version: ResourceVersion(11),
        ..record
    });
    world.expect(&["create hello-29632920 for 2026-05-05T10:00:00Z"]);
}

#[test]
fn an_edit_during_a_replace_delete_keeps_the_expiry_of_the_create() {
    let before = job("hello", "09:59:00");
    let status = CronJobStatus {
        active: vec![entry(&before)],
        ..cron_job("hello").status
    };
    let record = CronJobRecord {
        concurrency_policy: ConcurrencyPolicy::Replace,
        status,
        ..cron_job("hello")
    };
    let mut world = World::new("09:59:30", vec![record.clone()], vec![before]);
    world.advance_to("10:00:00");
    world.effects();
    world.apply(CronJobRecord {
        successful_jobs_history_limit: Some(1),
        resource_version: ResourceVersion(11),
        ..record
    });
    world.answer_delete(DeleteOutcome::Deleted);
    world.effects();
    assert_eq!(world.creates[0].expires_at, Some(at("10:01:00")));
}

#[test]
fn b_13_1_the_slot_of_an_adopted_short_lived_job_is_stored_at_once() {
    let template = JobTemplate {
        body: "".into(),
        splice_offsets: [0; 3],
        pod_splice_offset: None,
        ttl_seconds_after_finished: Some(0),
        had_reserved_annotations: false,
    };
    let mut world = ordered(CronJobRecord {
        template: std::sync::Arc::new(template),
        ..cron_job("hello")
    });
    unanswered(&mut world);
    world.effects();
    world.answer_look_up(LookUpOutcome::Found(Box::new(job("hello", "10:00:00"))));
    world.expect(&["status last=10:00:00 successful=- active=[hello-29632920] urgent"]);
}

#[test]
fn a_cron_job_removed_and_re_added_during_a_create_gets_one_job() {
    let mut world = ordered(cron_job("hello"));
    world.input(Input::CronJobDeleted(uid("hello")));
    world.apply(cron_job("hello"));
    world.effects();
    assert_eq!(world.creates.len(), 2);
    world.created();
    world.answer_create(CreateOutcome::AlreadyExists {
        message: "exists".into(),
    });
    world.effects();
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::Created), 1);
    assert_eq!(world.shard.sizes().jobs, 1);
}

#[test]
fn a_clock_set_back_before_a_schedule_change_loses_no_slots() {
    let status = CronJobStatus {
        last_schedule_time: Some(at("10:00:00")),
        ..CronJobStatus::default()
    };
    let hourly = CronJobRecord {
        schedule: schedule("0 * * * *", None),
        status,
        ..cron_job("hello")
    };
    let mut world = World::new("10:50:00", vec![hourly.clone()], vec![]);
    let changed = schedule("20 * * * *", None);
    world.apply(CronJobRecord {
        schedule: changed,
        resource_version: ResourceVersion(11),
        ..hourly
    });
    world.jump_to("10:15:00");
    world.advance_to("10:20:00");
    world.expect(&["create hello-29632940 for 2026-05-05T10:20:00Z"]);
}

#[test]
fn a_failed_history_delete_does_not_delay_a_replace() {
    let before = job("hello", "09:59:00");
    let old = [
        complete(job("hello", "09:50:00"), "09:50:00"),
        complete(job("hello", "09:51:00"), "09:51:00"),
    ];
    let status = CronJobStatus {
        active: vec![entry(&before)],
        last_successful_time: Some(at("09:51:00")),
        ..cron_job("hello").status
    };
    let record = CronJobRecord {
        concurrency_policy: ConcurrencyPolicy::Replace,
        successful_jobs_history_limit: Some(1),
        status,
        ..cron_job("hello")
    };
    let jobs = old.into_iter().chain([before]).collect();
    let mut world = World::new("09:59:30", vec![record], jobs);
    world.expect(&["delete hello-29632910"]);
    world.advance_to("10:00:00");
    world.expect(&["delete hello-29632919"]);
    world.answer_delete(DeleteOutcome::Failed {
        message: "no".into(),
        retry_after: None,
    });
    world.answer_delete(DeleteOutcome::Deleted);
    assert!(
        world
            .effects()
            .contains(&"create hello-29632920 for 2026-05-05T10:00:00Z".to_owned())
    );
}

#[test]
fn a_clock_set_back_retries_pending_look_ups_at_once() {
    let failed = || LookUpOutcome::Failed {
        message: "no".into(),
        retry_after: None,
    };
    let gone = job("hello", "09:58:00");
    let record = CronJobRecord {
        status: CronJobStatus {
            active: vec![entry(&gone)],
            ..forbid().status
        },
        ..forbid()
    };
    // While the clock is one hour ahead, a look-up for the active list and a look-up for a slot fail.
    let mut world = World::new("10:59:30", vec![record, cron_job("other")], vec![]);
    world.effects();
    world.answer_look_up(failed());
    world.answer_create(CreateOutcome::Unanswered {
        message: "no answer".into(),
        is_unreachable: false,
    });
    world.effects();
    world.answer_look_up(failed());
    world.jump_to("10:00:00");
    let effects = world.effects();
    for look_up in ["look up hello-29632918", "look up other-29632979"] {
        assert!(
            effects.iter().any(|effect| effect == look_up),
            "{look_up} in {effects:?}"
        );
    }
}
