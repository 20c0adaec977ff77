//! Jobs: the whole record, or a minimal one for a Job that no CronJob controls.
//!
//! A Job is parsed in place, as [`Field`]s: to find the end of its text first would take half as long again.

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};

use super::{
    Content, DecodeError, Received, ReceivedJob,
    field::Field,
    metadata::Head,
    parse::{FieldError, Text},
};
use crate::{
    schedule::options::read_token,
    shard::{Finish, JobCreator, JobRecord, Uid, panics::contain},
};

/// The decoded part of a Job.
#[derive(Clone, Debug)]
pub struct JobContent(Result<JobRecord, DecodeError>);

impl Content for JobContent {
    const KIND: &'static str = "Job";
    const PLURAL: &'static str = "jobs";

    fn receive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ReceivedJob, D::Error> {
        let raw: RawJob<'de> = Field::deserialize(deserializer)?.ok().unwrap_or_default();
        let metadata = raw.metadata.ok().unwrap_or_default();
        let head = Head {
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            uid: metadata.uid.clone(),
            resource_version: metadata.resource_version.clone(),
        };
        let record = contained(|| record(&head, metadata, raw.status));
        let record = record.map_err(|error| DecodeError::new(Self::KIND, &head, error));
        Ok(Received::new(&head, JobContent(record)))
    }
}

/// Decodes a Job. If cronwheel panics, the Job counts as one that cannot be decoded.
pub(super) fn contained(decode: impl FnOnce() -> Result<JobRecord, FieldError>) -> Result<JobRecord, FieldError> {
    contain(decode).unwrap_or_else(|message| Err(FieldError::panic(&message)))
}

impl ReceivedJob {
    /// Returns the record without a copy.
    pub fn into_record(self) -> Result<JobRecord, DecodeError> {
        self.content.0
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawJob<'a> {
    #[serde(borrow)]
    metadata: Field<RawMetadata<'a>>,
    status: Field<Status<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RawMetadata<'a> {
    #[serde(borrow)]
    namespace: Field<Text<'a>>,
    name: Field<Text<'a>>,
    uid: Field<Text<'a>>,
    resource_version: Field<Text<'a>>,
    annotations: Field<Annotations<'a>>,
    owner_references: Field<Vec<Field<OwnerReference<'a>>>>,
}

/// The slot (B-11.3), the term and the installation of the replica that created the Job, and the token of a run that was
/// asked for.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Annotations<'a> {
    #[serde(borrow, rename = "batch.kubernetes.io/cronjob-scheduled-timestamp")]
    pub(crate) scheduled_timestamp: Field<Text<'a>>,
    #[serde(rename = "cronwheel.dev/created-under")]
    pub(crate) created_under: Field<Text<'a>>,
    #[serde(rename = "cronwheel.dev/created-by")]
    pub(crate) created_by: Field<Text<'a>>,
    #[serde(rename = "cronwheel.dev/run-now")]
    pub(crate) run_now: Field<Text<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OwnerReference<'a> {
    controller: Field<bool>,
    #[serde(borrow)]
    kind: Field<Text<'a>>,
    uid: Field<Text<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
struct Status<'a> {
    #[serde(borrow)]
    conditions: Field<Vec<Field<Condition<'a>>>>,
    start_time: Field<Timestamp>,
    completion_time: Field<Timestamp>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Condition<'a> {
    #[serde(borrow, rename = "type")]
    kind: Field<Text<'a>>,
    status: Field<Text<'a>>,
}

fn record(head: &Head<'_>, metadata: RawMetadata<'_>, status: Field<Status<'_>>) -> Result<JobRecord, FieldError> {
    let mut record = JobRecord {
        namespace: head.namespace()?,
        name: head.name()?,
        uid: head.uid()?,
        resource_version: head.resource_version()?,
        controller: controller(metadata.owner_references)?,
        scheduled: None,
        finish: None,
        started: None,
        completed: None,
        creator: JobCreator::Unknown,
        run_token: None,
    };
    // A Job without a CronJob needs no other field.
    if record.controller.is_some() {
        let annotations = metadata.annotations.ok().unwrap_or_default();
        // Any user may have written the annotations.
        record.scheduled = annotations.scheduled_timestamp.ok().and_then(|text| text.parse().ok());
        record.creator = match (annotations.created_by.ok(), annotations.created_under.ok()) {
            (Some(installation), _) => JobCreator::Installation((*installation).into()),
            (None, Some(_)) => JobCreator::Cronwheel,
            (None, None) => JobCreator::Unknown,
        };
        record.run_token = annotations.run_now.ok().and_then(|text| read_token(&text).ok());
        read_status(&mut record, status)?;
    }
    Ok(record)
}

/// Returns the uid of the controller reference, if its kind is `CronJob`.
fn controller(references: Field<Vec<Field<OwnerReference<'_>>>>) -> Result<Option<Uid>, FieldError> {
    let references = references.at("metadata.ownerReferences")?.unwrap_or_default();
    for reference in references.into_iter().filter_map(Field::ok) {
        if reference.controller.ok() == Some(true) {
            let is_cron_job = reference.kind.ok().as_deref() == Some("CronJob");
            return Ok(reference.uid.ok().filter(|_| is_cron_job).map(|uid| Uid::new(&uid)));
        }
    }
    Ok(None)
}

fn read_status(record: &mut JobRecord, status: Field<Status<'_>>) -> Result<(), FieldError> {
    let status = status.at("status")?.unwrap_or_default();
    let completed = status.completion_time.at("status.completionTime")?;
    let conditions = status.conditions.at("status.conditions")?.unwrap_or_default();
    let ends: Vec<Finish> = conditions
        .into_iter()
        .filter_map(Field::ok)
        .filter_map(finish)
        .collect();
    record.started = status.start_time.at("status.startTime")?;
    record.finish = ends.first().copied();
    record.completed = completed.filter(|_| ends.contains(&Finish::Complete));
    Ok(())
}

/// Returns the kind of end that this condition reports (B-4.2).
fn finish(condition: Condition<'_>) -> Option<Finish> {
    match (&*condition.kind.ok()?, &*condition.status.ok()?) {
        ("Complete", "True") => Some(Finish::Complete),
        ("Failed", "True") => Some(Finish::Failed),
        _ => None,
    }
}
