//! Access reviews: every request is allowed unless a `NotPermitted` fault denies it.

use http::StatusCode;
use serde_json::{Value, json};

use super::{ApiService, ParsedRequest, Verb, reply::Reply};
use crate::{Resource, clock::instant, failure::Failure, faults::RequestAttributes, json::to_json};

impl ApiService {
    /// Handles a `SelfSubjectAccessReview`.
    pub(super) fn review(&self, request: &ParsedRequest, body: &[u8]) -> Result<Reply, Failure> {
        let mut review: Value =
            serde_json::from_slice(body).map_err(|error| Failure::bad_request(error.to_string()))?;
        let requested = &review["spec"]["resourceAttributes"];
        let text = |field: &str| requested[field].as_str().filter(|text| !text.is_empty());
        let (group, plural) = (text("group").unwrap_or_default(), text("resource").unwrap_or_default());
        let attributes = Verb::find(text("verb").unwrap_or_default()).map(|verb| RequestAttributes {
            verb,
            resource: Resource::find(group, "v1", plural),
            namespace: text("namespace"),
            name: text("name").unwrap_or_default(),
            ..request.attributes()
        });
        let is_allowed =
            attributes.is_none_or(|attributes| self.api.shared.faults.is_permitted(&attributes, instant()));
        review["status"] = json!({"allowed": is_allowed});
        Ok(Reply::Document(
            StatusCode::CREATED,
            "application/json",
            to_json(&review),
        ))
    }
}
