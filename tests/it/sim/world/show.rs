//! The history of one CronJob as text, for the analysis of a failing seed.

use std::fmt::{self, Write as _};

use jiff::Timestamp;

use super::{CronJob, World};
use crate::sim::scenario::Scenario;

impl World {
    /// The history of the CronJobs with this name, with all disruptions.
    pub(in crate::sim) fn show(&self, name: &str, scenario: &Scenario) -> String {
        let mut lines: Vec<(Timestamp, String)> = Vec::new();
        for cron_job in self.cron_jobs.iter().filter(|cron_job| cron_job.name == name) {
            self.show_one(cron_job, &mut lines);
        }
        for life in &self.lives {
            lines.push((life.from, "a controller starts".to_owned()));
            lines.push((life.until, "the controller ends".to_owned()));
        }
        for disruption in &scenario.disruptions {
            lines.push((
                disruption.from,
                format!("{:?} until {}", disruption.kind, disruption.until),
            ));
        }
        lines.extend(self.freezes.iter().map(|freeze| (freeze.from, format!("{freeze:?}"))));
        lines.sort();
        let mut text = String::new();
        for (at, line) in lines {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{at} {line}");
        }
        text
    }

    fn show_one(&self, cron_job: &CronJob, lines: &mut Vec<(Timestamp, String)>) {
        let uid = &cron_job.uid;
        lines.push((cron_job.created, format!("created as {uid}")));
        lines.extend(cron_job.deleted.map(|at| (at, format!("{uid} deleted"))));
        lines.extend(cron_job.specs.iter().map(|(at, spec)| (*at, format!("{spec:?}"))));
        let jobs = self.jobs.iter().filter(|job| job.owner.as_ref() == Some(uid));
        for job in jobs {
            let name = &job.name;
            let token = job.token.map(|token| format!(" and token {token}")).unwrap_or_default();
            lines.push((job.created, format!("{name} created for {}{token}", OrNone(job.slot))));
            lines.extend(job.finished.map(|(at, finish)| (at, format!("{name} {finish:?}"))));
            lines.extend(
                job.deleted
                    .map(|deletion| (deletion.at, format!("{name} deleted by {:?}", deletion.by))),
            );
        }
        for status in &cron_job.statuses {
            let (last, success) = (OrNone(status.last_schedule_time), OrNone(status.last_successful_time));
            let answered = status
                .answered
                .map(|token| format!(", answered {token}"))
                .unwrap_or_default();
            lines.push((
                status.at,
                format!("status: last {last}, successful {success}{answered}"),
            ));
        }
    }
}

/// An instant, or "none".
struct OrNone(Option<Timestamp>);

impl fmt::Display for OrNone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(at) => at.fmt(formatter),
            None => formatter.write_str("none"),
        }
    }
}
