//! What a Job's next step hangs on, read without the rest of it.

use std::borrow::Cow;

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use crate::store::Stored;

const JOB_CONTROLLER: &str = "kubernetes.io/job-controller";

/// A Job as far as its life is concerned.
pub(super) struct Outline<'a> {
    is_deleting: bool,
    pub(super) spec: Spec<'a>,
    status: Status<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Spec<'a> {
    pub(super) suspend: Option<bool>,
    pub(super) parallelism: Option<i64>,
    pub(super) completions: Option<i64>,
    #[serde(borrow)]
    managed_by: Option<Cow<'a, str>>,
    pub(super) ttl_seconds_after_finished: Option<u64>,
    pub(super) active_deadline_seconds: Option<u64>,
    #[serde(borrow)]
    template: Template<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Template<'a> {
    #[serde(borrow)]
    metadata: Option<TemplateMetadata<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TemplateMetadata<'a> {
    #[serde(borrow)]
    annotations: Option<Annotations<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Annotations<'a> {
    #[serde(borrow)]
    run_for: Option<Cow<'a, str>>,
    #[serde(borrow)]
    outcome: Option<Cow<'a, str>>,
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
    pub(super) fn of(job: &'a Stored) -> Outline<'a> {
        Outline {
            is_deleting: job.is_deleting,
            spec: serde_json::from_slice(job.spec()).unwrap_or_default(),
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

    fn annotations(&self) -> Option<&Annotations<'_>> {
        self.spec.template.metadata.as_ref()?.annotations.as_ref()
    }
}
