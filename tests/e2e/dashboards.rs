//! Runs every query of every panel and alert on a real Prometheus that scraped two working replicas, and compares
//! counts with the audit log. Then disturbs the replicas until every metric has changed.

mod disturbances;
mod panels;
mod prometheus;

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    thread::sleep,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use libtest_mimic::Trial;
use serde_json::{Value, json};
use testbed::{
    Options, Testbed, http_get,
    replica::{Replica, ReplicaSetup},
};

use self::prometheus::Prometheus;

const RBAC: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/manifests/rbac.yaml"));
const N_CRON_JOBS: usize = 20;
/// Long enough for two slots, and for a change of every metric that changes without faults.
const RUN: Duration = Duration::from_mins(3);
/// The windows of the queries. They cover the whole run.
const WINDOW: &str = "4m";

fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

/// Whether the replica at an address is ready.
fn is_ready(address: &str) -> bool {
    http_get(address, "/readyz").is_some_and(|(code, _)| code == 200)
}

fn wait_for(what: &str, condition: impl Fn() -> bool) {
    for _ in 0..600 {
        if condition() {
            return;
        }
        sleep(Duration::from_millis(100));
    }
    panic!("not within a minute: {what}");
}

fn cron_jobs() -> String {
    let job = |number: usize| {
        let pod = json!({
            "metadata": {"annotations": {"run-for": "2s"}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]},
        });
        json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": format!("minutely-{number}")},
            "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": pod}}},
        })
    };
    // This CronJob is in trouble, because it never fires.
    let mut invalid = job(N_CRON_JOBS);
    invalid["spec"]["schedule"] = json!("0 0 31 2 *");
    let items: Vec<Value> = (0..N_CRON_JOBS).map(job).chain([invalid]).collect();
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

/// Starts a replica with few requests in flight, and with too little memory for the templates of later CronJobs.
fn start_replica(number: usize, kubeconfig: &Path, folder: &Path, address: &str) -> Replica {
    start_replica_with(
        number,
        kubeconfig,
        folder,
        address,
        &["--max-template-memory=1", "--max-inflight=10"],
    )
}

fn start_replica_with(number: usize, kubeconfig: &Path, folder: &Path, address: &str, arguments: &[&str]) -> Replica {
    let setup = ReplicaSetup {
        program: env!("CARGO_BIN_EXE_cronwheel").into(),
        kubeconfig: kubeconfig.to_owned(),
        lease_namespace: "kube-system".to_owned(),
        pod_name: format!("cronwheel-{number}"),
        pod_uid: format!("uid-{number}"),
        revision: "r1".to_owned(),
        address: address.to_owned(),
        // It matches all namespaces, and the metric of namespaces exists only with a selector.
        arguments: ["--namespace-selector=kubernetes.io/metadata.name"]
            .iter()
            .chain(arguments)
            .map(ToString::to_string)
            .collect(),
        log: folder.join(format!("{number}.log")),
    };
    Replica::start(setup).unwrap()
}

/// The number of the account's requests with this verb, resource and subresource that got this status code.
fn audited(log: &Path, [verb, resource, subresource]: [&str; 3], code: u16) -> usize {
    let text = fs::read_to_string(log).unwrap();
    let requests = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let is_it = |request: &Value| {
        request["user"]["username"] == "system:serviceaccount:kube-system:cronwheel"
            && request["stage"] == "ResponseComplete"
            && request["verb"] == verb
            && request["objectRef"]["resource"] == resource
            && request["objectRef"]["subresource"].as_str().unwrap_or_default() == subresource
            && request["responseStatus"]["code"] == code
    };
    requests.filter(is_it).count()
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Waits for the next time at which the clock shows this second of a minute.
fn wait_for_second(second: u64) {
    sleep(Duration::from_secs((119 + second - unix_seconds() % 60) % 60 + 1));
}

/// Posts JSON and asserts a 200 response.
fn post_json(address: &str, path: &str, body: &Value) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let response = runtime.unwrap().block_on(crate::exchange::post(address, path, body));
    assert!(response.is_some(), "{path}");
}

fn folder() -> PathBuf {
    let folder = std::env::temp_dir().join(format!("cronwheel-dashboards-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

pub(super) fn trials() -> impl Iterator<Item = Trial> {
    let case = || {
        every_query_returns_data_and_counts_agree_with_the_audit_log();
        Ok(())
    };
    // It takes eight minutes.
    std::iter::once(Trial::test("dashboards::every_query_returns_data", case).with_ignored_flag(true))
}

fn every_query_returns_data_and_counts_agree_with_the_audit_log() {
    let folder = folder();
    let mut testbed = Testbed::start(Options {
        audit: true,
        ..Options::default()
    })
    .unwrap();
    testbed.kubectl().apply(RBAC).unwrap();
    let kubeconfig = testbed.token_kubeconfig("kube-system", "cronwheel").unwrap();
    let replicas: Vec<String> = (0..4).map(|_| free_address()).collect();
    let prometheus = Prometheus::start(&folder, &replicas);
    let begun = unix_seconds();
    let first = start_replica(1, &kubeconfig, &folder, &replicas[0]);
    wait_for("the first replica", || is_ready(&replicas[0]));
    testbed.kubectl().apply(&cron_jobs()).unwrap();
    sleep(Duration::from_secs(5));
    // The second replica takes half of the shards.
    let second = start_replica(2, &kubeconfig, &folder, &replicas[1]);
    sleep(RUN);
    // No request is in flight in the middle of a minute.
    wait_for_second(40);
    assert_data(&prometheus);
    assert_rules_are_healthy(&prometheus);
    assert_equal_counts(&prometheus, &testbed.audit_log_path().unwrap());
    disturbances::run(
        &mut testbed,
        &folder,
        [&replicas[2], &replicas[3]],
        &mut [first, second],
    );
    panels::write_results(&prometheus, begun, unix_seconds());
    disturbances::assert_all_metrics_changed(&prometheus);
    testbed.stop().unwrap();
    fs::remove_dir_all(folder).unwrap();
}

/// Asserts that every query of every panel returns data, except those that have none while all is well.
fn assert_data(prometheus: &Prometheus) {
    let is_missing = |query: &panels::Query| prometheus.values(&query.expression(WINDOW, WINDOW)).is_empty();
    let queries = panels::queries();
    let missing: Vec<&str> = queries
        .iter()
        .filter(|query| !query.is_empty_while_well && is_missing(query))
        .map(|query| query.name.as_str())
        .collect();
    assert!(missing.is_empty(), "no data: {missing:#?}");
}

/// Asserts that every rule is evaluated without error, and that no critical alert fires.
fn assert_rules_are_healthy(prometheus: &Prometheus) {
    let rules = prometheus.rules();
    assert!(rules.len() > 30, "{}", rules.len());
    for rule in rules {
        assert_eq!(rule["health"], "ok", "{rule}");
        if rule["type"] == "alerting" {
            let is_page = rule["labels"]["severity"] == "critical";
            assert!(!is_page || rule["state"] != "firing", "{rule}");
        } else {
            let name = rule["name"].as_str().unwrap();
            assert!(!prometheus.values(name).is_empty(), "{name} has no data");
        }
    }
}

/// Asserts that the metrics agree with the API server's audit log.
fn assert_equal_counts(prometheus: &Prometheus, audit_log: &Path) {
    // The audit log and the last scrape may lag behind.
    sleep(Duration::from_secs(3));
    let requests = |labels: &str| format!("sum(cronwheel_api_requests_total{{{labels}}})");
    let created = audited(audit_log, ["create", "jobs", ""], 201);
    assert!(created >= 2 * N_CRON_JOBS, "{created}");
    for (expression, expected) in [
        (requests(r#"verb="create", resource="jobs", code="201""#), created),
        (
            r#"sum(cronwheel_instant_outcomes_total{outcome="created"})"#.to_owned(),
            created,
        ),
        ("sum(cronwheel_due_instants_total)".to_owned(), created),
        ("sum(cronwheel_lateness_seconds_count)".to_owned(), created),
        (
            requests(r#"verb="update", resource="cronjobs/status", code="200""#),
            audited(audit_log, ["update", "cronjobs", "status"], 200),
        ),
        (
            requests(r#"verb="delete", resource="jobs", code="200""#),
            audited(audit_log, ["delete", "jobs", ""], 200),
        ),
        ("max(cronwheel_dispatch_backlog)".to_owned(), 0),
        ("max(cronwheel_cron_jobs)".to_owned(), N_CRON_JOBS + 1),
        ("sum(cronwheel_cron_jobs_led)".to_owned(), N_CRON_JOBS + 1),
        ("sum(cronwheel_led_ratio)".to_owned(), 1),
        ("sum(cronwheel_cron_job_trouble)".to_owned(), 1),
        ("sum(cronwheel_leader)".to_owned(), 256),
    ] {
        let expected = f64::from(u32::try_from(expected).unwrap());
        assert_eq!(prometheus.values(&expression), [expected], "{expression}");
    }
}
