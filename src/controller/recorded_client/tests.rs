//! Tests of the counts, against the in-memory API.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use apisim::{Api, Options, WallClock};
use futures::StreamExt as _;
use tower::{BoxError, Service as _};

use super::*;
use crate::{
    coordination::{LeaseKey, LeaseWrite},
    kube_api::{
        leases::LeaseApi,
        watch::{self, current::current_versions},
    },
    shard::{ResourceVersion, Scope, ShardCount},
    telemetry::metrics::Metrics,
};

const BEGUN: &str = "2026-11-01T12:00:00Z";

const TIMEOUT: Duration = Duration::from_secs(10);

struct Bench {
    clock: Clock,
    metrics: Metrics,
    /// The client whose requests are recorded.
    client: Client,
}

impl Bench {
    fn of(client: Client) -> Bench {
        let (clock, metrics) = (Clock::simulated(BEGUN.parse().unwrap()), Metrics::register());
        Bench {
            client: recorded_client(client, clock.clone(), metrics.dispatch.api.clone()),
            clock,
            metrics,
        }
    }

    fn leases(&self) -> LeaseApi {
        LeaseApi::new(self.client.clone(), "default", ShardCount::default(), None)
    }

    /// The recorded requests, each with its verb, resource, code and number.
    fn recorded(&self) -> Vec<(String, u64)> {
        let text = self.metrics.text();
        let lines = text
            .lines()
            .filter_map(|line| line.strip_prefix("cronwheel_api_requests_total"));
        let series = lines.map(|line| line.rsplit_once(' ').unwrap());
        let counts = series.map(|(labels, n)| (labels.to_owned(), n.parse().unwrap()));
        counts.filter(|(_, n)| *n > 0).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn every_request_for_lists_watches_and_leases_is_counted_by_its_kind() {
    let api = Api::new(Options::default(), WallClock::starting_at(BEGUN.parse().unwrap()));
    let (n_received, server) = (Arc::<AtomicU64>::default(), api.client("replica"));
    let counter = Arc::clone(&n_received);
    let counting = tower::service_fn(move |request: Request<Body>| {
        counter.fetch_add(1, Ordering::Relaxed);
        server.clone().call(request)
    });
    let bench = Bench::of(Client::new(counting, "default"));
    let (leases, now) = (bench.leases(), bench.clock.now());
    let lease = LeaseKey::Member("a".into());
    leases.create(&LeaseWrite::to(lease.clone()), now, TIMEOUT).await;
    let version = leases.list(TIMEOUT).await.unwrap().resource_version;
    leases
        .patch(&LeaseWrite::to(lease.clone()), version, now, TIMEOUT)
        .await;
    leases.read(&lease, TIMEOUT).await;
    leases.warn(&lease, "Reason", "message", now, TIMEOUT).await.unwrap();
    let mut events = pin!(leases.watch(version, TIMEOUT));
    let Some(Ok(_)) = events.next().await else {
        panic!("the Lease was changed after the list");
    };
    leases.delete(&lease, ResourceVersion(1), TIMEOUT).await;

    let shop = Scope::Namespace("shop".into());
    current_versions(&bench.client, &shop).await.unwrap();
    for scope in [Scope::Cluster, shop] {
        let cron_jobs = watch::cron_jobs(bench.client.clone(), scope.clone(), Arc::default());
        // The list begins, is complete, and the watch is open.
        assert_eq!(cron_jobs.take(3).count().await, 3);
        let jobs = watch::jobs(bench.client.clone(), scope);
        assert_eq!(jobs.take(3).count().await, 3);
    }

    let recorded = bench.recorded();
    let n_recorded: u64 = recorded.iter().map(|(_, n)| n).sum();
    assert_eq!(n_recorded, n_received.load(Ordering::Relaxed), "{recorded:?}");
    for (verb, resource, code, expected) in [
        ("create", "leases", 201, 1),
        ("patch", "leases", 200, 1),
        ("get", "leases", 200, 1),
        ("delete", "leases", 409, 1),
        ("list", "leases", 200, 1),
        ("watch", "leases", 200, 1),
        ("create", "events", 201, 1),
        ("list", "cronjobs", 200, 3),
        ("watch", "cronjobs", 200, 2),
        ("list", "jobs", 200, 3),
        ("watch", "jobs", 200, 2),
    ] {
        let labels = format!(r#"{{code="{code}",resource="{resource}",verb="{verb}"}}"#);
        assert!(recorded.contains(&(labels.clone(), expected)), "{labels}: {recorded:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_without_an_answer_in_time_is_counted_and_timed() {
    let silent = tower::service_fn(|_: Request<Body>| std::future::pending::<Result<http::Response<Body>, BoxError>>());
    let bench = Bench::of(Client::new(silent, "default"));
    assert!(bench.leases().list(TIMEOUT).await.is_err());
    let none = r#"{code="none",resource="leases",verb="list"}"#.to_owned();
    assert_eq!(bench.recorded(), [(none, 1)]);
    let duration = r#"cronwheel_api_request_duration_seconds_sum{resource="leases",verb="list"} 10"#;
    assert!(bench.metrics.text().lines().any(|line| line == duration));
}
