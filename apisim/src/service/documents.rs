//! Documents that are not objects: health, version, discovery.

use bytes::Bytes;
use http::{StatusCode, header};

use super::{ParsedRequest, reply::Reply, route::Route};
use crate::{failure::Failure, json::to_json, objects::discovery};

pub(super) fn reply(request: &ParsedRequest) -> Result<Reply, Failure> {
    let Route::Document(path) = &request.call.route else {
        return Err(Failure::no_such_path());
    };
    if matches!(path.as_str(), "/healthz" | "/livez" | "/readyz") {
        return Ok(Reply::Document(
            StatusCode::OK,
            "text/plain; charset=utf-8",
            Bytes::from_static(b"ok"),
        ));
    }
    let accept = request
        .headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok());
    match discovery::reply(path, accept.unwrap_or_default()).ok_or_else(Failure::no_such_path)? {
        discovery::Reply::Document(document) => {
            let body = to_json(&document.body);
            Ok(Reply::Document(StatusCode::OK, document.content_type, body))
        }
        discovery::Reply::NoSchemas => {
            let body = Bytes::from_static(discovery::NO_SCHEMAS);
            Ok(Reply::Document(StatusCode::OK, discovery::OPENAPI_PROTOBUF, body))
        }
        discovery::Reply::NotAcceptable => Err(Failure::not_acceptable()),
    }
}
