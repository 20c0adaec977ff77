//! What the controller would do with every CronJob of a cluster if it started now, for `check --pre`.
//!
//! Namespaces and Jobs come first, and then CronJobs page by page, so that CronJobs are not held in memory.

use jiff::Timestamp;
use serde_json::Value;

use super::{
    explanation::Explanation,
    objects::{Document, Objects, Origin},
    reason::{Decision, Reason},
    recorded::SpecChanges,
    trial::{self, AssumedCreate},
    world::{Subject, World, listed_subject},
};
use crate::{
    kube_api::objects::decode::Decoder,
    schedule::Zone,
    shard::{CronJobRecord, EventReason},
};

/// The Jobs and the namespaces of a cluster, and the instant at which CronJobs are evaluated.
pub struct Survey {
    world: World,
    decoder: Decoder,
    now: Timestamp,
}

/// What the controller would do with a CronJob at once.
#[derive(Debug)]
pub struct Outlook {
    /// Its `metadata.namespace`.
    pub namespace: String,
    /// Its `metadata.name`.
    pub name: String,
    /// The CronJob, if it can be decoded.
    pub record: Option<CronJobRecord>,
    /// The slot whose Job would be created.
    pub start: Option<Timestamp>,
    /// Why the CronJob can never run.
    pub problem: Option<String>,
    /// The number of finished Jobs beyond a history limit, which would be deleted.
    pub n_expired: usize,
    /// The number of running Jobs that `Replace` would delete.
    pub n_replaced: usize,
    /// The Warning Events that would be emitted.
    pub warnings: Vec<EventReason>,
    /// Whether Jobs of other namespaces name the CronJob as their controller.
    pub has_foreign_jobs: bool,
}

impl Survey {
    /// Begins without Jobs.
    pub fn new(default_zone: &Zone, now: Timestamp) -> Survey {
        Survey {
            world: World::of_cluster(),
            decoder: Decoder {
                default_zone: default_zone.clone(),
                ..Decoder::default()
            },
            now,
        }
    }

    /// Adds a namespace, which may have a freeze and defaults of options.
    pub fn take_namespace(&mut self, namespace: &Value) {
        self.world.namespaces.take(namespace);
    }

    /// Adds a page of a list of Jobs. A Job that cannot be decoded still takes its name.
    pub fn take_jobs(&mut self, page: Value) {
        for job in objects(page, "JobList").items {
            // What the API server sent is an object, which can be converted.
            let _ = self.world.add_job(&job, &mut Vec::new());
        }
    }

    /// Evaluates a page of a list of CronJobs.
    pub fn outlooks(&self, page: Value) -> Vec<Outlook> {
        let cron_jobs = objects(page, "CronJobList").items.into_iter();
        let subjects = cron_jobs.filter_map(|mut cron_job| listed_subject(&mut cron_job, &self.decoder, self.now).ok());
        subjects.map(|subject| self.outlook(subject)).collect()
    }

    fn outlook(&self, mut subject: Subject) -> Outlook {
        self.world.inherit(&mut subject);
        // A controller that starts has seen no suspension end.
        subject.changes = SpecChanges::default();
        let explanation = trial::explain(&subject, &self.world, AssumedCreate::Created, self.now);
        let (problem, acts) = match explanation {
            Ok(explanation) => (problem_of(&explanation), Some(explanation)),
            Err(error) => (Some(error.to_string()), None),
        };
        let deletes = acts.iter().flat_map(|acts| &acts.deletes);
        let n_replaced = deletes.clone().filter(|delete| delete.is_for_replace).count();
        let warnings = acts.iter().flat_map(|acts| &acts.events).map(|event| event.reason);
        let record = subject.record.ok();
        let jobs = record
            .iter()
            .flat_map(|record| self.world.jobs_of(&record.identity.uid));
        Outlook {
            n_expired: deletes.count() - n_replaced,
            n_replaced,
            warnings: warnings.filter(|reason| reason.is_warning()).collect(),
            start: acts.as_ref().and_then(start_of),
            has_foreign_jobs: jobs.into_iter().any(|job| *job.namespace != *subject.namespace),
            namespace: subject.namespace,
            name: subject.name,
            problem,
            record,
        }
    }
}

impl Outlook {
    /// The namespace and the name.
    pub fn title(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

fn objects(page: Value, kind: &str) -> Objects {
    let mut objects = Objects::new(Origin::Cluster);
    let document = Document {
        value: page,
        text: None,
    };
    objects.take("the list", document, Some(kind));
    objects
}

/// Returns the slot of a Job whose create would be sent.
fn start_of(explanation: &Explanation) -> Option<Timestamp> {
    let is_start = explanation.reason.meaning().decision == Decision::Fire && explanation.reason != Reason::Adopted;
    explanation.slot.filter(|_| is_start && explanation.job.is_some())
}

fn problem_of(explanation: &Explanation) -> Option<String> {
    let reason = explanation.reason;
    reason
        .is_unfit()
        .then(|| format!("{}: {}", reason.meaning().name, explanation.message()))
}
