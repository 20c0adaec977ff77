//! A whole run without I/O, with 16 shards and with the 256 of an installation: the instant, the create, its answer, the
//! Job's events, the status, the delete of an old Job, and after each of them what an iteration of the shard task
//! reads.
//!
//! Expected: both take the same time, because an iteration touches only the shards that its inputs concern. Figures are
//! for one core. `--test` runs a minute.

#![expect(clippy::print_stdout, reason = "a bench prints its table")]
#![expect(clippy::disallowed_methods, reason = "a bench measures time")]
#![expect(clippy::unwrap_used, reason = "a bench")]

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use cronwheel::{
    kube_api::Decoder,
    schedule::Zone,
    shard::{
        BootInstant, Clocks, CreateOutcome, Effect, Entry, Finish, HeldShards, Input, JobCreate, JobCreator, JobRecord,
        OrderAnswer, ResourceVersion, ResourceVersions, Scope, ShardCommand, ShardCount, ShardTerm, StatusOutcome,
        Term, TermedAnswer, TermedEffect, Uid, WatchedResource,
    },
};
use jiff::{SignedDuration, Timestamp};

/// The allocator of the release binary.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const N_CRON_JOBS: u32 = 1_000;

/// The variants take turns, so that both meet the same load of the machine.
const N_ROUNDS: usize = 5;

fn main() {
    let is_smoke_test = std::env::args().any(|argument| argument == "--test");
    let (n_minutes, n_rounds) = if is_smoke_test { (1, 1) } else { (30, N_ROUNDS) };
    let mut rounds = [Vec::new(), Vec::new()];
    for _ in 0..n_rounds {
        rounds[0].push(Replica::leading_all(ShardCount::MIN).run(n_minutes));
        rounds[1].push(Replica::leading_all(ShardCount::default()).run(n_minutes));
    }
    let [few, all] = rounds.map(|mut durations| {
        durations.sort_unstable();
        durations[n_rounds / 2].as_secs_f64() * 1e9 / f64::from(N_CRON_JOBS * n_minutes)
    });
    println!("nanoseconds for each run of {N_CRON_JOBS} minutely CronJobs, median of {n_rounds}");
    println!("16 shards {few:.0}, 256 shards {all:.0}: ratio {:.2}", all / few);
}

struct Replica {
    shards: HeldShards,
    now: Clocks,
    /// The Jobs that the API server has created and not ended yet.
    running: Vec<JobRecord>,
    n_created: u64,
}

impl Replica {
    fn leading_all(count: ShardCount) -> Replica {
        let now = start();
        let mut replica = Replica::listed(HeldShards::new(count, vec![Scope::Cluster], skew_max(), now.wall));
        for shard in count.shards() {
            let command = ShardCommand::Lead {
                shard_term: ShardTerm { shard, term: Term(1) },
                entry: Entry::Watch(ResourceVersions::default()),
                fired_through: None,
            };
            replica.shards.command(command, now);
        }
        replica
    }

    fn listed(mut shards: HeldShards) -> Replica {
        let now = start();
        for kind in [WatchedResource::CronJobs, WatchedResource::Jobs] {
            shards.handle(Input::list_begun(kind, Scope::Cluster), now.wall);
        }
        for number in 0..N_CRON_JOBS {
            shards.handle(cron_job(number), now.wall);
        }
        for kind in [WatchedResource::CronJobs, WatchedResource::Jobs] {
            shards.handle(Input::list_done(kind, Scope::Cluster), now.wall);
        }
        Replica {
            shards,
            now,
            running: Vec::new(),
            n_created: 0,
        }
    }

    /// Runs through the next minutes. Returns the time that this took.
    fn run(mut self, n_minutes: u32) -> Duration {
        self.iterate();
        let begun = Instant::now();
        for _ in 0..n_minutes {
            self.pass(30);
            self.shards.handle_timeout(self.now.wall);
            self.iterate();
            self.pass(30);
            for mut job in std::mem::take(&mut self.running) {
                job.finish = Some(Finish::Complete);
                job.completed = Some(self.now.wall);
                job.resource_version.0 += 1;
                self.shards.handle(Input::JobModified(Box::new(job)), self.now.wall);
                self.iterate();
            }
        }
        let duration = begun.elapsed();
        assert_eq!(
            self.n_created,
            u64::from(N_CRON_JOBS * n_minutes),
            "each slot has its Job"
        );
        let counts = self.shards.outcome_counts();
        assert_eq!((counts.due_instants, counts.open_instants), (self.n_created, 0));
        duration
    }

    fn pass(&mut self, seconds: u64) {
        self.now.wall += Duration::from_secs(seconds);
        self.now.boot = self.now.boot + Duration::from_secs(seconds);
    }

    /// What the shard task does after each input: performs the effects, and reads the next wake-up and the figures.
    fn iterate(&mut self) {
        while let Some(TermedEffect { shard_term, effect }) = self.shards.poll_effect() {
            let answer = match effect {
                Effect::CreateJob(order) => Some(self.create(&order)),
                Effect::WriteStatus(write) => Some(OrderAnswer::Status {
                    cron_job: write.cron_job.uid.clone(),
                    sent: Box::new(write.status),
                    answer: StatusOutcome::Stored {
                        resource_version: ResourceVersion(write.resource_version.0 + 1),
                    },
                }),
                Effect::DeleteJob(delete) => {
                    let (job, cron_job) = (delete.uid.clone(), delete.cron_job.uid.clone());
                    self.shards.handle(Input::JobDeleted { job, cron_job }, self.now.wall);
                    None
                }
                Effect::LookUpJob(_) | Effect::Withdraw(_) | Effect::EmitEvent(_) => None,
            };
            if let Some(answer) = answer {
                self.shards
                    .handle_answer(TermedAnswer { shard_term, answer }, self.now.wall);
                self.read();
            }
        }
        self.read();
    }

    fn create(&mut self, order: &JobCreate) -> OrderAnswer {
        self.n_created += 1;
        let uid = Uid::new(&format!("{:08x}-4f50-6172-8394-a5b600000000", self.n_created));
        let job = JobRecord {
            uid: uid.clone(),
            namespace: order.cron_job.namespace.clone(),
            name: order.name.clone(),
            resource_version: ResourceVersion(self.n_created),
            controller: Some(order.cron_job.uid.clone()),
            scheduled: Some(order.slot),
            finish: None,
            started: Some(self.now.wall),
            completed: None,
            creator: JobCreator::Unknown,
            run_token: None,
        };
        self.shards
            .handle(Input::JobApplied(Box::new(job.clone())), self.now.wall);
        self.running.push(job);
        OrderAnswer::Create {
            cron_job: order.cron_job.uid.clone(),
            slot: order.slot,
            answer: CreateOutcome::Created {
                uid,
                resource_version: self.n_created.to_string().as_str().into(),
                created: self.now.wall,
            },
        }
    }

    fn read(&mut self) {
        self.shards.advance_lifecycles(self.now);
        black_box(self.shards.next_lifecycle_step());
        black_box(self.shards.outcome_counts().open_instants);
        black_box((self.shards.sizes(), self.shards.led()));
        black_box(self.shards.trouble_report());
        black_box(self.shards.next_wakeup());
    }
}

fn start() -> Clocks {
    Clocks {
        wall: "2026-05-05T11:59:30Z".parse::<Timestamp>().unwrap(),
        boot: BootInstant::after_boot(Duration::from_mins(1)),
    }
}

fn skew_max() -> SignedDuration {
    SignedDuration::from_secs(2)
}

fn cron_job(number: u32) -> Input {
    let text = format!(
        r#"{{"metadata":{{"name":"backup-{number:07}","namespace":"shop-{:03}","uid":"0b1c2d3e-4f50-6172-8394-a5b6{number:08x}","resourceVersion":"1","creationTimestamp":"2026-01-02T03:04:05Z"}},"spec":{{"schedule":"* * * * *","concurrencyPolicy":"Allow","suspend":false,"successfulJobsHistoryLimit":3,"failedJobsHistoryLimit":1,"jobTemplate":{{"metadata":{{}},"spec":{{"template":{{"spec":{{"restartPolicy":"Never","containers":[{{"name":"work","image":"example/backup:1"}}]}}}}}}}}}},"status":{{"lastScheduleTime":"2026-05-05T11:59:00Z"}}}}"#,
        number % 20
    );
    let decoder = Decoder {
        default_zone: Zone::utc(),
        ..Decoder::default()
    };
    Input::CronJobApplied(Box::new(decoder.cron_job(&text).unwrap()))
}
