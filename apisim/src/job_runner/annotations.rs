//! The annotations on Pod templates that control a simulated Job.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::Value;

use super::Outcome;
use crate::Resource;

const RUN_FOR: &str = "run-for";
const OUTCOME: &str = "outcome";

impl Outcome {
    pub(super) fn parse(text: &str) -> Option<Outcome> {
        match text {
            "succeed" => Some(Outcome::Succeeds),
            "fail" => Some(Outcome::Fails),
            "hang" => Some(Outcome::Hangs),
            _ => None,
        }
    }
}

pub(super) fn parse_run_for(text: &str) -> Option<Duration> {
    Duration::try_from(text.parse::<SignedDuration>().ok()?).ok()
}

/// Refuses CronJobs and Jobs whose annotations `run-for` and `outcome` have values that the
/// [`JobRunner`](super::JobRunner) does not support. For use as [`Checks::admission`](crate::Checks::admission).
///
/// # Errors
///
/// Returns the message for the client. It names the annotation, its value and the possible values.
pub fn check_annotations(resource: Resource, object: &Value) -> Result<(), String> {
    let template = match resource {
        Resource::CronJob => "spec.jobTemplate.spec.template",
        Resource::Job => "spec.template",
        Resource::Lease | Resource::Event | Resource::Namespace | Resource::ConfigMap => return Ok(()),
    };
    let pointer = format!("/{}/metadata/annotations", template.replace('.', "/"));
    let annotation = |name: &str| object.pointer(&pointer)?.get(name)?.as_str();
    let refusal = |name: &str, value: &str, expected: &str| {
        Err(format!("{template}.metadata.annotations[{name}]: {value:?} {expected}"))
    };
    if let Some(value) = annotation(RUN_FOR)
        && parse_run_for(value).is_none()
    {
        return refusal(RUN_FOR, value, "is not a duration such as 90s or 1h30m");
    }
    match annotation(OUTCOME) {
        Some(value) if Outcome::parse(value).is_none() => {
            refusal(OUTCOME, value, "is not one of succeed, fail and hang")
        }
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(annotations: Value, expected: Result<(), &str>) {
        let template = json!({"metadata": {"annotations": annotations}});
        let cron_job = json!({"spec": {"jobTemplate": {"spec": {"template": template}}}});
        let job = json!({"spec": {"template": template}});
        for (resource, object, path) in [
            (Resource::CronJob, cron_job, "spec.jobTemplate.spec.template"),
            (Resource::Job, job, "spec.template"),
        ] {
            let expected = expected.map_err(|text| format!("{path}.metadata.annotations{text}"));
            assert_eq!(check_annotations(resource, &object), expected);
        }
    }

    #[test]
    fn known_values_are_accepted() {
        for annotations in [
            json!(null),
            json!({}),
            json!({"team": "red"}),
            json!({"run-for": "90s", "outcome": "fail"}),
            json!({"run-for": "1h 30m", "outcome": "hang"}),
            json!({"run-for": "0s", "outcome": "succeed"}),
        ] {
            check(annotations, Ok(()));
        }
    }

    #[test]
    fn unknown_values_are_refused_with_the_accepted_ones() {
        check(
            json!({"run-for": "90"}),
            Err(r#"[run-for]: "90" is not a duration such as 90s or 1h30m"#),
        );
        check(
            json!({"run-for": "-5s"}),
            Err(r#"[run-for]: "-5s" is not a duration such as 90s or 1h30m"#),
        );
        check(
            json!({"outcome": "Fail"}),
            Err(r#"[outcome]: "Fail" is not one of succeed, fail and hang"#),
        );
    }
}
