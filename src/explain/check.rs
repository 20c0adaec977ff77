//! The CronJobs that can never run, or that the API server would refuse.

use std::fmt::{self, Display};

use jiff::Timestamp;

use super::{explanation::Explained, never::why_over};
use crate::shard::CronJobRecord;

/// One line for each document that cannot be read, for each reason and refusal, and for each option.
pub(super) struct Check<'a> {
    pub(super) explained: &'a [Explained],
    pub(super) broken: &'a [String],
    pub(super) now: Timestamp,
}

impl Display for Check<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in self.broken {
            writeln!(f, "{problem}")?;
        }
        for explained in self.explained {
            for problem in problems(explained, self.now) {
                writeln!(f, "{}: {problem}", explained.0.title)?;
            }
        }
        // They run as without the option.
        for (subject, _) in self.explained {
            if let Ok(record) = &subject.record {
                let options = record.schedule.options();
                for invalid in &options.invalid {
                    writeln!(f, "{}: InvalidOption: {invalid}", subject.title)?;
                }
                for sentence in options.sentences(record.concurrency_policy) {
                    writeln!(f, "{}: option {sentence}", subject.title)?;
                }
            }
            for note in &subject.annotation_notes {
                writeln!(f, "{}: {note}", subject.title)?;
            }
        }
        let n_cron_jobs = self.explained.len();
        let n_fit = n_cron_jobs - n_unfit(self.explained, self.now);
        writeln!(f, "{n_fit} of {n_cron_jobs} CronJobs can run")
    }
}

/// Counts the CronJobs that never run or are refused, those with an annotation that cannot be used, and the documents that
/// cannot be read. `None` if there are none.
pub(super) fn defects(explained: &[Explained], n_broken: usize, now: Timestamp) -> Option<String> {
    let n_unfit = n_unfit(explained, now);
    let n_cron_jobs = explained.len();
    let of_cron_jobs = (n_unfit > 0)
        .then(|| format!("{n_unfit} of {n_cron_jobs} CronJobs can never run or would be refused by the API server"));
    let of_annotations = match explained.iter().filter(|one| has_unusable_annotation(one)).count() {
        0 => None,
        1 => Some(format!(
            "1 of {n_cron_jobs} CronJobs has an annotation that cannot be used"
        )),
        n => Some(format!(
            "{n} of {n_cron_jobs} CronJobs have an annotation that cannot be used"
        )),
    };
    let of_documents = match n_broken {
        0 => None,
        1 => Some("1 document cannot be read".to_owned()),
        n_broken => Some(format!("{n_broken} documents cannot be read")),
    };
    let problems = of_cron_jobs.into_iter().chain(of_annotations).chain(of_documents);
    let problems: Vec<String> = problems.collect();
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

/// Whether an annotation of a CronJob has an invalid value or no effect. A default of its namespace may fit its other CronJobs.
fn has_unusable_annotation((subject, _): &Explained) -> bool {
    let is_own_invalid = |record: &CronJobRecord| {
        let invalid = &record.schedule.options().invalid;
        invalid.iter().any(|invalid| !invalid.is_of_namespace)
    };
    !subject.annotation_notes.is_empty() || subject.record.as_ref().is_ok_and(is_own_invalid)
}

fn n_unfit(explained: &[Explained], now: Timestamp) -> usize {
    explained.iter().filter(|one| !problems(one, now).is_empty()).count()
}

/// Why a CronJob can never run, or the API server refuses it.
fn problems((subject, explanation): &Explained, now: Timestamp) -> Vec<String> {
    let reason = explanation.reason;
    // The refusals say why the API server does not accept what the controller could not use.
    let never = if !reason.is_unfit() {
        why_over(subject, explanation, now)
    } else if subject.refusals.is_empty() {
        Some(format!("{}: {}", reason.meaning().name, explanation.message()))
    } else {
        None
    };
    never.into_iter().chain(refusals(&subject.refusals)).collect()
}
