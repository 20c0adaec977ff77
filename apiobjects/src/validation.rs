//! Validation: which objects the API server refuses, and with which messages (B-16.2).
//!
//! The rules run in the server's order on objects that are decoded and defaulted. Maps are traversed by key; the
//! server's order is random. Pod templates are checked only for fields without which a Job cannot run.

mod config_map;
mod cron_job;
mod event;
mod field_error;
mod job;
mod job_status;
mod lease;
mod metadata;
pub(crate) mod names;
mod namespace;
mod path;
mod pod;

use serde_json::Value;

pub use self::field_error::FieldError;
use self::{field_error::Errors, metadata::NameRule};
use crate::Resource;

/// Checks that the caller supplies.
#[derive(Clone, Copy, Debug)]
pub struct Checks {
    /// Parses a schedule and returns the error if it is invalid.
    pub schedule: fn(&str) -> Result<(), String>,
    /// Returns whether a time zone of this name exists.
    pub time_zone: fn(&str) -> bool,
    /// Validating admission: returns why a valid object is refused.
    pub admission: fn(Resource, &Value) -> Result<(), String>,
}

impl Default for Checks {
    /// Accepts everything.
    fn default() -> Checks {
        Checks {
            schedule: |_| Ok(()),
            time_zone: |_| true,
            admission: |_, _| Ok(()),
        }
    }
}

/// Returns the errors in a new object. Empty if it is valid.
pub fn create(resource: Resource, object: &Value, checks: &Checks) -> Vec<FieldError> {
    let mut errors = Errors::default();
    match resource {
        Resource::CronJob => cron_job::create(object, checks, &mut errors),
        Resource::Job => job::check(object, &mut errors),
        Resource::Lease => lease::create(object, &mut errors),
        Resource::Event => event::check(object, &mut errors),
        Resource::Namespace => namespace::create(object, &mut errors),
        Resource::ConfigMap => config_map::check(object, &mut errors),
    }
    if errors.is_empty() {
        metadata::check(object, resource.is_namespaced(), NameRule::PathSegment, &mut errors);
    }
    errors.into_list()
}

/// Returns the errors in an update of an object. Empty if it is valid.
pub fn update(resource: Resource, new: &Value, old: &Value, checks: &Checks) -> Vec<FieldError> {
    let mut errors = Errors::default();
    metadata::check(new, resource.is_namespaced(), NameRule::PathSegment, &mut errors);
    metadata::check_update(new, old, &mut errors);
    match resource {
        Resource::CronJob => cron_job::update(new, old, checks, &mut errors),
        Resource::Job => job::update(new, old, &mut errors),
        Resource::Lease => lease::update(new, old, &mut errors),
        Resource::Event => event::check(new, &mut errors),
        Resource::Namespace => metadata::check_update_with_finalizers(new, old, &mut errors),
        Resource::ConfigMap => config_map::update(new, old, &mut errors),
    }
    errors.into_list()
}

/// Returns the errors in a status update (B-16.4). The status of a CronJob is always valid.
pub fn update_status(resource: Resource, new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    metadata::check(new, resource.is_namespaced(), NameRule::PathSegment, &mut errors);
    metadata::check_update(new, old, &mut errors);
    match resource {
        Resource::Job => {
            metadata::check_update_with_finalizers(new, old, &mut errors);
            job_status::update(new, old, &mut errors);
        }
        Resource::Namespace => {
            metadata::check_update_with_finalizers(new, old, &mut errors);
            namespace::check_phase(new, &mut errors);
        }
        Resource::CronJob | Resource::Lease | Resource::Event | Resource::ConfigMap => {}
    }
    errors.into_list()
}

/// Returns the `Warning` headers for a create.
pub fn create_warnings(resource: Resource, object: &Value) -> Vec<String> {
    let messages = names::dns_label(metadata::text(object, "name"));
    if !matches!(resource, Resource::CronJob | Resource::Job) || messages.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is \
         recommended: [{}]",
        messages.join(" ")
    )]
}

/// Returns the `Warning` headers for an update.
pub fn update_warnings(resource: Resource, new: &Value) -> Vec<String> {
    let schedule = new
        .pointer("/spec/schedule")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if resource != Resource::CronJob || !schedule.contains("TZ") {
        return Vec::new();
    }
    vec![
        "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
         https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests;
