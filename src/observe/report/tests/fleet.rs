//! An invented fleet with every outcome.

use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::{
    observe::{
        facts::CronJobFacts,
        missed::BackfillCommand,
        slot::{Ended, Shadow, SkipCause, SlotOutcome},
        view::ControllerActivity,
    },
    schedule::ConcurrencyPolicy,
};

/// CronJobs with their slots.
#[derive(Default)]
pub(super) struct Fleet {
    cron_jobs: Vec<(CronJobFacts, Vec<Slot>)>,
}

pub(super) fn source() -> ReportSource {
    let now = instant("2026-11-27T21:04:58Z");
    ReportSource {
        command: BackfillCommand::default(),
        cluster: "prod-eu".to_owned(),
        since: now - SignedDuration::from_hours(24),
        now,
        known_since: Some(instant("2026-11-27T03:12:00Z")),
        unreadable_namespaces: Vec::new(),
        controllers: vec![ControllerActivity {
            creator: Creator::BuiltIn,
            n_jobs: 41_212,
            last: now,
            lateness_p50: Some(SignedDuration::from_secs(2)),
            busy_time: None,
        }],
        notes: vec!["The watches were broken from 09:00 to 09:02 UTC.".to_owned()],
    }
}

impl Fleet {
    /// Adds a CronJob, to which the next slots belong.
    pub(super) fn add(&mut self, facts: CronJobFacts) -> &mut Fleet {
        self.cron_jobs.push((facts, Vec::new()));
        self
    }

    fn slot(&mut self, at: Timestamp, outcome: SlotOutcome, with_cronwheel: Option<Shadow>) {
        let (_, slots) = self.cron_jobs.last_mut().unwrap();
        slots.push(Slot {
            other_jobs: Vec::new(),
            at,
            held_until: None,
            outcome,
            with_cronwheel,
        });
    }

    pub(super) fn unknown(&mut self, at: Timestamp) {
        self.slot(at, SlotOutcome::NotObserved, None);
    }

    /// Another Job of the last slot.
    pub(super) fn doubled(&mut self, job_name: &str) {
        let (_, slots) = self.cron_jobs.last_mut().unwrap();
        slots.last_mut().unwrap().other_jobs.push(job_name.into());
    }

    pub(super) fn open(&mut self, at: Timestamp) {
        self.slot(at, SlotOutcome::Open, Some(Shadow::Starts));
    }

    pub(super) fn lost(&mut self, at: Timestamp, reason: LossReason, with_cronwheel: Option<Shadow>) {
        self.slot(at, SlotOutcome::Lost(reason), with_cronwheel);
    }

    /// A slot whose Job was created some seconds later, and which cronwheel would have started on time.
    pub(super) fn started(&mut self, at: Timestamp, late_seconds: i64, result: RunResult) {
        let (facts, _) = self.cron_jobs.last().unwrap();
        let job_name = job_name(&facts.name, at);
        let created = at + SignedDuration::from_secs(late_seconds);
        let outcome = SlotOutcome::Started {
            job_uid: Uid::new(&job_name),
            job_name,
            created,
            finished: Some(created + SignedDuration::from_secs(41)),
            result,
            is_backfilled: false,
            replaced_by: None,
        };
        self.slot(at, outcome, Some(Shadow::Starts));
    }

    pub(super) fn histories(&self) -> impl Iterator<Item = CronJobHistory<'_>> {
        self.cron_jobs.iter().map(|(facts, slots)| CronJobHistory {
            facts,
            slots: slots.clone(),
            run_time_p50: slots.iter().find_map(Slot::run_time),
            run_time_p95: slots.iter().find_map(Slot::run_time),
        })
    }

    pub(super) fn report(&self, source: ReportSource) -> Report {
        let (now, day) = (source.now, SignedDuration::from_hours(24));
        let forecast = Forecast::new(self.cron_jobs.iter().map(|(facts, _)| facts), now, now + day);
        let inputs = self.histories().map(|history| advice_input(&history));
        let advice = advice(inputs, &forecast, now);
        Report::new(self.histories(), source, &forecast, &advice)
    }

    pub(super) fn invented() -> Fleet {
        let mut fleet = Fleet::default();
        fleet.add_reports().add_billing().add_data().add_idle();
        fleet
    }

    /// An hourly one that starts late, and a nightly one that the controller left out for some minutes.
    fn add_reports(&mut self) -> &mut Fleet {
        self.add(cron_job("reports/hourly-margin", "0 * * * *", None));
        for hour in 0..21 {
            let at = instant("2026-11-27T00:00:00Z") + SignedDuration::from_hours(hour);
            if hour < 4 {
                self.slot(at, SlotOutcome::NotObserved, None);
            } else {
                self.started(at, hour * hour, RunResult::Succeeded);
            }
        }
        self.open(instant("2026-11-27T21:00:00Z"));
        let mut nightly = cron_job("reports/nightly-close", "* 13 * * *", Some("America/New_York"));
        nightly.starting_deadline_seconds = Some(60);
        nightly.has_active_deadline = true;
        self.add(nightly);
        for minute in 0..60 {
            let at = instant("2026-11-27T18:00:00Z") + SignedDuration::from_mins(minute);
            match minute {
                47..51 => self.lost(at, LossReason::DeadlineExceeded, Some(Shadow::Starts)),
                51 => self.lost(at, LossReason::DeadlineExceeded, None),
                52 => self.started(at, 55, RunResult::Succeeded),
                _ => self.started(at, 0, RunResult::Succeeded),
            }
        }
        self
    }

    /// One that fails, and one of which a clock change repeats a run.
    fn add_billing(&mut self) -> &mut Fleet {
        self.add(cron_job("billing/dunning", "0 6,18 * * *", None));
        for at in ["2026-11-27T06:00:00Z", "2026-11-27T18:00:00Z"] {
            self.started(instant(at), 1, RunResult::Failed("BackoffLimitExceeded".into()));
        }
        self.add(cron_job("billing/invoice-export", "30 2 * * *", Some("Africa/Cairo")));
        self.started(instant("2026-11-27T00:30:00Z"), 0, RunResult::Succeeded);
        self
    }

    /// One that Forbid holds back, with a run that waited.
    fn add_data(&mut self) -> &mut Fleet {
        let mut compact = cron_job("data/compact-eu", "*/20 * * * *", None);
        compact.concurrency_policy = ConcurrencyPolicy::Forbid;
        self.add(compact);
        let first = instant("2026-11-27T19:00:00Z");
        let after = |minutes| first + SignedDuration::from_mins(minutes);
        self.started(first, 0, RunResult::Succeeded);
        let outcome = SlotOutcome::Started {
            job_uid: Uid::new("second"),
            job_name: job_name("compact-eu", after(20)),
            created: after(25),
            finished: Some(after(50)),
            result: RunResult::Succeeded,
            is_backfilled: false,
            replaced_by: None,
        };
        self.slot(
            after(20),
            outcome,
            Some(Shadow::StartsAfter(SignedDuration::from_mins(2), Ended::Job)),
        );
        if let Some((_, slots)) = self.cron_jobs.last_mut() {
            slots[1].held_until = Some(after(22));
        }
        let job_name = job_name("compact-eu", after(20));
        let holds = Shadow::Holds("Forbid: an earlier Job still runs (B-10.3)");
        self.slot(
            after(40),
            SlotOutcome::Skipped(SkipCause::HeldByForbid { job_name }),
            Some(holds.clone()),
        );
        self.lost(after(60), LossReason::Superseded, Some(holds));
        self
    }

    fn add_idle(&mut self) -> &mut Fleet {
        let mut idle = cron_job("shop/old-import", "0 3 * * *", None);
        idle.is_suspended = true;
        idle.spec_changed = Some(instant("2026-09-01T00:00:00Z"));
        self.add(idle)
    }
}

/// The same for the advice.
pub(super) fn advice_input<'a>(history: &CronJobHistory<'a>) -> CronJobAdviceInput<'a> {
    let (n_succeeded, n_failed) = n_results(&history.slots);
    CronJobAdviceInput {
        facts: history.facts,
        run_time_p50: history.run_time_p50,
        run_time_p95: history.run_time_p95,
        n_succeeded,
        n_failed,
        ignores_options: false,
        frozen_until: None,
    }
}
