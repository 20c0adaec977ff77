//! Jobs to runs. Jobs that no CronJob controls are dropped.

use std::borrow::Cow;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Deserializer, de::IgnoredAny};

use super::{
    fields::{Decoded, ManagedFieldsList, Members, Problem, first_manager},
    slim::{Content, Head, Slim},
};
use crate::{
    kube_api::objects::{
        decode::{field::Field, job::Annotations, parse::Text},
        encode::BACKFILL,
    },
    observe::facts::{Creator, Hindrance, Run, RunResult},
    shard::{Uid, naming::is_job_name},
};

/// A Job of a CronJob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::observe) struct JobContent(pub(in crate::observe) Run);

impl Content for JobContent {
    const KIND: &'static str = "Job";
    const PLURAL: &'static str = "jobs";

    fn receive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Slim<JobContent>, D::Error> {
        let job: RawJob<'de> = Field::deserialize(deserializer)?.ok().unwrap_or_default();
        let mut head = Head::default();
        let decoded = Decoded::contained(|members| {
            let mut metadata = members.take_or_default(job.metadata, "metadata");
            let RawMetadata {
                namespace,
                name,
                uid,
                resource_version,
                ..
            } = &mut metadata;
            head = Head::new(members, [namespace, name, uid, resource_version]);
            let references = members.take_or_default(
                std::mem::take(&mut metadata.owner_references),
                "metadata.ownerReferences",
            );
            let Some(owner) = cron_job_of(references) else {
                return Ok(None);
            };
            let (_, name, uid) = head.identity()?;
            run(members, owner, (name, uid), metadata, (job.spec, job.status)).map(|run| Some(JobContent(run)))
        });
        Ok(Slim::new(&head, decoded))
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawJob<'a> {
    #[serde(borrow)]
    metadata: Field<RawMetadata<'a>>,
    spec: Field<Spec>,
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
    creation_timestamp: Field<Timestamp>,
    deletion_timestamp: Field<IgnoredAny>,
    finalizers: Field<Vec<Field<Text<'a>>>>,
    annotations: Field<Annotations<'a>>,
    owner_references: Field<Vec<Field<OwnerReference<'a>>>>,
    managed_fields: ManagedFieldsList<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct OwnerReference<'a> {
    #[serde(borrow)]
    api_version: Field<Text<'a>>,
    kind: Field<Text<'a>>,
    name: Field<Text<'a>>,
    uid: Field<Text<'a>>,
    controller: Field<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    suspend: Field<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status<'a> {
    start_time: Field<Timestamp>,
    completion_time: Field<Timestamp>,
    #[serde(borrow)]
    conditions: Field<Vec<Field<Condition<'a>>>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Condition<'a> {
    #[serde(borrow, rename = "type")]
    kind: Field<Text<'a>>,
    status: Field<Text<'a>>,
    reason: Field<Text<'a>>,
    last_transition_time: Field<Timestamp>,
}

/// The CronJob that controls a Job.
struct Owner<'a> {
    uid: Uid,
    name: Cow<'a, str>,
}

/// Returns the controller, if it is a CronJob.
fn cron_job_of(references: Vec<Field<OwnerReference<'_>>>) -> Option<Owner<'_>> {
    let mut references = references.into_iter().filter_map(Field::ok);
    let controller = references.find_map(|reference| {
        let is_controller = reference.controller.clone().ok() == Some(true);
        is_controller.then_some(reference)
    })?;
    let is = |text: Field<Text<'_>>, wanted: &str| text.ok().is_some_and(|text| &*text == wanted);
    if !is(controller.kind, "CronJob") || !is(controller.api_version, "batch/v1") {
        return None;
    }
    Some(Owner {
        uid: Uid::new(&controller.uid.ok().filter(|uid| !uid.is_empty())?),
        name: controller.name.ok().unwrap_or_default().0,
    })
}

fn run(
    members: &mut Members,
    owner: Owner<'_>,
    (name, uid): (Box<str>, Uid),
    metadata: RawMetadata<'_>,
    (spec, status): (Field<Spec>, Field<Status<'_>>),
) -> Result<Run, Problem> {
    let created = members
        .take(metadata.creation_timestamp, "metadata.creationTimestamp")
        .ok_or_else(|| Problem::missing("metadata.creationTimestamp"))?;
    let annotations = members.take_or_default(metadata.annotations, "metadata.annotations");
    let status = members.take_or_default(status, "status");
    let started = members.take(status.start_time, "status.startTime");
    let completed = members.take(status.completion_time, "status.completionTime");
    let conditions = members.take_or_default(status.conditions, "status.conditions");
    let (result, finished) = end_of(members, conditions, completed);
    let is_suspended = members.take_or_default(spec, "spec").suspend;
    let is_suspended = members.take(is_suspended, "spec.suspend") == Some(true);
    let is_deleting = metadata.deletion_timestamp.ok().is_some();
    let finalizers = members.take_or_default(metadata.finalizers, "metadata.finalizers");
    let hindrance = match &result {
        RunResult::Running => hindrance(is_suspended, is_deleting, finalizers),
        RunResult::Succeeded | RunResult::Failed(_) | RunResult::Deleted | RunResult::Gone => None,
    };
    let is_asked_for = annotations.run_now.ok().is_some();
    let mark = annotations.created_by.ok().or(annotations.created_under.ok());
    let mark = if is_asked_for { Some(RUN_NOW) } else { mark.as_deref() };
    let scheduled = members.text(annotations.scheduled_timestamp, "metadata.annotations");
    let scheduled = scheduled.and_then(|text| text.parse().ok());
    Ok(Run {
        job_uid: uid,
        slot: scheduled.or_else(|| slot_of_name(&name, &owner.name, created)),
        job_name: name,
        cron_job: owner.uid,
        created,
        started,
        finished,
        result,
        creator: creator(mark, first_manager(metadata.managed_fields)),
        hindrance,
    })
}

/// Returns how and when a Job ended. Of several ends, the first counts (B-4.2).
fn end_of(
    members: &mut Members,
    conditions: Vec<Field<Condition<'_>>>,
    completed: Option<Timestamp>,
) -> (RunResult, Option<Timestamp>) {
    for condition in conditions {
        let condition = members.take_or_default(condition, "status.conditions");
        let is_true = condition.status.ok().is_some_and(|status| &*status == "True");
        let since = condition.last_transition_time.ok();
        match condition.kind.ok().as_deref() {
            Some("Complete") if is_true => return (RunResult::Succeeded, completed.or(since)),
            Some("Failed") if is_true => {
                let reason = condition.reason.ok().unwrap_or_default();
                return (RunResult::Failed((*reason).into()), since.or(completed));
            }
            _ => {}
        }
    }
    (RunResult::Running, None)
}

fn hindrance(is_suspended: bool, is_deleting: bool, finalizers: Vec<Field<Text<'_>>>) -> Option<Hindrance> {
    if !is_deleting {
        return is_suspended.then_some(Hindrance::Suspended);
    }
    let names: Vec<Text<'_>> = finalizers.into_iter().filter_map(Field::ok).collect();
    if names.is_empty() {
        return Some(Hindrance::Terminating);
    }
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    Some(Hindrance::HeldByFinalizers(names.join(", ").into()))
}

/// The built-in controller copies the annotations of a template, so its name counts more than cronwheel's annotations.
fn creator(mark: Option<&str>, manager: Option<Box<str>>) -> Creator {
    match manager.as_deref() {
        Some("kube-controller-manager") => Creator::BuiltIn,
        // A user started it, and no controller is late.
        _ if mark == Some(BACKFILL) => Creator::backfill(),
        _ if mark == Some(RUN_NOW) => Creator::Other("cronwheel trigger".into()),
        _ if mark.is_some() => Creator::Cronwheel,
        Some("cronwheel") => Creator::Cronwheel,
        Some(_) | None => Creator::Other(manager.unwrap_or_else(|| "unknown".into())),
    }
}

/// Stands for the marks of the Job of a run that a user asked for.
const RUN_NOW: &str = "run-now";

/// The longest time between a slot and its Job: a yearly CronJob that was suspended for a year.
const SLOT_AGE_MAX: SignedDuration = SignedDuration::from_hours(366 * 24);

/// The longest time by which a clock of a controller goes before that of the API server.
const SLOT_LEAD_MAX: SignedDuration = SignedDuration::from_hours(24);

/// Returns the slot at the end of a Job's name (B-11.1, O-5.5). Another number there, such as a date, is no slot: it would
/// be years away from the creation.
fn slot_of_name(name: &str, cron_job_name: &str, created: Timestamp) -> Option<Timestamp> {
    let of_slot = name.strip_prefix(cron_job_name)?.strip_prefix('-')?;
    let (minutes, second) = of_slot.split_once('-').unwrap_or((of_slot, "0"));
    let (minutes, second): (i64, i64) = (minutes.parse().ok()?, second.parse().ok()?);
    let slot = Timestamp::from_second(minutes.checked_mul(60)?.checked_add(second)?).ok()?;
    let age = created.duration_since(slot);
    let is_plausible = age <= SLOT_AGE_MAX && age >= -SLOT_LEAD_MAX;
    (is_plausible && is_job_name(name, cron_job_name, slot)).then_some(slot)
}
