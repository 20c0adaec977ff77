//! `--check`: the CronJobs that can never run, or that the API server would refuse.

use std::io::{self, Write};

use super::{
    ExplainError,
    explanation::Explanation,
    world::{Subject, World},
};

/// Fails if there are any.
pub(super) fn check(world: &World, explanations: &[Explanation]) -> Result<(), ExplainError> {
    match unfit(world, explanations).count() {
        0 => Ok(()),
        n_unfit => Err(ExplainError::Unfit {
            n_unfit,
            n_cron_jobs: explanations.len(),
        }),
    }
}

/// Writes one line for each reason and refusal.
pub(super) fn write(world: &World, explanations: &[Explanation], output: &mut impl Write) -> io::Result<()> {
    for (subject, explanation) in unfit(world, explanations) {
        let Subject { namespace, name, .. } = subject;
        let reason = explanation.reason;
        if reason.is_unfit() {
            let (reason, message) = (reason.meaning().name, explanation.message());
            writeln!(output, "CronJob {namespace}/{name}: {reason}: {message}")?;
        }
        for refusal in refusals(subject) {
            writeln!(output, "CronJob {namespace}/{name}: {refusal}")?;
        }
    }
    let n_fit = explanations.len() - unfit(world, explanations).count();
    writeln!(output, "{n_fit} of {} CronJobs can run", explanations.len())
}

/// Returns the API server's refusals of a CronJob, each as a sentence.
pub(super) fn refusals(subject: &Subject) -> Vec<String> {
    let refusals = subject.refusals.iter();
    refusals
        .map(|refusal| format!("refused by the API server: {refusal}"))
        .collect()
}

fn unfit<'a>(
    world: &'a World,
    explanations: &'a [Explanation],
) -> impl Iterator<Item = (&'a Subject, &'a Explanation)> {
    let pairs = world.subjects.iter().zip(explanations);
    pairs.filter(|(subject, explanation)| !subject.refusals.is_empty() || explanation.reason.is_unfit())
}
