//! CronJobs to facts.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, de::IgnoredAny};

use super::{
    fields::{Decoded, ManagedFieldsList, Members, Problem, spec_entries},
    slim::{Content, Head, Slim},
};
use crate::{
    kube_api::objects::{
        decode::{field::Field, parse::Text},
        resumption::Resumption,
    },
    observe::facts::{CronJobFacts, Labels},
    schedule::{ConcurrencyPolicy, CronJobSchedule, Zone, options::OptionName},
    shard::{Uid, hash::spread_hash},
};

/// The limits of a CronJob that sets none: the API server sets these.
const HISTORY_LIMIT_SUCCESSFUL: u32 = 3;
const HISTORY_LIMIT_FAILED: u32 = 1;

/// A CronJob whose schedule is not parsed yet, for which the default zone must be known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::observe) struct CronJobContent {
    namespace: Box<str>,
    name: Box<str>,
    uid: Uid,
    labels: Labels,
    /// The annotations that are options; `None` without any.
    options: Option<Box<OptionTexts>>,
    created: Timestamp,
    is_deleting: bool,
    schedule: Box<str>,
    time_zone: Option<Box<str>>,
    starting_deadline_seconds: Option<i64>,
    concurrency_policy: ConcurrencyPolicy,
    is_suspended: bool,
    successful_jobs_history_limit: u32,
    failed_jobs_history_limit: u32,
    has_active_deadline: bool,
    ttl_seconds_after_finished: Option<i64>,
    last_schedule_time: Option<Timestamp>,
    last_successful_time: Option<Timestamp>,
    spec_changed: Option<Timestamp>,
    resumption: Option<Resumption>,
}

impl Content for CronJobContent {
    const KIND: &'static str = "CronJob";
    const PLURAL: &'static str = "cronjobs";

    fn receive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Slim<CronJobContent>, D::Error> {
        let cron_job: RawCronJob<'de> = Field::deserialize(deserializer)?.ok().unwrap_or_default();
        let mut head = Head::default();
        let decoded = Decoded::contained(|members| {
            let mut metadata = members.take_or_default(cron_job.metadata, "metadata");
            let RawMetadata {
                namespace,
                name,
                uid,
                resource_version,
                ..
            } = &mut metadata;
            head = Head::new(members, [namespace, name, uid, resource_version]);
            let identity = head.identity()?;
            content(members, identity, metadata, (cron_job.spec, cron_job.status)).map(Some)
        });
        Ok(Slim::new(&head, decoded))
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawCronJob<'a> {
    #[serde(borrow)]
    metadata: Field<RawMetadata<'a>>,
    spec: Field<Spec<'a>>,
    status: Field<Status>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RawMetadata<'a> {
    #[serde(borrow)]
    namespace: Field<Text<'a>>,
    name: Field<Text<'a>>,
    uid: Field<Text<'a>>,
    resource_version: Field<Text<'a>>,
    labels: Field<BTreeMap<Text<'a>, Field<Text<'a>>>>,
    annotations: Field<Annotations<'a>>,
    creation_timestamp: Field<Timestamp>,
    deletion_timestamp: Field<IgnoredAny>,
    managed_fields: ManagedFieldsList<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec<'a> {
    #[serde(borrow)]
    schedule: Field<Text<'a>>,
    time_zone: Field<Text<'a>>,
    starting_deadline_seconds: Field<i64>,
    concurrency_policy: Field<Text<'a>>,
    suspend: Field<bool>,
    successful_jobs_history_limit: Field<i64>,
    failed_jobs_history_limit: Field<i64>,
    job_template: Field<JobTemplate>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct JobTemplate {
    spec: Field<JobSpec>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct JobSpec {
    active_deadline_seconds: Field<i64>,
    ttl_seconds_after_finished: Field<i64>,
    template: Field<PodTemplate>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodTemplate {
    spec: Field<PodSpec>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodSpec {
    active_deadline_seconds: Field<i64>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    last_schedule_time: Field<Timestamp>,
    last_successful_time: Field<Timestamp>,
}

fn content(
    members: &mut Members,
    (namespace, name, uid): (Box<str>, Box<str>, Uid),
    metadata: RawMetadata<'_>,
    (spec, status): (Field<Spec<'_>>, Field<Status>),
) -> Result<CronJobContent, Problem> {
    let created = members.take(metadata.creation_timestamp, "metadata.creationTimestamp");
    let labels = members.take_or_default(metadata.labels, "metadata.labels");
    let labels = labels.into_iter().filter_map(|(key, value)| {
        let value = members.text(value, "metadata.labels")?;
        Some(((*key).into(), (*value).into()))
    });
    let labels = labels.collect();
    let options = options(members, metadata.annotations);
    let spec = members.take_or_default(spec, "spec");
    let status = members.take_or_default(status, "status");
    let template = template(members, spec.job_template);
    let policy = members.text(spec.concurrency_policy, "spec.concurrencyPolicy");
    let deadline = members.take(spec.starting_deadline_seconds, "spec.startingDeadlineSeconds");
    let created = created.ok_or_else(|| Problem::missing("metadata.creationTimestamp"))?;
    let is_suspended = members.take(spec.suspend, "spec.suspend") == Some(true);
    let changes = spec_entries(metadata.managed_fields);
    let mut limit = |limit, path, default| history_limit(members.take(limit, path), default);
    Ok(CronJobContent {
        successful_jobs_history_limit: limit(
            spec.successful_jobs_history_limit,
            "spec.successfulJobsHistoryLimit",
            HISTORY_LIMIT_SUCCESSFUL,
        ),
        failed_jobs_history_limit: limit(
            spec.failed_jobs_history_limit,
            "spec.failedJobsHistoryLimit",
            HISTORY_LIMIT_FAILED,
        ),
        namespace,
        name,
        uid,
        labels,
        options,
        created,
        is_deleting: metadata.deletion_timestamp.ok().is_some(),
        // An absent schedule is an empty one, which the parser refuses with its own message.
        schedule: boxed(members.text(spec.schedule, "spec.schedule").unwrap_or_default()),
        time_zone: members.text(spec.time_zone, "spec.timeZone").map(boxed),
        // The API server accepts no negative value (B-16.2).
        starting_deadline_seconds: deadline.map(|seconds| seconds.max(0)),
        concurrency_policy: ConcurrencyPolicy::of_name(policy.as_deref()),
        is_suspended,
        has_active_deadline: template.has_active_deadline,
        ttl_seconds_after_finished: template.ttl_seconds_after_finished,
        last_schedule_time: members.take(status.last_schedule_time, "status.lastScheduleTime"),
        last_successful_time: members.take(status.last_successful_time, "status.lastSuccessfulTime"),
        spec_changed: changes.iter().map(|entry| entry.time).max(),
        resumption: Resumption::of(&changes, created).filter(|_| !is_suspended),
    })
}

fn boxed(text: std::borrow::Cow<'_, str>) -> Box<str> {
    Box::from(&*text)
}

/// The values of options, by annotation.
type OptionTexts = BTreeMap<&'static str, Box<str>>;

/// The annotations that are options and concern slots. Others are not kept: some hold whole manifests.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Annotations<'a> {
    #[serde(borrow, rename = "cronwheel.dev/spread")]
    spread: Field<Text<'a>>,
    #[serde(rename = "cronwheel.dev/missed-runs")]
    missed_runs: Field<Text<'a>>,
    #[serde(rename = "cronwheel.dev/on-resume")]
    on_resume: Field<Text<'a>>,
    #[serde(rename = "cronwheel.dev/schedule")]
    schedule: Field<Text<'a>>,
    #[serde(rename = "cronwheel.dev/clock-change")]
    clock_change: Field<Text<'a>>,
    #[serde(rename = "cronwheel.dev/pass-scheduled-time")]
    pass_scheduled_time: Field<Text<'a>>,
    #[serde(rename = "cronwheel.dev/not-on")]
    not_on: Field<Text<'a>>,
    #[serde(rename = "cronwheel.dev/manual-jobs")]
    manual_jobs: Field<Text<'a>>,
}

fn options(members: &mut Members, annotations: Field<Annotations<'_>>) -> Option<Box<OptionTexts>> {
    let annotations = members.take_or_default(annotations, "metadata.annotations");
    let texts = [
        (OptionName::Spread, annotations.spread),
        (OptionName::MissedRuns, annotations.missed_runs),
        (OptionName::OnResume, annotations.on_resume),
        (OptionName::Schedule, annotations.schedule),
        (OptionName::ClockChange, annotations.clock_change),
        (OptionName::PassScheduledTime, annotations.pass_scheduled_time),
        (OptionName::NotOn, annotations.not_on),
        (OptionName::ManualJobs, annotations.manual_jobs),
    ];
    let texts = texts.into_iter().filter_map(|(option, text)| {
        let text = members.text(text, "metadata.annotations")?;
        Some((option.annotation(), boxed(text)))
    });
    let texts: OptionTexts = texts.collect();
    (!texts.is_empty()).then(|| Box::new(texts))
}

/// What the view reads of a Job template.
struct Template {
    has_active_deadline: bool,
    ttl_seconds_after_finished: Option<i64>,
}

fn template(members: &mut Members, template: Field<JobTemplate>) -> Template {
    let template = members.take_or_default(template, "spec.jobTemplate");
    let job = members.take_or_default(template.spec, "spec.jobTemplate.spec");
    let pod = members.take_or_default(job.template, "spec.jobTemplate.spec.template");
    let pod = members.take_or_default(pod.spec, "spec.jobTemplate.spec.template.spec");
    let deadlines = [
        (
            job.active_deadline_seconds,
            "spec.jobTemplate.spec.activeDeadlineSeconds",
        ),
        (
            pod.active_deadline_seconds,
            "spec.jobTemplate.spec.template.spec.activeDeadlineSeconds",
        ),
    ];
    let deadlines = deadlines.map(|(deadline, path)| members.take(deadline, path));
    Template {
        has_active_deadline: deadlines.iter().any(Option::is_some),
        ttl_seconds_after_finished: members.take(
            job.ttl_seconds_after_finished,
            "spec.jobTemplate.spec.ttlSecondsAfterFinished",
        ),
    }
}

/// A negative limit, which the API server never accepts, keeps all Jobs.
fn history_limit(limit: Option<i64>, default: u32) -> u32 {
    limit.map_or(default, |limit| u32::try_from(limit).unwrap_or(u32::MAX))
}

impl CronJobContent {
    /// The facts; `default_zone` is that of schedules that name none.
    pub(in crate::observe) fn into_facts(self, default_zone: &Zone) -> CronJobFacts {
        let schedule = CronJobSchedule::new(&self.schedule, self.time_zone.as_deref(), default_zone);
        let schedule = match &self.options {
            Some(options) => {
                let get = |name: &str| options.get(name).map(AsRef::as_ref);
                schedule.with_options(&self.name, get, spread_hash(&self.uid))
            }
            None => schedule,
        };
        CronJobFacts {
            schedule,
            uid: self.uid,
            namespace: self.namespace,
            name: self.name,
            labels: self.labels,
            created: self.created,
            is_deleting: self.is_deleting,
            starting_deadline_seconds: self.starting_deadline_seconds,
            concurrency_policy: self.concurrency_policy,
            is_suspended: self.is_suspended,
            successful_jobs_history_limit: self.successful_jobs_history_limit,
            failed_jobs_history_limit: self.failed_jobs_history_limit,
            has_active_deadline: self.has_active_deadline,
            ttl_seconds_after_finished: self.ttl_seconds_after_finished,
            last_schedule_time: self.last_schedule_time,
            last_successful_time: self.last_successful_time,
            spec_changed: self.spec_changed,
            resumption: self.resumption,
        }
    }
}
