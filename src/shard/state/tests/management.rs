//! Tests of namespaces that are selected and released while a shard is led.

use super::world::{World, at, complete, cron_job, entry, failed, gone, job, manual_job, schedule, uid};
use crate::shard::{
    ConcurrencyPolicy, CreateOutcome, CronJobRecord, DeleteOutcome, Input, InstantOutcome, JobRecord, LookUpOutcome,
    OutcomeCounts, ResourceVersion, StatusOutcome, TroubleKind,
};

/// A CronJob with this policy whose Job of 09:59 runs.
fn running(name: &str, concurrency_policy: ConcurrencyPolicy) -> CronJobRecord {
    let mut record = CronJobRecord {
        concurrency_policy,
        ..cron_job(name)
    };
    record.status.active.push(entry(&job(name, "09:59:00")));
    record
}

/// CronJobs of all kinds, and their Jobs, at 10:03:10.
fn all_kinds() -> (Vec<CronJobRecord>, Vec<JobRecord>) {
    let deadline = |name: &str, seconds| CronJobRecord {
        starting_deadline_seconds: Some(seconds),
        ..cron_job(name)
    };
    let mut missing = cron_job("missing");
    missing.status.active.push(entry(&job("missing", "09:58:00")));
    let mut future = cron_job("future");
    future.status.last_schedule_time = Some(at("11:00:00"));
    let cron_jobs = vec![
        cron_job("allow"),
        running("forbid", ConcurrencyPolicy::Forbid),
        running("replace", ConcurrencyPolicy::Replace),
        deadline("lost", 5),
        deadline("in-time", 30),
        CronJobRecord {
            is_suspended: true,
            ..cron_job("suspended")
        },
        CronJobRecord {
            schedule: schedule("every day", None),
            ..cron_job("invalid")
        },
        CronJobRecord {
            successful_jobs_history_limit: Some(0),
            ..cron_job("history")
        },
        cron_job("adopted"),
        missing,
        future,
    ];
    let jobs = vec![
        job("forbid", "09:59:00"),
        job("replace", "09:59:00"),
        complete(job("history", "09:58:00"), "09:58:30"),
        failed(job("allow", "09:57:00")),
        failed(job("allow", "09:58:00")),
        job("adopted", "10:02:00"),
        manual_job("allow", "by-hand"),
    ];
    (cron_jobs, jobs)
}

#[test]
fn to_select_a_namespace_is_to_lead_its_cron_jobs() {
    let (cron_jobs, jobs) = all_kinds();
    let mut led = World::on_standby("10:03:10", cron_jobs.clone(), jobs.clone());
    led.lead();
    let expected = led.effects();
    let mut selected = World::selecting("10:03:10", cron_jobs, jobs);
    selected.expect(&[]);
    selected.select();
    assert_eq!(selected.effects(), expected);
    assert_eq!(selected.shard.outcome_counts(), led.shard.outcome_counts());
    assert_eq!(selected.shard.sizes(), led.shard.sizes());
    let create = "create allow-29632923 for 2026-05-05T10:03:00Z".to_owned();
    assert!(expected.len() > 10 && expected.contains(&create), "{expected:?}");
}

#[test]
fn a_namespace_that_is_not_selected_gets_nothing_for_a_day() {
    let (cron_jobs, jobs) = all_kinds();
    let mut world = World::selecting("10:03:10", cron_jobs, jobs);
    for hour in 11..24 {
        world.jump_to(&format!("{hour}:00:05"));
        let slot = format!("{hour}:00:00");
        for name in ["allow", "forbid", "replace", "history"] {
            world.apply_job(job(name, &slot));
            world.apply_job(complete(
                JobRecord {
                    resource_version: ResourceVersion(30),
                    ..job(name, &slot)
                },
                &format!("{hour}:00:04"),
            ));
        }
        let version = ResourceVersion(100 + hour);
        world.apply(CronJobRecord {
            resource_version: version,
            schedule: schedule(if hour % 2 == 0 { "no schedule" } else { "* * * * *" }, None),
            ..cron_job("allow")
        });
        world.input(gone(&uid("by-hand"), "allow"));
        world.input(Input::CronJobUndecodable(uid("forbid")));
        world.apply(cron_job(&format!("new-{hour}")));
        world.expect(&[]);
        assert_eq!(world.shard.next_wakeup(), None);
    }
    assert_eq!(*world.shard.outcome_counts(), OutcomeCounts::default());
    let sizes = world.shard.sizes();
    assert_eq!((sizes.cron_jobs, sizes.wheel_entries), (0, 0));
    assert!(sizes.jobs > 40, "{sizes:?}");
    let now = world.now;
    for place in world.shard.places() {
        assert_eq!(world.shard.examine(place, now).since, [None; TroubleKind::ALL.len()]);
    }
}

/// A world in which the create of 10:00 is in flight and its namespace was released.
fn released_in_flight() -> World {
    let mut world = World::selecting("09:59:30", vec![cron_job("hello")], vec![]);
    world.select();
    world.advance_to("10:00:00");
    world.expect(&["create hello-29632920 for 2026-05-05T10:00:00Z"]);
    world.release();
    world.expect(&["withdraw the create of hello"]);
    world
}

/// Nothing happens any more.
fn expect_silence(world: &mut World) {
    world.expect(&[]);
    world.advance_to("12:00:00");
    world.jump_to("13:00:00");
    world.expect(&[]);
    assert_eq!(world.shard.next_wakeup(), None);
    assert_eq!(world.shard.sizes().wheel_entries, 0);
    assert_eq!(world.shard.outcome_counts().open_instants, 0);
}

#[test]
fn a_create_in_flight_is_answered_and_its_status_written_after_the_release() {
    let mut world = released_in_flight();
    world.now = at("10:00:01");
    world.created();
    world.expect(&["status last=10:00:00 successful=- active=[hello-29632920] urgent"]);
    world.stored("hello");
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::Created), 1);
    expect_silence(&mut world);
}

/// Without its slot in the status, whoever runs the namespace next would start the slot again if its Job is gone.
#[test]
fn a_status_that_waits_for_a_retry_is_written_at_the_release() {
    let mut world = World::selecting("09:59:30", vec![cron_job("hello")], vec![]);
    world.select();
    world.advance_to("10:00:00");
    world.expect(&["create hello-29632920 for 2026-05-05T10:00:00Z"]);
    world.created();
    assert!(!world.effects().is_empty());
    world.answer_status("hello", StatusOutcome::Abandoned);
    world.expect(&[]);
    world.release();
    world.expect(&["status last=10:00:00 successful=- active=[hello-29632920] urgent"]);
    world.stored("hello");
    expect_silence(&mut world);
}

#[test]
fn a_status_that_is_not_stored_after_the_release_is_written_no_more() {
    let failed = || StatusOutcome::Failed {
        message: "no".into(),
        retry_after: None,
    };
    for answer in [
        StatusOutcome::Conflict,
        StatusOutcome::Gone,
        failed(),
        StatusOutcome::Abandoned,
    ] {
        let mut world = released_in_flight();
        world.created();
        assert_eq!(world.effects().len(), 1);
        world.answer_status("hello", answer);
        expect_silence(&mut world);
    }
}

#[test]
fn a_create_that_started_nothing_is_not_repeated_after_the_release() {
    let message = || "no".into();
    let failed = CreateOutcome::Failed {
        message: message(),
        status: Some(500),
        retry_after: None,
    };
    for answer in [
        CreateOutcome::Withdrawn,
        CreateOutcome::Abandoned,
        CreateOutcome::NamespaceTerminating,
        CreateOutcome::Invalid { message: message() },
        CreateOutcome::NotPermitted { message: message() },
        failed,
    ] {
        let mut world = released_in_flight();
        world.answer_create(answer);
        expect_silence(&mut world);
        assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::HandedOver), 1);
    }
}

#[test]
fn a_create_without_an_answer_is_looked_up_after_the_release() {
    let unanswered = || CreateOutcome::Unanswered {
        message: "timeout".into(),
        is_unreachable: false,
    };
    let mut world = released_in_flight();
    world.answer_create(unanswered());
    world.expect(&["look up hello-29632920"]);
    world.answer_look_up(LookUpOutcome::Found(Box::new(job("hello", "10:00:00"))));
    world.expect(&["status last=10:00:00 successful=- active=[hello-29632920] urgent"]);
    world.stored("hello");
    expect_silence(&mut world);

    let mut world = released_in_flight();
    world.answer_create(unanswered());
    world.effects();
    world.answer_look_up(LookUpOutcome::Gone);
    expect_silence(&mut world);
}

#[test]
fn deletes_for_replace_are_withdrawn_and_no_create_follows_them() {
    let record = running("hello", ConcurrencyPolicy::Replace);
    let mut world = World::selecting("09:59:30", vec![record], vec![job("hello", "09:59:00")]);
    world.select();
    world.advance_to("10:00:00");
    world.expect(&["delete hello-29632919"]);
    world.release();
    world.expect(&["withdraw the delete of uid-hello-29632919"]);
    world.answer_delete(DeleteOutcome::Deleted);
    world.expect(&["status last=09:59:00 successful=- active=[] urgent"]);
    world.stored("hello");
    expect_silence(&mut world);
}

#[test]
fn history_is_kept_after_the_release_and_cleaned_after_the_return() {
    let record = CronJobRecord {
        successful_jobs_history_limit: Some(0),
        ..cron_job("hello")
    };
    let done = complete(job("hello", "09:59:00"), "09:59:10");
    let mut world = World::selecting("09:59:30", vec![record], vec![done]);
    world.select();
    world.expect(&[
        "delete hello-29632919",
        "status last=09:59:00 successful=09:59:10 active=[]",
    ]);
    world.stored("hello");
    world.release();
    world.expect(&[]);
    // The answer does not count, so that there is no Event.
    world.answer_delete(DeleteOutcome::Deleted);
    world.expect(&[]);
    world.apply_job(complete(job("hello", "09:58:00"), "09:58:10"));
    world.expect(&[]);
    world.select();
    let effects = world.effects();
    assert!(effects.contains(&"delete hello-29632918".to_owned()), "{effects:?}");
}

#[test]
fn a_namespace_that_returns_within_the_minute_starts_no_second_job() {
    // While the create is in flight.
    let mut world = released_in_flight();
    world.now = at("10:00:10");
    world.select();
    world.expect(&[]);
    world.created();
    world.expect(&[
        "Normal SuccessfulCreate: Created job hello-29632920",
        "status last=10:00:00 successful=- active=[hello-29632920]",
    ]);
    world.stored("hello");
    world.advance_to("10:01:30");
    world.expect(&["create hello-29632921 for 2026-05-05T10:01:00Z"]);
    assert_eq!(world.shard.outcome_counts().due_instants, 2);

    // After its status is stored.
    let mut world = released_in_flight();
    world.created();
    world.effects();
    world.stored("hello");
    world.now = at("10:00:20");
    world.select();
    world.advance_to("10:00:59");
    world.expect(&[]);
    world.advance_to("10:01:00");
    world.expect(&["create hello-29632921 for 2026-05-05T10:01:00Z"]);

    // After the create was withdrawn, the slot starts under its only name.
    let mut world = released_in_flight();
    world.answer_create(CreateOutcome::Withdrawn);
    world.now = at("10:00:20");
    world.select();
    world.expect(&["create hello-29632920 for 2026-05-05T10:00:00Z"]);
}

#[test]
fn a_namespace_that_returns_adopts_what_another_controller_started() {
    let mut world = released_in_flight();
    world.answer_create(CreateOutcome::Withdrawn);
    world.effects();
    world.now = at("10:02:20");
    world.apply_job(complete(job("hello", "10:01:00"), "10:01:10"));
    world.apply_job(job("hello", "10:02:00"));
    let mut theirs = cron_job("hello");
    theirs.resource_version = ResourceVersion(50);
    theirs.status.last_schedule_time = Some(at("10:02:00"));
    theirs.status.active = vec![entry(&job("hello", "10:02:00"))];
    world.apply(theirs);
    world.expect(&[]);
    world.select();
    world.expect(&["status last=10:02:00 successful=10:01:10 active=[hello-29632922]"]);
    world.stored("hello");
    world.advance_to("10:03:00");
    world.expect(&["create hello-29632923 for 2026-05-05T10:03:00Z"]);
}

#[test]
fn a_slot_that_is_held_back_leaves_the_account_at_the_release() {
    let record = running("hello", ConcurrencyPolicy::Forbid);
    let mut world = World::selecting("09:59:30", vec![record], vec![job("hello", "09:59:00")]);
    world.select();
    world.advance_to("10:00:30");
    world.effects();
    assert_eq!(world.shard.outcome_counts().open_instants, 1);
    world.release();
    expect_silence(&mut world);
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::HandedOver), 1);
}

#[test]
fn only_a_leader_acts_on_a_selected_namespace() {
    let mut world = World::selecting("10:00:30", vec![cron_job("hello")], vec![]);
    world.shard.stand_by(world.now);
    world.select();
    world.expect(&[]);
    world.release();
    world.select();
    world.expect(&[]);
    world.lead();
    world.expect(&["create hello-29632920 for 2026-05-05T10:00:00Z"]);
    world.created();
    world.effects();
    world.stored("hello");
    world.seal();
    world.release();
    world.now = at("10:05:00");
    world.select();
    world.expect(&[]);
    assert!(world.shard.check_idle());
}

#[test]
fn a_paused_shard_follows_the_labels_when_it_decides_again() {
    let mut world = released_in_flight();
    world.shard.pause();
    world.created();
    world.expect(&[]);
    world.resume_at("10:00:20");
    expect_silence(&mut world);
    world.shard.pause();
    world.select();
    world.expect(&[]);
    world.resume_at("13:00:10");
    let effects = world.effects();
    assert!(
        effects.contains(&"create hello-29633100 for 2026-05-05T13:00:00Z".to_owned()),
        "{effects:?}"
    );
}

#[test]
fn a_closing_shard_waits_for_the_cron_jobs_that_leave() {
    let mut world = released_in_flight();
    world.close();
    assert!(!world.shard.check_idle(), "the create is unanswered");
    world.seal();
    world.created();
    world.expect(&["status last=10:00:00 successful=- active=[hello-29632920] urgent"]);
    assert!(!world.shard.check_idle(), "the status write is unanswered");
    world.stored("hello");
    assert!(world.shard.check_idle());
}

#[test]
fn a_cron_job_that_is_deleted_or_undecodable_leaves_too() {
    let mut world = released_in_flight();
    world.input(Input::CronJobDeleted(uid("hello")));
    world.effects();
    world.created();
    expect_silence(&mut world);

    let mut world = released_in_flight();
    world.input(Input::CronJobUndecodable(uid("hello")));
    world.effects();
    world.created();
    expect_silence(&mut world);
    world.apply(CronJobRecord {
        resource_version: ResourceVersion(50),
        ..cron_job("hello")
    });
    world.expect(&[]);
}
