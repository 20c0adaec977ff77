//! Kubernetes objects to records: parsed once, here, and trusted afterwards.
//!
//! An object is decoded while its list or watch event is parsed, borrowing from the received text. An invalid field is
//! an error of that one object, reported when [`Decoder`] creates its record. It fails neither the list nor the watch,
//! and unknown fields and values of newer servers cost nothing.

mod cron_job;
mod fields;
mod job;
mod metadata;
mod shard_label;
mod template;
#[cfg(test)]
mod tests;
mod undecoded;

use std::{borrow::Cow, sync::Arc};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::NamespaceResourceScope;
use serde::{Deserialize, Deserializer};

pub use self::{cron_job::CronJobContent, job::JobContent, undecoded::UndecodedCronJobContent};
use self::{fields::FieldError, metadata::Head};
use crate::{
    kube_api::other_controllers::OtherControllers,
    schedule::Zone,
    shard::{CronJobIdentity, CronJobRecord, JobRecord, ResourceVersion, ShardCount, Uid},
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
    pub field: &'static str,
    /// The problem.
    pub problem: Box<str>,
}

impl DecodeError {
    fn new(kind: &'static str, head: &Head<'_>, error: FieldError) -> DecodeError {
        DecodeError {
            kind,
            namespace: head.namespace.clone().if_read().unwrap_or_default().into(),
            name: head.name.clone().if_read().unwrap_or_default().into(),
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
    /// The number of shards, for the shard label of Jobs; `None` for a replica with `--alone`.
    pub shard_count: Option<ShardCount>,
    /// Receives evidence of other controllers.
    pub other_controllers: OtherControllers,
}

impl Default for Decoder {
    /// For a replica with `--alone`, in UTC.
    fn default() -> Decoder {
        Decoder {
            default_zone: Zone::utc(),
            shard_count: None,
            other_controllers: OtherControllers::default(),
        }
    }
}

impl Decoder {
    /// Creates the record of a CronJob.
    pub fn cron_job(&self, slim: &SlimCronJob) -> Result<CronJobRecord, DecodeError> {
        slim.clone().into_record(self)
    }

    /// Creates the record of a Job.
    pub fn job(&self, slim: &SlimJob) -> Result<JobRecord, DecodeError> {
        slim.clone().into_record()
    }
}

/// A received CronJob: its record without the effective schedule.
pub type SlimCronJob = Slim<CronJobContent>;

impl SlimCronJob {
    /// Returns identity and version if they can be decoded, regardless of other fields.
    pub fn identity(&self) -> Option<&(Arc<CronJobIdentity>, ResourceVersion)> {
        self.content.identity()
    }

    /// Returns the uid if it can be decoded, regardless of other fields.
    pub fn uid(&self) -> Option<&Uid> {
        self.content.uid()
    }

    /// Creates the record without a copy.
    pub fn into_record(self, decoder: &Decoder) -> Result<CronJobRecord, DecodeError> {
        self.content.into_record(decoder)
    }
}

/// A received CronJob of which only the uid is decoded.
pub type UndecodedCronJob = Slim<UndecodedCronJobContent>;

impl UndecodedCronJob {
    /// Returns the uid if it can be decoded.
    pub fn uid(&self) -> Option<&Uid> {
        self.content.uid()
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        self.content.text()
    }

    /// Decodes the whole object.
    pub fn decode(&self) -> Option<SlimCronJob> {
        self.content.decode()
    }
}

/// A received Job.
pub type SlimJob = Slim<JobContent>;

impl SlimJob {
    /// Returns the uid if it can be decoded, regardless of other fields.
    pub fn uid(&self) -> Option<&Uid> {
        self.content.uid()
    }

    /// Creates the record without a copy.
    pub fn into_record(self) -> Result<JobRecord, DecodeError> {
        self.content.into_record()
    }
}

/// The decoded part of an object, in the form that `kube` requires of watched types.
#[derive(Clone, Debug)]
pub struct Slim<C> {
    /// Contains only the resource version, the only field that the watcher reads.
    meta: ObjectMeta,
    content: C,
}

/// A kind that [`Slim`] can contain.
pub trait SlimContent: Sized {
    /// The kind in the spelling of Kubernetes.
    const KIND: &'static str;
    /// The plural in paths.
    const PLURAL: &'static str;

    /// Decodes an object with any invalid fields, and its resource version as text. Only invalid JSON fails.
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(Self, Option<String>), D::Error>;
}

impl<'de, C: SlimContent> Deserialize<'de> for Slim<C> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (content, resource_version) = C::read(deserializer)?;
        let meta = ObjectMeta {
            resource_version,
            ..ObjectMeta::default()
        };
        Ok(Slim { meta, content })
    }
}

impl<C: SlimContent> kube::Resource for Slim<C> {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        C::KIND.into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "batch".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        C::PLURAL.into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}
