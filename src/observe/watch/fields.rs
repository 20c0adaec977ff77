//! Lenient members: one of a wrong type is absent, and its problem is noted.

use std::{borrow::Cow, fmt};

use jiff::Timestamp;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};

use crate::{
    kube_api::objects::{
        decode::{
            field::Field,
            parse::{FieldError, Text},
        },
        resumption::SpecEntry,
    },
    shard::panics::contain,
};

/// A member that cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::observe) struct Problem {
    /// The path of the member, e.g. `spec.suspend`.
    pub(in crate::observe) field: Box<str>,
    /// The problem.
    pub(in crate::observe) text: Box<str>,
}

impl Problem {
    pub(super) fn missing(field: &str) -> Problem {
        FieldError::missing(field).into()
    }
}

impl From<FieldError> for Problem {
    fn from(error: FieldError) -> Problem {
        Problem {
            field: error.field,
            text: error.problem,
        }
    }
}

/// What was decoded of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::observe) struct Decoded<C> {
    /// The content; `None` if the object is of no interest, an error if its metadata cannot be used.
    pub(in crate::observe) content: Result<Option<C>, Problem>,
    /// The members that count as absent.
    pub(in crate::observe) problems: Vec<Problem>,
}

impl<C> Decoded<C> {
    /// Decodes an object. If the code panics, the object counts as one that cannot be decoded.
    pub(super) fn contained(decode: impl FnOnce(&mut Members) -> Result<Option<C>, Problem>) -> Decoded<C> {
        let mut members = Members::default();
        let content = contain(|| decode(&mut members));
        Decoded {
            content: content.unwrap_or_else(|message| Err(FieldError::panic(&message).into())),
            problems: members.problems,
        }
    }
}

/// Takes members of one object, and notes the problems.
#[derive(Default)]
pub(super) struct Members {
    problems: Vec<Problem>,
}

impl Members {
    /// Takes the value of the member at a path; `None` if it is absent or of a wrong type.
    pub(super) fn take<T>(&mut self, member: Field<T>, path: &str) -> Option<T> {
        member.at(path).unwrap_or_else(|error| {
            self.problems.push(error.into());
            None
        })
    }

    /// Like [`Members::take`], with the default for `None`.
    pub(super) fn take_or_default<T: Default>(&mut self, member: Field<T>, path: &str) -> T {
        self.take(member, path).unwrap_or_default()
    }

    /// Takes a text.
    pub(super) fn text<'a>(&mut self, member: Field<Text<'a>>, path: &str) -> Option<Cow<'a, str>> {
        self.take(member, path).map(|text| text.0)
    }
}

/// An entry of `metadata.managedFields`. Of its fields, only those are decoded by which entries are told apart.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ManagedFields<'a> {
    #[serde(borrow)]
    manager: Field<Text<'a>>,
    operation: Field<Text<'a>>,
    subresource: Field<Text<'a>>,
    time: Field<Timestamp>,
    #[serde(rename = "fieldsV1")]
    fields: Field<Fields>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Fields {
    #[serde(rename = "f:spec")]
    spec: Field<SpecFields>,
    #[serde(rename = "f:metadata")]
    metadata: Field<MetadataFields>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct MetadataFields {
    #[serde(rename = "f:annotations")]
    annotations: Field<AnnotationFields>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AnnotationFields {
    #[serde(rename = "f:cronwheel.dev/freeze-until")]
    freeze_until: Field<IgnoredAny>,
}

/// The names of the fields of a spec, as far as they matter.
#[derive(Default)]
struct SpecFields {
    has_template: bool,
    has_suspend: bool,
    n_fields: usize,
}

impl<'de> Deserialize<'de> for SpecFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SpecFields, D::Error> {
        deserializer.deserialize_map(SpecFieldsVisitor)
    }
}

struct SpecFieldsVisitor;

impl<'de> Visitor<'de> for SpecFieldsVisitor {
    type Value = SpecFields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a set of fields")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<SpecFields, A::Error> {
        let mut fields = SpecFields::default();
        while let Some((name, IgnoredAny)) = members.next_entry::<Text<'de>, IgnoredAny>()? {
            fields.has_template |= &*name == "f:template";
            fields.has_suspend |= &*name == "f:suspend";
            fields.n_fields += 1;
        }
        Ok(fields)
    }
}

/// The list of managed fields, which may have any content.
pub(super) type ManagedFieldsList<'a> = Field<Vec<Field<ManagedFields<'a>>>>;

/// Returns the entries of the clients that changed the spec. Each client has an entry of its own: one that only suspends
/// owns `suspend`, and not the schedule.
pub(super) fn spec_entries(entries: ManagedFieldsList<'_>) -> Vec<SpecEntry> {
    let entries = entries.ok().unwrap_or_default().into_iter().filter_map(Field::ok);
    let entries = entries.filter_map(|entry| {
        let fields = entry.fields.ok()?;
        let spec = fields.spec.ok()?;
        let is_of_subresource = entry.subresource.ok().is_some_and(|name| !name.is_empty());
        let spec_entry = SpecEntry {
            time: entry.time.ok()?,
            is_update: entry.operation.ok().is_some_and(|operation| &*operation == "Update"),
            has_suspend: spec.has_suspend,
            is_alone: spec.n_fields == 1 && fields.metadata.ok().is_none(),
        };
        (!is_of_subresource).then_some(spec_entry)
    });
    entries.collect()
}

/// Returns the last time at which a client that owns the annotation of a freeze changed anything: the annotation has its
/// value since then at the latest.
pub(super) fn last_freeze_change(entries: ManagedFieldsList<'_>) -> Option<Timestamp> {
    let entries = entries.ok().unwrap_or_default().into_iter().filter_map(Field::ok);
    let times = entries.filter_map(|entry| {
        let annotations = entry.fields.ok()?.metadata.ok()?.annotations.ok()?;
        annotations.freeze_until.ok()?;
        entry.time.ok()
    });
    times.max()
}

/// Returns the client that created a Job: the owner of its Pod template, which no other client can change, and otherwise
/// the first writer.
pub(super) fn first_manager(entries: ManagedFieldsList<'_>) -> Option<Box<str>> {
    let entries = entries.ok().unwrap_or_default().into_iter().filter_map(Field::ok);
    let writers = entries.filter_map(|entry| {
        let is_of_subresource = entry.subresource.ok().is_some_and(|name| !name.is_empty());
        let manager = entry.manager.ok().filter(|name| !name.is_empty())?;
        let spec = entry.fields.ok().and_then(|fields| fields.spec.ok());
        let owns_template = spec.is_some_and(|spec| spec.has_template);
        (!is_of_subresource).then(|| ((!owns_template, entry.time.ok()), manager))
    });
    let first = writers.min_by_key(|(order, _)| *order);
    first.map(|(_, manager)| Box::from(&*manager))
}
