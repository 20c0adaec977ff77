//! One status write on its way, and what must still be true when it is written to a connection.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;

use super::{StatusApi, pending::Pending};
use crate::{
    cluster::{Answered, CronJobOutcome},
    runtime::{
        ask::ask,
        clock::Clock,
        metrics::{ApiCall, StatusMetrics},
        pacing::Ticket,
    },
    state::{CronJobRecord, StatusOutcome, StatusWrite, record::RetainedMetadata, sharding::Leadership},
};

/// A write that was to be sent, with what came of it.
pub(super) struct Exchanged {
    pub(super) pending: Pending,
    pub(super) ticket: Ticket,
    /// The answer and how long it took; none where it was not sent after all.
    pub(super) answered: Option<(Answered<Reply>, Duration)>,
}

/// What an answer is good for.
pub(super) enum Reply {
    /// The shard gets it.
    Outcome(StatusOutcome),
    /// The write waits for this metadata, and can be sent.
    Metadata(Arc<RetainedMetadata>),
}

/// Asks once more whether the shard is led, since time has passed since the task decided it, and sends the write. Where the
/// metadata is not kept, reads the CronJob instead.
pub(super) async fn exchange<A: StatusApi>(
    api: A,
    clock: Clock,
    metrics: StatusMetrics,
    leadership: watch::Receiver<Leadership>,
    (pending, ticket): (Pending, Ticket),
) -> Exchanged {
    let now = clock.boot();
    let (is_led, terms) = {
        let leadership = leadership.borrow();
        (
            leadership.covers(pending.mandate, now),
            leadership.write_terms(pending.mandate, now),
        )
    };
    if !is_led {
        return Exchanged {
            pending,
            ticket,
            answered: None,
        };
    }
    let api = match terms {
        Some(terms) => api.under(&terms),
        None => api,
    };
    let write = &pending.write;
    let answered = if pending.must_read() {
        let read = api.read_cron_job(&write.cron_job);
        let (read, duration) = ask(&clock, &metrics.api, ApiCall::ReadCronJob, read).await;
        (read.map(|outcome| metadata_of(write, outcome)), duration)
    } else {
        metrics.age.observe(now.since(pending.since).as_secs_f64());
        let (answered, duration) = ask(&clock, &metrics.api, ApiCall::WriteStatus, api.write_status(write)).await;
        (answered.map(Reply::Outcome), duration)
    };
    Exchanged {
        pending,
        ticket,
        answered: Some(answered),
    }
}

/// The metadata for a write, or the answer to the write if it cannot be sent.
fn metadata_of(write: &StatusWrite, outcome: CronJobOutcome<Box<CronJobRecord>>) -> Reply {
    Reply::Outcome(match outcome {
        CronJobOutcome::Found(record) if record.identity.uid != write.cron_job.uid => StatusOutcome::Gone,
        CronJobOutcome::Found(record) if record.resource_version == write.resource_version => {
            return Reply::Metadata(record.retained_metadata);
        }
        CronJobOutcome::Found(_) => StatusOutcome::Conflict,
        CronJobOutcome::Gone => StatusOutcome::Gone,
        CronJobOutcome::NotPermitted { message } => StatusOutcome::Failed {
            message,
            retry_after: None,
        },
        CronJobOutcome::Failed { message, retry_after } => StatusOutcome::Failed { message, retry_after },
    })
}
