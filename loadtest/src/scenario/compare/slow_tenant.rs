//! A tenant whose admission webhook accepts connections and never responds.

use serde_json::json;
use tokio::{net::TcpListener, task::JoinHandle};

use crate::target::Target;

/// The API server proceeds without the webhook after this time, just below the longest that it permits.
const TIMEOUT_SECONDS: u32 = 29;

/// The webhook, which exists until this value is dropped.
pub(super) struct SlowTenant {
    endpoint: JoinHandle<()>,
}

impl SlowTenant {
    /// Delays the creates of Jobs in some namespaces.
    pub(super) async fn install(target: &Target, namespaces: &[String]) -> anyhow::Result<SlowTenant> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let endpoint = tokio::spawn(async move {
            let mut connections = Vec::new();
            while let Ok((connection, _)) = listener.accept().await {
                connections.push(connection);
            }
        });
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": format!("slow-{}", namespaces.join("-"))},
            "webhooks": [{
                "name": "slow.example.com",
                "clientConfig": {"url": format!("https://{address}/")},
                "namespaceSelector": {"matchExpressions": [
                    {"key": "kubernetes.io/metadata.name", "operator": "In", "values": namespaces},
                ]},
                "rules": [{"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["jobs"]}],
                "failurePolicy": "Ignore",
                "timeoutSeconds": TIMEOUT_SECONDS,
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }],
        });
        target.kubectl().apply(&configuration.to_string())?;
        Ok(SlowTenant { endpoint })
    }
}

impl Drop for SlowTenant {
    fn drop(&mut self) {
        self.endpoint.abort();
    }
}
