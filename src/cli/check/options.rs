//! CronJobs whose options change when something starts, and whether somebody ignores these options: the built-in controller
//! does, in a namespace that is not managed, and where it is not silenced.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{
    built_in::{status_writers, title},
    finding::{Finding, Names, counted},
    installation::{Managed, RECENT},
};
use crate::{
    kube_api::{NamespaceSelector, http::USER_AGENT, objects::decode::Decoder, other_controllers::StatusWriter},
    schedule::options::{OptionName, Options},
    shard::CronJobRecord,
};

const TITLE: &str = "options";

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
    /// Adds a CronJob, if it has such options.
    pub(super) fn add(&mut self, cron_job: &Value, known: &Known, now: Timestamp) {
        let Some(record) = with_options(cron_job) else { return };
        let options: Vec<&str> = annotations(&record).collect();
        if options.is_empty() {
            return;
        }
        self.n += 1;
        let text = || format!("{} ({})", title(cron_job), options.join(", "));
        if !known.is_managed {
            self.unmanaged.add(text);
            if self.unmanaged_namespaces.len() < Names::SHOWN_MAX {
                self.unmanaged_namespaces.insert(record.identity.namespace.to_string());
            }
        } else if known.has_job_of_other || has_status_of_other(cron_job, now) {
            self.beside.add(text);
        }
    }

    /// Judges whether cronwheel alone runs the CronJobs.
    pub(super) fn finding(&self, managed: &Managed) -> Finding {
        let cron_jobs = match self.n {
            0 => return Finding::fine(TITLE, "no CronJob has an option that changes when something starts"),
            n => format!(
                "{} with options that change when something starts",
                counted(n, "CronJob")
            ),
        };
        let (mut reasons, mut mends) = (Vec::new(), Vec::new());
        if !self.unmanaged.is_empty() {
            reasons.push(format!(
                "{} of them in namespaces that are not managed, where nobody follows these options: {}",
                self.unmanaged.len(),
                self.unmanaged
            ));
            mends.push(self.manage(managed));
        }
        if !self.beside.is_empty() {
            reasons.push(format!(
                "another controller, which ignores these options, wrote the status or created a Job of {} in the last hour: \
                 {}. It is the built-in one if it stands in, is not silenced, or ran the namespace until it was labelled",
                self.beside.len(),
                self.beside
            ));
            mends.push("cronwheel check --canary shows whether the built-in controller is silenced now".to_owned());
        }
        if reasons.is_empty() {
            return Finding::fine(TITLE, format!("{cron_jobs}, which cronwheel alone runs"));
        }
        Finding::warning(TITLE, format!("{cron_jobs}; {}", reasons.join("; ")), mends.join("; "))
    }

    /// Tells which options count only when cronwheel runs the CronJobs, before it is installed. A CronJob is managed if
    /// cronwheel wrote its last status.
    pub(super) fn finding_before_switch(&self) -> Finding {
        if self.unmanaged.is_empty() {
            let none = "no CronJob that cronwheel does not run has an option that changes when something starts";
            return Finding::fine(TITLE, none);
        }
        let cron_jobs = counted(self.unmanaged.len(), "CronJob");
        Finding::warning(
            TITLE,
            format!(
                "{cron_jobs} with options that change when something starts, which the built-in controller ignores until \
                 cronwheel manages their namespaces: {}",
                self.unmanaged
            ),
            format!(
                "install cronwheel, and {}",
                self.manage(&Managed::Selected(DEFAULT_SELECTOR.to_owned()))
            ),
        )
    }

    /// The command that lets cronwheel run them.
    fn manage(&self, managed: &Managed) -> String {
        let namespaces: Vec<&str> = self.unmanaged_namespaces.iter().map(String::as_str).collect();
        match managed {
            Managed::All => "cronwheel shards".to_owned(),
            Managed::Named(_) => format!("give the replicas --namespace {}", namespaces.join(" --namespace ")),
            Managed::Selected(selector) => match selector.parse::<NamespaceSelector>() {
                Ok(selector) => selector.label_command_for(&namespaces.join(" ")),
                Err(_) => format!("label the namespaces so that {selector} selects them"),
            },
        }
    }
}

/// The selector of the chart.
const DEFAULT_SELECTOR: &str = "cronwheel.dev/managed=true";

/// Whether cronwheel wrote the last status of a CronJob.
pub(super) fn is_run_by_cronwheel(cron_job: &Value) -> bool {
    let ours = USER_AGENT.split('/').next().unwrap_or_default();
    let last = status_writers(cron_job).into_iter().max_by_key(|(_, at)| *at);
    last.is_some_and(|(manager, _)| manager == ours)
}

/// The delay of the start of every run of a CronJob by the option `spread`, if it has one.
pub(super) fn offset(cron_job: &Value) -> SignedDuration {
    with_options(cron_job).map_or(SignedDuration::ZERO, |record| record.schedule.options().offset())
}

fn has_status_of_other(cron_job: &Value, now: Timestamp) -> bool {
    let writers = status_writers(cron_job).into_iter();
    let mut others = writers.filter_map(|(manager, at)| StatusWriter::other(&manager, at));
    others.any(|writer| now.duration_since(writer.at) < RECENT)
}

/// Whether the annotations of a CronJob may contain an option.
pub(super) fn has_options(cron_job: &Value) -> bool {
    let annotations = &cron_job["metadata"]["annotations"];
    annotations.is_object() && Options::may_be_in(&annotations.to_string())
}

/// Reads a CronJob that has any option. One that cannot be decoded runs nowhere.
fn with_options(cron_job: &Value) -> Option<CronJobRecord> {
    let record = has_options(cron_job).then(|| Decoder::default().cron_job(&cron_job.to_string()).ok());
    record.flatten()
}

fn annotations(record: &CronJobRecord) -> impl Iterator<Item = &'static str> {
    let options = record.schedule.options().of_starts().into_iter();
    options.map(OptionName::annotation)
}
