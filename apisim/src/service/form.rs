//! The format in which a client requests objects: whole, only metadata, or as table rows.

use bytes::Bytes;
use http::{HeaderMap, header};
use jiff::Timestamp;
use serde_json::Value;

use crate::{
    Resource,
    failure::Failure,
    json::to_json,
    objects::table::{self, IncludeObject},
};

/// The format of objects in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Whole,
    /// `PartialObjectMetadata`.
    Partial,
    Table(IncludeObject),
}

impl Form {
    /// Returns the first supported format that the client accepts.
    pub(super) fn parse(headers: &HeaderMap, include_object: &str) -> Result<Form, Failure> {
        let accept = headers.get(header::ACCEPT).map(|value| value.to_str());
        let accept = match accept {
            None | Some(Ok("" | "application/json" | "*/*")) => return Ok(Form::Whole),
            Some(accept) => accept.unwrap_or_default(),
        };
        let include = || {
            let message = format!("invalid includeObject value: {include_object:?}");
            IncludeObject::parse(include_object).ok_or_else(|| Failure::bad_request(message))
        };
        for part in accept.split(',') {
            match media_type(part) {
                Some(("", _)) => return Ok(Form::Whole),
                Some(("Table", "" | "v1")) => return Ok(Form::Table(include()?)),
                Some(("PartialObjectMetadata" | "PartialObjectMetadataList", "" | "v1")) => return Ok(Form::Partial),
                Some(_) | None => {}
            }
        }
        Err(Failure::not_acceptable())
    }

    /// Formats one object.
    pub(super) fn object(self, resource: Resource, json: Bytes, now: Timestamp) -> Bytes {
        let read = || serde_json::from_slice::<Value>(&json).unwrap_or_default();
        match self {
            Form::Whole => json,
            Form::Partial => to_json(&table::partial_metadata(&read())),
            Form::Table(include) => to_json(&row(resource, &read(), include, now)),
        }
    }
}

/// A Table with one object and its version.
pub(super) fn row(resource: Resource, object: &Value, include: IncludeObject, now: Timestamp) -> Value {
    let mut table = table::render_with(resource, [object], include, now);
    table["metadata"]["resourceVersion"] = object["metadata"]["resourceVersion"].clone();
    table
}

/// Returns the parameters `as` and `v` of one media type in an `Accept` header. Returns `None` if it is not JSON.
fn media_type(part: &str) -> Option<(&str, &str)> {
    let mut parameters = part.split(';').map(str::trim);
    if !matches!(parameters.next()?, "application/json" | "application/*" | "*/*") {
        return None;
    }
    let (mut kind, mut version) = ("", "");
    for parameter in parameters {
        match parameter.split_once('=') {
            Some(("as", value)) => kind = value,
            Some(("v", value)) => version = value,
            _ => {}
        }
    }
    Some((kind, version))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn check(accept: &'static str, expected: Option<Form>) {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        assert_eq!(Form::parse(&headers, "").ok(), expected, "{accept}");
    }

    #[test]
    fn first_supported_accept_type_is_used() {
        let table = Some(Form::Table(IncludeObject::Metadata));
        check("application/json", Some(Form::Whole));
        check(
            "application/vnd.kubernetes.protobuf,application/json",
            Some(Form::Whole),
        );
        check("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", table);
        check(
            "application/json;as=Table;v=v1beta1;g=meta.k8s.io, application/json",
            Some(Form::Whole),
        );
        check(
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            Some(Form::Partial),
        );
        check("application/vnd.kubernetes.protobuf", None);
        check("text/html", None);
        assert_eq!(Form::parse(&HeaderMap::new(), "").ok(), Some(Form::Whole));
    }
}
