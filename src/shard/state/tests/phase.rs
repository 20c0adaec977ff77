//! Tests of the phases of a handover: standby, leading, closing, sealed.

use super::world::{World, at, complete, cron_job, entry, gone, job, schedule};
use crate::shard::{
    ConcurrencyPolicy, CreateOutcome, CronJobRecord, DeleteOutcome, InstantOutcome, JobRecord, ResourceVersion,
    StatusOutcome,
};
use jiff::SignedDuration;

/// A CronJob with this policy whose Job of 09:59 runs.
fn running(policy: ConcurrencyPolicy) -> CronJobRecord {
    let mut record = cron_job("hello");
    record.concurrency_policy = policy;
    record.status.active.push(entry(&job("hello", "09:59:00")));
    record
}

/// Answers the create of 10:00, and stores the status that is written at once.
fn answer_create_and_status(world: &mut World) {
    world.created();
    world.expect(&[
        "Normal SuccessfulCreate: Created job hello-29632920",
        "status last=10:00:00 successful=- active=[hello-29632920] urgent",
    ]);
    assert!(!world.shard.check_idle(), "the status write is unanswered");
    world.stored("hello");
    world.expect(&[]);
    assert!(world.shard.check_idle());
}

#[test]
fn standby_shard_takes_inputs_without_effects() {
    let mut world = World::on_standby("10:00:05", vec![cron_job("hello")], vec![job("hello", "09:58:00")]);
    assert!(!world.shard.phase().acts());
    assert_eq!(world.shard.next_wakeup(), None);
    world.jump_to("10:05:00");
    // There is no Event, even about an invalid schedule or a missing Job.
    world.apply(CronJobRecord {
        schedule: schedule("every day", None),
        ..cron_job("hello")
    });
    world.apply_job(complete(job("hello", "09:58:00"), "10:04:00"));
    world.expect(&[]);
    assert_eq!(world.shard.sizes().jobs, 1);
}

#[test]
fn a_new_leader_starts_the_latest_slot_and_adopts_running_jobs() {
    let mut world = World::on_standby("10:00:30", vec![cron_job("hello")], vec![]);
    world.apply_job(job("hello", "10:00:00"));
    world.jump_to("10:03:10");
    world.lead();
    world.expect(&[
        "create hello-29632923 for 2026-05-05T10:03:00Z",
        "status last=10:00:00 successful=- active=[hello-29632920]",
    ]);
    assert!(!world.creates[0].is_on_time, "the slot is a catch-up");
    world.created();
    world.advance_to("10:04:00");
    assert!(
        world
            .effects()
            .iter()
            .any(|line| line.starts_with("create hello-29632924"))
    );
}

#[test]
fn a_paused_shard_takes_inputs_without_decisions() {
    let mut world = World::new("10:00:30", vec![cron_job("hello")], vec![]);
    assert_eq!(world.effects().len(), 1);
    world.created();
    world.effects();
    world.shard.pause();
    // Another replica starts Jobs and stores their status, while the time of this replica does not advance.
    let mut theirs = cron_job("hello");
    theirs.resource_version = ResourceVersion(90);
    theirs.status.last_schedule_time = Some(at("10:05:00"));
    world.apply(theirs);
    world.apply_job(complete(job("hello", "10:05:00"), "10:05:20"));
    world.apply_job(job("hello", "10:06:00"));
    world.expect(&[]);
    world.resume_at("10:06:30");
    let effects = world.effects();
    assert!(
        effects
            .iter()
            .all(|line| !line.contains("Warning") && !line.starts_with("create")),
        "{effects:?}"
    );
}

#[test]
fn lead_is_idempotent() {
    let mut world = World::on_standby("10:00:30", vec![cron_job("hello")], vec![]);
    world.lead();
    assert_eq!(world.effects().len(), 1);
    world.lead();
    world.expect(&[]);
}

#[test]
fn a_leader_decides_nothing_before_both_lists_are_complete() {
    use crate::shard::{Input, Scope, ShardConfig, ShardState, WatchedResource};
    let config = ShardConfig {
        clock_skew_max: SignedDuration::from_secs(2),
        scopes: vec![Scope::Cluster],
    };
    let now = at("10:00:05");
    let mut shard = ShardState::new(config, now);
    shard.lead(now);
    shard.handle(Input::CronJobApplied(Box::new(cron_job("hello"))), now);
    assert!(shard.poll_effect().is_none());
    shard.handle(Input::list_done(WatchedResource::CronJobs, Scope::Cluster), now);
    shard.handle(Input::list_done(WatchedResource::Jobs, Scope::Cluster), now);
    assert!(shard.poll_effect().is_some());
}

#[test]
fn seal_starts_due_slots_and_no_later_ones() {
    let mut world = World::new("09:59:30", vec![cron_job("hello")], vec![]);
    world.expect(&[]);
    world.now = at("10:00:00");
    world.seal();
    world.expect(&["create hello-29632920 for 2026-05-05T10:00:00Z"]);
    assert!(!world.shard.check_idle(), "the create is unanswered");
    world.jump_to("10:01:00");
    world.expect(&[]);
    assert_eq!(world.shard.next_wakeup(), None);
    answer_create_and_status(&mut world);
}

#[test]
fn a_closing_shard_still_creates_jobs() {
    let mut world = World::new("10:00:00", vec![cron_job("hello")], vec![]);
    world.effects();
    world.close();
    assert!(!world.shard.check_idle(), "the create is unanswered");
    answer_create_and_status(&mut world);
    world.advance_to("10:01:00");
    let effects = world.effects();
    assert!(
        effects.iter().any(|line| line.starts_with("create hello-29632921")),
        "{effects:?}"
    );
    world.seal();
    assert!(!world.shard.check_idle(), "later requests are awaited too");
}

#[test]
fn a_refused_status_write_does_not_delay_the_seal() {
    let mut world = World::new("10:00:00", vec![cron_job("hello")], vec![]);
    world.effects();
    world.created();
    world.close();
    world.effects();
    assert!(!world.shard.check_idle(), "the status write is unanswered");
    let (message, retry_after) = ("denied".into(), None);
    world.answer_status("hello", StatusOutcome::Failed { message, retry_after });
    assert!(world.shard.check_idle());
}

#[test]
fn seal_makes_pending_status_writes_urgent() {
    let mut world = World::new("10:00:00", vec![cron_job("hello")], vec![]);
    world.effects();
    world.created();
    world.effects();
    assert!(!world.pending_write("hello").unwrap().is_urgent);
    world.seal();
    world.expect(&["status last=10:00:00 successful=- active=[hello-29632920] urgent"]);
    world.stored("hello");
    assert!(world.shard.check_idle());
}

#[test]
fn b_10_4_a_slot_whose_deletes_end_after_the_seal_is_not_started() {
    let runs = running(ConcurrencyPolicy::Replace);
    let mut world = World::new("09:59:30", vec![runs], vec![job("hello", "09:59:00")]);
    world.now = at("10:00:00");
    world.seal();
    world.expect(&["delete hello-29632919"]);
    assert!(!world.shard.check_idle(), "the delete is unanswered");
    world.answer_delete(DeleteOutcome::Deleted);
    world.expect(&[
        "Normal SuccessfulDelete: Deleted job hello-29632919",
        "status last=09:59:00 successful=- active=[] urgent",
    ]);
    world.stored("hello");
    assert!(world.shard.check_idle());
}

#[test]
fn b_10_3_a_slot_held_back_by_forbid_is_handed_over() {
    let mut world = World::new(
        "10:00:00",
        vec![running(ConcurrencyPolicy::Forbid)],
        vec![job("hello", "09:59:00")],
    );
    world.effects();
    world.seal();
    assert!(world.shard.check_idle());
    world.apply_job(complete(job("hello", "09:59:00"), "10:00:10"));
    world.expect(&[]);
    world.shard.stand_by(world.now);
    let outcome_counts = world.shard.outcome_counts();
    assert_eq!(
        (
            outcome_counts.outcome(InstantOutcome::HandedOver),
            outcome_counts.open_instants
        ),
        (1, 0)
    );
    assert_eq!(outcome_counts.due_instants, 1);
}

#[test]
fn b_12_4_a_refused_create_is_not_retried_after_the_seal() {
    let mut world = World::new("10:00:00", vec![cron_job("hello")], vec![]);
    world.effects();
    world.seal();
    world.refused("exceeded quota");
    world.expect(&["Warning FailedCreate: Error creating job: exceeded quota"]);
    assert!(world.shard.check_idle());
    world.jump_to("10:00:50");
    world.expect(&[]);
}

#[test]
fn a_sealed_shard_can_lead_again() {
    let mut world = World::new("10:00:00", vec![cron_job("hello")], vec![]);
    world.effects();
    world.created();
    world.effects();
    world.seal();
    world.jump_to("10:02:30");
    world.lead();
    let lines = world.effects();
    assert!(
        lines.contains(&"create hello-29632922 for 2026-05-05T10:02:00Z".to_owned()),
        "{lines:?}"
    );
}

#[test]
fn a_shard_is_not_idle_after_a_status_conflict() {
    let mut world = World::new("10:00:00", vec![cron_job("hello")], vec![]);
    world.effects();
    world.answer_create(CreateOutcome::AlreadyExists {
        message: "exists".into(),
    });
    world.seal();
    assert!(!world.shard.check_idle(), "the look-up of the Job is unanswered");
    world.effects();
    world.answer_look_up(crate::shard::LookUpOutcome::Found(Box::new(job("hello", "10:00:00"))));
    world.effects();
    world.answer_status("hello", StatusOutcome::Conflict);
    assert!(!world.shard.check_idle());
}

#[test]
fn a_closing_shard_waits_for_a_replace_delete() {
    let record = running(ConcurrencyPolicy::Replace);
    let mut world = World::new("09:59:30", vec![record], vec![job("hello", "09:59:00")]);
    world.shard.close(world.now);
    assert!(world.shard.check_idle());
    world.advance_to("10:00:00");
    world.effects();
    assert!(!world.shard.check_idle(), "a delete is unanswered");
}

/// The watch of a standby can deliver the deletion of a Job before the status that the leader writes afterwards.
#[test]
fn standby_decides_on_the_active_list_that_the_leader_wrote_last() {
    let (deleted, missing) = (job("hello", "09:58:00"), job("hello", "09:59:00"));
    let listing = |active: &JobRecord, version| {
        let mut record = cron_job("hello");
        record.status.active = vec![entry(active)];
        record.resource_version = ResourceVersion(version);
        record
    };
    let mut world = World::on_standby("09:59:30", vec![listing(&deleted, 10)], vec![deleted.clone()]);
    world.input(gone(&deleted.uid, "hello"));
    world.apply(listing(&missing, 11));
    world.lead();
    world.expect(&["look up hello-29632919"]);
}
