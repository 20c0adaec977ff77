//! The reasons why a request has no answer.

use std::time::Duration;

use http_body_util::LengthLimitError;

/// The reasons why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum SendError {
    #[error("the request cannot be built")]
    Request(#[from] http::Error),
    #[error("the API server cannot be reached")]
    Transport(#[source] kube::Error),
    #[error("the answer ended early")]
    Body(#[source] tower::BoxError),
    #[error("the answer is too long to be read")]
    TooLong(#[source] tower::BoxError),
    #[error("no answer within {} seconds", .0.as_secs_f32())]
    Timeout(Duration),
}

impl SendError {
    pub(super) fn of_body(error: tower::BoxError) -> SendError {
        if error.is::<LengthLimitError>() {
            SendError::TooLong(error)
        } else {
            SendError::Body(error)
        }
    }
}
