//! Scenarios as scripts: one CronJob, and what happens to it line by line.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};

use crate::{
    observe::{
        facts::{CalendarFacts, Creator, CronJobFacts, Hindrance, Labels, NamespaceFacts, Record, Run, RunResult},
        fleet::{Fleet, FleetConfig},
        slot::{Mark, Slot},
        view::{CronJobName, Detail},
    },
    schedule::{
        ConcurrencyPolicy, CronJobSchedule, Zone,
        options::{Calendar, NamespaceOptions},
    },
    shard::{Uid, naming},
};

/// A time of 5 May 2026, `HH:MM` or `HH:MM:SS`, or a full timestamp.
pub(super) fn at(text: &str) -> Timestamp {
    let text = match text.len() {
        5 => format!("2026-05-05T{text}:00Z"),
        8 => format!("2026-05-05T{text}Z"),
        _ => text.to_owned(),
    };
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A CronJob `shop/bill` that runs every minute, created on 1 May. Its last slot was 10:00.
pub(super) fn facts() -> CronJobFacts {
    CronJobFacts {
        uid: Uid::new("cron-job"),
        namespace: "shop".into(),
        name: "bill".into(),
        labels: Labels::default(),
        created: at("2026-05-01T00:00:00Z"),
        is_deleting: false,
        schedule: schedule("* * * * *"),
        starting_deadline_seconds: None,
        concurrency_policy: ConcurrencyPolicy::Allow,
        is_suspended: false,
        successful_jobs_history_limit: 3,
        failed_jobs_history_limit: 1,
        has_active_deadline: false,
        ttl_seconds_after_finished: None,
        last_schedule_time: Some(at("10:00")),
        last_successful_time: None,
        spec_changed: None,
        resumption: None,
    }
}

pub(super) fn schedule(text: &str) -> CronJobSchedule {
    CronJobSchedule::new(text, None, &Zone::utc())
}

/// A schedule with options `NAME=VALUE`, separated by semicolons. A window of 31 s has the offset 30 s.
pub(super) fn with_options(text: &str, options: &str) -> CronJobSchedule {
    let options = options.split(';').filter_map(|option| option.trim().split_once('='));
    let options: BTreeMap<String, &str> = options
        .map(|(name, value)| (format!("cronwheel.dev/{name}"), value))
        .collect();
    schedule(text).with_options("hello", |name| options.get(name).copied(), u64::MAX)
}

/// A Job of `shop/bill` for a slot.
pub(super) fn run(slot: Timestamp, created: Timestamp) -> Run {
    Run {
        job_uid: Uid::new(&format!("job-{}", slot.as_second())),
        job_name: naming::job_name("bill", slot),
        cron_job: Uid::new("cron-job"),
        slot: Some(slot),
        created,
        started: None,
        finished: None,
        result: RunResult::Running,
        creator: Creator::BuiltIn,
        hindrance: None,
    }
}

/// A fleet with one CronJob, and the objects that its cluster has.
pub(super) struct World {
    pub(super) fleet: Fleet,
    pub(super) facts: CronJobFacts,
    /// The Jobs that exist.
    pub(super) jobs: BTreeMap<Timestamp, Run>,
    pub(super) records: Vec<Record>,
    pub(super) now: Timestamp,
    /// The client that creates Jobs.
    creator: Creator,
    /// The annotations of the namespace, and when they changed.
    pub(super) annotations: String,
    pub(super) annotated: Timestamp,
}

impl World {
    pub(super) fn new(facts: CronJobFacts, n_slots_max: usize) -> World {
        let now = at("10:00:30");
        World {
            fleet: Fleet::new(FleetConfig::of_slots(n_slots_max), now),
            facts,
            jobs: BTreeMap::new(),
            records: Vec::new(),
            now,
            creator: Creator::BuiltIn,
            annotations: String::new(),
            annotated: now,
        }
    }

    /// Runs a script on the usual CronJob.
    pub(super) fn of(script: &str) -> World {
        let mut world = World::new(facts(), 50);
        world.play(script);
        world
    }

    /// Runs lines `TIME VERB ARGUMENTS`.
    pub(super) fn play(&mut self, script: &str) {
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (time, command) = line.split_once(' ').unwrap_or_else(|| panic!("no verb: {line}"));
            self.now = at(time);
            self.act(command);
            self.fleet.advance(self.now);
            self.records.append(&mut self.fleet.take_records());
        }
    }

    fn act(&mut self, command: &str) {
        let (verb, argument) = command.split_once(' ').unwrap_or((command, ""));
        match verb {
            "wait" => {}
            "watch" => self.list(),
            "unwatch" => self.fleet.set_watches_current(false, self.now),
            "start" => self.start(at(argument)),
            "succeed" => self.end(at(argument), RunResult::Succeeded),
            "fail" => self.end(at(argument), RunResult::Failed("BackoffLimitExceeded".into())),
            "delete" => {
                let job = self.jobs.remove(&at(argument)).expect("a Job");
                self.fleet.remove_run(&job.job_uid, self.now);
            }
            "hinder" => {
                let (slot, finalizer) = argument.split_once(' ').expect("a slot and a finalizer");
                let job = self.jobs.get_mut(&at(slot)).expect("a Job");
                job.hindrance = Some(Hindrance::HeldByFinalizers(finalizer.into()));
                self.fleet.apply_run(job.clone(), self.now);
            }
            "suspend" => self.change(|facts| facts.is_suspended = true),
            "resume" => self.change(|facts| facts.is_suspended = false),
            "forbid" => self.change(|facts| facts.concurrency_policy = ConcurrencyPolicy::Forbid),
            "allow" => self.change(|facts| facts.concurrency_policy = ConcurrencyPolicy::Allow),
            "schedule" => self.change(|facts| facts.schedule = schedule(argument)),
            "options" => self.change(|facts| facts.schedule = with_options(&facts.schedule.text, argument)),
            "cronwheel" => self.creator = Creator::Cronwheel,
            "backfill" => self.creator = Creator::backfill(),
            "namespace" => self.annotate(argument),
            "namespaces" => {
                self.list_namespace();
                self.fleet
                    .retain_namespaces(&BTreeSet::from([Uid::new("shop")]), None, self.now);
            }
            "blind" => self.fleet.lose_namespaces(None, self.now),
            "calendar" => {
                self.fleet.begin_calendars(None, self.now);
                let listed = self.calendar(argument);
                self.fleet.retain_calendars(&listed, None, self.now);
            }
            "replace" => self.change(|facts| facts.concurrency_policy = ConcurrencyPolicy::Replace),
            "deadline" => {
                let seconds = argument.parse().expect("seconds");
                self.change(|facts| facts.starting_deadline_seconds = Some(seconds));
            }
            _ => panic!("unknown verb: {command}"),
        }
    }

    /// Gives the namespace other annotations, which a watch tells if it is known.
    fn annotate(&mut self, annotations: &str) {
        self.annotations = annotations.to_owned();
        self.annotated = self.now;
        self.list_namespace();
    }

    fn list_namespace(&mut self) {
        let options = self
            .annotations
            .split(';')
            .filter_map(|option| option.trim().split_once('='));
        let options: BTreeMap<String, &str> = options
            .map(|(name, value)| (format!("cronwheel.dev/{name}"), value))
            .collect();
        let facts = NamespaceFacts {
            uid: Uid::new("shop"),
            name: "shop".into(),
            options: NamespaceOptions::read(|name| options.get(name).copied()).map(Box::new),
            freeze_changed: Some(self.annotated),
        };
        self.fleet.apply_namespace(facts, self.now);
    }

    /// The list of calendars: `holidays` with these lines, or none.
    fn calendar(&mut self, lines: &str) -> BTreeSet<Uid> {
        if lines.is_empty() {
            return BTreeSet::new();
        }
        let calendar = Calendar::read([("days", &*lines.replace(';', "\n"))].into_iter());
        let facts = CalendarFacts {
            uid: Uid::new("holidays"),
            namespace: "shop".into(),
            name: "holidays".into(),
            calendar: calendar.map(Arc::new).map_err(Into::into),
        };
        self.fleet.apply_calendar(facts, self.now);
        BTreeSet::from([Uid::new("holidays")])
    }

    /// The first lists, or new ones: objects that are gone are gone from the fleet too.
    fn list(&mut self) {
        self.list_cron_job();
        self.list_jobs();
        self.fleet.set_watches_current(true, self.now);
    }

    fn list_cron_job(&mut self) {
        let listed = BTreeSet::from([self.facts.uid.clone()]);
        self.fleet.retain_cron_jobs(&listed, None, self.now);
        self.fleet.apply_cron_job(self.facts.clone(), self.now);
    }

    fn list_jobs(&mut self) {
        for job in self.jobs.values() {
            self.fleet.apply_run(job.clone(), self.now);
        }
        let listed = self.jobs.values().map(|job| job.job_uid.clone()).collect();
        self.fleet.retain_runs(&listed, None, self.now);
    }

    fn change(&mut self, change: impl FnOnce(&mut CronJobFacts)) {
        change(&mut self.facts);
        self.fleet.apply_cron_job(self.facts.clone(), self.now);
    }

    pub(super) fn start(&mut self, slot: Timestamp) {
        let job = Run {
            creator: self.creator.clone(),
            ..run(slot, self.now)
        };
        self.jobs.insert(slot, job.clone());
        self.fleet.apply_run(job, self.now);
        self.change(|facts| facts.last_schedule_time = facts.last_schedule_time.max(Some(slot)));
    }

    pub(super) fn end(&mut self, slot: Timestamp, result: RunResult) {
        let job = self.jobs.get_mut(&slot).expect("a Job");
        (job.result, job.finished) = (result, Some(self.now));
        self.fleet.apply_run(job.clone(), self.now);
    }

    /// The same cluster, seen by a new process with the history of this one.
    pub(super) fn restarted(&self, n_slots_max: usize) -> World {
        let mut world = self.loaded(n_slots_max);
        world.list();
        world.fleet.advance(world.now);
        world
    }

    /// As [`World::restarted`], with an API server whose lists take seconds.
    pub(super) fn restarted_slowly(&self, n_slots_max: usize) -> World {
        let mut world = self.loaded(n_slots_max);
        world.pass_second();
        world.list_cron_job();
        world.pass_second();
        world.list_jobs();
        world.fleet.set_watches_current(true, world.now);
        world.pass_second();
        world
    }

    fn loaded(&self, n_slots_max: usize) -> World {
        let mut fleet = Fleet::new(FleetConfig::of_slots(n_slots_max), self.now);
        fleet.load(self.records.clone(), self.now);
        World {
            fleet,
            facts: self.facts.clone(),
            jobs: self.jobs.clone(),
            records: self.records.clone(),
            now: self.now,
            creator: self.creator.clone(),
            annotations: self.annotations.clone(),
            annotated: self.annotated,
        }
    }

    fn pass_second(&mut self) {
        self.now += SignedDuration::from_secs(1);
        self.fleet.advance(self.now);
    }

    pub(super) fn detail(&self) -> Detail {
        let name = CronJobName {
            namespace: self.facts.namespace.clone(),
            name: self.facts.name.clone(),
        };
        self.fleet.detail(&name, self.now).expect("the CronJob")
    }

    pub(super) fn slot(&self, slot: &str) -> Slot {
        let slots = self.detail().slots;
        slots
            .into_iter()
            .find(|found| found.at == at(slot))
            .unwrap_or_else(|| panic!("no slot {slot}"))
    }

    /// The slots as letters, the oldest first.
    pub(super) fn marks(&self) -> String {
        self.detail()
            .slots
            .iter()
            .map(|slot| letter(slot.mark(self.now)))
            .collect()
    }
}

pub(super) fn letter(mark: Mark) -> char {
    match mark {
        Mark::NotObserved => '?',
        Mark::Skipped => '-',
        Mark::Succeeded => 's',
        Mark::Running => 'r',
        Mark::Due => 'd',
        Mark::Late => 'l',
        Mark::Failed => 'f',
        Mark::Lost => 'L',
    }
}
