//! Tests of running Jobs without a shard label. With several shards, no watch delivers them.

use super::world::{World, complete, count, cron_job, entry, job, manual_job};
use crate::shard::{
    ConcurrencyPolicy, CreateOutcome, CronJobRecord, DeleteOutcome, Input, JobRecord, LookUpOutcome, ResourceVersion,
    ShardCount, ShardId, ShardLabels,
};

const LOOK_UP: &str = "look up hello-29632919";
const BLOCKED: &str =
    "Normal JobAlreadyActive: Not starting job because prior execution is running and concurrency policy is Forbid";

/// The Job of 09:59, without a label.
fn unlabelled() -> JobRecord {
    JobRecord {
        shard_labels: ShardLabels::default(),
        ..job("hello", "09:59:00")
    }
}

/// A CronJob with policy Forbid and the Job of [`unlabelled`] on its active list.
fn forbid() -> CronJobRecord {
    let mut record = CronJobRecord {
        concurrency_policy: ConcurrencyPolicy::Forbid,
        ..cron_job("hello")
    };
    record.status.active = vec![entry(&unlabelled())];
    record
}

fn found(job: JobRecord) -> LookUpOutcome {
    LookUpOutcome::Found(Box::new(job))
}

#[test]
fn a_deleted_unlabelled_job_does_not_block_forbid_for_ever() {
    let mut world = World::among_others("09:59:40", vec![forbid()], vec![unlabelled()]);
    world.advance_to("10:00:09");
    world.expect(&[BLOCKED]);
    world.advance_to("10:00:10");
    world.expect(&[LOOK_UP]);
    world.answer_look_up(LookUpOutcome::Gone);
    world.expect(&[
        "Normal MissingJob: Active job went missing: hello-29632919",
        "create hello-29632920 for 2026-05-05T10:00:00Z",
        "status last=09:59:00 successful=- active=[]",
    ]);
}

#[test]
fn a_running_unlabelled_job_is_looked_up_until_it_has_a_label() {
    let mut world = World::among_others("09:59:10", vec![forbid()], vec![unlabelled()]);
    for (before, at) in [("09:59:39", "09:59:40"), ("10:00:09", "10:00:10")] {
        world.advance_to(before);
        assert!(!world.effects().contains(&LOOK_UP.to_owned()), "before {at}");
        world.advance_to(at);
        world.expect(&[LOOK_UP]);
        world.answer_look_up(found(unlabelled()));
        world.expect(&[]);
    }
    world.apply_job(JobRecord {
        shard_labels: ShardLabels::of(count(), ShardId(0)),
        resource_version: ResourceVersion(21),
        ..unlabelled()
    });
    world.advance_to("10:00:59");
    world.expect(&[]);
}

#[test]
fn an_unlabelled_job_blocks_forbid_during_its_look_up() {
    let mut world = World::among_others("09:59:40", vec![forbid()], vec![unlabelled()]);
    world.advance_to("10:00:10");
    world.expect(&[BLOCKED, LOOK_UP]);
    world.advance_to("10:00:50");
    world.expect(&[]);
    world.answer_look_up(found(complete(unlabelled(), "10:00:40")));
    assert!(
        world
            .effects()
            .contains(&"create hello-29632920 for 2026-05-05T10:00:00Z".to_owned())
    );
}

#[test]
fn manual_and_finished_unlabelled_jobs_are_not_looked_up() {
    let by_hand = JobRecord {
        shard_labels: ShardLabels::default(),
        ..manual_job("hello", "by-hand")
    };
    let ended = complete(unlabelled(), "09:59:30");
    let mut world = World::among_others("09:59:40", vec![cron_job("hello")], vec![by_hand, ended]);
    world.effects();
    world.advance_to("09:59:59");
    world.expect(&[]);
    assert_eq!(world.shard.sizes().jobs, 2);
}

#[test]
fn unlabelled_jobs_are_not_looked_up_without_shards() {
    let mut world = World::new("09:59:10", vec![forbid()], vec![unlabelled()]);
    world.advance_to("09:59:59");
    world.expect(&[]);
}

#[test]
fn jobs_with_a_wrong_shard_label_are_looked_up() {
    let former = ShardCount::new(64).unwrap();
    for labels in [
        ShardLabels::of(count(), ShardId(9)),
        ShardLabels::of(former, ShardId(0)),
    ] {
        let mislabelled = JobRecord {
            shard_labels: labels,
            ..unlabelled()
        };
        let mut world = World::among_others("09:59:10", vec![forbid()], vec![mislabelled]);
        world.advance_to("09:59:40");
        world.expect(&[LOOK_UP]);
    }
}

#[test]
fn a_job_that_replace_deletes_is_not_looked_up() {
    let replace = CronJobRecord {
        concurrency_policy: ConcurrencyPolicy::Replace,
        ..forbid()
    };
    let mut world = World::among_others("09:59:40", vec![replace], vec![unlabelled()]);
    world.advance_to("10:00:00");
    world.expect(&["delete hello-29632919"]);
    world.advance_to("10:00:30");
    world.expect(&[]);
    world.answer_delete(DeleteOutcome::Deleted);
    assert!(
        world
            .effects()
            .contains(&"create hello-29632920 for 2026-05-05T10:00:00Z".to_owned())
    );
}

#[test]
fn an_unlabelled_job_is_looked_up_after_the_clock_is_set_back() {
    let mut world = World::among_others("10:30:00", vec![forbid()], vec![unlabelled()]);
    world.effects();
    world.jump_to("09:59:05");
    world.advance_to("09:59:36");
    assert!(world.effects().contains(&LOOK_UP.to_owned()));
}

#[test]
fn a_sealed_shard_looks_nothing_up() {
    let mut world = World::among_others("09:59:10", vec![forbid()], vec![unlabelled()]);
    world.seal();
    world.effects();
    world.jump_to("09:59:50");
    world.expect(&[]);
}

#[test]
fn a_created_job_without_its_label_is_reported_and_looked_up() {
    let mut world = World::among_others("09:59:30", vec![cron_job("hello")], vec![]);
    world.advance_to("10:00:00");
    world.expect(&["create hello-29632920 for 2026-05-05T10:00:00Z"]);
    world.answer_create(CreateOutcome::Created {
        uid: job("hello", "10:00:00").uid,
        resource_version: "20".into(),
        created: world.now,
        shard_labels: ShardLabels::default(),
    });
    world.expect(&[
        "Normal SuccessfulCreate: Created job hello-29632920",
        "Warning ShardLabelMissing: a created job lacks the label cronwheel.dev/shard-256=0: an admission webhook \
         removed or changed it",
        "status last=10:00:00 successful=- active=[hello-29632920]",
    ]);
    world.advance_to("10:00:45");
    world.expect(&["look up hello-29632920"]);
}

#[test]
fn a_running_job_that_loses_its_label_during_another_create_is_looked_up() {
    let running = job("hello", "09:59:00");
    let allow = CronJobRecord {
        concurrency_policy: ConcurrencyPolicy::Allow,
        ..forbid()
    };
    let mut world = World::among_others("09:59:30", vec![allow], vec![running.clone()]);
    world.advance_to("10:00:00");
    world.expect(&["create hello-29632920 for 2026-05-05T10:00:00Z"]);
    world.input(Input::JobUnselected(running.uid.clone()));
    world.expect(&[LOOK_UP]);
    world.answer_look_up(found(unlabelled()));
    world.expect(&[]);
}
