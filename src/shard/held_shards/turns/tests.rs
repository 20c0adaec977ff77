//! Tests of floods of refused creates: the number of requests, and the delay of the Jobs after the cause is removed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::SignedDuration;

use super::*;
use crate::shard::{
    CreateOutcome, CronJobIdentity, CronJobRecord, CronJobSchedule, Effect, Input, JobCreate, Scope, ShardCount,
    ShardLabels, ShardTerm, Term, WatchedResource, state::test_record,
};

const SHARDS: u64 = 16;

/// The time from a create to its answer.
const LATENCY: SignedDuration = SignedDuration::from_millis(10);

fn at(time: &str) -> Timestamp {
    format!("2026-05-05T{time}Z").parse().unwrap()
}

/// Whether an API server refuses a create at an instant.
type Refuses = fn(&JobCreate, Timestamp) -> bool;

/// One replica that leads all shards, and an API server.
struct Flood {
    shards: HeldShards,
    now: Timestamp,
    refuses: Refuses,
    answers: BTreeMap<(Timestamp, usize), Input>,
    /// The instant and the CronJob of each create.
    tries: Vec<(Timestamp, Box<str>)>,
    /// The instant and the name of each Job.
    jobs: Vec<(Timestamp, Box<str>)>,
}

fn minutely(namespace: &str, name: &str) -> CronJobRecord {
    CronJobRecord {
        identity: Arc::new(CronJobIdentity {
            namespace: namespace.into(),
            name: name.into(),
            uid: Uid::new(&format!("uid-{namespace}-{name}")),
        }),
        ..test_record(name)
    }
}

/// CronJobs that run every minute, this number in each of this number of namespaces.
fn many(n_namespaces: usize, n_each: usize) -> Vec<CronJobRecord> {
    let of_each = |number| (0..n_each).map(move |of| minutely(&format!("ns-{number}"), &format!("job-{number}-{of}")));
    (0..n_namespaces).flat_map(of_each).collect()
}

fn by_schedule(schedule: &str, record: CronJobRecord) -> CronJobRecord {
    CronJobRecord {
        schedule: CronJobSchedule::new(schedule, None, &record.schedule.default_zone),
        ..record
    }
}

impl Flood {
    /// A replica that has listed these CronJobs at 09:59:30.
    fn new(records: Vec<CronJobRecord>, refuses: Refuses) -> Flood {
        let now = at("09:59:30");
        let count = ShardCount::new(SHARDS).unwrap();
        let mut shards = HeldShards::new(Some(count), vec![Scope::Cluster], SignedDuration::from_secs(2));
        for shard in count.shards() {
            let term = Term(1);
            shards.stand_by(shard, now);
            shards.lead(ShardTerm { shard, term }, now);
            shards.update(shard, |held| held.own_list = None);
        }
        for kind in [WatchedResource::CronJobs, WatchedResource::Jobs] {
            shards.handle(Input::list_begun(kind, Scope::Cluster), now);
        }
        for record in records {
            shards.handle(Input::CronJobApplied(Box::new(record)), now);
        }
        for kind in [WatchedResource::CronJobs, WatchedResource::Jobs] {
            shards.handle(Input::list_done(kind, Scope::Cluster), now);
        }
        Flood {
            shards,
            now,
            refuses,
            answers: BTreeMap::new(),
            tries: Vec::new(),
            jobs: Vec::new(),
        }
    }

    fn run_until(&mut self, time: &str) {
        let end = at(time);
        loop {
            while let Some(ordered) = self.shards.poll_effect() {
                if let Effect::CreateJob(order) = ordered.effect {
                    self.answer(&order);
                }
            }
            let answer_at = self.answers.keys().next().map(|(at, _)| *at);
            let wakeup = self.shards.next_wakeup();
            let Some(next) = answer_at.into_iter().chain(wakeup).min().filter(|next| *next <= end) else {
                break;
            };
            self.now = self.now.max(next);
            match self.answers.first_entry() {
                Some(answer) if answer.key().0 <= self.now => {
                    let input = answer.remove();
                    self.shards.handle(input, self.now);
                }
                Some(_) | None => self.shards.handle_timeout(self.now),
            }
        }
        self.now = end;
    }

    fn answer(&mut self, order: &JobCreate) {
        self.tries.push((self.now, order.cron_job.name.clone()));
        let answer = if (self.refuses)(order, self.now) {
            CreateOutcome::Failed {
                message: "exceeded quota".to_owned(),
                status: Some(403),
                retry_after: None,
            }
        } else {
            self.jobs.push((self.now, order.name.clone()));
            CreateOutcome::Created {
                uid: Uid::new(&order.name),
                resource_version: "20".into(),
                created: self.now,
                shard_labels: self.labels(order),
            }
        };
        let input = Input::JobCreateAnswered {
            cron_job: order.cron_job.uid.clone(),
            slot: order.slot,
            answer,
        };
        self.answers.insert((self.now + LATENCY, self.tries.len()), input);
    }

    fn labels(&self, order: &JobCreate) -> ShardLabels {
        let count = ShardCount::new(SHARDS).unwrap();
        ShardLabels::of(count, self.shards.shard_of(&order.cron_job.uid))
    }

    fn n_tries_between(&self, from: &str, until: &str) -> usize {
        let is_within = |(tried, _): &&(Timestamp, Box<str>)| (at(from)..at(until)).contains(tried);
        self.tries.iter().filter(is_within).count()
    }

    /// The instants of the creates of a CronJob.
    fn tries_of(&self, name: &str) -> Vec<Timestamp> {
        let tries = self.tries.iter().filter(|(_, of)| **of == *name);
        tries.map(|(tried, _)| *tried).collect()
    }
}

#[test]
fn ten_namespaces_where_everything_is_refused_cost_ten_requests_a_second() {
    let mut flood = Flood::new(many(10, 1_000), |_, _| true);
    flood.run_until("10:05:00");
    let n_cron_jobs = flood.tries.iter().map(|(_, name)| name).collect::<BTreeSet<_>>().len();
    assert_eq!(n_cron_jobs, 10_000, "a CronJob that was not refused is tried");
    for (from, until) in [("10:01:00", "10:02:00"), ("10:04:00", "10:05:00")] {
        let n_tries = flood.n_tries_between(from, until);
        assert!((500..=700).contains(&n_tries), "{n_tries} from {from} to {until}");
    }
    let figures = flood.shards.refused_figures();
    assert_eq!((figures.n_cron_jobs, figures.n_in_turns), (10_000, 10));
}

#[test]
fn all_jobs_start_within_seconds_after_the_cause_is_gone() {
    let mut flood = Flood::new(many(10, 1_000), |_, now| now < at("10:03:20.5"));
    flood.run_until("10:03:25.5");
    let n_started = flood.jobs.iter().map(|(_, name)| name).collect::<BTreeSet<_>>().len();
    assert_eq!(n_started, 10_000);
    assert_eq!(flood.shards.refused_figures(), RefusedFigures::default());
    flood.run_until("10:04:01");
    assert_eq!(
        flood.n_tries_between("10:04:00", "10:04:00.001"),
        10_000,
        "the next slot is on time"
    );
}

#[test]
fn with_one_cron_job_in_each_namespace_each_slot_costs_one_request() {
    let mut flood = Flood::new(many(1_000, 1), |_, _| true);
    flood.run_until("10:05:00");
    let n_tries = flood.n_tries_between("10:02:00", "10:05:00");
    assert_eq!(n_tries, 3_000, "in three slots");
    assert_eq!(flood.n_tries_between("10:04:00", "10:04:00.001"), 1_000, "at the slot");
}

#[test]
fn a_cron_job_that_was_not_refused_is_tried_at_its_slot() {
    let mut records = many(1, 200);
    records.push(by_schedule("3 * * * *", minutely("ns-0", "hourly")));
    let mut flood = Flood::new(records, |order, _| &*order.cron_job.name != "hourly");
    flood.run_until("10:04:00");
    assert_eq!(flood.tries_of("hourly"), [at("10:03:00")]);
    assert_eq!(flood.jobs.len(), 1);
}

#[test]
fn a_create_succeeds_within_two_minutes_although_others_stay_refused() {
    let refuses: Refuses = |order, now| &*order.cron_job.name != "job-0-77" || now < at("10:02:00");
    let mut flood = Flood::new(many(1, 100), refuses);
    flood.run_until("10:04:00");
    let first = flood.jobs.first().map(|(created, _)| *created);
    assert!(first.is_some_and(|first| first < at("10:03:50")), "{first:?}");
    assert!(flood.n_tries_between("10:01:00", "10:02:00") < 70);
}

#[test]
fn with_some_successes_each_refused_create_is_tried_at_each_slot() {
    let refuses: Refuses = |order, _| order.cron_job.name.ends_with(['1', '3', '5', '7', '9']);
    let mut flood = Flood::new(many(1, 200), refuses);
    flood.run_until("10:05:00");
    let tries = flood.tries_of("job-0-77");
    for slot in ["10:02:00", "10:03:00", "10:04:00"] {
        assert!(tries.contains(&at(slot)), "{slot}: {tries:?}");
    }
    assert!(flood.n_tries_between("10:03:00", "10:05:00") <= 2 * 200 + 2 * 25);
}

#[test]
fn refused_creates_of_every_second_are_tried_every_nine_seconds() {
    let mut flood = Flood::new(vec![by_schedule("@every 1s", minutely("a", "often"))], |_, _| true);
    flood.run_until("10:05:00");
    let n_tries = flood.n_tries_between("10:02:00", "10:05:00");
    assert!((16..=21).contains(&n_tries), "{n_tries} in three minutes");
}

#[test]
fn back_off_does_not_starve_slots_with_a_short_deadline() {
    let with_deadline = CronJobRecord {
        starting_deadline_seconds: Some(1),
        ..by_schedule("@every 10s", minutely("a", "short"))
    };
    let mut flood = Flood::new(vec![with_deadline], |_, _| true);
    flood.run_until("10:05:00");
    for (from, until) in [("10:01:00", "10:02:00"), ("10:04:00", "10:05:00")] {
        let n_tries = flood.n_tries_between(from, until);
        assert!((6..=12).contains(&n_tries), "{n_tries} from {from}");
    }
}
