//! A status write as a request: the read of its CronJob, if it needs one, and the write.

use std::sync::Arc;

use jiff::Timestamp;

use crate::{
    controller::lane::{LaneRequest, SentOrRead},
    kube_api::{Answered, ApiClient, objects::classify::OrderOutcome},
    shard::{
        BootInstant, CronJobRecord, KeptText, ManagedNamespaces, OrderAnswer, ReadOutcome, ShardTerm, StatusOutcome,
        StatusWrite, TermedAnswer, Uid,
    },
    telemetry::metrics::ApiCall,
};

/// A pending write.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) write: StatusWrite,
    /// The shard and term in which the write was ordered and may be sent.
    pub(super) shard_term: ShardTerm,
    /// The arrival time of the oldest change in the write.
    pub(super) since: BootInstant,
    /// Number of retries.
    pub(super) n_retries: u32,
    /// The metadata of the write before it was read.
    unread: Option<Arc<KeptText>>,
}

impl Pending {
    /// Creates a write that has not been sent, ordered in this term.
    pub(super) fn new(write: StatusWrite, shard_term: ShardTerm, since: BootInstant) -> Pending {
        Pending {
            write,
            shard_term,
            since,
            n_retries: 0,
            unread: None,
        }
    }

    pub(super) fn uid(&self) -> &Uid {
        &self.write.cron_job.uid
    }

    /// Returns the answer to the write, with its term.
    pub(super) fn answered(self, answer: StatusOutcome) -> TermedAnswer {
        let answer = OrderAnswer::Status {
            cron_job: self.write.cron_job.uid.clone(),
            sent: Box::new(self.write.status),
            answer,
        };
        TermedAnswer {
            shard_term: self.shard_term,
            answer,
        }
    }

    /// Whether the CronJob must be read before the write is sent.
    pub(super) fn must_read(&self) -> bool {
        self.write.retained_metadata.as_str().is_none()
    }

    /// Sets the metadata that was read for this write.
    pub(super) fn complete(&mut self, metadata: Arc<KeptText>) {
        self.unread = Some(std::mem::replace(&mut self.write.retained_metadata, metadata));
    }

    /// Drops metadata that was read, so that it occupies no memory while the write waits.
    pub(super) fn forget_read_metadata(&mut self) {
        if let Some(unread) = self.unread.take() {
            self.write.retained_metadata = unread;
        }
    }
}

impl LaneRequest for Pending {
    type Reply = SentOrRead<StatusOutcome, Arc<KeptText>>;

    fn shard_term(&self) -> Option<ShardTerm> {
        Some(self.shard_term)
    }

    fn namespace(&self) -> &str {
        &self.write.cron_job.namespace
    }

    fn is_permitted_in(&self, namespaces: &ManagedNamespaces, now: Timestamp) -> bool {
        namespaces.accepts_status(self.namespace(), now)
    }

    fn is_reading(&self) -> bool {
        self.unread.is_some() || self.must_read()
    }

    fn call(&self) -> ApiCall {
        if self.must_read() {
            ApiCall::ReadCronJob
        } else {
            ApiCall::WriteStatus
        }
    }

    async fn send(&self, api: &ApiClient) -> Answered<Self::Reply> {
        let write = &self.write;
        if self.must_read() {
            let read = api.read_cron_job(&write.cron_job).await;
            read.map(|outcome| metadata_of(write, outcome))
        } else {
            api.write_status(write).await.map(SentOrRead::Sent)
        }
    }
}

/// Returns the metadata for a write, or the answer to the write if it cannot be sent.
fn metadata_of(write: &StatusWrite, outcome: ReadOutcome<CronJobRecord>) -> SentOrRead<StatusOutcome, Arc<KeptText>> {
    SentOrRead::Sent(match outcome {
        ReadOutcome::Found(record) if record.identity.uid != write.cron_job.uid => StatusOutcome::Gone,
        ReadOutcome::Found(record) if record.resource_version == write.resource_version => {
            return SentOrRead::Read(record.retained_metadata);
        }
        ReadOutcome::Found(_) => StatusOutcome::Conflict,
        ReadOutcome::Gone => StatusOutcome::Gone,
        ReadOutcome::NotPermitted { message } => OrderOutcome::failed(message, None),
        ReadOutcome::Failed { message, retry_after } => OrderOutcome::failed(message, retry_after),
        ReadOutcome::Abandoned => StatusOutcome::Abandoned,
    })
}
