//! The API server and its clock, as the user and the nodes see them: without faults.

use apisim::{Api, Options, WallClock};
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};

use super::scenario::{CronJob, start};

pub(super) const NAMESPACE: &str = "default";

pub(super) struct Cluster {
    pub(super) api: Api,
    clock: WallClock,
    client: Client,
}

impl Cluster {
    pub(super) fn new(seed: u64) -> Cluster {
        let clock = WallClock::starting_at(start());
        let options = Options {
            seed,
            ..Options::default()
        };
        let api = Api::new(options, clock.clone());
        Cluster {
            client: Client::new(api.client("nodes"), NAMESPACE),
            api,
            clock,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Returns at an instant.
    pub(super) async fn stop_at(&self, instant: Timestamp) {
        let remaining = instant.duration_since(self.now());
        tokio::time::sleep(remaining.try_into().unwrap_or_default()).await;
    }

    pub(super) async fn create_cron_job(&self, cron_job: &CronJob) {
        let object = json!({
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": cron_job.name},
            "spec": {
                "schedule": cron_job.schedule(),
                "concurrencyPolicy": cron_job.policy.as_str(),
                "startingDeadlineSeconds": cron_job.deadline_seconds,
                "successfulJobsHistoryLimit": cron_job.complete_max,
                "failedJobsHistoryLimit": cron_job.failed_max,
                "jobTemplate": {"spec": {"template": {"spec": {
                    "restartPolicy": "Never",
                    "containers": [{"name": "work", "image": "work"}],
                }}}},
            },
        });
        self.send("POST", &path("cronjobs", ""), Some(&object)).await.unwrap();
    }

    pub(super) async fn list(&self, resource: &str) -> Vec<Value> {
        let list = self.send("GET", &path(resource, ""), None).await.unwrap();
        list["items"].as_array().unwrap().clone()
    }

    /// The cursor of a CronJob as it is stored.
    pub(super) async fn last_schedule_time(&self, cron_job: &str) -> Option<Timestamp> {
        let object = self.send("GET", &path("cronjobs", cron_job), None).await.unwrap();
        object["status"]["lastScheduleTime"].as_str()?.parse().ok()
    }

    /// Ends a Job, unless it is gone.
    pub(super) async fn end_job(&self, name: &str, is_failed: bool) {
        let Ok(mut job) = self.send("GET", &path("jobs", name), None).await else {
            return;
        };
        let now = Timestamp::from_second(self.now().as_second()).unwrap().to_string();
        let kinds = if is_failed {
            ["Failed", "FailureTarget"]
        } else {
            ["Complete", "SuccessCriteriaMet"]
        };
        job["status"] = json!({
            "startTime": job["metadata"]["creationTimestamp"],
            "conditions": kinds.map(|kind| json!({"type": kind, "status": "True"})),
        });
        if !is_failed {
            job["status"]["completionTime"] = now.into();
        }
        let path = path("jobs", &format!("{name}/status"));
        self.send("PUT", &path, Some(&job)).await.unwrap();
    }

    async fn send(&self, method: &str, path: &str, object: Option<&Value>) -> Result<Value, kube::Error> {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json");
        let body = object.map(|object| object.to_string().into_bytes()).unwrap_or_default();
        self.client.request(request.body(body).unwrap()).await
    }
}

fn path(resource: &str, name: &str) -> String {
    let path = format!("/apis/batch/v1/namespaces/{NAMESPACE}/{resource}/{name}");
    path.trim_end_matches('/').to_owned()
}
