//! The differences between the watched kinds.

use std::sync::Arc;

use kube::core::NamespaceResourceScope;
use serde::de::DeserializeOwned;

use super::WatchItem;
use crate::{
    kube_api::objects::decode::{Decoder, SlimCronJob, SlimJob},
    shard::{Input, Scope},
};

/// The conversion of watched objects to inputs.
pub(super) trait Kind: Send + 'static {
    type Object: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned
        + Send
        + 'static;

    /// Converts an existing object; `None` if no shard needs it.
    fn applied(&self, object: Self::Object) -> Option<WatchItem>;
    /// Converts a deleted object.
    fn deleted(&self, object: &Self::Object) -> Option<Input>;
    /// The input before a list is requested.
    fn relist_begun(&mut self, scope: Scope) -> Input;
    /// The input after a complete list.
    fn relist_done(&mut self, scope: Scope) -> Input;
}

/// All CronJobs.
pub(super) struct CronJobs {
    pub(super) decoder: Arc<Decoder>,
}

impl CronJobs {
    pub(super) fn applied(&self, object: SlimCronJob) -> WatchItem {
        let (cron_job, uid) = (object.identity().cloned(), object.uid().cloned());
        match object.into_record(&self.decoder) {
            Ok(record) => WatchItem::Input(Input::CronJobApplied(Box::new(record))),
            Err(error) => WatchItem::Undecodable {
                error,
                cron_job,
                input: uid.map(Input::CronJobSeen),
            },
        }
    }
}

impl Kind for CronJobs {
    type Object = SlimCronJob;

    fn applied(&self, object: SlimCronJob) -> Option<WatchItem> {
        Some(CronJobs::applied(self, object))
    }

    fn deleted(&self, object: &SlimCronJob) -> Option<Input> {
        Some(Input::CronJobDeleted(object.uid()?.clone()))
    }

    fn relist_begun(&mut self, scope: Scope) -> Input {
        Input::CronJobRelistBegun(scope)
    }

    fn relist_done(&mut self, scope: Scope) -> Input {
        Input::CronJobRelistDone(scope)
    }
}

/// All Jobs.
pub(super) struct Jobs;

impl Jobs {
    pub(super) fn applied(object: SlimJob) -> WatchItem {
        let uid = object.uid().cloned();
        match object.into_record() {
            Ok(record) => WatchItem::Input(Input::JobApplied(Box::new(record))),
            Err(error) => WatchItem::Undecodable {
                error,
                cron_job: None,
                // If the Job counted as deleted, another run could start beside it (B-10.3).
                input: uid.map(Input::JobSeen),
            },
        }
    }
}

impl Kind for Jobs {
    type Object = SlimJob;

    fn applied(&self, object: SlimJob) -> Option<WatchItem> {
        Some(Jobs::applied(object))
    }

    fn deleted(&self, object: &SlimJob) -> Option<Input> {
        Some(Input::JobDeleted(object.uid()?.clone()))
    }

    fn relist_begun(&mut self, scope: Scope) -> Input {
        Input::JobRelistBegun(scope)
    }

    fn relist_done(&mut self, scope: Scope) -> Input {
        Input::JobRelistDone(scope)
    }
}
