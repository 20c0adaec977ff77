//! Jobs: the whole record, or a minimal one for a Job without a CronJob.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, de::MapAccess};

use super::{
    Content, DecodeError, Received, ReceivedJob,
    fields::{Field, FieldError, Members, object},
    metadata::Head,
};
use crate::{
    kube_api::objects::encode::{CREATED_UNDER_ANNOTATION, SCHEDULED_TIMESTAMP_ANNOTATION},
    shard::{Finish, JobRecord, SHARD_LABEL_PREFIX, ShardLabels, Uid},
};

/// The decoded part of a Job.
#[derive(Clone, Debug)]
pub struct JobContent(Result<JobRecord, DecodeError>);

impl Content for JobContent {
    const KIND: &'static str = "Job";
    const PLURAL: &'static str = "jobs";

    fn receive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ReceivedJob, D::Error> {
        let raw: RawJob<'de> = Field::deserialize(deserializer)?.if_read().unwrap_or_default();
        let metadata = raw.metadata.if_read().unwrap_or_default();
        let head = metadata.head.clone();
        let record = record(metadata, raw.status).map_err(|error| DecodeError::new(Self::KIND, &head, error));
        Ok(Received::new(&head, JobContent(record)))
    }
}

impl ReceivedJob {
    /// Returns the record without a copy.
    pub fn into_record(self) -> Result<JobRecord, DecodeError> {
        self.content.0
    }
}

fn record(metadata: RawMetadata<'_>, status: Field<RawStatus<'_>>) -> Result<JobRecord, FieldError> {
    let head = &metadata.head;
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
        is_created_by_cronwheel: false,
        shard_labels: metadata.labels.if_read().unwrap_or_default().0,
    };
    // A Job without a CronJob needs no other field.
    if record.controller.is_some() {
        let annotations = metadata.annotations.if_read().unwrap_or_default();
        // Any user may have written the annotations.
        record.scheduled = annotations
            .scheduled_timestamp
            .time("metadata.annotations")
            .unwrap_or_default();
        record.is_created_by_cronwheel = annotations.created_under.if_read().is_some();
        read_status(&mut record, status)?;
    }
    Ok(record)
}

object! {
    struct RawJob<'a> {
        "metadata" => metadata: Field<RawMetadata<'a>>,
        "status" => status: Field<RawStatus<'a>>,
    }
}

#[derive(Default)]
struct RawMetadata<'a> {
    head: Head<'a>,
    labels: Field<Labels>,
    annotations: Field<Annotations<'a>>,
    owner_references: Field<Vec<Field<OwnerReference<'a>>>>,
}

impl<'de> Members<'de> for RawMetadata<'de> {
    fn take<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        match name {
            "labels" => self.labels = members.next_value()?,
            "annotations" => self.annotations = members.next_value()?,
            "ownerReferences" => self.owner_references = members.next_value()?,
            _ => return self.head.take(name, members),
        }
        Ok(true)
    }
}

/// The shard labels.
#[derive(Default)]
struct Labels(ShardLabels);

impl<'de> Members<'de> for Labels {
    fn take<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        if !name.starts_with(SHARD_LABEL_PREFIX) {
            return Ok(false);
        }
        let value: Field<Cow<'de, str>> = members.next_value()?;
        if let Some(value) = value.if_read() {
            self.0.note(name, &value);
        }
        Ok(true)
    }
}

object! {
    struct OwnerReference<'a> {
        "controller" => controller: Field<bool>,
        "kind" => kind: Field<Cow<'a, str>>,
        "uid" => uid: Field<Cow<'a, str>>,
    }
}

/// Returns the uid of the controller reference, if its kind is `CronJob`.
fn controller(references: Field<Vec<Field<OwnerReference<'_>>>>) -> Result<Option<Uid>, FieldError> {
    let references = references.optional("metadata.ownerReferences")?.unwrap_or_default();
    for reference in references {
        let Some(reference) = reference.if_read() else {
            continue;
        };
        if reference.controller.if_read() == Some(true) {
            let is_cron_job = reference.kind.if_read().is_some_and(|kind| kind == "CronJob");
            let uid = reference.uid.if_read().filter(|_| is_cron_job);
            return Ok(uid.map(|uid| Uid::new(&uid)));
        }
    }
    Ok(None)
}

object! {
    /// The slot (B-11.3), and the term of the replica that created the Job.
    struct Annotations<'a> {
        SCHEDULED_TIMESTAMP_ANNOTATION => scheduled_timestamp: Field<Cow<'a, str>>,
        CREATED_UNDER_ANNOTATION => created_under: Field<Cow<'a, str>>,
    }
}

object! {
    struct RawStatus<'a> {
        "conditions" => conditions: Field<Vec<Field<Condition<'a>>>>,
        "startTime" => start_time: Field<Cow<'a, str>>,
        "completionTime" => completion_time: Field<Cow<'a, str>>,
    }
}

object! {
    struct Condition<'a> {
        "type" => kind: Field<Cow<'a, str>>,
        "status" => status: Field<Cow<'a, str>>,
    }
}

fn read_status(record: &mut JobRecord, status: Field<RawStatus<'_>>) -> Result<(), FieldError> {
    let status = status.optional("status")?.unwrap_or_default();
    record.started = status.start_time.time("status.startTime")?;
    let completed = status.completion_time.time("status.completionTime")?;
    let conditions = status.conditions.optional("status.conditions")?.unwrap_or_default();
    let ends: Vec<Finish> = conditions
        .into_iter()
        .filter_map(Field::if_read)
        .filter_map(finish)
        .collect();
    record.finish = ends.first().copied();
    record.completed = completed.filter(|_| ends.contains(&Finish::Complete));
    Ok(())
}

/// Returns the kind of end that this condition reports (B-4.2).
fn finish(condition: Condition<'_>) -> Option<Finish> {
    if condition.status.if_read()? != "True" {
        return None;
    }
    match &*condition.kind.if_read()? {
        "Complete" => Some(Finish::Complete),
        "Failed" => Some(Finish::Failed),
        _ => None,
    }
}
