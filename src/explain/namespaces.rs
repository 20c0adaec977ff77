//! The namespaces among the given objects: their freezes, and their defaults for options.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::{
    annotations::{Annotated, annotation_notes},
    misplaced::misplaced_notes,
    objects::name_of,
};
use crate::{
    schedule::{
        CronJobSchedule,
        options::{Freeze, NamespaceOptions},
    },
    shard::{ManagedNamespaces, NamespaceUpdate, ShardState},
};

/// The options of the namespaces of an input, as far as they have some, and what is to be said about them.
#[derive(Debug, Default)]
pub struct GivenNamespaces {
    options: BTreeMap<Box<str>, NamespaceOptions>,
    /// Sentences about annotations without an effect.
    notes: BTreeMap<Box<str>, Vec<String>>,
}

impl GivenNamespaces {
    /// Adds a namespace. Returns whether it has options, or something is to be said about it.
    pub fn take(&mut self, namespace: &Value) -> bool {
        let annotations = namespace.pointer("/metadata/annotations");
        let get = |name: &str| annotations?.get(name)?.as_str();
        let options = NamespaceOptions::read(get);
        let mut notes = annotation_notes(namespace, Annotated::Namespace);
        notes.extend(misplaced_notes(namespace, Annotated::Namespace));
        let is_used = options.is_some() || !notes.is_empty();
        if let Some(options) = options {
            self.options.insert(name_of(namespace).into(), options);
        }
        if !notes.is_empty() {
            self.notes.insert(name_of(namespace).into(), notes);
        }
        is_used
    }

    /// Whether the CronJobs of a namespace have defaults.
    pub fn has_defaults(&self, namespace: &str) -> bool {
        self.options.get(namespace).is_some_and(NamespaceOptions::has_defaults)
    }

    /// Gives a CronJob the defaults of its namespace. `hash` is an even hash of its uid.
    pub fn inherit(&self, namespace: &str, schedule: &mut CronJobSchedule, hash: u64) {
        if let Some(options) = self.options.get(namespace) {
            schedule.inherit(Some(options), hash);
        }
    }

    /// Sentences about the annotations of a namespace that have no effect.
    pub(super) fn notes(&self, namespace: &str) -> &[String] {
        self.notes.get(namespace).map_or(&[], Vec::as_slice)
    }

    /// The end of the freeze of a namespace, which may have passed.
    pub(super) fn frozen_until(&self, namespace: &str) -> Option<Timestamp> {
        Some(self.options.get(namespace)?.freeze.as_ref()?.until)
    }

    /// The reason of the freeze of a namespace, if it has one.
    pub(super) fn freeze_reason(&self, namespace: &str) -> Option<&str> {
        let freeze = self.options.get(namespace)?.freeze.as_ref()?;
        Some(&*freeze.reason).filter(|reason| !reason.is_empty())
    }

    /// A sentence about the freeze of a namespace that is not over at an instant.
    pub(super) fn freeze_text(&self, namespace: &str, at: Timestamp) -> Option<String> {
        let freeze = self
            .options
            .get(namespace)?
            .freeze
            .as_ref()
            .filter(|freeze| freeze.holds_at(at))?;
        let Freeze { until, reason } = freeze;
        let reason = if reason.is_empty() {
            String::new()
        } else {
            format!(": {reason}")
        };
        Some(format!(
            "the namespace is frozen, so nothing starts before {until}{reason}"
        ))
    }

    /// Lets a shard know the options of a namespace.
    pub(super) fn tell(&self, shard: &mut ShardState, namespace: &str, now: Timestamp) {
        let Some(options) = self.options.get(namespace) else {
            return;
        };
        let namespaces = ManagedNamespaces::selected();
        let selected = NamespaceUpdate::Selected {
            name: namespace.into(),
            options: Some(Box::new(options.clone())),
        };
        for update in [NamespaceUpdate::ListBegun, selected, NamespaceUpdate::ListDone] {
            namespaces.apply(update, now);
        }
        shard.namespaces = namespaces;
        shard.follow_namespaces(&[namespace.into()].into(), now);
    }
}
