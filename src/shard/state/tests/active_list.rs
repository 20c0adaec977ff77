//! B-5: the active list, completion, adoption, missing Jobs.

use super::world::{World, at, complete, cron_job, entry, failed, gone, job, manual_job, uid};
use crate::shard::{ConcurrencyPolicy, CronJobRecord, CronJobStatus, JobRecord, LookUpOutcome, ResourceVersion, Uid};

/// A world listed at 09:59:30 with this active list and these Jobs.
fn world(active: &[&JobRecord], jobs: Vec<JobRecord>) -> World {
    let active = active.iter().map(|job| entry(job)).collect();
    let status = CronJobStatus {
        active,
        ..cron_job("hello").status
    };
    World::new(
        "09:59:30",
        vec![CronJobRecord {
            status,
            ..cron_job("hello")
        }],
        jobs,
    )
}

#[test]
fn b_5_1_a_running_job_on_the_active_list_changes_nothing() {
    let running = job("hello", "09:59:00");
    world(&[&running], vec![running.clone()]).expect(&[]);
}

#[test]
fn b_5_1_a_running_job_is_adopted_and_moves_the_cursor() {
    let jobs = vec![job("hello", "09:58:00"), job("hello", "10:00:00")];
    let mut world = World::new("10:00:00", vec![cron_job("hello")], jobs);
    world.expect(&["status last=10:00:00 successful=- active=[hello-29632918 hello-29632920]"]);
}

/// As `cronwheel backfill` starts it: its name is that of a slot before the cursor.
#[test]
fn b_5_1_a_backfilled_job_is_adopted_without_a_warning_and_holds_forbid() {
    let (backfilled, status) = (job("hello", "09:30:00"), cron_job("hello").status);
    let forbid = CronJobRecord {
        concurrency_policy: ConcurrencyPolicy::Forbid,
        status,
        ..cron_job("hello")
    };
    let mut world = World::new("09:59:30", vec![forbid], vec![]);
    world.apply_job(backfilled.clone());
    world.expect(&["status last=09:59:00 successful=- active=[hello-29632890]"]);
    world.advance_to("10:00:00");
    world.expect(&[
        "Normal JobAlreadyActive: Not starting job because prior execution is running and concurrency policy is Forbid",
    ]);
    world.apply_job(complete(backfilled, "10:00:19"));
    world.expect(&[
        "Normal SawCompletedJob: Saw completed job: hello-29632890, condition: Complete",
        "create hello-29632920 for 2026-05-05T10:00:00Z",
        "status last=09:59:00 successful=10:00:19 active=[]",
    ]);
}

#[test]
fn b_5_1_a_manual_run_gets_one_event_and_is_not_adopted() {
    let by_hand = manual_job("hello", "by-hand");
    let mut world = world(&[], vec![by_hand.clone()]);
    world.expect(&["Warning UnexpectedJob: Saw a job that the controller did not create or forgot: by-hand"]);
    world.apply_job(JobRecord {
        started: Some(at("09:59:31")),
        ..by_hand.clone()
    });
    world.expect(&[]);
    world.apply_job(complete(by_hand, "09:59:40"));
    world.expect(&["status last=09:59:00 successful=09:59:40 active=[]"]);
}

#[test]
fn b_5_1_a_job_whose_annotation_and_name_disagree_is_not_adopted() {
    let odd = JobRecord {
        scheduled: Some(at("09:58:00")),
        ..job("hello", "09:59:00")
    };
    let effects = world(&[], vec![odd]).effects();
    assert_eq!(
        effects,
        ["Warning UnexpectedJob: Saw a job that the controller did not create or forgot: hello-29632919"]
    );
}

#[test]
fn b_5_1_a_finished_job_gets_an_event_and_leaves_the_active_list() {
    let running = job("hello", "09:59:00");
    let mut completed = world(&[&running], vec![running.clone()]);
    completed.apply_job(complete(running.clone(), "09:59:20"));
    completed.expect(&[
        "Normal SawCompletedJob: Saw completed job: hello-29632919, condition: Complete",
        "status last=09:59:00 successful=09:59:20 active=[]",
    ]);
    let mut ended = world(&[&running], vec![running.clone()]);
    ended.apply_job(failed(running));
    ended.expect(&[
        "Normal SawCompletedJob: Saw completed job: hello-29632919, condition: Failed",
        "status last=09:59:00 successful=- active=[]",
    ]);
}

#[test]
fn b_5_1_last_successful_time_is_the_latest_completion() {
    let early = complete(job("hello", "09:57:00"), "09:57:30");
    let late = complete(job("hello", "09:56:00"), "09:58:30");
    world(&[], vec![early, late]).expect(&["status last=09:59:00 successful=09:58:30 active=[]"]);
}

#[test]
fn b_5_4_an_active_entry_without_a_job_is_looked_up_and_removed() {
    let gone = job("hello", "09:58:00");
    let mut world = world(&[&gone], vec![]);
    world.expect(&["look up hello-29632918"]);
    world.answer_look_up(LookUpOutcome::Gone);
    world.expect(&[
        "Normal MissingJob: Active job went missing: hello-29632918",
        "status last=09:59:00 successful=- active=[]",
    ]);
}

#[test]
fn b_5_4_a_found_active_entry_is_kept_and_not_looked_up_again() {
    let released = JobRecord {
        controller: None,
        ..job("hello", "09:58:00")
    };
    let mut world = world(&[&released], vec![released.clone()]);
    world.expect(&["look up hello-29632918"]);
    world.answer_look_up(LookUpOutcome::Found(Box::new(released)));
    world.expect(&[]);
    world.advance_to("10:00:00");
    world.expect(&["create hello-29632920 for 2026-05-05T10:00:00Z"]);
}

#[test]
fn b_5_4_active_entries_of_one_name_are_looked_up_separately() {
    let listed = job("hello", "09:58:00");
    let of_other_uid = JobRecord {
        uid: uid("other"),
        ..listed.clone()
    };
    let of_other_namespace = JobRecord {
        uid: uid("elsewhere"),
        namespace: "elsewhere".into(),
        ..listed.clone()
    };
    let mut world = world(&[&listed, &of_other_uid, &of_other_namespace], vec![]);
    world.expect(&["look up hello-29632918"; 3]);
    world.answer_look_up(LookUpOutcome::Gone);
    world.expect(&[
        "Normal MissingJob: Active job went missing: hello-29632918",
        "status last=09:59:00 successful=- active=[hello-29632918 hello-29632918]",
    ]);
    world.answer_look_up(LookUpOutcome::Found(Box::new(listed)));
    world.expect(&[]);
    world.answer_look_up(LookUpOutcome::Gone);
    world.effects();
    let write = world.pending_write("hello").expect("a write");
    assert_eq!(write.status.active, [entry(&of_other_uid)]);
}

#[test]
fn b_5_4_an_active_entry_changed_during_its_look_up_is_looked_up_again() {
    let listed = job("hello", "09:58:00");
    let mut world = world(&[&listed], vec![]);
    world.expect(&["look up hello-29632918"]);
    let mut record = cron_job("hello");
    record.resource_version.0 += 1;
    record.status.active = vec![entry(&JobRecord {
        namespace: "elsewhere".into(),
        ..listed
    })];
    world.apply(record);
    world.expect(&["look up hello-29632918"]);
    world.answer_look_up(LookUpOutcome::Gone);
    world.expect(&[]);
    world.answer_look_up(LookUpOutcome::Gone);
    assert_eq!(
        world.effects()[0],
        "Normal MissingJob: Active job went missing: hello-29632918"
    );
}

#[test]
fn b_5_4_a_failed_look_up_is_retried() {
    let gone = job("hello", "09:58:00");
    let mut world = world(&[&gone], vec![]);
    world.effects();
    world.answer_look_up(LookUpOutcome::Failed {
        message: "no".into(),
        retry_after: None,
    });
    world.expect(&[]);
    world.advance_to("09:59:32");
    world.expect(&["look up hello-29632918"]);
}

#[test]
fn b_5_2_a_failed_look_up_does_not_delay_other_changes() {
    let (gone, running) = (job("hello", "09:57:00"), job("hello", "09:58:00"));
    let mut world = world(&[&gone, &running], vec![complete(running.clone(), "09:58:20")]);
    world.expect(&[
        "Normal SawCompletedJob: Saw completed job: hello-29632918, condition: Complete",
        "look up hello-29632917",
        "status last=09:59:00 successful=09:58:20 active=[hello-29632917]",
    ]);
    world.answer_look_up(LookUpOutcome::Failed {
        message: "no".into(),
        retry_after: None,
    });
    world.stored("hello");
    world.expect(&[]);
    world.advance_to("10:00:00");
    assert!(
        world
            .effects()
            .contains(&"create hello-29632920 for 2026-05-05T10:00:00Z".to_owned())
    );
}

#[test]
fn b_5_4_a_deleted_active_job_is_reported_missing() {
    let running = job("hello", "09:59:00");
    let mut world = world(&[&running], vec![running.clone()]);
    world.input(gone(&uid("hello-29632919"), "hello"));
    world.expect(&[
        "Normal MissingJob: Active job went missing: hello-29632919",
        "status last=09:59:00 successful=- active=[]",
    ]);
}

#[test]
fn b_5_6_a_missing_job_is_no_success() {
    let gone = job("hello", "09:58:00");
    let mut world = world(&[&gone], vec![]);
    world.effects();
    world.answer_look_up(LookUpOutcome::Gone);
    assert_eq!(world.effects()[1], "status last=09:59:00 successful=- active=[]");
}

#[test]
fn b_3_2_jobs_of_another_cron_job_uid_are_ignored() {
    let other = JobRecord {
        controller: Some(uid("hello-of-old")),
        ..job("hello", "09:58:00")
    };
    world(&[], vec![other]).expect(&[]);
}

#[test]
fn b_2_1_a_released_job_is_removed_from_its_owner() {
    let running = job("hello", "09:59:00");
    let mut world = world(&[&running], vec![running.clone()]);
    world.apply_job(JobRecord {
        controller: None,
        ..running.clone()
    });
    world.expect(&["look up hello-29632919"]);
    world.answer_look_up(LookUpOutcome::Found(Box::new(JobRecord {
        controller: None,
        ..running
    })));
    world.expect(&[]);
    assert_eq!(world.shard.sizes().jobs, 0);
}

#[test]
fn b_5_4_active_entries_with_the_same_uid_are_looked_up_in_sequence() {
    let listed = job("hello", "09:58:00");
    let of_its_uid = JobRecord {
        name: "hello-1".into(),
        ..listed.clone()
    };
    let mut world = world(&[&listed, &of_its_uid], vec![]);
    world.expect(&["look up hello-29632918"]);
    world.answer_look_up(LookUpOutcome::Gone);
    assert!(world.effects().contains(&"look up hello-1".to_owned()));
}

#[test]
fn a_long_active_list_is_handled_like_a_short_one() {
    let slots: Vec<String> = (10..50).map(|minute| format!("09:{minute}:00")).collect();
    let running: Vec<JobRecord> = slots.iter().map(|slot| job("hello", slot)).collect();
    let listed: Vec<&JobRecord> = running.iter().collect();
    let mut world = world(&listed, running.clone());
    world.expect(&[]);
    world.apply_job(complete(running[7].clone(), "09:59:20"));
    let effects = world.effects();
    assert_eq!(
        effects[0],
        format!(
            "Normal SawCompletedJob: Saw completed job: {}, condition: Complete",
            running[7].name
        )
    );
    assert_eq!(effects.len(), 2, "{effects:?}");
}

/// Jobs in another namespace whose controller reference names `hello`: a running Job, a finished Job, and a Job with
/// the name of the next slot.
fn jobs_elsewhere() -> Vec<JobRecord> {
    let elsewhere = |job: JobRecord| JobRecord {
        namespace: "offender".into(),
        ..job
    };
    vec![
        elsewhere(job("hello", "09:57:00")),
        elsewhere(complete(job("hello", "09:58:00"), "09:59:20")),
        elsewhere(job("hello", "10:00:00")),
        elsewhere(job("hello", "2090-01-01T00:00:00Z")),
    ]
}

#[test]
fn b_3_2_a_job_of_another_namespace_is_reported_once_and_has_no_effect() {
    let mut world = world(&[], jobs_elsewhere());
    let unexpected = |name: &str| {
        format!("Warning UnexpectedJob: Saw a job that the controller did not create or forgot: offender/{name}")
    };
    let names = ["hello-29632917", "hello-29632918", "hello-29632920", "hello-63115200"];
    assert_eq!(world.effects(), names.map(unexpected));
    for job in jobs_elsewhere() {
        world.apply_job(JobRecord {
            resource_version: ResourceVersion(30),
            started: None,
            ..job
        });
        world.expect(&[]);
    }
}

#[test]
fn b_3_2_forbid_ignores_an_active_job_of_another_namespace() {
    let elsewhere = JobRecord {
        namespace: "offender".into(),
        ..job("hello", "09:59:00")
    };
    let record = CronJobRecord {
        concurrency_policy: ConcurrencyPolicy::Forbid,
        status: CronJobStatus {
            active: vec![entry(&elsewhere)],
            ..cron_job("hello").status
        },
        ..cron_job("hello")
    };
    let mut world = World::new("09:59:30", vec![record], vec![elsewhere.clone()]);
    world.expect(&[
        "Warning UnexpectedJob: Saw a job that the controller did not create or forgot: offender/hello-29632919",
        "look up hello-29632919",
    ]);
    world.answer_look_up(LookUpOutcome::Found(Box::new(elsewhere)));
    world.expect(&[]);
    world.advance_to("10:00:00");
    world.expect(&["create hello-29632920 for 2026-05-05T10:00:00Z"]);
}

#[test]
fn b_5_1_a_job_of_a_future_slot_does_not_move_the_cursor() {
    let future = job("hello", "2090-01-01T00:00:00Z");
    let mut world = world(
        &[],
        vec![future.clone(), complete(job("hello", "10:30:00"), "09:59:00")],
    );
    world.expect(&[
        "Warning UnexpectedJob: Saw a job that the controller did not create or forgot: hello-29632950",
        "Warning UnexpectedJob: Saw a job that the controller did not create or forgot: hello-63115200",
    ]);
    world.advance_to("10:00:00");
    world.expect(&["create hello-29632920 for 2026-05-05T10:00:00Z"]);
}

#[test]
fn b_5_1_a_job_of_a_slot_within_the_clock_tolerance_is_adopted() {
    let mut world = World::new("09:59:58", vec![cron_job("hello")], vec![job("hello", "10:00:00")]);
    world.expect(&["status last=10:00:00 successful=- active=[hello-29632920]"]);
}

#[test]
fn a_last_schedule_time_in_the_future_is_reported_once() {
    let record = CronJobRecord {
        status: CronJobStatus {
            last_schedule_time: Some(at("2090-01-01T00:00:00Z")),
            ..CronJobStatus::default()
        },
        ..cron_job("hello")
    };
    let mut world = World::new("09:59:30", vec![record.clone()], vec![]);
    world.expect(&[
        "Warning LastScheduleTimeInFuture: status.lastScheduleTime 2090-01-01T00:00:00Z is in the future: \
                    no job starts before then; correct it in the status subresource",
    ]);
    world.apply(CronJobRecord {
        resource_version: ResourceVersion(31),
        is_suspended: true,
        ..record
    });
    world.expect(&[]);
}

#[test]
fn events_about_unexpected_jobs_are_limited_and_all_are_counted() {
    let mut world = World::new("10:00:30", vec![cron_job("hello")], vec![]);
    world.effects();
    let events_of_foreign_jobs = |world: &mut World, from: usize| {
        for number in from..from + 300 {
            let mut foreign = job("hello", "10:00:00");
            foreign.name = format!("foreign-{number}").into();
            foreign.uid = Uid::new(&format!("foreign-{number}"));
            foreign.namespace = "elsewhere".into();
            world.apply_job(foreign);
        }
        let effects = world.effects();
        effects.iter().filter(|line| line.contains("UnexpectedJob")).count()
    };
    assert_eq!(events_of_foreign_jobs(&mut world, 0), 25);
    assert_eq!(world.shard.outcome_counts().unexpected_jobs, 300);
    world.advance_to("10:59:00");
    world.effects();
    assert_eq!(events_of_foreign_jobs(&mut world, 300), 0);
    world.advance_to("11:01:00");
    world.effects();
    assert_eq!(events_of_foreign_jobs(&mut world, 600), 25);
}
