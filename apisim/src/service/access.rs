//! Access reviews: the client may do everything, except what a fault rule of the authorizer refuses.

use http::StatusCode;
use serde_json::{Value, json};

use super::{ApiService, Asked, Verb, answer::Answer};
use crate::{clock::instant, failure::Failure, faults::Asker, json::to_json, resource::Resource};

impl ApiService {
    /// Answers a `SelfSubjectAccessReview`.
    pub(super) fn review(&self, asked: &Asked, body: &[u8]) -> Result<Answer, Failure> {
        let mut review: Value =
            serde_json::from_slice(body).map_err(|error| Failure::bad_request(error.to_string()))?;
        let attributes = &review["spec"]["resourceAttributes"];
        let text = |field: &str| attributes[field].as_str().filter(|text| !text.is_empty());
        let (group, plural) = (text("group").unwrap_or_default(), text("resource").unwrap_or_default());
        let question = Verb::find(text("verb").unwrap_or_default()).map(|verb| Asker {
            verb,
            resource: Resource::find(group, "v1", plural),
            namespace: text("namespace"),
            name: text("name").unwrap_or_default(),
            ..asked.asker()
        });
        let is_allowed = question.is_none_or(|question| self.api.shared.faults.is_permitted(&question, instant()));
        review["status"] = json!({"allowed": is_allowed});
        Ok(Answer::Document(
            StatusCode::CREATED,
            "application/json",
            to_json(&review),
        ))
    }
}
