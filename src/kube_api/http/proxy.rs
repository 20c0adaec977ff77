//! Whether a proxy stands between us and the API server; we speak through none.
//!
//! `kube` takes `HTTPS_PROXY` for every server that a kubeconfig names. Here the exemptions apply that other clients
//! of Kubernetes know: loopback addresses, and what `NO_PROXY` lists.

use std::net::IpAddr;

use http::{Uri, uri::Scheme};
use kube::Config;

use super::ConnectError;

/// Takes the proxy of the environment out of a configuration whose server is exempt from it. A proxy that the
/// kubeconfig names itself stays. `variable` reads the environment.
pub fn exempt_from_proxy(config: &mut Config, variable: impl Fn(&str) -> Option<String>) {
    let read = |names: [&str; 2]| names.into_iter().filter_map(&variable).find(|value| !value.is_empty());
    let of_environment: Option<Uri> = read(["HTTPS_PROXY", "https_proxy"]).and_then(|proxy| proxy.parse().ok());
    if config.proxy_url != of_environment {
        return;
    }
    let exemptions = read(["NO_PROXY", "no_proxy"]).unwrap_or_default();
    if Server::new(&config.cluster_url).is_some_and(|server| server.is_exempt(&exemptions)) {
        config.proxy_url = None;
    }
}

/// An error where a proxy is configured. Its address is told without the password that it may hold.
pub(super) fn refuse_proxy(config: &Config) -> Result<(), ConnectError> {
    let Some(proxy) = &config.proxy_url else {
        return Ok(());
    };
    Err(ConnectError::Proxy {
        proxy: proxy.host().unwrap_or_default().to_owned(),
        server: config.cluster_url.host().unwrap_or_default().to_owned(),
    })
}

/// The API server, as far as exemptions look at it.
struct Server {
    /// In lower case, without brackets and a dot at the end.
    host: String,
    address: Option<IpAddr>,
    port: u16,
}

impl Server {
    fn new(url: &Uri) -> Option<Server> {
        let host = plain_host(url.host()?);
        let default_port = if url.scheme() == Some(&Scheme::HTTP) { 80 } else { 443 };
        Some(Server {
            address: host.parse().ok(),
            host,
            port: url.port_u16().unwrap_or(default_port),
        })
    }

    fn is_exempt(&self, exemptions: &str) -> bool {
        let is_loopback = self.address.is_some_and(|address| address.to_canonical().is_loopback());
        is_loopback || self.host == "localhost" || exemptions.split(',').any(|entry| self.is_named_by(entry.trim()))
    }

    /// Whether an entry of `NO_PROXY` names it: `*`, an address, a range of addresses, a host with all below it, or
    /// with a dot in front what is below it alone; with a port that port alone.
    fn is_named_by(&self, entry: &str) -> bool {
        if entry == "*" {
            return true;
        }
        if let Some((first, n_bits)) = entry.split_once('/') {
            return self.is_in_range(first, n_bits);
        }
        let (name, port) = split_port(entry);
        if port.is_some_and(|port| port != self.port) {
            return false;
        }
        let name = plain_host(name.strip_prefix('*').unwrap_or(name));
        match (name.parse::<IpAddr>(), self.address) {
            (Ok(named), Some(address)) => named.to_canonical() == address.to_canonical(),
            (Ok(_), None) | (Err(_), Some(_)) => false,
            (Err(_), None) => match self.host.strip_suffix(name.as_str()) {
                Some("") => !name.is_empty(),
                Some(below) => name.starts_with('.') || (!name.is_empty() && below.ends_with('.')),
                None => false,
            },
        }
    }

    fn is_in_range(&self, first: &str, n_bits: &str) -> bool {
        let (Ok(first), Ok(n_bits), Some(address)) = (first.parse(), n_bits.parse::<u32>(), self.address) else {
            return false;
        };
        match (first, address.to_canonical()) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                let n_rest = 32_u32.checked_sub(n_bits);
                n_rest.is_some_and(|n| (first.to_bits() ^ address.to_bits()).checked_shr(n).unwrap_or(0) == 0)
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                let n_rest = 128_u32.checked_sub(n_bits);
                n_rest.is_some_and(|n| (first.to_bits() ^ address.to_bits()).checked_shr(n).unwrap_or(0) == 0)
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

/// The port after the last colon, if all that is left is one host: an IPv6 address has colons of its own.
fn split_port(entry: &str) -> (&str, Option<u16>) {
    match entry.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => match port.parse() {
            Ok(port) => (host, Some(port)),
            Err(_) => (entry, None),
        },
        _ => (entry, None),
    }
}

fn plain_host(host: &str) -> String {
    let host = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
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
        assert_eq!(refuse_proxy(&config).is_ok(), is_exempt);
    }

    #[test]
    fn loopback_is_never_behind_the_proxy() {
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
    fn what_no_proxy_names_is_not_behind_the_proxy() {
        const NAME: &str = "https://Api.example.com:6443";
        for (no_proxy, is_exempt) in [
            ("*", true),
            ("api.example.com", true),
            ("example.com", true),
            (" other, EXAMPLE.com ", true),
            (".example.com", true),
            ("*.example.com", true),
            ("example.com:6443", true),
            ("example.com:443", false),
            ("ample.com", false),
            (".api.example.com", false),
            ("api.example.com.org", false),
            ("", false),
            (",", false),
            (".", false),
            ("10.0.0.0/8", false),
        ] {
            check(NAME, no_proxy, is_exempt);
        }
        check("https://10.1.2.3", "10.1.2.3:443", true);
        check("https://10.1.2.3", "10.1.2.3:80", false);
        check("https://10.1.2.3", "10.1.2.4,10.0.0.0/8", true);
        check("https://10.1.2.3", "10.1.2.3/32", true);
        check(
            "https://10.1.2.3",
            "10.1.2.2/32,11.0.0.0/8,0.0.0.0/33,10.1.2.3/x",
            false,
        );
        check("https://10.1.2.3", "0.0.0.0/0", true);
        check("https://10.1.2.3", "2.3", false);
        check("https://[fd00::1]:6443", "fd00::1", true);
        check("https://[fd00::1]:6443", "[fd00::1]:6443", true);
        check("https://[fd00::1]:6443", "[fd00::1]:443,fe00::/8,::/129", false);
        check("https://[fd00::1]:6443", "fd00::/8", true);
        check("https://[fd00::1]:6443", "::/0", true);
    }

    #[test]
    fn a_proxy_that_the_kubeconfig_names_stays() {
        let mut config = Config::new("https://127.0.0.1:6443".parse().unwrap());
        config.proxy_url = Some("http://other:3128".parse().unwrap());
        exempt_from_proxy(&mut config, |name| (name == "HTTPS_PROXY").then(|| PROXY.to_owned()));
        assert!(config.proxy_url.is_some());
        exempt_from_proxy(&mut config, |_| None);
        assert!(config.proxy_url.is_some());
    }

    #[test]
    fn the_error_names_the_remedy_and_no_password() {
        let mut config = Config::new("https://api.example.com:6443".parse().unwrap());
        config.proxy_url = Some(PROXY.parse().unwrap());
        assert_eq!(
            refuse_proxy(&config).unwrap_err().to_string(),
            "the proxy proxy.example.com stands before the API server, and proxies are not supported; add \
             api.example.com to NO_PROXY, unset HTTPS_PROXY, or take proxy-url out of the kubeconfig"
        );
    }
}
