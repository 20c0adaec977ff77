//! Events on Leases, for `kubectl describe`.

use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use serde_json::json;

use super::{LEASE_MAX_BYTES, LeaseApi, LeaseError, answered};
use crate::{
    coordination::LeaseKey,
    kube_api::{
        exchange::Request,
        objects::encode::to_bytes,
        paths::{CORE, namespaced},
    },
};

/// The component of Events on Leases.
const COMPONENT: &str = "cronwheel";

impl LeaseApi {
    /// Creates a warning Event on a Lease. The Lease need not exist.
    pub async fn warn(
        &self,
        key: &LeaseKey,
        reason: &str,
        message: &str,
        now: Timestamp,
        timeout: Duration,
    ) -> Result<(), LeaseError> {
        let lease = self.names.name(key);
        let seen = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let body = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                // Unique by the instant: a Lease has no two Events in one nanosecond.
                "name": format!("{lease}.{:x}", now.as_nanosecond()),
                "namespace": &*self.namespace,
            },
            "involvedObject": {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "namespace": &*self.namespace,
                "name": lease,
            },
            "type": "Warning",
            "reason": reason,
            "message": message,
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "reportingInstance": "",
            "firstTimestamp": seen,
            "lastTimestamp": seen,
            "count": 1,
        });
        let path = namespaced(CORE, &self.namespace, &["events"]);
        let request = Request::new(Method::POST, path).json(to_bytes(&body));
        let sent = self.send(request, LEASE_MAX_BYTES, timeout).await;
        answered(&format!("telling of Lease {lease}"), sent).map(drop)
    }
}
