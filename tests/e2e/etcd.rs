//! Objects written directly into etcd: CronJobs that no current API server would accept, since old ones may exist there,
//! and objects with a past.
//!
//! The API server reads JSON there as well as its own encoding, sets defaults, and does not validate.

use jiff::Timestamp;
use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::{
    exchange,
    kubernetes::{Namespace, cron_job, merge},
};

impl Namespace {
    /// Stores a new CronJob: `hello` with these changes.
    pub(super) async fn store_cron_job(&self, life: Value, changes: Value) {
        let mut object = cron_job(life);
        let now = Timestamp::now();
        let metadata = json!({
            "namespace": self.name,
            // The nanoseconds make it unique, because a case stores objects one after the other.
            "uid": format!("00000000-0000-4000-{:04x}-{:012x}", now.as_second() & 0xffff, now.subsec_nanosecond()),
            "creationTimestamp": Timestamp::from_second(now.as_second()).expect("an instant").to_string(),
            "generation": 1,
        });
        merge(&mut object, json!({"metadata": metadata}));
        merge(&mut object, changes);
        self.store("cronjobs", &object).await;
    }

    /// Changes the stored `hello`.
    pub(super) async fn change_stored_cron_job(&self, changes: Value) {
        let mut object = self.cron_job().await;
        merge(&mut object, changes);
        self.store("cronjobs", &object).await;
    }

    /// Stores an object of the group `batch` as it is.
    pub(super) async fn store(&self, resource: &str, object: &Value) {
        let name = object["metadata"]["name"].as_str().expect("a name");
        let bytes = |text: String| ByteString(text.into_bytes());
        let body = json!({
            "key": bytes(format!("/registry/{resource}/{}/{name}", self.name)),
            "value": bytes(object.to_string()),
        });
        let address = self.control_plane.etcd_url.trim_start_matches("http://");
        let stored = exchange::post(address, "/v3/kv/put", &body).await;
        stored.unwrap_or_else(|| panic!("{}: {name} is not stored", self.name));
    }
}
