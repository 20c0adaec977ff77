//! One request to the API server, whatever lane it is of: timed, counted, logged where it is not permitted, and its answer's `Date` shown
//! to the clock.

use std::{future::Future, time::Duration};

use super::clock::Clock;
use crate::{
    kube_api::Answered,
    telemetry::metrics::{ApiCall, ApiMetrics},
};

/// Sends a request, which is not begun before; gives its answer and how long it took.
pub(super) async fn ask<T>(
    clock: &Clock,
    metrics: &ApiMetrics,
    call: ApiCall,
    request: impl Future<Output = Answered<T>>,
) -> (Answered<T>, Duration) {
    let sent = clock.boot();
    let answered = request.await;
    let duration = clock.boot().since(sent);
    metrics.record(call, answered.code, duration);
    if let (Some(code), Some(message)) = (answered.code, &answered.not_permitted) {
        metrics.refusals.note(call.labels(), code, message, clock.boot());
    }
    // What only says that there was no answer has no `Date` either, and must not be taken for an answer without one.
    if answered.code.is_some() {
        clock.observe_answer(sent, answered.server_date.clone());
    }
    (answered, duration)
}
