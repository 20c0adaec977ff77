//! What the canary shows, in the words of a person who decides about the switch.

use std::time::Duration;

use super::seen::{Creator, Seen};
use crate::{
    cli::check::finding::{Finding, counted},
    explain::calendar::duration_text,
};

const MANAGED: &str = "managed namespace";

/// The circumstances of an observation.
#[derive(Clone, Debug)]
pub(in crate::cli::check) struct Question {
    /// Where the managed namespace is.
    pub(in crate::cli::check) place: String,
    /// How long after the first slot Jobs were awaited.
    pub(in crate::cli::check) wait: Duration,
    /// The number of replicas that take shards, if it is known.
    pub(in crate::cli::check) n_replicas: Option<usize>,
}

/// Judges the managed namespace, and the one without the label if there is one.
pub(in crate::cli::check) fn judge(question: &Question, managed: &Seen, other: Option<&Seen>) -> Vec<Finding> {
    let managed = of_managed(question, managed);
    [managed]
        .into_iter()
        .chain(other.map(|other| of_other(question, other)))
        .collect()
}

fn of_managed(question: &Question, seen: &Seen) -> Finding {
    let place = &question.place;
    let Some(job) = &seen.job else {
        return silent(question, seen, place);
    };
    let after = seconds_text(job.seconds);
    match (&job.creator, seen.traces.first()) {
        (Creator::Other(manager), _) => not_stopped(&format!(
            "{manager} created Job {} {after} after its slot {place}",
            job.name
        )),
        (Creator::Cronwheel(who), Some(trace)) => {
            not_stopped(&format!("{who} created Job {} first {place}, but {trace}", job.name))
        }
        (Creator::Cronwheel(who), None) => Finding::fine(
            MANAGED,
            format!(
                "{who} created Job {} {after} after its slot {place}; no other controller wrote anything there",
                job.name
            ),
        ),
    }
}

fn not_stopped(observation: &str) -> Finding {
    Finding::failed(
        MANAGED,
        format!("{observation}: the built-in controller is not stopped there"),
        "cronwheel check says whether the policy is bound and a replica acts; kubectl get validatingadmissionpolicies,\
         validatingadmissionpolicybindings",
    )
}

/// Judges a managed namespace without a Job.
fn silent(question: &Question, seen: &Seen, place: &str) -> Finding {
    if let Some(trace) = seen.traces.first() {
        return not_stopped(&format!("{trace} {place}"));
    }
    let nobody = format!(
        "nobody created a Job within {} after its slot {place}",
        wait_text(question.wait)
    );
    match question.n_replicas {
        None => Finding::fine(
            MANAGED,
            format!("{nobody}, and it is not known whether a replica of cronwheel is at work"),
        ),
        Some(0) => Finding::fine(MANAGED, format!("{nobody}, and no replica of cronwheel is at work")),
        Some(n) => Finding::warning(
            MANAGED,
            format!(
                "{nobody}: the built-in controller is stopped, but {} at work did not run the CronJob either",
                counted(n, "replica")
            ),
            "cronwheel check; --namespace-selector, if it is given, must be that of the replicas",
        ),
    }
}

fn of_other(question: &Question, seen: &Seen) -> Finding {
    const TITLE: &str = "unmanaged namespace";
    let wait = wait_text(question.wait);
    match &seen.job {
        Some(job) => match &job.creator {
            Creator::Other(manager) => Finding::fine(
                TITLE,
                format!(
                    "{manager} created Job {} {} after its slot in the namespace without the label: the built-in controller \
                     works, and only the label stops it",
                    job.name,
                    seconds_text(job.seconds)
                ),
            ),
            Creator::Cronwheel(who) => Finding::warning(
                TITLE,
                format!(
                    "{who} created Job {} in the namespace without the label too, so there is no namespace in which the \
                     built-in controller could show that it works",
                    job.name
                ),
                "cronwheel check --pre says when the built-in controller was last seen",
            ),
        },
        None => Finding::warning(
            TITLE,
            format!(
                "nobody created a Job within {wait} after its slot in the namespace without the label either: the built-in \
                 controller is switched off by its flag, or it is more than {wait} late. The silence in the managed namespace \
                 proves nothing about the policy"
            ),
            "repeat the check with --wait 60s; cronwheel check --pre says when the built-in controller was last seen",
        ),
    }
}

fn wait_text(wait: Duration) -> String {
    duration_text(wait.as_secs())
}

/// A clock of another API server may be behind.
pub(super) fn seconds_text(seconds: i64) -> String {
    duration_text(u64::try_from(seconds).unwrap_or(0))
}
