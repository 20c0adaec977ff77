//! CronJobs whose options change when something starts, and whether somebody ignores these options: the built-in controller
//! does, in a namespace that is not managed, and where it is not silenced. An option may be a default of the namespace.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{
    annotations::Ineffective,
    built_in::{other_status_writer, status_writers, title},
    finding::{Finding, Names, Unread, counted},
    installation::{Managed, RECENT},
};
use crate::{
    explain::GivenNamespaces,
    kube_api::{http::USER_AGENT, objects::decode::Decoder},
    schedule::options::{InvalidOption, Options},
    shard::hash::spread_hash,
};

const TITLE: &str = "options";

/// The defaults of namespaces, with which the options of CronJobs are read.
#[derive(Debug, Default)]
pub(super) struct Defaults {
    namespaces: GivenNamespaces,
    /// Why they are not known.
    unread: Option<Unread>,
    /// The namespaces with annotations that have no effect.
    pub(super) ineffective: Ineffective,
}

impl Defaults {
    /// Reads the annotations of these namespaces.
    pub(super) fn new(namespaces: &Result<Vec<Value>, Unread>) -> Defaults {
        let mut defaults = Defaults {
            unread: namespaces.as_ref().err().cloned(),
            ..Defaults::default()
        };
        for namespace in namespaces.iter().flatten() {
            defaults.namespaces.take(namespace);
            defaults.ineffective.add_namespace(namespace);
        }
        defaults
    }

    /// Of replicas that do not select namespaces by label: the annotations of these namespaces have no effect.
    pub(super) fn without_effect(namespaces: &Result<Vec<Value>, Unread>) -> Defaults {
        let mut defaults = Defaults::default();
        for namespace in namespaces.iter().flatten() {
            defaults.ineffective.add_unread_namespace(namespace);
        }
        defaults
    }

    /// Reads a CronJob. `None` without an option that changes when something starts. One that cannot be decoded runs
    /// nowhere.
    pub(super) fn read(&self, cron_job: &Value) -> Option<TimedCronJob> {
        let namespace = cron_job["metadata"]["namespace"].as_str().unwrap_or_default();
        let annotations = &cron_job["metadata"]["annotations"];
        let has_options = annotations.is_object() && Options::may_be_in(&annotations.to_string());
        if !has_options && !self.namespaces.has_defaults(namespace) {
            return None;
        }
        let mut record = Decoder::default().cron_job(&cron_job.to_string()).ok()?;
        let hash = spread_hash(&record.identity.uid);
        self.namespaces.inherit(namespace, &mut record.schedule, hash);
        let options = record.schedule.options();
        let names = options.of_starts().into_iter().map(|option| {
            let annotation = option.annotation();
            let is_invalid = |own: &InvalidOption| own.option == option && !own.is_of_namespace;
            if annotations.get(annotation).is_some() && !options.invalid.iter().any(is_invalid) {
                annotation.to_owned()
            } else {
                format!("{annotation} of the namespace")
            }
        });
        let names: Vec<String> = names.collect();
        (!names.is_empty()).then(|| TimedCronJob {
            object: json!({"metadata": cron_job["metadata"]}),
            options: names.join(", "),
            offset: options.offset(),
        })
    }
}

/// A CronJob with options that change when something starts.
#[derive(Debug)]
pub(super) struct TimedCronJob {
    /// The CronJob, without its spec and its status.
    pub(super) object: Value,
    /// The annotations.
    options: String,
    /// The delay of the start of every run by the option `spread`.
    pub(super) offset: SignedDuration,
}

/// CronJobs with options that change when something starts.
#[derive(Debug, Default)]
pub(super) struct TimedCronJobs {
    n: usize,
    unmanaged: Names,
    /// The namespaces of the first of them.
    unmanaged_namespaces: BTreeSet<String>,
    beside: Names,
}

/// What is known of a CronJob.
pub(super) struct Known {
    pub(super) is_managed: bool,
    /// Whether another controller created one of its Jobs.
    pub(super) has_job_of_other: bool,
}

impl TimedCronJobs {
    /// Adds a CronJob.
    pub(super) fn add(&mut self, cron_job: &TimedCronJob, known: &Known, now: Timestamp) {
        let TimedCronJob { object, options, .. } = cron_job;
        self.n += 1;
        let text = || format!("{} ({options})", title(object));
        if !known.is_managed {
            self.unmanaged.add(text);
            if self.unmanaged_namespaces.len() < Names::SHOWN_MAX {
                let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
                self.unmanaged_namespaces.insert(namespace.to_owned());
            }
        } else if known.has_job_of_other || other_status_writer(object, now - RECENT).is_some() {
            self.beside.add(text);
        }
    }

    /// Judges whether cronwheel alone runs the CronJobs.
    pub(super) fn finding(&self, managed: &Managed, defaults: &Defaults) -> Finding {
        let cron_jobs = match self.n {
            0 => "no CronJob has an option that changes when something starts".to_owned(),
            n => format!(
                "{} with options that change when something starts",
                counted(n, "CronJob")
            ),
        };
        let mut reasons = Reasons::default();
        if !self.unmanaged.is_empty() {
            reasons.add(
                format!(
                    "{} of them in namespaces that are not managed, where nobody follows these options: {}",
                    self.unmanaged.len(),
                    self.unmanaged
                ),
                managed.manage_command(&self.unmanaged_namespaces),
            );
        }
        if !self.beside.is_empty() {
            reasons.add(
                format!(
                    "another controller, which ignores these options, wrote the status or created a Job of {} in the last \
                     hour: {}. It is the built-in one if it stands in, is not silenced, or ran the namespace until it was \
                     labelled",
                    self.beside.len(),
                    self.beside
                ),
                "cronwheel check --canary shows whether the built-in controller is silenced now".to_owned(),
            );
        }
        let is_ours = self.n > 0 && reasons.is_empty();
        let ours = if is_ours { ", which cronwheel alone runs" } else { "" };
        reasons.finding(cron_jobs + ours, defaults)
    }

    /// Tells which options count only when cronwheel runs the CronJobs, before it is installed. A CronJob is managed if
    /// cronwheel wrote its last status.
    pub(super) fn finding_before_switch(&self, defaults: &Defaults) -> Finding {
        if self.unmanaged.is_empty() {
            let none = "no CronJob that cronwheel does not run has an option that changes when something starts";
            return Reasons::default().finding(none.to_owned(), defaults);
        }
        let mut reasons = Reasons::default();
        reasons.mends.push(format!(
            "install cronwheel, and {}",
            Managed::of_chart().manage_command(&self.unmanaged_namespaces)
        ));
        let cron_jobs = counted(self.unmanaged.len(), "CronJob");
        let cron_jobs = format!(
            "{cron_jobs} with options that change when something starts, which the built-in controller ignores until \
             cronwheel manages their namespaces: {}",
            self.unmanaged
        );
        reasons.finding(cron_jobs, defaults)
    }
}

/// What is to be read about the options, and what mends it.
#[derive(Debug, Default)]
struct Reasons {
    reasons: Vec<String>,
    mends: Vec<String>,
}

impl Reasons {
    fn add(&mut self, reason: String, mend: String) {
        self.reasons.push(reason);
        self.mends.push(mend);
    }

    fn is_empty(&self) -> bool {
        self.reasons.is_empty()
    }

    /// The finding about these CronJobs, which also says if the options of namespaces are not known.
    fn finding(mut self, cron_jobs: String, defaults: &Defaults) -> Finding {
        if let Some(unread) = &defaults.unread {
            self.add(format!("defaults and freezes of namespaces {unread}"), unread.mend());
        }
        self.reasons.insert(0, cron_jobs);
        let reason = self.reasons.join("; ");
        if self.mends.is_empty() {
            Finding::fine(TITLE, reason)
        } else {
            Finding::warning(TITLE, reason, self.mends.join("; "))
        }
    }
}

/// Whether cronwheel wrote the last status of a CronJob.
pub(super) fn is_run_by_cronwheel(cron_job: &Value) -> bool {
    let ours = USER_AGENT.split('/').next().unwrap_or_default();
    let last = status_writers(cron_job).into_iter().max_by_key(|(_, at)| *at);
    last.is_some_and(|(manager, _)| manager == ours)
}
