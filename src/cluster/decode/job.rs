//! Job: the whole record, and for a Job of no CronJob as little as will do.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    DecodeError, RawObject, SlimContent,
    fields::{FieldError, Members, Text, read_optional, time},
    metadata::Metadata,
};
use crate::{
    cluster::encode::SCHEDULED_TIMESTAMP_ANNOTATION,
    state::{Finish, JobRecord, Uid},
};

/// What we keep of a Job.
#[derive(Clone, Debug)]
pub struct JobContent {
    uid: Option<Uid>,
    record: Result<JobRecord, DecodeError>,
}

impl SlimContent for JobContent {
    const KIND: &'static str = "Job";
    const PLURAL: &'static str = "jobs";

    fn read(object: &RawObject<'_>) -> JobContent {
        JobContent {
            uid: object.metadata.uid().ok(),
            record: record(object).map_err(|error| DecodeError::new(Self::KIND, &object.metadata, error)),
        }
    }
}

impl JobContent {
    pub(super) fn uid(&self) -> Option<&Uid> {
        self.uid.as_ref()
    }

    pub(super) fn record(&self) -> Result<JobRecord, DecodeError> {
        self.record.clone()
    }

    pub(super) fn into_record(self) -> Result<JobRecord, DecodeError> {
        self.record
    }
}

fn record(object: &RawObject<'_>) -> Result<JobRecord, FieldError> {
    let metadata = &object.metadata;
    let mut record = JobRecord {
        uid: metadata.uid()?,
        namespace: metadata.namespace()?,
        name: metadata.name()?,
        resource_version: metadata.resource_version()?,
        controller: controller(metadata)?,
        scheduled: None,
        finish: None,
        started: None,
        completed: None,
    };
    // A Job of no CronJob is told from ours by that alone; clusters may be full of them.
    if record.controller.is_some() {
        record.scheduled = scheduled(metadata);
        read_status(&mut record, object.status)?;
    }
    Ok(record)
}

#[derive(Deserialize)]
struct RawOwnerReference<'a> {
    controller: Option<bool>,
    #[serde(borrow)]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    uid: Option<Text<'a>>,
}

/// The uid of the controller reference, where that is of kind `CronJob`.
fn controller(metadata: &Metadata<'_>) -> Result<Option<Uid>, FieldError> {
    let references: Option<Vec<RawOwnerReference<'_>>> =
        read_optional("metadata.ownerReferences", metadata.member("ownerReferences"))?;
    let controller = references
        .into_iter()
        .flatten()
        .find(|reference| reference.controller == Some(true))
        .filter(|reference| matches!(&reference.kind, Some(Text(kind)) if kind == "CronJob"));
    Ok(controller
        .and_then(|reference| reference.uid)
        .map(|Text(uid)| Uid::new(&uid)))
}

/// The instant of the scheduled-timestamp annotation (B-11.3); anyone may have written it, so it may be anything.
fn scheduled(metadata: &Metadata<'_>) -> Option<jiff::Timestamp> {
    let Members(annotations) = read_optional("metadata.annotations", metadata.member("annotations")).ok()??;
    let annotation = annotations
        .iter()
        .find(|annotation| annotation.name() == SCHEDULED_TIMESTAMP_ANNOTATION)?;
    time("metadata.annotations", Some(annotation.value)).ok()?
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawStatus<'a> {
    #[serde(borrow)]
    conditions: Option<&'a RawValue>,
    #[serde(borrow)]
    start_time: Option<&'a RawValue>,
    #[serde(borrow)]
    completion_time: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct RawCondition<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    status: Option<Text<'a>>,
}

fn read_status(record: &mut JobRecord, status: Option<&RawValue>) -> Result<(), FieldError> {
    let status: RawStatus<'_> = read_optional("status", status)?.unwrap_or_default();
    record.started = time("status.startTime", status.start_time)?;
    record.completed = time("status.completionTime", status.completion_time)?;
    let conditions: Option<Vec<RawCondition<'_>>> = read_optional("status.conditions", status.conditions)?;
    record.finish = conditions.iter().flatten().find_map(finish);
    Ok(())
}

/// How the Job ended, if by this condition (B-4.2).
fn finish(condition: &RawCondition<'_>) -> Option<Finish> {
    if condition.status.as_ref()?.0 != "True" {
        return None;
    }
    match &*condition.kind.as_ref()?.0 {
        "Complete" => Some(Finish::Complete),
        "Failed" => Some(Finish::Failed),
        _ => None,
    }
}
