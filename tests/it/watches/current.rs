//! The current versions, and the short watch that shows that nothing has changed.

use std::time::Duration;

use apisim::{Fault, Rule, Verb};
use cronwheel::{
    kube_api::watch::current::{Unchanged, current_versions, unchanged_through},
    shard::{ResourceVersion, ResourceVersions, Scope, WatchedResource},
};
use serde_json::json;

use super::Bench;

impl Bench {
    async fn current(&self) -> ResourceVersions {
        current_versions(&self.controller(), &Scope::Cluster).await.unwrap()
    }

    async fn change(&self, resource: &str, name: &str) {
        let change = json!({"metadata": {"annotations": {"changed": "yes"}}});
        self.send(resource, "PATCH", name, Some(change)).await;
    }

    async fn unchanged_through(&self, resource: WatchedResource, since: ResourceVersion) -> Option<Unchanged> {
        unchanged_through(&self.controller(), &Scope::Cluster, resource, since).await
    }
}

/// A server that reads from etcd would read every Job for a selector that selects none.
#[tokio::test(start_paused = true)]
async fn request_for_the_current_version_lists_one_object_from_the_quorum() {
    let bench = Bench::new().await;
    bench.create("some-job", None).await;
    let (client, queries) = bench.recording();
    let versions = current_versions(&client, &Scope::Cluster).await.unwrap();
    assert_eq!(versions.jobs, bench.version("some-job").await);
    assert_eq!(
        versions.cron_jobs, versions.jobs,
        "versions are those of the whole store"
    );
    assert_eq!(*queries.lock().unwrap(), ["&limit=1", "&limit=1"]);
}

#[tokio::test(start_paused = true)]
async fn refused_request_for_the_current_version_names_the_resource_and_the_code() {
    let bench = Bench::new().await;
    bench.fail_jobs(vec![Verb::List], 1, Fault::NotPermitted);
    let error = current_versions(&bench.controller(), &Scope::Cluster)
        .await
        .unwrap_err();
    assert_eq!((error.resource, error.code), ("jobs", Some(403)));
}

#[tokio::test(start_paused = true)]
async fn resource_is_unchanged_after_a_write_of_another_resource() {
    let bench = Bench::new().await;
    for (resource, other) in [(WatchedResource::CronJobs, "jobs"), (WatchedResource::Jobs, "cronjobs")] {
        let since = bench.current().await.jobs;
        match other {
            "jobs" => drop(bench.create("some-job", None).await),
            _ => drop(bench.create_cron_job("some-cron-job").await),
        }
        let current = bench.current().await.jobs;
        assert!(since < current);
        let through = bench.unchanged_through(resource, since);
        let through = tokio::time::timeout(Duration::from_millis(1_100), through).await;
        let through = through.unwrap().unwrap();
        assert_eq!((through.since, through.through), (since, current), "{resource:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn resource_is_unchanged_since_its_last_write() {
    for (resource, path) in [(WatchedResource::CronJobs, "cronjobs"), (WatchedResource::Jobs, "jobs")] {
        for method in ["POST", "PATCH", "DELETE"] {
            let bench = Bench::new().await;
            let create = async |name: &str| match resource {
                WatchedResource::CronJobs => drop(bench.create_cron_job(name).await),
                WatchedResource::Jobs => drop(bench.create(name, None).await),
            };
            create("a").await;
            let since = bench.current().await.jobs;
            match method {
                "POST" => create("b").await,
                "PATCH" => bench.change(path, "a").await,
                _ => drop(bench.send(path, method, "a", None).await),
            }
            let changed = bench.current().await.jobs;
            let unchanged = bench.unchanged_through(resource, since).await.unwrap();
            assert_eq!(unchanged.since, changed, "{method} {path}");
            assert!(unchanged.through >= changed, "{method} {path}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn watch_from_a_compacted_version_proves_nothing() {
    let bench = Bench::new().await;
    bench.create_cron_job("a").await;
    let since = bench.current().await.cron_jobs;
    bench.api.faults().add(Rule {
        verbs: vec![Verb::Watch],
        ..Rule::new(Fault::Expired)
    });
    assert_eq!(bench.unchanged_through(WatchedResource::CronJobs, since).await, None);
}

/// A server that vanishes neither answers nor ends the watch.
#[tokio::test(start_paused = true)]
async fn silent_watch_proves_nothing_and_ends() {
    let bench = Bench::new().await;
    bench.create_cron_job("a").await;
    let since = bench.current().await.cron_jobs;
    bench.api.faults().add(Rule {
        verbs: vec![Verb::Watch],
        ..Rule::new(Fault::StallWatch)
    });
    let through = bench.unchanged_through(WatchedResource::CronJobs, since);
    assert_eq!(tokio::time::timeout(Duration::from_secs(5), through).await, Ok(None));
}
