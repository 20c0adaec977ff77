//! CronJobs: the text as received, and the record that is decoded from it.

use std::{borrow::Cow, sync::Arc};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess},
};
use serde_json::value::RawValue;

use super::{
    Content, DecodeError, Decoder, Received, ReceivedCronJob, UndecodableCronJob,
    fields::{Field, FieldError, Members, Value, object},
    metadata::Head,
    template::{RawTemplate, job_template},
};
use crate::{
    kube_api::{objects::encode::push_raw_member, other_controllers::StatusWriter},
    shard::{
        ActiveJob, ConcurrencyPolicy, CronJobIdentity, CronJobRecord, CronJobSchedule, CronJobStatus, ResourceVersion,
        Threshold, TroubleThresholds, Uid,
    },
};

/// The text of a CronJob. Only the head of its metadata is decoded when it is received.
#[derive(Clone, Debug)]
pub struct CronJobText(Arc<str>);

impl Content for CronJobText {
    const KIND: &'static str = "CronJob";
    const PLURAL: &'static str = "cronjobs";

    fn receive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ReceivedCronJob, D::Error> {
        let text: &'de RawValue = Deserialize::deserialize(deserializer)?;
        let object: Field<ObjectHead<'de>> = serde_json::from_str(text.get()).map_err(serde::de::Error::custom)?;
        let head = object.if_read().unwrap_or_default().metadata.if_read();
        Ok(Received::new(&head.unwrap_or_default(), CronJobText(text.get().into())))
    }
}

object! {
    struct ObjectHead<'a> {
        "metadata" => metadata: Field<Head<'a>>,
    }
}

impl ReceivedCronJob {
    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.content.0
    }
}

impl Decoder {
    /// Creates the record of a CronJob from its text.
    pub fn cron_job(&self, text: &str) -> Result<CronJobRecord, UndecodableCronJob> {
        let undecodable = |head: &Head<'_>, error| UndecodableCronJob {
            error: DecodeError::new(CronJobText::KIND, head, error),
            cron_job: None,
        };
        let raw: Field<RawCronJob<'_>> = serde_json::from_str(text)
            .map_err(|error| undecodable(&Head::default(), FieldError::new("JSON", &error.to_string())))?;
        let raw = raw.if_read().unwrap_or_default();
        let mut metadata = raw.metadata.if_read().unwrap_or_default();
        let head = metadata.head.clone();
        let (cron_job, resource_version) = identity(&head).map_err(|error| undecodable(&head, error))?;
        if let Some(LatestWriter(Some(writer))) = std::mem::take(&mut metadata.status_writer).if_read() {
            self.other_controllers.note_status_write(&cron_job, &writer);
        }
        let record = self.record(&cron_job, resource_version, metadata, raw.spec, raw.status);
        record.map_err(|error| UndecodableCronJob {
            cron_job: Some((cron_job, resource_version)),
            ..undecodable(&head, error)
        })
    }

    fn record(
        &self,
        cron_job: &Arc<CronJobIdentity>,
        resource_version: ResourceVersion,
        metadata: RawMetadata<'_>,
        spec: Field<RawSpec<'_>>,
        raw_status: Field<RawStatus<'_>>,
    ) -> Result<CronJobRecord, FieldError> {
        let spec = spec
            .optional("spec")?
            .ok_or_else(|| FieldError::new("spec", "missing"))?;
        let deadline = spec
            .starting_deadline_seconds
            .optional("spec.startingDeadlineSeconds")?;
        // An absent schedule is an empty one, which the parser refuses with its own message.
        let schedule = spec.schedule.optional("spec.schedule")?.unwrap_or_default();
        let time_zone = spec.time_zone.optional("spec.timeZone")?;
        Ok(CronJobRecord {
            identity: Arc::clone(cron_job),
            resource_version,
            schedule: CronJobSchedule::new(&schedule, time_zone.as_deref(), &self.default_zone),
            // The API server accepts no negative value (B-16.2).
            starting_deadline_seconds: deadline.map(|seconds| seconds.max(0)),
            concurrency_policy: match spec.concurrency_policy.optional("spec.concurrencyPolicy")?.as_deref() {
                Some("Forbid") => ConcurrencyPolicy::Forbid,
                Some("Replace") => ConcurrencyPolicy::Replace,
                _ => ConcurrencyPolicy::Allow,
            },
            is_suspended: spec.suspend.optional("spec.suspend")?.unwrap_or(false),
            successful_jobs_history_limit: limit(
                "spec.successfulJobsHistoryLimit",
                spec.successful_jobs_history_limit,
            )?,
            failed_jobs_history_limit: limit("spec.failedJobsHistoryLimit", spec.failed_jobs_history_limit)?,
            created: metadata.head.created()?,
            is_deleting: metadata.head.is_deleting(),
            template: Arc::new(job_template(spec.job_template, cron_job, self.shard_count)?),
            retained_metadata: Arc::new(metadata.retained_members.into()),
            trouble_thresholds: metadata.trouble_thresholds,
            status: status(raw_status)?,
        })
    }
}

fn identity(head: &Head<'_>) -> Result<(Arc<CronJobIdentity>, ResourceVersion), FieldError> {
    let identity = CronJobIdentity {
        namespace: head.namespace()?,
        name: head.name()?,
        uid: head.uid()?,
    };
    Ok((Arc::new(identity), head.resource_version()?))
}

object! {
    struct RawCronJob<'a> {
        "metadata" => metadata: Field<RawMetadata<'a>>,
        "spec" => spec: Field<RawSpec<'a>>,
        "status" => status: Field<RawStatus<'a>>,
    }
}

#[derive(Default)]
struct RawMetadata<'a> {
    head: Head<'a>,
    status_writer: Field<LatestWriter>,
    /// The members of the metadata that a status write repeats, each with a leading comma (B-16.4): all that an API
    /// server does not maintain itself: labels, annotations, finalizers, owner references, `generateName` and unknown
    /// members.
    retained_members: String,
    trouble_thresholds: TroubleThresholds,
}

impl<'de> Members<'de> for RawMetadata<'de> {
    fn take<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        if self.head.take(name, members)? {
            return Ok(true);
        }
        match name {
            "generation" | "deletionGracePeriodSeconds" | "selfLink" => return Ok(false),
            "managedFields" => self.status_writer = members.next_value()?,
            _ => {
                if let Some(value) = members.next_value::<Option<&RawValue>>()? {
                    if name == "annotations" {
                        self.trouble_thresholds = trouble_thresholds(value.get());
                    }
                    push_raw_member(&mut self.retained_members, name, value.get());
                }
            }
        }
        Ok(true)
    }
}

/// Decodes the annotations with thresholds. Most CronJobs have none, which is a cheap check.
fn trouble_thresholds(annotations: &str) -> TroubleThresholds {
    if !annotations.contains("-after-seconds") {
        return TroubleThresholds::default();
    }
    let read: Option<Field<ThresholdAnnotations>> = serde_json::from_str(annotations).ok();
    read.and_then(Field::if_read).unwrap_or_default().0
}

#[derive(Default)]
struct ThresholdAnnotations(TroubleThresholds);

impl<'de> Members<'de> for ThresholdAnnotations {
    fn take<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        let Some(threshold) = Threshold::ALL.into_iter().find(|known| known.annotation() == name) else {
            return Ok(false);
        };
        let value: Field<Cow<'de, str>> = members.next_value()?;
        self.0.set(threshold, &value.if_read().unwrap_or_default());
        Ok(true)
    }
}

object! {
    struct ManagedFields<'a> {
        "manager" => manager: Field<Cow<'a, str>>,
        "subresource" => subresource: Field<Cow<'a, str>>,
        "time" => time: Field<Cow<'a, str>>,
    }
}

/// The last status write by another field manager, if there is one. The fields themselves are skipped.
#[derive(Default)]
struct LatestWriter(Option<StatusWriter>);

impl<'de> Value<'de> for LatestWriter {
    const EXPECTED: &'static str = "a list";

    fn from_list<A: SeqAccess<'de>>(mut list: A) -> Result<Option<Self>, A::Error> {
        let mut latest = LatestWriter::default();
        while let Some(entry) = list.next_element::<Field<ManagedFields<'de>>>()? {
            let writer = entry.if_read().and_then(status_writer);
            if writer.as_ref().map(|writer| writer.at) > latest.0.as_ref().map(|writer| writer.at) {
                latest.0 = writer;
            }
        }
        Ok(Some(latest))
    }
}

fn status_writer(entry: ManagedFields<'_>) -> Option<StatusWriter> {
    entry
        .subresource
        .if_read()
        .filter(|subresource| subresource == "status")?;
    let at = entry.time.time("metadata.managedFields").ok()??;
    StatusWriter::other(&entry.manager.if_read()?, at)
}

object! {
    struct RawSpec<'a> {
        "schedule" => schedule: Field<Cow<'a, str>>,
        "timeZone" => time_zone: Field<Cow<'a, str>>,
        "startingDeadlineSeconds" => starting_deadline_seconds: Field<i64>,
        "concurrencyPolicy" => concurrency_policy: Field<Cow<'a, str>>,
        "suspend" => suspend: Field<bool>,
        "successfulJobsHistoryLimit" => successful_jobs_history_limit: Field<i64>,
        "failedJobsHistoryLimit" => failed_jobs_history_limit: Field<i64>,
        "jobTemplate" => job_template: Field<RawTemplate<'a>>,
    }
}

/// A negative limit, which the API server never accepts, keeps all Jobs: the interpretation that deletes nothing.
fn limit(field: &'static str, value: Field<i64>) -> Result<Option<u32>, FieldError> {
    let limit = value.optional(field)?.filter(|limit| *limit >= 0);
    Ok(limit.map(|limit| u32::try_from(limit).unwrap_or(u32::MAX)))
}

#[derive(Default)]
struct RawStatus<'a> {
    active: Field<Vec<Field<RawActiveJob<'a>>>>,
    last_schedule_time: Field<Cow<'a, str>>,
    last_successful_time: Field<Cow<'a, str>>,
    unknown_members: String,
}

impl<'de> Members<'de> for RawStatus<'de> {
    fn take<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        match name {
            "active" => self.active = members.next_value()?,
            "lastScheduleTime" => self.last_schedule_time = members.next_value()?,
            "lastSuccessfulTime" => self.last_successful_time = members.next_value()?,
            _ => {
                if let Some(value) = members.next_value::<Option<&RawValue>>()? {
                    push_raw_member(&mut self.unknown_members, name, value.get());
                }
            }
        }
        Ok(true)
    }
}

/// Decodes `status`. Its times must be valid, since one of them is the cursor.
fn status(raw: Field<RawStatus<'_>>) -> Result<CronJobStatus, FieldError> {
    let raw = raw.optional("status")?.unwrap_or_default();
    let raw_active = raw.active.optional("status.active")?.unwrap_or_default();
    let mut active: Vec<ActiveJob> = raw_active.into_iter().filter_map(active_job).collect();
    // The list is held for long, and mostly has one entry or none.
    active.shrink_to_fit();
    Ok(CronJobStatus {
        active,
        last_schedule_time: raw.last_schedule_time.time("status.lastScheduleTime")?,
        last_successful_time: raw.last_successful_time.time("status.lastSuccessfulTime")?,
        unknown_members: (!raw.unknown_members.is_empty()).then(|| raw.unknown_members.into()),
    })
}

object! {
    struct RawActiveJob<'a> {
        "name" => name: Field<Cow<'a, str>>,
        "namespace" => namespace: Field<Cow<'a, str>>,
        "uid" => uid: Field<Cow<'a, str>>,
        "resourceVersion" => resource_version: Field<Cow<'a, str>>,
    }
}

/// Maximum length of a name that an API server accepts.
const JOB_NAME_MAX_BYTES: usize = 253;

/// Decodes an entry of `status.active`, which the server does not validate (B-16.4). Entries without a uid, or without
/// a possible Job name, are left out: a look-up of an empty name would be a list.
fn active_job(entry: Field<RawActiveJob<'_>>) -> Option<ActiveJob> {
    let entry = entry.if_read()?;
    let name = entry.name.if_read()?;
    if name.is_empty() || name.len() > JOB_NAME_MAX_BYTES {
        return None;
    }
    Some(ActiveJob {
        name: name.into(),
        namespace: entry.namespace.if_read().unwrap_or_default().into(),
        uid: Uid::new(&entry.uid.if_read()?),
        resource_version: entry.resource_version.if_read().unwrap_or_default().into(),
    })
}
