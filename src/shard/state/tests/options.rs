//! The options of a CronJob in a shard.

use super::world::{MIDDLE, World, at, complete, entry, hourly, job, manual_job, schedule_with};
use crate::shard::{
    ConcurrencyPolicy, CreateOutcome, CronJobRecord, CronJobStatus, DeleteOutcome, InstantOutcome, JobCreator,
    JobRecord, LookUpOutcome, ResourceVersion, Uid,
};

fn count(world: &World, outcome: InstantOutcome) -> u64 {
    world.shard.outcome_counts().outcome(outcome)
}

#[test]
fn a_spread_slot_starts_later_under_its_nominal_name() {
    let record = CronJobRecord {
        starting_deadline_seconds: Some(60),
        ..hourly(&[("spread", "10m")])
    };
    let mut world = World::new("06:30:00", vec![record], vec![]);
    world.advance_to("07:04:59");
    world.expect(&[]);
    world.advance_to("07:05:00");
    world.expect(&["create hello-29632740 for 2026-05-05T07:00:00Z"]);
    let order = &world.creates[0];
    assert_eq!((order.slot, order.start), (at("07:00:00"), at("07:05:00")));
    assert_eq!(order.wanted_by, at("07:06:00"));
    assert_eq!(order.expires_at, Some(at("2026-05-05T07:06:00.000000001Z")));
    assert!(order.is_on_time);
    world.created();
    world.expect(&[
        "Normal SuccessfulCreate: Created job hello-29632740",
        "status last=07:00:00 successful=- active=[hello-29632740]",
    ]);
    world.advance_to("08:05:00");
    world.expect(&["create hello-29632800 for 2026-05-05T08:00:00Z"]);
}

#[test]
fn a_changed_spread_moves_the_next_start() {
    let mut world = World::new("06:30:00", vec![hourly(&[("spread", "10m")])], vec![]);
    world.advance_to("07:01:00");
    let record = CronJobRecord {
        resource_version: ResourceVersion(11),
        ..hourly(&[("spread", "4m")])
    };
    world.apply(record);
    world.advance_to("07:01:59");
    world.expect(&[]);
    world.advance_to("07:02:00");
    world.expect(&["create hello-29632740 for 2026-05-05T07:00:00Z"]);
    world.created();
    world.effects();
    world.stored("hello");
    // Without the option, the next slot starts at its time.
    let record = CronJobRecord {
        resource_version: ResourceVersion(200),
        ..hourly(&[])
    };
    world.apply(record);
    world.advance_to("08:00:00");
    let effects = world.effects();
    assert!(
        effects.contains(&"create hello-29632800 for 2026-05-05T08:00:00Z".to_owned()),
        "{effects:?}"
    );
}

#[test]
fn a_slot_that_waits_for_its_offset_survives_a_new_schedule() {
    let mut world = World::new("06:30:00", vec![hourly(&[("spread", "10m")])], vec![]);
    world.advance_to("07:02:00");
    let record = CronJobRecord {
        resource_version: ResourceVersion(11),
        schedule: schedule_with("0,30 * * * *", &[("spread", "10m")], MIDDLE),
        ..hourly(&[])
    };
    world.apply(record);
    world.advance_to("07:05:00");
    world.expect(&["create hello-29632740 for 2026-05-05T07:00:00Z"]);
}

#[test]
fn all_missed_slots_start_one_after_the_other_at_the_pace() {
    let mut world = World::new("10:30:00", vec![hourly(&[("missed-runs", "all 3")])], vec![]);
    // 07:00 is one too many. The first run starts at once.
    world.expect(&["create hello-29632800 for 2026-05-05T08:00:00Z"]);
    assert_eq!(world.creates[0].expires_at, Some(at("11:00:00")));
    world.created();
    world.effects();
    world.advance_to("10:30:00.15");
    world.expect(&[]);
    world.advance_to("10:30:00.2");
    world.expect(&["create hello-29632860 for 2026-05-05T09:00:00Z"]);
    world.created();
    world.effects();
    world.advance_to("10:30:00.4");
    world.expect(&["create hello-29632920 for 2026-05-05T10:00:00Z"]);
    world.created();
    world.effects();
    world.advance_to("10:59:59");
    world.expect(&[]);
    world.advance_to("11:00:00");
    world.expect(&["create hello-29632980 for 2026-05-05T11:00:00Z"]);
    assert!(world.creates[0].is_on_time);
    assert_eq!(count(&world, InstantOutcome::Created), 3);
    assert_eq!(count(&world, InstantOutcome::Superseded), 1);
}

#[test]
fn the_next_leader_continues_where_the_last_one_stopped() {
    let record = CronJobRecord {
        status: CronJobStatus {
            last_schedule_time: Some(at("07:00:00")),
            ..CronJobStatus::default()
        },
        ..hourly(&[("missed-runs", "all")])
    };
    // The status with 08:00 was not stored before the crash.
    let mut world = World::new("10:30:00", vec![record], vec![job("hello", "08:00:00")]);
    let effects = world.effects();
    assert!(
        effects.contains(&"create hello-29632860 for 2026-05-05T09:00:00Z".to_owned()),
        "{effects:?}"
    );
}

#[test]
fn under_forbid_the_next_missed_slot_waits_for_the_run() {
    let record = CronJobRecord {
        concurrency_policy: ConcurrencyPolicy::Forbid,
        ..hourly(&[("missed-runs", "all 2")])
    };
    let mut world = World::new("10:30:00", vec![record], vec![]);
    world.expect(&["create hello-29632860 for 2026-05-05T09:00:00Z"]);
    world.created();
    world.effects();
    world.advance_to("10:40:00");
    world.expect(&[]);
    world.apply_job(complete(
        JobRecord {
            resource_version: ResourceVersion(30),
            ..job("hello", "09:00:00")
        },
        "10:39:59",
    ));
    let effects = world.effects();
    assert!(
        effects.contains(&"create hello-29632920 for 2026-05-05T10:00:00Z".to_owned()),
        "{effects:?}"
    );
}

#[test]
fn a_foreign_job_with_the_name_of_a_missed_slot_does_not_stop_the_others() {
    let mut world = World::new("10:30:00", vec![hourly(&[("missed-runs", "all 2")])], vec![]);
    world.effects();
    world.answer_create(CreateOutcome::AlreadyExists {
        message: "taken".into(),
    });
    world.effects();
    let foreign = JobRecord {
        controller: Some(Uid::new("other")),
        ..job("hello", "09:00:00")
    };
    world.answer_look_up(LookUpOutcome::Found(Box::new(foreign)));
    world.advance_to("10:30:01");
    world.effects();
    assert_eq!(world.creates.len(), 1);
    assert_eq!(world.creates[0].slot, at("10:00:00"));
}

#[test]
fn a_refused_missed_run_backs_off_without_a_loop() {
    let mut world = World::new("10:30:00", vec![hourly(&[("missed-runs", "all 2")])], vec![]);
    for _ in 0..3 {
        world.effects();
        world.refused("quota");
        let before = world.now;
        while world.creates.is_empty() {
            world.now = world.shard.next_wakeup().unwrap();
            world.shard.handle_timeout(world.now);
            world.effects();
        }
        assert!(
            world.now.duration_since(before).as_millis() >= 100,
            "{before} {}",
            world.now
        );
    }
}

/// A CronJob whose last slot ever is 10:00, with this policy and its Jobs that run.
fn ended_with(policy: ConcurrencyPolicy, missed_runs: &str, running: Vec<JobRecord>) -> World {
    let options = [("schedule", "0 0 7-10 5 5 * 2026"), ("missed-runs", missed_runs)];
    let mut record = CronJobRecord {
        concurrency_policy: policy,
        ..hourly(&options)
    };
    record.status.active = running.iter().map(entry).collect();
    World::new("10:30:00", vec![record], running)
}

#[test]
fn missed_runs_start_at_the_pace_after_the_last_slot() {
    let mut world = ended_with(ConcurrencyPolicy::Allow, "all 3", vec![]);
    world.effects();
    world.created();
    world.effects();
    world.stored("hello");
    world.expect(&[]);
    world.advance_to("10:30:00.2");
    world.effects();
    assert_eq!(world.creates[0].slot, at("09:00:00"));
}

#[test]
fn a_refused_delete_is_repeated_after_a_wait_after_the_last_slot() {
    let mut world = ended_with(ConcurrencyPolicy::Replace, "latest", vec![job("hello", "06:00:00")]);
    let delete = "delete hello-29632680".to_owned();
    assert!(world.effects().contains(&delete));
    world.answer_delete(DeleteOutcome::Failed {
        message: "refused".into(),
        retry_after: None,
    });
    assert!(!world.effects().contains(&delete));
    world.advance_to("10:30:01");
    assert!(world.effects().contains(&delete));
}

#[test]
fn an_invalid_job_is_tried_once_a_minute_after_the_last_slot() {
    let mut world = ended_with(ConcurrencyPolicy::Allow, "latest", vec![]);
    world.effects();
    world.answer_create(CreateOutcome::Invalid { message: "name".into() });
    world.advance_to("10:30:59");
    world.effects();
    assert_eq!(world.creates.len(), 0);
    world.advance_to("10:31:16");
    world.effects();
    assert_eq!(world.creates.len(), 1);
}

#[test]
fn a_missed_slot_is_counted_once_and_not_started() {
    let mut world = World::new("10:30:00", vec![hourly(&[("missed-runs", "skip")])], vec![]);
    world.expect(&[]);
    assert_eq!(count(&world, InstantOutcome::Missed), 4);
    let record = CronJobRecord {
        resource_version: ResourceVersion(11),
        successful_jobs_history_limit: Some(1),
        ..hourly(&[("missed-runs", "skip")])
    };
    world.apply(record);
    world.advance_to("11:00:00");
    world.expect(&["create hello-29632980 for 2026-05-05T11:00:00Z"]);
    assert_eq!(count(&world, InstantOutcome::Missed), 4);
}

#[test]
fn on_resume_chooses_the_slots_of_the_suspension() {
    for (on_resume, created, suspended) in [
        ("skip", vec![], 4),
        ("latest", vec!["10:00:00"], 3),
        // What starts is counted once.
        ("all 2", vec!["09:00:00"], 2),
    ] {
        let record = |is_suspended, version| CronJobRecord {
            is_suspended,
            resource_version: ResourceVersion(version),
            ..hourly(&[("on-resume", on_resume), ("missed-runs", "skip")])
        };
        let mut world = World::new("06:30:00", vec![record(true, 10)], vec![]);
        world.advance_to("10:30:00");
        world.apply(record(false, 11));
        world.effects();
        let slots: Vec<_> = world.creates.iter().map(|order| order.slot).collect();
        assert_eq!(slots, created.into_iter().map(at).collect::<Vec<_>>(), "{on_resume}");
        assert_eq!(count(&world, InstantOutcome::Suspended), suspended, "{on_resume}");
        world.advance_to("11:00:00");
        assert_eq!(world.effects().len(), usize::from(on_resume == "skip"), "{on_resume}");
    }
}

#[test]
fn a_standby_replica_notes_the_end_of_a_suspension() {
    let record = |is_suspended, version| CronJobRecord {
        is_suspended,
        resource_version: ResourceVersion(version),
        ..hourly(&[("on-resume", "skip")])
    };
    let mut world = World::on_standby("10:20:00", vec![record(true, 10)], vec![]);
    world.advance_to("10:30:00");
    world.apply(record(false, 11));
    world.lead();
    world.advance_to("10:59:59");
    world.expect(&[]);
    world.advance_to("11:00:00");
    world.expect(&["create hello-29632980 for 2026-05-05T11:00:00Z"]);
}

#[test]
fn jobs_of_a_schedule_with_seconds_have_the_second_in_their_names() {
    let record = CronJobRecord {
        status: CronJobStatus {
            last_schedule_time: Some(at("06:59:40")),
            ..CronJobStatus::default()
        },
        ..hourly(&[("schedule", "*/30 * 7 * * *")])
    };
    let mut world = World::new("06:59:45", vec![record], vec![]);
    for (now, name) in [("07:00:00", "hello-29632740-00"), ("07:00:30", "hello-29632740-30")] {
        world.advance_to(now);
        let order = format!("create {name} for 2026-05-05T{now}Z");
        assert!(world.effects().contains(&order), "{order}");
        world.created();
        let event = format!("Normal SuccessfulCreate: Created job {name}");
        assert!(world.effects().contains(&event), "{event}");
    }
    assert_eq!(count(&world, InstantOutcome::Created), 2);
}

#[test]
fn an_invalid_option_is_reported_once_and_has_no_effect() {
    let invalid = "Warning InvalidOption: annotation cronwheel.dev/spread is \"1h\": it is not shorter than 3600 s, the \
                   shortest time between two runs; a valid value is \"10m\"; the CronJob runs as without it";
    let mut world = World::new("06:30:00", vec![hourly(&[("spread", "1h")])], vec![]);
    world.expect(&[invalid]);
    let other = |version, value| CronJobRecord {
        resource_version: ResourceVersion(version),
        successful_jobs_history_limit: Some(1),
        ..hourly(&[("spread", value)])
    };
    world.apply(other(11, "1h"));
    world.expect(&[]);
    world.apply(other(12, "2h"));
    assert_eq!(world.effects().len(), 1);
    world.advance_to("07:00:00");
    world.expect(&["create hello-29632740 for 2026-05-05T07:00:00Z"]);
}

#[test]
fn a_listed_job_of_a_spread_slot_is_one_of_its_cron_job() {
    let before = job("hello", "07:00:00");
    let record = CronJobRecord {
        concurrency_policy: ConcurrencyPolicy::Forbid,
        status: CronJobStatus {
            active: vec![entry(&before)],
            last_schedule_time: Some(at("07:00:00")),
            ..CronJobStatus::default()
        },
        ..hourly(&[("spread", "10m")])
    };
    let mut world = World::new("07:05:30", vec![record], vec![before]);
    world.expect(&[]);
    world.advance_to("08:05:00");
    world.expect(&[
        "Normal JobAlreadyActive: Not starting job because prior execution is running and concurrency policy is Forbid",
    ]);
}

/// The Warnings about ignored options since the last call.
fn ignored(world: &mut World) -> Vec<String> {
    let effects = world.effects().into_iter();
    effects.filter(|line| line.contains("IgnoredOption")).collect()
}

#[test]
fn a_job_of_another_controller_is_reported_once_with_the_options_that_it_ignores() {
    let options = [
        ("spread", "10m"),
        ("missed-runs", "all"),
        ("pass-scheduled-time", "true"),
    ];
    let mut world = World::new("06:30:00", vec![hourly(&options)], vec![]);
    world.advance_to("07:00:01");
    world.apply_job(job("hello", "07:00:00"));
    let expected = "Warning IgnoredOption: another controller created job hello-29632740 and ignores \
                    cronwheel.dev/spread, cronwheel.dev/missed-runs: only one may run this CronJob, and cronwheel check \
                    says how to mend that";
    assert_eq!(ignored(&mut world), [expected]);
    world.advance_to("08:00:01");
    world.apply_job(job("hello", "08:00:00"));
    assert_eq!(ignored(&mut world), [""; 0]);
    // Other options are reported again.
    world.apply(CronJobRecord {
        resource_version: ResourceVersion(200),
        ..hourly(&[("on-resume", "skip")])
    });
    world.advance_to("09:00:00.5");
    world.apply_job(job("hello", "09:00:00"));
    assert_eq!(ignored(&mut world).len(), 1);
}

#[test]
fn ignored_options_are_not_reported_without_evidence() {
    let ours = JobRecord {
        creator: JobCreator::Cronwheel,
        ..job("hello", "07:00:00")
    };
    let by_hand = JobRecord {
        name: "hello-by-hand".into(),
        ..job("hello", "07:00:00")
    };
    for (options, job) in [
        (&[("spread", "10m")][..], ours),
        (&[("spread", "10m")], by_hand),
        (&[("spread", "10m")], job("hello", "09:00:00")),
        (
            &[("missed-runs", "latest"), ("on-resume", "latest")],
            job("hello", "07:00:00"),
        ),
        (
            &[("pass-scheduled-time", "true"), ("run-now", "a")],
            job("hello", "07:00:00"),
        ),
        (&[], job("hello", "07:00:00")),
    ] {
        let mut world = World::new("06:30:00", vec![hourly(options)], vec![]);
        world.advance_to("07:00:01");
        world.apply_job(job.clone());
        assert_eq!(ignored(&mut world), [""; 0], "{options:?} {}", job.name);
        // On standby, and in a list.
        for world in [
            &mut World::on_standby("06:30:00", vec![hourly(options)], vec![job.clone()]),
            &mut World::new("07:00:01", vec![hourly(options)], vec![job.clone()]),
        ] {
            assert_eq!(ignored(world), [""; 0], "{options:?} {}", job.name);
        }
    }
}

#[test]
fn a_status_of_another_controller_is_reported_with_the_options_that_it_ignores() {
    let record = |version, has_status_of_other| CronJobRecord {
        resource_version: ResourceVersion(version),
        has_status_of_other,
        ..hourly(&[("missed-runs", "skip")])
    };
    let mut world = World::new("06:30:00", vec![record(10, true)], vec![]);
    // Of a list.
    assert_eq!(ignored(&mut world), [""; 0]);
    world.apply(record(11, false));
    assert_eq!(ignored(&mut world), [""; 0]);
    world.apply(record(12, true));
    let expected = "Warning IgnoredOption: another controller wrote the status and ignores cronwheel.dev/missed-runs: \
                    only one may run this CronJob, and cronwheel check says how to mend that";
    assert_eq!(ignored(&mut world), [expected]);
}

#[test]
fn a_job_from_the_time_before_a_namespace_was_managed_is_no_evidence() {
    let mut world = World::selecting("06:30:00", vec![hourly(&[("spread", "10m")])], vec![]);
    world.advance_to("06:59:55");
    world.select();
    world.effects();
    world.advance_to("07:00:01");
    world.apply_job(job("hello", "07:00:00"));
    assert_eq!(ignored(&mut world), [""; 0]);
    world.advance_to("08:00:01");
    world.apply_job(job("hello", "08:00:00"));
    assert_eq!(ignored(&mut world).len(), 1);
}

#[test]
fn a_missed_slot_stays_missed_for_a_leader_that_begins_during_a_later_run() {
    for (started, is_missed) in [("10:00:59", false), ("10:01:00", true), ("10:40:00", true)] {
        let run = JobRecord {
            started: Some(at(started)),
            ..manual_job("hello", "by-hand")
        };
        let record = CronJobRecord {
            concurrency_policy: ConcurrencyPolicy::Forbid,
            status: CronJobStatus {
                active: vec![entry(&run)],
                ..hourly(&[]).status
            },
            ..hourly(&[("missed-runs", "skip"), ("manual-jobs", "count")])
        };
        let mut world = World::new("10:45:00", vec![record], vec![run.clone()]);
        world.advance_to("10:50:00");
        world.effects();
        let ended = JobRecord {
            resource_version: ResourceVersion(30),
            ..run
        };
        world.apply_job(complete(ended, "10:50:00"));
        world.effects();
        assert_eq!(world.creates.is_empty(), is_missed, "{started}");
        assert_eq!(
            count(&world, InstantOutcome::Missed),
            if is_missed { 4 } else { 0 },
            "{started}"
        );
    }
}
