//! Runs that users ask for (O-10), and Jobs that others create (O-12).

use super::creation::not_permitted_until;
use super::world::{World, at, complete, cron_job, entry, job, manual_job, schedule_with, uid};
use crate::shard::{
    ConcurrencyPolicy, CreateOutcome, CronJobRecord, CronJobStatus, DeleteOutcome, InstantOutcome, JobRecord,
    LookUpOutcome, ResourceVersion, RunNowResult, naming,
};

/// A CronJob of every full hour that ran last at 10:00, with these options and this version.
fn hourly(version: u64, options: &[(&str, &str)]) -> CronJobRecord {
    CronJobRecord {
        resource_version: ResourceVersion(version),
        schedule: schedule_with("0 * * * *", options, 0),
        status: CronJobStatus {
            last_schedule_time: Some(at("10:00:00")),
            ..CronJobStatus::default()
        },
        ..cron_job("hello")
    }
}

/// A CronJob that is asked for a run.
pub(super) fn asked(version: u64, token: &str) -> CronJobRecord {
    hourly(version, &[("run-now", token)])
}

/// The same CronJob when the answer to the run of a token is stored.
fn answered(version: u64, token: &str, done: &str) -> CronJobRecord {
    let mut record = asked(version, token);
    record.status.set_run_done(done);
    record.status.active = vec![entry(&run_job(done))];
    record
}

pub(super) fn run_name(token: &str) -> String {
    naming::run_job_name("hello", &uid("hello"), token).into()
}

/// The running Job of a token, which it carries.
pub(super) fn run_job(token: &str) -> JobRecord {
    JobRecord {
        run_token: Some(token.into()),
        ..manual_job("hello", &run_name(token))
    }
}

pub(super) fn create_line(token: &str, at: &str) -> String {
    format!("create {} for 2026-05-05T{at}Z", run_name(token))
}

fn created_lines(token: &str) -> [String; 2] {
    let name = run_name(token);
    [
        format!("Normal SuccessfulCreate: Created job {name}"),
        format!("status last=10:00:00 successful=- active=[{name}] urgent"),
    ]
}

pub(super) fn done(world: &World) -> Option<&str> {
    world.pending_write("hello")?.status.tokens_done().next()
}

fn count(world: &World, result: RunNowResult) -> u64 {
    world.shard.outcome_counts().runs_asked_for[result as usize]
}

/// Starts the run of a token, which is asked for in this version, and stores the answer.
fn run(world: &mut World, record: CronJobRecord, token: &str) {
    world.apply(record);
    assert_eq!(world.effects().len(), 1, "a create");
    world.created();
    assert_eq!(world.effects(), created_lines(token));
    assert_eq!(done(world), Some(token));
    world.stored("hello");
}

#[test]
fn o_10_a_run_starts_once_for_its_token_and_leaves_the_cursor() {
    let mut world = World::new("10:30:00.7", vec![hourly(10, &[])], vec![]);
    world.apply(asked(11, "t1"));
    world.expect(&[&create_line("t1", "10:30:00")]);
    let order = &world.creates[0];
    assert_eq!(order.run_token.as_deref(), Some("t1"));
    assert_eq!(
        (order.slot, order.expires_at, order.store_by),
        (at("10:30:00"), None, None)
    );
    assert!(!order.is_on_time, "it must not count for lateness");
    world.created();
    assert_eq!(world.effects(), created_lines("t1"));
    assert_eq!(done(&world), Some("t1"));
    world.stored("hello");
    // The watch delivers its own write, and the end of the Job; the Job is deleted later.
    world.apply(answered(102, "t1", "t1"));
    world.apply_job(complete(run_job("t1"), "10:31:00"));
    let name = run_name("t1");
    world.expect(&[
        &format!("Normal SawCompletedJob: Saw completed job: {name}, condition: Complete"),
        "status last=10:00:00 successful=10:31:00 active=[]",
    ]);
    world.stored("hello");
    world.input(super::world::gone(&uid(&name), "hello"));
    let mut ended = answered(110, "t1", "t1");
    ended.status.active.clear();
    ended.status.last_successful_time = Some(at("10:31:00"));
    world.apply(ended);
    world.advance_to("10:59:59");
    world.expect(&[]);
    assert_eq!(count(&world, RunNowResult::Created), 1);
    world.advance_to("11:00:00");
    world.expect(&["create hello-29632980 for 2026-05-05T11:00:00Z"]);
}

#[test]
fn o_10_another_token_starts_another_run() {
    let mut world = World::new("10:30:00", vec![hourly(10, &[])], vec![]);
    run(&mut world, asked(11, "t1"), "t1");
    world.apply(answered(102, "t1", "t1"));
    world.apply(answered(103, "t2", "t1"));
    world.expect(&[&create_line("t2", "10:30:00")]);
    world.created();
    let (first, second) = (run_name("t1"), run_name("t2"));
    world.expect(&[
        &format!("Normal SuccessfulCreate: Created job {second}"),
        &format!("status last=10:00:00 successful=- active=[{first} {second}] urgent"),
    ]);
    assert_eq!(done(&world), Some("t2"));
}

#[test]
fn o_10_every_later_status_write_repeats_the_token() {
    let mut world = World::new("10:30:00", vec![hourly(10, &[])], vec![]);
    run(&mut world, asked(11, "t1"), "t1");
    // The watch has not delivered the annotation yet, so the metadata of the next write has none.
    world.apply_job(complete(run_job("t1"), "10:31:00"));
    assert_eq!(done(&world), None, "the write is not taken yet");
    world.effects();
    assert_eq!(done(&world), Some("t1"));
}

#[test]
fn o_10_a_leader_after_a_crash_between_create_and_status_starts_no_second_run() {
    let of = |jobs| World::new("10:30:00", vec![asked(11, "t1")], jobs);
    // Running, ended, and under Forbid, which would refuse it because of its own Job.
    let mut world = of(vec![run_job("t1")]);
    let name = run_name("t1");
    world.expect(&[&format!("status last=10:00:00 successful=- active=[{name}] urgent")]);
    assert_eq!(done(&world), Some("t1"));
    let mut world = of(vec![complete(run_job("t1"), "10:20:00")]);
    world.expect(&["status last=10:00:00 successful=10:20:00 active=[] urgent"]);
    assert_eq!(done(&world), Some("t1"));
    let forbid = CronJobRecord {
        concurrency_policy: ConcurrencyPolicy::Forbid,
        ..asked(11, "t1")
    };
    let mut world = World::new("10:30:00", vec![forbid], vec![run_job("t1")]);
    world.expect(&[&format!("status last=10:00:00 successful=- active=[{name}] urgent")]);

    // Its create is still on the way: the name is taken.
    let mut world = of(vec![]);
    world.effects();
    world.answer_create(CreateOutcome::AlreadyExists {
        message: "exists".into(),
    });
    world.expect(&[&format!("look up {name}")]);
    world.answer_look_up(LookUpOutcome::Found(Box::new(run_job("t1"))));
    world.expect(&[&format!("status last=10:00:00 successful=- active=[{name}] urgent")]);
    assert_eq!(done(&world), Some("t1"));
}

#[test]
fn o_10_an_unanswered_create_is_looked_up_and_repeated() {
    let mut world = World::new("10:30:00", vec![asked(11, "t1")], vec![]);
    world.effects();
    world.answer_create(CreateOutcome::Unanswered {
        message: "timeout".into(),
        is_unreachable: false,
    });
    world.expect(&[&format!("look up {}", run_name("t1"))]);
    world.answer_look_up(LookUpOutcome::Gone);
    world.expect(&[]);
    world.advance_to("10:30:01");
    world.expect(&[&create_line("t1", "10:30:00")]);
}

#[test]
fn o_10_forbid_refuses_a_run_and_names_the_running_job() {
    let record = CronJobRecord {
        concurrency_policy: ConcurrencyPolicy::Forbid,
        ..asked(11, "t1")
    };
    let running = job("hello", "10:00:00");
    let record = CronJobRecord {
        status: CronJobStatus {
            active: vec![entry(&running)],
            ..record.status
        },
        ..record
    };
    let mut world = World::new("10:30:00", vec![record], vec![running.clone()]);
    world.expect(&[
        "Warning RunNowRefused: Not starting the run of cronwheel.dev/run-now t1: job hello-29632920 is running and \
         concurrency policy is Forbid",
        "status last=10:00:00 successful=- active=[hello-29632920] urgent",
    ]);
    assert_eq!(done(&world), Some("t1"));
    assert_eq!(count(&world, RunNowResult::Refused), 1);
    world.stored("hello");
    // It was refused for good.
    world.apply_job(complete(running, "10:40:00"));
    world.effects();
    world.advance_to("10:59:59");
    world.expect(&[]);
}

#[test]
fn o_10_replace_deletes_the_running_jobs_first() {
    let running = job("hello", "10:00:00");
    let mut record = CronJobRecord {
        concurrency_policy: ConcurrencyPolicy::Replace,
        ..asked(11, "t1")
    };
    record.status.active = vec![entry(&running)];
    let mut world = World::new("10:30:00", vec![record], vec![running]);
    world.expect(&["delete hello-29632920"]);
    world.answer_delete(DeleteOutcome::Deleted);
    world.expect(&[
        "Normal SuccessfulDelete: Deleted job hello-29632920",
        &create_line("t1", "10:30:00"),
        "status last=10:00:00 successful=- active=[]",
    ]);
}

#[test]
fn o_10_a_slot_under_forbid_waits_for_a_run() {
    let forbid = |version| CronJobRecord {
        concurrency_policy: ConcurrencyPolicy::Forbid,
        ..asked(version, "t1")
    };
    let mut world = World::new("10:59:59", vec![forbid(11)], vec![]);
    world.effects();
    // The slot becomes due while the create is in flight.
    world.advance_to("11:00:00");
    world.expect(&[]);
    world.created();
    let effects = world.effects();
    assert!(
        effects.iter().any(|line| line.contains("JobAlreadyActive")),
        "{effects:?}"
    );
    world.stored("hello");
    world.now = at("11:01:00");
    world.apply_job(complete(run_job("t1"), "11:01:00"));
    let effects = world.effects();
    assert!(
        effects.contains(&"create hello-29632980 for 2026-05-05T11:00:00Z".to_owned()),
        "{effects:?}"
    );
}

#[test]
fn o_10_a_suspended_cron_job_runs_when_asked() {
    let record = CronJobRecord {
        is_suspended: true,
        ..asked(11, "t1")
    };
    let mut world = World::new("10:30:00", vec![record], vec![]);
    world.expect(&[&create_line("t1", "10:30:00")]);
}

#[test]
fn o_10_a_run_waits_while_its_namespace_is_frozen_or_not_managed() {
    let mut world = World::selecting("10:30:00", vec![asked(11, "t1")], vec![]);
    world.expect(&[]);
    world.select_with(&[("freeze-until", "2026-05-05T10:40:00Z")]);
    world.advance_to("10:39:59");
    world.expect(&[]);
    world.advance_to("10:40:00");
    world.expect(&[&create_line("t1", "10:40:00")]);
}

#[test]
fn o_10_a_deleted_cron_job_starts_no_run() {
    let record = CronJobRecord {
        is_deleting: true,
        ..asked(11, "t1")
    };
    let mut world = World::new("10:30:00", vec![record], vec![]);
    world.advance_to("10:50:00");
    world.expect(&[]);
}

#[test]
fn o_10_a_run_that_is_not_asked_for_any_more_is_withdrawn() {
    let mut world = World::new("10:30:00", vec![asked(11, "t1")], vec![]);
    world.effects();
    world.apply(hourly(12, &[]));
    world.expect(&["withdraw the create of hello"]);
    world.answer_create(CreateOutcome::Withdrawn);
    world.advance_to("10:50:00");
    world.expect(&[]);
}

#[test]
fn o_10_a_refused_create_is_repeated_for_ten_minutes_and_an_invalid_job_is_not() {
    let mut world = World::new("10:30:00", vec![asked(11, "t1")], vec![]);
    world.effects();
    let mut n_attempts = 0;
    while !world.creates.is_empty() {
        n_attempts += 1;
        world.refused("quota");
        let effects = world.effects();
        if let Some(given_up) = effects.iter().find(|line| line.contains("RunNowRefused")) {
            assert_eq!(
                given_up,
                "Warning RunNowRefused: Gave up the run of cronwheel.dev/run-now t1 after 10 minutes: quota"
            );
        }
        let until = (world.now + jiff::SignedDuration::from_secs(70)).to_string();
        if world.now < at("10:45:00") {
            world.advance_to(&until);
            world.effects();
        }
    }
    assert!((10..30).contains(&n_attempts), "{n_attempts}");
    assert!(world.now < at("10:45:00"), "{}", world.now);
    assert_eq!(count(&world, RunNowResult::Failed), 1);

    let mut world = World::new("10:30:00", vec![asked(11, "t1")], vec![]);
    world.effects();
    world.answer_create(CreateOutcome::Invalid { message: "no".into() });
    world.expect(&[
        "Warning FailedCreate: Error creating job: no",
        "status last=10:00:00 successful=- active=[] urgent",
    ]);
    assert_eq!(done(&world), Some("t1"));
}

#[test]
fn o_10_a_foreign_job_of_the_name_ends_the_run() {
    let mut world = World::new("10:30:00", vec![asked(11, "t1")], vec![]);
    world.effects();
    world.answer_create(CreateOutcome::AlreadyExists {
        message: "exists".into(),
    });
    world.effects();
    world.answer_look_up(LookUpOutcome::Found(Box::new(JobRecord {
        controller: None,
        ..run_job("t1")
    })));
    world.expect(&[
        "Warning FailedCreate: Error creating job: exists",
        "status last=10:00:00 successful=- active=[] urgent",
    ]);
    assert_eq!(count(&world, RunNowResult::Failed), 1);
}

#[test]
fn o_10_history_and_replace_wait_until_the_token_is_stored() {
    let record = |policy| CronJobRecord {
        concurrency_policy: policy,
        successful_jobs_history_limit: Some(0),
        ..asked(11, "t1")
    };
    let ended = complete(run_job("t1"), "10:20:00");
    let mut world = World::new("10:30:00", vec![record(ConcurrencyPolicy::Allow)], vec![ended]);
    world.expect(&["status last=10:00:00 successful=10:20:00 active=[] urgent"]);
    world.stored("hello");
    world.expect(&[&format!("delete {}", run_name("t1"))]);

    let mut world = World::new("10:59:59", vec![record(ConcurrencyPolicy::Replace)], vec![]);
    world.effects();
    world.created();
    assert_eq!(world.effects(), created_lines("t1"));
    world.advance_to("11:00:00.5");
    world.expect(&[]);
    world.stored("hello");
    world.expect(&[&format!("delete {}", run_name("t1"))]);
    world.answer_delete(DeleteOutcome::Deleted);
    let effects = world.effects();
    assert!(
        effects.contains(&"create hello-29632980 for 2026-05-05T11:00:00Z".to_owned()),
        "{effects:?}"
    );
}

#[test]
fn o_10_a_run_does_not_replace_a_job_whose_slot_is_not_stored() {
    let record = |version, options| CronJobRecord {
        concurrency_policy: ConcurrencyPolicy::Replace,
        ..hourly(version, options)
    };
    let mut world = World::new("10:59:59", vec![record(10, &[])], vec![]);
    world.advance_to("11:00:00");
    world.effects();
    world.created();
    world.effects();
    world.apply(record(11, &[("run-now", "t1")]));
    world.expect(&["status last=11:00:00 successful=- active=[hello-29632980] urgent"]);
    world.stored("hello");
    world.expect(&["delete hello-29632980"]);
}

#[test]
fn o_10_a_seal_waits_for_the_run_and_a_closing_shard_starts_none() {
    let mut world = World::new("10:30:00", vec![asked(11, "t1")], vec![]);
    world.effects();
    world.seal();
    assert!(!world.shard.check_idle());
    world.created();
    assert_eq!(world.effects(), created_lines("t1"));
    assert!(!world.shard.check_idle(), "the token is not stored");
    world.stored("hello");
    assert!(world.shard.check_idle());

    let mut world = World::new("10:30:00", vec![hourly(10, &[])], vec![]);
    world.close();
    world.apply(asked(11, "t1"));
    world.expect(&[]);
}

/// [`hourly`] under Forbid.
pub(super) fn forbid(version: u64, options: &[(&str, &str)]) -> CronJobRecord {
    CronJobRecord {
        concurrency_policy: ConcurrencyPolicy::Forbid,
        ..hourly(version, options)
    }
}

#[test]
fn o_2_a_slot_that_ended_as_missed_does_not_start_after_a_run() {
    let skip = ("missed-runs", "skip");
    let mut world = World::new("13:30:00", vec![forbid(10, &[skip])], vec![]);
    world.expect(&[]);
    run(&mut world, forbid(11, &[skip, ("run-now", "t1")]), "t1");
    world.advance_to("13:31:00");
    world.apply_job(complete(run_job("t1"), "13:31:00"));
    let name = run_name("t1");
    world.expect(&[
        &format!("Normal SawCompletedJob: Saw completed job: {name}, condition: Complete"),
        "status last=10:00:00 successful=13:31:00 active=[]",
    ]);
    let outcomes = world.shard.outcome_counts();
    assert_eq!(outcomes.outcome(InstantOutcome::Missed), 3);
    assert_eq!(outcomes.due_instants, 3);
    world.advance_to("14:00:00");
    world.expect(&["create hello-29633160 for 2026-05-05T14:00:00Z"]);
}

#[test]
fn o_10_a_token_leaves_the_slot_that_waits() {
    let mut world = World::new("10:59:59", vec![hourly(10, &[])], vec![]);
    world.advance_to("11:00:00");
    world.expect(&["create hello-29632980 for 2026-05-05T11:00:00Z"]);
    world.apply(asked(11, "t1"));
    world.expect(&[]);
    world.answer_create(CreateOutcome::Failed {
        message: "etcd".into(),
        status: Some(500),
        retry_after: None,
    });
    world.expect(&[
        "Warning FailedCreate: Error creating job: etcd",
        &create_line("t1", "11:00:00"),
    ]);
    world.created();
    assert_eq!(world.effects(), created_lines("t1"));
    world.advance_to("11:00:01");
    world.expect(&["create hello-29632980 for 2026-05-05T11:00:00Z"]);
    let order = &world.creates[0];
    assert_eq!(order.n_attempts_before, 1, "its back-off goes on");
    assert_eq!(order.late_from, Some(at("11:00:00")), "it is late");
}

#[test]
fn o_10_another_token_withdraws_the_create_of_the_former_one() {
    let mut world = World::new("10:30:00", vec![asked(10, "t1")], vec![]);
    world.effects();
    world.apply(asked(11, "t2"));
    world.expect(&["withdraw the create of hello"]);
    world.answer_create(CreateOutcome::Withdrawn);
    world.expect(&[&create_line("t2", "10:30:00")]);
}

#[test]
fn o_10_each_invalid_token_is_reported() {
    let mut world = World::new("10:30:00", vec![asked(10, "no token")], vec![]);
    for version in 11..13 {
        let effects = world.effects();
        assert!(
            effects.len() == 1 && effects[0].contains("InvalidOption"),
            "{effects:?}"
        );
        world.apply(asked(version, &format!("no token {version}")));
    }
}

#[test]
fn o_10_the_job_of_a_run_ends_its_look_up() {
    let mut world = World::new("10:30:00", vec![forbid(10, &[("run-now", "t1")])], vec![]);
    world.effects();
    world.answer_create(CreateOutcome::Unanswered {
        message: "timeout".into(),
        is_unreachable: false,
    });
    world.effects();
    world.answer_look_up(LookUpOutcome::NotPermitted { message: "no".into() });
    // The slot waits for the look-up.
    world.advance_to("11:00:30");
    world.expect(&[&format!("look up {}", run_name("t1"))]);
    world.apply_job(complete(run_job("t1"), "10:50:00"));
    world.expect(&["status last=10:00:00 successful=10:50:00 active=[] urgent"]);
    assert_eq!(done(&world), Some("t1"));
    world.advance_to("11:00:31");
    world.expect(&["create hello-29632980 for 2026-05-05T11:00:00Z"]);
    world.answer_look_up(LookUpOutcome::NotPermitted { message: "no".into() });
    world.expect(&[]);
}

#[test]
fn o_12_forbid_held_back_only_the_slots_after_the_start_of_the_running_job() {
    for (started, outcome) in [
        ("10:30:00", InstantOutcome::HeldByForbid),
        ("13:30:00", InstantOutcome::Superseded),
    ] {
        let manual = JobRecord {
            started: Some(at(started)),
            ..manual_job("hello", "by-hand")
        };
        let record = forbid(10, &[("manual-jobs", "count")]);
        let world = World::new("14:30:00", vec![record], vec![manual]);
        assert_eq!(world.shard.outcome_counts().outcome(outcome), 3, "{started}");
    }
}

#[test]
fn o_12_jobs_of_others_count_for_forbid_only_with_the_option() {
    let manual = manual_job("hello", "by-hand");
    for (options, expected) in [
        (&[][..], "create hello-29632980 for 2026-05-05T11:00:00Z"),
        (
            &[("manual-jobs", "count")][..],
            "Normal JobAlreadyActive: Not starting job because prior execution is running and concurrency policy is Forbid",
        ),
    ] {
        let record = CronJobRecord {
            concurrency_policy: ConcurrencyPolicy::Forbid,
            ..hourly(10, options)
        };
        let mut world = World::new("10:30:00", vec![record], vec![manual.clone()]);
        let effects = world.effects();
        let is_reported = effects.iter().any(|line| line.contains("UnexpectedJob"));
        assert_eq!(is_reported, options.is_empty(), "{effects:?}");
        world.advance_to("11:00:00");
        let effects = world.effects();
        assert!(effects.contains(&expected.to_owned()), "{effects:?}");
    }
}

#[test]
fn o_12_a_job_of_others_moves_no_cursor() {
    let record = hourly(10, &[("manual-jobs", "count")]);
    let manual = JobRecord {
        scheduled: Some(at("10:20:00")),
        ..manual_job("hello", "by-hand")
    };
    let mut world = World::new("10:30:00", vec![record], vec![manual]);
    world.expect(&["status last=10:00:00 successful=- active=[by-hand]"]);
}

#[test]
fn o_10_a_lasting_lack_of_permission_is_reported_in_time_for_trigger() {
    let mut world = World::new("10:30:00", vec![hourly(10, &[])], vec![]);
    world.apply(asked(11, "t1"));
    let reported_at = not_permitted_until(&mut world, "10:31:00");
    assert!(reported_at.len() > 2, "{reported_at:?}");
    assert!(("10:30:05".."10:30:09").contains(&&*reported_at[0]), "{reported_at:?}");
}
