//! Tests that decisions do not depend on the time that a shard has been in memory: scenarios with and without a
//! restart create the same Jobs.

use super::world::{World, cron_job, job, schedule};
use crate::shard::{CreateOutcome, CronJobRecord, JobRecord, LookUpOutcome, ResourceVersion};

/// A shard that can be restarted, and the objects as the API server stores them.
struct Restartable {
    world: World,
    record: CronJobRecord,
    jobs: Vec<JobRecord>,
    created: Vec<String>,
}

impl Restartable {
    fn new(now: &str, record: &CronJobRecord, jobs: &[JobRecord]) -> Restartable {
        Restartable {
            world: World::new(now, vec![record.clone()], jobs.to_vec()),
            record: record.clone(),
            jobs: jobs.to_vec(),
            created: Vec::new(),
        }
    }

    /// Replaces the shard by a new shard that lists the stored objects.
    fn restart(&mut self, now: &str) {
        self.world = World::new(now, vec![self.record.clone()], self.jobs.clone());
    }

    fn change(&mut self, change: impl FnOnce(&mut CronJobRecord)) {
        change(&mut self.record);
        self.record.resource_version = ResourceVersion(self.record.resource_version.0 + 1);
        self.world.apply(self.record.clone());
    }

    /// Answers every create, and records the names of the Jobs that are created.
    fn answer(&mut self, answer: Option<&CreateOutcome>) {
        self.world.effects();
        while let Some(order) = self.world.creates.first() {
            let name = order.name.to_string();
            if let Some(answer) = answer {
                self.world.answer_create(answer.clone());
            } else {
                self.created.push(name);
                self.world.created();
            }
            self.world.effects();
        }
    }
}

/// Plays a scenario once without a restart, and once with a restart at each of these instants. Returns the Jobs, which
/// must be the same.
#[track_caller]
fn created(restarts: &[&str], play: impl Fn(Option<&str>) -> Vec<String>) -> Vec<String> {
    let without = play(None);
    for restart in restarts {
        assert_eq!(play(Some(restart)), without, "with a restart at {restart}");
    }
    without
}

fn with_deadline(secs: i64) -> CronJobRecord {
    CronJobRecord {
        starting_deadline_seconds: Some(secs),
        schedule: schedule("0 10 * * *", None),
        ..cron_job("hello")
    }
}

#[test]
fn a_missed_slot_starts_when_its_deadline_is_extended() {
    let jobs = created(&["10:00:35", "10:00:45"], |restart| {
        let mut shard = Restartable::new("09:59:30", &with_deadline(30), &[]);
        shard.world.now = "2026-05-05T10:00:31Z".parse().unwrap();
        shard.world.jump_to("10:00:31");
        shard.answer(None);
        if let Some(at) = restart.filter(|at| *at < "10:00:40") {
            shard.restart(at);
        }
        shard.world.advance_to("10:00:40");
        shard.change(|record| record.starting_deadline_seconds = Some(300));
        if let Some(at) = restart.filter(|at| *at > "10:00:40") {
            shard.restart(at);
        }
        shard.answer(None);
        shard.created
    });
    assert_eq!(jobs, ["hello-29632920"]);
}

#[test]
fn a_slot_refused_as_invalid_starts_when_the_cause_is_gone() {
    let refused = CreateOutcome::Invalid { message: "no".into() };
    let jobs = created(&["10:02:00"], |restart| {
        let mut shard = Restartable::new("09:59:30", &with_deadline(3_600), &[]);
        shard.world.advance_to("10:00:00");
        shard.answer(Some(&refused));
        if let Some(at) = restart {
            shard.restart(at);
        }
        shard.world.advance_to("10:10:00");
        shard.answer(None);
        shard.created
    });
    assert_eq!(jobs, ["hello-29632920"]);
}

#[test]
fn a_slot_whose_job_name_is_taken_starts_nothing() {
    let jobs = created(&["10:02:00"], |restart| {
        let mut shard = Restartable::new("09:59:30", &with_deadline(3_600), &[]);
        let meet = |shard: &mut Restartable| {
            let message = "exists".into();
            shard.answer(Some(&CreateOutcome::AlreadyExists { message }));
            let foreign = JobRecord {
                controller: None,
                ..job("hello", "10:00:00")
            };
            shard.world.answer_look_up(LookUpOutcome::Found(Box::new(foreign)));
        };
        shard.world.advance_to("10:00:00");
        meet(&mut shard);
        if let Some(at) = restart {
            shard.restart(at);
            meet(&mut shard);
        }
        shard.world.advance_to("10:10:00");
        shard.answer(None);
        shard.created
    });
    assert_eq!(jobs, Vec::<String>::new());
}

#[test]
fn a_forbidden_create_is_retried_after_a_restart() {
    let refused = CreateOutcome::NotPermitted { message: "no".into() };
    let jobs = created(&["10:00:20"], |restart| {
        let mut shard = Restartable::new("09:59:30", &with_deadline(300), &[]);
        shard.world.advance_to("10:00:00");
        shard.answer(Some(&refused));
        if let Some(at) = restart {
            shard.restart(at);
        }
        shard.world.advance_to("10:01:00");
        shard.answer(None);
        shard.created
    });
    assert_eq!(jobs, ["hello-29632920"]);
}
