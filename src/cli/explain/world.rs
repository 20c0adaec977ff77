//! The world of an explanation: only the given objects, with the values that an API server would add.

mod gaps;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

use super::{
    cannot_convert,
    objects::{Kind, Object, Objects, Origin, name_of, namespace_of},
    refusals,
};
use crate::{
    cli::{advice::refusal, error::CommandError},
    kube_api::{DecodeError, Decoder, ReceivedJob},
    schedule::Zone,
    shard::{CronJobRecord, JobRecord, Uid},
};

/// All objects that exist.
#[derive(Debug, Default)]
pub(super) struct World {
    /// The CronJobs, in the order of the input.
    pub(super) subjects: Vec<Subject>,
    /// Jobs by the uid of the CronJob that controls them.
    jobs_by_owner: BTreeMap<Uid, Vec<JobRecord>>,
    jobs_by_name: BTreeMap<(Box<str>, Box<str>), Result<JobRecord, DecodeError>>,
    pub(super) origin: Origin,
}

/// A CronJob to explain.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) namespace: String,
    pub(super) name: String,
    /// The record, or why the CronJob cannot be decoded.
    pub(super) record: Result<CronJobRecord, DecodeError>,
    /// Values that were filled in and affect the answer.
    pub(super) notes: Vec<String>,
    /// The refusals of the API server.
    pub(super) refusals: Vec<String>,
}

impl World {
    /// Builds the world of these objects. CronJobs without a creation time are created `now`. `notes` receives Jobs
    /// that have no name or cannot be decoded.
    pub(super) fn new(
        objects: Objects,
        default_zone: &Zone,
        now: Timestamp,
        notes: &mut Vec<String>,
    ) -> Result<World, CommandError> {
        let Objects {
            origin,
            items: mut objects,
            ..
        } = objects;
        leave_out_nameless(&mut objects, notes);
        refuse_repeats(&objects)?;
        gaps::fill(&mut objects);
        let decoder = Decoder {
            default_zone: default_zone.clone(),
            shard_count: None,
            ..Decoder::default()
        };
        let mut world = World {
            origin,
            ..World::default()
        };
        let mut job_uids = BTreeSet::new();
        for mut object in objects {
            if object.kind == Kind::CronJob {
                world.subjects.push(subject(&mut object, origin, &decoder, now)?);
                continue;
            }
            let key = (namespace_of(&object.value).into(), name_of(&object.value).into());
            let text = text(&object).map_err(cannot_convert)?;
            let job: ReceivedJob = serde_json::from_str(&text).map_err(cannot_convert)?;
            match job.into_record() {
                Ok(record) if !job_uids.insert(record.uid.clone()) => {
                    let (name, uid) = (&record.name, &record.uid);
                    return Err(format!(
                        "{}: Job {name} has the metadata.uid {uid} of another Job; leave it out, or give each its own",
                        object.place
                    )
                    .into());
                }
                Ok(record) => world.add_job(key, record),
                Err(error) => {
                    notes.push(format!("{error}; its name is taken, and it may be running"));
                    world.jobs_by_name.insert(key, Err(error));
                }
            }
        }
        Ok(world)
    }

    /// Keeps the CronJobs of this name, in all namespaces or in one.
    pub(super) fn select(&mut self, name: &str, namespace: Option<&str>) {
        let is_wanted = |subject: &Subject| {
            subject.name == name && namespace.is_none_or(|namespace| subject.namespace == namespace)
        };
        self.subjects.retain(is_wanted);
    }

    fn add_job(&mut self, key: (Box<str>, Box<str>), record: JobRecord) {
        if let Some(owner) = &record.controller {
            let siblings = self.jobs_by_owner.entry(owner.clone()).or_default();
            siblings.push(record.clone());
        }
        self.jobs_by_name.insert(key, Ok(record));
    }

    /// Returns the Jobs whose controller is the CronJob, in the order of the input.
    pub(super) fn jobs_of(&self, cron_job: &Uid) -> &[JobRecord] {
        self.jobs_by_owner.get(cron_job).map_or(&[], Vec::as_slice)
    }

    /// Returns the Job of a name, if there is one, or why it cannot be decoded.
    pub(super) fn job(&self, namespace: &str, name: &str) -> Option<Result<&JobRecord, &DecodeError>> {
        let job = self.jobs_by_name.get(&(namespace.into(), name.into()))?;
        Some(job.as_ref())
    }
}

fn subject(object: &mut Object, origin: Origin, decoder: &Decoder, now: Timestamp) -> Result<Subject, CommandError> {
    let notes = gaps::fill_defaults(&mut object.value, now);
    let text = text(object).map_err(cannot_convert)?;
    let record = decoder.cron_job(&text).map_err(|undecodable| undecodable.error);
    let refusals = match origin {
        // The API server has accepted it.
        Origin::Cluster => Vec::new(),
        Origin::Files => {
            let of_schedule = record.as_ref().ok().and_then(|record| refusal(&record.schedule));
            refusals::of(&object.value).into_iter().chain(of_schedule).collect()
        }
    };
    Ok(Subject {
        namespace: namespace_of(&object.value).to_owned(),
        name: name_of(&object.value).to_owned(),
        record,
        notes,
        refusals,
    })
}

/// Returns the object as text, with its template as it was written. The decoder borrows from the text.
fn text(object: &Object) -> serde_json::Result<String> {
    let mut members = raw_members(&object.value)?;
    if let Some(template) = &object.template {
        let mut spec = raw_members(&object.value["spec"])?;
        spec.insert("jobTemplate", template.clone());
        members.insert("spec", to_raw_value(&spec)?);
    }
    serde_json::to_string(&members)
}

fn raw_members(object: &Value) -> serde_json::Result<BTreeMap<&str, Box<RawValue>>> {
    let members = object.as_object().into_iter().flatten();
    let raw = |(name, value)| Ok((String::as_str(name), to_raw_value(value)?));
    members.map(raw).collect()
}

/// Removes Jobs without a name, such as those with a `generateName`: they do not exist yet.
fn leave_out_nameless(objects: &mut Vec<Object>, notes: &mut Vec<String>) {
    objects.retain(|object| {
        let is_kept = object.kind == Kind::CronJob || !name_of(&object.value).is_empty();
        if !is_kept {
            notes.push(format!("{} left out: the Job has no metadata.name", object.place));
        }
        is_kept
    });
}

/// Refuses CronJobs without a name, and two objects of one kind, namespace and name.
fn refuse_repeats(objects: &[Object]) -> Result<(), CommandError> {
    let mut seen = BTreeSet::new();
    for object in objects {
        let (kind, place) = (object.kind.as_str(), &object.place);
        let (namespace, name) = (namespace_of(&object.value), name_of(&object.value));
        if name.is_empty() {
            return Err(format!("{place}: the {kind} has no metadata.name; give it one").into());
        }
        if !seen.insert((kind, namespace, name)) {
            return Err(format!("{place}: {kind} {namespace}/{name} occurs twice; keep one").into());
        }
    }
    Ok(())
}
