//! Invented CronJobs and instants for tests.

use jiff::Timestamp;

use super::facts::{CronJobFacts, Labels};
use crate::{
    schedule::{ConcurrencyPolicy, CronJobSchedule, Zone},
    shard::Uid,
};

/// Parses an instant.
pub(super) fn instant(text: &str) -> Timestamp {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A CronJob with the API server's defaults; `name` is `namespace/name`.
pub(super) fn cron_job(name: &str, schedule: &str, time_zone: Option<&str>) -> CronJobFacts {
    let (namespace, name) = name.split_once('/').expect("namespace/name");
    CronJobFacts {
        uid: Uid::new(&format!("uid of {namespace}/{name}")),
        namespace: namespace.into(),
        name: name.into(),
        labels: Labels::default(),
        created: instant("2026-01-01T00:00:00Z"),
        is_deleting: false,
        schedule: CronJobSchedule::new(schedule, time_zone, &Zone::utc()),
        starting_deadline_seconds: None,
        concurrency_policy: ConcurrencyPolicy::Allow,
        is_suspended: false,
        successful_jobs_history_limit: 3,
        failed_jobs_history_limit: 1,
        has_active_deadline: false,
        ttl_seconds_after_finished: None,
        last_schedule_time: None,
        last_successful_time: None,
        spec_changed: None,
        resumption: None,
    }
}
