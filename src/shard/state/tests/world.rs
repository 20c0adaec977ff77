//! A shard with a simulated clock, and its effects as text.

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};

use crate::{
    schedule::{Zone, options::NamespaceOptions},
    shard::{
        ActiveJob, ConcurrencyPolicy, CreateOutcome, CronJobIdentity, CronJobRecord, CronJobSchedule, CronJobStatus,
        DeleteOutcome, Effect, Finish, Input, JobCreate, JobCreator, JobDelete, JobLookUp, JobRecord, JobTemplate,
        LookUpOutcome, ManagedNamespaces, NamespaceUpdate, OrderAnswer, ResourceVersion, Scope, ShardConfig,
        ShardPhase, ShardState, StatusOutcome, StatusWrite, TroubleThresholds, Uid, WatchedResource, naming,
    },
};

const NAMESPACE: &str = "default";

pub(super) fn at(text: &str) -> Timestamp {
    // Times of day are on a fixed date without a zone change.
    let text = if text.len() <= 13 {
        format!("2026-05-05T{text}Z")
    } else {
        text.to_owned()
    };
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A CronJob that runs every minute and ran last at 09:59.
pub(crate) fn cron_job(name: &str) -> CronJobRecord {
    CronJobRecord {
        identity: Arc::new(CronJobIdentity {
            namespace: NAMESPACE.into(),
            name: name.into(),
            uid: uid(name),
        }),
        resource_version: ResourceVersion(10),
        created: at("2026-01-01T00:00:00Z"),
        is_deleting: false,
        has_status_of_other: false,
        schedule: schedule("* * * * *", None),
        starting_deadline_seconds: None,
        concurrency_policy: ConcurrencyPolicy::Allow,
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
        status: CronJobStatus {
            last_schedule_time: Some(at("09:59:00")),
            ..CronJobStatus::default()
        },
    }
}

pub(super) fn schedule(text: &str, time_zone: Option<&str>) -> CronJobSchedule {
    CronJobSchedule::new(text, time_zone, &Zone::utc())
}

/// A schedule with options, for example `spread: 10m`. The hash determines the place in the window.
pub(super) fn schedule_with(text: &str, options: &[(&str, &str)], hash: u64) -> CronJobSchedule {
    let get = |name: &str| {
        let named = |(option, _): &&(&str, &str)| name.strip_prefix("cronwheel.dev/") == Some(option);
        options.iter().find(named).map(|(_, value)| *value)
    };
    schedule(text, None).with_options("hello", get, hash)
}

/// The hash of the middle of a window.
pub(super) const MIDDLE: u64 = u64::MAX / 2 + 1;

/// A CronJob of every full hour with these options, which last ran at 06:00.
pub(super) fn hourly(options: &[(&str, &str)]) -> CronJobRecord {
    CronJobRecord {
        schedule: schedule_with("0 * * * *", options, MIDDLE),
        status: CronJobStatus {
            last_schedule_time: Some(at("06:00:00")),
            ..CronJobStatus::default()
        },
        ..cron_job("hello")
    }
}

pub(super) fn uid(name: &str) -> Uid {
    Uid::new(&format!("uid-{name}"))
}

/// The deletion of a Job of a CronJob.
pub(super) fn gone(job: &Uid, owner: &str) -> Input {
    Input::JobDeleted {
        job: job.clone(),
        cron_job: uid(owner),
    }
}

/// The running Job that the controller creates for a slot.
pub(super) fn job(owner: &str, slot: &str) -> JobRecord {
    let slot = at(slot);
    let name = naming::job_name(owner, slot);
    JobRecord {
        uid: uid(&name),
        namespace: "default".into(),
        name,
        resource_version: ResourceVersion(20),
        controller: Some(uid(owner)),
        scheduled: Some(slot),
        finish: None,
        started: Some(slot),
        completed: None,
        creator: JobCreator::Unknown,
        run_token: None,
    }
}

/// A Job that another client created from a CronJob.
pub(super) fn manual_job(owner: &str, name: &str) -> JobRecord {
    JobRecord {
        uid: uid(name),
        name: name.into(),
        scheduled: None,
        ..job(owner, "09:00:00")
    }
}

pub(super) fn complete(job: JobRecord, completed: &str) -> JobRecord {
    JobRecord {
        finish: Some(Finish::Complete),
        completed: Some(at(completed)),
        ..job
    }
}

pub(super) fn failed(job: JobRecord) -> JobRecord {
    JobRecord {
        finish: Some(Finish::Failed),
        ..job
    }
}

/// The entry of `status.active` for a Job.
pub(super) fn entry(job: &JobRecord) -> ActiveJob {
    ActiveJob {
        name: job.name.clone(),
        namespace: job.namespace.clone(),
        uid: job.uid.clone(),
        resource_version: job.resource_version.to_string().into(),
    }
}

/// The shard, its clock, and the effects that were not answered.
pub(super) struct World {
    pub(super) shard: ShardState,
    pub(super) now: Timestamp,
    pub(super) creates: Vec<JobCreate>,
    deletes: Vec<JobDelete>,
    look_ups: Vec<JobLookUp>,
    writes: BTreeMap<String, StatusWrite>,
    version: u64,
}

impl World {
    /// A leading shard that has listed these objects at this time.
    pub(super) fn new(now: &str, cron_jobs: Vec<CronJobRecord>, jobs: Vec<JobRecord>) -> World {
        World::around(ShardPhase::Leading, now, cron_jobs, jobs)
    }

    /// [`World::new`] on standby.
    pub(super) fn on_standby(now: &str, cron_jobs: Vec<CronJobRecord>, jobs: Vec<JobRecord>) -> World {
        World::around(ShardPhase::Standby, now, cron_jobs, jobs)
    }

    fn around(phase: ShardPhase, now: &str, cron_jobs: Vec<CronJobRecord>, jobs: Vec<JobRecord>) -> World {
        let config = ShardConfig {
            clock_skew_max: SignedDuration::from_secs(2),
            scopes: vec![Scope::Cluster],
        };
        let now = at(now);
        let mut world = World {
            shard: ShardState::new(config, now),
            now,
            creates: Vec::new(),
            deletes: Vec::new(),
            look_ups: Vec::new(),
            writes: BTreeMap::new(),
            version: 100,
        };
        match phase {
            ShardPhase::Standby => {}
            ShardPhase::Leading => world.shard.lead(now),
            ShardPhase::Closing | ShardPhase::Sealed => panic!("no shard begins in phase {phase:?}"),
        }
        world.list(cron_jobs, jobs);
        world
    }

    /// [`World::new`] with a selector that selects no namespace yet.
    pub(super) fn selecting(now: &str, cron_jobs: Vec<CronJobRecord>, jobs: Vec<JobRecord>) -> World {
        let mut world = World::new(now, Vec::new(), Vec::new());
        world.shard.namespaces = ManagedNamespaces::selected();
        world.list(cron_jobs, jobs);
        world
    }

    /// The labels of the namespace of all CronJobs match from now on.
    pub(super) fn select(&mut self) {
        self.update_namespaces(NamespaceUpdate::selected(NAMESPACE.into()));
    }

    /// The labels of the namespace match, and it has these options, for example `freeze-until`.
    pub(super) fn select_with(&mut self, options: &[(&str, &str)]) {
        let get = |name: &str| {
            let named = |(option, _): &&(&str, &str)| name.strip_prefix("cronwheel.dev/") == Some(option);
            options.iter().find(named).map(|(_, value)| *value)
        };
        self.update_namespaces(NamespaceUpdate::Selected {
            name: NAMESPACE.into(),
            options: NamespaceOptions::read(get).map(Box::new),
        });
    }

    /// They do not match any more.
    pub(super) fn release(&mut self) {
        self.update_namespaces(NamespaceUpdate::Released(NAMESPACE.into()));
    }

    fn update_namespaces(&mut self, update: NamespaceUpdate) {
        let changed = self.shard.namespaces.apply(update, self.now);
        self.shard.follow_namespaces(&changed, self.now);
    }

    pub(super) fn list(&mut self, cron_jobs: Vec<CronJobRecord>, jobs: Vec<JobRecord>) {
        self.input(Input::list_begun(WatchedResource::CronJobs, Scope::Cluster));
        for record in cron_jobs {
            self.apply(record);
        }
        self.input(Input::list_done(WatchedResource::CronJobs, Scope::Cluster));
        self.input(Input::list_begun(WatchedResource::Jobs, Scope::Cluster));
        for record in jobs {
            self.apply_job(record);
        }
        self.input(Input::list_done(WatchedResource::Jobs, Scope::Cluster));
    }

    pub(super) fn lead(&mut self) {
        self.shard.lead(self.now);
    }

    pub(super) fn resume_at(&mut self, text: &str) {
        self.now = at(text);
        self.shard.resume(self.now);
        self.shard.handle_timeout(self.now);
    }

    pub(super) fn close(&mut self) {
        self.shard.close(self.now);
    }

    pub(super) fn seal(&mut self) {
        self.shard.seal(self.now);
    }

    pub(super) fn input(&mut self, input: Input) {
        self.shard.handle(input, self.now);
    }

    pub(super) fn answer(&mut self, answer: OrderAnswer) {
        self.shard.handle_answer(answer, self.now);
    }

    pub(super) fn apply(&mut self, record: CronJobRecord) {
        self.input(Input::CronJobApplied(Box::new(record)));
    }

    pub(super) fn apply_job(&mut self, record: JobRecord) {
        self.input(Input::JobApplied(Box::new(record)));
    }

    /// Moves the clock, and calls `handle_timeout` at every wake-up that the shard requests.
    pub(super) fn advance_to(&mut self, text: &str) {
        let until = at(text);
        while let Some(wakeup) = self.shard.next_wakeup().filter(|wakeup| *wakeup <= until) {
            self.now = self.now.max(wakeup);
            self.shard.handle_timeout(self.now);
        }
        self.now = until;
    }

    /// Moves the clock in one step, as for a process that was frozen.
    pub(super) fn jump_to(&mut self, text: &str) {
        self.now = at(text);
        self.shard.handle_timeout(self.now);
    }

    /// The effects since the last call, as text.
    pub(super) fn effects(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(effect) = self.shard.poll_effect() {
            lines.push(self.line(effect));
        }
        self.check();
        lines
    }

    fn line(&mut self, effect: Effect) -> String {
        match effect {
            Effect::CreateJob(order) => {
                let line = format!("create {} for {}", order.name, order.scheduled_timestamp);
                self.creates.push(order);
                line
            }
            Effect::DeleteJob(delete) => {
                let line = format!("delete {}", delete.name);
                self.deletes.push(delete);
                line
            }
            Effect::LookUpJob(look_up) => {
                let line = format!("look up {}", look_up.name);
                self.look_ups.push(look_up);
                line
            }
            Effect::Withdraw(withdrawal) => {
                let name = &withdrawal.cron_job.name;
                match withdrawal.job {
                    None => format!("withdraw the create of {name}"),
                    Some(job) => format!("withdraw the delete of {job}"),
                }
            }
            Effect::WriteStatus(write) => {
                let line = status_line(&write);
                self.writes.insert(write.cron_job.name.to_string(), write);
                line
            }
            Effect::EmitEvent(event) => {
                format!(
                    "{} {}: {}",
                    event.reason.event_type(),
                    event.reason.as_str(),
                    event.message
                )
            }
        }
    }

    /// Checks that every due instant has one outcome or is open.
    fn check(&self) {
        let outcome_counts = self.shard.outcome_counts();
        assert_eq!(
            outcome_counts.due_instants,
            outcome_counts.outcomes.iter().sum::<u64>() + outcome_counts.open_instants,
            "{outcome_counts:?}"
        );
    }

    pub(super) fn expect(&mut self, expected: &[&str]) {
        assert_eq!(self.effects(), expected);
    }

    /// Answers the oldest create.
    pub(super) fn answer_create(&mut self, answer: CreateOutcome) {
        let order = self.creates.remove(0);
        self.answer(OrderAnswer::Create {
            cron_job: order.cron_job.uid.clone(),
            slot: order.slot,
            answer,
        });
    }

    /// Answers the oldest create with success.
    pub(super) fn created(&mut self) {
        let name = self.creates[0].name.clone();
        self.answer_create(CreateOutcome::Created {
            uid: uid(&name),
            resource_version: "20".into(),
            created: self.now,
        });
    }

    pub(super) fn refused(&mut self, message: &str) {
        self.answer_create(CreateOutcome::Failed {
            message: message.into(),
            status: Some(403),
            retry_after: None,
        });
    }

    pub(super) fn answer_delete(&mut self, answer: DeleteOutcome) {
        let delete = self.deletes.remove(0);
        self.answer(OrderAnswer::Delete { delete, answer });
    }

    pub(super) fn answer_look_up(&mut self, answer: LookUpOutcome) {
        let look_up = self.look_ups.remove(0);
        self.answer(OrderAnswer::LookUp { look_up, answer });
    }

    /// The look-ups that are not answered.
    pub(super) fn look_ups_sent(&self) -> usize {
        self.look_ups.len()
    }

    /// Answers the pending status write of a CronJob.
    pub(super) fn answer_status(&mut self, name: &str, answer: StatusOutcome) {
        let write = self
            .writes
            .remove(name)
            .unwrap_or_else(|| panic!("no status write for {name}"));
        let cron_job = write.cron_job.uid.clone();
        self.answer(OrderAnswer::Status {
            cron_job,
            sent: Box::new(write.status),
            answer,
        });
    }

    /// Stores the pending status write of a CronJob.
    pub(super) fn stored(&mut self, name: &str) {
        self.version += 1;
        self.answer_status(
            name,
            StatusOutcome::Stored {
                resource_version: ResourceVersion(self.version),
            },
        );
    }

    pub(super) fn pending_write(&self, name: &str) -> Option<&StatusWrite> {
        self.writes.get(name)
    }
}

fn status_line(write: &StatusWrite) -> String {
    let time =
        |instant: Option<Timestamp>| instant.map_or("-".to_owned(), |instant| instant.strftime("%T").to_string());
    let active: Vec<&str> = write.status.active.iter().map(|active| &*active.name).collect();
    format!(
        "status last={} successful={} active=[{}]{}",
        time(write.status.last_schedule_time),
        time(write.status.last_successful_time),
        active.join(" "),
        if write.is_urgent { " urgent" } else { "" }
    )
}
