//! Sends one request of any lane to the API server. The request is timed and counted, and a refusal is logged.

use std::time::Duration;

use super::clock::Clock;
use crate::{
    kube_api::Answered,
    telemetry::metrics::{ApiCall, ApiMetrics},
};

/// Sends a request and returns its answer and duration. The future must not have been polled before.
pub(super) async fn send_recorded<T>(
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
        metrics.failures.refused(call.labels(), code, message, clock.boot());
    }
    (answered, duration)
}
