//! `SelfSubjectAccessReview`: whether the account may make a kind of request.

use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::json;

use crate::kube_api::{
    client::{Answered, ApiClient},
    exchange::Request,
    objects::{
        classify::{Answer, RawAnswer, Refusal},
        encode::to_bytes,
    },
};

/// A kind of request, as a rule of a Role names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessRequest<'a> {
    /// The verb.
    pub verb: &'a str,
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The plural of the resource, with `/` and the subresource if there is one.
    pub resource: &'a str,
    /// The namespace; `None` for all.
    pub namespace: Option<&'a str>,
    /// The name of the object; `None` for all.
    pub name: Option<&'a str>,
}

/// Whether the account may make such requests, or the message of the server or of the transport if the API server did
/// not review it.
pub type AccessDecision = Result<bool, String>;

/// The path of reviews.
pub(super) const PATH: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

impl ApiClient {
    /// Reviews whether the account may make a kind of request.
    pub async fn review_access(&self, access: &AccessRequest<'_>) -> Answered<AccessDecision> {
        let review = body(access);
        let request = Request::new(Method::POST, PATH.to_owned()).json(review);
        self.execute(request, answer).await
    }
}

/// The body of the review.
pub(super) fn body(access: &AccessRequest<'_>) -> Vec<u8> {
    let AccessRequest {
        verb,
        group,
        resource,
        namespace,
        name,
    } = *access;
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    to_bytes(&json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {
            "verb": verb,
            "group": group,
            "resource": resource,
            "subresource": subresource,
            "namespace": namespace.unwrap_or_default(),
            "name": name.unwrap_or_default(),
        }},
    }))
}

/// A reviewed request.
#[derive(Deserialize)]
pub(super) struct Review {
    pub(super) status: ReviewStatus,
}

/// The result of a review.
#[derive(Deserialize)]
pub(super) struct ReviewStatus {
    pub(super) allowed: bool,
}

/// Classifies the answer, which is no evidence about other requests.
fn answer(answer: &RawAnswer) -> Answer<AccessDecision> {
    let is_reviewed = matches!(answer.status, StatusCode::OK | StatusCode::CREATED);
    let review = is_reviewed.then(|| serde_json::from_slice::<Review>(&answer.body));
    Answer::Outcome(match review {
        Some(Ok(review)) => Ok(review.status.allowed),
        Some(Err(error)) => Err(error.to_string()),
        None => Err(Refusal::read(answer).message),
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::Value;

    use super::*;

    fn classified(status: u16, body: &'static str) -> AccessDecision {
        let raw = RawAnswer {
            status: StatusCode::from_u16(status).unwrap(),
            retry_after: None,
            server_date: None,
            body: Bytes::from_static(body.as_bytes()),
        };
        match answer(&raw) {
            Answer::Outcome(answer) => answer,
            other @ (Answer::Throttled { .. } | Answer::Unavailable { .. }) => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_an_explicit_denial_counts_as_denied() {
        assert_eq!(classified(201, r#"{"status":{"allowed":true}}"#), Ok(true));
        let denied = r#"{"status":{"allowed":false,"evaluationError":"role not found"}}"#;
        assert_eq!(classified(201, denied), Ok(false));
        for (status, body) in [
            (201, "{}"),
            (403, r#"{"kind":"Status","message":"no"}"#),
            (404, ""),
            (503, ""),
        ] {
            let answer = classified(status, body);
            assert!(answer.is_err(), "{status}: {answer:?}");
        }
    }

    #[test]
    fn access_review_has_the_subresource_in_its_own_field() {
        let access = AccessRequest {
            verb: "update",
            group: "batch",
            resource: "cronjobs/status",
            namespace: Some("shop"),
            name: None,
        };
        let review: Value = serde_json::from_slice(&body(&access)).unwrap();
        let expected = json!({"verb": "update", "group": "batch", "resource": "cronjobs", "subresource": "status",
            "namespace": "shop", "name": ""});
        assert_eq!(review["spec"]["resourceAttributes"], expected);
    }
}
