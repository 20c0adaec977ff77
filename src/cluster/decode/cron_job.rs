//! CronJob: everything of the record but the effective schedule, which needs the default zone.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    DecodeError, RawObject, SlimContent,
    fields::{FieldError, Members, Text, is_null, read, read_optional, text, time},
    metadata::Metadata,
    template::job_template,
};
use crate::{
    schedule::Zone,
    state::{
        ActiveJob, ConcurrencyPolicy, CronJobIdentity, CronJobRecord, CronJobSchedule, CronJobStatus, JobTemplate,
        ResourceVersion, Uid, record::RetainedMetadata,
    },
};

/// What we keep of a CronJob.
#[derive(Clone, Debug)]
pub struct CronJobContent {
    identity: Option<(Arc<CronJobIdentity>, ResourceVersion)>,
    parts: Result<Parts, DecodeError>,
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

    fn read(object: &RawObject<'_>) -> CronJobContent {
        let identity = identity(&object.metadata);
        let parts = match &identity {
            Ok((identity, resource_version)) => parts(object, identity, *resource_version),
            Err(error) => Err(error.clone()),
        };
        CronJobContent {
            identity: identity.ok(),
            parts: parts.map_err(|error| DecodeError::new(Self::KIND, &object.metadata, error)),
        }
    }
}

impl CronJobContent {
    pub(super) fn identity(&self) -> Option<&(Arc<CronJobIdentity>, ResourceVersion)> {
        self.identity.as_ref()
    }

    pub(super) fn record(&self, default_zone: &Zone) -> Result<CronJobRecord, DecodeError> {
        let parts = self.parts.clone()?;
        let schedule = CronJobSchedule::new(&parts.spec.schedule, parts.spec.time_zone.as_deref(), default_zone);
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
            template: parts.template,
            retained_metadata: parts.retained_metadata,
            status: parts.status,
        })
    }
}

fn identity(metadata: &Metadata<'_>) -> Result<(Arc<CronJobIdentity>, ResourceVersion), FieldError> {
    let identity = CronJobIdentity {
        namespace: metadata.namespace()?,
        name: metadata.name()?,
        uid: metadata.uid()?,
    };
    Ok((Arc::new(identity), metadata.resource_version()?))
}

fn parts(
    object: &RawObject<'_>,
    identity: &Arc<CronJobIdentity>,
    resource_version: ResourceVersion,
) -> Result<Parts, FieldError> {
    let raw: RawSpec<'_> = read_optional("spec", object.spec)?.ok_or_else(|| FieldError::new("spec", "missing"))?;
    Ok(Parts {
        identity: Arc::clone(identity),
        resource_version,
        created: object.metadata.created()?,
        is_deleting: object.metadata.is_deleting(),
        spec: spec(&raw)?,
        template: Arc::new(job_template(raw.job_template, &identity.name, &identity.uid)?),
        retained_metadata: Arc::new(RetainedMetadata {
            members: object.metadata.retained_members(),
        }),
        status: status(object.status)?,
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawSpec<'a> {
    #[serde(borrow)]
    schedule: Option<&'a RawValue>,
    #[serde(borrow)]
    time_zone: Option<&'a RawValue>,
    #[serde(borrow)]
    starting_deadline_seconds: Option<&'a RawValue>,
    #[serde(borrow)]
    concurrency_policy: Option<&'a RawValue>,
    #[serde(borrow)]
    suspend: Option<&'a RawValue>,
    #[serde(borrow)]
    successful_jobs_history_limit: Option<&'a RawValue>,
    #[serde(borrow)]
    failed_jobs_history_limit: Option<&'a RawValue>,
    #[serde(borrow)]
    job_template: Option<&'a RawValue>,
}

fn spec(raw: &RawSpec<'_>) -> Result<Spec, FieldError> {
    let deadline: Option<i64> = read_optional("spec.startingDeadlineSeconds", raw.starting_deadline_seconds)?;
    Ok(Spec {
        // An absent schedule is an empty one, which the parser refuses in its own words.
        schedule: text("spec.schedule", raw.schedule)?.unwrap_or_default().into(),
        time_zone: text("spec.timeZone", raw.time_zone)?.map(Into::into),
        // The API server lets no negative value pass (B-16.2).
        starting_deadline_seconds: deadline.map(|seconds| seconds.max(0)),
        concurrency_policy: match text("spec.concurrencyPolicy", raw.concurrency_policy)?.as_deref() {
            Some("Forbid") => ConcurrencyPolicy::Forbid,
            Some("Replace") => ConcurrencyPolicy::Replace,
            _ => ConcurrencyPolicy::Allow,
        },
        is_suspended: read_optional("spec.suspend", raw.suspend)?.unwrap_or(false),
        successful_jobs_history_limit: limit("spec.successfulJobsHistoryLimit", raw.successful_jobs_history_limit)?,
        failed_jobs_history_limit: limit("spec.failedJobsHistoryLimit", raw.failed_jobs_history_limit)?,
    })
}

fn limit(field: &'static str, value: Option<&RawValue>) -> Result<Option<u32>, FieldError> {
    let limit: Option<i64> = read_optional(field, value)?;
    Ok(limit.map(|limit| u32::try_from(limit.max(0)).unwrap_or(u32::MAX)))
}

/// Reads `status`; its times must be readable, since one of them is the cursor.
fn status(raw: Option<&RawValue>) -> Result<CronJobStatus, FieldError> {
    let Some(Members(members)) = read_optional("status", raw)? else {
        return Ok(CronJobStatus::default());
    };
    let mut status = CronJobStatus::default();
    let mut unknown_members = String::new();
    for member in members {
        let value = Some(member.value);
        match &*member.name() {
            "active" => status.active = active(value)?,
            "lastScheduleTime" => status.last_schedule_time = time("status.lastScheduleTime", value)?,
            "lastSuccessfulTime" => status.last_successful_time = time("status.lastSuccessfulTime", value)?,
            _ => {
                unknown_members.push(',');
                unknown_members.push_str(member.raw_name);
                unknown_members.push(':');
                unknown_members.push_str(member.value.get());
            }
        }
    }
    status.unknown_members = (!unknown_members.is_empty()).then(|| unknown_members.into());
    Ok(status)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawActiveJob<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    namespace: Option<Text<'a>>,
    #[serde(borrow)]
    uid: Option<Text<'a>>,
    #[serde(borrow)]
    resource_version: Option<Text<'a>>,
}

/// Reads `status.active`. The server validates nothing of it (B-16.4): an entry that cannot be read, or
/// that names no Job or no uid, is left out.
fn active(value: Option<&RawValue>) -> Result<Vec<ActiveJob>, FieldError> {
    let entries: Vec<&RawValue> = read_optional("status.active", value)?.unwrap_or_default();
    let entries = entries.into_iter().filter(|entry| !is_null(entry));
    Ok(entries.filter_map(active_job).collect())
}

fn active_job(entry: &RawValue) -> Option<ActiveJob> {
    let entry: RawActiveJob<'_> = read("status.active", entry).ok()?;
    Some(ActiveJob {
        name: entry.name?.0.into(),
        namespace: entry.namespace.map(|text| text.0.into()).unwrap_or_default(),
        uid: Uid::new(&entry.uid?.0),
        resource_version: entry.resource_version.map(|text| text.0.into()).unwrap_or_default(),
    })
}
