//! The ends of runs that users ask for, and the tokens that are answered (O-10).

use super::{
    run_now::{asked, create_line, done, forbid, run_job, run_name},
    world::{World, at, complete, manual_job, uid},
};
use crate::shard::{
    ConcurrencyPolicy, CreateOutcome, CronJobRecord, DeleteOutcome, JobRecord, LookUpOutcome, StatusOutcome,
};

#[test]
fn o_10_a_run_whose_job_may_not_be_looked_up_is_given_up() {
    let mut world = World::new("10:30:00", vec![forbid(10, &[("run-now", "t1")])], vec![]);
    world.effects();
    world.answer_create(CreateOutcome::Unanswered {
        message: "timeout".into(),
        is_unreachable: false,
    });
    let mut effects = world.effects();
    while world.now < at("10:33:00") {
        if world.look_ups_sent() > 0 {
            world.answer_look_up(LookUpOutcome::NotPermitted { message: "no".into() });
        }
        let next = world.shard.next_wakeup().unwrap_or(at("10:33:00")).min(at("10:33:00"));
        world.advance_to(&next.to_string());
        effects.extend(world.effects());
    }
    let name = run_name("t1");
    effects.retain(|line| !line.starts_with("look up"));
    assert_eq!(
        effects,
        [
            format!("Warning FailedLookUp: Error looking up job {name}: no"),
            format!(
                "Warning RunNowRefused: Gave up looking up job {name}, which has not been permitted for 2 minutes: the run is \
                 lost unless the job exists: no"
            ),
            "status last=10:00:00 successful=- active=[] urgent".to_owned(),
        ]
    );
    assert_eq!(done(&world), Some("t1"));
    world.advance_to("11:00:00");
    world.expect(&["create hello-29632980 for 2026-05-05T11:00:00Z"]);
}

#[test]
fn o_10_a_token_that_comes_back_starts_nothing() {
    let mut world = World::new("10:30:00", vec![asked(10, "t1")], vec![]);
    world.expect(&[&create_line("t1", "10:30:00")]);
    world.created();
    world.effects();
    world.stored("hello");
    let stored = |version, token: &str, done: &[&str]| {
        let mut record = asked(version, token);
        for done in done {
            record.status.set_run_done(done);
        }
        record
    };
    world.apply(stored(200, "t2", &["t1"]));
    let effects = world.effects();
    assert!(effects.contains(&create_line("t2", "10:30:00")), "{effects:?}");
    world.created();
    world.effects();
    world.stored("hello");
    // The commit is reverted, and the Jobs are gone.
    for mut world in [world, World::new("10:31:00", vec![], vec![])] {
        world.apply(stored(300, "t1", &["t1", "t2"]));
        let effects = world.effects();
        assert!(!effects.iter().any(|line| line.starts_with("create")), "{effects:?}");
        // It stays remembered while it is asked for, however many others follow.
        assert_eq!(done(&world), Some("t1"));
    }
}

/// [`asked`] under a policy and without history.
fn asked_under(policy: ConcurrencyPolicy, version: u64, token: &str) -> CronJobRecord {
    CronJobRecord {
        concurrency_policy: policy,
        successful_jobs_history_limit: Some(0),
        ..asked(version, token)
    }
}

/// Whether a world starts nothing for a token that is asked for again, whose Job is gone.
fn starts_nothing_for(world: &mut World, record: CronJobRecord) {
    if world.pending_write("hello").is_some() {
        world.stored("hello");
    }
    let index = &world.shard.index;
    let owner = index.find_cron_job(&uid("hello")).unwrap();
    let status = index.cron_job(owner).record.status.clone();
    world.apply(CronJobRecord { status, ..record });
    let effects = world.effects();
    assert!(!effects.iter().any(|line| line.starts_with("create")), "{effects:?}");
}

#[test]
fn o_10_a_leader_after_a_crash_knows_the_job_of_a_token_that_another_one_replaced() {
    let (first, second) = (run_name("t1"), run_name("t2"));
    let allow = asked_under(ConcurrencyPolicy::Allow, 11, "t2");
    let mut world = World::new("10:30:00", vec![allow], vec![run_job("t1")]);
    world.expect(&[
        &create_line("t2", "10:30:00"),
        &format!("status last=10:00:00 successful=- active=[{first}] urgent"),
    ]);
    assert_eq!(done(&world), Some("t1"));

    let mut world = World::new("10:30:00", vec![forbid(11, &[("run-now", "t2")])], vec![run_job("t1")]);
    world.expect(&[
        &format!(
            "Warning RunNowRefused: Not starting the run of cronwheel.dev/run-now t2: job {first} is running and concurrency \
             policy is Forbid"
        ),
        &format!("status last=10:00:00 successful=- active=[{first}] urgent"),
    ]);
    starts_nothing_for(&mut world, forbid(300, &[("run-now", "t1")]));

    let replace = asked_under(ConcurrencyPolicy::Replace, 11, "t2");
    let mut world = World::new("10:30:00", vec![replace], vec![run_job("t1")]);
    world.expect(&[&format!("status last=10:00:00 successful=- active=[{first}] urgent")]);
    world.stored("hello");
    world.expect(&[&format!("delete {first}")]);
    world.answer_delete(DeleteOutcome::Deleted);
    let effects = world.effects();
    assert!(effects.contains(&create_line("t2", "10:30:00")), "{effects:?}");
    world.created();
    let effects = world.effects();
    assert!(
        effects.contains(&format!("status last=10:00:00 successful=- active=[{second}] urgent")),
        "{effects:?}"
    );
    starts_nothing_for(&mut world, asked_under(ConcurrencyPolicy::Replace, 300, "t1"));
}

#[test]
fn o_10_an_ended_job_is_kept_until_its_token_is_stored() {
    let ended = || complete(run_job("t1"), "10:20:00");
    let record = || asked_under(ConcurrencyPolicy::Allow, 11, "t2");
    // After a crash, and with the leader that has created it.
    let mut led = World::new(
        "10:29:00",
        vec![asked_under(ConcurrencyPolicy::Allow, 10, "t1")],
        vec![],
    );
    led.effects();
    led.created();
    led.effects();
    led.apply(record());
    led.apply_job(ended());
    for mut world in [World::new("10:30:00", vec![record()], vec![ended()]), led] {
        let effects = world.effects();
        assert!(!effects.iter().any(|line| line.starts_with("delete")), "{effects:?}");
        world.created();
        world.effects();
        world.stored("hello");
        let effects = world.effects();
        assert!(effects.contains(&format!("delete {}", run_name("t1"))), "{effects:?}");
        world.answer_delete(DeleteOutcome::Deleted);
        starts_nothing_for(&mut world, asked_under(ConcurrencyPolicy::Allow, 300, "t1"));
    }
}

#[test]
fn o_10_replace_does_not_wait_for_tokens_whose_writes_fail() {
    let replace = asked_under(ConcurrencyPolicy::Replace, 11, "t2");
    let mut world = World::new("10:30:00", vec![replace], vec![run_job("t1")]);
    world.effects();
    world.answer_status(
        "hello",
        StatusOutcome::Failed {
            message: "no".into(),
            retry_after: None,
        },
    );
    world.expect(&[&format!("delete {}", run_name("t1"))]);
}

#[test]
fn o_10_a_job_whose_token_was_forgotten_is_not_that_of_a_new_run() {
    // Twelve Jobs are kept, and ten tokens.
    let ended = |number: u32| {
        let job = run_job(&format!("t{number}"));
        let started = at(&format!("10:{number:02}:00"));
        complete(
            JobRecord {
                started: Some(started),
                ..job
            },
            "10:20:00",
        )
    };
    let mut record = CronJobRecord {
        successful_jobs_history_limit: None,
        ..asked(11, "t12")
    };
    for number in 1..=12 {
        record.status.set_run_done(&format!("t{number}"));
    }
    record.status.last_successful_time = Some(at("10:20:00"));
    let jobs = |last: u32| (1..=last).map(ended).collect::<Vec<_>>();
    let mut world = World::new("10:30:00", vec![record.clone()], jobs(12));
    world.expect(&[]);
    // The last one was not stored.
    let mut world = World::new("10:30:00", vec![record], jobs(13));
    world.expect(&["status last=10:00:00 successful=10:20:00 active=[] urgent"]);
    assert!(world.pending_write("hello").unwrap().status.is_run_done("t13"));
    world.stored("hello");
    world.expect(&[]);
}

#[test]
fn o_10_a_job_that_carries_the_token_of_another_name_is_none_of_a_run() {
    let forged = JobRecord {
        run_token: Some("t1".into()),
        ..manual_job("hello", "hello-run-by-hand")
    };
    let mut world = World::new("10:30:00", vec![forbid(11, &[("run-now", "t2")])], vec![forged]);
    world.expect(&[
        "Warning UnexpectedJob: Saw a job that the controller did not create or forgot: hello-run-by-hand",
        &create_line("t2", "10:30:00"),
    ]);
}
