//! CronJobs: the text as received, and the record that is decoded from it.

use std::{collections::BTreeMap, fmt, sync::Arc};

use jiff::Timestamp;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{
    Content, DecodeError, Decoder, Received, ReceivedCronJob, UndecodableCronJob,
    metadata::Head,
    namespace::texts_in,
    parse::{FieldError, Text, parse},
    template::{RawTemplate, job_template},
};
use crate::{
    kube_api::{objects::encode::push_raw_member, other_controllers::StatusWriter},
    schedule::options::{Options, RUN_DONE_ANNOTATION, may_be_done},
    shard::{
        ALERTS_ANNOTATION, ActiveJob, ConcurrencyPolicy, CronJobIdentity, CronJobRecord, CronJobSchedule,
        CronJobStatus, Owner, ResourceVersion, RunTokens, Threshold, TroubleThresholds, Uid, hash::spread_hash,
        panics::contain,
    },
};

/// The text of a CronJob. Only the head of its metadata is decoded when it is received.
#[derive(Clone, Debug)]
pub struct CronJobText(Arc<str>);

impl Content for CronJobText {
    const KIND: &'static str = "CronJob";
    const PLURAL: &'static str = "cronjobs";

    fn receive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ReceivedCronJob, D::Error> {
        let text = <&RawValue>::deserialize(deserializer)?.get();
        Ok(Received::new(&head(text), CronJobText(text.into())))
    }
}

/// Returns what can be decoded, of an object with any other fields.
fn head(text: &str) -> Head<'_> {
    #[derive(Deserialize)]
    struct Object<'a> {
        #[serde(borrow)]
        metadata: Head<'a>,
    }
    let head = contain(|| serde_json::from_str(text).map(|Object { metadata }| metadata));
    head.ok().and_then(Result::ok).unwrap_or_default()
}

impl ReceivedCronJob {
    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.content.0
    }
}

/// The identity of a CronJob, and its version.
type Identity = (Arc<CronJobIdentity>, ResourceVersion);

impl Decoder {
    /// Creates the record of a CronJob from its text.
    pub fn cron_job(&self, text: &str) -> Result<CronJobRecord, UndecodableCronJob> {
        contained(text, || self.decode(text))
    }

    fn decode(&self, text: &str) -> Result<CronJobRecord, UndecodableCronJob> {
        let raw: Result<RawCronJob<'_>, FieldError> = parse(text);
        let head = raw
            .as_ref()
            .map_or_else(|_| head(text), |raw| raw.metadata.head.clone());
        let identity = identity(&head);
        let record = raw.and_then(|raw| self.record(identity.clone()?, raw));
        record.map_err(|error| UndecodableCronJob {
            error: DecodeError::new(CronJobText::KIND, &head, error),
            cron_job: identity.ok(),
        })
    }

    fn record(&self, identity: Identity, raw: RawCronJob<'_>) -> Result<CronJobRecord, FieldError> {
        let (identity, resource_version) = identity;
        let RawCronJob { metadata, spec, status } = raw;
        let has_status_of_other = self.note_status_writer(&identity, &metadata.managed_fields.unwrap_or_default());
        let created = metadata.creation_timestamp;
        let spec = spec.ok_or_else(|| FieldError::missing("spec"))?;
        let template = spec
            .job_template
            .ok_or_else(|| FieldError::missing("spec.jobTemplate"))?;
        // An absent schedule is an empty one, which the parser refuses with its own message.
        let schedule = spec.schedule.as_deref().unwrap_or_default();
        let schedule = CronJobSchedule::new(schedule, spec.time_zone.as_deref(), &self.default_zone);
        let schedule = match &metadata.options {
            Some(annotations) => {
                let get = |name: &str| annotations.get(name).map(String::as_str);
                schedule.with_options(&identity.name, get, spread_hash(&identity.uid))
            }
            None => schedule,
        };
        let template = job_template(template, &identity, schedule.options().passes_scheduled_time)?;
        let runs_done = metadata
            .options
            .as_ref()
            .and_then(|annotations| annotations.get(RUN_DONE_ANNOTATION))
            .filter(|done| may_be_done(done));
        let mut status = status.map_or_else(CronJobStatus::default, self::status);
        status.runs_done = runs_done.map(|done| Box::new(RunTokens(done.as_str().into())));
        Ok(CronJobRecord {
            resource_version,
            schedule,
            // The API server accepts no negative value (B-16.2).
            starting_deadline_seconds: spec.starting_deadline_seconds.map(|seconds| seconds.max(0)),
            concurrency_policy: ConcurrencyPolicy::of_name(spec.concurrency_policy.as_deref()),
            is_suspended: spec.suspend.unwrap_or(false),
            successful_jobs_history_limit: limit(spec.successful_jobs_history_limit),
            failed_jobs_history_limit: limit(spec.failed_jobs_history_limit),
            created: created.ok_or_else(|| FieldError::missing("metadata.creationTimestamp"))?,
            is_deleting: metadata.deletion_timestamp.is_some(),
            has_status_of_other,
            template: Arc::new(template),
            retained_metadata: Arc::new(metadata.retained_members.into()),
            trouble_thresholds: metadata.trouble_thresholds,
            owner: self
                .owner_label
                .as_deref()
                .and_then(|label| owner(metadata.labels, label)),
            status,
            identity,
        })
    }

    /// Takes note of a status write by another field manager. Returns whether it is evidence, and the last write.
    fn note_status_writer(&self, identity: &CronJobIdentity, entries: &[ManagedFields<'_>]) -> bool {
        status_writer(entries).is_some_and(|writer| {
            let is_evidence = self.other_controllers.note_status_write(identity, &writer);
            is_evidence && entries.iter().all(|entry| entry.time <= Some(writer.at))
        })
    }
}

/// Decodes a CronJob. If cronwheel panics, the CronJob counts as one that cannot be decoded.
pub(super) fn contained(
    text: &str,
    decode: impl FnOnce() -> Result<CronJobRecord, UndecodableCronJob>,
) -> Result<CronJobRecord, UndecodableCronJob> {
    contain(decode).unwrap_or_else(|message| {
        let head = head(text);
        Err(UndecodableCronJob {
            error: DecodeError::new(CronJobText::KIND, &head, FieldError::panic(&message)),
            cron_job: identity(&head).ok(),
        })
    })
}

fn identity(head: &Head<'_>) -> Result<Identity, FieldError> {
    let identity = CronJobIdentity {
        namespace: head.namespace()?,
        name: head.name()?,
        uid: head.uid()?,
    };
    Ok((Arc::new(identity), head.resource_version()?))
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct RawCronJob<'a> {
    #[serde(borrow, default)]
    metadata: RawMetadata<'a>,
    spec: Option<RawSpec<'a>>,
    status: Option<RawStatus<'a>>,
}

#[derive(Default)]
struct RawMetadata<'a> {
    head: Head<'a>,
    creation_timestamp: Option<Timestamp>,
    deletion_timestamp: Option<IgnoredAny>,
    managed_fields: Option<Vec<ManagedFields<'a>>>,
    /// The members of the metadata that a status write repeats, each with a leading comma (B-16.4): all that an API
    /// server does not maintain itself: labels, annotations, finalizers, owner references, `generateName` and unknown
    /// members.
    retained_members: String,
    trouble_thresholds: TroubleThresholds,
    /// The labels, as text.
    labels: &'a str,
    /// The annotations, if they may contain an option.
    options: Option<BTreeMap<String, String>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for RawMetadata<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RawMetadata::default())
    }
}

impl<'de> Visitor<'de> for RawMetadata<'de> {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<Self, A::Error> {
        while let Some(Text(name)) = members.next_key()? {
            if self.head.read_member(&name, &mut members)? {
                continue;
            }
            match &*name {
                "creationTimestamp" => self.creation_timestamp = members.next_value()?,
                "deletionTimestamp" => self.deletion_timestamp = members.next_value()?,
                "managedFields" => self.managed_fields = members.next_value()?,
                "generation" | "deletionGracePeriodSeconds" | "selfLink" => _ = members.next_value::<IgnoredAny>()?,
                _ => {
                    let value = push_member(&mut self.retained_members, &name, &mut members)?;
                    match &*name {
                        "annotations" => {
                            self.trouble_thresholds = trouble_thresholds(value);
                            self.options = options(value);
                        }
                        "labels" => self.labels = value,
                        _ => {}
                    }
                }
            }
        }
        Ok(self)
    }
}

/// Appends the next member as received, unless it is null, and returns the text of its value.
fn push_member<'de, A: MapAccess<'de>>(text: &mut String, name: &str, members: &mut A) -> Result<&'de str, A::Error> {
    let value: Option<&RawValue> = members.next_value()?;
    let value = value.map_or("", RawValue::get);
    if !value.is_empty() {
        push_raw_member(text, name, value);
    }
    Ok(value)
}

/// Decodes the annotations about trouble. Most CronJobs have none, which is a cheap check.
fn trouble_thresholds(annotations: &str) -> TroubleThresholds {
    let mut thresholds = TroubleThresholds::default();
    if !annotations.contains("-after-seconds") && !annotations.contains(ALERTS_ANNOTATION) {
        return thresholds;
    }
    let annotations = texts_in(annotations);
    for threshold in Threshold::ALL {
        if let Some(value) = annotations.get(threshold.annotation()) {
            thresholds.set(threshold, value);
        }
    }
    if let Some(value) = annotations.get(ALERTS_ANNOTATION) {
        thresholds.set_alerts(value);
    }
    thresholds
}

/// Maximum length of the value of a label that an API server accepts.
const LABEL_MAX_BYTES: usize = 63;

/// The value of a label; `None` if it is empty, or longer than an API server accepts.
fn owner(labels: &str, label: &str) -> Option<Box<Owner>> {
    if !labels.contains(label) {
        return None;
    }
    let labels: BTreeMap<String, Text<'_>> = serde_json::from_str(labels).ok()?;
    let owner = &**labels.get(label)?;
    (!owner.is_empty() && owner.len() <= LABEL_MAX_BYTES).then(|| Box::new(Owner(owner.into())))
}

/// Decodes the annotations with options. Most CronJobs have none, which is a cheap check.
fn options(annotations: &str) -> Option<BTreeMap<String, String>> {
    let may_have = Options::may_be_in(annotations);
    may_have.then(|| texts_in(annotations))
}

/// An entry of `metadata.managedFields`, without the fields themselves.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct ManagedFields<'a> {
    #[serde(borrow)]
    manager: Option<Text<'a>>,
    subresource: Option<Text<'a>>,
    time: Option<Timestamp>,
}

/// Returns the last status write by another field manager, if there is one.
fn status_writer(entries: &[ManagedFields<'_>]) -> Option<StatusWriter> {
    let of_status = entries
        .iter()
        .filter(|entry| entry.subresource.as_deref() == Some("status"));
    let writers = of_status.filter_map(|entry| StatusWriter::other(entry.manager.as_deref()?, entry.time?));
    writers.max_by_key(|writer| writer.at)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object")]
struct RawSpec<'a> {
    #[serde(borrow)]
    schedule: Option<Text<'a>>,
    time_zone: Option<Text<'a>>,
    starting_deadline_seconds: Option<i64>,
    concurrency_policy: Option<Text<'a>>,
    suspend: Option<bool>,
    successful_jobs_history_limit: Option<i64>,
    failed_jobs_history_limit: Option<i64>,
    job_template: Option<RawTemplate<'a>>,
}

/// A negative limit, which the API server never accepts, keeps all Jobs: the interpretation that deletes nothing.
fn limit(limit: Option<i64>) -> Option<u32> {
    let limit = limit.filter(|limit| *limit >= 0)?;
    Some(u32::try_from(limit).unwrap_or(u32::MAX))
}

/// `status`. Its times must be valid, since one of them is the cursor.
#[derive(Default)]
struct RawStatus<'a> {
    active: Option<Vec<RawActiveJob<'a>>>,
    last_schedule_time: Option<Timestamp>,
    last_successful_time: Option<Timestamp>,
    unknown_members: String,
}

impl<'de: 'a, 'a> Deserialize<'de> for RawStatus<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RawStatus::default())
    }
}

impl<'de> Visitor<'de> for RawStatus<'de> {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<Self, A::Error> {
        while let Some(Text(name)) = members.next_key()? {
            match &*name {
                "active" => self.active = members.next_value()?,
                "lastScheduleTime" => self.last_schedule_time = members.next_value()?,
                "lastSuccessfulTime" => self.last_successful_time = members.next_value()?,
                _ => _ = push_member(&mut self.unknown_members, &name, &mut members)?,
            }
        }
        Ok(self)
    }
}

fn status(raw: RawStatus<'_>) -> CronJobStatus {
    let mut active: Vec<ActiveJob> = raw.active.into_iter().flatten().filter_map(active_job).collect();
    // The list is held for long, and mostly has one entry or none.
    active.shrink_to_fit();
    CronJobStatus {
        active,
        last_schedule_time: raw.last_schedule_time,
        last_successful_time: raw.last_successful_time,
        unknown_members: (!raw.unknown_members.is_empty()).then(|| raw.unknown_members.into()),
        runs_done: None,
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object")]
struct RawActiveJob<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    namespace: Option<Text<'a>>,
    uid: Option<Text<'a>>,
    resource_version: Option<Text<'a>>,
}

/// Maximum length of a name that an API server accepts.
const JOB_NAME_MAX_BYTES: usize = 253;

/// Decodes an entry of `status.active`, which the server does not validate (B-16.4). Entries without a uid, or without
/// a possible Job name, are left out: a look-up of an empty name would be a list.
fn active_job(entry: RawActiveJob<'_>) -> Option<ActiveJob> {
    let text = |text: Option<Text<'_>>| text.as_deref().unwrap_or_default().into();
    let name: Box<str> = text(entry.name);
    if name.is_empty() || name.len() > JOB_NAME_MAX_BYTES {
        return None;
    }
    Some(ActiveJob {
        name,
        namespace: text(entry.namespace),
        uid: Uid::new(&entry.uid?),
        resource_version: text(entry.resource_version),
    })
}
