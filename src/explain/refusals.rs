//! The refusals of the API server for a CronJob of a file, as it words them, with a fix where there is one.
//!
//! `apiobjects` decodes and validates the CronJob as the API server does for `kubectl create`. The decoder of the
//! controller reads stored objects, so it does not check for these.

mod hints;
mod problems;

use apiobjects::{
    Resource,
    decoding::{self, FieldValidation},
    defaulting,
    validation::{self, FieldError},
};
use serde_json::{Map, Value};

use super::{advice::shown, api_checks::CHECKS, objects::namespace_of};

/// The characters that the API server appends to a `generateName`, and the maximum length of what it keeps of it.
const GENERATED_SUFFIX: &str = "xxxxx";
const PREFIX_BYTES_MAX: usize = 58;

/// Returns the refusals, each with its field first.
pub(super) fn of(value: &Value) -> Vec<String> {
    let mut refusals = of_kind(value);
    let mut members = value.as_object().cloned().unwrap_or_default();
    for member in ["apiVersion", "kind"] {
        members.remove(member);
    }
    let problems = decoding::problems(Resource::CronJob, members.clone());
    if problems.is_empty() {
        refusals.extend(of_values(members));
    } else {
        refusals.extend(problems.iter().map(problems::text));
    }
    refusals
}

/// Returns the name of a CronJob that the API server would generate.
pub(super) fn generated_name(value: &Value) -> Option<String> {
    let prefix = value["metadata"]["generateName"]
        .as_str()
        .filter(|prefix| !prefix.is_empty())?;
    Some(format!(
        "{}{GENERATED_SUFFIX}",
        &prefix[..prefix.floor_char_boundary(PREFIX_BYTES_MAX)]
    ))
}

/// The refusals of version and kind, which `kubectl` reports.
pub fn of_kind(value: &Value) -> Vec<String> {
    let mut refusals = Vec::new();
    match value["apiVersion"].as_str() {
        Some("batch/v1") => {}
        Some(version) => refusals.push(format!(
            "apiVersion: Kubernetes has no CronJob of {version}; write batch/v1"
        )),
        None => refusals.push("apiVersion: missing; write batch/v1".to_owned()),
    }
    if let Some(kind) = value["kind"].as_str()
        && kind != "CronJob"
    {
        refusals.push(format!("kind: Kubernetes has no {kind}; write CronJob"));
    }
    refusals
}

/// The refusals of values, in an object whose fields all have the right types.
fn of_values(members: Map<String, Value>) -> Vec<String> {
    let mut object = match decoding::decode(Resource::CronJob, members, FieldValidation::Strict) {
        Ok(decoded) => decoded.object,
        Err(error) => return vec![error.to_string()],
    };
    object["metadata"]["namespace"] = namespace_of(&object).into();
    if object["metadata"]["name"].as_str().is_none_or(str::is_empty)
        && let Some(name) = generated_name(&object)
    {
        object["metadata"]["name"] = name.into();
    }
    defaulting::prepare_for_create(Resource::CronJob, &mut object);
    defaulting::apply(Resource::CronJob, &mut object);
    let mut refusals: Vec<String> = Vec::new();
    for error in validation::create(Resource::CronJob, &object, &CHECKS) {
        let refusal = text(&error, &object);
        if !refusals.contains(&refusal) {
            refusals.push(refusal);
        }
    }
    refusals
}

/// Returns field, message and fix.
pub fn text(error: &FieldError, object: &Value) -> String {
    let (field, message) = (&error.field, shown(&error.message));
    match hints::hint(error, object) {
        Some(hint) => format!("{field}: {message}; {hint}"),
        None => format!("{field}: {message}"),
    }
}
