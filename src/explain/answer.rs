//! The question, and the answer for each CronJob.

use std::fmt::Display;

use jiff::Timestamp;
use serde_json::Value;

use super::{
    check::{self, Check},
    error::ExplainError,
    explanation::Explained,
    json,
    objects::{Document, Objects, Origin, name_of},
    recorded::{self, RecordedEvent},
    text::Blocks,
    trial::{self, AssumedCreate},
    world::World,
};
use crate::schedule::Zone;

/// What is asked about objects.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// Where the objects come from, for errors: the files, or the CronJob of a cluster.
    pub input: &'a str,
    /// The name of the CronJob; all CronJobs if it is absent.
    pub name: Option<&'a str>,
    /// The namespace of the CronJob of this name; all namespaces if it is absent.
    pub namespace: Option<&'a str>,
    /// The zone of CronJobs without `spec.timeZone`.
    pub default_zone: &'a Zone,
    /// The answer to the create of a Job, if the objects do not decide it.
    pub assumed: AssumedCreate,
    /// The instant of the answer.
    pub now: Timestamp,
    /// Whether the objects are those of this instant. At another time, a cluster would have other Events.
    pub is_present: bool,
}

/// What the controller would do with each CronJob, and why.
#[derive(Debug)]
pub struct Answer {
    explained: Vec<Explained>,
    /// The Events of the cluster, the latest first; `None` if they were not read.
    recorded: Option<Vec<RecordedEvent>>,
    now: Timestamp,
    remarks: Vec<String>,
    broken: Vec<String>,
}

/// Returns the text of `explain` for one CronJob of a cluster, from the objects as the API server has them.
///
/// `jobs` are the Jobs of its namespace, and those of other namespaces that its active list names; a Job that is not
/// among them does not exist. `events` are Events, from which those of the CronJob are selected. Without them the text
/// says that they were not read.
pub fn text_of(
    cron_job: &Value,
    jobs: &[Value],
    events: Option<&[Value]>,
    default_zone: &Zone,
    now: Timestamp,
) -> Result<String, ExplainError> {
    let mut objects = Objects::new(Origin::Cluster);
    objects.take("the CronJob", Document::of_value(cron_job.clone()), Some("CronJob"));
    for job in jobs {
        let document = Document {
            value: job.clone(),
            text: None,
        };
        objects.take("a Job", document, Some("Job"));
    }
    if let Some(events) = events {
        let uid = cron_job["metadata"]["uid"].as_str().unwrap_or_default();
        objects.take_events(events, uid);
    }
    let question = Question {
        input: name_of(cron_job),
        name: None,
        namespace: None,
        default_zone,
        assumed: AssumedCreate::Created,
        now,
        is_present: true,
    };
    let answer = answer(objects, &question)?;
    match answer.broken.as_slice() {
        [] => Ok(answer.text(false).to_string()),
        broken => Err(broken_error(broken)),
    }
}

/// Answers a question about objects.
pub fn answer(objects: Objects, question: &Question<'_>) -> Result<Answer, ExplainError> {
    let Question {
        input, assumed, now, ..
    } = *question;
    let mut remarks = objects.notes();
    let mut world = World::new(objects, question.default_zone, now, &mut remarks);
    if world.subjects.is_empty() || world.origin == Origin::Cluster {
        refuse_nothing(input, &world)?;
    }
    if let Some(name) = question.name {
        world.select(name, question.namespace);
        if world.subjects.is_empty() {
            return Err(ExplainError::UnknownCronJob {
                input: input.to_owned(),
                name: name.to_owned(),
            });
        }
    }
    let mut broken = std::mem::take(&mut world.broken);
    let mut explained = Vec::new();
    let is_observed = world.origin == Origin::Cluster && question.is_present && assumed == AssumedCreate::Created;
    for subject in std::mem::take(&mut world.subjects) {
        let mut explanation = trial::explain(&subject, &world, assumed, now);
        if is_observed {
            explanation = explanation.and_then(|explanation| recorded::compare(explanation, &subject, &world, now));
        }
        match explanation {
            Ok(explanation) => explained.push((subject, explanation)),
            Err(error) => broken.push(error.to_string()),
        }
    }
    Ok(Answer {
        explained,
        recorded: world.events,
        now,
        remarks,
        broken,
    })
}

impl Answer {
    /// What was left out or filled in.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Documents and objects that cannot be used, each with its place, the problem and the fix.
    pub fn broken(&self) -> &[String] {
        &self.broken
    }

    /// Text for people, with the rules of the built-in controller's behaviour if it `is_wide`.
    pub fn text(&self, is_wide: bool) -> impl Display {
        Blocks {
            explained: &self.explained,
            recorded: self.recorded.as_deref(),
            now: self.now,
            is_wide,
        }
    }

    /// One JSON object, or a list for several CronJobs.
    pub fn json(&self) -> Result<String, ExplainError> {
        let recorded = self.recorded.as_deref().unwrap_or_default();
        json::document(&self.explained, recorded, self.now).map_err(ExplainError::Conversion)
    }

    /// The CronJobs that can never run, or that the API server would refuse.
    pub fn check(&self) -> impl Display {
        Check {
            explained: &self.explained,
            broken: &self.broken,
            now: self.now,
        }
    }

    /// Returns the number of documents that cannot be read, as text, and if they are asked for, of the CronJobs of
    /// [`Answer::check`] and of those with an annotation that cannot be used. `None` if there are none.
    pub fn defects(&self, with_cron_jobs: bool) -> Option<String> {
        let explained: &[Explained] = if with_cron_jobs { &self.explained } else { &[] };
        check::defects(explained, self.broken.len(), self.now)
    }
}

/// Fails with what is wrong with the input, if it has no CronJob or does not come from files.
fn refuse_nothing(input: &str, world: &World) -> Result<(), ExplainError> {
    match world.broken.as_slice() {
        [] if world.subjects.is_empty() => Err(ExplainError::NoCronJob {
            input: input.to_owned(),
        }),
        [] => Ok(()),
        broken => Err(broken_error(broken)),
    }
}

fn broken_error(broken: &[String]) -> ExplainError {
    ExplainError::Broken {
        problems: broken.join("; "),
    }
}

#[cfg(test)]
mod tests;
