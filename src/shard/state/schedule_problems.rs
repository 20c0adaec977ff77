//! Reports problems of a schedule, once for each schedule (B-6.2, B-6.4, B-6.5, B-7.1).

use jiff::Timestamp;

use super::ShardState;
use crate::{
    schedule::{
        policy::{Decision, SkipReason},
        quote,
    },
    shard::{effect::EventReason, index::OwnerIndex},
};

impl ShardState {
    /// Reports a `lastScheduleTime` in the future, once for each schedule. Nothing is due before that time (B-9.1).
    pub(super) fn report_future_cursor(&mut self, owner: OwnerIndex, now: Timestamp) {
        let latest = self.latest_slot_of_jobs(now);
        let Some(cron_job) = self.index.cron_job_mut(owner) else {
            return;
        };
        let future = cron_job.record.status.last_schedule_time.filter(|last| *last > latest);
        let was_reported = std::mem::replace(&mut cron_job.reported.future_cursor, future.is_some());
        if let Some(last) = future
            && !was_reported
        {
            self.emit_event(
                owner,
                EventReason::LastScheduleTimeInFuture,
                format!(
                    "status.lastScheduleTime {last} is in the future: no job starts before then; correct it in the status \
                     subresource"
                ),
            );
        }
    }

    /// Reports annotations of the template that its Jobs do not get, once for each schedule.
    pub(super) fn report_reserved_annotations(&mut self, owner: OwnerIndex) {
        let Some(cron_job) = self.index.cron_job_mut(owner) else {
            return;
        };
        if cron_job.record.template.had_reserved_annotations
            && !std::mem::replace(&mut cron_job.reported.reserved_annotations, true)
        {
            let message =
                "jobTemplate annotations that begin with cronwheel.dev/ are reserved: jobs are created without them";
            self.emit_event(owner, EventReason::ReservedAnnotations, message.to_owned());
        }
    }

    /// Reports an annotation whose value is invalid, once until no annotation has one.
    pub(super) fn report_invalid_threshold(&mut self, owner: OwnerIndex) {
        let Some(cron_job) = self.index.cron_job_mut(owner) else {
            return;
        };
        let invalid = cron_job.record.trouble_thresholds.invalid();
        let was_reported = std::mem::replace(&mut cron_job.reported.invalid_threshold, invalid.is_some());
        if let Some(threshold) = invalid
            && !was_reported
        {
            let message = format!(
                "the value of the annotation {} is invalid: write a whole number of seconds from 1 to {}; the default applies",
                threshold.annotation(),
                u32::MAX
            );
            self.emit_event(owner, EventReason::InvalidAnnotation, message);
        }
    }

    /// Reports that the template is read from the API server for each run, once for each schedule.
    pub(super) fn report_template_not_kept(&mut self, owner: OwnerIndex) {
        let Some(cron_job) = self.index.cron_job_mut(owner) else {
            return;
        };
        if cron_job.record.template.body.as_str().is_none()
            && !std::mem::replace(&mut cron_job.reported.template_not_kept, true)
        {
            let message = "the jobTemplate is not kept in memory, since the CronJobs of this namespace take too much: it \
                           is read again for each run";
            self.emit_event(owner, EventReason::TemplateNotKept, message.to_owned());
        }
    }

    /// Reports problems of the schedule, once for each schedule (B-6.2, B-6.4, B-6.5, B-7.1).
    pub(super) fn report_schedule_problems(&mut self, owner: OwnerIndex, decision: &Decision) {
        let Some(cron_job) = self.index.cron_job_mut(owner) else {
            return;
        };
        let schedule = &cron_job.record.schedule;
        let text = &schedule.text;
        let reported = &mut cron_job.reported;
        let mut problems = Vec::new();
        let is_before_parsing = matches!(
            decision,
            Decision::Skip(SkipReason::Deleting | SkipReason::UnknownTimeZone(_) | SkipReason::Suspended)
        );
        if schedule.names_zone_in_text()
            && !is_before_parsing
            && !std::mem::replace(&mut reported.unsupported_schedule, true)
        {
            problems.push((EventReason::UnsupportedSchedule, format!(
                "CRON_TZ or TZ used in schedule {} is not officially supported, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details",
                quote(text)
            )));
        }
        match decision {
            Decision::Skip(SkipReason::UnknownTimeZone(error)) if !reported.unknown_time_zone => {
                reported.unknown_time_zone = true;
                let zone = quote(schedule.time_zone.as_deref().unwrap_or_default());
                problems.push((
                    EventReason::UnknownTimeZone,
                    format!("invalid timeZone: {zone}: {error}"),
                ));
            }
            Decision::Skip(SkipReason::Unparseable(error)) if !reported.unparseable_schedule => {
                reported.unparseable_schedule = true;
                let message = format!("unparseable schedule: {} : {error}", quote(text));
                problems.push((EventReason::UnparseableSchedule, message));
            }
            Decision::Skip(SkipReason::NeverRuns(error)) if !reported.invalid_schedule => {
                reported.invalid_schedule = true;
                problems.push((
                    EventReason::InvalidSchedule,
                    format!("invalid schedule: {text} : {error}"),
                ));
            }
            Decision::Skip(_) | Decision::Start { .. } => {}
        }
        for (reason, message) in problems {
            self.emit_event(owner, reason, message);
        }
    }
}
