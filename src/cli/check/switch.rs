//! What the switch to cronwheel would do to the CronJobs of a cluster. It reads no clock and sends no request.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::finding::{Finding, Names, counted};
use crate::{
    explain::{Outlook, calendar::span_text},
    schedule::{CronJobSchedule, Schedule, Zone},
    shard::{CronJobRecord, EventReason},
};

/// The maximum length of a CronJob's name, which leaves room for the slot in the Job's name.
const NAME_MAX_CHARS: usize = 52;

/// The built-in controller loses runs that it would start later than the deadline. It is often some seconds late.
const DEADLINE_SECONDS_MIN: i64 = 10;

/// The maximum lead of the API server's clock.
const AHEAD_MAX: SignedDuration = SignedDuration::from_secs(2);

/// The Events that a more precise check reports.
const REPORTED_OTHERWISE: [EventReason; 9] = [
    EventReason::UnknownTimeZone,
    EventReason::UnsupportedSchedule,
    EventReason::UnparseableSchedule,
    EventReason::UnParseableCronJobSchedule,
    EventReason::InvalidSchedule,
    EventReason::UndecodableCronJob,
    EventReason::ReservedAnnotations,
    // Slots since the lists began are in the future of the evaluation.
    EventReason::LastScheduleTimeInFuture,
    // A manual run belongs to nobody under both controllers.
    EventReason::UnexpectedJob,
];

/// The CronJobs of a cluster, counted and sorted by what concerns them.
#[derive(Debug, Default)]
pub(super) struct Switch {
    n_cron_jobs: usize,
    n_suspended: usize,
    starts: Names,
    /// Namespace and name of the first one that starts.
    first_start: Option<(String, String)>,
    replaced: Names,
    n_expired: usize,
    zoneless: Zoneless,
    short_lived: Names,
    unfit: Names,
    long_names: Names,
    short_deadlines: Names,
    below_a_minute: Names,
    reserved_annotations: Names,
    foreign_jobs: Names,
    future_cursors: Names,
    warnings: BTreeMap<&'static str, Names>,
}

/// Schedules without a time zone.
#[derive(Debug, Default)]
struct Zoneless {
    n: usize,
    /// The number whose last run is an activation in the default zone, of the built-in controller or of cronwheel.
    n_fitting: usize,
    /// Those whose last run is not.
    misfits: Names,
}

impl Switch {
    /// Adds a CronJob. `now` is the time after it was read.
    pub(super) fn add(&mut self, outlook: &Outlook, now: Timestamp) {
        let title = || outlook.title();
        self.n_cron_jobs += 1;
        self.n_expired += outlook.n_expired;
        if let Some(slot) = outlook.start {
            let age = span_text(slot, now);
            self.starts.add(|| format!("{} (due {age} ago)", title()));
            self.first_start
                .get_or_insert_with(|| (outlook.namespace.clone(), outlook.name.clone()));
        }
        if outlook.n_replaced > 0 {
            self.replaced.add(title);
        }
        if let Some(problem) = &outlook.problem {
            self.unfit.add(|| format!("{} ({problem})", title()));
        }
        if outlook.has_foreign_jobs {
            self.foreign_jobs.add(title);
        }
        // A CronJob has an Event for each annotation.
        let reasons = outlook
            .warnings
            .iter()
            .filter(|reason| !REPORTED_OTHERWISE.contains(reason));
        let reasons: BTreeSet<&str> = reasons.map(|reason| reason.as_str()).collect();
        for reason in reasons {
            self.warnings.entry(reason).or_default().add(title);
        }
        if let Some(record) = &outlook.record {
            self.add_record(record, title, now);
        }
    }

    fn add_record(&mut self, record: &CronJobRecord, title: impl Fn() -> String, now: Timestamp) {
        self.n_suspended += usize::from(record.is_suspended);
        self.zoneless.add(record, &title);
        let is_future = |cursor: Timestamp| cursor.duration_since(now) > AHEAD_MAX;
        let concerns = [
            (&mut self.short_lived, record.has_short_lived_jobs()),
            (&mut self.long_names, record.identity.name.len() > NAME_MAX_CHARS),
            (&mut self.short_deadlines, has_short_deadline(record)),
            (&mut self.below_a_minute, is_below_a_minute(record)),
            (&mut self.reserved_annotations, record.template.had_reserved_annotations),
            (
                &mut self.future_cursors,
                record.status.last_schedule_time.is_some_and(is_future),
            ),
        ];
        for (names, is_concerned) in concerns {
            if is_concerned {
                names.add(&title);
            }
        }
    }

    /// Returns the findings. `zone` is the default zone.
    pub(super) fn findings(&self, zone: &Zone) -> Vec<Finding> {
        let mut findings = vec![self.count(), self.start(), self.delete()];
        findings.push(self.zoneless.finding(zone));
        findings.push(self.short_lived());
        findings.push(self.fitness());
        let differences = self.differences();
        if differences.is_empty() {
            findings.push(Finding::fine(
                "differences",
                "no other difference of docs/reference/differences.md concerns a CronJob here",
            ));
        }
        findings.extend(differences);
        findings
    }

    fn count(&self) -> Finding {
        let suspended = match self.n_suspended {
            0 => String::new(),
            n => format!(", {n} of them suspended"),
        };
        Finding::fine(
            "CronJobs",
            format!("{}{suspended}", counted(self.n_cron_jobs, "CronJob")),
        )
    }

    fn start(&self) -> Finding {
        const TITLE: &str = "starts at once";
        let Some((namespace, name)) = &self.first_start else {
            return Finding::fine(TITLE, "no CronJob has a missed run that cronwheel would start at once");
        };
        Finding::warning(
            TITLE,
            format!(
                "{} would start a Job at once, each for its latest missed run: {}",
                counted(self.starts.len(), "CronJob"),
                self.starts
            ),
            format!(
                "kubectl -n {namespace} patch cronjob {name} -p '{{\"spec\":{{\"suspend\":true}}}}' for each whose missed \
                 run is not wanted; cronwheel explain {name} -n {namespace} says why it starts"
            ),
        )
    }

    fn delete(&self) -> Finding {
        const TITLE: &str = "deletes at once";
        let expired = match self.n_expired {
            0 => "no finished Job is beyond a history limit".to_owned(),
            1 => "1 finished Job is beyond a history limit and would be deleted".to_owned(),
            n => format!("{n} finished Jobs are beyond a history limit and would be deleted"),
        };
        if self.replaced.is_empty() {
            return Finding::fine(TITLE, expired);
        }
        Finding::warning(
            TITLE,
            format!(
                "{} with concurrencyPolicy Replace would delete running Jobs for their latest missed run: {}; {expired}",
                counted(self.replaced.len(), "CronJob"),
                self.replaced
            ),
            "suspend these CronJobs until their Jobs have ended, or accept that their Jobs are replaced",
        )
    }

    fn short_lived(&self) -> Finding {
        const TITLE: &str = "short-lived Jobs";
        if self.short_lived.is_empty() {
            return Finding::fine(TITLE, "every finished Job is kept for at least a minute");
        }
        Finding::warning(
            TITLE,
            format!(
                "{} with a history limit of 0 or with ttlSecondsAfterFinished under 60: {}. If the switch falls between \
                 the end of a Job and the write of its run to lastScheduleTime, that run starts a second time",
                counted(self.short_lived.len(), "CronJob"),
                self.short_lived
            ),
            "switch their namespaces between two runs, or raise the limits to 1 and the TTL to 60 for the switch",
        )
    }

    fn fitness(&self) -> Finding {
        const TITLE: &str = "can run";
        if self.unfit.is_empty() && self.long_names.is_empty() {
            return Finding::fine(TITLE, "every CronJob can be decoded and has a schedule that runs");
        }
        let mut reasons = Vec::new();
        if !self.unfit.is_empty() {
            let n = counted(self.unfit.len(), "CronJob");
            reasons.push(format!("{n} would never run: {}", self.unfit));
        }
        if !self.long_names.is_empty() {
            let n = counted(self.long_names.len(), "CronJob");
            let names = &self.long_names;
            reasons.push(format!(
                "{n} with a name of more than {NAME_MAX_CHARS} characters, so that the names of its Jobs are refused: {names}"
            ));
        }
        Finding::warning(
            TITLE,
            reasons.join("; "),
            "correct or delete them; they do not run under the built-in controller either",
        )
    }

    /// The rows of `docs/reference/differences.md` that concern an object.
    fn differences(&self) -> Vec<Finding> {
        let names = [
            &self.short_deadlines,
            &self.below_a_minute,
            &self.reserved_annotations,
            &self.foreign_jobs,
            &self.future_cursors,
        ];
        let concerned = DIFFERENCES.iter().zip(names).filter(|(_, names)| !names.is_empty());
        let mut findings: Vec<Finding> = concerned.map(|(row, names)| row.finding(names)).collect();
        if !self.warnings.is_empty() {
            let all = self.warnings.iter();
            let all = all.map(|(reason, names)| format!("{reason} on {names}"));
            let all = all.collect::<Vec<_>>().join("; ");
            findings.push(Finding::warning(
                "Warning Events",
                format!("cronwheel would emit at once: {all}"),
                "cronwheel explain NAME -n NAMESPACE says why; docs/operate/running.md has the meaning",
            ));
        }
        findings
    }
}

/// A row of `docs/reference/differences.md`.
struct Difference {
    title: &'static str,
    /// What the CronJobs have, and what follows.
    what: &'static str,
    mend: &'static str,
}

impl Difference {
    fn finding(&self, names: &Names) -> Finding {
        let reason = format!("{} {}: {names}", counted(names.len(), "CronJob"), self.what);
        Finding::warning(self.title, reason, self.mend)
    }
}

const DIFFERENCES: [Difference; 5] = [
    Difference {
        title: "short deadlines",
        what: "with a startingDeadlineSeconds below 10 s or below the period of @every, which cronwheel runs on time and the \
               built-in controller starts rarely or never",
        mend: "suspend those that must not run more often than today (rule B-9.7)",
    },
    Difference {
        title: "more than once a minute",
        what: "with @every below a minute, which start at most one Job a minute under both controllers",
        mend: "write a period of whole minutes",
    },
    Difference {
        title: "reserved annotations",
        what: "with jobTemplate annotations under cronwheel.dev/, which cronwheel leaves out of their Jobs",
        mend: "rename these annotations (rule B-11.3)",
    },
    Difference {
        title: "foreign Jobs",
        what: "named as controller by Jobs of other namespaces, which cronwheel does not count",
        mend: "correct the owner references of these Jobs (rule B-3.2)",
    },
    Difference {
        title: "future runs",
        what: "with a lastScheduleTime in the future, before which nothing runs under both controllers",
        mend: "delete and create them again, or wait (rule B-9.1)",
    },
];

impl Zoneless {
    /// Compares the last run with `spec.schedule`, which the built-in controller runs, and with what the options make of it,
    /// if it has no time zone. An interval has no zone.
    fn add(&mut self, record: &CronJobRecord, title: impl FnOnce() -> String) {
        let schedule = &record.schedule;
        let Ok(parsed) = &schedule.parsed else { return };
        if schedule.time_zone.is_some() || schedule.names_zone_in_text() || parsed.is_every() {
            return;
        }
        self.n += 1;
        let Some(last) = record.status.last_schedule_time else {
            return;
        };
        // A user may have written any time.
        let Ok(before) = last.checked_sub(SignedDuration::from_secs(1)) else {
            return;
        };
        let of_field = CronJobSchedule::new(&schedule.text, None, &schedule.default_zone);
        let Ok(of_field) = &of_field.parsed else { return };
        let is_activation = |parsed: &Schedule| parsed.next_after(before, &schedule.default_zone) == Some(last);
        if is_activation(of_field) || is_activation(parsed) {
            self.n_fitting += 1;
        } else if !of_field.is_every() {
            self.misfits.add(title);
        }
    }

    fn finding(&self, zone: &Zone) -> Finding {
        const TITLE: &str = "time zones";
        let zone = zone.name();
        let n = counted(self.n, "schedule");
        if self.n == 0 {
            return Finding::fine(TITLE, "no schedule depends on the zone of the controller");
        }
        if !self.misfits.is_empty() {
            return Finding::warning(
                TITLE,
                format!(
                    "{} without spec.timeZone ran last at a time that is not in the schedule in {zone}: {}. The built-in \
                     controller runs in another zone, or the schedule was changed since",
                    counted(self.misfits.len(), "CronJob"),
                    self.misfits
                ),
                "set controller.defaultTimeZone of the chart to the zone of kube-controller-manager, and repeat the check \
                 with --default-time-zone (rule B-7.2)",
            );
        }
        if self.n_fitting == 0 {
            return Finding::warning(
                TITLE,
                format!(
                    "{n} without spec.timeZone would run in {zone}; no run of them shows the zone of the built-in \
                     controller"
                ),
                "compare with the zone of kube-controller-manager (rule B-7.2)",
            );
        }
        Finding::fine(
            TITLE,
            format!("{n} without spec.timeZone would run in {zone}, in which their last runs fit"),
        )
    }
}

/// Whether the built-in controller loses runs to the deadline (B-9.7).
fn has_short_deadline(record: &CronJobRecord) -> bool {
    let Some(deadline) = record.starting_deadline_seconds else {
        return false;
    };
    deadline < DEADLINE_SECONDS_MIN || period_seconds(record).is_some_and(|period| deadline < period)
}

/// Whether slots share a minute, and so the name of a Job.
fn is_below_a_minute(record: &CronJobRecord) -> bool {
    period_seconds(record).is_some_and(|period| period < 60)
}

/// The period of `@every`.
fn period_seconds(record: &CronJobRecord) -> Option<i64> {
    let parsed = record.schedule.parsed.as_ref().ok()?;
    let next = parsed
        .is_every()
        .then(|| parsed.next_after(Timestamp::UNIX_EPOCH, &record.schedule.default_zone));
    Some(next??.as_second())
}
