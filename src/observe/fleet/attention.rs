//! Which CronJobs need attention, and why in one sentence: at most one entry for a CronJob, the most serious.

use jiff::Timestamp;

use super::{
    Fleet,
    cron_job::CronJob,
    cron_job_view::{holder_name, last_success},
    due_slots,
    holders::{self, Holder},
    last_outcomes::LostSlots,
    second::Second,
    slot_record::{Outcome, SlotRecord},
    words::{self, duration_text, runs_text},
};
use crate::observe::{
    facts::{CronJobFacts, Hindrance},
    view::{Attention, Trouble},
};

/// A lost slot needs attention for this long.
pub(super) const DAY_SECONDS: i64 = 24 * 3_600;

/// Number of periods without success after which a CronJob needs attention.
const PERIODS_WITHOUT_SUCCESS: usize = 3;

/// Number of further Jobs of a slot that are named.
const JOBS_NAMED_MAX: usize = 3;

/// What is wrong with a CronJob.
struct Finding {
    trouble: Trouble,
    since: Option<Second>,
    reason: String,
}

impl Fleet {
    /// All CronJobs that need attention: the oldest trouble first, those that never run last.
    pub(super) fn attention(&self, now: Timestamp) -> Vec<Attention> {
        let mut all: Vec<Attention> = self
            .cron_jobs
            .sorted()
            .filter_map(|cron_job| self.attention_of(cron_job, now))
            .collect();
        all.sort_by_key(|attention| (attention.trouble == Trouble::Never, attention.since));
        all
    }

    /// What is wrong with one CronJob.
    pub(super) fn attention_of(&self, cron_job: &CronJob, now: Timestamp) -> Option<Attention> {
        let facts = cron_job.facts.as_deref().filter(|facts| !facts.is_deleting)?;
        let case = Case {
            fleet: self,
            cron_job,
            facts,
            now,
            second: Second::floor(now),
        };
        let finding = case.finding()?;
        Some(Attention {
            cron_job: cron_job.name.clone(),
            trouble: finding.trouble,
            since: finding.since.map(Second::timestamp),
            last_success: last_success(cron_job),
            reason: finding.reason,
        })
    }
}

struct Case<'a> {
    fleet: &'a Fleet,
    cron_job: &'a CronJob,
    facts: &'a CronJobFacts,
    now: Timestamp,
    second: Second,
}

impl Case<'_> {
    fn finding(&self) -> Option<Finding> {
        if let Some(never) = self.never() {
            return Some(never);
        }
        let failed = self.failed();
        let day_start = self.second.plus(-DAY_SECONDS);
        let lost = self.cron_job.lost_after(day_start);
        // Failures since the last lost slot are of today; the loss is past.
        let lost = lost.filter(|lost| failed.as_ref().is_none_or(|(first, _)| *first < lost.last));
        lost.map(|lost| self.lost(&lost))
            .or_else(|| failed.map(|(_, finding)| finding))
            .or_else(|| self.doubled(day_start))
            .or_else(|| self.late())
            .or_else(|| self.blocked())
            .or_else(|| self.no_success())
    }

    fn never(&self) -> Option<Finding> {
        let is_never = self.cron_job.enumerated.is_some() && self.cron_job.next.is_none();
        is_never.then(|| Finding {
            trouble: Trouble::Never,
            since: Some(Second::floor(self.facts.created)),
            reason: words::never_text(self.facts),
        })
    }

    fn lost(&self, slots: &LostSlots) -> Finding {
        let left_out = due_slots::first_left_out(self.cron_job).filter(|_| slots.is_cut);
        let since = left_out.map_or(slots.first, |left_out| left_out.min(slots.first));
        let (first, last) = (self.time(since), self.zoned_time(slots.last));
        let (runs, why) = (runs_text(slots.n_slots), slots.reason.sentence());
        let reason = match slots.n_slots {
            _ if since < slots.first => format!("lost at least {runs} between {first} and {last}: {why}"),
            1 => format!("lost {runs} at {last}: {why}"),
            _ => format!("lost {runs} between {first} and {last}: {why}"),
        };
        Finding {
            trouble: Trouble::Lost,
            since: Some(since),
            reason,
        }
    }

    /// Slots of the last day have more than one Job.
    fn doubled(&self, day_start: Second) -> Option<Finding> {
        let recent = self.cron_job.slots.iter().filter(|slot| slot.at >= day_start);
        let doubled: Vec<&SlotRecord> = recent
            .filter(|slot| self.cron_job.other_jobs(slot).next().is_some())
            .collect();
        let (first, last) = (doubled.first()?, doubled.last()?);
        let names = self.cron_job.other_jobs(last).map(|run| &*run.job_name);
        let names: Vec<&str> = names.take(JOBS_NAMED_MAX).collect();
        let (own, others, at) = (self.cron_job.job_name(last), names.join(", "), self.zoned_time(last.at));
        let reason = match doubled.len() {
            1 => format!("the slot {at} has more than one Job: {own}, {others}"),
            n => format!("{n} slots have more than one Job, the last at {at}: {own}, {others}"),
        };
        Some(Finding {
            trouble: Trouble::Doubled,
            since: Some(first.at),
            reason,
        })
    }

    /// The last runs failed. With the first slot of the streak.
    fn failed(&self) -> Option<(Second, Finding)> {
        let ended = self.cron_job.slots.iter().rev();
        let ended = ended.filter(|slot| matches!(slot.outcome, Outcome::Failed | Outcome::Succeeded));
        let streak: Vec<&SlotRecord> = ended.take_while(|slot| slot.outcome == Outcome::Failed).collect();
        let (latest, first) = (streak.first()?, streak.last()?);
        let why = self.fleet.ids.reason(latest.reason);
        let runs = match streak.len() {
            1 => "the last run failed".to_owned(),
            n_runs => format!("last {n_runs} runs failed"),
        };
        let finding = Finding {
            trouble: Trouble::Failed,
            since: first.finished.or(Some(first.created)),
            reason: format!("{runs}: {why}"),
        };
        Some((first.at, finding))
    }

    fn late(&self) -> Option<Finding> {
        let open = self
            .cron_job
            .slots
            .iter()
            .rev()
            .find(|slot| slot.is_late_now(self.second));
        if let Some(slot) = open {
            let waited = duration_text(self.second.since(slot.startable()));
            return Some(Finding {
                trouble: Trouble::Late,
                since: Some(slot.startable()),
                reason: format!("the run of {} has not started for {waited}", self.zoned_time(slot.at)),
            });
        }
        let started = self.cron_job.slots.iter().rev();
        let started = started.filter(|slot| slot.has_job() && !slot.is_backfilled());
        let streak: Vec<&SlotRecord> = started.take_while(|slot| slot.has_late_job()).collect();
        let first = streak.last()?;
        let lateness = streak.iter().map(|slot| slot.created.since(slot.startable())).max()?;
        let lateness = duration_text(lateness);
        let reason = match streak.len() {
            1 => format!("the last run started {lateness} late"),
            n_runs => format!("last {n_runs} runs started up to {lateness} late"),
        };
        Some(Finding {
            trouble: Trouble::Late,
            since: Some(first.at),
            reason,
        })
    }

    /// Forbid holds slots back, and the next one is due already or the Job cannot end by itself.
    fn blocked(&self) -> Option<Finding> {
        let slots = &self.cron_job.slots;
        let held = slots
            .iter()
            .rev()
            .take_while(|slot| slot.outcome == Outcome::HeldByForbid);
        let first = slots
            .len()
            .checked_sub(held.count())
            .filter(|first| *first < slots.len())?;
        let last = slots.len() - 1;
        let (holder, _) = holders::holder(self.cron_job, last)?;
        let (uid, created) = match holder {
            Holder::Slot(place) => (slots[place].job_uid.as_ref()?, slots[place].created),
            Holder::Other(place) => {
                let run = &self.cron_job.other_runs[place].run;
                (&run.job_uid, Second::floor(run.created))
            }
        };
        let hindrance = match holder {
            Holder::Slot(_) => self.cron_job.hindrance(uid),
            Holder::Other(place) => self.cron_job.other_runs[place].run.hindrance.as_ref(),
        };
        if hindrance.is_none() && first == last {
            return None;
        }
        let name = holder_name(self.cron_job, last)?;
        let what = match hindrance {
            None => format!("has run for {}", duration_text(self.second.since(created))),
            Some(Hindrance::Suspended) => "is suspended".to_owned(),
            Some(Hindrance::Terminating) => "is being deleted".to_owned(),
            Some(Hindrance::HeldByFinalizers(names)) => {
                let plural = if names.contains(',') { "s" } else { "" };
                format!("is being deleted and held by finalizer{plural} {names}")
            }
        };
        Some(Finding {
            trouble: Trouble::Blocked,
            since: Some(slots[first].at),
            reason: format!("Forbid: Job {name} {what}"),
        })
    }

    fn no_success(&self) -> Option<Finding> {
        if self.facts.is_suspended || self.cron_job.n_running() > 0 {
            return None;
        }
        let success = last_success(self.cron_job).map(Second::floor);
        let after = self.cron_job.slots.iter().rev();
        let after = after.take_while(|slot| success.is_none_or(|success| slot.at > success));
        // Slots that asked for no Job, and slots that may still have one, are no periods without success.
        let wanted = after.filter(|slot| {
            slot.has_job() || slot.is_lost() || slot.outcome == Outcome::NotObserved && success.is_some()
        });
        let periods: Vec<&SlotRecord> = wanted.collect();
        let first = periods.last().filter(|_| periods.len() >= PERIODS_WITHOUT_SUCCESS)?;
        let reason = match success {
            Some(success) => format!("no run has succeeded since {}", self.zoned_time(success)),
            None => "no run has ever succeeded".to_owned(),
        };
        Some(Finding {
            trouble: Trouble::NoSuccess,
            since: success.map(|_| first.at),
            reason,
        })
    }

    fn time(&self, at: Second) -> String {
        words::time_text(at.timestamp(), self.now, self.facts.schedule.effective_zone())
    }

    fn zoned_time(&self, at: Second) -> String {
        format!("{} {}", self.time(at), self.facts.schedule.effective_zone().name())
    }
}
