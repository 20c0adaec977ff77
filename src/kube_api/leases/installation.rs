//! The constants of the installation in a `ConfigMap`. The first replica writes it, all others read it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::json;

use super::{LEASE_MAX_BYTES, LeaseApi, LeaseError, answered};
use crate::{
    coordination::{Installation, InstallationName, LeaseNames},
    kube_api::{
        exchange::Request,
        objects::{classify::Refusal, encode::to_bytes},
        paths::{CORE, namespaced},
    },
    shard::ShardCount,
};

const SHARD_COUNT: &str = "shard-count";
const HASH_SCHEME: &str = "hash-scheme";

#[derive(Deserialize)]
struct ConfigMapObject {
    #[serde(default)]
    data: Option<BTreeMap<String, String>>,
}

impl LeaseApi {
    /// Returns a client for the installation with this name.
    #[must_use]
    pub fn of_installation(self, installation: InstallationName) -> LeaseApi {
        let count = self.names.count;
        LeaseApi {
            names: Arc::new(LeaseNames { installation, count }),
            ..self
        }
    }

    /// Returns the name of the installation.
    pub fn installation_name(&self) -> &InstallationName {
        &self.names.installation
    }

    /// Returns the namespace of the Leases.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns the constants of the installation, and writes `ours` if there are none yet.
    pub async fn installation(&self, ours: &Installation, timeout: Duration) -> Result<Installation, LeaseError> {
        if let Some(known) = self.known_installation(timeout).await? {
            return Ok(known);
        }
        if self.make_installation(ours, timeout).await? {
            return Ok(ours.clone());
        }
        // Another replica created it first.
        let known = self.known_installation(timeout).await?;
        known.ok_or_else(|| LeaseError::Unreadable {
            request: format!("creating ConfigMap {}", self.config_map()),
            message: "it is there and is not there".to_owned(),
        })
    }

    /// Returns the constants of the installation; `None` before the first replica wrote them.
    pub async fn known_installation(&self, timeout: Duration) -> Result<Option<Installation>, LeaseError> {
        let what = format!("reading ConfigMap {}", self.config_map());
        let name = self.names.installation.config_map();
        let path = namespaced(CORE, &self.namespace, &["configmaps", &name]);
        let sent = self
            .send(Request::new(Method::GET, path), LEASE_MAX_BYTES, timeout)
            .await;
        if let Ok(sent) = &sent
            && sent.status == StatusCode::NOT_FOUND
            && Refusal::read(sent).is_status
        {
            return Ok(None);
        }
        let answer = answered(&what, sent)?;
        let object: ConfigMapObject =
            serde_json::from_slice(&answer.body).map_err(|error| super::unreadable(&what, &error.into()))?;
        self.read_installation(&object.data.unwrap_or_default()).map(Some)
    }

    /// Writes the constants. Returns whether this call created them.
    async fn make_installation(&self, ours: &Installation, timeout: Duration) -> Result<bool, LeaseError> {
        let what = format!("creating ConfigMap {}", self.config_map());
        let body = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": self.names.installation.config_map()},
            "data": {SHARD_COUNT: ours.shard_count.get().to_string(), HASH_SCHEME: ours.hash_scheme},
            // The constants hold for the lifetime of the installation.
            "immutable": true,
        });
        let path = namespaced(CORE, &self.namespace, &["configmaps"]);
        let request = Request::new(Method::POST, path).json(to_bytes(&body));
        let sent = self.send(request, LEASE_MAX_BYTES, timeout).await;
        if let Ok(sent) = &sent
            && sent.status == StatusCode::CONFLICT
            && Refusal::read(sent).reason == "AlreadyExists"
        {
            return Ok(false);
        }
        answered(&what, sent).map(|_| true)
    }

    fn read_installation(&self, data: &BTreeMap<String, String>) -> Result<Installation, LeaseError> {
        let value = |key: &'static str| data.get(key).ok_or_else(|| self.fault(key, "is missing".to_owned()));
        let text = value(SHARD_COUNT)?;
        let number = text
            .parse()
            .map_err(|_| self.fault(SHARD_COUNT, format!("is {text:?}, and must be a number")))?;
        let shard_count = ShardCount::new(number)
            .map_err(|error| self.fault(SHARD_COUNT, format!("is {text:?}, and cannot be: {error}")))?;
        Ok(Installation {
            shard_count,
            hash_scheme: value(HASH_SCHEME)?.as_str().into(),
        })
    }

    fn fault(&self, key: &'static str, fault: String) -> LeaseError {
        LeaseError::Installation {
            config_map: self.config_map(),
            key,
            fault,
        }
    }

    fn config_map(&self) -> String {
        format!("{}/{}", self.namespace, self.names.installation.config_map())
    }
}
