//! Kubernetes objects to records: parsed once, here, and trusted afterwards.
//!
//! A Job is decoded while its list or watch event is parsed, and a CronJob from its text. Both borrow from the text. Of a
//! Job that no CronJob controls, little is decoded. An invalid field is an error of that one object. It fails
//! neither the list nor the watch. Unknown fields, policies and conditions of newer servers are ignored.

pub(crate) mod config_map;
mod cron_job;
pub(crate) mod field;
pub(crate) mod job;
pub(crate) mod metadata;
pub(crate) mod namespace;
pub(crate) mod parse;
mod pod_annotation;
mod template;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde::{Deserialize, Deserializer};

pub use self::{config_map::CalendarContent, cron_job::CronJobText, job::JobContent, namespace::NamespaceContent};
use self::{metadata::Head, parse::FieldError};
use crate::{
    kube_api::other_controllers::OtherControllers,
    schedule::Zone,
    shard::{CronJobIdentity, ResourceVersion, Uid},
};

/// An object that cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {namespace}/{name} cannot be decoded: {field}: {problem}")]
pub struct DecodeError {
    /// The kind.
    pub kind: &'static str,
    /// The namespace; empty if it cannot be decoded.
    pub namespace: Box<str>,
    /// The name; empty if it cannot be decoded.
    pub name: Box<str>,
    /// The invalid field, e.g. `spec.suspend`.
    pub field: Box<str>,
    /// The problem.
    pub problem: Box<str>,
}

impl DecodeError {
    fn new(kind: &'static str, head: &Head<'_>, error: FieldError) -> DecodeError {
        DecodeError {
            kind,
            namespace: head.namespace().unwrap_or_default(),
            name: head.name().unwrap_or_default(),
            field: error.field,
            problem: error.problem,
        }
    }
}

/// Creates records from objects.
#[derive(Clone, Debug)]
pub struct Decoder {
    /// The zone of schedules without a zone (B-7.2).
    pub default_zone: Zone,
    /// Receives evidence of other controllers.
    pub other_controllers: OtherControllers,
    /// The label of CronJobs that names their owner.
    pub owner_label: Option<Box<str>>,
}

impl Default for Decoder {
    /// In UTC.
    fn default() -> Decoder {
        Decoder {
            default_zone: Zone::utc(),
            other_controllers: OtherControllers::default(),
            owner_label: None,
        }
    }
}

/// A CronJob that cannot be decoded.
#[derive(Clone, Debug)]
pub struct UndecodableCronJob {
    /// The field and the problem.
    pub error: DecodeError,
    /// Its identity and version, if they can be decoded.
    pub cron_job: Option<(Arc<CronJobIdentity>, ResourceVersion)>,
}

/// A received CronJob, which [`Decoder::cron_job`] decodes.
pub type ReceivedCronJob = Received<CronJobText>;

/// A received Job.
pub type ReceivedJob = Received<JobContent>;

/// A received object.
#[derive(Clone, Debug)]
pub struct Received<C> {
    resource_version: Option<ResourceVersion>,
    uid: Option<Uid>,
    content: C,
}

impl<C> Received<C> {
    fn new(head: &Head<'_>, content: C) -> Received<C> {
        Received {
            resource_version: head.resource_version().ok(),
            uid: head.uid().ok(),
            content,
        }
    }

    /// Returns the resource version if it can be decoded, regardless of other fields.
    pub(in crate::kube_api) fn resource_version(&self) -> Option<ResourceVersion> {
        self.resource_version
    }

    /// Returns the uid if it can be decoded, regardless of other fields.
    pub fn uid(&self) -> Option<&Uid> {
        self.uid.as_ref()
    }
}

/// The content of a received object.
pub trait Content: Clone + Send + 'static {
    /// The kind in the spelling of Kubernetes.
    const KIND: &'static str;
    /// The plural in paths.
    const PLURAL: &'static str;

    /// Receives an object with any invalid fields. Only invalid JSON fails, or a Job in which a decoded member occurs
    /// twice.
    fn receive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Received<Self>, D::Error>;
}

impl<'de, C: Content> Deserialize<'de> for Received<C> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        C::receive(deserializer)
    }
}
