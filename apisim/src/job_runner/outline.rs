//! What a Job's next step hangs on, read without the rest of it.
//!
//! A Job is looked at after each of its steps, and its spec, most of its text, is seldom another: it is kept as it was read.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use crate::store::{Stored, Uid};

const JOB_CONTROLLER: &str = "kubernetes.io/job-controller";

/// A Job as far as its life is concerned.
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

/// The specs of Jobs as they were read last, each with its text. Who has no next step is to be forgotten.
#[derive(Default)]
pub(super) struct Specs(BTreeMap<Uid, (Bytes, Arc<Spec>)>);

impl Specs {
    fn of(&mut self, job: &Stored) -> Arc<Spec> {
        let text = job.spec();
        match self.0.get_mut(&job.uid) {
            Some((known, spec)) if *known == text => {
                // It is a part of the whole object, so that an older one need not be kept.
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
    /// What is stored is well formed; what it says may not be, and then it says nothing.
    pub(super) fn of(job: &'a Stored, specs: &mut Specs) -> Outline<'a> {
        Outline {
            is_deleting: job.is_deleting,
            spec: specs.of(job),
            status: serde_json::from_slice(job.status()).unwrap_or_default(),
        }
    }
}

impl Outline<'_> {
    /// Whether it runs at all, and for this runner.
    pub(super) fn is_to_run(&self) -> bool {
        let is_ours = self
            .spec
            .managed_by
            .as_deref()
            .is_none_or(|name| name == JOB_CONTROLLER);
        self.spec.suspend != Some(true) && is_ours && !self.is_deleting
    }

    pub(super) fn started_at(&self) -> Option<Timestamp> {
        self.status.start_time
    }

    /// When it ended; none while it has not.
    pub(super) fn finished_at(&self) -> Option<Timestamp> {
        let is_end = |condition: &&Condition<'_>| {
            matches!(&*condition.kind, "Complete" | "Failed") && condition.status == "True"
        };
        self.status.conditions.iter().find(is_end)?.last_transition_time
    }

    /// How long it says that it runs.
    pub(super) fn run_for(&self) -> Option<SignedDuration> {
        self.annotations()?.run_for.as_deref()?.parse().ok()
    }

    /// How it says that it ends.
    pub(super) fn outcome(&self) -> Option<&str> {
        self.annotations()?.outcome.as_deref()
    }

    fn annotations(&self) -> Option<&Annotations> {
        self.spec.template.metadata.as_ref()?.annotations.as_ref()
    }
}
