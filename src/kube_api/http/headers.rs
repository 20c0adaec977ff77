//! Headers of answers that affect later requests.

use std::time::Duration;

use http::{HeaderMap, header};
use jiff::fmt::rfc2822;

use super::{ApiConnection, ServerDate};

/// Returns the seconds of `Retry-After`; `None` if the header is a date.
pub(in crate::kube_api) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// Returns the `Date` of an answer and its connection.
pub(in crate::kube_api) fn server_date(response: &http::response::Parts) -> Option<ServerDate> {
    static PARSER: rfc2822::DateTimeParser = rfc2822::DateTimeParser::new();
    let date = response.headers.get(header::DATE)?;
    Some(ServerDate {
        at: PARSER.parse_timestamp(date.as_bytes()).ok()?,
        connection: response.extensions.get::<ApiConnection>().cloned(),
    })
}
