//! Job: the whole record, and for a Job of no CronJob as little as will do.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, de::MapAccess};

use super::{
    DecodeError, SlimContent,
    fields::{Field, FieldError, Name, Value, ignore},
    metadata::Head,
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

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(JobContent, Option<String>), D::Error> {
        let raw: RawJob<'de> = Field::deserialize(deserializer)?.if_read().unwrap_or_default();
        let head = raw.metadata.head.clone();
        let content = JobContent {
            uid: head.uid().ok(),
            record: record(raw).map_err(|error| DecodeError::new(Self::KIND, &head, error)),
        };
        Ok((content, head.resource_version_text()))
    }
}

impl JobContent {
    pub(super) fn uid(&self) -> Option<&Uid> {
        self.uid.as_ref()
    }

    pub(super) fn into_record(self) -> Result<JobRecord, DecodeError> {
        self.record
    }
}

fn record(raw: RawJob<'_>) -> Result<JobRecord, FieldError> {
    let identity = raw.metadata.head.identity()?;
    let mut record = JobRecord {
        uid: identity.uid,
        namespace: identity.namespace,
        name: identity.name,
        resource_version: identity.resource_version,
        controller: controller(raw.metadata.owner_references)?,
        scheduled: None,
        finish: None,
        started: None,
        completed: None,
    };
    // A Job of no CronJob is told from ours by that alone, whatever else is in it.
    if record.controller.is_some() {
        record.scheduled = scheduled(raw.metadata.annotations);
        read_status(&mut record, raw.status)?;
    }
    Ok(record)
}

#[derive(Default)]
struct RawJob<'a> {
    metadata: RawMetadata<'a>,
    status: Field<RawStatus<'a>>,
}

impl<'de> Value<'de> for RawJob<'de> {
    const EXPECTED: &'static str = "an object";

    fn from_members<A: MapAccess<'de>>(mut members: A) -> Result<Option<Self>, A::Error> {
        let mut raw = RawJob::default();
        while let Some(Name(name)) = members.next_key()? {
            match &*name {
                "metadata" => raw.metadata = members.next_value::<Field<_>>()?.if_read().unwrap_or_default(),
                "status" => raw.status = members.next_value()?,
                _ => ignore(&mut members)?,
            }
        }
        Ok(Some(raw))
    }
}

#[derive(Default)]
struct RawMetadata<'a> {
    head: Head<'a>,
    annotations: Field<Annotations<'a>>,
    owner_references: Field<Vec<Field<OwnerReference<'a>>>>,
}

impl<'de> Value<'de> for RawMetadata<'de> {
    const EXPECTED: &'static str = "an object";

    fn from_members<A: MapAccess<'de>>(mut members: A) -> Result<Option<Self>, A::Error> {
        let mut raw = RawMetadata::default();
        while let Some(Name(name)) = members.next_key()? {
            if raw.head.take(&name, &mut members)? {
                continue;
            }
            match &*name {
                "annotations" => raw.annotations = members.next_value()?,
                "ownerReferences" => raw.owner_references = members.next_value()?,
                _ => ignore(&mut members)?,
            }
        }
        Ok(Some(raw))
    }
}

#[derive(Default)]
struct OwnerReference<'a> {
    controller: Field<bool>,
    kind: Field<Cow<'a, str>>,
    uid: Field<Cow<'a, str>>,
}

impl<'de> Value<'de> for OwnerReference<'de> {
    const EXPECTED: &'static str = "an object";

    fn from_members<A: MapAccess<'de>>(mut members: A) -> Result<Option<Self>, A::Error> {
        let mut reference = OwnerReference::default();
        while let Some(Name(name)) = members.next_key()? {
            match &*name {
                "controller" => reference.controller = members.next_value()?,
                "kind" => reference.kind = members.next_value()?,
                "uid" => reference.uid = members.next_value()?,
                _ => ignore(&mut members)?,
            }
        }
        Ok(Some(reference))
    }
}

/// The uid of the controller reference, where that is of kind `CronJob`.
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

/// The one annotation that we look at (B-11.3).
struct Annotations<'a> {
    scheduled_timestamp: Field<Cow<'a, str>>,
}

impl<'de> Value<'de> for Annotations<'de> {
    const EXPECTED: &'static str = "an object";

    fn from_members<A: MapAccess<'de>>(mut members: A) -> Result<Option<Self>, A::Error> {
        let mut scheduled_timestamp = Field::Absent;
        while let Some(Name(name)) = members.next_key()? {
            if name == SCHEDULED_TIMESTAMP_ANNOTATION {
                scheduled_timestamp = members.next_value()?;
            } else {
                ignore(&mut members)?;
            }
        }
        Ok(Some(Annotations { scheduled_timestamp }))
    }
}

/// The instant of the annotation; anyone may have written it, so it may be anything.
fn scheduled(annotations: Field<Annotations<'_>>) -> Option<jiff::Timestamp> {
    annotations
        .if_read()?
        .scheduled_timestamp
        .time("metadata.annotations")
        .ok()?
}

#[derive(Default)]
struct RawStatus<'a> {
    conditions: Field<Vec<Field<Condition<'a>>>>,
    start_time: Field<Cow<'a, str>>,
    completion_time: Field<Cow<'a, str>>,
}

impl<'de> Value<'de> for RawStatus<'de> {
    const EXPECTED: &'static str = "an object";

    fn from_members<A: MapAccess<'de>>(mut members: A) -> Result<Option<Self>, A::Error> {
        let mut raw = RawStatus::default();
        while let Some(Name(name)) = members.next_key()? {
            match &*name {
                "conditions" => raw.conditions = members.next_value()?,
                "startTime" => raw.start_time = members.next_value()?,
                "completionTime" => raw.completion_time = members.next_value()?,
                _ => ignore(&mut members)?,
            }
        }
        Ok(Some(raw))
    }
}

#[derive(Default)]
struct Condition<'a> {
    kind: Field<Cow<'a, str>>,
    status: Field<Cow<'a, str>>,
}

impl<'de> Value<'de> for Condition<'de> {
    const EXPECTED: &'static str = "an object";

    fn from_members<A: MapAccess<'de>>(mut members: A) -> Result<Option<Self>, A::Error> {
        let mut condition = Condition::default();
        while let Some(Name(name)) = members.next_key()? {
            match &*name {
                "type" => condition.kind = members.next_value()?,
                "status" => condition.status = members.next_value()?,
                _ => ignore(&mut members)?,
            }
        }
        Ok(Some(condition))
    }
}

fn read_status(record: &mut JobRecord, status: Field<RawStatus<'_>>) -> Result<(), FieldError> {
    let status = status.optional("status")?.unwrap_or_default();
    record.started = status.start_time.time("status.startTime")?;
    record.completed = status.completion_time.time("status.completionTime")?;
    let conditions = status.conditions.optional("status.conditions")?.unwrap_or_default();
    record.finish = conditions.into_iter().filter_map(Field::if_read).find_map(finish);
    Ok(())
}

/// How the Job ended, if by this condition (B-4.2).
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
