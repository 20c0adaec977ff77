//! What can be read that is no object: health, version, discovery.

use bytes::Bytes;
use http::StatusCode;

use super::{
    Asked,
    answer::{Answer, to_json},
    route::Route,
};
use crate::{failure::Failure, rules};

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
    let document = rules::document(path).ok_or_else(Failure::no_such_path)?;
    Ok(Answer::Document(StatusCode::OK, "application/json", to_json(&document)))
}
