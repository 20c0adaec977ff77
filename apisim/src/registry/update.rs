//! Changes of objects: whole ones and patches, to the main part or to the status alone (B-16.3, B-16.4).

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Moment, Registry, Target, Written, check_form, metadata, to_json};
use crate::{
    failure::{Cause, Failure},
    resource::Resource,
    rules::{self, PatchKind},
    store::Stored,
};

/// What of an object a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything but the status, where that is apart.
    Main,
    /// The status, and the metadata with it.
    Status,
}

/// A change as a patch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patch<'a> {
    pub(crate) kind: PatchKind,
    pub(crate) content: &'a Value,
}

impl Registry {
    /// Puts an object in the place of the one of its name.
    pub(crate) fn update(
        &mut self,
        target: Target<'_>,
        part: Part,
        new: Value,
        is_dry_run: bool,
        moment: Moment,
    ) -> Result<Written, Failure> {
        check_form(target, &new)?;
        check_name(target, &new)?;
        let Some(stored) = self.store.get(target.resource, &target.key()).cloned() else {
            return self.create_on_update(target, part, new, is_dry_run, moment);
        };
        let old = stored.value();
        let is_unconditional = check_versions(target, &new, &stored)?;
        if is_unconditional && target.resource == Resource::Lease {
            let cause = Cause {
                reason: "FieldValueInvalid",
                field: "metadata.resourceVersion".to_owned(),
                message: "Invalid value: 0: must be specified for an update".to_owned(),
            };
            return Err(Failure::invalid(target.resource, target.name, &[cause]));
        }
        self.replace(target, part, new, &old, is_dry_run, moment)
    }

    /// Changes an object by a patch. An applied one that is not there is created.
    pub(crate) fn patch(
        &mut self,
        target: Target<'_>,
        part: Part,
        patch: Patch<'_>,
        is_dry_run: bool,
        moment: Moment,
    ) -> Result<Written, Failure> {
        let Some(stored) = self.store.get(target.resource, &target.key()).cloned() else {
            if patch.kind == PatchKind::Apply && part == Part::Main {
                let mut object = patch.content.clone();
                metadata::members(&mut object).insert("name".to_owned(), target.name.into());
                return self.create(target, object, is_dry_run, moment);
            }
            return Err(target.not_found());
        };
        let old = stored.value();
        let new = rules::patched(target.resource, patch.kind, &old, patch.content)?;
        check_form(target, &new)?;
        check_name(target, &new)?;
        check_versions(target, &new, &stored)?;
        self.replace(target, part, new, &old, is_dry_run, moment)
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
        old: &Value,
        is_dry_run: bool,
        moment: Moment,
    ) -> Result<Written, Failure> {
        let resource = target.resource;
        metadata::carry_over(&mut new, old);
        new["kind"] = resource.kind().into();
        new["apiVersion"] = resource.api_version().into();
        rules::defaults(resource, &mut new);
        take_part(resource, part, &mut new, old);
        if part == Part::Main {
            let causes = rules::update_causes(resource, &new, old, &self.checks);
            if !causes.is_empty() {
                return Err(Failure::invalid(resource, target.name, &causes));
            }
            if resource.has_generation() && new["spec"] != old["spec"] {
                metadata::raise_generation(&mut new);
            }
        }
        // Nothing is written where nothing changes.
        if is_dry_run || new == *old {
            return Ok(Written::Stored(to_json(&new)));
        }
        let is_released = metadata::is_deleting_value(&new) && metadata::finalizers(&new).is_empty();
        if is_released && resource != Resource::Namespace {
            let answer = to_json(&new);
            self.remove(resource, &target.key(), moment);
            return Ok(Written::Stored(answer));
        }
        let stored = self.store.put(resource, target.key(), new, moment.at);
        self.note_written(resource, &stored, moment);
        Ok(Written::Stored(stored.json.clone()))
    }
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

/// Whether the request names no version; an error where it speaks of another object or version than the stored one.
fn check_versions(target: Target<'_>, new: &Value, stored: &Arc<Stored>) -> Result<bool, Failure> {
    let said = |member: &str| new["metadata"][member].as_str().unwrap_or_default();
    let (uid, stored_uid) = (said("uid"), stored.uid.text());
    if !uid.is_empty() && uid != stored_uid {
        let key = format!("/registry/{}/{}", target.resource.plural(), stored.key.as_str());
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: \
             Precondition failed: UID in precondition: {uid}, UID in object meta: {stored_uid}"
        );
        return Err(Failure::conflict(target.resource, target.name, &why));
    }
    let version = said("resourceVersion");
    if version.is_empty() || version == "0" {
        return Ok(true);
    }
    let asked: u64 = version.parse().map_err(|_| {
        let cause = Cause {
            reason: "FieldValueInvalid",
            field: "metadata.resourceVersion".to_owned(),
            message: format!("Invalid value: \"{version}\": must be an unsigned integer"),
        };
        Failure::invalid(target.resource, target.name, &[cause])
    })?;
    if asked == stored.version {
        Ok(false)
    } else {
        Err(Failure::modified(target.resource, target.name))
    }
}

/// Takes the part that the request is not about from the stored object.
fn take_part(resource: Resource, part: Part, new: &mut Value, old: &Value) {
    if !resource.has_status() {
        return;
    }
    let kept = match part {
        Part::Main => "status",
        Part::Status => "spec",
    };
    match old.get(kept) {
        Some(value) => new[kept] = value.clone(),
        None => {
            if let Value::Object(members) = new {
                members.remove(kept);
            }
        }
    }
    if new["status"].is_null() {
        new["status"] = json!({});
    }
}
