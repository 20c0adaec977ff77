//! Kubernetes objects to records: parsed once, here, and trusted afterwards.
//!
//! An object is read while its list or watch event is read, borrowing from the received text. What cannot be
//! understood is an error of that one object, kept until [`Decoder`] is asked for its record: it can fail
//! neither the list nor the watch, and unknown fields and values of newer servers cost nothing.

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
    schedule::Zone,
    shard::{CronJobIdentity, CronJobRecord, JobRecord, ResourceVersion, ShardCount, Uid},
};

/// An object that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {namespace}/{name} cannot be decoded: {field}: {problem}")]
pub struct DecodeError {
    /// Its kind.
    pub kind: &'static str,
    /// Its namespace, empty where not even that can be read.
    pub namespace: Box<str>,
    /// Its name, empty where not even that can be read.
    pub name: Box<str>,
    /// The field that cannot be understood, e.g. `spec.suspend`.
    pub field: &'static str,
    /// What is wrong with it.
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

/// Makes records of objects.
#[derive(Clone, Debug)]
pub struct Decoder {
    /// The zone of schedules that name none (B-7.2).
    pub default_zone: Zone,
    /// Over how many shards replicas share CronJobs out: Jobs bear the label of theirs; none where one has them all.
    pub shard_count: Option<ShardCount>,
}

impl Default for Decoder {
    /// For a replica that is alone, in UTC.
    fn default() -> Decoder {
        Decoder {
            default_zone: Zone::utc(),
            shard_count: None,
        }
    }
}

impl Decoder {
    /// The record of a CronJob.
    pub fn cron_job(&self, slim: &SlimCronJob) -> Result<CronJobRecord, DecodeError> {
        slim.clone().into_record(self)
    }

    /// The record of a Job.
    pub fn job(&self, slim: &SlimJob) -> Result<JobRecord, DecodeError> {
        slim.clone().into_record()
    }
}

/// A CronJob as a watch brings it: what we keep of it, but for the effective schedule.
pub type SlimCronJob = Slim<CronJobContent>;

impl SlimCronJob {
    /// Who it is and in which version, where that can be read, whatever else cannot.
    pub fn identity(&self) -> Option<&(Arc<CronJobIdentity>, ResourceVersion)> {
        self.content.identity()
    }

    /// Its uid, where that can be read, whatever else cannot.
    pub fn uid(&self) -> Option<&Uid> {
        self.content.uid()
    }

    /// Its record, without a copy.
    pub fn into_record(self, decoder: &Decoder) -> Result<CronJobRecord, DecodeError> {
        self.content.into_record(decoder)
    }
}

/// A CronJob as a watch brings it, of which only the uid is read.
pub type UndecodedCronJob = Slim<UndecodedCronJobContent>;

impl UndecodedCronJob {
    /// Its uid, where that can be read.
    pub fn uid(&self) -> Option<&Uid> {
        self.content.uid()
    }

    /// How long its text is, in bytes.
    pub fn text_len(&self) -> usize {
        self.content.text_len()
    }

    /// All of it, as far as it can be understood.
    pub fn decode(&self) -> Option<SlimCronJob> {
        self.content.decode()
    }
}

/// A Job as a watch brings it: what we keep of it.
pub type SlimJob = Slim<JobContent>;

impl SlimJob {
    /// Its uid, where that can be read, whatever else cannot.
    pub fn uid(&self) -> Option<&Uid> {
        self.content.uid()
    }

    /// Its record, without a copy.
    pub fn into_record(self) -> Result<JobRecord, DecodeError> {
        self.content.into_record()
    }
}

/// What we keep of an object, in the form that `kube` asks of whatever it watches.
#[derive(Clone, Debug)]
pub struct Slim<C> {
    /// Holds the resource version alone, which is all that the watcher looks at.
    meta: ObjectMeta,
    content: C,
}

/// A kind that [`Slim`] can hold.
pub trait SlimContent: Sized {
    /// As Kubernetes spells it.
    const KIND: &'static str;
    /// As it stands in paths.
    const PLURAL: &'static str;

    /// Reads an object, whatever is wrong with it, and its resource version as written. Only text that is no JSON fails.
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
