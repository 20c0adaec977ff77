//! One status write on its way, and what must still be true when it is written to a connection.

use std::time::Duration;

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
    state::{CronJobRecord, StatusOutcome, StatusWrite, sharding::Leadership},
};

/// A write that was to be sent, with what came of it.
pub(super) struct Exchanged {
    pub(super) pending: Pending,
    pub(super) ticket: Ticket,
    /// The answer and how long it took; none where it was not sent after all.
    pub(super) answered: Option<(Answered<StatusOutcome>, Duration)>,
}

/// Asks once more whether the shard is led, since time has passed since the task decided it, and sends the write. Where the
/// metadata is not kept, reads the CronJob first.
pub(super) async fn exchange<A: StatusApi>(
    api: A,
    clock: Clock,
    metrics: StatusMetrics,
    leadership: watch::Receiver<Leadership>,
    (pending, ticket): (Pending, Ticket),
) -> Exchanged {
    // The API as of now, while the shard is led: requests are dead when the leadership that they are made under has ended.
    let led = || {
        let (leadership, now) = (leadership.borrow(), clock.boot());
        let terms = leadership.write_terms(pending.mandate, now);
        let api = terms.map_or_else(|| api.clone(), |terms| api.under(&terms));
        leadership.covers(pending.mandate, now).then_some(api)
    };
    let send = async |api: A, write: &StatusWrite| {
        metrics.age.observe(clock.boot().since(pending.since).as_secs_f64());
        ask(&clock, &metrics.api, ApiCall::WriteStatus, api.write_status(write)).await
    };
    let write = &pending.write;
    let answered = match led() {
        None => None,
        Some(api) if write.retained_metadata.members.as_str().is_some() => Some(send(api, write).await),
        Some(api) => {
            let read = api.read_cron_job(&write.cron_job);
            let (read, duration) = ask(&clock, &metrics.api, ApiCall::ReadCronJob, read).await;
            match (complete(write, read), led()) {
                (Err(answered), _) => Some((answered, duration)),
                (Ok(write), Some(api)) => Some(send(api, &write).await),
                (Ok(_), None) => None,
            }
        }
    };
    Exchanged {
        pending,
        ticket,
        answered,
    }
}

/// Completes a write by the CronJob that was read for it. Where that cannot be, returns the answer to the write.
fn complete(
    write: &StatusWrite,
    read: Answered<CronJobOutcome<Box<CronJobRecord>>>,
) -> Result<StatusWrite, Answered<StatusOutcome>> {
    let is_same_version = |record: &CronJobRecord| record.resource_version == write.resource_version;
    let mut completed = None;
    let answered = read.map(|outcome| match outcome {
        CronJobOutcome::Found(record) if record.identity.uid != write.cron_job.uid => StatusOutcome::Gone,
        CronJobOutcome::Found(record) if is_same_version(&record) => {
            completed = Some(record.retained_metadata);
            StatusOutcome::Abandoned
        }
        CronJobOutcome::Found(_) => StatusOutcome::Conflict,
        CronJobOutcome::Gone => StatusOutcome::Gone,
        CronJobOutcome::NotPermitted { message } => StatusOutcome::Failed {
            message,
            retry_after: None,
        },
        CronJobOutcome::Failed { message, retry_after } => StatusOutcome::Failed { message, retry_after },
    });
    match completed {
        Some(retained_metadata) => Ok(StatusWrite {
            retained_metadata,
            ..write.clone()
        }),
        None => Err(answered),
    }
}
