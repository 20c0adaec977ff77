//! The short watch that shows whether any CronJob has changed.

use std::time::Duration;

use apisim::{Fault, Rule, Verb};
use cronwheel::{
    kube_api::watch::lists::{current_version, is_unchanged},
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

    async fn is_unchanged(&self, since: ResourceVersion, current: ResourceVersion) -> bool {
        is_unchanged(self.controller(), &Scope::Cluster, since, current).await
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
    let is_unchanged = tokio::time::timeout(Duration::from_millis(1_100), bench.is_unchanged(since, current)).await;
    assert_eq!(is_unchanged, Ok(true));
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
        let current = bench.current().await;
        assert!(!bench.is_unchanged(since, current).await, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn bookmark_of_an_older_version_proves_nothing() {
    let bench = Bench::new();
    bench.create_cron_job("a").await;
    let since = bench.current().await;
    let later = ResourceVersion(since.0 + 1);
    assert!(!bench.is_unchanged(since, later).await);
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
    assert!(!bench.is_unchanged(since, since).await);
}
