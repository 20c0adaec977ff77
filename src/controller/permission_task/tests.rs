//! Tests of the permission checks, against an API server that denies the permissions named by a test.

use std::sync::{Arc, Mutex};

use serde_json::json;

use super::*;
use crate::{
    controller::tests::{
        captured_log::CapturedLog,
        fake_server::{self, Received, Response},
    },
    shard::BootInstant,
    telemetry::metrics::Metrics,
};

/// Denies the listed permissions, each a verb, resource and namespace.
#[derive(Clone, Default)]
struct FakeApi(Arc<Mutex<Fake>>);

#[derive(Default)]
struct Fake {
    denied: Vec<[&'static str; 3]>,
    /// The answer to every review; `None` for decisions.
    failure: Option<Response>,
    reviews: Vec<String>,
}

impl FakeApi {
    fn respond(&self, received: &Received) -> Response {
        let mut fake = self.0.lock().unwrap();
        let attributes = &received.body["spec"]["resourceAttributes"];
        let text = |field: &str| attributes[field].as_str().unwrap_or_default();
        let resource = match text("subresource") {
            "" => text("resource").to_owned(),
            subresource => [text("resource"), subresource].join("/"),
        };
        // Only the rights on policies are for one object.
        let place = [text("namespace"), text("name")].concat();
        let permission = [text("verb"), &resource, &place];
        fake.reviews.push(permission.join(" "));
        if let Some(failure) = &fake.failure {
            return failure.clone();
        }
        Response::Object(json!({"status": {"allowed": !fake.denied.contains(&permission)}}))
    }

    fn client(&self, clock: &Clock) -> ApiClient {
        let api = self.clone();
        fake_server::client(clock, 1, move |received| std::future::ready(api.respond(&received)))
    }
}

struct Bench {
    api: FakeApi,
    metrics: Metrics,
    clock: Clock,
}

impl Bench {
    /// Starts the task.
    fn start(scopes: &[Scope], lease_scope: Scope, denied: &[[&'static str; 3]]) -> Bench {
        Bench::start_with_policies(scopes, lease_scope, denied, &[])
    }

    /// Starts the task of a replica that reads these policies.
    fn start_with_policies(
        scopes: &[Scope],
        lease_scope: Scope,
        denied: &[[&'static str; 3]],
        policies: &[&str],
    ) -> Bench {
        let bench = Bench {
            api: FakeApi::default(),
            metrics: Metrics::register(),
            clock: Clock::simulated("2026-11-01T12:00:00Z".parse().unwrap()),
        };
        bench.api.0.lock().unwrap().denied = denied.to_vec();
        let task = PermissionTask {
            api: bench.api.client(&bench.clock),
            scopes: scopes.to_vec(),
            lease_scope,
            selects_namespaces: false,
            reads_calendars: false,
            policies: policies.iter().map(|name| Box::from(*name)).collect(),
            clock: bench.clock.clone(),
            api_metrics: bench.metrics.dispatch.api.clone(),
            snapshot: bench.metrics.permissions.clone(),
        };
        tokio::spawn(task.run());
        bench
    }

    fn missing(&self) -> Vec<String> {
        let missing = self.metrics.permissions.borrow();
        missing.iter().map(ToString::to_string).collect()
    }

    fn take_reviews(&self) -> Vec<String> {
        std::mem::take(&mut self.api.0.lock().unwrap().reviews)
    }
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

fn namespace(name: &str) -> Scope {
    Scope::Namespace(name.into())
}

#[tokio::test(start_paused = true)]
async fn a_missing_permission_is_published_until_it_is_granted() {
    let denied = [["create", "jobs", "b"]];
    let bench = Bench::start(&[namespace("a"), namespace("b")], namespace("kube-system"), &denied);
    pass(1).await;
    assert_eq!(bench.missing(), ["create jobs in namespace b: no Job starts"]);
    let series = "cronwheel_permissions_missing{resource=\"jobs\",verb=\"create\"}";
    assert!(bench.metrics.text().contains(&format!("{series} 1")));
    bench.api.0.lock().unwrap().denied.clear();
    pass(11).await;
    assert_eq!(bench.missing(), Vec::<String>::new());
    assert!(bench.metrics.text().contains(&format!("{series} 0")));
}

#[tokio::test(start_paused = true)]
async fn lease_permissions_are_checked_in_the_namespace_of_the_leases() {
    let bench = Bench::start(&[Scope::Cluster], namespace("elsewhere"), &[]);
    pass(1).await;
    let reviews = bench.take_reviews();
    assert!(reviews.contains(&"create jobs ".to_owned()), "{reviews:?}");
    let of_leases: Vec<&String> = reviews.iter().filter(|review| review.contains("leases")).collect();
    assert!(of_leases.contains(&&"patch leases elsewhere".to_owned()), "{reviews:?}");
    assert!(
        of_leases.iter().all(|review| review.ends_with(" elsewhere")),
        "{reviews:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_rights_on_policies_are_checked_for_a_policy_that_is_named() {
    let resource = "validatingadmissionpolicybindings";
    let denied = [["get", resource, "writes"]];
    let bench = Bench::start_with_policies(&[Scope::Cluster], namespace("a"), &denied, &["writes", "deletes"]);
    pass(1).await;
    let consequence = "nothing tells that the admission policy against the built-in controller is gone";
    assert_eq!(
        bench.missing(),
        [format!("get {resource} in all namespaces: {consequence}")]
    );
    let series = format!("cronwheel_permissions_missing{{resource=\"{resource}\",verb=\"get\"}} 1\n");
    assert!(bench.metrics.text().contains(&series));
    let reviews = bench.take_reviews();
    assert!(
        reviews.contains(&"get validatingadmissionpolicies writes".to_owned()),
        "{reviews:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn without_missing_permissions_only_a_refusal_triggers_a_check() {
    let bench = Bench::start(&[Scope::Cluster], namespace("kube-system"), &[]);
    pass(1).await;
    bench.take_reviews();
    pass(3_600).await;
    assert_eq!(bench.take_reviews(), Vec::<String>::new());
    bench.api.0.lock().unwrap().denied = vec![["watch", "jobs", ""]];
    let failures = &bench.metrics.dispatch.api.failures;
    failures.refused(["watch", "jobs"], 403, "no", BootInstant::after_boot(Duration::ZERO));
    pass(11).await;
    assert_eq!(bench.missing(), ["watch jobs in all namespaces: no Job starts"]);
    assert_eq!(bench.take_reviews(), ["watch jobs "]);
}

#[tokio::test(start_paused = true)]
async fn without_access_reviews_nothing_counts_as_missing() {
    for failure in [
        Response::status(404, "NotFound", "no such resource"),
        Response::status(503, "ServiceUnavailable", "starting"),
    ] {
        let log = CapturedLog::begin();
        let bench = Bench::start(&[Scope::Cluster], namespace("kube-system"), &[["create", "jobs", ""]]);
        bench.api.0.lock().unwrap().failure = Some(failure);
        pass(15).await;
        assert!(bench.missing().is_empty());
        assert_eq!(bench.take_reviews().len(), 2);
        assert_eq!(log.n_lines_with("a request failed and is repeated"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn only_missing_permissions_are_checked_again() {
    let scopes: Vec<Scope> = (0..100).map(|number| namespace(&format!("team-{number}"))).collect();
    let bench = Bench::start(&scopes, namespace("kube-system"), &[["create", "jobs", "team-7"]]);
    pass(1).await;
    assert!(bench.take_reviews().len() > 1_000);
    pass(60).await;
    let reviews = bench.take_reviews();
    assert!(
        reviews.iter().all(|review| review == "create jobs team-7") && (1..=6).contains(&reviews.len()),
        "{reviews:?}"
    );
    bench.api.0.lock().unwrap().failure = Some(Response::status(404, "NotFound", "no such resource"));
    pass(20).await;
    assert_eq!(bench.missing().len(), 1, "the last result stays");
}
