//! What the server says of itself: groups, kinds, verbs, version, and the `OpenAPI` documents, which are made from the
//! table of types.

mod groups;
mod openapi;

use serde_json::{Value, json};

/// The version that is played.
const MINOR_VERSION: &str = "36";
const GIT_VERSION: &str = "v1.36.3+apisim";
const JSON: &str = "application/json";

/// A document.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Its `Content-Type`.
    pub content_type: &'static str,
    /// What it says.
    pub body: Value,
}

/// What a path of discovery answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// 200.
    Document(Document),
    /// 406: there is only JSON.
    NotAcceptable,
}

/// The answer to a GET of this path, without its query, with this `Accept` header; none where the path is not discovery's.
pub fn answer(path: &str, accept: &str) -> Option<Answer> {
    let path = path.trim_end_matches('/');
    let plain = |body| {
        Some(Answer::Document(Document {
            content_type: JSON,
            body,
        }))
    };
    if let Some(document) = groups::aggregated(path, accept) {
        return Some(Answer::Document(document));
    }
    if let Some(body) = groups::plain(path) {
        return plain(body);
    }
    let is_openapi = path == "/openapi/v2" || path == "/openapi/v3" || path.starts_with("/openapi/v3/");
    if is_openapi && !accepts_json(accept) {
        return Some(Answer::NotAcceptable);
    }
    match path {
        "/version" => plain(version()),
        "/openapi/v2" => plain(openapi::version_2()),
        "/openapi/v3" => plain(openapi::index()),
        _ => plain(openapi::version_3(path.strip_prefix("/openapi/v3/")?)?),
    }
}

/// Whether JSON will do. Old clients ask for the documents in protobuf alone.
fn accepts_json(accept: &str) -> bool {
    let kinds = accept
        .split(',')
        .map(|kind| kind.split(';').next().unwrap_or_default().trim());
    accept.trim().is_empty()
        || kinds
            .into_iter()
            .any(|kind| matches!(kind, JSON | "*/*" | "application/*"))
}

fn version() -> Value {
    json!({
        "major": "1",
        "minor": MINOR_VERSION,
        "emulationMajor": "1",
        "emulationMinor": MINOR_VERSION,
        "gitVersion": GIT_VERSION,
        "gitCommit": "unknown",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

#[cfg(test)]
mod tests;
