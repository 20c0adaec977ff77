//! Discovery: groups, kinds, verbs, version, and the `OpenAPI` documents, which are generated from the table of types.

mod groups;
mod openapi;

use serde_json::{Value, json};

/// The minor version of Kubernetes that the server reports.
const MINOR_VERSION: &str = "36";
const GIT_VERSION: &str = "v1.36.3+apisim";
const JSON: &str = "application/json";

/// The only media type in which `kubectl` requests `/openapi/v2`, without the `@` or the dot before its version.
const OPENAPI_PROTOBUF_PREFIX: &str = "application/com.github.proto-openapi.spec.v2";

/// A document.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Its `Content-Type`.
    pub content_type: &'static str,
    /// The body.
    pub body: Value,
}

/// The reply for a discovery path.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// 200.
    Document(Document),
    /// 200 with [`NO_SCHEMAS`].
    NoSchemas,
    /// 406: only JSON is available.
    NotAcceptable,
}

/// The `Content-Type` of [`NO_SCHEMAS`].
pub const OPENAPI_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// `/openapi/v2` in protobuf, with nothing but `swagger: "2.0"`. `kubectl` reads it only for kinds that are missing in
/// version 3. It needs a document without these kinds to report that they do not exist.
pub const NO_SCHEMAS: &[u8] = b"\x0a\x032.0";

/// Returns the reply to a GET of this path, without query, for this `Accept` header. Returns `None` for other paths.
pub fn reply(path: &str, accept: &str) -> Option<Reply> {
    let path = path.trim_end_matches('/');
    let plain = |body| {
        Some(Reply::Document(Document {
            content_type: JSON,
            body,
        }))
    };
    if let Some(document) = groups::aggregated(path, accept) {
        return Some(Reply::Document(document));
    }
    if let Some(body) = groups::plain(path) {
        return plain(body);
    }
    if path == "/openapi/v2" && accept.starts_with(OPENAPI_PROTOBUF_PREFIX) && !accepts_json(accept) {
        return Some(Reply::NoSchemas);
    }
    let is_openapi = path == "/openapi/v2" || path == "/openapi/v3" || path.starts_with("/openapi/v3/");
    if is_openapi && !accepts_json(accept) {
        return Some(Reply::NotAcceptable);
    }
    match path {
        "/version" => plain(version()),
        "/openapi/v2" => plain(openapi::version_2()),
        "/openapi/v3" => plain(openapi::index()),
        _ => plain(openapi::version_3(path.strip_prefix("/openapi/v3/")?)?),
    }
}

/// Whether the client accepts JSON. Old clients request these documents only in protobuf.
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
