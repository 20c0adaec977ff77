//! A client that writes one Lease repeatedly. It measures the cost of a write while shards change hands.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Context as _;
use bytes::Bytes;
use http::Method;
use jiff::Timestamp;
use serde_json::json;
use tokio::task::JoinHandle;

use crate::bare_client::BareClient;

/// The Lease of the probe, which replicas ignore.
pub(super) const PROBE_LEASE: &str = "loadtest-probe";

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";

/// The time from a response to the next write.
const PAUSE: Duration = Duration::from_millis(50);

/// A client that writes one Lease repeatedly.
pub(super) struct LeaseProbe {
    is_over: Arc<AtomicBool>,
    writes: JoinHandle<anyhow::Result<Vec<Duration>>>,
}

impl LeaseProbe {
    pub(super) async fn begin(client: BareClient) -> anyhow::Result<LeaseProbe> {
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": PROBE_LEASE},
            "spec": {"holderIdentity": "loadtest"},
        });
        client.send(0, Method::POST, LEASES, lease.to_string().into()).await?;
        let is_over = Arc::new(AtomicBool::new(false));
        let writes = tokio::spawn(write_until(client, Arc::clone(&is_over)));
        Ok(LeaseProbe { is_over, writes })
    }

    /// Stops the probe. Returns the time from request to response of each write.
    pub(super) async fn end(self) -> anyhow::Result<Vec<Duration>> {
        self.is_over.store(true, Ordering::Relaxed);
        self.writes.await.context("the probe has panicked")?
    }
}

async fn write_until(client: BareClient, is_over: Arc<AtomicBool>) -> anyhow::Result<Vec<Duration>> {
    let path = format!("{LEASES}/{PROBE_LEASE}");
    let mut writes = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let renewal = json!({"spec": {"renewTime": format!("{:.6}", Timestamp::now())}});
        let begin = Instant::now();
        client
            .send(0, Method::PATCH, &path, Bytes::from(renewal.to_string()))
            .await?;
        writes.push(begin.elapsed());
        tokio::time::sleep(PAUSE).await;
    }
    Ok(writes)
}
