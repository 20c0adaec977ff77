//! Updates of objects: full updates and patches, to the main resource or to the status subresource (B-16.3, B-16.4).

use std::sync::Arc;

use serde_json::Value;

use super::{Moment, Registry, Target, Written, check_namespaces, field_owners, metadata, refuse};
use crate::{
    Resource,
    content::Patch,
    failure::Failure,
    json::to_json,
    objects::{
        decoding::Decoded,
        defaulting,
        patch::PatchForm,
        validation::{self, FieldError},
    },
    store::Stored,
};

/// The part of an object that a request changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything except the status, if the status is a subresource.
    Main,
    /// The status and the metadata.
    Status,
}

impl Registry {
    /// Replaces an object with a decoded one of the same name.
    pub(crate) fn update(
        &mut self,
        target: Target<'_>,
        part: Part,
        new: Value,
        is_dry_run: bool,
        moment: Moment,
    ) -> Result<Written, Failure> {
        check_namespaces(target, &new)?;
        check_name(target, &new)?;
        let Some(stored) = self.store.get(target.resource, &target.key()).cloned() else {
            return self.create_on_update(target, part, new, is_dry_run, moment);
        };
        let is_unconditional = check_versions(target, &new, &stored)?;
        if is_unconditional && target.resource == Resource::Lease {
            let detail = "Invalid value: 0: must be specified for an update";
            return Err(invalid_version(target, detail.to_owned()));
        }
        self.replace(target, part, new, &stored, is_dry_run, moment)
    }

    /// Applies a patch to an object. Server-side apply creates a missing object.
    pub(crate) fn patch(
        &mut self,
        target: Target<'_>,
        part: Part,
        patch: &Patch<'_>,
        is_dry_run: bool,
        moment: Moment,
    ) -> Result<Written, Failure> {
        let stored = self.store.get(target.resource, &target.key()).cloned();
        let is_created = stored.is_none() && patch.form == PatchForm::Apply && part == Part::Main;
        if stored.is_none() && !is_created {
            return Err(target.not_found());
        }
        let old = stored.as_ref().map(|stored| stored.value());
        let Decoded {
            object: mut new,
            warnings,
        } = patch.applied(target.resource, old.as_ref(), moment)?;
        let written = if let Some(stored) = stored {
            check_namespaces(target, &new)?;
            check_name(target, &new)?;
            check_versions(target, &new, &stored)?;
            self.replace(target, part, new, &stored, is_dry_run, moment)?
        } else {
            metadata::members(&mut new).insert("name".to_owned(), target.name.into());
            self.create(target, new, is_dry_run, moment)?
        };
        Ok(written.with_earlier_warnings(warnings))
    }

    fn create_on_update(
        &mut self,
        target: Target<'_>,
        part: Part,
        mut new: Value,
        is_dry_run: bool,
        moment: Moment,
    ) -> Result<Written, Failure> {
        let is_allowed = matches!(target.resource, Resource::Lease | Resource::Event) && part == Part::Main;
        if !is_allowed || !new["metadata"]["uid"].as_str().unwrap_or_default().is_empty() {
            return Err(target.not_found());
        }
        metadata::members(&mut new).insert("name".to_owned(), target.name.into());
        self.create(target, new, is_dry_run, moment)
    }

    fn replace(
        &mut self,
        target: Target<'_>,
        part: Part,
        mut new: Value,
        stored: &Stored,
        is_dry_run: bool,
        moment: Moment,
    ) -> Result<Written, Failure> {
        let resource = target.resource;
        let is_spec_read = is_spec_read(resource, part, is_dry_run, stored);
        let old = if is_spec_read {
            stored.value()
        } else {
            stored.value_without_spec()
        };
        let warnings = self.complete(target, part, &mut new, &old)?;
        // A write without changes is skipped.
        if new == old {
            return Ok(Written::stored(stored.json()).with_warnings(warnings));
        }
        if part == Part::Main {
            field_owners::record(target, &mut new, &old, moment.wall);
        }
        if is_dry_run {
            return Ok(Written::stored(to_json(&new)).with_warnings(warnings));
        }
        let is_released = metadata::is_deleting_value(&new) && metadata::finalizers(&new).is_empty();
        if is_released && resource != Resource::Namespace {
            let json = to_json(&new);
            self.remove(resource, &target.key(), moment);
            return Ok(Written::stored(json));
        }
        let stored = if is_spec_read {
            self.store.put(resource, target.key(), new, moment.at)
        } else {
            self.store
                .put_with_spec(resource, target.key(), new, &stored.spec(), moment.at)
        };
        self.record_write(resource, &stored, moment);
        Ok(Written::stored(stored.json()).with_warnings(warnings))
    }

    /// Completes an updated object with fields that clients cannot set, and validates it. Returns the warnings for the
    /// client.
    fn complete(&self, target: Target<'_>, part: Part, new: &mut Value, old: &Value) -> Result<Vec<String>, Failure> {
        let resource = target.resource;
        metadata::carry_over(new, old);
        defaulting::apply(resource, new);
        let errors = match part {
            Part::Main => {
                defaulting::prepare_for_update(resource, new, old);
                validation::update(resource, new, old, &self.checks)
            }
            Part::Status => {
                defaulting::prepare_for_status_update(new, old);
                validation::update_status(resource, new, old)
            }
        };
        refuse(resource, target.name, &errors)?;
        match part {
            Part::Main => {
                self.admit(resource, target.name, new)?;
                Ok(validation::update_warnings(resource, new))
            }
            Part::Status => Ok(Vec::new()),
        }
    }
}

/// Returns whether the spec is needed for this request. Status updates of CronJobs are frequent and their specs are
/// long, so their specs are not parsed. An object that is being deleted may be removed by the update: the response then
/// contains its spec.
fn is_spec_read(resource: Resource, part: Part, is_dry_run: bool, stored: &Stored) -> bool {
    part == Part::Main || resource != Resource::CronJob || is_dry_run || stored.is_deleting
}

fn check_name(target: Target<'_>, new: &Value) -> Result<(), Failure> {
    match new["metadata"]["name"].as_str().unwrap_or_default() {
        name if name == target.name => Ok(()),
        "" => Err(Failure::bad_request("name must be provided")),
        name => Err(Failure::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            target.name
        ))),
    }
}

/// Returns whether the request has no version. Fails if its uid or its version is not that of the stored object.
fn check_versions(target: Target<'_>, new: &Value, stored: &Arc<Stored>) -> Result<bool, Failure> {
    let text = |member: &str| new["metadata"][member].as_str().unwrap_or_default();
    let (uid, stored_uid) = (text("uid"), stored.uid.text());
    if !uid.is_empty() && uid != stored_uid {
        let key = format!("/registry/{}/{}", target.resource.plural(), stored.key.as_str());
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: \
             Precondition failed: UID in precondition: {uid}, UID in object meta: {stored_uid}"
        );
        return Err(Failure::conflict(target.resource, target.name, &why));
    }
    let version = text("resourceVersion");
    if version.is_empty() || version == "0" {
        return Ok(true);
    }
    let requested: u64 = version.parse().map_err(|_| {
        let message = format!("Invalid value: {version:?}: must be an unsigned integer");
        invalid_version(target, message)
    })?;
    if requested == stored.version {
        Ok(false)
    } else {
        Err(Failure::modified(target.resource, target.name))
    }
}

fn invalid_version(target: Target<'_>, message: String) -> Failure {
    let error = FieldError {
        reason: "FieldValueInvalid",
        field: "metadata.resourceVersion".to_owned(),
        message,
    };
    Failure::invalid(target.resource, target.name, &[error])
}
