//! The world of an explanation: only the given objects, with the values that an API server would add.

mod gaps;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

use super::{
    annotations::{Annotated, annotation_notes},
    calendars::{GivenCalendars, unread_note},
    misplaced::misplaced_notes,
    namespaces::GivenNamespaces,
    objects::{Kind, Object, Objects, Origin, name_of, namespace_of, title_of},
    recorded::{RecordedEvent, SpecChanges},
    refusals,
};
use crate::{
    kube_api::objects::decode::{DecodeError, Decoder, ReceivedJob},
    schedule::{Zone, thaw::FrozenCronJob},
    shard::{CronJobRecord, JobRecord, Uid, hash::spread_hash},
};

/// All objects that exist.
#[derive(Debug, Default)]
pub(super) struct World {
    /// The CronJobs, in the order of the input.
    pub(super) subjects: Vec<Subject>,
    /// Jobs by the uid of the CronJob that controls them.
    jobs_by_owner: BTreeMap<Uid, Vec<JobRecord>>,
    jobs_by_name: BTreeMap<(Box<str>, Box<str>), Result<JobRecord, DecodeError>>,
    job_uids: BTreeSet<Uid>,
    job_facts: BTreeMap<(Box<str>, Box<str>), JobFacts>,
    pub(super) origin: Origin,
    /// Documents and objects that cannot be used, each with its place, the problem and the fix.
    pub(super) broken: Vec<String>,
    /// The Events of the CronJob in a cluster, the latest first; `None` if they were not read.
    pub(super) events: Option<Vec<RecordedEvent>>,
    pub(super) calendars: GivenCalendars,
    pub(super) namespaces: GivenNamespaces,
}

/// What a Job says about why it is still active.
#[derive(Debug, Default)]
pub(super) struct JobFacts {
    pub(super) is_suspended: bool,
    pub(super) managed_by: Option<String>,
    pub(super) deleted: Option<Timestamp>,
    pub(super) finalizers: Vec<String>,
}

/// A CronJob to explain.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) namespace: String,
    pub(super) name: String,
    /// Namespace and name, and the place in the input if these do not tell it from the others.
    pub(super) title: String,
    /// The record, or why the CronJob cannot be decoded.
    pub(super) record: Result<CronJobRecord, DecodeError>,
    /// Values that were filled in and affect the answer.
    pub(super) notes: Vec<String>,
    /// Annotations of it and of its namespace that have no effect.
    pub(super) annotation_notes: Vec<String>,
    /// The refusals of the API server.
    pub(super) refusals: Vec<String>,
    /// The changes of the spec, as far as `managedFields` says.
    pub(super) changes: SpecChanges,
    /// The end of the freeze of its namespace, also if it has passed.
    pub(super) frozen_until: Option<Timestamp>,
    /// The reason of that freeze.
    pub(super) freeze_reason: Option<String>,
    /// Whether the uid, which determines the offset of `spread`, is not given.
    has_no_uid: bool,
}

impl JobFacts {
    fn read(job: &Value) -> JobFacts {
        let finalizers = job.pointer("/metadata/finalizers").and_then(Value::as_array);
        let text = |pointer: &str| job.pointer(pointer).and_then(Value::as_str);
        JobFacts {
            is_suspended: job.pointer("/spec/suspend") == Some(&Value::Bool(true)),
            managed_by: text("/spec/managedBy")
                .filter(|manager| *manager != JOB_CONTROLLER)
                .map(str::to_owned),
            deleted: text("/metadata/deletionTimestamp").and_then(|time| time.parse().ok()),
            finalizers: finalizers
                .into_iter()
                .flatten()
                .filter_map(|name| Some(name.as_str()?.to_owned()))
                .collect(),
        }
    }
}

/// The value of `spec.managedBy` of Jobs that Kubernetes itself runs.
const JOB_CONTROLLER: &str = "kubernetes.io/job-controller";

impl Subject {
    /// The CronJob in the freeze of its namespace, if one holds at `now` and the CronJob can be decoded.
    pub(super) fn frozen(&self, now: Timestamp) -> Option<FrozenCronJob<'_>> {
        let until = self.frozen_until.filter(|until| now < *until)?;
        let record = self.record.as_ref().ok()?;
        Some(FrozenCronJob {
            schedule: &record.schedule,
            created: record.created,
            last_schedule_time: record.status.last_schedule_time,
            starting_deadline_seconds: record.starting_deadline_seconds,
            concurrency_policy: record.concurrency_policy,
            until,
        })
    }
}

impl World {
    /// Builds the world of these objects. CronJobs without a creation time are created `now`. `notes` receives what is
    /// left out or was filled in.
    pub(super) fn new(objects: Objects, default_zone: &Zone, now: Timestamp, notes: &mut Vec<String>) -> World {
        let Objects {
            origin,
            items: mut objects,
            broken,
            events,
            refusals,
            calendars,
            namespaces,
            ..
        } = objects;
        leave_out_jobs(&mut objects, notes);
        let mut written = as_written(&mut objects, origin, refusals, notes).into_iter();
        gaps::fill(&mut objects);
        let decoder = Decoder {
            default_zone: default_zone.clone(),
            ..Decoder::default()
        };
        let mut world = World {
            origin,
            broken,
            events,
            calendars,
            namespaces,
            ..World::default()
        };
        for mut object in objects {
            let added = match object.kind {
                Kind::CronJob => {
                    let written = written.next().unwrap_or_default();
                    let subject = subject(&mut object, written, &decoder, now);
                    subject.map(|subject| world.add_subject(subject))
                }
                Kind::Job => world.add_job(&object, notes),
            };
            if let Err(error) = added {
                world
                    .broken
                    .push(format!("{}: cannot be converted: {error}", object.place));
            }
        }
        world
    }

    /// Returns the world of a cluster, to which Jobs are added.
    pub(super) fn of_cluster() -> World {
        World {
            origin: Origin::Cluster,
            ..World::default()
        }
    }

    /// Adds a CronJob, with the defaults of its namespace, the calendar that it names, and notes about its options.
    fn add_subject(&mut self, mut subject: Subject) {
        self.inherit(&mut subject);
        if let Ok(record) = &mut subject.record {
            if subject.has_no_uid {
                record.schedule.forget_offset();
            }
            let calendars = self.calendars.calendars();
            calendars.resolve(&record.identity.namespace, &mut record.schedule);
            let options = record.schedule.options();
            subject.notes.extend(options.invalid.iter().map(ToString::to_string));
            subject.notes.extend(unread_note(options));
        }
        let of_namespace = self.namespaces.notes(&subject.namespace);
        subject.annotation_notes.extend_from_slice(of_namespace);
        subject.notes.extend_from_slice(&subject.annotation_notes);
        self.subjects.push(subject);
    }

    /// Gives a CronJob the defaults and the freeze of its namespace.
    pub(super) fn inherit(&self, subject: &mut Subject) {
        subject.frozen_until = self.namespaces.frozen_until(&subject.namespace);
        subject.freeze_reason = self.namespaces.freeze_reason(&subject.namespace).map(str::to_owned);
        if let Ok(record) = &mut subject.record {
            let (namespace, hash) = (&record.identity.namespace, spread_hash(&record.identity.uid));
            self.namespaces.inherit(namespace, &mut record.schedule, hash);
        }
    }

    /// Keeps the CronJobs of this name, in all namespaces or in one.
    pub(super) fn select(&mut self, name: &str, namespace: Option<&str>) {
        let is_wanted = |subject: &Subject| {
            subject.name == name && namespace.is_none_or(|namespace| subject.namespace == namespace)
        };
        self.subjects.retain(is_wanted);
    }

    /// Adds a Job. `notes` receives what is left out.
    pub(super) fn add_job(&mut self, object: &Object, notes: &mut Vec<String>) -> serde_json::Result<()> {
        let key: (Box<str>, Box<str>) = (namespace_of(&object.value).into(), name_of(&object.value).into());
        let text = text(object)?;
        let job: ReceivedJob = serde_json::from_str(&text)?;
        self.job_facts.insert(key.clone(), JobFacts::read(&object.value));
        match job.into_record() {
            Ok(record) if !self.job_uids.insert(record.uid.clone()) => {
                let (name, uid) = (&record.name, &record.uid);
                notes.push(format!(
                    "{} left out: Job {name} has the metadata.uid {uid} of another Job",
                    object.place
                ));
            }
            Ok(record) => {
                if let Some(owner) = &record.controller {
                    let siblings = self.jobs_by_owner.entry(owner.clone()).or_default();
                    siblings.push(record.clone());
                }
                self.jobs_by_name.insert(key, Ok(record));
            }
            Err(error) => {
                notes.push(format!("{error}; its name is taken, and it may be running"));
                self.jobs_by_name.insert(key, Err(error));
            }
        }
        Ok(())
    }

    /// Returns the Jobs whose controller is the CronJob, in the order of the input.
    pub(super) fn jobs_of(&self, cron_job: &Uid) -> &[JobRecord] {
        self.jobs_by_owner.get(cron_job).map_or(&[], Vec::as_slice)
    }

    /// Returns what the Job of a name says about itself.
    pub(super) fn job_facts(&self, namespace: &str, name: &str) -> Option<&JobFacts> {
        self.job_facts.get(&(namespace.into(), name.into()))
    }

    /// Returns the Job of a name, if there is one, or why it cannot be decoded.
    pub(super) fn job(&self, namespace: &str, name: &str) -> Option<Result<&JobRecord, &DecodeError>> {
        let job = self.jobs_by_name.get(&(namespace.into(), name.into()))?;
        Some(job.as_ref())
    }
}

/// What can be said of a CronJob before values are filled in.
#[derive(Debug, Default)]
struct Written {
    title: String,
    refusals: Vec<String>,
    notes: Vec<String>,
    /// Whether the uid, which determines the offset of `spread`, is not given.
    has_no_uid: bool,
}

/// Returns a CronJob of a cluster.
pub(super) fn listed_subject(object: &mut Object, decoder: &Decoder, now: Timestamp) -> serde_json::Result<Subject> {
    subject(object, Written::default(), decoder, now)
}

fn subject(object: &mut Object, written: Written, decoder: &Decoder, now: Timestamp) -> serde_json::Result<Subject> {
    let Written {
        title,
        refusals,
        mut notes,
        has_no_uid,
    } = written;
    notes.extend(gaps::fill_defaults(&mut object.value, now));
    let text = text(object)?;
    let mut record = decoder.cron_job(&text).map_err(|undecodable| undecodable.error);
    if let Ok(record) = &mut record
        && has_no_uid
    {
        record.schedule.forget_offset();
    }
    Ok(Subject {
        namespace: namespace_of(&object.value).to_owned(),
        name: name_of(&object.value).to_owned(),
        title,
        record,
        annotation_notes: [annotation_notes, misplaced_notes]
            .map(|notes| notes(&object.value, Annotated::CronJob))
            .concat(),
        notes,
        refusals,
        changes: SpecChanges::of(&object.value),
        frozen_until: None,
        freeze_reason: None,
        has_no_uid,
    })
}

/// Returns title, refusals and notes of each CronJob, and gives those with a `generateName` a name.
fn as_written(
    objects: &mut [Object],
    origin: Origin,
    of_server: Option<Vec<Vec<String>>>,
    notes: &mut Vec<String>,
) -> Vec<Written> {
    let mut of_server = of_server.map(Vec::into_iter);
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut written = Vec::new();
    let cron_jobs = objects.iter_mut().filter(|object| object.kind == Kind::CronJob);
    for object in cron_jobs {
        let Object { value, place, .. } = &mut *object;
        let refusals = match (origin, &mut of_server) {
            (Origin::Files, Some(of_server)) => of_server.next().unwrap_or_default(),
            (Origin::Files, None) => refusals::of(value),
            // The API server has accepted it.
            (Origin::Cluster, _) => Vec::new(),
        };
        let mut of_name = Vec::new();
        if name_of(value).is_empty()
            && let Some(name) = refusals::generated_name(value)
            && let Some(metadata) = value["metadata"].as_object_mut()
        {
            metadata.insert("name".to_owned(), name.into());
            of_name.push("metadata.generateName: kubectl create accepts it, and kubectl apply does not".to_owned());
        }
        let has_no_uid = value.pointer("/metadata/uid").is_none();
        let place = place.clone();
        let title = title_of(object);
        places.entry(title.clone()).or_default().push(place.clone());
        written.push((
            place,
            Written {
                title,
                refusals,
                notes: of_name,
                has_no_uid,
            },
        ));
    }
    for (title, places) in places.iter().filter(|(_, places)| places.len() > 1) {
        let places = places.join(" and ");
        notes.push(format!(
            "{title} occurs in {places}: each is checked, and the last one that is applied stays"
        ));
    }
    let with_place = |(place, written): (String, Written)| match places.get(&written.title) {
        Some(places) if places.len() > 1 => Written {
            title: format!("{} ({place})", written.title),
            ..written
        },
        Some(_) | None => written,
    };
    written.into_iter().map(with_place).collect()
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

/// Removes Jobs without a name, such as those with a `generateName`: they do not exist yet. Of two with the same name, the
/// first stays.
fn leave_out_jobs(objects: &mut Vec<Object>, notes: &mut Vec<String>) {
    let mut places: BTreeMap<(String, String), String> = BTreeMap::new();
    objects.retain(|object| {
        if object.kind == Kind::CronJob {
            return true;
        }
        let (namespace, name, place) = (namespace_of(&object.value), name_of(&object.value), &object.place);
        if name.is_empty() {
            notes.push(format!("{place} left out: the Job has no metadata.name"));
            return false;
        }
        let key = (namespace.to_owned(), name.to_owned());
        if let Some(first) = places.get(&key) {
            notes.push(format!("{place} left out: Job {namespace}/{name} is also in {first}"));
            return false;
        }
        places.insert(key, place.clone());
        true
    });
}
