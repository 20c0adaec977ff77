//! One request on its way, and what must still be true when it is written to a connection.

use std::time::Duration;

use tokio::sync::watch;

use super::{
    backlog::Queued,
    request::{JobApi, Request, complete},
};
use crate::{
    cluster::Answered,
    runtime::{
        ask::ask,
        clock::{Clock, ClockVerdict},
        metrics::{ApiCall, DispatchMetrics},
        pacing::Ticket,
    },
    state::{
        Input,
        sharding::{BootInstant, Leadership},
    },
};

/// A request that was to be sent, with what came of it.
pub(super) struct Exchanged {
    pub(super) queued: Queued,
    pub(super) ticket: Ticket,
    /// The answer and how long it took; none where it was not sent after all.
    pub(super) answered: Option<(Answered<Input>, Duration)>,
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

    fn covers(&self, queued: &Queued) -> bool {
        let (now, boot) = (self.clock.now(), self.clock.boot());
        let is_timely = !queued.request.is_early(now) && !queued.request.is_expired(now);
        is_timely && self.is_fine() && self.is_led(queued, boot)
    }
}

/// Asks once more whether the request may be sent, since time has passed since the task decided it, and sends it. Where
/// the template is not kept, reads the CronJob first.
pub(super) async fn exchange<A: JobApi>(
    api: A,
    licence: Licence,
    metrics: DispatchMetrics,
    queued: Queued,
    ticket: Ticket,
) -> Exchanged {
    let answered = if !licence.covers(&queued) {
        None
    } else if let Some(order) = queued.request.without_template() {
        let reader = under_terms(&api, &licence, &queued);
        let read = reader.read_cron_job(&order.cron_job);
        let (read, duration) = ask(&licence.clock, &metrics.api, ApiCall::ReadCronJob, read).await;
        match complete(order, read) {
            Ok(_) if !licence.covers(&queued) => None,
            Ok(request) => Some(send(&api, &licence, &metrics, &queued, &request).await),
            Err(answered) => Some((answered, duration)),
        }
    } else {
        Some(send(&api, &licence, &metrics, &queued, &queued.request).await)
    };
    Exchanged {
        queued,
        ticket,
        answered,
    }
}

/// The API as of now: requests are dead when the leadership that they are made under has ended.
fn under_terms<A: JobApi>(api: &A, licence: &Licence, queued: &Queued) -> A {
    let leadership = licence.leadership.borrow();
    match leadership.write_terms(queued.mandate, licence.clock.boot()) {
        Some(terms) => api.under(&terms),
        None => api.clone(),
    }
}

async fn send<A: JobApi>(
    api: &A,
    licence: &Licence,
    metrics: &DispatchMetrics,
    queued: &Queued,
    request: &Request,
) -> (Answered<Input>, Duration) {
    let api = under_terms(api, licence, queued);
    let clock = &licence.clock;
    if let Some(slot) = queued.slot_of_first_attempt() {
        metrics.lateness.observe(clock.now().duration_since(slot).as_secs_f64());
    }
    ask(clock, &metrics.api, request.call(), request.send(&api)).await
}
