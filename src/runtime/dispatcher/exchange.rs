//! One request on its way, and what must still be true when it is written to a connection.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;

use super::{
    backlog::Queued,
    request::{JobApi, created},
};
use crate::{
    cluster::{Answered, CronJobOutcome},
    runtime::{
        ask::ask,
        clock::{Clock, ClockVerdict},
        metrics::{ApiCall, DispatchMetrics},
        pacing::Ticket,
    },
    state::{
        CreateOutcome, CronJobRecord, Input, JobOrder, JobTemplate,
        sharding::{BootInstant, Leadership},
    },
};

/// A request that was to be sent, with what came of it.
pub(super) struct Exchanged {
    pub(super) queued: Queued,
    pub(super) ticket: Ticket,
    /// The answer and how long it took; none where it was not sent after all.
    pub(super) answered: Option<(Answered<Reply>, Duration)>,
}

/// What an answer is good for.
pub(super) enum Reply {
    /// The shard gets it.
    Fact(Input),
    /// The order waits for this template, and can be sent.
    Template(Arc<JobTemplate>),
}

/// What a request is sent by, as late as it can be asked.
#[derive(Clone)]
pub(super) struct Licence {
    pub(super) clock: Clock,
    pub(super) leadership: watch::Receiver<Leadership>,
}

impl Licence {
    pub(super) fn is_fine(&self) -> bool {
        self.clock.verdict() == ClockVerdict::Fine
    }

    pub(super) fn is_led(&self, queued: &Queued, boot: BootInstant) -> bool {
        self.leadership.borrow().covers(queued.mandate, boot)
    }

    /// The API for a request that is sent now: the longer ago our Lease was renewed, the shorter the request may live.
    fn under_terms<A: JobApi>(&self, api: &A, queued: &Queued) -> A {
        let terms = self.leadership.borrow().write_terms(queued.mandate, self.clock.boot());
        terms.map_or_else(|| api.clone(), |terms| api.under(&terms))
    }

    fn covers(&self, queued: &Queued) -> bool {
        let (now, boot) = (self.clock.now(), self.clock.boot());
        let is_timely = !queued.request.is_early(now) && !queued.request.is_expired(now);
        is_timely && self.is_fine() && self.is_led(queued, boot)
    }
}

/// Asks once more whether the request may be sent, since time has passed since the task decided it, and sends it. Where
/// the template of an order is not kept, reads the CronJob instead.
pub(super) async fn exchange<A: JobApi>(
    api: A,
    licence: Licence,
    metrics: DispatchMetrics,
    queued: Queued,
    ticket: Ticket,
) -> Exchanged {
    if !licence.covers(&queued) {
        return Exchanged {
            queued,
            ticket,
            answered: None,
        };
    }
    let clock = &licence.clock;
    let api = licence.under_terms(&api, &queued);
    let answered = if let Some(order) = queued.request.without_template() {
        let read = api.read_cron_job(&order.cron_job);
        let (read, duration) = ask(clock, &metrics.api, ApiCall::ReadCronJob, read).await;
        (read.map(|outcome| template_of(order, outcome)), duration)
    } else {
        if let Some(slot) = queued.slot_of_first_attempt() {
            metrics.lateness.observe(clock.now().duration_since(slot).as_secs_f64());
        }
        let call = queued.request.call();
        let (mut answered, mut duration) = ask(clock, &metrics.api, call, queued.request.send(&api)).await;
        if let Some(connection) = answered.fenced_over
            && licence.covers(&queued)
        {
            // Of several API servers one may have a wrong clock.
            let api = licence.under_terms(&api, &queued).beside(connection);
            (answered, duration) = ask(clock, &metrics.api, call, queued.request.send(&api)).await;
        }
        (answered.map(Reply::Fact), duration)
    };
    Exchanged {
        queued,
        ticket,
        answered: Some(answered),
    }
}

/// The template of an order, or the answer to the order if it cannot be sent.
fn template_of(order: &JobOrder, outcome: CronJobOutcome<Box<CronJobRecord>>) -> Reply {
    // What the order was decided on.
    let is_same = |record: &CronJobRecord| {
        order.cron_job.uid == record.identity.uid && order.template.body.is_same(&record.template.body)
    };
    let answer = match outcome {
        CronJobOutcome::Found(record) if is_same(&record) => return Reply::Template(record.template),
        // Decided again, by when a watch has shown what changed.
        CronJobOutcome::Found(_) | CronJobOutcome::Gone => CreateOutcome::Abandoned,
        CronJobOutcome::NotPermitted { message } => CreateOutcome::NotPermitted { message },
        CronJobOutcome::Failed { message, retry_after } => CreateOutcome::Failed { message, retry_after },
    };
    Reply::Fact(created(order, answer))
}
