//! The rules for creating, updating and deleting objects: which fields a client can set, and which the server sets.
//!
//! No operation waits. A write and its consequences (finalizers, garbage collection, emptied namespaces) take effect at
//! once. Invariant: no object remains after all its owners are deleted, for owners of served kinds.

mod delete;
mod expiry;
mod field_owners;
mod garbage;
mod metadata;
mod update;

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

pub(crate) use self::{
    delete::{DeleteOptions, Propagation},
    update::Part,
};
use crate::{
    Resource,
    failure::Failure,
    json::to_json,
    objects::{
        defaulting,
        validation::{self, Checks, FieldError},
    },
    random::Random,
    store::{Key, Store, Stored, Uid},
};

/// The maximum length of a generated name before its suffix, so that the complete name fits into a label.
const PREFIX_MAX_BYTES: usize = 58;

/// The time of a write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) wall: Timestamp,
    pub(crate) at: Instant,
}

/// The object of a request, or the kind and namespace of a new one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) resource: Resource,
    pub(crate) namespace: Option<&'a str>,
    /// Empty for a new object.
    pub(crate) name: &'a str,
    /// Who changes it by an update or a patch. Empty for an apply, which has a field manager of its own.
    pub(crate) writer: &'a str,
}

impl Target<'_> {
    fn key(&self) -> Key {
        Key::new(self.namespace, self.name)
    }

    fn not_found(&self) -> Failure {
        Failure::not_found(self.resource, self.name)
    }
}

/// The result of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) outcome: Outcome,
    /// The object after the write, or the `Status` of a deletion.
    pub(crate) json: Bytes,
    /// Warnings for the client.
    pub(crate) warnings: Vec<String>,
}

/// The effect of a write on the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Created,
    Stored,
    Deleted,
}

impl Written {
    fn new(outcome: Outcome, json: Bytes) -> Written {
        Written {
            outcome,
            json,
            warnings: Vec::new(),
        }
    }

    fn stored(json: Bytes) -> Written {
        Written::new(Outcome::Stored, json)
    }

    fn with_warnings(self, warnings: Vec<String>) -> Written {
        Written { warnings, ..self }
    }

    /// Puts these warnings before the others.
    pub(crate) fn with_earlier_warnings(mut self, mut warnings: Vec<String>) -> Written {
        if !warnings.is_empty() {
            warnings.append(&mut self.warnings);
            self.warnings = warnings;
        }
        self
    }
}

/// The objects, with the rules applied to every write.
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

    /// Creates a decoded object. A dry run only builds the response.
    pub(crate) fn create(
        &mut self,
        target: Target<'_>,
        mut object: Value,
        is_dry_run: bool,
        moment: Moment,
    ) -> Result<Written, Failure> {
        let resource = target.resource;
        check_namespaces(target, &object)?;
        let uid = Uid(self.random.uid());
        metadata::begin(&mut object, target, uid, moment.wall);
        let name = self.name(&mut object);
        self.check_namespace(target, &name)?;
        defaulting::prepare_for_create(resource, &mut object);
        defaulting::apply(resource, &mut object);
        refuse(resource, &name, &validation::create(resource, &object, &self.checks))?;
        self.admit(resource, &name, &object)?;
        let warnings = validation::create_warnings(resource, &object);
        let version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        if version.parse::<u64>().is_ok_and(|version| version > 0) {
            let message = "resourceVersion should not be set on objects to be created";
            return Err(Failure::unexpected(message));
        }
        let key = Key::new(target.namespace, &name);
        if self.store.get(resource, &key).is_some() {
            return Err(Failure::already_exists(resource, &name));
        }
        if is_dry_run {
            return Ok(Written::new(Outcome::Created, to_json(&object)).with_warnings(warnings));
        }
        let stored = self.store.put(resource, key, object, moment.at);
        self.record_write(resource, &stored, moment);
        if !stored.owners.is_empty() {
            self.collect_if_orphaned(resource, &stored.key, moment);
        }
        Ok(Written::new(Outcome::Created, stored.json()).with_warnings(warnings))
    }

    /// Returns the name of the object. Generates it and stores it in the object if only `generateName` is set.
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

    /// Runs validating admission on a valid object.
    fn admit(&self, resource: Resource, name: &str, object: &Value) -> Result<(), Failure> {
        (self.checks.admission)(resource, object).map_err(|why| Failure::forbidden(resource, name, &why))
    }

    fn check_namespace(&self, target: Target<'_>, name: &str) -> Result<(), Failure> {
        let Some(namespace) = target.namespace else {
            return Ok(());
        };
        let Some(stored) = self.store.get(Resource::Namespace, &Key::new(None, namespace)) else {
            return Err(Failure::not_found(Resource::Namespace, namespace));
        };
        if stored.is_deleting {
            return Err(Failure::namespace_terminating(target.resource, name, namespace));
        }
        Ok(())
    }
}

/// Checks that the namespace of the object is that of the path.
fn check_namespaces(target: Target<'_>, object: &Value) -> Result<(), Failure> {
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    if !namespace.is_empty() && Some(namespace) != target.namespace {
        return Err(Failure::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

fn refuse(resource: Resource, name: &str, errors: &[FieldError]) -> Result<(), Failure> {
    if errors.is_empty() {
        Ok(())
    } else {
        Err(Failure::invalid(resource, name, errors))
    }
}
