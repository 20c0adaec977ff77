//! `--check`: the CronJobs that can never run, or that the API server would refuse.

use std::io::{self, Write};

use super::{explanation::Explained, world::Subject};
use crate::cli::error::CommandError;

/// Fails if there are any.
pub(super) fn check(explained: &[Explained<'_>]) -> Result<(), CommandError> {
    match unfit(explained).count() {
        0 => Ok(()),
        n_unfit => Err(format!(
            "{n_unfit} of {} CronJobs can never run or would be refused by the API server; correct what the answer lists",
            explained.len()
        )
        .into()),
    }
}

/// Writes one line for each reason and refusal.
pub(super) fn write(explained: &[Explained<'_>], output: &mut impl Write) -> io::Result<()> {
    for (subject, explanation) in unfit(explained) {
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
    let n_fit = explained.len() - unfit(explained).count();
    writeln!(output, "{n_fit} of {} CronJobs can run", explained.len())
}

/// Returns the API server's refusals of a CronJob, each as a sentence.
pub(super) fn refusals(subject: &Subject) -> Vec<String> {
    let refusals = subject.refusals.iter();
    refusals
        .map(|refusal| format!("refused by the API server: {refusal}"))
        .collect()
}

fn unfit<'a>(explained: &'a [Explained<'a>]) -> impl Iterator<Item = &'a Explained<'a>> {
    let is_unfit =
        |(subject, explanation): &&Explained<'_>| !subject.refusals.is_empty() || explanation.reason.is_unfit();
    explained.iter().filter(is_unfit)
}
