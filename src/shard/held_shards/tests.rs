//! Tests that many shards behave like one, and that a shard that is not led acts on nothing and forgets nothing.

mod changed_controllers;
mod namespaces;

use jiff::SignedDuration;
use std::collections::BTreeMap;

use super::*;
use crate::shard::{
    BootInstant, Clocks, CreateOutcome, CronJobStatus, Finish, InstantOutcome, JobCreator, JobRecord, LookUpOutcome,
    ResourceVersion, ResourceVersions, ShardCommand, StatusOutcome, WatchedResource, naming,
    record::{ConcurrencyPolicy, CronJobRecord},
    state::test_record,
};

fn shard_term(shard: ShardId) -> ShardTerm {
    ShardTerm { shard, term: Term(7) }
}

fn at(time: &str) -> Timestamp {
    format!("2026-05-05T{time}Z").parse().unwrap()
}

fn count() -> ShardCount {
    ShardCount::new(16).unwrap()
}

fn sixteen() -> HeldShards {
    let clock_skew_max = SignedDuration::from_secs(2);
    HeldShards::new(count(), vec![Scope::Cluster], clock_skew_max, at("09:59:30"))
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
        creator: JobCreator::Unknown,
        run_token: None,
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

#[test]
fn written_through_includes_versions_that_were_read_or_required() {
    let [record, _] = two();
    let (shard, now) = (shard_of(&record), at("10:00:05"));
    let written = |cron_jobs, jobs| ResourceVersions {
        cron_jobs: ResourceVersion(cron_jobs),
        jobs: ResourceVersion(jobs),
    };
    let mut shards = sixteen();
    // The version of the CronJob that the previous leader stored.
    let stored = CronJobRecord {
        resource_version: ResourceVersion(500),
        ..record.clone()
    };
    list(&mut shards, &[stored], now);
    shards.lead(shard_term(shard), now);
    assert_eq!(shards.held[&shard].written_through(), written(500, 0));
    // The version of a Job that may be deleted and is in no stored status.
    shards.update(shard, |held| held.written = held.written.max(&written(0, 185)));
    assert_eq!(shards.held[&shard].written_through(), written(500, 185));
    let known = JobRecord {
        resource_version: ResourceVersion(190),
        ..job(&record, at("10:00:00"))
    };
    shards.handle(Input::JobApplied(Box::new(known)), now);
    assert_eq!(shards.held[&shard].written_through(), written(500, 190));
}

#[test]
fn every_shard_knows_its_cron_jobs_and_the_led_ones_act() {
    let [first, other] = two();
    let mut shards = sixteen();
    let now = at("10:00:05");
    shards.lead(shard_term(shard_of(&first)), now);
    shards.handle(applied(&first), now);
    assert_eq!(creates(&mut shards), [], "not before the lists are complete");
    assert_eq!(shards.next_wakeup(), None);
    list(&mut shards, &[first.clone(), other.clone()], now);
    assert_eq!(shards.sizes().cron_jobs, 2);
    assert_eq!(
        creates(&mut shards),
        [(shard_term(shard_of(&first)), "first-29632920".to_owned())]
    );
    assert_eq!(shards.next_wakeup(), Some(at("10:01:00")));
    shards.lead(shard_term(shard_of(&other)), now);
    assert_eq!(
        creates(&mut shards).len(),
        1,
        "the other shard acts without another list"
    );
}

#[test]
fn shard_counts_as_led_from_the_complete_list_to_the_seal() {
    let [first, _] = two();
    let (shard, now) = (shard_of(&first), at("10:00:05"));
    let mut shards = sixteen();
    let led = |shards: &mut HeldShards| {
        let led = shards.led();
        (led.cron_jobs, led.shards, led.ratio())
    };
    shards.lead(shard_term(shard), now);
    assert_eq!(led(&mut shards), (0, 0, 0.0), "the lists are not complete");
    list(&mut shards, &[first], now);
    assert_eq!(led(&mut shards), (1, 1, 1.0 / 16.0));
    shards.pause();
    assert_eq!(led(&mut shards), (0, 0, 0.0), "the replica may not act");
    shards.resume_if_ready(Clocks {
        wall: now,
        boot: BootInstant::after_boot(std::time::Duration::ZERO),
    });
    assert_eq!(led(&mut shards), (1, 1, 1.0 / 16.0));
    shards.update(shard, |held| held.state.seal(now));
    assert_eq!(led(&mut shards), (0, 0, 0.0));
}

#[test]
fn a_forbidden_scope_does_not_block_leading_and_joins_once_permitted() {
    let [record, _] = two();
    let (shard, now) = (shard_of(&record), at("10:00:05"));
    let other = Scope::Namespace("other".into());
    let own = Scope::Namespace((*record.identity.namespace).into());
    let scopes = vec![other.clone(), own.clone()];
    let mut shards = HeldShards::new(count(), scopes, SignedDuration::from_secs(2), now);
    let watch = |shards: &mut HeldShards, scope: &Scope, stages: &[WatchStage]| {
        for stage in stages {
            for resource in [WatchedResource::CronJobs, WatchedResource::Jobs] {
                shards.handle(Input::watch_updated(resource, scope.clone(), *stage), now);
            }
        }
    };
    watch(&mut shards, &own, &[WatchStage::NotPermitted]);
    assert!(!shards.are_permitted_watches_synced(), "no permitted watch has listed");
    watch(&mut shards, &other, &[WatchStage::ListBegun, WatchStage::ListDone]);
    assert!(shards.are_permitted_watches_synced());
    shards.lead(shard_term(shard), now);
    watch(&mut shards, &own, &[WatchStage::ListBegun]);
    shards.handle(Input::CronJobApplied(Box::new(record)), now);
    assert_eq!(creates(&mut shards), [], "the Jobs are not listed");
    watch(&mut shards, &own, &[WatchStage::ListDone]);
    assert_eq!(creates(&mut shards), [(shard_term(shard), "first-29632920".to_owned())]);
}

/// The number of due instants, of open ones, and of those that were handed over.
fn counts(shards: &mut HeldShards) -> (u64, u64, u64) {
    let counts = shards.outcome_counts();
    let handed_over = counts.outcome(InstantOutcome::HandedOver);
    (counts.due_instants, counts.open_instants, handed_over)
}

#[test]
fn released_shard_creates_nothing_and_keeps_what_it_knows() {
    let records = two();
    let mut shards = sixteen();
    let (released, now) = (shard_of(&records[0]), at("10:00:05"));
    let clocks = |wall| Clocks {
        wall,
        boot: BootInstant::after_boot(std::time::Duration::ZERO),
    };
    for record in &records {
        shards.lead(shard_term(shard_of(record)), now);
    }
    list(&mut shards, &records, now);
    shards.command(ShardCommand::Release(released), clocks(now));
    let ordered = creates(&mut shards);
    assert_eq!(ordered.len(), 1);
    assert_eq!(ordered[0].0.shard, shard_of(&records[1]));
    assert_eq!(counts(&mut shards), (2, 1, 1));
    let later = at("10:01:05");
    shards.handle_timeout(later);
    assert_eq!(creates(&mut shards), []);
    // The Job that the next leader created.
    let running = job(&records[0], at("10:01:00"));
    shards.handle(Input::JobApplied(Box::new(running)), later);
    let term = ShardTerm {
        shard: released,
        term: Term(9),
    };
    shards.lead(term, later);
    assert_eq!(creates(&mut shards), [], "the slot has its Job");
    shards.handle_timeout(at("10:02:00"));
    let again = creates(&mut shards).into_iter().map(|(term, _)| term);
    assert!(again.collect::<Vec<_>>().contains(&term));
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
        while let Some(TermedEffect { shard_term, effect }) = self.shards.poll_effect() {
            lines.push(match effect {
                Effect::CreateJob(order) => {
                    let record = CronJobRecord {
                        identity: order.cron_job.clone(),
                        ..test_record("any")
                    };
                    let job = job(&record, order.slot);
                    let answer = CreateOutcome::Created {
                        uid: job.uid.clone(),
                        resource_version: "20".into(),
                        created: now,
                    };
                    let (cron_job, slot) = (order.cron_job.uid.clone(), order.slot);
                    let answer = OrderAnswer::Create { cron_job, slot, answer };
                    self.shards.handle_answer(TermedAnswer { shard_term, answer }, now);
                    self.shards.handle(Input::JobApplied(Box::new(job.clone())), now);
                    self.jobs.insert(job.uid.clone(), job);
                    format!("create {}", order.name)
                }
                Effect::DeleteJob(delete) => {
                    self.jobs.remove(&delete.uid);
                    let (job, cron_job) = (delete.uid.clone(), delete.cron_job.uid.clone());
                    self.shards.handle(Input::JobDeleted { job, cron_job }, now);
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
                    let answer = OrderAnswer::Status { cron_job, sent, answer };
                    self.shards.handle_answer(TermedAnswer { shard_term, answer }, now);
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
        many.lead(shard_term(shard), start);
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
                let input = Input::JobModified(Box::new(job.clone()));
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
        assert_eq!(one.shards.led().cron_jobs, many.shards.led().cron_jobs);
        let states = many.shards.held.values().map(|held| &held.state);
        let n_due: u64 = states.map(|state| state.outcome_counts().due_instants).sum();
        assert_eq!(many.shards.outcome_counts().due_instants, n_due);
        now = one.shards.next_wakeup().map_or(now, |wakeup| wakeup.max(now));
    }
    assert!(n_lines > 3_000, "{n_lines}");
}
