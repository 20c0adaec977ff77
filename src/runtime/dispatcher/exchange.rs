//! One request on its way, and what must still be true when it is written to a connection.

use std::time::Duration;

use tokio::sync::watch;

use super::{backlog::Queued, request::JobApi};
use crate::{
    cluster::Answered,
    runtime::{
        ask::ask,
        clock::{Clock, ClockVerdict},
        metrics::DispatchMetrics,
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

/// Asks once more whether the request may be sent, since time has passed since the task decided it, and sends it.
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
    let terms = licence.leadership.borrow().write_terms(queued.mandate, clock.boot());
    let api = match terms {
        Some(terms) => api.under(&terms),
        None => api,
    };
    if let Some(slot) = queued.slot_of_first_attempt() {
        metrics.lateness.observe(clock.now().duration_since(slot).as_secs_f64());
    }
    let answered = ask(clock, &metrics.api, queued.request.call(), queued.request.send(&api)).await;
    Exchanged {
        queued,
        ticket,
        answered: Some(answered),
    }
}
