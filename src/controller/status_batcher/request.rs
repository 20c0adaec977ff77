//! Requests of the status batcher, and the meaning of their answers.

use std::sync::Arc;

use super::pending::Pending;
use crate::{
    controller::{clock::Clock, lane::LaneRequest},
    kube_api::{Answered, ApiClient, objects::classify::OrderOutcome},
    shard::{CronJobRecord, KeptText, ReadOutcome, ShardTerm, StatusOutcome, StatusWrite},
    telemetry::metrics::ApiCall,
};

/// The use of an answer.
pub(in crate::controller) enum Reply {
    /// The outcome of the write, for the shard.
    Outcome(StatusOutcome),
    /// The metadata that the write was missing; the write can be sent.
    Metadata(Arc<KeptText>),
}

impl LaneRequest for Pending {
    type Reply = Reply;

    fn shard_term(&self) -> Option<ShardTerm> {
        Some(self.shard_term)
    }

    fn may_be_sent(&self, _clock: &Clock) -> bool {
        true
    }

    fn call(&self) -> ApiCall {
        if self.must_read() {
            ApiCall::ReadCronJob
        } else {
            ApiCall::WriteStatus
        }
    }

    async fn send(&self, api: &ApiClient) -> Answered<Reply> {
        let write = &self.write;
        if self.must_read() {
            let read = api.read_cron_job(&write.cron_job).await;
            read.map(|outcome| metadata_of(write, outcome))
        } else {
            api.write_status(write).await.map(Reply::Outcome)
        }
    }
}

/// Returns the metadata for a write, or the answer to the write if it cannot be sent.
fn metadata_of(write: &StatusWrite, outcome: ReadOutcome<CronJobRecord>) -> Reply {
    Reply::Outcome(match outcome {
        ReadOutcome::Found(record) if record.identity.uid != write.cron_job.uid => StatusOutcome::Gone,
        ReadOutcome::Found(record) if record.resource_version == write.resource_version => {
            return Reply::Metadata(record.retained_metadata);
        }
        ReadOutcome::Found(_) => StatusOutcome::Conflict,
        ReadOutcome::Gone => StatusOutcome::Gone,
        ReadOutcome::NotPermitted { message } => OrderOutcome::failed(message, None),
        ReadOutcome::Failed { message, retry_after } => OrderOutcome::failed(message, retry_after),
        ReadOutcome::Abandoned => StatusOutcome::Abandoned,
    })
}
