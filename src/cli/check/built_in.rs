//! Evidence of the built-in controller, and the identity that an admission policy must name.
//!
//! The evidence is the field manager that wrote the status of CronJobs and created Jobs of slots, and Events. A user can
//! forge all of it, so it only informs.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::finding::{Finding, Unread};
use crate::{
    explain::calendar::span_text,
    kube_api::{
        objects::encode::EVENT_COMPONENT,
        other_controllers::{DECAY, StatusWriter},
    },
    shard::naming::is_any_job_name,
};

/// The maximum lead of the API server's clock. Later times are forged.
const AHEAD_MAX: SignedDuration = SignedDuration::from_mins(1);

/// Maximum number of field managers that are told apart. There are a handful.
const MANAGERS_MAX: usize = 16;

/// What another controller than cronwheel did last.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Trace {
    at: Timestamp,
    /// What was done: `created Job shop/report-29632920`.
    action: String,
}

/// The facts about the built-in controller.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// The newest trace by field manager.
    traces: BTreeMap<Box<str>, Trace>,
    /// The newest Event.
    event: Option<Timestamp>,
    /// The reasons why some evidence is missing.
    pub(super) unread: Vec<Unread>,
}

impl Evidence {
    /// Adds the last status write of a CronJob.
    pub(super) fn add_cron_job(&mut self, cron_job: &Value, now: Timestamp) {
        for (manager, at) in status_writers(cron_job) {
            self.add(&manager, at, now, || {
                format!("wrote the status of CronJob {}", title(cron_job))
            });
        }
    }

    /// Adds the creation of a Job of a slot.
    pub(super) fn add_job(&mut self, job: &Value, now: Timestamp) {
        let owners = job.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        let is_of_cron_job =
            |owner: &Value| owner["controller"] == true && owner["kind"] == "CronJob" && !owner["uid"].is_null();
        if !owners.into_iter().flatten().any(is_of_cron_job) || slot_of(job).is_none() {
            return;
        }
        // The manager that wrote the spec, and not the Job controller, which writes the status.
        let is_spec = |entry: &Value| entry["subresource"].is_null() && !entry["fieldsV1"]["f:spec"].is_null();
        for (manager, at) in managers(job, is_spec) {
            self.add(&manager, at, now, || format!("created Job {}", title(job)));
        }
    }

    fn add(&mut self, manager: &str, at: Timestamp, now: Timestamp, action: impl FnOnce() -> String) {
        let Some(writer) = StatusWriter::other(manager, at) else {
            return;
        };
        let has_room = self.traces.contains_key(&writer.manager) || self.traces.len() < MANAGERS_MAX;
        let is_newest = self.traces.get(&writer.manager).is_none_or(|trace| trace.at < at);
        if has_room && is_newest && at < now + AHEAD_MAX {
            self.traces.insert(writer.manager, Trace { at, action: action() });
        }
    }

    /// Whether no CronJob and no Job shows a controller.
    pub(super) fn is_without_trace(&self) -> bool {
        self.traces.is_empty()
    }

    /// Adds an Event of the built-in controller.
    pub(super) fn add_event(&mut self, event: &Value, now: Timestamp) {
        if emitter(event).is_none() {
            return;
        }
        let times = ["eventTime", "lastTimestamp"].map(|member| time(&event[member]));
        let newest = times
            .into_iter()
            .chain([self.event])
            .flatten()
            .filter(|at| *at < now + AHEAD_MAX);
        self.event = newest.max();
    }

    /// Says whether the built-in controller, or one with another field manager, works on CronJobs.
    pub(super) fn finding(&self, lease: &Result<Option<HeldLease>, Unread>, now: Timestamp) -> Finding {
        const TITLE: &str = "built-in controller";
        let lease = lease.as_ref().ok().and_then(Option::as_ref);
        let lease = lease.map(|lease| lease.text(now)).unwrap_or_default();
        let newest = self.traces.iter().max_by_key(|(_, trace)| trace.at);
        let Some((manager, trace)) = newest else {
            if let Some(unread) = self.unread.first() {
                return Finding::unread(TITLE, unread);
            }
            if let Some(at) = self.event {
                return Finding::fine(TITLE, format!("emitted an Event {} ago{lease}", span_text(at, now)));
            }
            return Finding::warning(
                TITLE,
                format!("no CronJob and no Job shows a controller that runs CronJobs{lease}"),
                "create a CronJob that runs every minute and repeat the check after a minute",
            );
        };
        let is_active = trace.at > now - DECAY;
        let age = span_text(trace.at, now);
        let action = format!("{manager} {} {age} ago{lease}", trace.action);
        let reason = if is_active {
            format!("at work: {action}")
        } else {
            format!("not seen in the last {} minutes: {action}", DECAY.as_mins())
        };
        Finding::fine(TITLE, reason)
    }
}

/// A Lease with a holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HeldLease {
    holder: String,
    renewed: Option<Timestamp>,
}

impl HeldLease {
    /// Reads a Lease; `None` if it has no holder.
    pub(super) fn read(lease: &Value) -> Option<HeldLease> {
        let holder = lease["spec"]["holderIdentity"]
            .as_str()
            .filter(|holder| !holder.is_empty())?;
        Some(HeldLease {
            holder: holder.split('_').next().unwrap_or(holder).to_owned(),
            renewed: time(&lease["spec"]["renewTime"]),
        })
    }

    fn text(&self, now: Timestamp) -> String {
        let renewed = self.renewed.map(|at| format!(", renewed {} ago", span_text(at, now)));
        format!(
            "; Lease kube-system/kube-controller-manager of {}{}",
            self.holder,
            renewed.unwrap_or_default()
        )
    }
}

/// Says by which user the built-in controller sends its requests. `has_account` is whether its `ServiceAccount` exists.
pub(super) fn identity(has_account: &Result<bool, Unread>) -> Finding {
    const TITLE: &str = "built-in identity";
    match has_account {
        Ok(true) => Finding::fine(
            TITLE,
            "probably system:serviceaccount:kube-system:cronjob-controller, since this ServiceAccount exists; the \
             admission policy names both possible users",
        ),
        Ok(false) => Finding::fine(
            TITLE,
            "probably system:kube-controller-manager, which other built-in controllers share, since there is no \
             ServiceAccount kube-system/cronjob-controller; the admission policy names both possible users",
        ),
        Err(unread) => Finding::unread(TITLE, unread),
    }
}

/// Returns the field manager that wrote an Event about a CronJob, unless it is cronwheel, which names the same component.
pub(super) fn emitter(event: &Value) -> Option<Box<str>> {
    if event["source"]["component"] != EVENT_COMPONENT && event["reportingComponent"] != EVENT_COMPONENT {
        return None;
    }
    let writers = managers(event, |_| true).into_iter();
    let mut others = writers.filter_map(|(manager, at)| StatusWriter::other(&manager, at));
    others.next().map(|writer| writer.manager)
}

/// Returns the managers and times of the entries of `managedFields` that fit.
pub(super) fn managers(object: &Value, fits: impl Fn(&Value) -> bool) -> Vec<(String, Timestamp)> {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let entries = entries.into_iter().flatten().filter(|entry| fits(entry));
    entries
        .filter_map(|entry| Some((entry["manager"].as_str()?.to_owned(), time(&entry["time"])?)))
        .collect()
}

/// Returns the managers that wrote the status of a CronJob, and the time of the last write of each.
pub(super) fn status_writers(cron_job: &Value) -> Vec<(String, Timestamp)> {
    managers(cron_job, |entry| entry["subresource"] == "status")
}

/// Returns the field manager of another controller than cronwheel that wrote the status of a CronJob since an instant.
pub(super) fn other_status_writer(cron_job: &Value, since: Timestamp) -> Option<Box<str>> {
    let writers = status_writers(cron_job).into_iter();
    let others = writers.filter_map(|(manager, at)| StatusWriter::other(&manager, at));
    let last = others.filter(|writer| writer.at > since).max_by_key(|writer| writer.at);
    last.map(|writer| writer.manager)
}

/// The slot of a Job, if its name and its annotation agree.
pub(super) fn slot_of(job: &Value) -> Option<Timestamp> {
    let annotation = &job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"];
    let slot = time(annotation)?;
    let name = job["metadata"]["name"].as_str()?;
    is_any_job_name(name, slot).then_some(slot)
}

pub(super) fn time(text: &Value) -> Option<Timestamp> {
    text.as_str()?.parse().ok()
}

/// The namespace and the name of an object.
pub(super) fn title(object: &Value) -> String {
    let member = |name: &str| object["metadata"][name].as_str().unwrap_or_default();
    format!("{}/{}", member("namespace"), member("name"))
}
