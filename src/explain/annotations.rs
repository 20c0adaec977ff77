//! Annotations under `cronwheel.dev/` without an effect: misspelled, or of another object.

use serde_json::Value;

use super::{
    advice::{shown, similar},
    misplaced::misplaced_remedies,
};
use crate::{
    schedule::options::{ALERTS_ANNOTATION, Freeze, OptionName, RUN_DONE_ANNOTATION},
    shard::Threshold,
};

const PREFIX: &str = "cronwheel.dev/";

/// More of one object are not listed.
const NOTES_MAX: usize = 20;

/// What the annotations belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Annotated {
    /// A CronJob.
    CronJob,
    /// A namespace.
    Namespace,
}

/// Each annotation of an object that has no effect, with what mends it:
/// `cronwheel.dev/missed-run: did you mean cronwheel.dev/missed-runs?`. Then each option that is a label, or in the template
/// of the Jobs.
pub fn annotation_remedies(object: &Value, annotated: Annotated) -> Vec<String> {
    let remedies = names(object).filter_map(|name| Some(format!("{}: {}", shown(name), remedy(name, annotated)?)));
    remedies
        .chain(misplaced_remedies(object, annotated))
        .take(NOTES_MAX)
        .collect()
}

/// One sentence for each annotation of an object that has no effect.
pub(super) fn annotation_notes(object: &Value, annotated: Annotated) -> Vec<String> {
    let notes = names(object).filter_map(|name| note(name, annotated));
    notes.take(NOTES_MAX).collect()
}

fn names(object: &Value) -> impl Iterator<Item = &str> {
    let annotations = object["metadata"]["annotations"].as_object();
    let names = annotations.into_iter().flatten().map(|(name, _)| name.as_str());
    names.filter(|name| name.starts_with(PREFIX))
}

/// `None` for an annotation that cronwheel reads or writes.
fn note(name: &str, annotated: Annotated) -> Option<String> {
    let remedy = remedy(name, annotated)?;
    let (owner, on) = match annotated {
        Annotated::CronJob if of_namespace().contains(&name) => ("", " on a CronJob"),
        Annotated::CronJob => ("", ""),
        Annotated::Namespace => (" of the namespace", ""),
    };
    Some(format!("annotation {}{owner} has no effect{on}; {remedy}", shown(name)))
}

/// What mends an annotation without an effect. `None` if it has one.
fn remedy(name: &str, annotated: Annotated) -> Option<String> {
    let (own, others, remedy) = match annotated {
        Annotated::CronJob => (of_cron_job(), of_namespace(), "set it on the namespace"),
        Annotated::Namespace => (of_namespace(), of_cron_job(), "set it on each CronJob"),
    };
    if own.contains(&name) {
        return None;
    }
    if others.contains(&name) {
        return Some(remedy.to_owned());
    }
    let n_edits_max = (name.len() - PREFIX.len()) / 4;
    Some(match similar(name, own.into_iter().chain(others), n_edits_max) {
        Some(meant) => format!("did you mean {meant}?"),
        None => "cronwheel has none of this name".to_owned(),
    })
}

pub(super) fn of_cron_job() -> Vec<&'static str> {
    let thresholds = Threshold::ALL.map(Threshold::annotation);
    let options = OptionName::OF_CRON_JOB.map(OptionName::annotation);
    let others = [RUN_DONE_ANNOTATION, ALERTS_ANNOTATION];
    options.into_iter().chain(thresholds).chain(others).collect()
}

pub(super) fn of_namespace() -> Vec<&'static str> {
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
                "freeze-until",
                Annotated::CronJob,
                Some(" has no effect on a CronJob; set it on the namespace"),
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
