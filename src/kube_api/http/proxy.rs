//! The proxy between this process and the API server. Connections go through it by HTTP `CONNECT`, so TLS ends at the API
//! server and the proxy sees no request.
//!
//! `kube` takes `HTTPS_PROXY` for every server that a kubeconfig names. [`exempt_from_proxy`] applies the exemptions
//! of other Kubernetes clients: loopback addresses, and the entries of `NO_PROXY`.

use std::{net::IpAddr, sync::Arc};

use http::{Uri, uri::Scheme};
use hyper::rt::{Read, Write};
use hyper_util::client::{
    legacy::connect::proxy::Tunnel,
    proxy::matcher::{Intercept, Matcher},
};
use kube::Config;
use tower::{BoxError, ServiceExt};

use super::{ConnectError, Connector};

/// Removes the proxy of the environment from a configuration whose server is exempt from it. A proxy that the kubeconfig
/// itself names stays. `variable` reads the environment.
pub fn exempt_from_proxy(config: &mut Config, variable: impl Fn(&str) -> Option<String>) {
    let read = |names: [&str; 2]| names.into_iter().filter_map(&variable).find(|value| !value.is_empty());
    let of_environment: Option<Uri> = read(["HTTPS_PROXY", "https_proxy"]).and_then(|proxy| proxy.parse().ok());
    if config.proxy_url != of_environment {
        return;
    }
    let Some(proxy) = &config.proxy_url else { return };
    let exemptions = read(["NO_PROXY", "no_proxy"]).unwrap_or_default();
    let matcher = Matcher::builder().all(proxy.to_string()).no(exemptions).build();
    if is_loopback(&config.cluster_url) || matcher.intercept(&config.cluster_url).is_none() {
        config.proxy_url = None;
    }
}

fn is_loopback(server: &Uri) -> bool {
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
    let address = host.parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.to_canonical().is_loopback())
}

/// The proxy of a configuration.
#[derive(Clone, Debug)]
pub(super) struct Proxy {
    intercept: Intercept,
    /// Host and port, for errors: the URL may hold a password.
    name: Arc<str>,
}

impl Proxy {
    /// The proxy that a configuration names; none if it names none.
    ///
    /// # Errors
    ///
    /// [`ConnectError::Proxy`] if the proxy is not an `http://` proxy.
    pub(super) fn of(config: &Config) -> Result<Option<Proxy>, ConnectError> {
        let Some(proxy) = &config.proxy_url else {
            return Ok(None);
        };
        let matcher = Matcher::builder().all(proxy.to_string()).build();
        let intercept = matcher.intercept(&config.cluster_url);
        match intercept.filter(|intercept| intercept.uri().scheme() == Some(&Scheme::HTTP)) {
            Some(intercept) => {
                let name = intercept.uri().authority().map(ToString::to_string);
                let name = name.unwrap_or_default().into();
                Ok(Some(Proxy { intercept, name }))
            }
            None => Err(ConnectError::Proxy {
                scheme: proxy.scheme_str().unwrap_or_default().to_owned(),
                host: proxy.host().unwrap_or_default().to_owned(),
            }),
        }
    }
}

/// Returns a connector to the API server, directly or through a proxy.
pub(super) fn through_proxy<S>(proxy: Option<&Proxy>, connector: Connector<S>) -> Connector<S>
where
    S: Read + Write + Unpin + Send + 'static,
{
    let Some(Proxy { intercept, name }) = proxy else {
        return connector;
    };
    let tunnel = Tunnel::new(intercept.uri().clone(), connector);
    let tunnel = match intercept.basic_auth() {
        Some(credentials) => tunnel.with_auth(credentials.clone()),
        None => tunnel,
    };
    let proxy = Arc::clone(name);
    Connector::new(tunnel.map_err(move |error| {
        let source = error.into();
        BoxError::from(ProxyError { proxy, source })
    }))
}

/// The reason why the proxy gave no connection to the API server.
#[derive(Debug, thiserror::Error)]
#[error("cannot connect through the proxy {proxy}")]
struct ProxyError {
    proxy: Arc<str>,
    source: BoxError,
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROXY: &str = "http://user:secret@proxy.example.com:3128";

    fn check(server: &str, no_proxy: &str, is_exempt: bool) {
        let mut config = Config::new(server.parse().unwrap());
        config.proxy_url = Some(PROXY.parse().unwrap());
        exempt_from_proxy(&mut config, |name| match name {
            "https_proxy" => Some(PROXY.to_owned()),
            "NO_PROXY" => Some(String::new()),
            "no_proxy" => Some(no_proxy.to_owned()),
            _ => None,
        });
        assert_eq!(config.proxy_url.is_none(), is_exempt, "{server} with {no_proxy:?}");
        assert_eq!(Proxy::of(&config).unwrap().is_none(), is_exempt);
    }

    #[test]
    fn loopback_addresses_bypass_the_proxy() {
        for server in [
            "https://127.0.0.1:6443",
            "http://localhost:8001",
            "https://LOCALHOST",
            "https://[::1]:6443",
        ] {
            check(server, "", true);
        }
        for server in [
            "https://10.0.0.1",
            "https://localhost.example.com",
            "https://[fd00::1]:6443",
        ] {
            check(server, "", false);
        }
    }

    #[test]
    fn hosts_in_no_proxy_bypass_the_proxy() {
        for (no_proxy, is_exempt) in [
            ("*", true),
            (" other, EXAMPLE.com ", true),
            (".example.com", true),
            ("ample.com", false),
            ("", false),
            ("10.0.0.0/8", false),
        ] {
            check("https://Api.example.com:6443", no_proxy, is_exempt);
        }
        check("https://10.1.2.3", "10.1.2.4,10.0.0.0/8", true);
        check("https://10.1.2.3", "11.0.0.0/8", false);
        check("https://[fd00::1]:6443", "fd00::/8", true);
    }

    #[test]
    fn a_proxy_of_the_kubeconfig_is_kept() {
        let mut config = Config::new("https://127.0.0.1:6443".parse().unwrap());
        config.proxy_url = Some("http://other:3128".parse().unwrap());
        exempt_from_proxy(&mut config, |name| (name == "HTTPS_PROXY").then(|| PROXY.to_owned()));
        assert!(config.proxy_url.is_some());
        exempt_from_proxy(&mut config, |_| None);
        assert!(config.proxy_url.is_some());
    }

    #[test]
    fn errors_name_the_proxy_without_its_password() {
        let mut config = Config::new("https://api.example.com:6443".parse().unwrap());
        config.proxy_url = Some(PROXY.parse().unwrap());
        assert_eq!(&*Proxy::of(&config).unwrap().unwrap().name, "proxy.example.com:3128");
        for scheme in ["https", "socks5"] {
            let proxy = format!("{scheme}://user:secret@proxy.example.com:1080");
            config.proxy_url = Some(proxy.parse().unwrap());
            assert_eq!(
                Proxy::of(&config).unwrap_err().to_string(),
                format!(
                    "{scheme}://proxy.example.com: only http:// proxies are supported; change HTTPS_PROXY or proxy-url \
                     in the kubeconfig, or add the API server's host to NO_PROXY"
                )
            );
        }
    }
}
