//! The fields of a Job that decide its next step, parsed without the rest of the object.
//!
//! The runner parses a Job after each step. The spec is most of the text and seldom changes, so the parsed spec is
//! cached.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use jiff::Timestamp;
use serde::Deserialize;

use super::{Outcome, annotations::parse_run_for};
use crate::store::{Stored, Uid};

const JOB_CONTROLLER: &str = "kubernetes.io/job-controller";

/// The fields of a Job that the runner needs.
pub(super) struct Outline<'a> {
    is_deleting: bool,
    pub(super) spec: Arc<Spec>,
    status: Status<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Spec {
    pub(super) suspend: Option<bool>,
    pub(super) parallelism: Option<i64>,
    pub(super) completions: Option<i64>,
    managed_by: Option<String>,
    pub(super) ttl_seconds_after_finished: Option<u64>,
    pub(super) active_deadline_seconds: Option<u64>,
    template: Template,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Template {
    metadata: Option<TemplateMetadata>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TemplateMetadata {
    annotations: Option<Annotations>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Annotations {
    run_for: Option<String>,
    outcome: Option<String>,
}

/// Parsed specs of Jobs, each with the text that it was parsed from. The caller must forget Jobs without a next step.
#[derive(Default)]
pub(super) struct Specs(BTreeMap<Uid, (Bytes, Arc<Spec>)>);

impl Specs {
    fn of(&mut self, job: &Stored) -> Arc<Spec> {
        let text = job.spec();
        match self.0.get_mut(&job.uid) {
            Some((known, spec)) if *known == text => {
                // The text is a slice of the whole object. Keeping the new slice frees the older object.
                *known = text;
                Arc::clone(spec)
            }
            _ => {
                let spec = Arc::new(serde_json::from_slice(&text).unwrap_or_default());
                self.0.insert(job.uid, (text, Arc::clone(&spec)));
                spec
            }
        }
    }

    pub(super) fn forget(&mut self, job: Uid) {
        self.0.remove(&job);
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status<'a> {
    start_time: Option<Timestamp>,
    #[serde(borrow)]
    conditions: Vec<Condition<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Condition<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    status: Cow<'a, str>,
    #[serde(default)]
    last_transition_time: Option<Timestamp>,
}

impl<'a> Outline<'a> {
    /// Parses a stored Job. Fields that cannot be parsed are treated as absent.
    pub(super) fn of(job: &'a Stored, specs: &mut Specs) -> Outline<'a> {
        Outline {
            is_deleting: job.is_deleting,
            spec: specs.of(job),
            status: serde_json::from_slice(job.status()).unwrap_or_default(),
        }
    }
}

impl Outline<'_> {
    /// Whether the Job should run, and this runner is responsible for it.
    pub(super) fn should_run(&self) -> bool {
        let is_responsible = self
            .spec
            .managed_by
            .as_deref()
            .is_none_or(|name| name == JOB_CONTROLLER);
        self.spec.suspend != Some(true) && is_responsible && !self.is_deleting
    }

    pub(super) fn started_at(&self) -> Option<Timestamp> {
        self.status.start_time
    }

    /// When the Job ended. `None` while it has not.
    pub(super) fn finished_at(&self) -> Option<Timestamp> {
        let is_end = |condition: &&Condition<'_>| {
            matches!(&*condition.kind, "Complete" | "Failed") && condition.status == "True"
        };
        self.status.conditions.iter().find(is_end)?.last_transition_time
    }

    /// The run time that the annotation sets.
    pub(super) fn run_for(&self) -> Option<Duration> {
        parse_run_for(self.annotations()?.run_for.as_deref()?)
    }

    /// The outcome that the annotation sets.
    pub(super) fn outcome(&self) -> Option<Outcome> {
        Outcome::parse(self.annotations()?.outcome.as_deref()?)
    }

    fn annotations(&self) -> Option<&Annotations> {
        self.spec.template.metadata.as_ref()?.annotations.as_ref()
    }
}
