//! The surroundings of the process, a Pod or a host, and its identity there.

use std::{
    env, fs,
    hash::{BuildHasher, RandomState},
    path::Path,
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::Deserialize;
use serde_json::Value;

use super::{TOKEN_FILE, not_in_pod};
use crate::cli::args::values::parse_pod_name;

const NO_JSON_WEB_TOKEN: &str = "it is not a JSON Web Token";
const NOT_BOUND: &str = "it has no complete claim kubernetes.io.pod";

/// The surroundings of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Surroundings {
    /// A Pod with its service account.
    Pod {
        /// The Pod's namespace.
        namespace: String,
        /// The token of the service account; `None` if it cannot be read.
        token: Option<String>,
    },
    /// A host, or a Pod that uses the account of a kubeconfig.
    Host {
        /// The host name.
        name: String,
    },
}

/// The identity of this replica for other replicas.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct PodIdentity {
    /// The name, for people.
    pub name: String,
    /// The uid, which is part of the name of its Lease.
    pub uid: String,
}

impl PodIdentity {
    pub(super) fn given(name: &str, uid: &str) -> PodIdentity {
        PodIdentity {
            name: name.to_owned(),
            uid: uid.to_owned(),
        }
    }
}

impl Surroundings {
    /// Returns the surroundings of this process, in the given namespace.
    pub(super) fn of_process(namespace: &str) -> Surroundings {
        match not_in_pod(|name| env::var_os(name), Path::new(TOKEN_FILE)) {
            None => Surroundings::Pod {
                namespace: namespace.to_owned(),
                token: fs::read_to_string(TOKEN_FILE).ok(),
            },
            Some(_) => Surroundings::host(),
        }
    }

    /// Returns this host.
    pub(super) fn host() -> Surroundings {
        let system = rustix::system::uname();
        Surroundings::Host {
            name: system.nodename().to_string_lossy().into_owned(),
        }
    }

    /// Whether this is a Pod in the given namespace.
    pub(super) fn is_pod_in(&self, namespace: &str) -> bool {
        matches!(self, Surroundings::Pod { namespace: own, .. } if own == namespace)
    }

    /// Returns the Pod in the token, or why the token names none; outside a Pod, the host name and a random uid.
    pub(super) fn identity(&self) -> Result<PodIdentity, String> {
        match self {
            Surroundings::Pod { token, .. } => {
                let token = token.as_deref().ok_or_else(|| format!("{TOKEN_FILE} cannot be read"))?;
                Ok(named_in(token)?)
            }
            Surroundings::Host { name } => Ok(PodIdentity {
                name: parse_pod_name(name).unwrap_or_else(|_| "localhost".to_owned()),
                uid: format!("{:016x}", random_number()),
            }),
        }
    }
}

/// Decodes the claim of a token that is bound to a Pod (KEP-1205). The signature is not verified: the token belongs to
/// this process, and the API server verifies it at every request.
fn named_in(token: &str) -> Result<PodIdentity, &'static str> {
    let claims = |token: &str| -> Option<Value> {
        let payload = BASE64_URL_SAFE_NO_PAD.decode(token.trim().split('.').nth(1)?).ok()?;
        serde_json::from_slice(&payload).ok()
    };
    let claims = claims(token).ok_or(NO_JSON_WEB_TOKEN)?;
    // The token of a Secret names no Pod.
    let pod = claims.pointer("/kubernetes.io/pod").ok_or(NOT_BOUND)?;
    PodIdentity::deserialize(pod).map_err(|_| NOT_BOUND)
}

/// A number that no other process has. The standard library seeds the hash of its maps from the kernel's randomness.
pub(in crate::cli) fn random_number() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(claims: &str) -> String {
        format!("header.{}.signature\n", BASE64_URL_SAFE_NO_PAD.encode(claims))
    }

    #[test]
    fn a_bound_token_names_its_pod() {
        let claims = r#"{"aud":["https://kubernetes.default.svc"],"exp":1,"kubernetes.io":{"namespace":"kube-system",
            "node":{"name":"n","uid":"1"},"pod":{"name":"cronwheel-7c9f-x2x9z","uid":"9f0c1a52-8d7e-4b1f-9a53-6c2d1e0b7f48"},
            "serviceaccount":{"name":"cronwheel","uid":"2"}},"sub":"system:serviceaccount:kube-system:cronwheel"}"#;
        let pod = PodIdentity::given("cronwheel-7c9f-x2x9z", "9f0c1a52-8d7e-4b1f-9a53-6c2d1e0b7f48");
        assert_eq!(named_in(&token(claims)), Ok(pod));
    }

    #[test]
    fn a_token_without_a_pod_is_refused_with_the_reason() {
        let unbound = r#"{"kubernetes.io":{"namespace":"kube-system"}}"#;
        let without_uid = r#"{"kubernetes.io":{"pod":{"name":"cronwheel-7c9f-x2x9z"}}}"#;
        for (text, fault) in [
            (token("{}"), NOT_BOUND),
            (token(unbound), NOT_BOUND),
            (token(without_uid), NOT_BOUND),
            (token("[1"), NO_JSON_WEB_TOKEN),
            ("opaque".to_owned(), NO_JSON_WEB_TOKEN),
            ("a.%%%.c".to_owned(), NO_JSON_WEB_TOKEN),
            (String::new(), NO_JSON_WEB_TOKEN),
        ] {
            assert_eq!(named_in(&text), Err(fault), "{text}");
        }
        let unreadable = Surroundings::Pod {
            namespace: "kube-system".to_owned(),
            token: None,
        };
        assert_eq!(unreadable.identity(), Err(format!("{TOKEN_FILE} cannot be read")));
    }

    #[test]
    fn outside_a_pod_each_process_has_its_own_uid() {
        let host = Surroundings::Host {
            name: "worker-1".to_owned(),
        };
        let [first, second] = [host.identity().unwrap(), host.identity().unwrap()];
        assert_eq!((first.name.as_str(), second.name.as_str()), ("worker-1", "worker-1"));
        assert_ne!(first.uid, second.uid);
    }
}
