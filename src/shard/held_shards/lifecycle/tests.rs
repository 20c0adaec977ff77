//! Tests of commands: a shard is led only with a complete view, and is reported as sealed once.

mod sealing;

use super::*;
use crate::shard::{
    Bucket, CreateOutcome, Effect, Input, ResourceVersion, Scope, SealOrder, ShardCount, ShardLabels, StatusOutcome,
    Uid,
    input::{WatchStage, WatchUpdate, WatchedResource},
    naming,
    record::{CronJobRecord, JobRecord},
    state::test_record,
};
use jiff::{SignedDuration, Timestamp};

const RECORD_VERSION: u64 = 1_000;

struct Replica {
    shards: HeldShards,
    wall: Timestamp,
    boot: BootInstant,
}

fn at(time: &str) -> Timestamp {
    format!("2026-05-05T{time}Z").parse().unwrap()
}

fn count() -> ShardCount {
    ShardCount::new(16).unwrap()
}

fn record() -> CronJobRecord {
    CronJobRecord {
        resource_version: ResourceVersion(RECORD_VERSION),
        ..test_record("every-minute")
    }
}

fn shard() -> ShardId {
    count().shard_of(&record().identity.uid)
}

fn shard_term(term: u64) -> ShardTerm {
    ShardTerm {
        shard: shard(),
        term: Term(term),
    }
}

fn written(cron_jobs: u64, jobs: u64) -> ResourceVersions {
    ResourceVersions {
        cron_jobs: ResourceVersion(cron_jobs),
        jobs: ResourceVersion(jobs),
    }
}

/// The watch after a list, of all shards.
fn watching(resource: WatchedResource) -> Input {
    of_resource(resource, ShardSet::EVERY, WatchStage::Watching(ResourceVersion(0)))
}

fn watch_update(shards: ShardSet, stage: WatchStage) -> Input {
    of_resource(WatchedResource::Jobs, shards, stage)
}

fn of_resource(resource: WatchedResource, shards: ShardSet, stage: WatchStage) -> Input {
    Input::WatchUpdated(Box::new(WatchUpdate {
        resource,
        scope: Scope::Cluster,
        shards,
        stage,
    }))
}

/// The answer to a successful create of the Job of 10:00.
fn created() -> Input {
    Input::JobCreateAnswered {
        cron_job: record().identity.uid.clone(),
        slot: at("10:00:00"),
        answer: CreateOutcome::Created {
            shard_labels: ShardLabels::default(),
            uid: Uid::new("uid-1"),
            resource_version: "1100".into(),
            created: at("10:00:05"),
        },
    }
}

/// The answer to a create that was not sent.
fn abandoned() -> Input {
    Input::JobCreateAnswered {
        cron_job: record().identity.uid.clone(),
        slot: at("10:00:00"),
        answer: CreateOutcome::Abandoned,
    }
}

fn job(slot: Timestamp, version: u64) -> JobRecord {
    let name = naming::job_name(&record().identity.name, slot);
    JobRecord {
        uid: Uid::new(&format!("uid-{name}")),
        namespace: "default".into(),
        name,
        resource_version: ResourceVersion(version),
        controller: Some(record().identity.uid.clone()),
        scheduled: Some(slot),
        finish: None,
        started: Some(slot),
        completed: None,
        is_created_by_cronwheel: false,
        shard_labels: ShardLabels::of(count(), Bucket::of(&record().identity.uid).shard(count())),
    }
}

impl Replica {
    /// A replica whose watches have delivered complete lists, at 10:00:05.
    fn new() -> Replica {
        let mut replica = Replica {
            shards: HeldShards::new(Some(count()), vec![Scope::Cluster], SignedDuration::from_secs(2)),
            wall: at("10:00:05"),
            boot: BootInstant::after_boot(Duration::from_secs(100)),
        };
        for input in [
            Input::list_begun(WatchedResource::CronJobs, Scope::Cluster),
            Input::list_begun(WatchedResource::Jobs, Scope::Cluster),
            Input::list_done(WatchedResource::CronJobs, Scope::Cluster),
            Input::list_done(WatchedResource::Jobs, Scope::Cluster),
            watching(WatchedResource::CronJobs),
            watching(WatchedResource::Jobs),
        ] {
            replica.shards.handle(input, replica.wall);
        }
        replica
    }

    fn now(&self) -> Clocks {
        Clocks {
            wall: self.wall,
            boot: self.boot,
        }
    }

    fn pass(&mut self, millis: u64) {
        self.wall += Duration::from_millis(millis);
        self.boot = self.boot + Duration::from_millis(millis);
        self.shards.handle_timeout(self.wall);
        let now = self.now();
        self.shards.advance_lifecycles(now);
    }

    fn command(&mut self, command: ShardCommand) {
        let now = self.now();
        self.shards.command(command, now);
    }

    /// Seals the shard within four seconds.
    fn seal(&mut self, term: u64) {
        let close_by = self.boot + Duration::from_secs(4);
        self.command(ShardCommand::Seal(SealOrder {
            shard_term: shard_term(term),
            close_by,
            has_other_taker: true,
        }));
    }

    /// Checks that the status write is in flight, and stores it.
    fn store_status(&mut self) {
        let sent = loop {
            let ordered = self.shards.poll_effect().expect("a status write");
            if let Effect::WriteStatus(write) = ordered.effect {
                assert!(write.is_urgent);
                break write.status;
            }
        };
        assert_eq!(self.reports(), [], "the status write is unanswered");
        self.watch(Input::StatusAnswered {
            cron_job: record().identity.uid.clone(),
            sent: Box::new(sent),
            answer: StatusOutcome::Stored {
                resource_version: ResourceVersion(1_101),
            },
        });
    }

    fn watch(&mut self, input: Input) {
        let now = self.now();
        self.shards.handle(input, self.wall);
        self.shards.advance_lifecycles(now);
    }

    /// The next list to make.
    fn poll_list_request(&mut self) -> Option<ListRequest> {
        let now = self.now();
        let due_at = self.shards.lifecycle.lists.due_at().unwrap_or(now.boot);
        // A shard that is taken over is listed after a delay, together with others.
        let boot = now.boot.max(due_at);
        self.shards.poll_list_request(Clocks { boot, ..now })
    }

    /// Makes the next list, with this result.
    fn list(&mut self, found: Vec<Input>) {
        self.list_through(found, written(0, 0));
    }

    /// Makes the next list, with this result and these versions. Returns whether it had to be consistent.
    fn list_through(&mut self, found: Vec<Input>, through: ResourceVersions) -> bool {
        let order = self.poll_list_request().expect("a list order");
        let now = self.now();
        for listed in found {
            self.shards.handle_listed(listed, now);
        }
        self.shards.finish_list(&through, now);
        order.is_consistent
    }

    fn reports(&mut self) -> Vec<ShardReport> {
        std::iter::from_fn(|| self.shards.poll_report()).collect()
    }

    fn creates(&mut self) -> Vec<(Term, Timestamp)> {
        let mut creates = Vec::new();
        while let Some(ordered) = self.shards.poll_effect() {
            if let Effect::CreateJob(order) = ordered.effect {
                creates.push((ordered.shard_term.term, order.slot));
            }
        }
        creates
    }

    /// Loads the shard, and hands it over with these versions to observe.
    fn hand_over(&mut self, written: ResourceVersions) {
        self.command(ShardCommand::Load(ShardSet::from_iter([shard()])));
        self.list(vec![Input::CronJobApplied(Box::new(record()))]);
        self.reports();
        self.command(ShardCommand::Lead {
            shard_term: shard_term(8),
            entry: Entry::Watch(written),
            fired_through: None,
        });
    }

    /// A replica that loaded the shard and leads it in its first term.
    fn leading() -> Replica {
        let mut replica = Replica::new();
        let lead = ShardCommand::Lead {
            shard_term: shard_term(1),
            entry: Entry::List,
            fired_through: None,
        };
        replica.command(lead);
        replica.list(vec![Input::CronJobApplied(Box::new(record()))]);
        assert_eq!(
            replica.reports(),
            [ShardReport::Synced, ShardReport::Leading(shard_term(1))]
        );
        replica
    }
}

#[test]
fn unowned_shard_is_led_after_a_list() {
    let mut replica = Replica::new();
    replica.command(ShardCommand::Lead {
        shard_term: shard_term(4),
        entry: Entry::List,
        fired_through: None,
    });
    assert_eq!(replica.reports(), [ShardReport::Synced]);
    replica.watch(Input::CronJobApplied(Box::new(record())));
    assert_eq!(replica.creates(), [], "not before the list is complete");
    replica.list(vec![Input::CronJobApplied(Box::new(record()))]);
    assert_eq!(replica.reports(), [ShardReport::Leading(shard_term(4))]);
    assert_eq!(replica.creates(), [(Term(4), at("10:00:00"))]);
}

#[test]
fn handed_over_shard_is_led_after_the_watch_shows_the_last_writes() {
    let mut replica = Replica::new();
    replica.command(ShardCommand::Load(ShardSet::from_iter([shard()])));
    replica.list(vec![Input::CronJobApplied(Box::new(record()))]);
    assert_eq!(replica.reports(), [ShardReport::Synced, ShardReport::Loaded(shard())]);
    replica.command(ShardCommand::Lead {
        shard_term: shard_term(8),
        entry: Entry::Watch(written(0, 1_020)),
        fired_through: None,
    });
    assert_eq!((replica.reports(), replica.creates()), (vec![], vec![]));
    let running = JobRecord {
        controller: Some(record().identity.uid.clone()),
        ..job(at("10:00:00"), 1_020)
    };
    replica.watch(Input::JobApplied(Box::new(running)));
    assert_eq!(replica.reports(), [ShardReport::Leading(shard_term(8))]);
    assert_eq!(replica.creates(), [], "the Job of the slot exists");
}

#[test]
fn handed_over_shard_is_led_at_once_if_its_list_contains_the_last_writes() {
    for (through, is_led) in [
        (written(1_030, 1_020), true),
        (written(1_029, 1_020), false),
        (written(1_030, 1_019), false),
    ] {
        let mut replica = Replica::new();
        replica.command(ShardCommand::Load(ShardSet::from_iter([shard()])));
        let found = vec![Input::CronJobApplied(Box::new(record()))];
        assert!(
            !replica.list_through(found, through),
            "a list to load a shard need not be consistent"
        );
        replica.reports();
        replica.command(ShardCommand::Lead {
            shard_term: shard_term(8),
            entry: Entry::Watch(written(1_030, 1_020)),
            fired_through: None,
        });
        assert_eq!(!replica.reports().is_empty(), is_led, "{through}");
    }
}

#[test]
fn a_relist_by_the_watch_voids_the_version_of_the_load() {
    for begun in [
        Input::list_begun(WatchedResource::CronJobs, Scope::Cluster),
        Input::list_begun(WatchedResource::Jobs, Scope::Cluster),
    ] {
        let mut replica = Replica::new();
        replica.command(ShardCommand::Load(ShardSet::from_iter([shard()])));
        replica.list_through(vec![], written(1_030, 1_020));
        replica.watch(begun);
        replica.watch(Input::list_done(WatchedResource::CronJobs, Scope::Cluster));
        replica.watch(Input::list_done(WatchedResource::Jobs, Scope::Cluster));
        replica.watch(watching(WatchedResource::CronJobs));
        replica.watch(watching(WatchedResource::Jobs));
        replica.reports();
        replica.command(ShardCommand::Lead {
            shard_term: shard_term(8),
            entry: Entry::Watch(written(1_030, 1_020)),
            fired_through: None,
        });
        assert_eq!(replica.reports(), []);
    }
}

#[test]
fn shard_is_listed_if_the_watch_is_too_slow() {
    let mut replica = Replica::new();
    replica.command(ShardCommand::Load(ShardSet::from_iter([shard()])));
    replica.list(vec![]);
    replica.reports();
    replica.command(ShardCommand::Lead {
        shard_term: shard_term(8),
        entry: Entry::Watch(written(0, 1_020)),
        fired_through: None,
    });
    let wakeup = replica.shards.next_lifecycle_step().unwrap();
    assert_eq!(wakeup.since(replica.boot), WATCH_PATIENCE);
    replica.pass(500);
    assert_eq!(replica.reports(), []);
    let found = vec![
        Input::CronJobApplied(Box::new(record())),
        Input::JobApplied(Box::new(job(at("10:00:00"), 1_020))),
    ];
    assert!(
        replica.list_through(found, written(0, 0)),
        "a list to lead a shard must be consistent"
    );
    assert_eq!(replica.reports(), [ShardReport::Leading(shard_term(8))]);
    assert_eq!(replica.creates(), [], "the Job of the slot exists");
}

#[test]
fn shard_is_led_if_the_watch_catches_up_during_the_list() {
    let mut replica = Replica::new();
    replica.hand_over(written(0, 1_020));
    replica.pass(500);
    assert!(replica.poll_list_request().is_some());
    replica.watch(Input::JobApplied(Box::new(job(at("10:00:00"), 1_020))));
    assert_eq!(replica.reports(), [ShardReport::Leading(shard_term(8))]);
    let now = replica.now();
    replica
        .shards
        .handle_listed(Input::CronJobApplied(Box::new(record())), now);
    replica.shards.finish_list(&written(1_030, 1_030), now);
    assert_eq!(replica.shards.sizes().jobs, 1, "objects delivered during the list stay");
    assert_eq!((replica.reports(), replica.creates()), (vec![], vec![]));
}

#[test]
fn shard_without_a_current_load_is_listed_before_it_is_led() {
    let mut cold = Replica::new();
    let lead = |term| ShardCommand::Lead {
        shard_term: shard_term(term),
        entry: Entry::Watch(written(0, 0)),
        fired_through: None,
    };
    cold.command(lead(2));
    assert_eq!(cold.reports(), [ShardReport::Synced]);
    cold.list(vec![]);
    assert_eq!(cold.reports(), [ShardReport::Leading(shard_term(2))]);
    cold.command(lead(3));
    assert_eq!(cold.reports(), [], "no report of the former term");
    cold.list(vec![]);
    assert_eq!(cold.reports(), [ShardReport::Leading(shard_term(3))]);
}

#[test]
fn a_lead_command_during_a_list_waits_for_the_next_list() {
    let mut replica = Replica::new();
    replica.command(ShardCommand::Load(ShardSet::from_iter([shard()])));
    let order = replica.poll_list_request().unwrap();
    assert_eq!(
        (order.shards, order.is_consistent),
        ([shard()].into_iter().collect(), false)
    );
    // The list began before this command.
    replica.command(ShardCommand::Lead {
        shard_term: shard_term(5),
        entry: Entry::List,
        fired_through: None,
    });
    assert_eq!(replica.poll_list_request(), None, "one list at a time");
    let now = replica.now();
    let early = Input::CronJobApplied(Box::new(record()));
    replica.shards.handle_listed(early, now);
    replica.shards.finish_list(&written(0, 0), now);
    assert_eq!(replica.shards.sizes().cron_jobs, 0);
    assert_eq!(
        replica.reports(),
        [ShardReport::Synced],
        "a list that began before the command does not count"
    );
    replica.list(vec![Input::CronJobApplied(Box::new(record()))]);
    assert!(replica.reports().contains(&ShardReport::Leading(shard_term(5))));
    assert_eq!(replica.creates(), [(Term(5), at("10:00:00"))]);
}

#[test]
fn versions_from_a_watch_count_only_for_the_shards_it_selects() {
    let mut replica = Replica::new();
    replica.watch(watch_update(
        ShardSet::EMPTY,
        WatchStage::Watching(ResourceVersion(900)),
    ));
    replica.hand_over(written(0, 1_020));
    // A Job of another shard has a later version than the required one.
    let other = JobRecord {
        controller: None,
        ..job(at("10:00:00"), 1_050)
    };
    replica.watch(Input::JobApplied(Box::new(other)));
    assert_eq!(replica.reports(), []);
    let only = [shard()].into_iter().collect();
    replica.watch(watch_update(only, WatchStage::Watching(ResourceVersion(1_000))));
    assert_eq!(
        replica.reports(),
        [],
        "the watch selects the shard and has reached version 1000"
    );
    replica.watch(Input::JobApplied(Box::new(job(at("10:00:00"), 1_020))));
    assert_eq!(replica.reports(), [ShardReport::Leading(shard_term(8))]);
    assert_eq!(replica.creates(), [], "the Job of the slot exists");
}

#[test]
fn a_relist_of_other_shards_removes_nothing() {
    let mut replica = Replica::leading();
    replica.creates();
    replica.watch(Input::JobApplied(Box::new(job(at("10:00:00"), 1_020))));
    let others: ShardSet = count().shards().filter(|other| *other != shard()).collect();
    for stage in [WatchStage::ListBegun, WatchStage::ListDone] {
        replica.watch(watch_update(others, stage));
    }
    assert_eq!(replica.shards.sizes().jobs, 1);
    for stage in [WatchStage::ListBegun, WatchStage::ListDone] {
        replica.watch(watch_update(ShardSet::all(count()), stage));
    }
    assert_eq!(
        replica.shards.sizes().jobs,
        0,
        "a list of the Job's shard without the Job removes it"
    );
}

#[test]
fn slots_through_the_seal_of_the_last_leader_are_not_counted_again() {
    for entry in [Entry::List, Entry::Watch(written(0, 0))] {
        for (fired_through, n_due) in [(None, 11), (Some(at("10:08:30")), 2)] {
            let mut replica = Replica::new();
            replica.pass(600_000);
            replica.command(ShardCommand::Load(ShardSet::from_iter([shard()])));
            replica.list(vec![Input::CronJobApplied(Box::new(record()))]);
            replica.command(ShardCommand::Lead {
                shard_term: shard_term(8),
                entry,
                fired_through,
            });
            if entry == Entry::List {
                replica.list(vec![Input::CronJobApplied(Box::new(record()))]);
            }
            assert_eq!(replica.creates(), [(Term(8), at("10:10:00"))]);
            assert_eq!(replica.shards.outcome_counts().due_instants, n_due, "{entry:?}");
        }
    }
}
