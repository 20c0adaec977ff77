//! Annotations and labels under `cronwheel.dev/` without an effect, such as misspelled options.

use serde_json::Value;

use super::{
    built_in::title,
    finding::{Finding, Names, counted},
};
use crate::{
    explain::{Annotated, annotation_remedies},
    schedule::options::{ALERTS_ANNOTATION, OptionName},
};

/// The objects that have such annotations.
#[derive(Clone, Debug, Default)]
pub(super) struct Ineffective(Names);

impl Ineffective {
    /// Adds a CronJob if it has some.
    pub(super) fn add_cron_job(&mut self, cron_job: &Value) {
        self.add(cron_job, Annotated::CronJob, title);
    }

    /// Adds a namespace if it has some.
    pub(super) fn add_namespace(&mut self, namespace: &Value) {
        self.add(namespace, Annotated::Namespace, namespace_title);
    }

    /// Adds a namespace if it has defaults, for replicas that do not select namespaces by label and so read none.
    pub(super) fn add_unread_namespace(&mut self, namespace: &Value) {
        let annotations = &namespace["metadata"]["annotations"];
        let defaults = OptionName::OF_NAMESPACE.map(OptionName::annotation);
        let names = defaults.into_iter().chain([ALERTS_ANNOTATION]);
        let present: Vec<&str> = names.filter(|name| annotations.get(name).is_some()).collect();
        if !present.is_empty() {
            let remedy = "set it on each CronJob, or give the replicas a --namespace-selector";
            self.0
                .add(|| format!("{} ({}: {remedy})", namespace_title(namespace), present.join(", ")));
        }
    }

    fn add(&mut self, object: &Value, annotated: Annotated, title: impl FnOnce(&Value) -> String) {
        let remedies = annotation_remedies(object, annotated);
        if !remedies.is_empty() {
            self.0.add(|| format!("{} ({})", title(object), remedies.join(", ")));
        }
    }

    /// Names them. `None` if there are none.
    pub(super) fn finding(&self) -> Option<Finding> {
        let Ineffective(objects) = self;
        (!objects.is_empty()).then(|| {
            let n_objects = counted(objects.len(), "object");
            let reason =
                format!("{n_objects} with annotations or labels under cronwheel.dev/ that have no effect: {objects}");
            Finding::warning("annotations", reason, "correct their names or places, or remove them")
        })
    }
}

fn namespace_title(namespace: &Value) -> String {
    let name = namespace["metadata"]["name"].as_str().unwrap_or_default();
    format!("namespace {name}")
}
