//! What controllers did in a namespace of the canary.

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    cli::check::built_in::{emitter, managers, slot_of, time},
    kube_api::other_controllers::StatusWriter,
};

/// The creator of a Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli::check) enum Creator {
    /// An installation of cronwheel.
    Cronwheel(String),
    /// Another controller, by its field manager.
    Other(String),
}

impl Creator {
    /// Reads the annotations of a Job, and otherwise the field manager that wrote its spec.
    pub(in crate::cli::check) fn of(job: &Value) -> Creator {
        let annotation = |name: &str| job["metadata"]["annotations"][name].as_str();
        if let Some(installation) = annotation("cronwheel.dev/created-by") {
            return Creator::Cronwheel(format!("cronwheel, installation {installation},"));
        }
        let is_spec = |entry: &Value| entry["subresource"].is_null();
        let manager = managers(job, is_spec).into_iter().next().map(|(manager, _)| manager);
        match manager {
            _ if annotation("cronwheel.dev/created-under").is_some() => Creator::Cronwheel("cronwheel".to_owned()),
            Some(manager) => Creator::Other(manager),
            None => Creator::Other("an unknown controller".to_owned()),
        }
    }
}

/// A Job of the CronJob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli::check) struct SeenJob {
    pub(super) name: String,
    pub(super) creator: Creator,
    /// The seconds from the slot to the creation.
    pub(super) seconds: i64,
}

/// What was left in a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::cli::check) struct Seen {
    /// The first Job, and one of another controller before one of cronwheel.
    pub(super) job: Option<SeenJob>,
    /// What another controller than cronwheel wrote apart from Jobs.
    pub(super) traces: Vec<String>,
}

impl Seen {
    pub(in crate::cli::check) fn of(jobs: &[Value], cron_jobs: &[Value], events: &[Value]) -> Seen {
        let is_other = |job: &SeenJob| matches!(job.creator, Creator::Other(_));
        let mut seen_jobs: Vec<SeenJob> = jobs.iter().map(seen_job).collect();
        seen_jobs.sort_by(|a, b| (!is_other(a), &a.name).cmp(&(!is_other(b), &b.name)));
        let is_status = |entry: &Value| entry["subresource"] == "status";
        let writers = cron_jobs.iter().flat_map(|cron_job| managers(cron_job, is_status));
        let others = writers.filter_map(|(manager, at)| StatusWriter::other(&manager, at));
        let mut traces: Vec<String> = others
            .map(|writer| format!("{} wrote the status of the CronJob", writer.manager))
            .collect();
        traces.extend(events.iter().filter_map(|event| {
            let manager = emitter(event)?;
            let reason = event["reason"].as_str().unwrap_or("?");
            Some(format!("{manager} emitted the Event {reason}"))
        }));
        traces.sort();
        traces.dedup();
        Seen {
            job: seen_jobs.into_iter().next(),
            traces,
        }
    }
}

fn seen_job(job: &Value) -> SeenJob {
    let created = time(&job["metadata"]["creationTimestamp"]).map(Timestamp::as_second);
    let slot = slot_of(job).map(Timestamp::as_second);
    SeenJob {
        name: job["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
        creator: Creator::of(job),
        seconds: created.zip(slot).map_or(0, |(created, slot)| created - slot),
    }
}
