//! The CronJobs that can never run, or that the API server would refuse.

use std::fmt::{self, Display};

use super::explanation::Explained;

/// One line for each document that cannot be read, and for each reason and refusal.
pub(super) struct Check<'a> {
    pub(super) explained: &'a [Explained],
    pub(super) broken: &'a [String],
}

impl Display for Check<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in self.broken {
            writeln!(f, "{problem}")?;
        }
        for (subject, explanation) in unfit(self.explained) {
            let title = &subject.title;
            let reason = explanation.reason;
            // The refusals say why the API server does not accept what the controller could not use.
            if reason.is_unfit() && subject.refusals.is_empty() {
                let (reason, message) = (reason.meaning().name, explanation.message());
                writeln!(f, "{title}: {reason}: {message}")?;
            }
            for refusal in refusals(&subject.refusals) {
                writeln!(f, "{title}: {refusal}")?;
            }
        }
        // They run as without the option.
        for (subject, _) in self.explained {
            let options = subject.record.as_ref().map(|record| record.schedule.options());
            for invalid in options.iter().flat_map(|options| &options.invalid) {
                writeln!(f, "{}: InvalidOption: {invalid}", subject.title)?;
            }
            for note in &subject.annotation_notes {
                writeln!(f, "{}: {note}", subject.title)?;
            }
        }
        let n_cron_jobs = self.explained.len();
        let n_fit = n_cron_jobs - unfit(self.explained).count();
        writeln!(f, "{n_fit} of {n_cron_jobs} CronJobs can run")
    }
}

/// Counts these CronJobs and the documents that cannot be read. `None` if there are none.
pub(super) fn defects(explained: &[Explained], n_broken: usize) -> Option<String> {
    let n_unfit = unfit(explained).count();
    let n_cron_jobs = explained.len();
    let of_cron_jobs = (n_unfit > 0)
        .then(|| format!("{n_unfit} of {n_cron_jobs} CronJobs can never run or would be refused by the API server"));
    let of_documents = match n_broken {
        0 => None,
        1 => Some("1 document cannot be read".to_owned()),
        n_broken => Some(format!("{n_broken} documents cannot be read")),
    };
    let problems: Vec<String> = of_cron_jobs.into_iter().chain(of_documents).collect();
    let has_any = !problems.is_empty();
    has_any.then(|| format!("{}; correct what the answer lists", problems.join(", and ")))
}

/// Returns the API server's refusals of a CronJob, each as a sentence.
pub(super) fn refusals<'a>(refusals: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    refusals
        .into_iter()
        .map(|refusal| format!("refused by the API server: {refusal}"))
        .collect()
}

fn unfit(explained: &[Explained]) -> impl Iterator<Item = &Explained> {
    let is_unfit = |(subject, explanation): &&Explained| !subject.refusals.is_empty() || explanation.reason.is_unfit();
    explained.iter().filter(is_unfit)
}
