//! The rules by which objects come, change and go: what the API server keeps of a request, and what it adds.
//!
//! All on the store, none of it waits: a write and all that follows from it (finalizers, garbage, namespaces that
//! empty) happens at once. Invariant: no object is left whose owners, of kinds that are served, are all gone.

mod delete;
mod expiry;
mod garbage;
mod metadata;
mod update;

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

pub(crate) use self::{
    delete::{DeleteOptions, Propagation},
    update::{Part, Patch},
};
use crate::{
    failure::{Cause, Failure},
    objects::validation::Checks,
    random::Random,
    resource::Resource,
    rules,
    store::{Key, Store, Stored, Uid},
};

/// Longest part of a made up name before its suffix: the whole fits a label.
const PREFIX_MAX_BYTES: usize = 58;

/// When a write is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) wall: Timestamp,
    pub(crate) at: Instant,
}

/// Which object, or where a new one goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) resource: Resource,
    pub(crate) namespace: Option<&'a str>,
    /// Empty for a new object.
    pub(crate) name: &'a str,
}

impl Target<'_> {
    fn key(&self) -> Key {
        Key::new(self.namespace, self.name)
    }

    fn not_found(&self) -> Failure {
        Failure::not_found(self.resource, self.name)
    }
}

/// What a write came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// A new object.
    Created(Bytes),
    /// The object as it is.
    Stored(Bytes),
    /// The object is gone; this is the `Status` that says so.
    Deleted(Bytes),
}

/// Objects under the rules.
pub(crate) struct Registry {
    pub(crate) store: Store,
    random: Random,
    checks: Checks,
    expiry: expiry::Expiry,
}

impl Registry {
    pub(crate) fn new(log_capacity: usize, random: Random, checks: Checks) -> Registry {
        Registry {
            store: Store::new(log_capacity),
            random,
            checks,
            expiry: expiry::Expiry::default(),
        }
    }

    pub(crate) fn get(&self, target: Target<'_>) -> Result<&Arc<Stored>, Failure> {
        self.store
            .get(target.resource, &target.key())
            .ok_or_else(|| target.not_found())
    }

    /// Creates an object; of a dry run only the answer is made.
    pub(crate) fn create(
        &mut self,
        target: Target<'_>,
        mut object: Value,
        is_dry_run: bool,
        moment: Moment,
    ) -> Result<Written, Failure> {
        let resource = target.resource;
        check_form(target, &object)?;
        let uid = Uid(self.random.uid());
        metadata::begin(&mut object, target, uid, moment.wall);
        let name = self.name(&mut object);
        self.check_namespace(target, &name)?;
        begin_content(resource, &mut object, &name);
        rules::defaults(resource, &mut object);
        refuse(resource, &name, &rules::create_causes(resource, &object, &self.checks))?;
        let key = Key::new(target.namespace, &name);
        if self.store.get(resource, &key).is_some() {
            return Err(Failure::already_exists(resource, &name));
        }
        if is_dry_run {
            return Ok(Written::Created(to_json(&object)));
        }
        let stored = self.store.put(resource, key, object, moment.at);
        self.note_written(resource, &stored, moment);
        if !stored.owners.is_empty() {
            self.collect_if_orphaned(resource, &stored.key, moment);
        }
        Ok(Written::Created(stored.json.clone()))
    }

    /// The name that the object gets, put into it where the server makes one up.
    fn name(&mut self, object: &mut Value) -> String {
        let metadata = &mut object["metadata"];
        if let Some(name) = metadata["name"].as_str().filter(|name| !name.is_empty()) {
            return name.to_owned();
        }
        let Some(prefix) = metadata["generateName"].as_str().filter(|prefix| !prefix.is_empty()) else {
            return String::new();
        };
        let prefix = &prefix[..prefix.floor_char_boundary(PREFIX_MAX_BYTES)];
        let name = format!("{prefix}{}", self.random.suffix());
        metadata["name"] = name.as_str().into();
        name
    }

    fn check_namespace(&self, target: Target<'_>, name: &str) -> Result<(), Failure> {
        let Some(namespace) = target.namespace else {
            return Ok(());
        };
        let Some(stored) = self.store.get(Resource::Namespace, &Key::new(None, namespace)) else {
            return Err(Failure::not_found(Resource::Namespace, namespace));
        };
        if metadata::is_deleting(&stored.json) {
            return Err(Failure::namespace_terminating(target.resource, name, namespace));
        }
        Ok(())
    }
}

/// Whether the object is of the kind and the namespace of its path.
fn check_form(target: Target<'_>, object: &Value) -> Result<(), Failure> {
    let resource = target.resource;
    if !object.is_object() || !(object["metadata"].is_object() || object["metadata"].is_null()) {
        return Err(Failure::bad_request(
            "the object provided is unrecognized (must be of type Object)",
        ));
    }
    let said = |member: &str| object[member].as_str().unwrap_or_default().to_owned();
    let (kind, version) = (said("kind"), said("apiVersion"));
    let is_kind = kind.is_empty() || kind == resource.kind();
    if !is_kind || !(version.is_empty() || version == resource.api_version()) {
        return Err(Failure::bad_request(format!(
            "{kind} in version \"{version}\" cannot be handled as a {}: no kind \"{kind}\" is registered for version \"{version}\"",
            resource.kind()
        )));
    }
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    if !namespace.is_empty() && Some(namespace) != target.namespace {
        return Err(Failure::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

fn refuse(resource: Resource, name: &str, causes: &[Cause]) -> Result<(), Failure> {
    if !causes.is_empty() {
        return Err(Failure::invalid(resource, name, causes));
    }
    if name.is_empty() {
        let cause = Cause {
            reason: "FieldValueRequired",
            field: "metadata.name".to_owned(),
            message: "Required value: name or generateName is required".to_owned(),
        };
        return Err(Failure::invalid(resource, name, &[cause]));
    }
    Ok(())
}

/// A new object has no status but what the server gives it (B-16.3).
fn begin_content(resource: Resource, object: &mut Value, name: &str) {
    object["kind"] = resource.kind().into();
    object["apiVersion"] = resource.api_version().into();
    match resource {
        Resource::CronJob | Resource::Job => object["status"] = json!({}),
        Resource::Namespace => {
            object["status"] = json!({"phase": "Active"});
            object["spec"]["finalizers"] = json!(["kubernetes"]);
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name.into();
        }
        Resource::Lease | Resource::Event | Resource::ConfigMap => {}
    }
}

fn to_json(object: &Value) -> Bytes {
    // Writing a value to memory does not fail.
    serde_json::to_vec(object).unwrap_or_default().into()
}
