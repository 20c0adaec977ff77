//! Reads the admission policies that keep the built-in controller out.

use http::{Method, StatusCode};
use serde_json::Value;

use crate::kube_api::{
    client::{Answered, ApiClient},
    exchange::Request,
    objects::classify::{Answer, RawAnswer, Refusal},
    paths::{ADMISSION, push_segment},
};

/// The part of an admission policy that an object holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyPart {
    /// A `ValidatingAdmissionPolicy`.
    Policy,
    /// A `ValidatingAdmissionPolicyBinding`.
    Binding,
}

impl PolicyPart {
    /// Both parts, without one of which a policy refuses nothing.
    pub const ALL: [PolicyPart; 2] = [PolicyPart::Policy, PolicyPart::Binding];

    fn plural(self) -> &'static str {
        match self {
            PolicyPart::Policy => "validatingadmissionpolicies",
            PolicyPart::Binding => "validatingadmissionpolicybindings",
        }
    }

    fn is_in_force(self, object: &Value) -> bool {
        let is_there = object["metadata"]["deletionTimestamp"].is_null();
        let denies = |actions: &Vec<Value>| actions.iter().any(|action| action == "Deny");
        let is_effective = match self {
            PolicyPart::Policy => true,
            PolicyPart::Binding => object["spec"]["validationActions"].as_array().is_some_and(denies),
        };
        is_there && is_effective
    }
}

/// Whether an object exists and has an effect, or the message of the server or of the transport if it was not read.
pub type PolicyReading = Result<bool, String>;

impl ApiClient {
    /// Reads whether a part of a policy exists and has an effect.
    pub async fn read_policy(&self, part: PolicyPart, name: &str) -> Answered<PolicyReading> {
        let mut path = format!("{ADMISSION}/{}/", part.plural());
        push_segment(&mut path, name);
        let classify: fn(&RawAnswer) -> Answer<PolicyReading> = match part {
            PolicyPart::Policy => |answer: &RawAnswer| classified(PolicyPart::Policy, answer),
            PolicyPart::Binding => |answer: &RawAnswer| classified(PolicyPart::Binding, answer),
        };
        self.execute(Request::new(Method::GET, path), classify).await
    }
}

/// Classifies the answer, which is no evidence about other requests.
fn classified(part: PolicyPart, answer: &RawAnswer) -> Answer<PolicyReading> {
    Answer::Outcome(match answer.status {
        StatusCode::NOT_FOUND => Ok(false),
        status if status.is_success() => serde_json::from_slice(&answer.body)
            .map(|object| part.is_in_force(&object))
            .map_err(|error| error.to_string()),
        _ => Err(Refusal::read(answer).message),
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn reading(part: PolicyPart, status: u16, body: &'static str) -> PolicyReading {
        let answer = RawAnswer {
            status: StatusCode::from_u16(status).unwrap(),
            retry_after: None,
            server_date: None,
            body: Bytes::from_static(body.as_bytes()),
        };
        match classified(part, &answer) {
            Answer::Outcome(reading) => reading,
            other @ (Answer::Throttled { .. } | Answer::Unavailable { .. }) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_policy_is_in_force_while_it_exists() {
        let policy = |status, body| reading(PolicyPart::Policy, status, body);
        assert_eq!(policy(200, r#"{"metadata": {"name": "a"}}"#), Ok(true));
        let deleted = r#"{"metadata": {"deletionTimestamp": "2026-03-01T10:00:00Z"}}"#;
        assert_eq!(policy(200, deleted), Ok(false));
        assert_eq!(policy(404, r#"{"kind": "Status"}"#), Ok(false));
    }

    #[test]
    fn a_binding_is_in_force_if_it_denies() {
        let binding = |body| reading(PolicyPart::Binding, 200, body);
        assert_eq!(
            binding(r#"{"spec": {"validationActions": ["Audit", "Deny"]}}"#),
            Ok(true)
        );
        assert_eq!(binding(r#"{"spec": {"validationActions": ["Audit"]}}"#), Ok(false));
        assert_eq!(binding(r#"{"spec": {}}"#), Ok(false));
    }

    #[test]
    fn an_answer_that_does_not_tell_is_no_reading() {
        for (status, body) in [(403, r#"{"kind": "Status", "message": "no"}"#), (503, ""), (200, "{")] {
            assert!(reading(PolicyPart::Policy, status, body).is_err(), "{status}");
        }
    }
}
