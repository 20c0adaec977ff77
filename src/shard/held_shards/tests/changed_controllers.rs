//! Tests of Jobs whose controller changes to a CronJob of another shard.

use super::*;
use crate::shard::{ActiveJob, JobLookUp};

/// Answers the look-ups with this Job. Returns the creates, as shard and slot.
fn creates_after_look_ups(shards: &mut HeldShards, found: &JobRecord, now: Timestamp) -> Vec<(ShardId, Timestamp)> {
    let mut creates = Vec::new();
    while let Some(TermedEffect { shard_term, effect }) = shards.poll_effect() {
        match effect {
            Effect::CreateJob(order) => creates.push((shard_term.shard, order.slot)),
            Effect::LookUpJob(look_up) => {
                let JobLookUp { name, .. } = &look_up;
                assert_eq!(*name, found.name);
                let answer = LookUpOutcome::Found(Box::new(found.clone()));
                let answer = OrderAnswer::LookUp { look_up, answer };
                shards.handle_answer(TermedAnswer { shard_term, answer }, now);
            }
            Effect::DeleteJob(_) | Effect::Withdraw(_) | Effect::WriteStatus(_) | Effect::EmitEvent(_) => {}
        }
    }
    creates
}

#[test]
fn b_2_1_a_job_that_leaves_for_another_shard_no_longer_holds_its_former_owner_back() {
    let [first, other] = two();
    let now = at("10:00:05");
    let running = job(&first, at("09:59:00"));
    let entry = ActiveJob {
        name: running.name.clone(),
        namespace: running.namespace.clone(),
        uid: running.uid.clone(),
        resource_version: "20".into(),
    };
    let former = CronJobRecord {
        concurrency_policy: ConcurrencyPolicy::Forbid,
        status: CronJobStatus {
            active: vec![entry],
            ..first.status.clone()
        },
        ..first
    };
    let moved = JobRecord {
        controller: Some(other.identity.uid.clone()),
        resource_version: ResourceVersion(30),
        ..running.clone()
    };
    // The Job goes to a CronJob of another shard, or to no CronJob.
    for (change, n_jobs) in [
        (Input::JobModified(Box::new(moved.clone())), 1),
        (Input::JobReleased(moved.uid.clone()), 0),
    ] {
        let mut shards = sixteen();
        shards.lead(shard_term(shard_of(&former)), now);
        list(&mut shards, &[former.clone(), other.clone()], now);
        shards.handle(Input::JobApplied(Box::new(running.clone())), now);
        assert_eq!(creates_after_look_ups(&mut shards, &running, now), []);
        shards.handle(change, now);
        assert_eq!(
            creates_after_look_ups(&mut shards, &moved, now),
            [(shard_of(&former), at("10:00:00"))]
        );
        assert_eq!(shards.sizes().jobs, n_jobs);
    }
}
