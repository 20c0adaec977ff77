//! Who may ask: the check of method, Host and Origin, and the headers of every answer.
//!
//! The check of the Host prevents DNS rebinding: a foreign page that lets its own name point to this server sends that
//! name.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header, uri::Authority},
    middleware::Next,
    response::{IntoResponse, Response},
};

/// Styles, script and images come from this server alone, and no other page may frame this one.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; \
     connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The headers of every answer. A handler can set another `cache-control`.
const HEADERS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (header::CACHE_CONTROL, "no-store"),
];

/// A name that is not allowed as a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no host name; write NAME or NAME:PORT, such as cronjobs.example.com")]
pub struct HostError(pub String);

/// The values of the Host header that are answered.
#[derive(Clone, Debug)]
pub struct AllowedHosts {
    listen: SocketAddr,
    /// Names in lower case, with their port if only that is allowed.
    names: Vec<(String, Option<u16>)>,
}

/// Allows the address that the server listens on, and further names.
///
/// A server on loopback is reached by loopback names with its port. Another server is reached by its address, or by any
/// address if it listens on all: an address cannot be rebound. Loopback names then have any port, for
/// `kubectl port-forward`.
///
/// # Errors
///
/// Returns [`HostError`] for a name that is none.
pub fn allowed_hosts(listen: SocketAddr, names: &[String]) -> Result<AllowedHosts, HostError> {
    let parse = |name: &String| split(name).ok_or_else(|| HostError(name.clone()));
    Ok(AllowedHosts {
        listen,
        names: names.iter().map(parse).collect::<Result<_, _>>()?,
    })
}

impl AllowedHosts {
    /// Whether a value of the Host header is allowed.
    pub fn allows(&self, host: &str) -> bool {
        let Some((name, port)) = split(host) else {
            return false;
        };
        let is_port = port.unwrap_or(80) == self.listen.port();
        let address: Option<IpAddr> = name.trim_start_matches('[').trim_end_matches(']').parse().ok();
        let is_loopback = name == "localhost" || address.is_some_and(|address| address.is_loopback());
        let is_own = match address {
            _ if is_loopback => is_port || !self.listen.ip().is_loopback(),
            Some(address) => is_port && (self.listen.ip() == address || self.listen.ip().is_unspecified()),
            None => false,
        };
        let is_given = |(given, given_port): &(String, Option<u16>)| {
            *given == name && (given_port.is_none() || *given_port == port.or(Some(80)))
        };
        is_own || self.names.iter().any(is_given)
    }
}

/// Lets a request through if it may ask, and sets the headers of the answer.
pub(super) async fn guard(State(hosts): State<Arc<AllowedHosts>>, request: Request, next: Next) -> Response {
    let mut response = match refusal(&hosts, &request) {
        Some(refusal) => refusal,
        None => next.run(request).await,
    };
    for (name, value) in HEADERS {
        let headers = response.headers_mut();
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

fn refusal(hosts: &AllowedHosts, request: &Request) -> Option<Response> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let text = format!("{} is not allowed: this server only reads.\n", request.method());
        return Some((StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "GET, HEAD")], text).into_response());
    }
    let Some(host) = single(request.headers(), &header::HOST) else {
        let text = "The request has no Host header, or several.\n";
        return Some((StatusCode::BAD_REQUEST, text).into_response());
    };
    let authority = request.uri().authority().map(Authority::as_str);
    if !hosts.allows(host) || authority.is_some_and(|authority| !hosts.allows(authority)) {
        let text = "This host name is not allowed, which protects against DNS rebinding. \
                    Use the address that was printed, or allow the name with --allowed-host of cronwheel ui.\n";
        return Some((StatusCode::MISDIRECTED_REQUEST, text).into_response());
    }
    if !request.headers().contains_key(header::ORIGIN) {
        return None;
    }
    let origin = single(request.headers(), &header::ORIGIN).unwrap_or_default();
    let origin_host = origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"));
    if origin_host.is_some_and(|origin_host| origin_host.eq_ignore_ascii_case(host)) {
        return None;
    }
    let text = "The request comes from a page of another origin.\n";
    Some((StatusCode::FORBIDDEN, text).into_response())
}

fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// Splits a host into its name in lower case, without a last dot, and its port.
fn split(host: &str) -> Option<(String, Option<u16>)> {
    let authority: Authority = host.parse().ok()?;
    // User information is no part of a host.
    if authority.as_str().contains('@') {
        return None;
    }
    let name = authority.host().to_ascii_lowercase();
    let name = name.strip_suffix('.').unwrap_or(&name);
    let has_port = authority.as_str().len() > authority.host().len();
    let port = authority.port_u16();
    (!name.is_empty() && (port.is_some() || !has_port)).then(|| (name.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_allowed_by_name_and_port() {
        let names = ["CronJobs.example.com".to_owned(), "gate:8443".to_owned()];
        let allowed = |listen: &str, host: &str| {
            let hosts = allowed_hosts(listen.parse().unwrap(), &names).unwrap();
            hosts.allows(host)
        };
        let (loopback, every, one) = ("127.0.0.1:8080", "0.0.0.0:8080", "10.0.0.7:8080");
        let cases = [
            (loopback, "localhost:8080", true),
            (loopback, "LOCALHOST:8080", true),
            (loopback, "localhost.:8080", true),
            (loopback, "127.0.0.1:8080", true),
            (loopback, "[::1]:8080", true),
            (loopback, "localhost", false),
            (loopback, "localhost:8081", false),
            (loopback, "10.0.0.7:8080", false),
            (loopback, "evil.example.com:8080", false),
            (loopback, "localhost.evil.example.com:8080", false),
            (loopback, "evil@localhost:8080", false),
            (loopback, "localhost:", false),
            (loopback, "localhost:99999", false),
            (loopback, "", false),
            (loopback, "cronjobs.example.com", true),
            (loopback, "cronjobs.example.com:8443", true),
            (loopback, "gate:8443", true),
            (loopback, "gate", false),
            ("127.0.0.1:80", "localhost", true),
            (every, "localhost:9000", true),
            (every, "10.1.2.3:8080", true),
            (every, "10.1.2.3:8081", false),
            (every, "evil.example.com:8080", false),
            (one, "10.0.0.7:8080", true),
            (one, "10.0.0.8:8080", false),
        ];
        for (listen, host, expected) in cases {
            assert_eq!(allowed(listen, host), expected, "{host:?} at {listen}");
        }
    }

    #[test]
    fn a_name_that_is_no_host_is_refused() {
        for name in ["", "a b", "http://a", "a/b", "user@a"] {
            let error = allowed_hosts("127.0.0.1:1".parse().unwrap(), &[name.to_owned()]).unwrap_err();
            assert_eq!(error, HostError(name.to_owned()));
        }
    }
}
