//! Refusals of the API server.

use std::time::Duration;

use http::StatusCode;
use serde::Deserialize;

use super::{MESSAGE_MAX_BYTES, RETRY_AFTER_MAX, RawAnswer, bounded};

/// A refusal of the API server.
pub(in crate::kube_api) struct Refusal {
    pub(super) status: StatusCode,
    /// Whether the body is a `Status`, which a proxy does not write.
    pub(in crate::kube_api) is_status: bool,
    pub(in crate::kube_api) reason: String,
    pub(in crate::kube_api) message: String,
    pub(super) is_namespace_terminating: bool,
    pub(super) denied_by: Option<DeniedBy>,
    pub(super) retry_after: Option<Duration>,
}

/// The part of admission that denied a request, identified by the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeniedBy {
    /// A webhook, which chooses the code.
    Webhook,
    /// A `ValidatingAdmissionPolicy`, or a plugin with a similar message.
    Policy,
}

impl DeniedBy {
    fn read(message: &str) -> Option<DeniedBy> {
        let is_denied = message.contains("denied the request");
        if is_denied && message.contains("admission webhook") {
            Some(DeniedBy::Webhook)
        } else {
            (is_denied || message.contains("denied request")).then_some(DeniedBy::Policy)
        }
    }
}

/// The decoded part of a `Status`; a proxy may answer anything.
#[derive(Default, Deserialize)]
#[serde(default)]
struct StatusBody {
    kind: Option<String>,
    reason: Option<String>,
    message: Option<String>,
    details: Option<StatusDetails>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct StatusDetails {
    causes: Option<Vec<StatusCause>>,
    retry_after_seconds: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StatusCause {
    reason: Option<String>,
}

impl Refusal {
    pub(in crate::kube_api) fn read(answer: &RawAnswer) -> Refusal {
        let body: StatusBody = serde_json::from_slice(&answer.body).unwrap_or_default();
        let details = body.details.unwrap_or_default();
        let message = match body.message {
            Some(message) if !message.is_empty() => message,
            _ => plain_text(answer),
        };
        Refusal {
            status: answer.status,
            is_status: body.kind.as_deref() == Some("Status"),
            denied_by: DeniedBy::read(&message),
            reason: body.reason.unwrap_or_default(),
            message: bounded(&message),
            is_namespace_terminating: details
                .causes
                .iter()
                .flatten()
                .any(|cause| cause.reason.as_deref() == Some("NamespaceTerminating")),
            retry_after: answer
                .retry_after
                .or_else(|| {
                    details
                        .retry_after_seconds
                        .filter(|&seconds| seconds > 0)
                        .map(Duration::from_secs)
                })
                .map(|asked| asked.min(RETRY_AFTER_MAX)),
        }
    }

    /// Whether authorization or authentication refused the request.
    pub(in crate::kube_api) fn is_not_permitted(&self) -> bool {
        is_not_permitted(self.status.as_u16(), &self.message)
    }

    /// Whether the fence of `deploy/manifests/fence-policy.yaml` refused a create, because it was late by the API
    /// server's clock.
    pub(in crate::kube_api) fn is_fenced(&self) -> bool {
        self.status == StatusCode::FORBIDDEN && self.message.contains("'cronwheel-fence'")
    }
}

/// Whether authorization or authentication refused a request, by the code and the message of the answer. Admission and
/// quota also answer 403, but with other messages than "User … cannot …". The text is the same in all versions of the
/// server.
pub(crate) fn is_not_permitted(code: u16, message: &str) -> bool {
    let is_of_authorizer = message.contains(" is forbidden: User \"") && message.contains("\" cannot ");
    code == 401 || code == 403 && is_of_authorizer && DeniedBy::read(message).is_none()
}

/// Returns the text of an answer without a `Status`.
fn plain_text(answer: &RawAnswer) -> String {
    let text = String::from_utf8_lossy(&answer.body[..answer.body.len().min(MESSAGE_MAX_BYTES)]);
    let text = text.trim();
    if text.is_empty() || text.starts_with('{') {
        format!("the server answered with status {}", answer.status.as_u16())
    } else {
        text.to_owned()
    }
}
