//! The short watch that shows whether any CronJob has changed.

use std::time::Duration;

use apisim::{Fault, Rule, Verb};
use cronwheel::{
    kube_api::watch::lists::{current_version, unchanged_through},
    shard::{ResourceVersion, Scope},
};
use kube::Client;
use serde_json::json;

use super::Bench;

impl Bench {
    fn controller(&self) -> Client {
        Client::new(self.api.client("controller"), "default")
    }

    /// The current version of the CronJobs.
    async fn current(&self) -> ResourceVersion {
        let version = current_version(self.controller(), &Scope::Cluster, self.count).await;
        version.unwrap()
    }

    async fn suspend(&self, cron_job: &str) {
        let change = json!({"spec": {"suspend": true}});
        self.send_to("cronjobs", "PATCH", cron_job, Some(change)).await;
    }

    async fn unchanged_through(&self, since: ResourceVersion) -> Option<ResourceVersion> {
        unchanged_through(self.controller(), &Scope::Cluster, since).await
    }
}

#[tokio::test(start_paused = true)]
async fn cron_jobs_are_unchanged_after_a_write_of_a_job() {
    let bench = Bench::new();
    bench.create_cron_job("a").await;
    let since = bench.current().await;
    bench.create("some-job", None).await;
    let current = bench.current().await;
    assert!(since < current);
    let through = tokio::time::timeout(Duration::from_millis(1_100), bench.unchanged_through(since)).await;
    assert_eq!(through, Ok(Some(current)));
}

#[tokio::test(start_paused = true)]
async fn any_write_of_a_cron_job_is_a_change() {
    for method in ["POST", "PATCH", "DELETE"] {
        let bench = Bench::new();
        bench.create_cron_job("a").await;
        let since = bench.current().await;
        match method {
            "POST" => drop(bench.create_cron_job("b").await),
            "PATCH" => bench.suspend("a").await,
            _ => drop(bench.send_to("cronjobs", method, "a", None).await),
        }
        assert_eq!(bench.unchanged_through(since).await, None, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn watch_from_a_compacted_version_proves_nothing() {
    let bench = Bench::new();
    bench.create_cron_job("a").await;
    let since = bench.current().await;
    bench.api.faults().add(Rule {
        verbs: vec![Verb::Watch],
        ..Rule::new(Fault::Expired)
    });
    assert_eq!(bench.unchanged_through(since).await, None);
}
