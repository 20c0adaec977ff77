//! Tests that many shards behave like one, whichever replica holds them, and that a shard is led with a complete view.

mod changed_controllers;

use jiff::SignedDuration;
use std::collections::BTreeMap;

use super::*;
use crate::shard::{
    BootInstant, Clocks, CreateOutcome, CronJobStatus, Finish, InstantOutcome, JobRecord, LookUpOutcome,
    ResourceVersion, ShardLabels, StatusOutcome, WatchedResource,
    input::WatchUpdate,
    naming,
    record::{ConcurrencyPolicy, CronJobRecord},
    state::test_record,
};

fn shard_term(shard: ShardId) -> ShardTerm {
    ShardTerm { shard, term: Term(7) }
}

fn at(time: &str) -> Timestamp {
    format!("2026-05-05T{time}Z").parse().unwrap()
}

/// The versions of a list whose CronJobs are at this version.
fn through(cron_jobs: ResourceVersion) -> ResourceVersions {
    ResourceVersions {
        cron_jobs,
        ..ResourceVersions::default()
    }
}

fn count() -> ShardCount {
    ShardCount::new(16).unwrap()
}

fn sixteen() -> HeldShards {
    HeldShards::new(Some(count()), vec![Scope::Cluster], SignedDuration::from_secs(2))
}

fn shard_of(record: &CronJobRecord) -> ShardId {
    count().shard_of(&record.identity.uid)
}

/// Two CronJobs of different shards.
fn two() -> [CronJobRecord; 2] {
    let first = test_record("first");
    let others = (0..).map(|number| test_record(&format!("other-{number}")));
    let other = others
        .into_iter()
        .find(|other| shard_of(other) != shard_of(&first))
        .unwrap();
    [first, other]
}

fn job(owner: &CronJobRecord, slot: Timestamp) -> JobRecord {
    let name = naming::job_name(&owner.identity.name, slot);
    JobRecord {
        uid: Uid::new(&format!("uid-{name}")),
        namespace: "default".into(),
        name,
        resource_version: ResourceVersion(20),
        controller: Some(owner.identity.uid.clone()),
        scheduled: Some(slot),
        finish: None,
        started: Some(slot),
        completed: None,
        is_created_by_cronwheel: false,
        shard_labels: ShardLabels::of(count(), shard_of(owner)),
    }
}

fn applied(record: &CronJobRecord) -> Input {
    Input::CronJobApplied(Box::new(record.clone()))
}

fn list(shards: &mut HeldShards, records: &[CronJobRecord], now: Timestamp) {
    shards.handle(Input::list_begun(WatchedResource::CronJobs, Scope::Cluster), now);
    shards.handle(Input::list_begun(WatchedResource::Jobs, Scope::Cluster), now);
    for record in records {
        shards.handle(applied(record), now);
    }
    shards.handle(Input::list_done(WatchedResource::CronJobs, Scope::Cluster), now);
    shards.handle(Input::list_done(WatchedResource::Jobs, Scope::Cluster), now);
}

/// Polls the effects and returns the creates, as shard term and name.
fn creates(shards: &mut HeldShards) -> Vec<(ShardTerm, String)> {
    let mut creates = Vec::new();
    while let Some(ordered) = shards.poll_effect() {
        if let Effect::CreateJob(order) = ordered.effect {
            creates.push((ordered.shard_term, order.name.to_string()));
        }
    }
    creates
}

fn only(shard: ShardId) -> ShardSet {
    [shard].into_iter().collect()
}

/// Holds a shard, whose list begins, and leads it.
fn lead(shards: &mut HeldShards, shard: ShardId, now: Timestamp) {
    shards.stand_by(shard, now);
    shards.lead(shard_term(shard), now);
}

#[test]
fn written_through_includes_versions_read_without_any_write() {
    let [record, _] = two();
    let (shard, now) = (shard_of(&record), at("10:00:05"));
    let mut shards = sixteen();
    shards.stand_by(shard, now);
    // The version of the CronJob that the previous leader stored.
    let stored = CronJobRecord {
        resource_version: ResourceVersion(500),
        ..record
    };
    shards.add_listed(Input::CronJobApplied(Box::new(stored)), now);
    shards.end_lists(&only(shard), &through(ResourceVersion(510)), now);
    shards.lead(shard_term(shard), now);
    assert_eq!(shards.held[&shard].written_through(), through(ResourceVersion(500)));
}

#[test]
fn written_through_includes_required_versions_and_known_jobs() {
    let [record, _] = two();
    let (shard, now) = (shard_of(&record), at("10:00:05"));
    let written = |cron_jobs, jobs| ResourceVersions {
        cron_jobs: ResourceVersion(cron_jobs),
        jobs: ResourceVersion(jobs),
    };
    let mut shards = sixteen();
    shards.stand_by(shard, now);
    shards.end_lists(&only(shard), &ResourceVersions::default(), now);
    shards.lead(shard_term(shard), now);
    // The version of a Job that may be deleted and is in no stored status.
    shards.update(shard, |held| held.written = held.written.max(&written(0, 185)));
    assert_eq!(shards.held[&shard].written_through(), written(0, 185));
    let known = JobRecord {
        resource_version: ResourceVersion(190),
        ..job(&record, at("10:00:00"))
    };
    shards.handle(Input::JobApplied(Box::new(known)), now);
    assert_eq!(shards.held[&shard].written_through(), written(0, 190));
}

/// A list may come from an API server that is behind the watched one, and takes time.
#[test]
fn an_older_list_does_not_undo_a_watch_event_of_a_job() {
    let [first, _] = two();
    let (shard, now) = (shard_of(&first), at("10:00:05"));
    let mut shards = sixteen();
    shards.stand_by(shard, now);
    let running = JobRecord {
        resource_version: ResourceVersion(90),
        ..job(&first, at("10:00:00"))
    };
    let ended = JobRecord {
        resource_version: ResourceVersion(150),
        finish: Some(Finish::Complete),
        completed: Some(at("10:00:04")),
        ..running.clone()
    };
    shards.handle(Input::JobApplied(Box::new(ended)), now);
    shards.add_listed(Input::CronJobApplied(Box::new(first.clone())), now);
    let listed = Input::JobApplied(Box::new(running));
    shards.add_listed(listed, now);
    shards.end_lists(&only(shard), &through(ResourceVersion(100)), now);
    shards.lead(shard_term(shard), now);
    let mut effects = std::iter::from_fn(|| shards.poll_effect()).map(|ordered| ordered.effect);
    let is_running = |effect| matches!(effect, Effect::WriteStatus(write) if !write.status.active.is_empty());
    assert!(!effects.any(is_running));
    assert_eq!(shards.held[&shard].written_through().jobs, ResourceVersion(150));
}

#[test]
fn inputs_are_routed_to_held_shards_and_effects_carry_the_term() {
    let [first, other] = two();
    let mut shards = sixteen();
    let now = at("10:00:05");
    lead(&mut shards, shard_of(&first), now);
    shards.end_lists(&only(shard_of(&first)), &ResourceVersions::default(), now);
    shards.handle(applied(&first), now);
    shards.handle(applied(&other), now);
    assert_eq!(shards.sizes().cron_jobs, 1, "the other shard is not held");
    assert_eq!(
        creates(&mut shards),
        [(shard_term(shard_of(&first)), "first-29632920".to_owned())]
    );
}

#[test]
fn shard_counts_as_led_from_the_complete_list_to_the_seal() {
    let [first, _] = two();
    let (shard, now) = (shard_of(&first), at("10:00:05"));
    let mut shards = sixteen();
    let led = |shards: &HeldShards| {
        let led = shards.led();
        (led.cron_jobs, led.shards, led.ratio())
    };
    shards.stand_by(shard, now);
    shards.add_listed(Input::CronJobApplied(Box::new(first)), now);
    assert_eq!(led(&shards), (0, 0, 0.0));
    shards.lead(shard_term(shard), now);
    assert_eq!(led(&shards), (0, 0, 0.0), "the list of the shard is not complete");
    shards.end_lists(&only(shard), &ResourceVersions::default(), now);
    assert_eq!(led(&shards), (1, 1, 1.0 / 16.0));
    shards.pause();
    assert_eq!(led(&shards), (0, 0, 0.0), "the replica may not act");
    shards.resume_if_ready(Clocks {
        wall: now,
        boot: BootInstant::after_boot(std::time::Duration::ZERO),
    });
    assert_eq!(led(&shards), (1, 1, 1.0 / 16.0));
    shards.update(shard, |held| held.state.seal(now));
    assert_eq!(led(&shards), (0, 0, 0.0));
}

#[test]
fn no_jobs_are_created_on_standby_or_before_the_list_is_complete() {
    let [first, _] = two();
    let (shard, now) = (shard_of(&first), at("10:00:05"));
    let mut shards = sixteen();
    shards.stand_by(shard, now);
    shards.add_listed(Input::CronJobApplied(Box::new(first.clone())), now);
    assert!(!shards.is_shard_synced(shard));
    shards.lead(shard_term(shard), now);
    assert_eq!(creates(&mut shards), []);
    assert_eq!(shards.next_wakeup(), None);
    shards.end_lists(&only(shard), &ResourceVersions::default(), now);
    assert!(shards.is_shard_synced(shard));
    assert!(!shards.is_synced(), "the watches have not delivered anything");
    assert_eq!(creates(&mut shards).len(), 1);
    assert_eq!(shards.next_wakeup(), Some(at("10:01:00")));
}

#[test]
fn a_list_does_not_restore_objects_that_the_watch_saw_deleted() {
    let [first, _] = two();
    let (shard, now) = (shard_of(&first), at("10:00:05"));
    let mut shards = sixteen();
    shards.stand_by(shard, now);
    let running = job(&first, at("10:00:00"));
    shards.handle(Input::CronJobDeleted(first.identity.uid.clone()), now);
    shards.handle(Input::JobUnselected(running.uid.clone()), now);
    shards.add_listed(Input::CronJobApplied(Box::new(first.clone())), now);
    let listed = Input::JobApplied(Box::new(running));
    shards.add_listed(listed, now);
    shards.end_lists(&only(shard), &ResourceVersions::default(), now);
    assert_eq!((shards.sizes().cron_jobs, shards.sizes().jobs), (0, 0));
}

#[test]
fn unselected_running_job_is_looked_up_before_the_next_start() {
    let forbid = CronJobRecord {
        concurrency_policy: ConcurrencyPolicy::Forbid,
        status: CronJobStatus {
            last_schedule_time: Some(at("10:00:00")),
            ..CronJobStatus::default()
        },
        ..test_record("first")
    };
    let (shard, now) = (shard_of(&forbid), at("10:00:05"));
    let mut shards = sixteen();
    lead(&mut shards, shard, now);
    let running = job(&forbid, at("10:00:00"));
    shards.add_listed(Input::CronJobApplied(Box::new(forbid.clone())), now);
    let listed = Input::JobApplied(Box::new(running.clone()));
    shards.add_listed(listed, now);
    shards.end_lists(&only(shard), &ResourceVersions::default(), now);
    assert_eq!(creates(&mut shards), []);
    // The label was removed, or the Job was deleted.
    shards.handle(Input::JobUnselected(running.uid.clone()), at("10:00:59"));
    let look_up = std::iter::from_fn(|| shards.poll_effect()).find_map(|ordered| match ordered.effect {
        Effect::LookUpJob(look_up) => Some(look_up),
        Effect::CreateJob(_)
        | Effect::DeleteJob(_)
        | Effect::Withdraw(_)
        | Effect::WriteStatus(_)
        | Effect::EmitEvent(_) => None,
    });
    let look_up = look_up.expect("a look-up");
    assert_eq!(look_up.listed_uid, Some(running.uid.clone()));
    shards.handle_timeout(at("10:01:00"));
    assert_eq!(creates(&mut shards), [], "the answer is awaited");
    let answer = LookUpOutcome::Found(Box::new(running));
    shards.handle(Input::JobLookedUp { look_up, answer }, at("10:01:00"));
    assert_eq!(creates(&mut shards), [], "the Job still runs");
}

#[test]
fn a_watch_list_begun_before_the_lead_does_not_complete_the_shard() {
    let [first, _] = two();
    let (shard, now) = (shard_of(&first), at("10:00:05"));
    let mut shards = sixteen();
    shards.handle(Input::list_begun(WatchedResource::CronJobs, Scope::Cluster), now);
    shards.handle(Input::list_begun(WatchedResource::Jobs, Scope::Cluster), now);
    // The watch's list has already passed this CronJob and will not deliver it.
    lead(&mut shards, shard, now);
    shards.handle(Input::list_done(WatchedResource::CronJobs, Scope::Cluster), now);
    shards.handle(Input::list_done(WatchedResource::Jobs, Scope::Cluster), now);
    assert!(!shards.is_shard_synced(shard));
    shards.add_listed(Input::CronJobApplied(Box::new(first)), now);
    shards.end_lists(&only(shard), &ResourceVersions::default(), now);
    assert_eq!(creates(&mut shards).len(), 1);
}

#[test]
fn a_watch_list_replaces_the_running_list_of_the_shard() {
    let [first, _] = two();
    let (shard, now) = (shard_of(&first), at("10:00:05"));
    let mut shards = sixteen();
    lead(&mut shards, shard, now);
    shards.handle(Input::list_begun(WatchedResource::CronJobs, Scope::Cluster), now);
    // The CronJob is deleted between the two lists, without an event.
    shards.add_listed(Input::CronJobApplied(Box::new(first)), now);
    shards.end_lists(&only(shard), &ResourceVersions::default(), now);
    assert!(!shards.is_shard_synced(shard), "the watch's list is not complete");
    shards.handle(Input::list_done(WatchedResource::CronJobs, Scope::Cluster), now);
    assert!(shards.is_shard_synced(shard));
    assert_eq!(shards.sizes().cron_jobs, 0);
}

#[test]
fn dropped_shard_creates_nothing_and_stays_in_the_counts() {
    let records = two();
    let mut shards = sixteen();
    let now = at("10:00:05");
    for record in &records {
        lead(&mut shards, shard_of(record), now);
    }
    list(&mut shards, &records, now);
    shards.drop_shard(shard_of(&records[0]));
    let ordered = creates(&mut shards);
    assert_eq!(ordered.len(), 1);
    assert_eq!(ordered[0].0.shard, shard_of(&records[1]));
    let outcome_counts = shards.outcome_counts();
    assert_eq!((outcome_counts.due_instants, outcome_counts.open_instants), (2, 1));
    assert_eq!(outcome_counts.outcome(InstantOutcome::HandedOver), 1);
}

/// Simulates the answers and events for orders: every create succeeds, every Job is observed and ends at random.
struct Follower {
    shards: HeldShards,
    jobs: BTreeMap<Uid, JobRecord>,
}

impl Follower {
    /// Performs all effects and returns them as sorted text.
    fn perform(&mut self, now: Timestamp) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(TermedEffect { effect, .. }) = self.shards.poll_effect() {
            lines.push(match effect {
                Effect::CreateJob(order) => {
                    let record = CronJobRecord {
                        identity: order.cron_job.clone(),
                        ..test_record("any")
                    };
                    let job = job(&record, order.slot);
                    let answer = CreateOutcome::Created {
                        shard_labels: job.shard_labels.clone(),
                        uid: job.uid.clone(),
                        resource_version: "20".into(),
                        created: now,
                    };
                    let (cron_job, slot) = (order.cron_job.uid.clone(), order.slot);
                    self.shards
                        .handle(Input::JobCreateAnswered { cron_job, slot, answer }, now);
                    self.shards.handle(Input::JobApplied(Box::new(job.clone())), now);
                    self.jobs.insert(job.uid.clone(), job);
                    format!("create {}", order.name)
                }
                Effect::DeleteJob(delete) => {
                    self.jobs.remove(&delete.uid);
                    self.shards.handle(Input::JobUnselected(delete.uid.clone()), now);
                    format!("delete {}", delete.name)
                }
                Effect::LookUpJob(look_up) => format!("look up {}", look_up.name),
                Effect::Withdraw(withdrawal) => format!("withdraw {withdrawal:?}"),
                Effect::WriteStatus(write) => {
                    let line = format!("{} {:?}", write.cron_job.name, write.status);
                    let answer = StatusOutcome::Stored {
                        resource_version: ResourceVersion(write.resource_version.0 + 1),
                    };
                    let (cron_job, sent) = (write.cron_job.uid.clone(), Box::new(write.status));
                    self.shards
                        .handle(Input::StatusAnswered { cron_job, sent, answer }, now);
                    line
                }
                Effect::EmitEvent(event) => event.message,
            });
        }
        lines.sort();
        lines
    }
}

#[test]
fn sixteen_shards_act_like_one() {
    let mut seed = 0x5eed_u64;
    let mut chance = move |one_in: u64| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33).is_multiple_of(one_in)
    };
    let start = at("10:00:05");
    let mut many = sixteen();
    for shard in count().shards() {
        lead(&mut many, shard, start);
    }
    let one = HeldShards::whole(vec![Scope::Cluster], SignedDuration::from_secs(2), start);
    let mut followers = [one, many].map(|shards| Follower {
        shards,
        jobs: BTreeMap::new(),
    });
    let records: Vec<CronJobRecord> = (0..24).map(|number| test_record(&format!("cron-{number}"))).collect();
    for follower in &mut followers {
        list(&mut follower.shards, &records, start);
    }
    let mut n_lines = 0;
    let mut now = start;
    for _ in 0..120 {
        let ended: Vec<Uid> = followers[0].jobs.keys().filter(|_| chance(3)).cloned().collect();
        let deleted: Vec<Uid> = records
            .iter()
            .map(|record| record.identity.uid.clone())
            .filter(|_| chance(900))
            .collect();
        let lines = followers.each_mut().map(|follower| {
            for uid in &ended {
                let Some(job) = follower.jobs.get_mut(uid) else {
                    continue;
                };
                (job.finish, job.completed) = (Some(Finish::Complete), Some(now));
                job.resource_version = ResourceVersion(job.resource_version.0 + 1);
                let input = Input::JobApplied(Box::new(job.clone()));
                follower.shards.handle(input, now);
            }
            for uid in &deleted {
                follower.shards.handle(Input::CronJobDeleted(uid.clone()), now);
            }
            follower.shards.handle_timeout(now);
            follower.perform(now)
        });
        assert_eq!(lines[0], lines[1], "{now}");
        n_lines += lines[0].len();
        let [one, many] = &mut followers;
        assert_eq!(one.shards.next_wakeup(), many.shards.next_wakeup());
        assert_eq!(
            (one.shards.sizes(), one.shards.outcome_counts()),
            (many.shards.sizes(), many.shards.outcome_counts())
        );
        now = one.shards.next_wakeup().map_or(now, |wakeup| wakeup.max(now));
    }
    assert!(n_lines > 3_000, "{n_lines}");
}

#[test]
fn replayed_events_of_a_cron_job_absent_from_a_newer_list_are_ignored() {
    let [gone, _] = two();
    let (shard, now) = (shard_of(&gone), at("10:01:05"));
    let listed_at = ResourceVersion(gone.resource_version.0 + 5);
    // The event is replayed before or after the end of the list.
    for is_early in [true, false] {
        let mut shards = sixteen();
        lead(&mut shards, shard, now);
        if is_early {
            shards.handle(applied(&gone), now);
        }
        shards.end_lists(&only(shard), &through(listed_at), now);
        if !is_early {
            shards.handle(applied(&gone), now);
        }
        assert_eq!((shards.sizes().cron_jobs, creates(&mut shards).len()), (0, 0));
        shards.handle(Input::CronJobDeleted(gone.identity.uid.clone()), now);
        assert_eq!(shards.sizes().cron_jobs, 0);
    }
}

#[test]
fn listed_cron_jobs_and_newer_events_are_kept() {
    let [found, _] = two();
    let newer = CronJobRecord {
        resource_version: ResourceVersion(found.resource_version.0 + 9),
        ..found.clone()
    };
    let (shard, now) = (shard_of(&found), at("10:00:05"));
    let listed_at = ResourceVersion(found.resource_version.0 + 5);
    for (is_found, delivered) in [(true, &found), (true, &newer), (false, &newer)] {
        for is_early in [true, false] {
            let mut shards = sixteen();
            lead(&mut shards, shard, now);
            if is_found {
                shards.add_listed(Input::CronJobApplied(Box::new(found.clone())), now);
            }
            if is_early {
                shards.handle(applied(delivered), now);
            }
            shards.end_lists(&only(shard), &through(listed_at), now);
            if !is_early {
                shards.handle(applied(delivered), now);
            }
            let case = (is_found, is_early, delivered.resource_version);
            assert_eq!(
                (shards.sizes().cron_jobs, creates(&mut shards).len()),
                (1, 1),
                "{case:?}"
            );
        }
    }
}

#[test]
fn a_relist_by_the_watch_accepts_older_versions() {
    let [restored, _] = two();
    let (shard, now) = (shard_of(&restored), at("10:00:05"));
    let mut shards = sixteen();
    lead(&mut shards, shard, now);
    let listed_at = ResourceVersion(restored.resource_version.0 + 5);
    shards.end_lists(&only(shard), &through(listed_at), now);
    shards.handle(Input::list_begun(WatchedResource::CronJobs, Scope::Cluster), now);
    shards.handle(applied(&restored), now);
    shards.handle(Input::list_done(WatchedResource::CronJobs, Scope::Cluster), now);
    assert_eq!(creates(&mut shards).len(), 1);
}

/// An input of this stage for each resource of a scope.
fn watch_update(scope: &Scope, shards: ShardSet, stage: WatchStage) -> [Input; 2] {
    [WatchedResource::CronJobs, WatchedResource::Jobs].map(|resource| {
        Input::WatchUpdated(Box::new(WatchUpdate {
            resource,
            scope: scope.clone(),
            shards,
            stage,
        }))
    })
}

#[test]
fn a_forbidden_scope_does_not_block_leading_and_joins_once_permitted() {
    let [record, _] = two();
    let (shard, now) = (shard_of(&record), at("10:00:05"));
    let other = Scope::Namespace("other".into());
    let own = Scope::Namespace((*record.identity.namespace).into());
    let scopes = vec![other.clone(), own.clone()];
    let mut shards = HeldShards::new(Some(count()), scopes, SignedDuration::from_secs(2));
    let watch = |shards: &mut HeldShards, scope: &Scope, stages: &[WatchStage]| {
        for stage in stages {
            for input in watch_update(scope, only(shard), *stage) {
                shards.handle(input, now);
            }
        }
    };
    let list = [WatchStage::ListBegun, WatchStage::ListDone];

    watch(&mut shards, &own, &[WatchStage::NotPermitted]);
    assert!(!shards.are_permitted_watches_synced(), "no permitted watch has listed");
    watch(&mut shards, &other, &list);
    assert!(shards.are_permitted_watches_synced());
    assert!(!shards.is_synced());

    shards.stand_by(shard, now);
    shards.add_listed(Input::CronJobApplied(Box::new(record.clone())), now);
    shards.skip_scope_of(shard, &own);
    assert!(!shards.is_shard_synced(shard));
    shards.end_lists(&only(shard), &ResourceVersions::default(), now);
    assert!(shards.is_shard_synced(shard));
    shards.lead(shard_term(shard), now);
    assert_eq!(creates(&mut shards), [], "the Jobs are not listed");

    watch(&mut shards, &own, &[WatchStage::ListBegun]);
    shards.handle(Input::CronJobApplied(Box::new(record)), now);
    assert_eq!(creates(&mut shards), []);
    watch(&mut shards, &own, &[WatchStage::ListDone]);
    assert!(shards.is_synced());
    assert_eq!(creates(&mut shards), [(shard_term(shard), "first-29632920".to_owned())]);
}

#[test]
fn a_list_removes_nothing_from_a_skipped_scope() {
    let [record, _] = two();
    let (shard, now) = (shard_of(&record), at("10:00:05"));
    let own = Scope::Namespace((*record.identity.namespace).into());
    let scopes = vec![Scope::Namespace("other".into()), own.clone()];
    let mut shards = HeldShards::new(Some(count()), scopes, SignedDuration::from_secs(2));
    shards.stand_by(shard, now);
    shards.handle(Input::CronJobApplied(Box::new(record)), now);
    shards.skip_scope_of(shard, &own);
    shards.end_lists(&only(shard), &through(ResourceVersion(u64::MAX)), now);
    assert_eq!(shards.sizes().cron_jobs, 1);
}
