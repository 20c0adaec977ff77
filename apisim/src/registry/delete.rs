//! Deletion: preconditions, propagation, finalizers.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Moment, Outcome, Registry, Target, Written, metadata};
use crate::{
    Resource,
    failure::Failure,
    json::to_json,
    store::{Key, Stored},
};

/// Keeps an owner until its dependents are gone.
pub(super) const FOREGROUND_FINALIZER: &str = "foregroundDeletion";
/// Keeps an owner until its dependents no longer refer to it.
pub(super) const ORPHAN_FINALIZER: &str = "orphan";

/// How a deletion treats the dependents of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// Dependents are deleted after their owner.
    Background,
    /// Dependents are deleted before their owner.
    Foreground,
    /// Dependents are kept.
    Orphan,
}

/// The options of a delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeleteOptions {
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    /// `None` means the default of the kind.
    pub(crate) propagation: Option<Propagation>,
    pub(crate) is_dry_run: bool,
}

impl Registry {
    /// Deletes an object, or marks it for deletion if it has finalizers.
    pub(crate) fn delete(
        &mut self,
        target: Target<'_>,
        options: &DeleteOptions,
        moment: Moment,
    ) -> Result<Written, Failure> {
        let stored = Arc::clone(self.get(target)?);
        check_preconditions(target, options, &stored)?;
        if target.resource == Resource::Namespace {
            return Ok(self.delete_namespace(&stored, options, moment));
        }
        let propagation = options.propagation.unwrap_or(default_propagation(target.resource));
        if propagation == Propagation::Background && !stored.has_finalizers {
            return Ok(self.delete_immediately(target, &stored, options, moment));
        }
        let mut object = stored.value();
        match propagation {
            Propagation::Background => {}
            Propagation::Foreground => metadata::add_finalizer(&mut object, FOREGROUND_FINALIZER),
            Propagation::Orphan => metadata::add_finalizer(&mut object, ORPHAN_FINALIZER),
        }
        if !metadata::is_deleting_value(&object) {
            metadata::mark_deleting(&mut object, moment.wall);
        }
        if options.is_dry_run || object == stored.value() {
            return Ok(Written::stored(to_json(&object)));
        }
        let marked = self.store.put(target.resource, stored.key.clone(), object, moment.at);
        self.propagate(target.resource, &marked.key, moment);
        Ok(Written::stored(marked.json()))
    }

    fn delete_immediately(
        &mut self,
        target: Target<'_>,
        stored: &Stored,
        options: &DeleteOptions,
        moment: Moment,
    ) -> Written {
        if !options.is_dry_run {
            self.remove(target.resource, &stored.key, moment);
        }
        Written::new(Outcome::Deleted, deleted_status(target.resource, stored))
    }

    /// Deletes these objects. Objects that no longer exist are skipped.
    pub(crate) fn delete_all(&mut self, resource: Resource, keys: &[Key], options: &DeleteOptions, moment: Moment) {
        for key in keys {
            let target = Target {
                resource,
                namespace: key.namespace(),
                name: key.name(),
                writer: "",
            };
            // An object that was deleted together with another is not an error.
            let _gone = self.delete(target, options, moment);
        }
    }

    fn delete_namespace(&mut self, stored: &Stored, options: &DeleteOptions, moment: Moment) -> Written {
        let mut object = stored.value();
        if !metadata::is_deleting_value(&object) {
            metadata::mark_deleting(&mut object, moment.wall);
            object["metadata"]
                .as_object_mut()
                .map(|metadata| metadata.remove("deletionGracePeriodSeconds"));
            object["status"]["phase"] = "Terminating".into();
        }
        if options.is_dry_run {
            return Written::stored(to_json(&object));
        }
        let marked = self
            .store
            .put(Resource::Namespace, stored.key.clone(), object, moment.at);
        self.empty_namespace(marked.key.name(), moment);
        Written::stored(marked.json())
    }
}

/// Returns the default of the kind. For Jobs it dates from before Pods had owner references.
fn default_propagation(resource: Resource) -> Propagation {
    match resource {
        Resource::Job => Propagation::Orphan,
        Resource::CronJob | Resource::Lease | Resource::Event | Resource::Namespace | Resource::ConfigMap => {
            Propagation::Background
        }
    }
}

fn check_preconditions(target: Target<'_>, options: &DeleteOptions, stored: &Stored) -> Result<(), Failure> {
    let uid = stored.uid.text();
    if let Some(expected) = options.uid.as_ref().filter(|expected| **expected != uid) {
        let why = format!(
            "the UID in the precondition ({expected}) does not match the UID in record ({uid}). The object might have \
             been deleted and then recreated"
        );
        return Err(Failure::conflict(target.resource, target.name, &why));
    }
    let version = stored.version.to_string();
    if let Some(expected) = options
        .resource_version
        .as_ref()
        .filter(|expected| **expected != version)
    {
        let why = format!(
            "the ResourceVersion in the precondition ({expected}) does not match the ResourceVersion in record \
             ({version}). The object might have been modified"
        );
        return Err(Failure::conflict(target.resource, target.name, &why));
    }
    Ok(())
}

fn deleted_status(resource: Resource, stored: &Stored) -> bytes::Bytes {
    let mut details = json!({"name": stored.key.name(), "kind": resource.plural(), "uid": stored.uid.text()});
    if !resource.group().is_empty() {
        details["group"] = resource.group().into();
    }
    let status: Value =
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details});
    to_json(&status)
}
