//! Reports problems of a schedule, once for each schedule (B-6.2, B-6.4, B-6.5, B-7.1).

use jiff::Timestamp;

use super::ShardState;
use crate::{
    schedule::{
        options::OptionName,
        policy::{Decision, SkipReason},
        quote,
    },
    shard::{effect::EventReason, index::OwnerIndex, record::CronJobRecord},
};

impl ShardState {
    /// Reports a `lastScheduleTime` in the future, once for each schedule. Nothing is due before that time (B-9.1).
    pub(super) fn report_future_cursor(&mut self, owner: OwnerIndex, now: Timestamp) {
        let latest = self.latest_slot_of_jobs(now);
        let reason = EventReason::LastScheduleTimeInFuture;
        let cron_job = self.index.cron_job_mut(owner);
        match cron_job.record.status.last_schedule_time.filter(|last| *last > latest) {
            Some(last) => self.report_once(owner, reason, |_| {
                format!(
                    "status.lastScheduleTime {last} is in the future: no job starts before then; correct it in the status \
                     subresource"
                )
            }),
            None => cron_job.reported.remove(reason),
        }
    }

    /// Reports annotations of the template that its Jobs do not get, once for each schedule.
    pub(super) fn report_reserved_annotations(&mut self, owner: OwnerIndex) {
        if self.index.cron_job(owner).record.template.had_reserved_annotations {
            self.report_once(owner, EventReason::ReservedAnnotations, |_| {
                "jobTemplate annotations that begin with cronwheel.dev/ are reserved: jobs are created without them"
                    .to_owned()
            });
        }
    }

    /// Reports an annotation whose value is invalid, once until no annotation has one.
    pub(super) fn report_invalid_threshold(&mut self, owner: OwnerIndex) {
        let reason = EventReason::InvalidAnnotation;
        let cron_job = self.index.cron_job_mut(owner);
        match cron_job.record.trouble_thresholds.invalid() {
            Some(threshold) => self.report_once(owner, reason, |_| {
                format!(
                    "the value of the annotation {} is invalid: write a whole number of seconds from 1 to {}; the default \
                     applies",
                    threshold.annotation(),
                    u32::MAX
                )
            }),
            None => cron_job.reported.remove(reason),
        }
    }

    /// Reports the options whose value is invalid, once until one of them changes.
    pub(super) fn report_invalid_options(&mut self, owner: OwnerIndex) {
        let cron_job = self.index.cron_job_mut(owner);
        let invalid = &cron_job.record.schedule.options().invalid;
        if invalid.is_empty() || !cron_job.reported.insert(EventReason::InvalidOption) {
            return;
        }
        let messages: Vec<String> = invalid.iter().map(ToString::to_string).collect();
        for message in messages {
            self.emit_event(owner, EventReason::InvalidOption, message);
        }
    }

    /// Reports that the template is read from the API server for each run, once for each schedule.
    pub(super) fn report_template_not_kept(&mut self, owner: OwnerIndex) {
        if self.index.cron_job(owner).record.template.body.as_str().is_none() {
            self.report_once(owner, EventReason::TemplateNotKept, |_| {
                "the jobTemplate is not kept in memory, since the CronJobs of this namespace take too much: it is read again \
                 for each run"
                    .to_owned()
            });
        }
    }

    /// Reports problems of the schedule, once for each schedule (B-6.2, B-6.4, B-6.5, B-7.1).
    pub(super) fn report_schedule_problems(&mut self, owner: OwnerIndex, decision: &Decision) {
        let is_before_parsing = matches!(
            decision,
            Decision::Skip(SkipReason::Deleting | SkipReason::UnknownTimeZone(_) | SkipReason::Suspended)
        );
        if !is_before_parsing && self.index.cron_job(owner).record.schedule.names_zone_in_text() {
            self.report_once(owner, EventReason::UnsupportedSchedule, |record| {
                format!(
                    "CRON_TZ or TZ used in schedule {} is not officially supported, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details",
                    quote(&record.schedule.text)
                )
            });
        }
        match decision {
            Decision::Skip(SkipReason::UnknownTimeZone(error)) => {
                self.report_once(owner, EventReason::UnknownTimeZone, |record| {
                    let zone = quote(record.schedule.time_zone.as_deref().unwrap_or_default());
                    format!("invalid timeZone: {zone}: {error}")
                });
            }
            Decision::Skip(SkipReason::Unparseable(error)) => {
                self.report_once(owner, EventReason::UnparseableSchedule, |record| {
                    format!("unparseable schedule: {} : {error}", quote(&record.schedule.text))
                });
            }
            Decision::Skip(SkipReason::NeverRuns(error)) => {
                self.report_once(owner, EventReason::InvalidSchedule, |record| {
                    let schedule = &record.schedule;
                    if schedule.options().has_schedules {
                        let annotation = OptionName::Schedule.annotation();
                        format!("invalid schedule: annotation {annotation} : {error}")
                    } else {
                        format!("invalid schedule: {} : {error}", schedule.text)
                    }
                });
            }
            Decision::Skip(_) | Decision::Start { .. } => {}
        }
    }

    /// Emits an Event of this reason, unless it is marked as reported already.
    pub(super) fn report_once(
        &mut self,
        owner: OwnerIndex,
        reason: EventReason,
        message: impl FnOnce(&CronJobRecord) -> String,
    ) {
        let cron_job = self.index.cron_job_mut(owner);
        if cron_job.reported.insert(reason) {
            let message = message(&cron_job.record);
            self.emit_event(owner, reason, message);
        }
    }
}
