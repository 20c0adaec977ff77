//! The kinds that are listed and watched, and the conversion of their objects to inputs.

use std::sync::Arc;

use kube::Client;

use super::{WatchItem, collection::Collection};
use crate::{
    kube_api::{
        namespace_selector::NamespaceSelector,
        objects::decode::{
            CalendarContent, Content, CronJobText, Decoder, JobContent, NamespaceContent, Received, ReceivedCronJob,
            ReceivedJob, UndecodableCronJob,
        },
    },
    shard::{CalendarUpdate, Input, JobRecord, NamespaceUpdate, Scope, WatchedResource, input::WatchStage},
};

/// The objects that are listed and watched, and their conversion to inputs.
pub(super) trait Kind: Send + 'static {
    type Content: Content;

    /// The collection of the objects in a scope.
    fn collection(&self, client: Client, scope: &Scope) -> Collection {
        Collection::new::<Self::Content>(client, scope)
    }

    /// The input for a step of the list or watch; `None` if it concerns no shard.
    fn stage_reached(scope: &Scope, stage: WatchStage) -> Option<Input>;

    /// Converts an object of a list, or a new one; `None` if it concerns no shard.
    fn applied(&self, object: Received<Self::Content>) -> Option<WatchItem>;

    /// Converts an object that has changed.
    fn modified(&self, object: Received<Self::Content>) -> Option<WatchItem>;

    /// Converts a deleted object.
    fn deleted(&self, object: Received<Self::Content>) -> Option<WatchItem>;
}

/// CronJobs.
pub(super) struct CronJobs {
    pub(super) decoder: Arc<Decoder>,
}

impl Kind for CronJobs {
    type Content = CronJobText;

    fn stage_reached(scope: &Scope, stage: WatchStage) -> Option<Input> {
        Some(Input::watch_updated(WatchedResource::CronJobs, scope.clone(), stage))
    }

    fn applied(&self, object: ReceivedCronJob) -> Option<WatchItem> {
        Some(match self.decoder.cron_job(object.text()) {
            Ok(record) => WatchItem::Input(Input::CronJobApplied(Box::new(record))),
            Err(UndecodableCronJob { error, cron_job }) => WatchItem::Undecodable {
                error,
                cron_job,
                input: object.uid().cloned().map(Input::CronJobUndecodable),
            },
        })
    }

    fn modified(&self, object: ReceivedCronJob) -> Option<WatchItem> {
        self.applied(object)
    }

    fn deleted(&self, object: ReceivedCronJob) -> Option<WatchItem> {
        let uid = object.uid().cloned()?;
        Some(WatchItem::Input(Input::CronJobDeleted(uid)))
    }
}

/// Jobs. One that no CronJob controls concerns no shard, unless it has changed: a CronJob may have controlled it before.
pub(super) struct Jobs;

impl Kind for Jobs {
    type Content = JobContent;

    fn stage_reached(scope: &Scope, stage: WatchStage) -> Option<Input> {
        Some(Input::watch_updated(WatchedResource::Jobs, scope.clone(), stage))
    }

    fn applied(&self, object: ReceivedJob) -> Option<WatchItem> {
        received(object, Input::JobApplied)
    }

    fn modified(&self, object: ReceivedJob) -> Option<WatchItem> {
        let uid = object.uid().cloned();
        received(object, Input::JobModified).or_else(|| Some(WatchItem::Input(Input::JobReleased(uid?))))
    }

    fn deleted(&self, object: ReceivedJob) -> Option<WatchItem> {
        let uid = object.uid().cloned()?;
        Some(WatchItem::Input(match object.into_record() {
            Ok(record) => Input::JobDeleted {
                cron_job: record.controller?,
                job: uid,
            },
            // Whether a CronJob controlled the Job is unknown.
            Err(_) => Input::JobReleased(uid),
        }))
    }
}

/// Namespaces whose labels match. One whose labels match no more is received as deleted.
pub(super) struct Namespaces {
    pub(super) selector: NamespaceSelector,
}

impl Kind for Namespaces {
    type Content = NamespaceContent;

    fn collection(&self, client: Client, _scope: &Scope) -> Collection {
        Collection::of_namespaces(client, &self.selector)
    }

    fn stage_reached(_scope: &Scope, stage: WatchStage) -> Option<Input> {
        let update = match stage {
            WatchStage::ListBegun => NamespaceUpdate::ListBegun,
            WatchStage::ListDone => NamespaceUpdate::ListDone,
            WatchStage::NotPermitted
            | WatchStage::Watching(_)
            | WatchStage::Reached(_)
            | WatchStage::Unchanged { .. }
            | WatchStage::Interrupted => return None,
        };
        Some(Input::NamespaceUpdated(update))
    }

    fn applied(&self, object: Received<NamespaceContent>) -> Option<WatchItem> {
        let (name, options) = object.into_parts()?;
        Some(updated(NamespaceUpdate::Selected { name, options }))
    }

    fn modified(&self, object: Received<NamespaceContent>) -> Option<WatchItem> {
        self.applied(object)
    }

    fn deleted(&self, object: Received<NamespaceContent>) -> Option<WatchItem> {
        let (name, _) = object.into_parts()?;
        Some(updated(NamespaceUpdate::Released(name)))
    }
}

/// Calendars: ConfigMaps with their label. One without the label any more is received as deleted.
pub(super) struct Calendars;

impl Kind for Calendars {
    type Content = CalendarContent;

    fn collection(&self, client: Client, scope: &Scope) -> Collection {
        Collection::of_calendars(client, scope)
    }

    fn stage_reached(scope: &Scope, stage: WatchStage) -> Option<Input> {
        let update = match stage {
            WatchStage::ListBegun => CalendarUpdate::ListBegun(scope.clone()),
            WatchStage::ListDone => CalendarUpdate::ListDone(scope.clone()),
            WatchStage::NotPermitted
            | WatchStage::Watching(_)
            | WatchStage::Reached(_)
            | WatchStage::Unchanged { .. }
            | WatchStage::Interrupted => return None,
        };
        Some(Input::CalendarUpdated(Box::new(update)))
    }

    fn applied(&self, object: Received<CalendarContent>) -> Option<WatchItem> {
        let ((namespace, name), calendar) = object.into_parts()?;
        let update = CalendarUpdate::Applied {
            namespace,
            name,
            calendar,
        };
        Some(WatchItem::Input(Input::CalendarUpdated(Box::new(update))))
    }

    fn modified(&self, object: Received<CalendarContent>) -> Option<WatchItem> {
        self.applied(object)
    }

    fn deleted(&self, object: Received<CalendarContent>) -> Option<WatchItem> {
        let ((namespace, name), _) = object.into_parts()?;
        let update = CalendarUpdate::Removed { namespace, name };
        Some(WatchItem::Input(Input::CalendarUpdated(Box::new(update))))
    }
}

/// A namespace without a name, which no API server writes, concerns no shard.
fn updated(update: NamespaceUpdate) -> WatchItem {
    WatchItem::Input(Input::NamespaceUpdated(update))
}

/// Converts an existing Job; `None` if no CronJob controls it.
fn received(object: ReceivedJob, input: fn(Box<JobRecord>) -> Input) -> Option<WatchItem> {
    let uid = object.uid().cloned();
    match object.into_record() {
        Ok(record) if record.controller.is_none() => None,
        Ok(record) => Some(WatchItem::Input(input(Box::new(record)))),
        Err(error) => Some(WatchItem::Undecodable {
            error,
            cron_job: None,
            // If the Job counted as deleted, another run could start beside it (B-10.3).
            input: uid.map(Input::JobUndecodable),
        }),
    }
}
