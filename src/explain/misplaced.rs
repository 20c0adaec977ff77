//! Options in the wrong place: as labels, or in the template of the Jobs.

use serde_json::Value;

use super::annotations::{Annotated, of_cron_job, of_namespace};
use crate::schedule::options::RUN_DONE_ANNOTATION;

/// A place in which an option has no effect.
struct Place {
    pointer: &'static str,
    kind: &'static str,
    /// The owner, after the name of the option.
    owner: &'static str,
    remedy: &'static str,
}

impl Place {
    const fn new(pointer: &'static str, kind: &'static str, owner: &'static str, remedy: &'static str) -> Place {
        Place {
            pointer,
            kind,
            owner,
            remedy,
        }
    }
}

const OF_CRON_JOB: [Place; 5] = [
    Place::new("/metadata/labels", "label", "", "set it as an annotation"),
    Place::new(
        "/spec/jobTemplate/metadata/annotations",
        "annotation",
        " of spec.jobTemplate",
        "set it on the CronJob",
    ),
    Place::new(
        "/spec/jobTemplate/metadata/labels",
        "label",
        " of spec.jobTemplate",
        "set it as an annotation of the CronJob",
    ),
    Place::new(
        "/spec/jobTemplate/spec/template/metadata/annotations",
        "annotation",
        " of the Pod template",
        "set it on the CronJob",
    ),
    Place::new(
        "/spec/jobTemplate/spec/template/metadata/labels",
        "label",
        " of the Pod template",
        "set it as an annotation of the CronJob",
    ),
];

const OF_NAMESPACE: [Place; 1] = [Place::new(
    "/metadata/labels",
    "label",
    " of the namespace",
    "set it as an annotation",
)];

/// One sentence for each option of an object that is in a place without an effect.
pub(super) fn misplaced_notes(object: &Value, annotated: Annotated) -> Vec<String> {
    misplaced(object, annotated, " has no effect;")
}

/// Each option of an object that is in a place without an effect, with what mends it.
pub(super) fn misplaced_remedies(object: &Value, annotated: Annotated) -> Vec<String> {
    misplaced(object, annotated, ":")
}

/// `before_remedy` stands between an option and what mends it.
fn misplaced(object: &Value, annotated: Annotated, before_remedy: &str) -> Vec<String> {
    let (places, mut options) = match annotated {
        Annotated::CronJob => (&OF_CRON_JOB[..], of_cron_job()),
        Annotated::Namespace => (&OF_NAMESPACE[..], of_namespace()),
    };
    options.retain(|name| *name != RUN_DONE_ANNOTATION);
    let notes = places.iter().flat_map(|place| {
        let members = object.pointer(place.pointer).and_then(Value::as_object);
        let present = members.into_iter().flat_map(|members| members.keys());
        let present = present.filter(|name| options.contains(&name.as_str()));
        let Place {
            kind, owner, remedy, ..
        } = place;
        present.map(move |name| format!("{kind} {name}{owner}{before_remedy} {remedy}"))
    });
    notes.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_option_in_another_place_is_noted() {
        let options = json!({"cronwheel.dev/spread": "10m", "cronwheel.dev/managed": "true", "app": "a"});
        for (annotated, object, expected) in [
            (
                Annotated::CronJob,
                json!({"metadata": {"annotations": options, "labels": options}}),
                "label cronwheel.dev/spread has no effect; set it as an annotation",
            ),
            (
                Annotated::CronJob,
                json!({"spec": {"jobTemplate": {"metadata": {"annotations": options}}}}),
                "annotation cronwheel.dev/spread of spec.jobTemplate has no effect; set it on the CronJob",
            ),
            (
                Annotated::CronJob,
                json!({"spec": {"jobTemplate": {"metadata": {"labels": options}}}}),
                "label cronwheel.dev/spread of spec.jobTemplate has no effect; set it as an annotation of the CronJob",
            ),
            (
                Annotated::CronJob,
                json!({"spec": {"jobTemplate": {"spec": {"template": {"metadata": {"annotations": options}}}}}}),
                "annotation cronwheel.dev/spread of the Pod template has no effect; set it on the CronJob",
            ),
            (
                Annotated::CronJob,
                json!({"spec": {"jobTemplate": {"spec": {"template": {"metadata": {"labels": options}}}}}}),
                "label cronwheel.dev/spread of the Pod template has no effect; set it as an annotation of the CronJob",
            ),
            (
                Annotated::Namespace,
                json!({"metadata": {"annotations": options, "labels": options}}),
                "label cronwheel.dev/spread of the namespace has no effect; set it as an annotation",
            ),
        ] {
            assert_eq!(misplaced_notes(&object, annotated), [expected], "{object}");
            let expected = expected.replace(" has no effect;", ":");
            assert_eq!(misplaced_remedies(&object, annotated), [expected], "{object}");
        }
    }
}
