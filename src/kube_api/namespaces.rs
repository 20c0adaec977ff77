//! Whether a namespace exists.

use http::{Method, StatusCode};

use crate::kube_api::{
    client::{Answered, ApiClient},
    exchange::Request,
    objects::classify::{Answer, RawAnswer},
    paths::{CORE, namespaced},
};

/// Whether a namespace exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceAnswer {
    /// It exists.
    Exists,
    /// It does not exist.
    Absent,
    /// The API server gave no usable answer.
    Unknown,
}

impl ApiClient {
    /// Reads whether a namespace exists.
    pub async fn namespace_exists(&self, name: &str) -> Answered<NamespaceAnswer> {
        let path = namespaced(CORE, name, &[]);
        self.execute(Request::new(Method::GET, path), answer).await
    }
}

fn answer(answer: &RawAnswer) -> Answer<NamespaceAnswer> {
    Answer::Outcome(match answer.status {
        StatusCode::OK => NamespaceAnswer::Exists,
        StatusCode::NOT_FOUND => NamespaceAnswer::Absent,
        _ => NamespaceAnswer::Unknown,
    })
}
