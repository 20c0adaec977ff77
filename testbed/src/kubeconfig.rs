//! kubeconfig files. JSON is YAML, so no YAML writer is needed.

use std::path::Path;

use serde_json::{Value, json};

/// How a client authenticates.
#[derive(Debug)]
pub(crate) enum Credential<'a> {
    /// The client certificate and key with this name in the folder of keys.
    Certificate(&'a str),
    /// A bearer token.
    Token(&'a str),
}

/// Formats a kubeconfig with one cluster, one user and one context.
pub(crate) fn text(server: &str, keys: &Path, credential: &Credential<'_>) -> String {
    let user: Value = match credential {
        Credential::Certificate(name) => json!({
            "client-certificate": keys.join(format!("{name}.crt")),
            "client-key": keys.join(format!("{name}.key")),
        }),
        Credential::Token(token) => json!({ "token": token }),
    };
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "testbed",
            "cluster": { "server": server, "certificate-authority": keys.join("ca.crt") },
        }],
        "users": [{ "name": "user", "user": user }],
        "contexts": [{ "name": "testbed", "context": { "cluster": "testbed", "user": "user" } }],
        "current-context": "testbed",
    });
    format!("{config:#}\n")
}
