//! `cronwheel check` against the in-memory API: its requests and its whole output.

mod canary;
mod unread;

use std::{
    collections::BTreeMap,
    io::{self, Write},
    sync::{Arc, Mutex},
    time::Duration,
};

use apisim::{Api, Fault, Options, Resource, Rule, WallClock};
use bytes::Bytes;
use clap::Parser as _;
use cronwheel::{
    cli::{
        args::{Cli, Command},
        check::{self, CheckArgs, Sources},
    },
    controller::clock::Clock,
    coordination::annotation,
    shard::Term,
};
use http::{Request, Response};
use http_body_util::{Either, Full};
use jiff::{SignedDuration, Timestamp};
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tower::Service as _;

use crate::leases::{TIMEOUT, every_server::done, held, leases, member, shard};

const BEGUN: &str = "2026-01-02T03:04:30Z";

/// Captures the printed text. Clones share one buffer.
#[derive(Clone, Default)]
struct Printed(Arc<Mutex<Vec<u8>>>);

impl Printed {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn begun() -> Timestamp {
    BEGUN.parse().unwrap()
}

fn api() -> Api {
    let mut options = Options::default();
    options.namespaces.push("shop".to_owned());
    Api::new(options, WallClock::starting_at(begun()))
}

fn args(arguments: &[&str]) -> CheckArgs {
    let command = Cli::parse_from([&["cronwheel", "check"], arguments].concat()).command;
    let Command::Check(args) = command else {
        panic!("{command:?}");
    };
    args
}

/// Documents by path, for resources that the in-memory API does not have. A `Status` has the code of its answer.
type Documents = BTreeMap<&'static str, Value>;

/// A cluster whose API server serves admission policies, and whose built-in controller has an account of its own.
fn documents() -> Documents {
    let group = |plural: &str| json!({"kind": "APIResourceList", "resources": [{"name": plural}]});
    [
        (
            "/apis/admissionregistration.k8s.io/v1",
            group("validatingadmissionpolicies"),
        ),
        ("/apis/flowcontrol.apiserver.k8s.io/v1", group("flowschemas")),
        (
            "/api/v1/namespaces/kube-system/serviceaccounts/cronjob-controller",
            json!({"kind": "ServiceAccount"}),
        ),
    ]
    .into()
}

/// A client of the API with these documents.
fn client(api: &Api, documents: Documents) -> Client {
    let inner = api.client("check");
    Client::new(
        tower::service_fn(move |request: Request<Body>| {
            let mut inner = inner.clone();
            let document = documents.get(request.uri().path()).cloned();
            async move {
                match document {
                    None => inner.call(request).await.map(|answer| answer.map(Either::Left)),
                    Some(document) => {
                        let code = (document["kind"] == "Status")
                            .then(|| document["code"].as_u64())
                            .flatten();
                        let code = u16::try_from(code.unwrap_or(200)).unwrap();
                        let body = Full::new(Bytes::from(document.to_string()));
                        Ok(Response::builder().status(code).body(Either::Right(body)).unwrap())
                    }
                }
            }
        }),
        "default",
    )
}

/// Runs the command. Returns its output, and its error.
async fn run(client: Client, arguments: &[&str], clock: &Clock) -> (String, Option<String>) {
    run_until(client, arguments, clock, std::future::pending()).await
}

/// Runs the command until it ends or is interrupted.
async fn run_until(
    client: Client,
    arguments: &[&str],
    clock: &Clock,
    interrupted: impl Future<Output = ()>,
) -> (String, Option<String>) {
    let printed = Printed::default();
    let sources = Sources {
        leases: client.clone(),
        client,
        lease_namespaces: vec!["other".to_owned(), "kube-system".to_owned()],
    };
    let result = check::run(&args(arguments), sources, clock, interrupted, printed.clone(), false).await;
    (printed.text(), result.err().map(|error| error.to_string()))
}

async fn create(api: &Api, plural: &str, object: Value) -> Value {
    let namespace = object["metadata"]["namespace"].as_str().unwrap().to_owned();
    let request = Request::post(format!("/apis/batch/v1/namespaces/{namespace}/{plural}"))
        .header("content-type", "application/json")
        .body(object.to_string().into_bytes())
        .unwrap();
    Client::new(api.client("user"), "default")
        .request(request)
        .await
        .unwrap()
}

async fn create_cron_job(api: &Api, name: &str, spec: Value) {
    create_cron_job_in(api, "shop", name, spec).await;
}

/// Creates a CronJob. Returns its uid.
async fn create_cron_job_in(api: &Api, namespace: &str, name: &str, spec: Value) -> Value {
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "work", "image": "work"}]}});
    let mut object = json!({
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": template}}},
    });
    for (member, value) in spec.as_object().unwrap() {
        object["spec"][member] = value.clone();
    }
    create(api, "cronjobs", object).await["metadata"]["uid"].take()
}

/// A cluster at 03:05:30 with two CronJobs, of which one has missed its run of 03:05, and its clock.
async fn cluster() -> (Api, Clock) {
    let (api, clock) = (api(), Clock::simulated(begun()));
    create_cron_job(&api, "a", json!({"timeZone": "Etc/UTC"})).await;
    let suspended = json!({"timeZone": "Etc/UTC", "suspend": true, "failedJobsHistoryLimit": 0});
    create_cron_job(&api, "b", suspended).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    (api, clock)
}

const PRE: &str = "\
✓ server version          v1.36.3+apisim, at least v1.30
✓ clock                   this machine's clock agrees with the API server's
✓ admission policies      ValidatingAdmissionPolicy is served by admissionregistration.k8s.io/v1
✓ priority and fairness   FlowSchema is served by flowcontrol.apiserver.k8s.io/v1
✓ rights to grant         the account has the 22 rights that the chart grants to cronwheel, which Kubernetes lets only their owners grant
✓ rights to install       the account has the 14 rights to install the chart
! built-in controller     no CronJob and no Job shows a controller that runs CronJobs
                          to mend: create a CronJob that runs every minute and repeat the check after a minute
✓ built-in identity       probably system:serviceaccount:kube-system:cronjob-controller, since this ServiceAccount exists; the admission policy names both possible users
✓ CronJobs                2 CronJobs, 1 of them suspended
! starts at once          1 CronJob would start a Job at once, each for its latest missed run: shop/a (due 30s ago)
                          to mend: kubectl -n shop patch cronjob a -p '{\"spec\":{\"suspend\":true}}' for each whose missed run is not wanted; cronwheel explain a -n shop says why it starts
✓ deletes at once         no finished Job is beyond a history limit
✓ time zones              no schedule depends on the zone of the controller
! short-lived Jobs        1 CronJob with a history limit of 0 or with ttlSecondsAfterFinished under 60: shop/b. If the switch falls between the end of a Job and the write of its run to lastScheduleTime, that run starts a second time
                          to mend: switch their namespaces between two runs, or raise the limits to 1 and the TTL to 60 for the switch
✓ can run                 every CronJob can be decoded and has a schedule that runs
✓ differences             no other difference of docs/reference/differences.md concerns a CronJob here
✓ options                 no CronJob that cronwheel does not run has an option that changes when something starts

13 fine, 3 to read (!), 0 failed (✗)
";

#[tokio::test(start_paused = true)]
async fn pre_prints_one_line_for_each_check() {
    let (api, clock) = cluster().await;
    let version = api.version();
    let (text, error) = run(client(&api, documents()), &["--pre"], &clock).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(text, PRE, "{text}");
    assert_eq!(api.version(), version, "nothing is written");
    let (of_namespace, _) = run(client(&api, documents()), &["--pre", "-n", "shop"], &clock).await;
    assert_eq!(of_namespace, PRE, "{of_namespace}");
    let (of_namespace, _) = run(client(&api, documents()), &["--pre", "-n", "default"], &clock).await;
    assert!(of_namespace.contains("   0 CronJobs\n"), "{of_namespace}");
}

#[tokio::test(start_paused = true)]
async fn pre_fails_without_admission_policies() {
    let (api, clock) = cluster().await;
    let (text, error) = run(client(&api, Documents::new()), &["--pre", "-o", "json"], &clock).await;
    assert_eq!(error.as_deref(), Some("1 check failed"));
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["form"], "pre");
    assert_eq!((&document["fine"], &document["warnings"]), (&json!(11), &json!(4)));
    let failed: Vec<&Value> = document["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["severity"] == "failed")
        .collect();
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert_eq!(failed[0]["title"], "admission policies");
    assert!(
        failed[0]["mend"].as_str().unwrap().contains("--runtime-config"),
        "{failed:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_missing_right_turns_its_check_into_a_warning() {
    let (api, clock) = cluster().await;
    api.faults().add(Rule {
        resource: Some(Resource::Job),
        ..Rule::new(Fault::Forbid("not you".to_owned()))
    });
    let (text, error) = run(client(&api, documents()), &["--pre"], &clock).await;
    assert!(error.is_none(), "{error:?}");
    for line in [
        "! built-in controller     not checked: the account may not list jobs in all namespaces",
        "! CronJobs                not checked: the account may not list jobs in all namespaces",
    ] {
        assert!(text.lines().any(|found| found == line), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_api_server_is_the_only_finding() {
    let (api, clock) = cluster().await;
    api.faults().add(Rule::new(Fault::Outage));
    let (text, error) = run(client(&api, Documents::new()), &["--pre"], &clock).await;
    assert_eq!(error.as_deref(), Some("1 check failed"));
    assert!(
        text.starts_with("✗ API server   not checked: cannot reach the API server: "),
        "{text}"
    );
    assert_eq!(text.lines().count(), 4, "{text}");
}

/// Creates the Leases of one member that leads the first shards, and works in the labelled namespaces.
async fn install(api: &Api, n_shards: u16, now: Timestamp) {
    install_with(
        api,
        n_shards,
        now,
        "namespace-selector=cronwheel.dev/managed=true namespaces=*",
    )
    .await;
}

/// Creates the Leases of one member with these settings.
async fn install_with(api: &Api, n_shards: u16, now: Timestamp, managed: &str) {
    let leases = leases(crate::leases::client(api), "kube-system");
    let holder = "pod-a/a/0000000000000001";
    let mut join = held(member("a"), holder);
    join.annotations.insert(annotation::ACCEPTS, Some("now".into()));
    let settings = format!("time-zone=UTC {managed}");
    join.annotations.insert(annotation::SETTINGS, Some(settings.into()));
    done(leases.create(&join, now, TIMEOUT).await);
    for number in 0..n_shards {
        let mut take = held(shard(number), holder);
        (take.term, take.is_acquisition) = (Some(Term(1)), true);
        done(leases.create(&take, now, TIMEOUT).await);
    }
}

async fn label(api: &Api, path: &str, label: &str) {
    patch(api, path, json!({"labels": {label: "true"}})).await;
}

/// Changes the metadata of an object.
async fn patch(api: &Api, path: &str, metadata: Value) {
    let request = Request::patch(path)
        .header("content-type", "application/merge-patch+json")
        .body(json!({"metadata": metadata}).to_string().into_bytes())
        .unwrap();
    let _: Value = Client::new(api.client("user"), "default")
        .request(request)
        .await
        .unwrap();
}

/// Creates a CronJob, and its Job of the slot 03:05.
async fn create_job(api: &Api, namespace: &str, annotations: Value) {
    let uid = create_cron_job_in(api, namespace, "a", json!({})).await;
    let slot = "2026-01-02T03:05:00Z";
    let mut metadata = json!({
        "name": "a-29455385", "namespace": namespace,
        "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": slot},
        "ownerReferences": [{
            "apiVersion": "batch/v1", "kind": "CronJob", "name": "a", "uid": uid, "controller": true,
        }],
    });
    for (name, value) in annotations.as_object().unwrap() {
        metadata["annotations"][name] = value.clone();
    }
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "work", "image": "work"}]}});
    create(
        api,
        "jobs",
        json!({"metadata": metadata, "spec": {"template": template}}),
    )
    .await;
}

/// The policies of the chart and their bindings, as lists.
fn policy() -> Documents {
    let condition = "request.userInfo.username in ['system:serviceaccount:kube-system:cronjob-controller']";
    let policy = |name: &str, operation: &str| {
        json!({"metadata": {"name": name}, "spec": {
            "matchConditions": [{"name": "user", "expression": condition}],
            "matchConstraints": {"resourceRules": [{"operations": [operation], "resources": ["jobs"]}]},
        }})
    };
    let binding = |name: &str| {
        json!({"metadata": {"name": name}, "spec": {
            "policyName": name,
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": {"cronwheel.dev/managed": "true"}}},
            "paramRef": {"namespace": "kube-system", "selector": {"matchLabels": {
                "cronwheel.dev/acts": "true", "cronwheel.dev/lease": "cronwheel",
            }}},
        }})
    };
    let list = |items: [Value; 2]| json!({"kind": "List", "metadata": {}, "items": items});
    let (writes, deletes) = ("cronwheel-built-in-writes", "cronwheel-built-in-deletes");
    [
        (
            "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
            list([policy(writes, "CREATE"), policy(deletes, "DELETE")]),
        ),
        (
            "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
            list([binding(writes), binding(deletes)]),
        ),
    ]
    .into()
}

#[tokio::test(start_paused = true)]
async fn a_running_installation_is_checked() {
    let (api, clock) = (api(), Clock::simulated(begun()));
    tokio::time::sleep(Duration::from_secs(32)).await;
    install(&api, 256, clock.now()).await;
    label(&api, "/api/v1/namespaces/shop", "cronwheel.dev/managed").await;
    let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/cronwheel-member-a";
    label(&api, lease, "cronwheel.dev/acts").await;
    create_job(
        &api,
        "shop",
        json!({"cronwheel.dev/created-by": "kube-system/cronwheel"}),
    )
    .await;
    // The built-in controller runs this namespace.
    create_job(&api, "default", json!({})).await;
    let (text, error) = run(client(&api, policy()), &[], &clock).await;
    assert!(error.is_none(), "{error:?}: {text}");
    let expected = "\
✓ replicas            1 replica at work: pod-a
✓ leaders             all 256 shards are led
✓ admission policy    cronwheel-built-in-writes and cronwheel-built-in-deletes are bound and refuse the built-in controller's writes: 1 replica with a fresh Lease
✓ namespaces          cronwheel runs the CronJobs of 1 namespace with cronwheel.dev/managed=true: shop
✓ lateness            1 Job of the last hour, the latest 2s after its slot: shop/a-29455385
✓ other controllers   in the last hour, no other controller created a Job or wrote the status of a CronJob in a managed namespace
✓ options             no CronJob has an option that changes when something starts

7 fine, 0 to read (!), 0 failed (✗)
";
    assert_eq!(text, expected, "{text}");
    // The built-in controller creates no Job of the managed namespace, but writes its statuses, as of the other one.
    for namespace in ["default", "shop"] {
        let entry = json!({
            "manager": "kube-controller-manager", "operation": "Update", "subresource": "status",
            "time": clock.now().to_string(),
        });
        let path = format!("/apis/batch/v1/namespaces/{namespace}/cronjobs/a");
        patch(&api, &path, json!({"managedFields": [entry]})).await;
    }
    let (text, _) = run(client(&api, policy()), &[], &clock).await;
    let expected = "! other controllers   1 CronJob in managed namespaces whose status another controller wrote in the last \
                    hour: shop/a (kube-controller-manager). ";
    assert!(text.lines().any(|line| line.starts_with(expected)), "{text}");
}

#[tokio::test(start_paused = true)]
async fn defaults_of_namespaces_are_options_of_their_cron_jobs() {
    let (api, clock) = cluster().await;
    let spread = json!({"annotations": {"cronwheel.dev/spread": "1m"}});
    patch(&api, "/api/v1/namespaces/shop", spread).await;
    let of_namespace = "(cronwheel.dev/spread of the namespace)";
    let named = format!("manages their namespaces: shop/a {of_namespace}, shop/b {of_namespace}");
    for arguments in [&["--pre"][..], &["--pre", "-n", "shop", "-n", "absent"]] {
        let (text, _) = run(client(&api, documents()), arguments, &clock).await;
        assert!(text.contains(&named), "{text}");
    }
    install(&api, 256, clock.now()).await;
    label(&api, "/api/v1/namespaces/shop", "cronwheel.dev/managed").await;
    let (text, _) = run(client(&api, policy()), &[], &clock).await;
    let alone =
        "✓ options             2 CronJobs with options that change when something starts, which cronwheel alone runs";
    assert!(text.lines().any(|line| line == alone), "{text}");
    api.faults().add(Rule {
        resource: Some(Resource::Namespace),
        ..Rule::new(Fault::Forbid("not you".to_owned()))
    });
    let (text, error) = run(client(&api, documents()), &["--pre", "-n", "shop"], &clock).await;
    let unknown = "changes when something starts; defaults and freezes of namespaces not checked: the account may not get \
                   namespaces";
    assert!(text.contains(unknown) && error.is_none(), "{text}");
}

#[tokio::test(start_paused = true)]
async fn freezes_are_named_with_those_that_nobody_follows() {
    let (api, clock) = cluster().await;
    for namespace in ["shop", "default"] {
        let freeze = json!({"annotations": {"cronwheel.dev/freeze-until": "2026-01-02T05:04:30Z"}});
        patch(&api, &format!("/api/v1/namespaces/{namespace}"), freeze).await;
    }
    let until = "until Fri 2026-01-02 05:04:30 UTC, 1h 59m from now";
    let ignored = "with a freeze which the built-in controller ignores until cronwheel manages the namespace";
    let (text, _) = run(client(&api, documents()), &["--pre"], &clock).await;
    let expected = format!("! freezes                 2 namespaces {ignored}: default {until}, shop {until}");
    assert!(text.lines().any(|line| line == expected), "{text}");
    install(&api, 256, clock.now()).await;
    label(&api, "/api/v1/namespaces/shop", "cronwheel.dev/managed").await;
    let (text, _) = run(client(&api, policy()), &[], &clock).await;
    let expected = format!(
        "! freezes             nothing starts in 1 namespace: shop {until}; 1 namespace {ignored}: default {until}"
    );
    assert!(text.lines().any(|line| line == expected), "{text}");
}

/// The Leases have the time of the cluster.
#[tokio::test(start_paused = true)]
async fn the_time_is_that_of_the_api_server() {
    let clock = |seconds: i64| Clock::simulated(begun() + SignedDuration::from_secs(seconds));
    let api = api();
    install(&api, 256, begun()).await;
    let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/cronwheel-member-a";
    label(&api, lease, "cronwheel.dev/acts").await;
    let (text, error) = run(client(&api, policy()), &[], &clock(3600)).await;
    assert!(error.is_none(), "{error:?}: {text}");
    assert!(
        text.starts_with("! clock               this machine's clock is at least 3599 s ahead"),
        "{text}"
    );
    for line in ["✓ replicas ", "✓ admission policy "] {
        assert!(text.contains(line), "{text}");
    }
    tokio::time::sleep(Duration::from_mins(2)).await;
    let (text, error) = run(client(&api, policy()), &[], &clock(-3600)).await;
    assert_eq!(error.as_deref(), Some("2 checks failed"), "{text}");
    for line in [
        "✗ replicas            none takes shards: pod-a is silent",
        "✗ admission policy ",
    ] {
        assert!(text.contains(line), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_installation_without_leaders_policy_and_namespaces_fails() {
    let (api, clock) = (api(), Clock::simulated(begun()));
    install(&api, 254, clock.now()).await;
    let (text, error) = run(client(&api, Documents::new()), &[], &clock).await;
    assert_eq!(error.as_deref(), Some("1 check failed"), "{text}");
    for line in [
        "✗ leaders             2 of 256 shards have no leader: 254, 255",
        "! admission policy    no ValidatingAdmissionPolicy silences the built-in controller for installation cronwheel in kube-system",
        "! namespaces          no namespace matches cronwheel.dev/managed=true, so cronwheel runs no CronJob",
        "                      to mend: kubectl label namespace NAME cronwheel.dev/managed=true",
    ] {
        assert!(text.lines().any(|found| found == line), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cluster_without_an_installation_has_one_finding() {
    let (text, error) = run(client(&api(), Documents::new()), &[], &Clock::simulated(begun())).await;
    assert_eq!(error.as_deref(), Some("1 check failed"));
    assert_eq!(
        text,
        "✗ replicas   no replica of installation cronwheel has a Lease in namespace other or kube-system\n             to \
         mend: give --lease-namespace or --installation, or install the chart; cronwheel check --pre before\n\n0 fine, 0 to \
         read (!), 1 failed (✗)\n"
    );
}
