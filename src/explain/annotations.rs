//! Annotations under `cronwheel.dev/` without an effect: misspelled, or of another object.

use serde_json::Value;

use super::advice::{shown, similar};
use crate::{
    schedule::options::{ALERTS_ANNOTATION, Freeze, OptionName, RUN_DONE_ANNOTATION},
    shard::Threshold,
};

const PREFIX: &str = "cronwheel.dev/";

/// More of one object are not listed.
const NOTES_MAX: usize = 20;

/// What the annotations belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Annotated {
    CronJob,
    Namespace,
}

/// One sentence for each annotation of an object that has no effect.
pub(super) fn annotation_notes(object: &Value, annotated: Annotated) -> Vec<String> {
    let annotations = object["metadata"]["annotations"].as_object();
    let names = annotations.into_iter().flatten().map(|(name, _)| name.as_str());
    let names = names.filter(|name| name.starts_with(PREFIX));
    names.filter_map(|name| note(name, annotated)).take(NOTES_MAX).collect()
}

/// `None` for an annotation that cronwheel reads or writes.
fn note(name: &str, annotated: Annotated) -> Option<String> {
    let (of_cron_job, of_namespace) = (of_cron_job(), of_namespace());
    let (own, others, owner, remedy) = match annotated {
        Annotated::CronJob => (
            of_cron_job,
            of_namespace,
            "",
            "has no effect on a CronJob; set it on the namespace",
        ),
        Annotated::Namespace => (
            of_namespace,
            of_cron_job,
            " of the namespace",
            "has no effect; set it on each CronJob",
        ),
    };
    if own.contains(&name) {
        return None;
    }
    let shown_name = shown(name);
    if others.contains(&name) {
        return Some(format!("annotation {shown_name}{owner} {remedy}"));
    }
    let n_edits_max = (name.len() - PREFIX.len()) / 4;
    let remedy = match similar(name, own.into_iter().chain(others), n_edits_max) {
        Some(meant) => format!("did you mean {meant}?"),
        None => "cronwheel has none of this name".to_owned(),
    };
    Some(format!("annotation {shown_name}{owner} has no effect; {remedy}"))
}

fn of_cron_job() -> Vec<&'static str> {
    let thresholds = Threshold::ALL.map(Threshold::annotation);
    let options = OptionName::OF_CRON_JOB.map(OptionName::annotation);
    let others = [RUN_DONE_ANNOTATION, ALERTS_ANNOTATION];
    options.into_iter().chain(thresholds).chain(others).collect()
}

fn of_namespace() -> Vec<&'static str> {
    let options = OptionName::OF_NAMESPACE.map(OptionName::annotation);
    let others = [
        OptionName::FreezeUntil.annotation(),
        Freeze::REASON_ANNOTATION,
        ALERTS_ANNOTATION,
    ];
    options.into_iter().chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_not_known_is_noted_with_the_nearest_one() {
        for (name, annotated, expected) in [
            ("spread", Annotated::CronJob, None),
            ("blocked-after-seconds", Annotated::CronJob, None),
            ("freeze-reason", Annotated::Namespace, None),
            (
                "spreads",
                Annotated::CronJob,
                Some(" has no effect; did you mean cronwheel.dev/spread?"),
            ),
            (
                "freze-until",
                Annotated::Namespace,
                Some(" of the namespace has no effect; did you mean cronwheel.dev/freeze-until?"),
            ),
            (
                "schedule",
                Annotated::Namespace,
                Some(" of the namespace has no effect; set it on each CronJob"),
            ),
            (
                "x",
                Annotated::CronJob,
                Some(" has no effect; cronwheel has none of this name"),
            ),
        ] {
            let name = format!("{PREFIX}{name}");
            let expected = expected.map(|rest| format!("annotation {name}{rest}"));
            assert_eq!(note(&name, annotated), expected);
        }
    }
}
