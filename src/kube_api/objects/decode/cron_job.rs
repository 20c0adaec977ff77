//! CronJobs: the whole record except the effective schedule, which needs the default zone.

use std::{borrow::Cow, sync::Arc};

use jiff::Timestamp;
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess},
};
use serde_json::value::RawValue;

use super::{
    DecodeError, Decoder, SlimContent,
    fields::{Field, FieldError, Name, Value, ignore, object},
    metadata::Head,
    shard_label::labelled,
    template::{RawTemplate, job_template},
};
use crate::{
    kube_api::{objects::encode::push_raw_member, other_controllers::StatusWriter},
    shard::{
        ActiveJob, ConcurrencyPolicy, CronJobIdentity, CronJobRecord, CronJobSchedule, CronJobStatus, JobTemplate,
        ResourceVersion, Threshold, TroubleThresholds, Uid, record::RetainedMetadata,
    },
};

/// The decoded part of a CronJob.
#[derive(Clone, Debug)]
pub struct CronJobContent {
    uid: Option<Uid>,
    identity: Option<(Arc<CronJobIdentity>, ResourceVersion)>,
    parts: Result<Parts, DecodeError>,
    status_writer: Option<StatusWriter>,
}

#[derive(Clone, Debug)]
struct Parts {
    identity: Arc<CronJobIdentity>,
    resource_version: ResourceVersion,
    created: Timestamp,
    is_deleting: bool,
    spec: Spec,
    template: Arc<JobTemplate>,
    retained_metadata: Arc<RetainedMetadata>,
    trouble_thresholds: TroubleThresholds,
    status: CronJobStatus,
}

#[derive(Clone, Debug)]
struct Spec {
    schedule: Box<str>,
    time_zone: Option<Box<str>>,
    starting_deadline_seconds: Option<i64>,
    concurrency_policy: ConcurrencyPolicy,
    is_suspended: bool,
    successful_jobs_history_limit: Option<u32>,
    failed_jobs_history_limit: Option<u32>,
}

impl SlimContent for CronJobContent {
    const KIND: &'static str = "CronJob";
    const PLURAL: &'static str = "cronjobs";

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(CronJobContent, Option<String>), D::Error> {
        let raw: RawCronJob<'de> = Field::deserialize(deserializer)?.if_read().unwrap_or_default();
        let mut metadata = raw.metadata.if_read().unwrap_or_default();
        let status_writer = std::mem::take(&mut metadata.status_writer).if_read();
        let head = metadata.head.clone();
        let identity = identity(&head);
        let parts = match &identity {
            Ok(identity) => parts(metadata, raw.spec, raw.status, identity),
            Err(error) => Err(error.clone()),
        };
        let content = CronJobContent {
            uid: head.uid().ok(),
            identity: identity.ok(),
            parts: parts.map_err(|error| DecodeError::new(Self::KIND, &head, error)),
            status_writer: status_writer.and_then(|LatestWriter(writer)| writer),
        };
        Ok((content, head.resource_version_text()))
    }
}

impl CronJobContent {
    pub(super) fn identity(&self) -> Option<&(Arc<CronJobIdentity>, ResourceVersion)> {
        self.identity.as_ref()
    }

    pub(super) fn uid(&self) -> Option<&Uid> {
        self.uid.as_ref()
    }

    pub(super) fn into_record(self, decoder: &Decoder) -> Result<CronJobRecord, DecodeError> {
        if let (Some((cron_job, _)), Some(writer)) = (&self.identity, &self.status_writer) {
            decoder.other_controllers.note_status_write(cron_job, writer);
        }
        let parts = self.parts?;
        let zone = parts.spec.time_zone.as_deref();
        let schedule = CronJobSchedule::new(&parts.spec.schedule, zone, &decoder.default_zone);
        let template = match decoder.shard_count {
            Some(count) => Arc::new(labelled(&parts.template, &parts.identity.uid, count)),
            None => parts.template,
        };
        Ok(CronJobRecord {
            identity: parts.identity,
            resource_version: parts.resource_version,
            created: parts.created,
            is_deleting: parts.is_deleting,
            schedule,
            starting_deadline_seconds: parts.spec.starting_deadline_seconds,
            concurrency_policy: parts.spec.concurrency_policy,
            is_suspended: parts.spec.is_suspended,
            successful_jobs_history_limit: parts.spec.successful_jobs_history_limit,
            failed_jobs_history_limit: parts.spec.failed_jobs_history_limit,
            template,
            retained_metadata: parts.retained_metadata,
            trouble_thresholds: parts.trouble_thresholds,
            status: parts.status,
        })
    }
}

fn identity(head: &Head<'_>) -> Result<(Arc<CronJobIdentity>, ResourceVersion), FieldError> {
    let identity = head.identity()?;
    let resource_version = identity.resource_version;
    let identity = CronJobIdentity {
        namespace: identity.namespace,
        name: identity.name,
        uid: identity.uid,
    };
    Ok((Arc::new(identity), resource_version))
}

fn parts(
    metadata: RawMetadata<'_>,
    raw_spec: Field<RawSpec<'_>>,
    raw_status: Field<RawStatus<'_>>,
    (identity, resource_version): &(Arc<CronJobIdentity>, ResourceVersion),
) -> Result<Parts, FieldError> {
    let raw_spec = raw_spec
        .optional("spec")?
        .ok_or_else(|| FieldError::new("spec", "missing"))?;
    let (spec, raw_template) = spec(raw_spec)?;
    Ok(Parts {
        identity: Arc::clone(identity),
        resource_version: *resource_version,
        created: metadata.head.created()?,
        is_deleting: metadata.head.is_deleting(),
        spec,
        template: Arc::new(job_template(raw_template, &identity.name, &identity.uid)?),
        retained_metadata: Arc::new(RetainedMetadata {
            members: metadata.retained_members.into(),
        }),
        trouble_thresholds: metadata.trouble_thresholds,
        status: status(raw_status)?,
    })
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

impl<'de> Value<'de> for RawMetadata<'de> {
    const EXPECTED: &'static str = "an object";

    fn from_members<A: MapAccess<'de>>(mut members: A) -> Result<Option<Self>, A::Error> {
        let mut raw = RawMetadata::default();
        while let Some(Name(name)) = members.next_key()? {
            if raw.head.take(&name, &mut members)? {
                continue;
            }
            match &*name {
                "generation" | "deletionGracePeriodSeconds" | "selfLink" => ignore(&mut members)?,
                "managedFields" => raw.status_writer = members.next_value()?,
                name => {
                    if let Some(value) = members.next_value::<Option<&RawValue>>()? {
                        if name == "annotations" {
                            raw.trouble_thresholds = trouble_thresholds(value.get());
                        }
                        push_raw_member(&mut raw.retained_members, name, value.get());
                    }
                }
            }
        }
        Ok(Some(raw))
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

impl<'de> Value<'de> for ThresholdAnnotations {
    const EXPECTED: &'static str = "an object";

    fn from_members<A: MapAccess<'de>>(mut members: A) -> Result<Option<Self>, A::Error> {
        let mut thresholds = TroubleThresholds::default();
        while let Some(Name(name)) = members.next_key()? {
            let value: Field<Cow<'de, str>> = members.next_value()?;
            if let Some(threshold) = Threshold::ALL.into_iter().find(|known| known.annotation() == name) {
                thresholds.set(threshold, &value.if_read().unwrap_or_default());
            }
        }
        Ok(Some(ThresholdAnnotations(thresholds)))
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

fn spec(raw: RawSpec<'_>) -> Result<(Spec, Field<RawTemplate<'_>>), FieldError> {
    let deadline = raw.starting_deadline_seconds.optional("spec.startingDeadlineSeconds")?;
    let spec = Spec {
        // An absent schedule is an empty one, which the parser refuses with its own message.
        schedule: raw.schedule.optional("spec.schedule")?.unwrap_or_default().into(),
        time_zone: raw.time_zone.optional("spec.timeZone")?.map(Into::into),
        // The API server accepts no negative value (B-16.2).
        starting_deadline_seconds: deadline.map(|seconds| seconds.max(0)),
        concurrency_policy: match raw.concurrency_policy.optional("spec.concurrencyPolicy")?.as_deref() {
            Some("Forbid") => ConcurrencyPolicy::Forbid,
            Some("Replace") => ConcurrencyPolicy::Replace,
            _ => ConcurrencyPolicy::Allow,
        },
        is_suspended: raw.suspend.optional("spec.suspend")?.unwrap_or(false),
        successful_jobs_history_limit: limit("spec.successfulJobsHistoryLimit", raw.successful_jobs_history_limit)?,
        failed_jobs_history_limit: limit("spec.failedJobsHistoryLimit", raw.failed_jobs_history_limit)?,
    };
    Ok((spec, raw.job_template))
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

impl<'de> Value<'de> for RawStatus<'de> {
    const EXPECTED: &'static str = "an object";

    fn from_members<A: MapAccess<'de>>(mut members: A) -> Result<Option<Self>, A::Error> {
        let mut raw = RawStatus::default();
        while let Some(Name(name)) = members.next_key()? {
            match &*name {
                "active" => raw.active = members.next_value()?,
                "lastScheduleTime" => raw.last_schedule_time = members.next_value()?,
                "lastSuccessfulTime" => raw.last_successful_time = members.next_value()?,
                name => {
                    if let Some(value) = members.next_value::<Option<&RawValue>>()? {
                        push_raw_member(&mut raw.unknown_members, name, value.get());
                    }
                }
            }
        }
        Ok(Some(raw))
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
