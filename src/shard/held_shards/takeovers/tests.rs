//! Tests of commands: a shard is led only with a complete view, and is reported as sealed once.

mod sealing;
mod terms;

use super::*;
use crate::shard::{
    CreateOutcome, Effect, FiredThrough, Input, JobCreator, OrderAnswer, ResourceVersion, Scope, SealOrder, ShardCount,
    StatusOutcome, TermedAnswer, Uid,
    input::{WatchStage, WatchedResource},
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

/// The watch after a list, from this version.
fn watching(resource: WatchedResource, version: u64) -> Input {
    of_resource(resource, WatchStage::Watching(ResourceVersion(version)))
}

/// A bookmark of a watch.
fn reached(resource: WatchedResource, version: u64) -> Input {
    of_resource(resource, WatchStage::Reached(ResourceVersion(version)))
}

fn of_resource(resource: WatchedResource, stage: WatchStage) -> Input {
    Input::watch_updated(resource, Scope::Cluster, stage)
}

/// The answer to a successful create of the Job of 10:00.
fn created() -> OrderAnswer {
    OrderAnswer::Create {
        cron_job: record().identity.uid.clone(),
        slot: at("10:00:00"),
        answer: CreateOutcome::Created {
            uid: Uid::new("uid-1"),
            resource_version: "1100".into(),
            created: at("10:00:05"),
        },
    }
}

/// The answer to a create that was not sent.
fn abandoned() -> OrderAnswer {
    OrderAnswer::Create {
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
        creator: JobCreator::Unknown,
        run_token: None,
    }
}

impl Replica {
    /// A replica whose watches have delivered complete lists, at 10:00:05.
    fn new() -> Replica {
        let mut replica = Replica::empty();
        replica.list();
        replica
    }

    /// A replica whose watches have delivered nothing.
    fn empty() -> Replica {
        let (scopes, wall) = (vec![Scope::Cluster], at("10:00:05"));
        Replica {
            shards: HeldShards::new(count(), scopes, SignedDuration::from_secs(2), wall),
            wall,
            boot: BootInstant::after_boot(Duration::from_secs(100)),
        }
    }

    /// Delivers empty lists, and watches from version 0.
    fn list(&mut self) {
        for input in [
            Input::list_begun(WatchedResource::CronJobs, Scope::Cluster),
            Input::list_begun(WatchedResource::Jobs, Scope::Cluster),
            Input::list_done(WatchedResource::CronJobs, Scope::Cluster),
            Input::list_done(WatchedResource::Jobs, Scope::Cluster),
            watching(WatchedResource::CronJobs, 0),
            watching(WatchedResource::Jobs, 0),
        ] {
            self.watch(input);
        }
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
        let answer = OrderAnswer::Status {
            cron_job: record().identity.uid.clone(),
            sent: Box::new(sent),
            answer: StatusOutcome::Stored {
                resource_version: ResourceVersion(1_101),
            },
        };
        self.answer(1, answer);
    }

    /// Handles the answer to an order of this term.
    fn answer(&mut self, term: u64, answer: OrderAnswer) {
        let shard_term = shard_term(term);
        self.shards
            .handle_answer(TermedAnswer { shard_term, answer }, self.wall);
        let now = self.now();
        self.shards.advance_lifecycles(now);
    }

    fn watch(&mut self, input: Input) {
        let now = self.now();
        self.shards.handle(input, self.wall);
        self.shards.advance_lifecycles(now);
    }

    /// Answers the request for the current versions.
    fn answer_versions(&mut self, current: ResourceVersions) {
        let request = self
            .shards
            .poll_version_request()
            .expect("a request for the current versions");
        assert_eq!(request.reached.len(), 1);
        let now = self.now();
        self.shards.take_current_versions(Arc::new([current]), now);
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

    /// Orders to lead the shard in a term.
    fn lead(&mut self, term: u64, entry: Entry) {
        self.command(ShardCommand::Lead {
            shard_term: shard_term(term),
            entry,
            fired_through: None,
        });
    }

    /// The resources of the watches that must list again.
    fn relists(&mut self) -> Vec<WatchedResource> {
        std::iter::from_fn(|| self.shards.poll_relist())
            .map(|(_, resource)| resource)
            .collect()
    }

    /// A replica that knows the CronJob and leads its shard in its first term.
    fn leading() -> Replica {
        let mut replica = Replica::new();
        replica.watch(Input::CronJobApplied(Box::new(record())));
        replica.lead(1, Entry::Current);
        replica.answer_versions(written(0, 0));
        assert_eq!(
            replica.reports(),
            [ShardReport::Synced, ShardReport::Leading(shard_term(1))]
        );
        replica
    }
}

const WATCHES: [WatchedResource; 2] = [WatchedResource::CronJobs, WatchedResource::Jobs];

#[test]
fn shard_without_a_leader_is_led_when_both_watches_have_reached_the_current_versions() {
    let mut replica = Replica::new();
    replica.watch(Input::CronJobApplied(Box::new(record())));
    replica.lead(4, Entry::Current);
    assert_eq!(replica.reports(), [ShardReport::Synced]);
    replica.answer_versions(written(1_010, 1_020));
    assert_eq!((replica.reports(), replica.creates()), (vec![], vec![]));
    replica.watch(reached(WatchedResource::CronJobs, 1_010));
    assert_eq!(replica.reports(), [], "the Jobs are behind");
    replica.watch(reached(WatchedResource::Jobs, 1_019));
    assert_eq!(replica.reports(), [], "the Jobs are behind");
    replica.watch(Input::JobApplied(Box::new(job(at("10:00:00"), 1_020))));
    assert_eq!(replica.reports(), [ShardReport::Leading(shard_term(4))]);
    assert_eq!(replica.creates(), [], "the Job of the slot exists");
    assert_eq!(replica.relists(), []);
}

#[test]
fn a_second_watch_proves_that_a_quiet_watch_is_current() {
    for (since, is_led) in [(1_000, true), (999, true), (1_001, false)] {
        let mut replica = Replica::new();
        replica.watch(Input::CronJobApplied(Box::new(record())));
        replica.watch(reached(WatchedResource::Jobs, 1_030));
        replica.lead(4, Entry::Current);
        replica.answer_versions(written(1_020, 1_020));
        replica.reports();
        let stage = WatchStage::Unchanged {
            since: ResourceVersion(since),
            through: ResourceVersion(1_025),
        };
        replica.watch(of_resource(WatchedResource::CronJobs, stage));
        assert_eq!(!replica.reports().is_empty(), is_led, "since {since}");
    }
}

#[test]
fn one_request_serves_all_shards_that_were_taken_before_it() {
    let mut replica = Replica::new();
    let lead = |shard| ShardCommand::Lead {
        shard_term: ShardTerm {
            shard: ShardId(shard),
            term: Term(1),
        },
        entry: Entry::Current,
        fired_through: None,
    };
    replica.command(lead(0));
    replica.command(lead(1));
    assert!(replica.shards.poll_version_request().is_some());
    assert_eq!(replica.shards.poll_version_request(), None);
    // This shard was taken after the request was sent.
    replica.command(lead(2));
    assert_eq!(replica.shards.poll_version_request(), None, "one request at a time");
    let now = replica.now();
    replica.shards.take_current_versions(Arc::new([written(0, 0)]), now);
    let n_led = |replica: &mut Replica| {
        let reports = replica.reports();
        reports
            .iter()
            .filter(|report| matches!(report, ShardReport::Leading(_)))
            .count()
    };
    assert_eq!(n_led(&mut replica), 2);
    replica.answer_versions(written(0, 0));
    assert_eq!(n_led(&mut replica), 1);
}

#[test]
fn a_watch_that_proves_nothing_in_four_seconds_lists_again() {
    let mut replica = Replica::new();
    replica.lead(4, Entry::Current);
    replica.answer_versions(written(0, 1_020));
    replica.pass(3_999);
    assert_eq!(replica.relists(), []);
    replica.pass(1);
    assert_eq!(
        replica.relists(),
        [WatchedResource::Jobs],
        "the watch of CronJobs is current"
    );
    replica.pass(9_999);
    assert_eq!(replica.relists(), []);
    replica.reports();
    replica.watch(Input::list_begun(WatchedResource::Jobs, Scope::Cluster));
    replica.pass(60_000);
    assert_eq!(replica.relists(), [], "it lists at present");
    replica.watch(Input::list_done(WatchedResource::Jobs, Scope::Cluster));
    assert_eq!(replica.reports(), [], "its version is not known");
    replica.watch(watching(WatchedResource::Jobs, 1_021));
    assert_eq!(replica.reports(), [ShardReport::Leading(shard_term(4))]);
}

/// An API server that restarts refuses everything until it has read its RBAC rules.
#[test]
fn a_watch_that_stays_refused_delays_a_takeover_by_half_a_minute() {
    let mut replica = Replica::new();
    replica.lead(4, Entry::Current);
    replica.answer_versions(written(0, 1_020));
    replica.watch(of_resource(WatchedResource::Jobs, WatchStage::Interrupted));
    replica.watch(of_resource(WatchedResource::Jobs, WatchStage::NotPermitted));
    replica.reports();
    for _ in 0..25 {
        replica.pass(1_000);
    }
    assert_eq!(replica.reports(), []);
    for _ in 0..15 {
        replica.pass(1_000);
    }
    assert_eq!(replica.reports(), [ShardReport::Leading(shard_term(4))]);
}

#[test]
fn handed_over_shard_is_led_once_the_watches_show_the_last_writes() {
    for (known, is_led) in [
        (written(1_030, 1_020), true),
        (written(1_029, 1_020), false),
        (written(1_030, 1_019), false),
    ] {
        let mut replica = Replica::new();
        replica.watch(Input::CronJobApplied(Box::new(record())));
        replica.watch(reached(WatchedResource::CronJobs, known.cron_jobs.0));
        replica.watch(Input::JobApplied(Box::new(job(at("10:00:00"), known.jobs.0))));
        replica.reports();
        replica.lead(8, Entry::Watch(written(1_030, 1_020)));
        assert_eq!(!replica.reports().is_empty(), is_led, "{known}");
        assert_eq!(replica.shards.poll_version_request(), None);
        for resource in WATCHES {
            replica.watch(reached(resource, 1_030));
        }
        assert_eq!(replica.reports().is_empty(), is_led, "{known}");
        assert_eq!(replica.creates(), [], "the Job of the slot exists");
    }
}

#[test]
fn the_current_versions_count_if_the_watches_do_not_show_the_last_writes_in_half_a_second() {
    let mut replica = Replica::new();
    replica.lead(8, Entry::Watch(written(1_010, 1_020)));
    let wakeup = replica.shards.next_lifecycle_step().unwrap();
    assert_eq!(wakeup.since(replica.boot), DELIVERY_PATIENCE);
    replica.pass(499);
    assert_eq!(replica.shards.poll_version_request(), None);
    replica.pass(1);
    replica.answer_versions(written(1_005, 1_000));
    replica.pass(3_999);
    assert_eq!(
        (replica.relists(), replica.reports()),
        (vec![], vec![ShardReport::Synced])
    );
    replica.pass(1);
    assert_eq!(replica.relists(), WATCHES, "the watches are behind");
}

/// Versions that exist nowhere, for example after an edit of the Lease, keep no shard without a leader.
#[test]
fn shard_whose_lease_names_impossible_versions_is_led_when_the_watches_are_current() {
    let mut replica = Replica::new();
    replica.lead(8, Entry::Watch(written(u64::MAX, u64::MAX)));
    replica.pass(500);
    replica.answer_versions(written(1_005, 1_004));
    for resource in WATCHES {
        replica.watch(reached(resource, 1_005));
    }
    assert_eq!(
        replica.reports(),
        [ShardReport::Synced, ShardReport::Leading(shard_term(8))]
    );
}

#[test]
fn versions_of_a_watch_do_not_count_while_it_lists() {
    for resource in WATCHES {
        let mut replica = Replica::new();
        for watch in WATCHES {
            replica.watch(reached(watch, 1_030));
        }
        replica.watch(Input::list_begun(resource, Scope::Cluster));
        replica.lead(8, Entry::Watch(written(1_010, 1_020)));
        assert_eq!(replica.reports(), [ShardReport::Synced]);
        replica.watch(reached(resource, 1_040));
        replica.watch(Input::list_done(resource, Scope::Cluster));
        assert_eq!(replica.reports(), []);
        replica.watch(watching(resource, 1_041));
        assert_eq!(replica.reports(), [ShardReport::Leading(shard_term(8))]);
    }
}

#[test]
fn nothing_is_led_before_the_watches_have_listed() {
    let mut replica = Replica::empty();
    replica.lead(2, Entry::Watch(written(0, 0)));
    replica.pass(10_000);
    assert_eq!((replica.reports(), replica.relists()), (vec![], vec![]));
    assert_eq!(replica.shards.next_lifecycle_step(), None, "it waits for the lists");
    replica.list();
    assert_eq!(
        replica.reports(),
        [ShardReport::Synced, ShardReport::Leading(shard_term(2))]
    );
}

#[test]
fn shard_of_a_former_term_is_led_anew() {
    let mut replica = Replica::leading();
    assert_eq!(replica.creates(), [(Term(1), at("10:00:00"))]);
    // Another replica led the shard meanwhile, and the create of this one is not answered.
    replica.lead(3, Entry::Current);
    assert_eq!(
        replica.creates(),
        [],
        "the shard is on standby until its view is complete"
    );
    replica.answer_versions(written(0, 0));
    assert_eq!(replica.reports(), [ShardReport::Leading(shard_term(3))]);
    assert_eq!(replica.creates(), [(Term(3), at("10:00:00"))]);
    let counts = replica.shards.outcome_counts();
    assert_eq!((counts.due_instants, counts.open_instants), (2, 1));
}

#[test]
fn a_relist_removes_what_it_does_not_contain() {
    let mut replica = Replica::leading();
    replica.creates();
    replica.watch(Input::JobApplied(Box::new(job(at("10:00:00"), 1_020))));
    assert_eq!(replica.shards.sizes().jobs, 1);
    replica.watch(Input::list_begun(WatchedResource::Jobs, Scope::Cluster));
    replica.watch(Input::list_done(WatchedResource::Jobs, Scope::Cluster));
    assert_eq!(replica.shards.sizes().jobs, 0);
}

#[test]
fn slots_through_the_seal_of_the_last_leader_are_not_counted_again() {
    for entry in [Entry::Current, Entry::Watch(written(0, 0))] {
        let cases = [
            (None, 11),
            (Some(FiredThrough::Seal(at("10:08:30"))), 2),
            // The slot of 10:08 may have been open when the leader ended.
            (Some(FiredThrough::Renewal(at("10:08:30"))), 3),
            // No slot was due between the cursor and the last renewal.
            (Some(FiredThrough::Renewal(at("10:00:30"))), 11),
        ];
        for (fired_through, n_due) in cases {
            let mut replica = Replica::new();
            replica.watch(Input::CronJobApplied(Box::new(record())));
            replica.pass(600_000);
            replica.command(ShardCommand::Lead {
                shard_term: shard_term(8),
                entry,
                fired_through,
            });
            if entry == Entry::Current {
                replica.answer_versions(written(0, 0));
            }
            assert_eq!(replica.creates(), [(Term(8), at("10:10:00"))]);
            assert_eq!(replica.shards.outcome_counts().due_instants, n_due, "{entry:?}");
        }
    }
}
