//! Runs every query of every panel and alert on a real Prometheus that scraped two working replicas, and compares
//! counts with the audit log.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use libtest_mimic::Trial;
use serde_json::{Value, json};
use testbed::{
    Options, Testbed,
    replica::{Replica, ReplicaSetup},
};

const ALERTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/helm/cronwheel/files/alerts.yaml");
const DASHBOARDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/helm/cronwheel/files/dashboards");
const RBAC: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/manifests/rbac.yaml"));
const N_CRON_JOBS: usize = 20;
/// Long enough for two slots, and for every metric that changes without faults.
const RUN: Duration = Duration::from_mins(3);
/// The values that Grafana would substitute for its variables.
const VARIABLES: [(&str, &str); 5] = [
    ("$__rate_interval", "4m"),
    ("$__range", "4m"),
    ("$cluster", ".*"),
    ("$job", ".*"),
    ("$instance", ".*"),
];

/// A process that is killed on drop.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

/// Starts Prometheus with our rules. It scrapes these addresses every second.
fn start_prometheus(folder: &Path, address: &str, replicas: &[String]) -> Ending {
    let config = json!({
        "global": {"scrape_interval": "1s", "evaluation_interval": "5s"},
        "rule_files": [ALERTS],
        "scrape_configs": [{
            "job_name": "cronwheel",
            "static_configs": [{"targets": replicas, "labels": {"namespace": "kube-system"}}],
        }],
    });
    let file = folder.join("prometheus.yaml");
    fs::write(&file, config.to_string()).unwrap();
    let child = Command::new(testbed::find_or_build_prometheus().unwrap())
        .arg(format!("--config.file={}", file.display()))
        .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
        .arg(format!("--web.listen-address={address}"))
        .arg("--log.level=error")
        .current_dir(folder)
        .stdout(Stdio::null())
        .spawn();
    Ending(child.unwrap())
}

/// The body of a 200 response. `None` otherwise.
fn get(address: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.split(' ')
        .nth(1)
        .is_some_and(|code| code == "200")
        .then(|| body.to_owned())
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

/// The values that a query returns, without NaN.
fn values(address: &str, expression: &str) -> Vec<f64> {
    let query: String = form_urlencoded::byte_serialize(expression.as_bytes()).collect();
    let body = get(address, &format!("/api/v1/query?query={query}"));
    let body = body.unwrap_or_else(|| panic!("Prometheus refuses {expression}"));
    let answer: Value = serde_json::from_str(&body).unwrap();
    let series = answer["data"]["result"].as_array().unwrap();
    let value = |series: &Value| series["value"][1].as_str().unwrap().parse::<f64>().unwrap();
    series.iter().map(value).filter(|value| value.is_finite()).collect()
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
    // It never fires, which is trouble.
    let mut invalid = job(N_CRON_JOBS);
    invalid["spec"]["schedule"] = json!("0 0 31 2 *");
    let items: Vec<Value> = (0..N_CRON_JOBS).map(job).chain([invalid]).collect();
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

fn start_replica(number: usize, kubeconfig: &Path, folder: &Path, address: &str) -> Replica {
    let setup = ReplicaSetup {
        program: env!("CARGO_BIN_EXE_cronwheel").into(),
        kubeconfig: kubeconfig.to_owned(),
        lease_namespace: "kube-system".to_owned(),
        n_shards: 64,
        pod_name: format!("cronwheel-{number}"),
        pod_uid: format!("uid-{number}"),
        revision: "r1".to_owned(),
        address: address.to_owned(),
        arguments: Vec::new(),
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

/// Waits for the middle of a minute, when nothing is in flight.
fn wait_for_a_quiet_moment() {
    let second = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() % 60;
    sleep(Duration::from_secs((100 - second) % 60));
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
    // It takes four minutes.
    std::iter::once(Trial::test("dashboards::every_query_returns_data", case).with_ignored_flag(true))
}

/// All expressions of the dashboards, with the names of dashboard and panel.
fn expressions() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(DASHBOARDS).unwrap() {
        let dashboard: Value = serde_json::from_slice(&fs::read(entry.unwrap().path()).unwrap()).unwrap();
        for panel in dashboard["panels"].as_array().unwrap() {
            for target in panel["targets"].as_array().into_iter().flatten() {
                let name = format!("{} / {}", dashboard["title"], panel["title"]);
                found.push((name, target["expr"].as_str().unwrap().to_owned()));
            }
        }
    }
    found
}

fn every_query_returns_data_and_counts_agree_with_the_audit_log() {
    let folder = folder();
    let testbed = Testbed::start(Options {
        audit: true,
        ..Options::default()
    })
    .unwrap();
    testbed.kubectl().apply(RBAC).unwrap();
    let kubeconfig = testbed.token_kubeconfig("kube-system", "cronwheel").unwrap();
    let [prometheus, first, second] = [(); 3].map(|()| free_address());
    let _prometheus = start_prometheus(&folder, &prometheus, &[first.clone(), second.clone()]);
    let _first = start_replica(1, &kubeconfig, &folder, &first);
    wait_for("the first replica", || get(&first, "/readyz").is_some());
    testbed.kubectl().apply(&cron_jobs()).unwrap();
    sleep(Duration::from_secs(5));
    // It takes over half of the shards.
    let _second = start_replica(2, &kubeconfig, &folder, &second);
    sleep(RUN);
    wait_for_a_quiet_moment();
    let mut missing = Vec::new();
    for (name, expression) in expressions() {
        let substituted = VARIABLES
            .iter()
            .fold(expression, |text, (variable, value)| text.replace(variable, value));
        if values(&prometheus, &substituted).is_empty() {
            missing.push(format!("{name}: {substituted}"));
        }
    }
    assert!(missing.is_empty(), "no data:\n{}", missing.join("\n"));
    demand_sound_rules(&prometheus);
    demand_equal_counts(&prometheus, &testbed.audit_log_path().unwrap());
    testbed.stop().unwrap();
    fs::remove_dir_all(folder).unwrap();
}

/// Demands that every rule is evaluated without error, and that no critical alert fires.
fn demand_sound_rules(prometheus: &str) {
    let answer: Value = serde_json::from_str(&get(prometheus, "/api/v1/rules").unwrap()).unwrap();
    let groups = answer["data"]["groups"].as_array().unwrap();
    let rules: Vec<&Value> = groups
        .iter()
        .flat_map(|group| group["rules"].as_array().unwrap())
        .collect();
    assert!(rules.len() > 30, "{}", rules.len());
    for rule in rules {
        assert_eq!(rule["health"], "ok", "{rule}");
        if rule["type"] == "alerting" {
            let is_page = rule["labels"]["severity"] == "critical";
            assert!(!is_page || rule["state"] != "firing", "{rule}");
        } else {
            let name = rule["name"].as_str().unwrap();
            assert!(!values(prometheus, name).is_empty(), "{name} has no data");
        }
    }
}

/// Demands that the metrics agree with the API server's audit log.
fn demand_equal_counts(prometheus: &str, audit_log: &Path) {
    // The audit log and the last scrape may lag a little.
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
        ("sum(cronwheel_cron_jobs)".to_owned(), N_CRON_JOBS + 1),
        ("sum(cronwheel_cron_jobs_led)".to_owned(), N_CRON_JOBS + 1),
        ("sum(cronwheel_led_ratio)".to_owned(), 1),
        ("sum(cronwheel_cron_job_trouble)".to_owned(), 1),
        ("sum(cronwheel_leader)".to_owned(), 64),
    ] {
        let expected = f64::from(u32::try_from(expected).unwrap());
        assert_eq!(values(prometheus, &expression), [expected], "{expression}");
    }
}
