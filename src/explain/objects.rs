//! Converts text to objects: YAML or JSON, one or several documents, with lists split into their items.
//!
//! A document that cannot be read is reported, and the others are used.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use jiff::Timestamp;
use serde_json::{Value, value::RawValue};

use super::{
    annotations::{Annotated, annotation_notes},
    calendars::{GivenCalendars, unread_note},
    misplaced::misplaced_notes,
    namespaces::GivenNamespaces,
    recorded::RecordedEvent,
    yaml,
};
use crate::schedule::{CronJobSchedule, options::OptionName};

/// The namespace of objects that name none.
const DEFAULT_NAMESPACE: &str = "default";

/// A CronJob or a Job as read.
#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) kind: Kind,
    /// The document or item that it was read from.
    pub(super) place: String,
    pub(super) value: Value,
    /// `spec.jobTemplate` as written, if the input is JSON: the body of a run keeps numbers of any length.
    pub(super) template: Option<Box<RawValue>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    CronJob,
    Job,
}

impl Kind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Kind::CronJob => "CronJob",
            Kind::Job => "Job",
        }
    }
}

/// Returns `metadata.namespace` or the default.
pub fn namespace_of(object: &Value) -> &str {
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    if namespace.is_empty() {
        DEFAULT_NAMESPACE
    } else {
        namespace
    }
}

/// Returns `metadata.name` or an empty text.
pub fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// The title of a CronJob: namespace and name, or the place of one without a name.
pub(super) fn title_of(Object { value, place, .. }: &Object) -> String {
    match name_of(value) {
        "" => format!("CronJob of {place}"),
        name => format!("CronJob {}/{name}", namespace_of(value)),
    }
}

/// The source of objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// Files, which may omit Jobs and have CronJobs that no API server accepts.
    #[default]
    Files,
    /// An API server, which has all objects and has accepted each of them.
    Cluster,
}

/// The objects of an input.
#[derive(Debug, Default)]
pub struct Objects {
    pub(super) origin: Origin,
    /// CronJobs and Jobs in their order.
    pub(super) items: Vec<Object>,
    /// Documents that cannot be read, each with its place, the problem and the fix.
    pub broken: Vec<String>,
    /// Number of ignored objects of other kinds, by kind.
    left_out: BTreeMap<String, usize>,
    /// Namespace and name of the ConfigMaps that are no calendars.
    no_calendars: Vec<(String, String)>,
    /// What else is to be said about the input.
    pub notes: Vec<String>,
    /// The Events of the CronJob in a cluster, the latest first; `None` if they were not read.
    pub(super) events: Option<Vec<RecordedEvent>>,
    /// The refusals of each CronJob, if an API server was asked.
    pub refusals: Option<Vec<Vec<String>>>,
    pub(super) calendars: GivenCalendars,
    pub(super) namespaces: GivenNamespaces,
}

/// An input.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// Its name in messages.
    pub name: &'a str,
    /// Whether it is one of the files of a folder, which may hold other things than Kubernetes objects.
    pub is_in_folder: bool,
}

/// Parses an input and adds its objects.
pub fn read(input: Input<'_>, text: &str, objects: &mut Objects) {
    let documents = documents(input.name, text, objects);
    for (position, document) in documents.into_iter().enumerate() {
        let place = format!("document {} of {}", position + 1, input.name);
        match document {
            Ok(Document { value, .. }) if input.is_in_folder && is_something_else(&value) => {
                objects
                    .notes
                    .push(format!("{place} left out: it is no Kubernetes object"));
            }
            Ok(document) => objects.take(&place, document, None),
            Err(problem) => objects.broken.push(format!("{place}: {problem}")),
        }
    }
}

/// Whether a document has neither kind nor version, such as the values of a chart or a kustomization.
fn is_something_else(value: &Value) -> bool {
    !value.is_null() && value["kind"].is_null() && value["apiVersion"].is_null()
}

/// A document, and its text if it is JSON whose template must keep its numbers.
#[derive(Debug)]
pub struct Document<'a> {
    /// Its content.
    pub value: Value,
    /// Its text, if that is JSON.
    pub text: Option<&'a str>,
}

fn documents<'a>(input: &str, text: &'a str, objects: &mut Objects) -> Vec<Result<Document<'a>, String>> {
    let mut from_json = Vec::new();
    if text.trim_start().starts_with('{') {
        from_json = json(text);
        if from_json.iter().all(Result::is_ok) {
            return from_json;
        }
    }
    // A text that begins like JSON may be YAML in braces.
    let yaml::Contents { documents, notes } = yaml::parse(text);
    if !from_json.is_empty() && documents.iter().any(Result::is_err) {
        return from_json;
    }
    objects
        .notes
        .extend(notes.into_iter().map(|note| format!("{input}: {note}")));
    let of_value = |value| Document { value, text: None };
    documents.into_iter().map(|document| document.map(of_value)).collect()
}

/// Parses JSON up to the first document that is not.
fn json(text: &str) -> Vec<Result<Document<'_>, String>> {
    let texts = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    // The iterator ends after an error.
    texts
        .map(|text| Document::of_json(text?.get()))
        .map(|document| document.map_err(|error| format!("not JSON: {error}; correct it there")))
        .collect()
}

impl<'a> Document<'a> {
    /// Reads JSON, and keeps the text.
    pub fn of_json(text: &'a str) -> Result<Document<'a>, serde_json::Error> {
        let document = Document::of_value(serde_json::from_str(text)?);
        Ok(Document {
            text: Some(text),
            ..document
        })
    }

    /// Takes JSON that was read before. The numbers of a template are written as the reader kept them.
    pub fn of_value(mut value: Value) -> Document<'a> {
        yaml::normalise_numbers(&mut value);
        Document { value, text: None }
    }
}

/// Returns the texts of an object's members, if it is a JSON object.
fn member_texts(text: Option<&str>) -> BTreeMap<Cow<'_, str>, &RawValue> {
    text.and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

impl Objects {
    /// Begins without objects.
    pub fn new(origin: Origin) -> Objects {
        Objects {
            origin,
            ..Objects::default()
        }
    }

    /// Adds a document. `kind` is that of an object of `batch/v1` that need not have one.
    pub fn take(&mut self, place: &str, document: Document<'_>, kind: Option<&str>) {
        self.take_typed(place, document, kind.map(|kind| (kind, "batch/v1")));
    }

    /// Adds a document. An object that lacks kind and version has this one: the items of a list need none.
    fn take_typed(&mut self, place: &str, document: Document<'_>, implied: Option<(&str, &str)>) {
        let Document { mut value, text } = document;
        let no_object =
            |problem| format!("{place} {problem}; give Kubernetes objects, with apiVersion, kind, metadata and spec");
        if value.is_null() {
            return;
        }
        let Some(members) = value.as_object_mut() else {
            return self.broken.push(no_object("is not an object"));
        };
        if let Some((kind, version)) = implied {
            for (member, value) in [("kind", kind), ("apiVersion", version)] {
                if members.get(member).is_none_or(Value::is_null) {
                    members.insert(member.to_owned(), value.into());
                }
            }
        }
        let Some(kind) = value["kind"].as_str().map(str::to_owned) else {
            return self.broken.push(no_object("has no kind"));
        };
        if let Some(item_kind) = kind.strip_suffix("List")
            && let Some(Value::Array(items)) = value.get_mut("items").map(Value::take)
        {
            let version = value["apiVersion"].as_str().unwrap_or("batch/v1");
            let implied = (!item_kind.is_empty()).then_some((item_kind, version));
            let texts: Vec<&RawValue> = member_texts(text)
                .get("items")
                .and_then(|items| serde_json::from_str(items.get()).ok())
                .unwrap_or_default();
            for (position, value) in items.into_iter().enumerate() {
                let text = texts.get(position).map(|text| text.get());
                let place = format!("item {} of {place}", position + 1);
                self.take_typed(&place, Document { value, text }, implied);
            }
            return;
        }
        let version = value["apiVersion"].as_str().unwrap_or("batch/v1");
        let is_batch = version.starts_with("batch/");
        // Groups of other projects have a dot. Another version or spelling of CronJob is recognised, and refused by
        // name.
        let is_cron_job = kind.eq_ignore_ascii_case("CronJob") && !version.contains('.');
        match kind.as_str() {
            _ if is_cron_job => self.push(Kind::CronJob, place, value, text),
            "Job" if is_batch => self.push(Kind::Job, place, value, None),
            "List" | "CronJobList" | "JobList" => {}
            "ConfigMap" if version == "v1" => {
                if !self.calendars.take(&value) {
                    let key = (namespace_of(&value).to_owned(), name_of(&value).to_owned());
                    self.no_calendars.push(key);
                }
            }
            "Namespace" if version == "v1" && self.namespaces.take(&value) => {}
            _ => *self.left_out.entry(format!("{version} {kind}")).or_default() += 1,
        }
    }

    /// Keeps the Events of the object with this uid, in any order. Others are ignored.
    pub fn take_events(&mut self, events: &[Value], uid: &str) {
        self.events = Some(RecordedEvent::of_object(events, uid));
    }

    /// Gives a CronJob the defaults of its namespace. `hash` is an even hash of its uid.
    pub fn inherit(&self, namespace: &str, schedule: &mut CronJobSchedule, hash: u64) {
        self.namespaces.inherit(namespace, schedule, hash);
    }

    /// Gives a CronJob the calendar that it names. Returns what is to be said if it is not among the objects.
    pub fn resolve_calendar(&self, namespace: &str, schedule: &mut CronJobSchedule) -> Option<String> {
        self.calendars.calendars().resolve(namespace, schedule);
        unread_note(schedule.options())
    }

    /// The end of the freeze of a namespace, which may have passed.
    pub fn frozen_until(&self, namespace: &str) -> Option<Timestamp> {
        self.namespaces.frozen_until(namespace)
    }

    /// A sentence about the freeze of a namespace that is not over at an instant.
    pub fn freeze_text(&self, namespace: &str, at: Timestamp) -> Option<String> {
        self.namespaces.freeze_text(namespace, at)
    }

    /// Sentences about the annotations of a CronJob and its namespace that have no effect.
    pub fn annotation_notes(&self, cron_job: &Value) -> Vec<String> {
        let mut notes = annotation_notes(cron_job, Annotated::CronJob);
        notes.extend(misplaced_notes(cron_job, Annotated::CronJob));
        notes.extend_from_slice(self.namespaces.notes(namespace_of(cron_job)));
        notes
    }

    /// Keeps the options of a namespace.
    pub fn take_namespace(&mut self, namespace: &Value) {
        self.namespaces.take(namespace);
    }

    /// Notes that the ConfigMap that a CronJob names does not exist.
    pub fn note_missing_calendar(&self, namespace: &str, name: &str) {
        self.calendars.note_missing(namespace, name);
    }

    /// The CronJobs, in their order.
    pub fn cron_jobs(&self) -> impl Iterator<Item = &Value> {
        let cron_jobs = self.items.iter().filter(|object| object.kind == Kind::CronJob);
        cron_jobs.map(|object| &object.value)
    }

    /// The CronJobs with their titles, in their order: namespace and name, and the place in the input if these do not
    /// tell it from the others.
    pub fn titled_cron_jobs(&self) -> impl Iterator<Item = (String, &Value)> {
        let cron_jobs = self.items.iter().filter(|object| object.kind == Kind::CronJob);
        let mut n_by_title: BTreeMap<String, usize> = BTreeMap::new();
        for cron_job in cron_jobs.clone() {
            *n_by_title.entry(title_of(cron_job)).or_default() += 1;
        }
        cron_jobs.map(move |cron_job| {
            let title = title_of(cron_job);
            let is_unique = n_by_title.get(&title).is_none_or(|n_cron_jobs| *n_cron_jobs == 1);
            let title = if is_unique {
                title
            } else {
                format!("{title} ({})", cron_job.place)
            };
            (title, &cron_job.value)
        })
    }

    /// Reports what was ignored.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut left_out = self.left_out.clone();
        let named = self.named_calendars();
        let is_unnamed = |(namespace, name): &&(String, String)| !named.contains(&(namespace.as_str(), name.as_str()));
        let n_config_maps = self.no_calendars.iter().filter(is_unnamed).count();
        if n_config_maps > 0 {
            left_out.insert("v1 ConfigMap".to_owned(), n_config_maps);
        }
        let note = |(kind, n_objects): (&String, &usize)| {
            format!(
                "{kind} left out ({n_objects}): only batch/v1 CronJobs and Jobs are used, with namespaces and calendars"
            )
        };
        left_out.iter().map(note).chain(self.notes.iter().cloned()).collect()
    }

    /// Namespace and name of the ConfigMaps that CronJobs name as their calendars. What these lack is said there.
    fn named_calendars(&self) -> BTreeSet<(&str, &str)> {
        let named = self.cron_jobs().filter_map(|cron_job| {
            let annotations = &cron_job["metadata"]["annotations"];
            let name = annotations[OptionName::NotOn.annotation()].as_str()?;
            Some((namespace_of(cron_job), name.trim()))
        });
        named.collect()
    }

    fn push(&mut self, kind: Kind, place: &str, value: Value, text: Option<&str>) {
        let spec = member_texts(text).get("spec").map(|spec| spec.get());
        let template = member_texts(spec).get("jobTemplate").copied().map(RawValue::to_owned);
        self.items.push(Object {
            kind,
            place: place.to_owned(),
            value,
            template,
        });
    }
}
