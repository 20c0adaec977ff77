//! Tests of a CronJob with very many Jobs: changes are evaluated together, and none is lost.

use super::world::{World, complete, cron_job, manual_job};
use crate::shard::{CronJobRecord, JobRecord};

fn running(name: &str) -> JobRecord {
    manual_job("hello", name)
}

#[test]
fn job_changes_of_a_cron_job_with_many_jobs_are_evaluated_in_batches() {
    let record = CronJobRecord {
        is_suspended: true,
        successful_jobs_history_limit: None,
        failed_jobs_history_limit: None,
        ..cron_job("hello")
    };
    let others = cron_job("other");
    let ended = (0..2_000).map(|number| complete(running(&format!("ended-{number}")), "09:58:00"));
    let mut world = World::new(
        "09:59:30",
        vec![
            record,
            CronJobRecord {
                is_suspended: true,
                ..others
            },
        ],
        ended.collect(),
    );
    world.advance_to("09:59:31");
    world.effects();
    world.apply_job(running("first"));
    world.expect(&["Warning UnexpectedJob: Saw a job that the controller did not create or forgot: first"]);
    for name in ["second", "third"] {
        world.apply_job(running(name));
        world.expect(&[]);
    }
    // A CronJob with few Jobs does not wait.
    world.apply_job(manual_job("other", "prompt"));
    world.expect(&["Warning UnexpectedJob: Saw a job that the controller did not create or forgot: prompt"]);
    world.advance_to("09:59:31.3");
    world.expect(&[
        "Warning UnexpectedJob: Saw a job that the controller did not create or forgot: second",
        "Warning UnexpectedJob: Saw a job that the controller did not create or forgot: third",
    ]);
    world.advance_to("09:59:32");
    world.apply_job(running("fourth"));
    world.expect(&["Warning UnexpectedJob: Saw a job that the controller did not create or forgot: fourth"]);
}

#[test]
fn job_changes_do_not_wait_when_the_clock_was_set_back() {
    let record = CronJobRecord {
        is_suspended: true,
        successful_jobs_history_limit: None,
        failed_jobs_history_limit: None,
        ..cron_job("hello")
    };
    let ended = (0..2_000).map(|number| complete(running(&format!("ended-{number}")), "09:58:00"));
    let mut world = World::new("09:59:30", vec![record], ended.collect());
    world.advance_to("09:59:31");
    world.effects();
    world.apply_job(running("first"));
    world.effects();
    world.apply_job(running("second"));
    world.expect(&[]);
    world.jump_to("09:59:00");
    world.expect(&["Warning UnexpectedJob: Saw a job that the controller did not create or forgot: second"]);
    world.apply_job(running("third"));
    world.expect(&["Warning UnexpectedJob: Saw a job that the controller did not create or forgot: third"]);
}
