//! Objects as `kubectl get` prints them: `meta.k8s.io/v1` Tables with the columns and cells of the real server.
//!
//! The column descriptions are shorter than those of the real server.

mod cells;
mod human_duration;

use jiff::Timestamp;
use serde_json::{Value, json};

pub use self::human_duration::human_duration;
use crate::Resource;

const NAME: Column = Column("Name", "string", 0, "The name, unique within a namespace.");
const AGE: Column = Column("Age", "string", 0, "The time since the object was created.");
const CONTAINERS: Column = Column("Containers", "string", 1, "Names of each container in the template.");
const IMAGES: Column = Column(
    "Images",
    "string",
    1,
    "Images referenced by each container in the template.",
);
const SELECTOR: Column = Column("Selector", "string", 1, "The labels of the Pods that the Job counts.");

const CRON_JOB: &[Column] = &[
    NAME,
    Column("Schedule", "string", 0, "The schedule in cron format."),
    Column("Timezone", "string", 0, "The time zone of the schedule."),
    Column("Suspend", "boolean", 0, "Whether the schedule is suspended."),
    Column("Active", "integer", 0, "The number of running Jobs."),
    Column("Last Schedule", "string", 0, "The time since the last scheduled Job."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];
const JOB: &[Column] = &[
    NAME,
    Column("Status", "string", 0, "Whether the Job is running, or how it ended."),
    Column(
        "Completions",
        "string",
        0,
        "The number of succeeded Pods, and the required number.",
    ),
    Column("Duration", "string", 0, "The run time of the Job."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];
const LEASE: &[Column] = &[NAME, Column("Holder", "string", 0, "The identity of the holder."), AGE];
const EVENT: &[Column] = &[
    Column("Last Seen", "string", 0, "The time since the last occurrence."),
    Column("Type", "string", 0, "Normal or Warning."),
    Column("Reason", "string", 0, "The machine-readable reason."),
    Column("Object", "string", 0, "The object that the event is about."),
    Column(
        "Subobject",
        "string",
        1,
        "The part of the object that the event is about.",
    ),
    Column("Source", "string", 1, "The component that reports the event."),
    Column("Message", "string", 0, "The human-readable message."),
    Column("First Seen", "string", 1, "The time since the first occurrence."),
    Column("Count", "string", 1, "The number of occurrences."),
    Column("Name", "string", 1, "The name, unique within a namespace."),
];
const NAMESPACE: &[Column] = &[
    NAME,
    Column("Status", "string", 0, "The phase: Active or Terminating."),
    AGE,
];
const CONFIG_MAP: &[Column] = &[NAME, Column("Data", "string", 0, "The number of entries."), AGE];

/// A column: its name, its type, its priority (1 is shown only with `-o wide`) and its description.
struct Column(&'static str, &'static str, u8, &'static str);

/// How much of each object a row includes: the parameter `includeObject` of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IncludeObject {
    /// The metadata.
    #[default]
    Metadata,
    /// The whole object.
    Object,
    /// Nothing.
    None,
}

impl IncludeObject {
    /// Parses the parameter. Returns `None` for unknown values.
    pub fn parse(text: &str) -> Option<IncludeObject> {
        match text {
            "" | "Metadata" => Some(IncludeObject::Metadata),
            "Object" => Some(IncludeObject::Object),
            "None" => Some(IncludeObject::None),
            _ => None,
        }
    }
}

/// Renders a Table of these objects at this time. The metadata of the Table is empty; the caller sets that of the list.
pub fn render<'a>(resource: Resource, items: impl IntoIterator<Item = &'a Value>, now: Timestamp) -> Value {
    render_with(resource, items, IncludeObject::Metadata, now)
}

/// Renders a Table that includes this much of each object.
pub fn render_with<'a>(
    resource: Resource,
    items: impl IntoIterator<Item = &'a Value>,
    include: IncludeObject,
    now: Timestamp,
) -> Value {
    let row = |object: &'a Value| {
        let included = match include {
            IncludeObject::Metadata => partial_metadata(object),
            IncludeObject::Object => object.clone(),
            IncludeObject::None => Value::Null,
        };
        json!({"cells": cells::of(resource, object, now), "object": included})
    };
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": column_definitions(resource),
        "rows": items.into_iter().map(row).collect::<Vec<_>>(),
    })
}

/// Returns only the metadata of an object, as `as=PartialObjectMetadata` requests.
pub fn partial_metadata(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object["metadata"],
    })
}

fn column_definitions(resource: Resource) -> Value {
    let columns = match resource {
        Resource::CronJob => CRON_JOB,
        Resource::Job => JOB,
        Resource::Lease => LEASE,
        Resource::Event => EVENT,
        Resource::Namespace => NAMESPACE,
        Resource::ConfigMap => CONFIG_MAP,
    };
    let definition = |Column(name, kind, priority, description): &Column| {
        let format = if *name == "Name" { "name" } else { "" };
        json!({"name": name, "type": kind, "format": format, "description": description, "priority": priority})
    };
    columns.iter().map(definition).collect()
}

#[cfg(test)]
mod tests;
