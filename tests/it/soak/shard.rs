//! A shard of CronJobs that advances from wake-up to wake-up. Its effects complete at once.

use std::{fmt, sync::Arc};

use cronwheel::{
    schedule::Zone,
    shard::{
        ConcurrencyPolicy, CreateOutcome, CronJobIdentity, CronJobRecord, CronJobSchedule, CronJobStatus,
        DeleteOutcome, Effect, EventReason, Finish, Input, JobCreate, JobCreator, JobRecord, JobTemplate, OrderAnswer,
        ResourceVersion, Scope, ShardConfig, ShardState, StatusOutcome, TroubleThresholds, Uid, WatchedResource,
        naming,
    },
};
use jiff::{SignedDuration, Timestamp};

use super::{
    calendar::{self, Days},
    mix::{self, CronJob, Rule},
    walk::{self, Walk},
    zones::{Decade, SoakZone},
};

/// The expected Events. The last two report zones in schedules and dates that never occur.
const EXPECTED_EVENTS: [EventReason; 5] = [
    EventReason::SuccessfulCreate,
    EventReason::SawCompletedJob,
    EventReason::SuccessfulDelete,
    EventReason::UnsupportedSchedule,
    EventReason::InvalidSchedule,
];

/// The maximum number of wake-ups per fire, including wake-ups that only cascade timers or rebuild the wheels.
const WAKEUPS_PER_FIRE_MAX: u64 = 3;

/// The CronJobs for the zone at a position: all that run at most once a month, and a sample of the others.
pub(super) fn cron_jobs(place: usize, zone: &SoakZone, is_full: bool) -> Vec<(&SoakZone, CronJob)> {
    let one_in = |cron_job: &CronJob| match (cron_job.n_per_year(), is_full) {
        (..=12, _) | (..=400, true) => 1,
        (..=400, false) | (..=9_000, true) => 40,
        (..=9_000, false) => 400,
        _ => usize::MAX,
    };
    let all = mix::cron_jobs(zone).into_iter().enumerate();
    let chosen = all.filter(|(row, cron_job)| (place + row + 1).is_multiple_of(one_in(cron_job)));
    chosen.map(|(_, cron_job)| (zone, cron_job)).collect()
}

/// The result of a run.
pub(super) struct Ran {
    cron_jobs: usize,
    pub(super) n_fires: u64,
    n_wakeups: u64,
    n_deleted: u64,
}

impl fmt::Display for Ran {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} CronJobs in one shard, {} Jobs started at their instants, {} of them deleted again, {} wake-ups",
            self.cron_jobs, self.n_fires, self.n_deleted, self.n_wakeups
        )
    }
}

/// Runs the decade. Compares every start with the schedule and the calendar.
pub(super) fn run(cron_jobs: &[(&SoakZone, CronJob)], decade: &Decade) -> Ran {
    let begin = Timestamp::from_second(decade.begin + 17).expect("an instant");
    let mut cluster = Cluster::listed(cron_jobs, begin);
    let ran = cluster.run_until(Timestamp::from_second(decade.end).expect("an instant"));
    let days = Days::of(decade);
    for ((zone, cron_job), starts) in cron_jobs.iter().zip(&cluster.starts) {
        let schedule = walk::parsed(cron_job);
        let fires = walk::fires(&schedule, begin.as_second(), decade.end);
        assert!(
            *starts == fires,
            "{:?} in {}: the starts of the shard differ from the activations of the schedule, first: {:?}",
            cron_job.schedule,
            zone.name,
            starts.iter().zip(&fires).find(|(start, fire)| start != fire)
        );
        let expected = calendar::instants(cron_job, zone, &days, begin.as_second(), decade.end);
        let walk = Walk {
            from: begin.as_second(),
            until: decade.end,
            fires: starts,
        };
        walk::check(cron_job, zone, &walk, &walk::differences(starts, &expected));
    }
    ran
}

/// The shard, with a minimal cluster.
struct Cluster {
    shard: ShardState,
    now: Timestamp,
    /// The starts of each CronJob, by the number in its name.
    starts: Vec<Vec<i64>>,
    n_deleted: u64,
    version: u64,
}

impl Cluster {
    fn listed(cron_jobs: &[(&SoakZone, CronJob)], begin: Timestamp) -> Cluster {
        let config = ShardConfig {
            clock_skew_max: SignedDuration::from_secs(2),
            scopes: vec![Scope::Cluster],
        };
        let mut cluster = Cluster {
            shard: ShardState::new(config, begin),
            now: begin,
            starts: vec![Vec::new(); cron_jobs.len()],
            n_deleted: 0,
            version: 1,
        };
        cluster.shard.lead(begin);
        cluster.handle(Input::list_begun(WatchedResource::CronJobs, Scope::Cluster));
        for (number, (_, cron_job)) in cron_jobs.iter().enumerate() {
            cluster.handle(Input::CronJobApplied(Box::new(record(number, cron_job, begin))));
        }
        cluster.handle(Input::list_done(WatchedResource::CronJobs, Scope::Cluster));
        cluster.handle(Input::list_begun(WatchedResource::Jobs, Scope::Cluster));
        cluster.handle(Input::list_done(WatchedResource::Jobs, Scope::Cluster));
        cluster
    }

    fn answer(&mut self, answer: OrderAnswer) {
        self.shard.handle_answer(answer, self.now);
    }

    fn handle(&mut self, input: Input) {
        self.shard.handle(input, self.now);
    }

    fn run_until(&mut self, end: Timestamp) -> Ran {
        let mut n_wakeups = 0;
        let mut n_fires = 0;
        self.perform(&mut n_fires);
        while let Some(wakeup) = self.shard.next_wakeup().filter(|wakeup| *wakeup <= end) {
            assert!(wakeup >= self.now, "woken for {wakeup} at {}", self.now);
            self.now = wakeup;
            n_wakeups += 1;
            self.shard.handle_timeout(self.now);
            self.perform(&mut n_fires);
            assert!(
                n_wakeups <= 10_000 + WAKEUPS_PER_FIRE_MAX * n_fires,
                "{n_wakeups} wake-ups for {n_fires} Jobs until {}",
                self.now
            );
        }
        let outcome_counts = self.shard.outcome_counts();
        assert_eq!(outcome_counts.due_instants, n_fires, "{outcome_counts:?}");
        assert_eq!(outcome_counts.open_instants, 0, "{outcome_counts:?}");
        Ran {
            cron_jobs: self.starts.len(),
            n_fires,
            n_wakeups,
            n_deleted: self.n_deleted,
        }
    }

    fn perform(&mut self, n_fires: &mut u64) {
        while let Some(effect) = self.shard.poll_effect() {
            self.version += 1;
            match effect {
                Effect::CreateJob(order) => {
                    *n_fires += 1;
                    self.start(&order);
                }
                Effect::DeleteJob(delete) => {
                    self.n_deleted += 1;
                    let (job, cron_job) = (delete.uid.clone(), delete.cron_job.uid.clone());
                    let answer = DeleteOutcome::Deleted;
                    self.answer(OrderAnswer::Delete { delete, answer });
                    self.handle(Input::JobDeleted { job, cron_job });
                }
                Effect::WriteStatus(write) => {
                    let answer = StatusOutcome::Stored {
                        resource_version: ResourceVersion(self.version),
                    };
                    self.answer(OrderAnswer::Status {
                        cron_job: write.cron_job.uid.clone(),
                        sent: Box::new(write.status),
                        answer,
                    });
                }
                Effect::EmitEvent(event) => {
                    assert!(EXPECTED_EVENTS.contains(&event.reason), "{event:?} at {}", self.now);
                }
                Effect::LookUpJob(look_up) => panic!("{look_up:?}"),
                Effect::Withdraw(withdrawal) => panic!("{withdrawal:?}"),
            }
        }
    }

    /// Creates the Job and completes it at once.
    fn start(&mut self, order: &JobCreate) {
        assert_eq!(order.slot, self.now, "{order:?} is not on time");
        let number: usize = order.cron_job.name.parse().expect("a number");
        self.starts[number].push(order.slot.as_second());
        let uid = Uid::new(&order.name);
        let version = ResourceVersion(self.version);
        self.answer(OrderAnswer::Create {
            cron_job: order.cron_job.uid.clone(),
            slot: order.slot,
            answer: CreateOutcome::Created {
                uid: uid.clone(),
                resource_version: version.to_string().into(),
                created: self.now,
            },
        });
        self.handle(Input::JobApplied(Box::new(JobRecord {
            uid,
            namespace: order.cron_job.namespace.clone(),
            name: naming::job_name(&order.cron_job.name, order.slot),
            resource_version: version,
            controller: Some(order.cron_job.uid.clone()),
            scheduled: Some(order.slot),
            finish: Some(Finish::Complete),
            started: Some(self.now),
            completed: Some(self.now),
            creator: JobCreator::Unknown,
            run_token: None,
        })));
    }
}

fn record(number: usize, cron_job: &CronJob, created: Timestamp) -> CronJobRecord {
    let is_slow = matches!(cron_job.rule, Rule::Every(_));
    CronJobRecord {
        identity: Arc::new(CronJobIdentity {
            namespace: "default".into(),
            name: number.to_string().into(),
            uid: Uid::new(&format!("uid-{number}")),
        }),
        resource_version: ResourceVersion(1),
        created,
        is_deleting: false,
        has_status_of_other: false,
        schedule: CronJobSchedule::new(&cron_job.schedule, cron_job.time_zone, &Zone::utc()),
        starting_deadline_seconds: number.is_multiple_of(3).then_some(60),
        concurrency_policy: match number % 3 {
            _ if is_slow => ConcurrencyPolicy::Replace,
            0 => ConcurrencyPolicy::Forbid,
            _ => ConcurrencyPolicy::Allow,
        },
        is_suspended: false,
        successful_jobs_history_limit: Some(3),
        failed_jobs_history_limit: Some(1),
        template: Arc::new(JobTemplate {
            body: "".into(),
            splice_offsets: [0; 3],
            pod_splice_offset: None,
            ttl_seconds_after_finished: None,
            had_reserved_annotations: false,
        }),
        retained_metadata: Arc::new("".into()),
        trouble_thresholds: TroubleThresholds::default(),
        owner: None,
        status: CronJobStatus::default(),
    }
}
