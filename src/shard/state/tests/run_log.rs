//! The runs that a shard passes to the log.

use super::world::{World, at, cron_job, job, manual_job, schedule_with};
use crate::shard::{
    CreateOutcome, CronJobRecord, EndedRun, EndedRuns, JobRecord, LoggedRuns, LookUpOutcome, LostSlots,
    ResourceVersion, RunEnd,
};

fn lost(minutely: CronJobRecord) -> World {
    logging(LoggedRuns::Lost, minutely)
}

/// A shard on standby at 09:59:30 that leads from then on.
fn logging(logged: LoggedRuns, record: CronJobRecord) -> World {
    let mut world = World::on_standby("09:59:30", vec![record], vec![]);
    world.shard.ended_runs = EndedRuns::new(logged);
    world.lead();
    world
}

/// The runs since the last call, as text.
fn runs(world: &World) -> Vec<String> {
    world.shard.ended_runs.take(100).iter().map(line).collect()
}

fn line(run: &EndedRun) -> String {
    let time = |instant: jiff::Timestamp| instant.strftime("%T").to_string();
    let outcome = run.outcome.as_str();
    let name = &run.cron_job.name;
    match &run.end {
        RunEnd::Lost { slots, error, next } => {
            let slots = match *slots {
                LostSlots::One(slot) => time(slot),
                LostSlots::Between { after, before, n_slots } => {
                    format!("{n_slots} between {} and {}", time(after), time(before))
                }
            };
            let (error, next) = (error.as_deref().unwrap_or("-"), next.map_or("-".to_owned(), time));
            format!("{name} {slots} {outcome} error={error} next={next}")
        }
        RunEnd::Started { slot, job, lateness } => {
            let lateness = lateness.map_or("-".to_owned(), |lateness| format!("{lateness:#}"));
            format!("{name} {} {outcome} job={job} lateness={lateness}", time(*slot))
        }
        RunEnd::Asked { token, job } => format!("{name} {outcome} token={token} job={job}"),
    }
}

#[test]
fn a_refused_run_is_logged_when_the_next_one_is_due() {
    let mut world = lost(cron_job("hello"));
    world.advance_to("10:00:00");
    world.effects();
    world.refused("exceeded quota: compute");
    world.effects();
    assert_eq!(runs(&world), [""; 0], "it may still start");
    world.advance_to("10:01:00");
    world.effects();
    world.answer_create(CreateOutcome::Withdrawn);
    let expected = "hello 10:00:00 refused error=exceeded quota: compute next=10:01:00";
    assert_eq!(runs(&world), [expected]);
}

#[test]
fn runs_that_passed_in_an_outage_have_one_line() {
    let mut world = World::on_standby("10:30:20", vec![cron_job("hello")], vec![]);
    world.shard.ended_runs = EndedRuns::new(LoggedRuns::Lost);
    world.lead();
    let expected = "hello 30 between 09:59:00 and 10:30:00 superseded error=- next=10:30:00";
    assert_eq!(runs(&world), [expected]);
    world.effects();
    assert_eq!(world.creates[0].slot, at("10:30:00"), "the latest one starts");
}

#[test]
fn a_run_whose_deadline_passed_is_logged_once() {
    let record = CronJobRecord {
        starting_deadline_seconds: Some(15),
        ..cron_job("hello")
    };
    let mut world = World::on_standby("10:00:40", vec![record], vec![]);
    world.shard.ended_runs = EndedRuns::new(LoggedRuns::Lost);
    world.lead();
    world.advance_to("10:00:50");
    assert_eq!(runs(&world), ["hello 10:00:00 deadline_exceeded error=- next=10:01:00"]);
}

#[test]
fn a_run_whose_name_a_foreign_job_has_is_logged() {
    let mut world = lost(cron_job("hello"));
    world.advance_to("10:00:00");
    world.effects();
    let message = "jobs.batch \"hello-29632920\" already exists".to_owned();
    world.answer_create(CreateOutcome::AlreadyExists { message });
    world.effects();
    let foreign = JobRecord {
        controller: None,
        ..job("hello", "10:00:00")
    };
    world.answer_look_up(LookUpOutcome::Found(Box::new(foreign)));
    let expected = "hello 10:00:00 foreign_job error=jobs.batch \"hello-29632920\" already exists next=10:01:00";
    assert_eq!(runs(&world), [expected]);
}

#[test]
fn runs_that_the_cron_job_does_not_want_are_not_logged() {
    let suspended = CronJobRecord {
        is_suspended: true,
        ..cron_job("hello")
    };
    let mut world = logging(LoggedRuns::All, suspended);
    world.apply_job(manual_job("hello", "by-hand"));
    world.advance_to("10:10:00");
    assert_eq!(runs(&world), [""; 0]);
}

#[test]
fn each_job_is_logged_if_all_runs_are() {
    for logged in [LoggedRuns::None, LoggedRuns::Lost, LoggedRuns::All] {
        let mut world = logging(logged, cron_job("hello"));
        world.advance_to("10:00:00");
        world.effects();
        world.advance_to("10:00:00.250");
        world.created();
        let expected = ["hello 10:00:00 created job=hello-29632920 lateness=250ms"];
        let expected = if logged == LoggedRuns::All { &expected[..] } else { &[] };
        assert_eq!(runs(&world), expected, "{logged:?}");
    }
}

/// A CronJob of every minute that is asked for a run.
fn asked(token: &str) -> CronJobRecord {
    CronJobRecord {
        resource_version: ResourceVersion(11),
        schedule: schedule_with("* * * * *", &[("run-now", token)], 0),
        ..cron_job("hello")
    }
}

#[test]
fn the_job_of_a_run_that_is_asked_for_is_logged_if_all_runs_are() {
    for logged in [LoggedRuns::None, LoggedRuns::Lost, LoggedRuns::All] {
        let mut world = logging(logged, asked("t1"));
        world.effects();
        let name = world.creates[0].name.clone();
        world.created();
        let expected = [format!("hello created token=t1 job={name}")];
        let expected = if logged == LoggedRuns::All { &expected[..] } else { &[] };
        assert_eq!(runs(&world), expected, "{logged:?}");
    }
}

#[test]
fn the_error_of_a_run_that_is_asked_for_is_not_that_of_a_slot() {
    let mut world = lost(cron_job("hello"));
    world.advance_to("10:00:00");
    world.effects();
    world.refused("exceeded quota: compute");
    world.apply(asked("t1"));
    world.effects();
    let message = "denied by a webhook".to_owned();
    world.answer_create(CreateOutcome::Invalid { message });
    world.advance_to("10:01:00");
    world.effects();
    world.answer_create(CreateOutcome::Withdrawn);
    let expected = "hello 10:00:00 refused error=exceeded quota: compute next=10:01:00";
    assert_eq!(runs(&world), [expected]);
}

#[test]
fn nothing_is_kept_for_the_log_if_no_run_is_logged() {
    let mut world = logging(LoggedRuns::None, cron_job("hello"));
    world.advance_to("10:00:00");
    world.effects();
    world.refused("no");
    world.advance_to("10:01:00");
    assert_eq!(runs(&world), [""; 0]);
}
