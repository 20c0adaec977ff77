//! Documents that are not objects: health, version, discovery.

use bytes::Bytes;
use http::{StatusCode, header};

use super::{Asked, answer::Answer, route::Route};
use crate::{failure::Failure, json::to_json, objects::discovery};

pub(super) fn answer(asked: &Asked) -> Result<Answer, Failure> {
    let Route::Document(path) = &asked.call.route else {
        return Err(Failure::no_such_path());
    };
    if matches!(path.as_str(), "/healthz" | "/livez" | "/readyz") {
        return Ok(Answer::Document(
            StatusCode::OK,
            "text/plain; charset=utf-8",
            Bytes::from_static(b"ok"),
        ));
    }
    let accept = asked.headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    match discovery::answer(path, accept.unwrap_or_default()).ok_or_else(Failure::no_such_path)? {
        discovery::Answer::Document(document) => {
            let body = to_json(&document.body);
            Ok(Answer::Document(StatusCode::OK, document.content_type, body))
        }
        discovery::Answer::NoSchemas => {
            let body = Bytes::from_static(discovery::NO_SCHEMAS);
            Ok(Answer::Document(StatusCode::OK, discovery::OPENAPI_PROTOBUF, body))
        }
        discovery::Answer::NotAcceptable => Err(Failure::not_acceptable()),
    }
}
