//! B-11 and B-12: the created Job and the effects of its creation.

use std::time::Duration;

use super::world::{World, at, cron_job, gone, job, schedule, uid};
use crate::shard::{
    CreateOutcome, CronJobRecord, InstantOutcome, JobTemplate, LookUpOutcome, ResourceVersion, StatusOutcome,
    record::JobRecord,
};

fn world() -> World {
    let mut world = World::new("09:59:30", vec![cron_job("hello")], vec![]);
    world.expect(&[]);
    world
}

#[test]
fn b_12_1_a_job_is_created_at_its_slot_and_recorded() {
    let mut world = world();
    world.advance_to("09:59:59.999");
    world.expect(&[]);
    world.advance_to("10:00:00");
    world.expect(&["create hello-29632920 for 2026-05-05T10:00:00Z"]);
    world.created();
    world.expect(&[
        "Normal SuccessfulCreate: Created job hello-29632920",
        "status last=10:00:00 successful=- active=[hello-29632920]",
    ]);
    world.stored("hello");
    world.expect(&[]);
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::Created), 1);
}

#[test]
fn b_11_3_scheduled_timestamp_is_in_the_zone_of_the_cron_job() {
    let record = CronJobRecord {
        schedule: schedule("0 12 * * *", Some("Europe/Berlin")),
        ..cron_job("hello")
    };
    let mut world = World::new("09:59:30", vec![record], vec![]);
    world.advance_to("10:00:00");
    world.expect(&["create hello-29632920 for 2026-05-05T12:00:00+02:00"]);
}

#[test]
fn b_12_1_the_next_slot_does_not_wait_for_the_status_write() {
    let mut world = world();
    world.advance_to("10:00:00");
    world.effects();
    world.created();
    world.effects();
    world.advance_to("10:01:00");
    world.expect(&["create hello-29632921 for 2026-05-05T10:01:00Z"]);
    world.created();
    world.expect(&[
        "Normal SuccessfulCreate: Created job hello-29632921",
        "status last=10:01:00 successful=- active=[hello-29632920 hello-29632921]",
    ]);
}

#[test]
fn b_12_2_a_terminating_namespace_is_retried_without_an_event() {
    let mut world = world();
    world.advance_to("10:00:00");
    world.effects();
    world.answer_create(CreateOutcome::NamespaceTerminating);
    world.expect(&[]);
    world.advance_to("10:00:01");
    world.expect(&["create hello-29632920 for 2026-05-05T10:00:00Z"]);
}

fn exists(world: &mut World) {
    world.advance_to("10:00:00");
    world.effects();
    world.answer_create(CreateOutcome::AlreadyExists {
        message: "jobs.batch \"hello-29632920\" already exists".into(),
    });
}

#[test]
fn b_12_3_an_existing_owned_job_is_adopted() {
    let mut world = world();
    exists(&mut world);
    world.expect(&["look up hello-29632920"]);
    world.answer_look_up(LookUpOutcome::Found(Box::new(job("hello", "10:00:00"))));
    world.expect(&["status last=10:00:00 successful=- active=[hello-29632920]"]);
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::Adopted), 1);
}

#[test]
fn b_12_3_a_known_owned_job_is_adopted_without_a_look_up() {
    let mut world = world();
    world.advance_to("10:00:00");
    world.effects();
    let unmarked = JobRecord {
        scheduled: None,
        ..job("hello", "10:00:00")
    };
    world.apply_job(unmarked);
    world.expect(&["Warning UnexpectedJob: Saw a job that the controller did not create or forgot: hello-29632920"]);
    world.answer_create(CreateOutcome::AlreadyExists {
        message: "exists".into(),
    });
    world.expect(&["status last=10:00:00 successful=- active=[hello-29632920]"]);
}

#[test]
fn b_12_3_a_foreign_job_loses_the_slot_but_not_the_next() {
    let mut world = world();
    exists(&mut world);
    world.effects();
    let foreign = JobRecord {
        controller: Some(uid("other")),
        ..job("hello", "10:00:00")
    };
    world.answer_look_up(LookUpOutcome::Found(Box::new(foreign)));
    world.expect(&["Warning FailedCreate: Error creating job: jobs.batch \"hello-29632920\" already exists"]);
    world.advance_to("10:00:59");
    world.expect(&[]);
    world.advance_to("10:01:00");
    world.expect(&["create hello-29632921 for 2026-05-05T10:01:00Z"]);
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::ForeignJob), 1);
}

#[test]
fn b_12_3_a_create_is_retried_if_the_existing_job_is_gone() {
    let mut world = world();
    exists(&mut world);
    world.effects();
    world.answer_look_up(LookUpOutcome::Gone);
    world.advance_to("10:00:01");
    world.expect(&["create hello-29632920 for 2026-05-05T10:00:00Z"]);
}

#[test]
fn b_12_4_a_failed_create_is_retried_with_back_off_until_the_next_slot() {
    let mut world = world();
    world.advance_to("10:00:00");
    world.effects();
    let mut n_attempts = 0;
    while world.now < at("10:00:50") {
        n_attempts += 1;
        world.refused("exceeded quota");
        let until = world.shard.next_wakeup().expect("a retry");
        let before = world.now;
        world.expect(&["Warning FailedCreate: Error creating job: exceeded quota"]);
        world.advance_to(&until.to_string());
        let retried = world.effects();
        assert!(retried.len() <= 1, "{retried:?}");
        if retried.is_empty() {
            break;
        }
        assert!(until > before);
    }
    assert!((6..12).contains(&n_attempts), "{n_attempts} attempts");
}

/// Refuses every create for lack of permission until the given time. Returns the times of the resulting Events.
pub(super) fn not_permitted_until(world: &mut World, text: &str) -> Vec<String> {
    let mut reported_at = Vec::new();
    while world.now < at(text) {
        world.effects();
        while !world.creates.is_empty() {
            world.answer_create(CreateOutcome::NotPermitted {
                message: "User \"cronwheel\" cannot create".into(),
            });
            for line in world.effects() {
                assert!(
                    line.starts_with("Warning FailedCreate: Error creating job: User"),
                    "{line}"
                );
                reported_at.push(world.now.strftime("%T").to_string());
            }
        }
        let retry = world.shard.next_wakeup().unwrap_or_else(|| at(text));
        world.advance_to(&retry.min(at(text)).to_string());
    }
    reported_at
}

#[test]
fn b_12_4_a_brief_lack_of_permission_is_not_reported() {
    let mut world = world();
    world.advance_to("10:00:00");
    let reported_at = not_permitted_until(&mut world, "10:00:03");
    assert!(reported_at.is_empty(), "{reported_at:?}");
    world.advance_to("10:00:07");
    world.effects();
    world.created();
    world.expect(&[
        "Normal SuccessfulCreate: Created job hello-29632920",
        "status last=10:00:00 successful=- active=[hello-29632920]",
    ]);
}

#[test]
fn b_12_4_a_lasting_lack_of_permission_is_reported() {
    let mut world = world();
    world.advance_to("10:00:00");
    let reported_at = not_permitted_until(&mut world, "10:01:30");
    assert!(
        reported_at.len() > 2 && *reported_at[0] >= *"10:00:05" && *reported_at[0] < *"10:00:10",
        "{reported_at:?}"
    );
    // A refusal of the next slot is reported at once.
    assert!(reported_at.contains(&"10:01:00".to_owned()), "{reported_at:?}");
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::Superseded), 1);
}

#[test]
fn b_12_4_a_lack_of_permission_is_reported_with_short_slots() {
    let mut world = World::new(
        "09:59:30",
        vec![CronJobRecord {
            schedule: schedule("@every 2s", None),
            ..cron_job("hello")
        }],
        vec![],
    );
    let reported_at = not_permitted_until(&mut world, "10:00:00");
    assert!(!reported_at.is_empty());
}

#[test]
fn b_12_4_the_next_slot_supersedes_a_failed_create() {
    let mut world = world();
    world.advance_to("10:00:00");
    world.effects();
    world.answer_create(CreateOutcome::Failed {
        message: "down".into(),
        status: Some(500),
        retry_after: Some(Duration::from_mins(5)),
    });
    world.effects();
    world.advance_to("10:01:00");
    world.expect(&["create hello-29632921 for 2026-05-05T10:01:00Z"]);
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::Superseded), 1);
}

fn refuse_as_invalid(world: &mut World) {
    world.answer_create(CreateOutcome::Invalid {
        message: "Job.batch \"x\" is invalid".into(),
    });
    world.expect(&["Warning FailedCreate: Error creating job: Job.batch \"x\" is invalid"]);
}

#[test]
fn b_12_4_a_job_refused_as_invalid_is_tried_once_per_minutely_slot() {
    let mut world = world();
    for minute in 0..10 {
        world.advance_to(&format!("10:0{minute}:00"));
        world.expect(&[&format!("create hello-2963292{minute} for 2026-05-05T10:0{minute}:00Z")]);
        refuse_as_invalid(&mut world);
    }
    assert_eq!(
        world.shard.outcome_counts().outcome(InstantOutcome::RefusedDueToTenant),
        9
    );
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::Superseded), 0);
}

#[test]
fn a_refused_slot_whose_retry_expires_ends_as_refused() {
    let record = CronJobRecord {
        schedule: schedule("0 * * * *", None),
        ..cron_job("hello")
    };
    let mut world = World::new("09:59:30", vec![record], vec![]);
    world.advance_to("10:00:00");
    world.effects();
    refuse_as_invalid(&mut world);
    world.advance_to("10:02:00");
    world.expect(&["create hello-29632920 for 2026-05-05T10:00:00Z"]);
    world.advance_to("11:00:00");
    world.answer_create(CreateOutcome::Withdrawn);
    assert_eq!(
        world.shard.outcome_counts().outcome(InstantOutcome::RefusedDueToTenant),
        1
    );
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::Superseded), 0);
}

fn daily() -> CronJobRecord {
    CronJobRecord {
        schedule: schedule("0 10 * * *", None),
        ..cron_job("hello")
    }
}

#[test]
fn b_12_4_a_job_refused_as_invalid_is_retried_with_long_back_off() {
    let mut world = World::new("09:59:30", vec![daily()], vec![]);
    world.advance_to("10:00:00");
    let mut tries = Vec::new();
    while tries.len() < 6 {
        if world.effects().is_empty() {
            let wakeup = world.shard.next_wakeup().expect("another try");
            world.advance_to(&wakeup.to_string());
        } else {
            tries.push(world.now);
            refuse_as_invalid(&mut world);
        }
    }
    let waits = tries.windows(2).map(|pair| pair[1].duration_since(pair[0]).as_secs());
    for (wait, least) in waits.zip([60, 120, 240, 300, 300]) {
        assert!((least..=least * 5 / 4).contains(&wait), "{tries:?}");
    }
    // The webhook works again.
    let wakeup = world.shard.next_wakeup().expect("another try");
    world.advance_to(&wakeup.to_string());
    world.created_all();
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::Created), 1);
}

#[test]
fn b_12_4_a_job_refused_as_invalid_is_retried_at_once_with_a_new_template() {
    let mut world = World::new("09:59:30", vec![daily()], vec![]);
    world.advance_to("10:00:00");
    world.effects();
    refuse_as_invalid(&mut world);
    world.advance_to("10:00:10");
    let template = JobTemplate {
        body: "mended".into(),
        ..(*daily().template).clone()
    };
    world.apply(CronJobRecord {
        template: template.into(),
        resource_version: ResourceVersion(11),
        ..daily()
    });
    world.expect(&["create hello-29632920 for 2026-05-05T10:00:00Z"]);
}

#[test]
fn b_12_4_a_job_refused_as_invalid_until_its_deadline_is_missed() {
    let record = CronJobRecord {
        starting_deadline_seconds: Some(30),
        ..daily()
    };
    let mut world = World::new("09:59:30", vec![record], vec![]);
    world.advance_to("10:00:00");
    world.effects();
    refuse_as_invalid(&mut world);
    world.advance_to("10:00:31");
    world.expect(&["Warning MissSchedule: Missed scheduled time to start a job: Tue, 05 May 2026 10:00:00 +0000"]);
}

#[test]
fn an_expired_create_is_superseded_by_the_latest_slot() {
    let mut world = world();
    world.advance_to("10:00:00");
    world.effects();
    assert_eq!(world.creates[0].expires_at, Some(at("10:01:00")));
    world.advance_to("10:02:05");
    world.expect(&[]);
    world.answer_create(CreateOutcome::Withdrawn);
    world.expect(&["create hello-29632922 for 2026-05-05T10:02:00Z"]);
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::Superseded), 2);
}

#[test]
fn an_unsent_create_is_ordered_again() {
    let mut world = world();
    world.advance_to("10:00:00");
    world.effects();
    world.answer_create(CreateOutcome::Abandoned);
    world.expect(&[]);
    world.advance_to("10:00:02");
    world.expect(&["create hello-29632920 for 2026-05-05T10:00:00Z"]);
}

#[test]
fn b_12_6_a_create_with_a_lost_response_makes_no_second_job() {
    let mut world = world();
    world.advance_to("10:00:00");
    world.effects();
    world.apply_job(job("hello", "10:00:00"));
    world.expect(&["status last=10:00:00 successful=- active=[hello-29632920]"]);
    world.refused("connection reset");
    world.expect(&["Warning FailedCreate: Error creating job: connection reset"]);
    world.stored("hello");
    world.advance_to("10:00:59");
    world.expect(&[]);
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::Adopted), 1);
}

#[test]
fn b_11_1_two_slots_of_one_minute_share_a_job() {
    let every = CronJobRecord {
        schedule: schedule("@every 30s", None),
        status: crate::shard::CronJobStatus {
            last_schedule_time: Some(at("10:00:00")),
            ..Default::default()
        },
        ..cron_job("hello")
    };
    let mut world = World::new("10:00:10", vec![every], vec![]);
    world.advance_to("10:01:00");
    world.created_all();
    world.advance_to("10:01:30");
    assert_eq!(
        world.effects(),
        Vec::<String>::new(),
        "the Job of 10:01:00 runs and bears the name"
    );
}

#[test]
fn b_12_3_a_slot_whose_job_is_known_to_have_ended_is_not_created_again() {
    let every = CronJobRecord {
        schedule: schedule("@every 20s", None),
        status: crate::shard::CronJobStatus {
            last_schedule_time: Some(at("09:59:40")),
            ..Default::default()
        },
        ..cron_job("hello")
    };
    let mut world = World::new("09:59:50", vec![every], vec![]);
    world.advance_to("10:00:00");
    world.created_all();
    world.apply_job(super::world::complete(job("hello", "10:00:00"), "10:00:05"));
    world.effects();
    world.advance_to("10:00:21");
    world.expect(&["status last=10:00:20 successful=10:00:05 active=[]"]);
    let outcomes = world.shard.outcome_counts();
    assert_eq!(outcomes.outcome(InstantOutcome::Adopted), 1);
    world.advance_to("10:00:41");
    world.stored("hello");
    world.effects();
    world.advance_to("10:01:00");
    world.expect(&["create hello-29632921 for 2026-05-05T10:01:00Z"]);
}

impl World {
    /// Drains the effects and answers every create with success.
    pub(super) fn created_all(&mut self) {
        self.effects();
        while !self.creates.is_empty() {
            self.created();
            self.effects();
        }
    }
}

#[test]
fn a_job_deleted_before_the_create_response_is_not_kept() {
    let mut world = world();
    world.advance_to("10:00:00");
    world.effects();
    let done = super::world::complete(job("hello", "10:00:00"), "10:00:00");
    world.apply_job(job("hello", "10:00:00"));
    world.apply_job(done);
    world.input(gone(&uid("hello-29632920"), "hello"));
    world.created();
    let effects = world.effects();
    assert!(
        effects.contains(&"status last=10:00:00 successful=10:00:00 active=[]".to_owned()),
        "{effects:#?}"
    );
    assert_eq!(world.shard.sizes().jobs, 0);
}

#[test]
fn b_13_1_the_slot_of_a_short_lived_job_is_stored_at_once() {
    let mut record = cron_job("hello");
    record.template = std::sync::Arc::new(crate::shard::JobTemplate {
        body: "".into(),
        splice_offsets: [0; 3],
        pod_splice_offset: None,
        ttl_seconds_after_finished: Some(0),
        had_reserved_annotations: false,
    });
    let mut world = World::new("09:59:30", vec![record], vec![]);
    world.advance_to("10:00:00");
    world.effects();
    world.created();
    world.expect(&[
        "Normal SuccessfulCreate: Created job hello-29632920",
        "status last=10:00:00 successful=- active=[hello-29632920] urgent",
    ]);
    world.answer_status("hello", StatusOutcome::Gone);
}
