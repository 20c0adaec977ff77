//! An admission webhook whose endpoint accepts connections and never responds.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use tokio::{net::TcpListener, task::JoinHandle};

use super::{cron_jobs::cron_jobs, group::Group, n_slots};
use crate::kubernetes::Namespace;

/// How long the API server waits for the webhook for each create. Then the create proceeds without it.
const WEBHOOK_TIMEOUT_SECONDS: u16 = 10;

/// A webhook for the creates of Jobs in one namespace. It never responds, and its failure policy ignores that.
struct DeadWebhook {
    name: String,
    n_connections: Arc<AtomicUsize>,
    endpoint: JoinHandle<()>,
}

impl DeadWebhook {
    async fn install(namespace: &Namespace) -> DeadWebhook {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let n_connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&n_connections);
        let endpoint = tokio::spawn(async move {
            let mut connections = Vec::new();
            while let Ok((connection, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                connections.push(connection);
            }
        });
        let name = format!("dead-{}", namespace.name);
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [{
                "name": "dead.example.com",
                "clientConfig": {"url": format!("https://{address}/")},
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace.name}},
                "rules": [{"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["jobs"]}],
                "failurePolicy": "Ignore",
                "timeoutSeconds": WEBHOOK_TIMEOUT_SECONDS,
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }],
        });
        let kubeconfig = &namespace.control_plane.controller_kubeconfig;
        let file = kubeconfig.with_file_name(format!("{name}.json"));
        fs::write(&file, configuration.to_string()).expect("a file");
        namespace.kubectl(&["apply", "-f", &file.to_string_lossy()]).await;
        DeadWebhook {
            name,
            n_connections,
            endpoint,
        }
    }

    /// Removes the webhook. Returns how often the API server connected to it.
    async fn remove(self, namespace: &Namespace) -> usize {
        namespace
            .kubectl(&["delete", "validatingwebhookconfiguration", &self.name])
            .await;
        self.endpoint.abort();
        self.n_connections.load(Ordering::Relaxed)
    }
}

/// One replica drains while the creates of the first slot are in flight.
pub(super) async fn dead_webhook_delays_jobs_and_loses_none(namespace: Namespace) {
    let mut group = Group::start(namespace, 2, 20).await;
    let webhook = DeadWebhook::install(&group.namespace).await;
    group.sleep_until(0, 3).await;
    let took = group.end(1).await;
    assert!(took < Duration::from_secs(25), "{took:?}");
    group.sleep_until(n_slots() - 1, 28).await;
    let n_connections = webhook.remove(&group.namespace).await;
    assert!(n_connections >= cron_jobs().count(), "{n_connections} connections");
    group.finish(n_slots()).await;
}
