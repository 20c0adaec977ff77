//! Fixes for the errors of the API server's validation.

use apiobjects::validation::FieldError;
use serde_json::Value;

use crate::{
    explain::advice::{schedule_advice, similar, zone_advice},
    schedule::parse_standard,
};

const POLICIES: [&str; 3] = ["Allow", "Forbid", "Replace"];

/// The names of Jobs are eleven characters longer.
const NAME_LENGTH_MAX: usize = 52;

/// Returns the fix. `None` if the error itself says what to write.
pub(super) fn hint(error: &FieldError, object: &Value) -> Option<String> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let is_missing = error.reason == "FieldValueRequired";
    match error.field.as_str() {
        "metadata.name" => name_hint(text("/metadata/name"), is_missing),
        "spec.schedule" if is_missing => Some("write five fields or a descriptor such as @daily".to_owned()),
        "spec.schedule" => {
            let schedule = text("/spec/schedule");
            // The other error of a schedule names spec.timeZone itself.
            let is_parse_error = !error.message.contains("TZ or CRON_TZ");
            (is_parse_error && parse_standard(schedule).is_err()).then(|| schedule_advice(schedule))
        }
        "spec.timeZone" => Some(zone_hint(text("/spec/timeZone"))),
        "spec.concurrencyPolicy" => {
            let policy = text("/spec/concurrencyPolicy");
            similar(policy, POLICIES.into_iter(), policy.len() / 4).map(|meant| format!("did you mean {meant}?"))
        }
        "spec.jobTemplate.spec.selector" | "spec.jobTemplate.spec.manualSelector" => Some("leave it out".to_owned()),
        field if field.ends_with(".template.spec.restartPolicy") && is_missing => {
            Some("write restartPolicy: Never, or OnFailure".to_owned())
        }
        field if field.ends_with(".template.spec.containers") && is_missing => {
            Some("give at least one container".to_owned())
        }
        _ => None,
    }
}

fn zone_hint(zone: &str) -> String {
    if zone.is_empty() || zone.eq_ignore_ascii_case("Local") {
        return "leave the field out, or write a name such as Europe/Berlin".to_owned();
    }
    zone_advice(zone)
}

fn name_hint(name: &str, is_missing: bool) -> Option<String> {
    if is_missing {
        return Some("give it one".to_owned());
    }
    if name.len() > NAME_LENGTH_MAX {
        return Some(format!(
            "shorten it from {} characters to {NAME_LENGTH_MAX}",
            name.len()
        ));
    }
    let lower = name.to_lowercase();
    let replaced: String = lower
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' })
        .collect();
    let parts: Vec<&str> = replaced
        .split('.')
        .map(|part| part.trim_matches('-'))
        .filter(|part| !part.is_empty())
        .collect();
    let mended = parts.join(".");
    (!mended.is_empty() && mended != name).then(|| format!("write {mended}"))
}
