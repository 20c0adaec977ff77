//! Failed requests: the `Status` objects of the API server, with its codes, reasons and messages.

use std::collections::BTreeSet;

use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::{
    Resource,
    objects::{
        decoding::DecodeError,
        patch::{Conflict, PatchError},
        protobuf::ProtobufError,
        validation::FieldError,
    },
};

/// The warning with the empty list of Pods, and the message of 404 for other requests.
pub(crate) const NO_PODS: &str =
    "there are no Pods: this API server simulates Jobs, so no container runs and there are no logs";

/// A failed request, as a `Status` describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The HTTP status code.
    pub code: StatusCode,
    /// The machine-readable reason, such as `NotFound`. Empty where the server gives none.
    pub reason: &'static str,
    /// The human-readable message.
    pub message: String,
    /// The contents of `details`: name, group, kind, causes.
    pub details: Map<String, Value>,
    /// Seconds to wait before a retry, also sent as `Retry-After`.
    pub retry_after_seconds: Option<u64>,
    /// A token to continue a list whose version has expired.
    pub continue_token: Option<String>,
}

impl Failure {
    /// Creates a failure without details.
    pub fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Failure {
        Failure {
            code,
            reason,
            message: message.into(),
            details: Map::new(),
            retry_after_seconds: None,
            continue_token: None,
        }
    }

    /// Adds the object to the details.
    #[must_use]
    pub fn about(mut self, resource: Resource, name: &str) -> Failure {
        self.details.insert("name".to_owned(), name.into());
        if !resource.group().is_empty() {
            self.details.insert("group".to_owned(), resource.group().into());
        }
        self.details.insert("kind".to_owned(), resource.plural().into());
        self
    }

    fn with_causes(mut self, causes: Value) -> Failure {
        self.details.insert("causes".to_owned(), causes);
        self
    }

    /// 404: the object does not exist.
    pub fn not_found(resource: Resource, name: &str) -> Failure {
        let message = format!("{} \"{name}\" not found", resource.qualified());
        Failure::new(StatusCode::NOT_FOUND, "NotFound", message).about(resource, name)
    }

    /// 404: the path does not exist.
    pub fn no_such_path() -> Failure {
        let message = "the server could not find the requested resource";
        Failure::new(StatusCode::NOT_FOUND, "NotFound", message)
    }

    /// 404: Jobs are simulated, so there are no Pods.
    pub fn no_pods() -> Failure {
        Failure::new(StatusCode::NOT_FOUND, "NotFound", NO_PODS)
    }

    /// 409: an object with this name exists.
    pub fn already_exists(resource: Resource, name: &str) -> Failure {
        let message = format!("{} \"{name}\" already exists", resource.qualified());
        Failure::new(StatusCode::CONFLICT, "AlreadyExists", message).about(resource, name)
    }

    /// 409: the request conflicts with the stored object.
    pub fn conflict(resource: Resource, name: &str, why: &str) -> Failure {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": {why}",
            resource.qualified()
        );
        Failure::new(StatusCode::CONFLICT, "Conflict", message).about(resource, name)
    }

    /// 409: the request refers to an older version.
    pub fn modified(resource: Resource, name: &str) -> Failure {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Failure::conflict(resource, name, why)
    }

    /// 422: the object is invalid.
    pub fn invalid(resource: Resource, name: &str, errors: &[FieldError]) -> Failure {
        Failure::invalid_of(resource.group(), resource.kind(), name, errors)
    }

    /// 422: the options of the request are invalid. `kind` is the kind of the options.
    pub fn invalid_options(kind: &str, errors: &[FieldError]) -> Failure {
        Failure::invalid_of("meta.k8s.io", kind, "", errors)
    }

    /// Lists each error once, and adds brackets if there are several.
    fn invalid_of(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Failure {
        let mut seen = BTreeSet::new();
        let texts: Vec<_> = errors
            .iter()
            .map(|error| format!("{}: {}", error.field, error.message))
            .filter(|text| seen.insert(text.clone()))
            .collect();
        let dot = if group.is_empty() { "" } else { "." };
        let mut message = format!("{kind}{dot}{group} {name:?} is invalid");
        match texts.as_slice() {
            [] => {}
            [one] => message.extend([": ", one]),
            several => message.extend([": [", &several.join(", "), "]"]),
        }
        let mut failure = Failure::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message);
        // This failure alone names the kind instead of the resource.
        for (member, text) in [("name", name), ("group", group), ("kind", kind)] {
            if !text.is_empty() {
                failure.details.insert(member.to_owned(), text.into());
            }
        }
        if errors.is_empty() {
            return failure;
        }
        let cause =
            |error: &FieldError| json!({"reason": error.reason, "message": error.message, "field": error.field});
        failure.with_causes(errors.iter().map(cause).collect())
    }

    /// 403: the namespace is being deleted.
    pub fn namespace_terminating(resource: Resource, name: &str, namespace: &str) -> Failure {
        let message = format!(
            "{} \"{name}\" is forbidden: unable to create new content in namespace {namespace} because it is being terminated",
            resource.qualified()
        );
        let cause = json!([{
            "reason": "NamespaceTerminating",
            "message": format!("namespace {namespace} is being terminated"),
            "field": "metadata.namespace",
        }]);
        Failure::new(StatusCode::FORBIDDEN, "Forbidden", message)
            .about(resource, name)
            .with_causes(cause)
    }

    /// 403: admission denied the request.
    pub fn forbidden(resource: Resource, name: &str, why: &str) -> Failure {
        let message = format!("{} \"{name}\" is forbidden: {why}", resource.qualified());
        Failure::new(StatusCode::FORBIDDEN, "Forbidden", message).about(resource, name)
    }

    /// 403: the authorizer denied the request.
    pub fn not_permitted(resource: Resource, name: &str, why: &str) -> Failure {
        if !name.is_empty() {
            return Failure::forbidden(resource, name, why);
        }
        let message = format!("{} is forbidden: {why}", resource.qualified());
        Failure::new(StatusCode::FORBIDDEN, "Forbidden", message).about(resource, name)
    }

    /// 400: the request is malformed.
    pub fn bad_request(message: impl Into<String>) -> Failure {
        Failure::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// 405: the path does not support this method.
    pub fn method_not_allowed() -> Failure {
        let message = "the server does not allow this method on the requested resource";
        Failure::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
    }

    /// 415: the media type of the body is not supported.
    pub fn unsupported_media_type(accepted: &str) -> Failure {
        let message =
            format!("the body of the request was in an unknown format - accepted media types include: {accepted}");
        Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
    }

    /// 406: the client accepts none of the available media types.
    pub fn not_acceptable() -> Failure {
        let message = "only the following media types are accepted: application/json";
        Failure::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    /// 413: the body exceeds the limit.
    pub fn too_large(bytes_max: usize) -> Failure {
        let message = format!("Request entity too large: limit is {bytes_max}");
        Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    /// 410: the requested version is no longer available.
    pub fn expired(message: impl Into<String>) -> Failure {
        Failure::new(StatusCode::GONE, "Expired", message)
    }

    /// 504: the requested version is not yet visible at this front end.
    pub fn too_large_version(requested: u64, current: u64) -> Failure {
        let message = format!("Timeout: Too large resource version: {requested}, current: {current}");
        let mut failure = Failure::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message)
            .with_causes(json!([{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]));
        failure.details.insert("retryAfterSeconds".to_owned(), 1.into());
        failure.retry_after_seconds = Some(1);
        failure
    }

    /// 504: the request was not complete at its deadline.
    pub fn timed_out() -> Failure {
        let message = "Timeout: request did not complete within requested timeout - context deadline exceeded";
        Failure::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message)
    }

    /// 429: the client must retry later.
    pub fn too_many_requests(retry_after_seconds: u64) -> Failure {
        let message = "too many requests, please try again later";
        let mut failure = Failure::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message);
        failure
            .details
            .insert("retryAfterSeconds".to_owned(), retry_after_seconds.into());
        failure.retry_after_seconds = Some(retry_after_seconds);
        failure
    }

    /// 500: internal error of the server.
    pub fn internal(message: &str) -> Failure {
        let text = format!("Internal error occurred: {message}");
        Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", text)
            .with_causes(json!([{"message": message}]))
    }

    /// 500 without a reason, for errors that the real server does not attribute to the client.
    pub fn unexpected(message: impl Into<String>) -> Failure {
        Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
    }

    /// 503: the server is unavailable.
    pub fn unavailable() -> Failure {
        let message = "the server is currently unable to handle the request";
        Failure::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
    }

    /// Builds the `Status` object.
    pub fn status(&self) -> Value {
        let mut metadata = Map::new();
        if let Some(token) = &self.continue_token {
            metadata.insert("continue".to_owned(), token.as_str().into());
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Failure",
            "message": self.message, "code": self.code.as_u16(),
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if !self.details.is_empty() || self.reason == "Invalid" {
            status["details"] = Value::Object(self.details.clone());
        }
        status
    }
}

impl From<DecodeError> for Failure {
    fn from(error: DecodeError) -> Failure {
        Failure::bad_request(error.to_string())
    }
}

impl From<ProtobufError> for Failure {
    fn from(error: ProtobufError) -> Failure {
        Failure::bad_request(error.to_string())
    }
}

impl From<PatchError> for Failure {
    fn from(error: PatchError) -> Failure {
        let message = error.to_string();
        match error {
            PatchError::Malformed(_) => Failure::bad_request(message),
            PatchError::Rejected => Failure::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message),
            PatchError::Conflicts(conflicts) => {
                let cause = |Conflict { manager, field }: &Conflict| {
                    let message = format!("conflict with {manager:?}");
                    json!({"reason": "FieldManagerConflict", "message": message, "field": field})
                };
                Failure::new(StatusCode::CONFLICT, "Conflict", message)
                    .with_causes(conflicts.iter().map(cause).collect())
            }
            PatchError::Directive(_) => Failure::unexpected(message),
            PatchError::Undecodable { value, reason } => {
                let cause = format!("Invalid value: {value:?}: {reason}");
                Failure::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message)
                    .with_causes(json!([{"reason": "FieldValueInvalid", "message": cause, "field": "patch"}]))
            }
        }
    }
}

#[cfg(test)]
mod tests;
