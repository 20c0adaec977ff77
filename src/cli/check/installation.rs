//! The state of a running installation: replicas, leaders, managed namespaces and recent runs.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{
    built_in::{other_status_writer, slot_of, time, title},
    finding::{Finding, Names, Unread, counted},
    requirements::Requirements,
};
use crate::{
    cli::shards::{Listing, MemberRow, MemberState},
    coordination::is_dns_label,
    explain::calendar::duration_text,
    kube_api::{NamespaceSelector, objects::encode::BACKFILL},
};

/// How long ago runs began that are judged.
pub(super) const RECENT: SignedDuration = SignedDuration::from_hours(1);

/// A Job that is created later than this after its slot is late. Creation times have whole seconds.
const LATE: SignedDuration = SignedDuration::from_secs(10);

/// Judges whether replicas take shards.
pub(super) fn replicas(listing: &Listing, now: Timestamp) -> Finding {
    const TITLE: &str = "replicas";
    const MEND: &str = "cronwheel shards, and kubectl -n NAMESPACE get pods -l app.kubernetes.io/name=cronwheel";
    let is_present = |row: &&MemberRow| !matches!(row.state, MemberState::Left | MemberState::Evicted { .. });
    let is_at_work = |row: &MemberRow| row.state == MemberState::Takes && !row.is_silent(now);
    let present: Vec<&MemberRow> = listing.members.values().filter(is_present).collect();
    let (at_work, others): (Vec<&MemberRow>, Vec<&MemberRow>) = present.into_iter().partition(|row| is_at_work(row));
    let troubles: Names = others.iter().map(|row| trouble(row, now)).collect();
    let names: Names = at_work.iter().map(|row| row.pod()).collect();
    match (at_work.len(), others.len()) {
        (0, 0) => Finding::failed(TITLE, "none: every replica has left", MEND),
        (0, _) => Finding::failed(TITLE, format!("none takes shards: {troubles}"), MEND),
        (n, 0) => Finding::fine(TITLE, format!("{} at work: {names}", counted(n, "replica"))),
        (n, _) => Finding::warning(
            TITLE,
            format!("{} at work: {names}; and {troubles}", counted(n, "replica")),
            MEND,
        ),
    }
}

fn trouble(row: &MemberRow, now: Timestamp) -> String {
    let state = if row.is_silent(now) {
        "is silent".to_owned()
    } else {
        row.state.text().sentence
    };
    format!("{} {state}", row.pod())
}

/// Judges whether every shard has a leader.
pub(super) fn leaders(listing: &Listing) -> Finding {
    const TITLE: &str = "leaders";
    const MEND: &str = "cronwheel shards lists shards in trouble";
    let n_shards = listing.shards.len();
    let unled = listing.shards.iter().filter(|row| !row.is_holder_member);
    let unled: Names = unled.map(|row| row.shard.0.to_string()).collect();
    if !unled.is_empty() {
        return Finding::failed(
            TITLE,
            format!("{} of {n_shards} shards have no leader: {unled}", unled.len()),
            MEND,
        );
    }
    Finding::fine(TITLE, format!("all {n_shards} shards are led"))
}

/// The selector of the chart.
const DEFAULT_SELECTOR: &str = "cronwheel.dev/managed=true";

/// The namespaces whose CronJobs an installation runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Managed {
    /// All.
    All,
    /// Those that match a label selector.
    Selected(String),
    /// These.
    Named(BTreeSet<String>),
}

impl Managed {
    /// Those of an installation by the chart with its default values.
    pub(super) fn of_chart() -> Managed {
        Managed::Selected(DEFAULT_SELECTOR.to_owned())
    }

    /// Reads the settings of a member that takes shards, otherwise of any; `None` if no member publishes them.
    pub(in crate::cli) fn of(listing: &Listing) -> Option<Managed> {
        let mut rows: Vec<_> = listing.members.values().collect();
        rows.sort_by_key(|row| !row.lease.takes_shards());
        let mut settings = rows.iter().filter_map(|row| row.lease.settings.as_ref());
        settings.next().map(|settings| Managed::read(&settings.to_string()))
    }

    /// Returns the requirements on a managed namespace; `None` if the settings are truncated or have a syntax that is not
    /// known.
    pub(super) fn requirements(&self) -> Option<Requirements> {
        match self {
            Managed::All => Some(Requirements::default()),
            Managed::Selected(selector) => Requirements::of_text(selector),
            Managed::Named(names) => names
                .iter()
                .all(|name| is_dns_label(name))
                .then(|| Requirements::of_names(names)),
        }
    }

    /// The command that lets cronwheel run the CronJobs of these namespaces.
    pub(super) fn manage_command<'a>(&self, namespaces: impl IntoIterator<Item = &'a String>) -> String {
        let namespaces: Vec<&str> = namespaces.into_iter().map(String::as_str).collect();
        match self {
            Managed::All => "cronwheel shards".to_owned(),
            Managed::Named(_) => format!("give the replicas --namespace {}", namespaces.join(" --namespace ")),
            Managed::Selected(selector) => match selector.parse::<NamespaceSelector>() {
                Ok(selector) => selector.label_command_for(&namespaces.join(" ")),
                Err(_) => format!("label the namespaces so that {selector} selects them"),
            },
        }
    }

    /// Reads the settings that a replica publishes.
    pub(in crate::cli) fn read(settings: &str) -> Managed {
        let Some((head, names)) = settings.rsplit_once(" namespaces=") else {
            return Managed::All;
        };
        match head.split_once("namespace-selector=") {
            Some((_, selector)) => Managed::Selected(selector.to_owned()),
            None if names == "*" => Managed::All,
            None => Managed::Named(names.split(',').map(str::to_owned).collect()),
        }
    }

    /// Judges the managed namespaces. `selected` are those that match the selector.
    pub(super) fn finding(&self, selected: &BTreeSet<String>) -> Finding {
        const TITLE: &str = "namespaces";
        match self {
            Managed::All => Finding::fine(TITLE, "cronwheel runs the CronJobs of all namespaces"),
            Managed::Named(names) => {
                let n = counted(names.len(), "namespace");
                let names: Names = names.iter().map(String::as_str).collect();
                Finding::fine(TITLE, format!("cronwheel runs the CronJobs of {n}: {names}"))
            }
            Managed::Selected(selector) if selected.is_empty() => Finding::warning(
                TITLE,
                format!("no namespace matches {selector}, so cronwheel runs no CronJob"),
                selector.parse::<NamespaceSelector>().map_or_else(
                    |_| format!("label a namespace so that {selector} selects it"),
                    |selector| selector.label_command(),
                ),
            ),
            Managed::Selected(selector) => {
                let n = counted(selected.len(), "namespace");
                let names: Names = selected.iter().map(String::as_str).collect();
                Finding::fine(
                    TITLE,
                    format!("cronwheel runs the CronJobs of {n} with {selector}: {names}"),
                )
            }
        }
    }
}

/// The runs of the last hour in managed namespaces.
#[derive(Debug)]
pub(super) struct Runs {
    /// The namespace of the Leases and the name of the installation, as in the annotation of its Jobs.
    installation: String,
    now: Timestamp,
    n_jobs: usize,
    n_late: usize,
    /// The lateness of the latest run and its Job.
    latest: Option<(SignedDuration, String)>,
    /// Jobs that no cronwheel created.
    beside: Names,
    /// The uids of their CronJobs.
    cron_jobs_beside: BTreeSet<String>,
    /// Jobs of other installations.
    of_others: Names,
    /// The CronJobs whose status another controller wrote, each with its field manager.
    statuses_beside: Names,
    /// The offsets of the option `spread`, by the uid of the CronJob.
    offsets: BTreeMap<String, SignedDuration>,
}

impl Runs {
    pub(super) fn new(installation: String, now: Timestamp) -> Runs {
        Runs {
            installation,
            now,
            n_jobs: 0,
            n_late: 0,
            latest: None,
            beside: Names::default(),
            cron_jobs_beside: BTreeSet::new(),
            of_others: Names::default(),
            statuses_beside: Names::default(),
            offsets: BTreeMap::new(),
        }
    }

    /// Notes by how much a CronJob starts after its slots, before its Jobs are added.
    pub(super) fn add_offset(&mut self, cron_job: &Value, offset: SignedDuration) {
        if let Some(uid) = cron_job["metadata"]["uid"].as_str()
            && !offset.is_zero()
        {
            self.offsets.insert(uid.to_owned(), offset);
        }
    }

    /// Whether another controller than cronwheel created a Job of the CronJob.
    pub(super) fn has_job_beside(&self, cron_job: &Value) -> bool {
        let uid = cron_job["metadata"]["uid"].as_str();
        uid.is_some_and(|uid| self.cron_jobs_beside.contains(uid))
    }

    /// Adds a CronJob of a managed namespace.
    pub(super) fn add_cron_job(&mut self, cron_job: &Value) {
        if let Some(manager) = other_status_writer(cron_job, self.now - RECENT) {
            self.statuses_beside.add(|| format!("{} ({manager})", title(cron_job)));
        }
    }

    /// Adds a Job of a managed namespace. Jobs without a slot are manual runs.
    pub(super) fn add(&mut self, job: &Value) {
        let metadata = &job["metadata"];
        let (Some(slot), Some(created)) = (slot_of(job), time(&metadata["creationTimestamp"])) else {
            return;
        };
        let mut owners = metadata["ownerReferences"].as_array().into_iter().flatten();
        let is_cron_job = |owner: &&Value| owner["controller"] == true && owner["kind"] == "CronJob";
        let Some(owner) = owners.find(is_cron_job) else { return };
        if self.now.duration_since(created) > RECENT {
            return;
        }
        let cron_job = owner["uid"].as_str().unwrap_or_default();
        let annotation = |name: &str| metadata["annotations"][name].as_str();
        match (
            annotation("cronwheel.dev/created-by"),
            annotation("cronwheel.dev/created-under"),
        ) {
            (Some(installation), _) if installation != self.installation => {
                self.of_others.add(|| format!("{} ({installation})", title(job)));
            }
            (None, None) => {
                self.beside.add(|| title(job));
                self.cron_jobs_beside.insert(cron_job.to_owned());
            }
            // A user started it, however late.
            (None, Some(BACKFILL)) => {}
            (Some(_), _) | (None, Some(_)) => {
                let offset = self.offsets.get(cron_job).copied().unwrap_or_default();
                self.add_run(created.duration_since(slot) - offset, job);
            }
        }
    }

    fn add_run(&mut self, lateness: SignedDuration, job: &Value) {
        self.n_jobs += 1;
        self.n_late += usize::from(lateness > LATE);
        if self.latest.as_ref().is_none_or(|(latest, _)| lateness > *latest) {
            self.latest = Some((lateness, title(job)));
        }
    }

    /// Judges the lateness of runs.
    pub(super) fn lateness(&self) -> Finding {
        const TITLE: &str = "lateness";
        let Some((latest, job)) = &self.latest else {
            return Finding::fine(
                TITLE,
                "no Job of the last hour was created by this installation and still exists",
            );
        };
        let seconds = duration_text(u64::try_from(latest.as_secs()).unwrap_or(0));
        let runs = counted(self.n_jobs, "Job");
        if self.n_late == 0 {
            return Finding::fine(
                TITLE,
                format!("{runs} of the last hour, the latest {seconds} after its slot: {job}"),
            );
        }
        Finding::warning(
            TITLE,
            format!(
                "created more than 10 s after their slot: {} of {runs} of the last hour, the latest after {seconds}: {job}. A \
                 run that Forbid, suspend or an outage held back is late by design",
                self.n_late
            ),
            "cronwheel explain NAME -n NAMESPACE, and docs/operate/runbooks.md",
        )
    }

    /// Judges whether another controller works on the same CronJobs: creates their Jobs, or writes their statuses.
    /// `cron_jobs` is whether the CronJobs were read.
    pub(super) fn beside(&self, cron_jobs: &Result<(), Unread>) -> Finding {
        const TITLE: &str = "other controllers";
        let (mut reasons, mut mends) = (self.beside_reasons(), Vec::new());
        if !reasons.is_empty() {
            mends.push("cronwheel check --canary shows whether the built-in controller is silenced now".to_owned());
        }
        if let Err(unread) = cron_jobs {
            if reasons.is_empty() {
                reasons.push("no Job of the last hour in a managed namespace is of another controller".to_owned());
            }
            reasons.push(format!("statuses of CronJobs {unread}"));
            mends.push(unread.mend());
        }
        if reasons.is_empty() {
            return Finding::fine(
                TITLE,
                "in the last hour, no other controller created a Job or wrote the status of a CronJob in a managed namespace",
            );
        }
        Finding::warning(TITLE, reasons.join("; "), mends.join("; "))
    }

    /// What other controllers did in the last hour.
    fn beside_reasons(&self) -> Vec<String> {
        let mut others = Vec::new();
        if !self.beside.is_empty() {
            others.push(format!(
                "{} of the last hour in managed namespaces without the annotation of cronwheel: {}",
                counted(self.beside.len(), "Job"),
                self.beside
            ));
        }
        if !self.statuses_beside.is_empty() {
            others.push(format!(
                "{} in managed namespaces whose status another controller wrote in the last hour: {}",
                counted(self.statuses_beside.len(), "CronJob"),
                self.statuses_beside
            ));
        }
        let mut reasons = Vec::new();
        if !others.is_empty() {
            reasons.push(format!(
                "{}. The other controller is the built-in one if it stands in, is not silenced, or ran the namespace until \
                 it was labelled",
                others.join("; ")
            ));
        }
        if !self.of_others.is_empty() {
            reasons.push(format!(
                "{} of the last hour by other installations: {}",
                counted(self.of_others.len(), "Job"),
                self.of_others
            ));
        }
        reasons
    }
}
