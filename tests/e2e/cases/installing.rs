//! The manifests in `deploy/` for an installation with several replicas. They grant exactly the needed permissions, and
//! they affect no other clients.

use std::{
    path::Path,
    process::{Command, Output},
    time::{Duration, Instant},
};

use cronwheel::{
    coordination::LeaseAnswer,
    kube_api::{ApiServer, LeaseEvent, lease_client},
};
use futures::StreamExt as _;
use http::Request;
use http_body_util::BodyExt as _;
use jiff::{SignedDuration, Timestamp};
use kube::{
    Client,
    client::Body,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};

use crate::{
    account::permit_leases,
    controller::Controller,
    every_server::{TIMEOUT, done, held, leases, member, shard, wall, write},
    kubernetes::{Namespace, merge, own_job, wait},
};

const FENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/manifests/fence-policy.yaml");
const FLOW_SCHEMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/manifests/flow-schema.yaml");

/// A client for Leases with this kubeconfig.
pub(crate) async fn client(kubeconfig: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let server = ApiServer::open(&config.expect("a configuration"))
        .await
        .expect("credentials");
    lease_client(&server).expect("a client")
}

/// A client with the service account of an installation.
async fn account(namespace: &Namespace) -> Client {
    client(&namespace.control_plane.controller_kubeconfig).await
}

pub(crate) struct Response {
    pub(crate) code: u16,
    headers: http::HeaderMap,
    pub(crate) body: Value,
}

async fn send(client: &Client, method: &str, path: &str, body: Value) -> Response {
    send_with(client, &[], method, path, body).await
}

/// Sends a request with further headers.
pub(crate) async fn send_with(
    client: &Client,
    headers: &[(&str, &str)],
    method: &str,
    path: &str,
    body: Value,
) -> Response {
    let content_type = if method == "PATCH" {
        "application/merge-patch+json"
    } else {
        "application/json"
    };
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in [("content-type", content_type)].iter().chain(headers) {
        request = request.header(*name, *value);
    }
    let request = request
        .body(Body::from(body.to_string().into_bytes()))
        .expect("a request");
    let (parts, body) = client.send(request).await.expect("a response").into_parts();
    let body = body.collect().await.expect("a body").to_bytes();
    Response {
        code: parts.status.as_u16(),
        headers: parts.headers,
        body: serde_json::from_slice(&body).expect("JSON"),
    }
}

/// Deletes the binding of the Role for Leases.
async fn forbid_leases(namespace: &Namespace) {
    namespace
        .kubectl(&["delete", "rolebinding", "cronwheel-leases", "-n", &namespace.name])
        .await;
}

/// Whether the client's user has a permission.
async fn is_allowed(client: &Client, attributes: Value) -> bool {
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes}});
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let response = send(client, "POST", path, review).await;
    response.body["status"]["allowed"].as_bool().expect("a verdict")
}

const VERBS: [&str; 8] = [
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
];

pub(super) async fn lease_role_grants_exactly_the_needed_permissions(namespace: Namespace) {
    let account = account(&namespace).await;
    let lease = |namespace: &str| json!({"group": "coordination.k8s.io", "resource": "leases", "namespace": namespace});
    let job = |subresource: &str| json!({"group": "batch", "resource": "jobs", "subresource": subresource, "namespace": namespace.name});
    let other = |resource: &str| json!({"group": "", "resource": resource, "namespace": namespace.name});
    let can_read = async || {
        let mut attributes = lease(&namespace.name);
        attributes["verb"] = "get".into();
        is_allowed(&account, attributes).await
    };
    forbid_leases(&namespace).await;
    assert!(
        wait(async || !can_read().await).await,
        "the permissions remain without the binding"
    );
    permit_leases(&namespace).await;
    assert!(wait(&can_read).await, "the Role is not in force");
    for (what, allowed) in [
        (lease(&namespace.name), "get list watch create patch delete"),
        (lease("default"), ""),
        (other("configmaps"), ""),
        (job(""), "get list watch create delete"),
        (job("status"), ""),
        (other("secrets"), ""),
        (other("pods"), ""),
    ] {
        for verb in VERBS {
            let mut attributes = what.clone();
            attributes["verb"] = verb.into();
            let has_permission = is_allowed(&account, attributes).await;
            assert_eq!(
                has_permission,
                allowed.split(' ').any(|known| known == verb),
                "{verb} {what}"
            );
        }
    }
}

pub(super) async fn service_account_may_send_all_lease_requests(namespace: Namespace) {
    let api = leases(account(&namespace).await, &namespace.name);
    let is_permitted = async || api.list(TIMEOUT).await.is_ok();
    assert!(wait(is_permitted).await, "the Role is not in force");
    let list = api.list(TIMEOUT).await.expect("a list");
    let made = done(
        api.create(&held(member("a"), "pod-a/a/0000000000000001"), wall(), TIMEOUT)
            .await,
    );
    done(
        api.create(&held(shard(3), "pod-a/a/0000000000000001"), wall(), TIMEOUT)
            .await,
    );
    assert!(matches!(
        api.read(&member("a"), TIMEOUT).await.answer,
        LeaseAnswer::Done(_)
    ));
    let mut watch = std::pin::pin!(api.watch(list.resource_version, TIMEOUT));
    let event = watch.next().await.expect("an event");
    assert!(matches!(event, Ok(LeaseEvent::Applied(_))), "{event:?}");

    let output = shards_text(&namespace);
    assert!(output.contains("256 shards, 1 of them led"), "{output}");
    assert!(
        output
            .lines()
            .any(|line| line.starts_with("3 ") && line.ends_with(" led")),
        "{output}"
    );

    let renewed = done(
        api.patch(&write(member("a")), made.resource_version, wall(), TIMEOUT)
            .await,
    );
    done(api.delete(&member("a"), renewed.resource_version, TIMEOUT).await);
}

/// The arguments that make a controller one of several replicas.
fn replica_arguments(namespace: &Namespace, name: &str) -> [String; 3] {
    [
        format!("--lease-namespace={}", namespace.name),
        format!("--pod-name=cronwheel-{name}"),
        format!("--pod-uid=uid-{name}"),
    ]
}

pub(super) async fn replicas_share_the_shards_under_the_role(namespace: Namespace) {
    let replicas: Vec<Controller> = ["a", "b"]
        .iter()
        .map(|name| {
            Controller::start_replica(
                &namespace,
                30,
                &replica_arguments(&namespace, name).each_ref().map(String::as_str),
            )
        })
        .collect();
    let mut last = Value::Null;
    let is_shared_out = async || {
        last = shards_json(&namespace);
        let shards = last["shards"].as_array().map(Vec::as_slice).unwrap_or_default();
        let n_led = |pod: &str| {
            let is_led = |shard: &&Value| shard["isLed"] == true && shard["holder"]["pod"] == *pod;
            shards.iter().filter(is_led).count()
        };
        (n_led("cronwheel-a"), n_led("cronwheel-b")) == (128, 128)
    };
    assert!(wait(is_shared_out).await, "{last:#}");
    for member in last["members"].as_array().expect("members") {
        assert_eq!(
            (&member["state"], &member["shards"]),
            (&json!("Takes"), &json!(128)),
            "{member}"
        );
    }
    for replica in replicas {
        replica.terminate().await;
    }
    let left = shards_json(&namespace);
    let members = left["members"].as_array().expect("members").iter();
    assert_eq!(
        members.filter(|member| member["state"] != "Left").count(),
        0,
        "{left:#}"
    );
    let mut shards = left["shards"].as_array().expect("shards").iter();
    assert!(shards.all(|shard| shard["isLed"] == false), "{left:#}");
}

pub(super) async fn replicas_without_a_flag_share_the_cron_jobs(namespace: Namespace) {
    namespace.create_cron_job(json!({"run-for": "1s"}), json!({})).await;
    let lease_namespace = format!("--lease-namespace={}", namespace.name);
    let replicas = [(); 2].map(|()| Controller::start_replica(&namespace, 0, &[&lease_namespace]));
    let is_there = async || namespace.find("Job", &namespace.job_name(0)).await.is_some();
    assert!(wait(is_there).await, "no Job");
    let job = namespace.find("Job", &namespace.job_name(0)).await.expect("the Job");
    let metadata = &job["metadata"];
    assert_eq!(
        metadata["annotations"]["cronwheel.dev/created-by"],
        format!("{}/cronwheel", namespace.name)
    );
    let labels = metadata["labels"].as_object().expect("labels");
    assert!(!labels.keys().any(|label| label.contains("cronwheel")), "{labels:?}");
    let mut last = Value::Null;
    let are_members = async || {
        last = shards_json(&namespace);
        let members = last["members"].as_array().map(Vec::as_slice).unwrap_or_default();
        members.iter().filter(|member| member["state"] == "Takes").count() == 2
    };
    assert!(wait(are_members).await, "{last:#}");
    let mut n_started = 0;
    for replica in &replicas {
        n_started += replica.n_started().await;
    }
    assert_eq!(n_started, 1);
    for replica in replicas {
        replica.terminate().await;
    }
}

pub(super) async fn single_replica_leads_every_shard_soon_after_it_is_ready(namespace: Namespace) {
    let lease_namespace = format!("--lease-namespace={}", namespace.name);
    let single = Controller::start_replica(&namespace, 0, &[&lease_namespace]);
    single.wait_until_ready().await;
    let ready = Instant::now();
    single.wait_until_leading().await;
    // A build without optimizations, beside the processes of other cases, needs longer than a release.
    let after = ready.elapsed();
    assert!(after < Duration::from_secs(3), "{after:?}");
    single.terminate().await;
}

/// A process outside a Pod has another identity after a restart.
pub(super) async fn killed_replica_with_another_identity_is_replaced_after_ten_seconds(namespace: Namespace) {
    let lease_namespace = format!("--lease-namespace={}", namespace.name);
    let first = Controller::start_replica(&namespace, 0, &[&lease_namespace]);
    first.wait_until_leading().await;
    first.kill();
    let second = Controller::start_replica(&namespace, 1, &[&lease_namespace]);
    second.wait_until_ready().await;
    assert_eq!(
        second.metric("cronwheel_leader", &[]).await,
        Some(0),
        "the first may live"
    );
    second.wait_until_leading().await;
    second.terminate().await;
}

pub(super) async fn replica_without_the_role_starts_nothing_and_names_it(namespace: Namespace) {
    forbid_leases(&namespace).await;
    namespace.create_cron_job(json!({"run-for": "1s"}), json!({})).await;
    let lease_namespace = format!("--lease-namespace={}", namespace.name);
    // By the replica's clock, the slot of minute 0 has passed.
    let replica = Controller::start_replica(&namespace, 1, &[&lease_namespace]);
    let mut readiness = String::new();
    let is_reported = async || {
        readiness = replica.readiness_or_nothing().await;
        readiness.contains("Role cronwheel-leases")
    };
    assert!(wait(is_reported).await, "{readiness}");
    for part in ["may not", "leases", &namespace.name] {
        assert!(readiness.contains(part), "{part} is missing: {readiness}");
    }
    assert!(namespace.find("Job", &namespace.job_name(0)).await.is_none());
    permit_leases(&namespace).await;
    // If minute 1 has begun, its slot is the latest.
    let is_there = async || {
        let jobs = [namespace.job_name(0), namespace.job_name(1)];
        namespace.find("Job", &jobs[0]).await.is_some() || namespace.find("Job", &jobs[1]).await.is_some()
    };
    assert!(wait(is_there).await, "no Job with the Role");
    replica.terminate().await;
}

/// The JSON output of `cronwheel shards`. Null before there is an installation.
fn shards_json(namespace: &Namespace) -> Value {
    let output = shards_command(namespace, &["-o", "json"]);
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

/// The text output of `cronwheel shards`, run with the service account.
fn shards_text(namespace: &Namespace) -> String {
    let output = shards_command(namespace, &["--all"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn shards_command(namespace: &Namespace, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cronwheel"))
        .args(["shards", "--lease-namespace", &namespace.name, "--kubeconfig"])
        .arg(&namespace.control_plane.controller_kubeconfig)
        .args(arguments)
        .output()
        .expect("a process")
}

/// The uids of the flow schema and the priority level to which a request was assigned.
fn flow(response: &Response) -> [String; 2] {
    ["x-kubernetes-pf-flowschema-uid", "x-kubernetes-pf-prioritylevel-uid"].map(|name| {
        let value = response.headers.get(name).expect("priority and fairness");
        value.to_str().expect("text").to_owned()
    })
}

pub(super) async fn flow_schemas_match_leases_and_job_creates(namespace: Namespace) {
    let account = account(&namespace).await;
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", namespace.name);
    let one = format!("{path}/a");
    let before = flow(&send(&account, "PATCH", &one, json!({})).await);
    namespace.kubectl(&["apply", "-f", FLOW_SCHEMA]).await;
    let uid = async |kind: &str, name: &str| {
        let object = namespace.find(kind, name).await.expect("it");
        object["metadata"]["uid"].as_str().expect("a uid").to_owned()
    };
    let expected = [
        uid("FlowSchema", "cronwheel-leases").await,
        uid("PriorityLevelConfiguration", "leader-election").await,
    ];
    assert_ne!(before[1], expected[1], "the schema would not be needed");
    let object = json!({"metadata": {"name": "a"}});
    let is_in_force = async || flow(&send(&account, "PATCH", &one, json!({})).await) == expected;
    assert!(wait(is_in_force).await, "the flow schema is not in force");
    for (method, path, body) in [
        ("GET", &path, Value::Null),
        ("POST", &path, object),
        ("PATCH", &one, json!({})),
        ("GET", &one, Value::Null),
        ("DELETE", &one, json!({})),
    ] {
        // The service account is in kube-system, for whose creates and reads an existing flow schema selects this
        // level.
        let level = &flow(&send(&account, method, path, body).await)[1];
        assert_eq!(level, &expected[1], "{method} {path}");
    }
    let of_jobs = [
        uid("FlowSchema", "cronwheel-jobs").await,
        uid("PriorityLevelConfiguration", "cronwheel-jobs").await,
    ];
    let administrator = client(&namespace.control_plane.admin_kubeconfig).await;
    let create = async |client, name| flow(&create_job(client, &namespace.name, name, None).await);
    assert_eq!(create(&account, "by-the-account").await, of_jobs);
    assert_ne!(create(&administrator, "by-another").await[1], of_jobs[1]);
    let jobs = format!("/apis/batch/v1/namespaces/{}/jobs", namespace.name);
    assert_ne!(
        flow(&send(&account, "GET", &jobs, Value::Null).await)[1],
        of_jobs[1],
        "only creates have seats of their own"
    );
    for (client, path) in [(&account, &jobs), (&administrator, &path)] {
        assert_ne!(
            flow(&send(client, "GET", path, Value::Null).await)[0],
            expected[0],
            "{path}"
        );
    }
    namespace.kubectl(&["delete", "-f", FLOW_SCHEMA]).await;
}

/// Creates a Job that must be created before an instant, or a Job without this annotation.
async fn create_job(client: &Client, namespace: &str, name: &str, before: Option<&str>) -> Response {
    let mut job = own_job(name, json!({"outcome": "hang", "run-for": "0s"}));
    if let Some(before) = before {
        let annotations = json!({"metadata": {"annotations": {"cronwheel.dev/create-before": before}}});
        merge(&mut job, annotations);
    }
    let path = format!("/apis/batch/v1/namespaces/{namespace}/jobs");
    send(client, "POST", &path, job).await
}

/// Applies the fence policy, and waits until it refuses a late Job in this namespace.
pub(crate) async fn fence(control_plane: &Namespace, namespace: &str) {
    control_plane.kubectl(&["apply", "-f", FENCE]).await;
    let account = account(control_plane).await;
    let late = (Timestamp::now() - SignedDuration::from_secs(2)).to_string();
    let mut n_before = 0;
    let is_in_force = async || {
        n_before += 1;
        let name = format!("before-{n_before}");
        create_job(&account, namespace, &name, Some(&late)).await.code == 403
    };
    assert!(wait(is_in_force).await, "the policy is not in force");
}

pub(super) async fn fence_policy_denies_a_late_job(namespace: Namespace) {
    fence(&namespace, &namespace.name).await;
    let account = account(&namespace).await;
    let late = (Timestamp::now() - SignedDuration::from_secs(2)).to_string();

    let refused = create_job(&account, &namespace.name, "late", Some(&late)).await;
    assert_eq!(refused.code, 403, "{}", refused.body);
    let message = refused.body["message"].as_str().expect("a message");
    assert!(message.contains("cronwheel-fence"), "{message}");
    assert!(message.contains("denied request: it came at 20"), "{message}");
    let ending = format!("and was to be created by {late}: another replica may lead its shard");
    assert!(message.ends_with(&ending), "{message}");

    let timely = (Timestamp::now() + SignedDuration::from_secs(30)).to_string();
    let garbage = "soon";
    let administrator = client(&namespace.control_plane.admin_kubeconfig).await;
    for (client, name, before, code) in [
        (&account, "timely", Some(timely.as_str()), 201),
        (&account, "without", None, 201),
        (&account, "garbage", Some(garbage), 422),
        (&administrator, "another-s", Some(late.as_str()), 201),
        (&administrator, "another-s-garbage", Some(garbage), 201),
    ] {
        let response = create_job(client, &namespace.name, name, before).await;
        assert_eq!(response.code, code, "{name}: {}", response.body);
    }
    replica_passes_the_policy(&namespace).await;
    namespace.kubectl(&["delete", "-f", FENCE]).await;
}

/// A replica that shares CronJobs annotates its Job with the latest creation time, and the create succeeds.
async fn replica_passes_the_policy(namespace: &Namespace) {
    namespace.create_cron_job(json!({"run-for": "1s"}), json!({})).await;
    let replica = Controller::start_replica(
        namespace,
        0,
        &replica_arguments(namespace, "a").each_ref().map(String::as_str),
    );
    let is_there = async || namespace.find("Job", &namespace.job_name(0)).await.is_some();
    assert!(wait(is_there).await, "no Job");
    let job = namespace.find("Job", &namespace.job_name(0)).await.expect("the Job");
    let annotation = &job["metadata"]["annotations"]["cronwheel.dev/create-before"];
    let until: Timestamp = annotation.as_str().expect("an annotation").parse().expect("an instant");
    // The times are from the API server's clock. No request lives longer than 34 seconds.
    let created = &job["metadata"]["creationTimestamp"];
    let created: Timestamp = created.as_str().expect("a time").parse().expect("an instant");
    assert!(
        until > created && until < created + SignedDuration::from_secs(36),
        "{created} {until}"
    );
    replica.terminate().await;
}

/// The running replicas work in all namespaces, as those of a chart without `managedNamespaces` do.
pub(super) async fn upgrade_that_would_stop_every_cron_job_is_refused(namespace: Namespace) {
    let container = json!({"name": "cronwheel", "image": "cronwheel", "args": ["run", "--listen=0.0.0.0:8080"]});
    let labels = json!({"app": "cronwheel"});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "cronwheel"},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    });
    namespace.create(deployment).await;
    // A label that no other case sets.
    let selector = "--set=managedNamespaces.selector=upgraded.example/managed=true";
    let refused = upgrade(&namespace, &[selector]).expect_err("nothing would run");
    for part in [
        "after this upgrade no CronJob would run",
        "kubectl label namespace NAMESPACE upgraded.example/managed=true",
        "--set managedNamespaces.all=true",
    ] {
        assert!(refused.contains(part), "{refused}");
    }
    let keeps_all = upgrade(&namespace, &["--set=managedNamespaces.all=true"]);
    assert!(keeps_all.is_ok(), "{keeps_all:?}");
    let label = json!({"metadata": {"labels": {"upgraded.example/managed": "true"}}});
    namespace.patch("Namespace", &namespace.name, label).await;
    let labelled = upgrade(&namespace, &[selector]);
    assert!(labelled.is_ok(), "{labelled:?}");
}

/// Renders the upgrade of the release of a namespace, with the objects of the API server. Returns the error if helm refuses
/// it.
fn upgrade(namespace: &Namespace, values: &[&str]) -> Result<(), String> {
    let chart = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/helm/cronwheel");
    let output = Command::new(testbed::find_or_build_helm().expect("helm"))
        .args(["template", "cronwheel", chart, "--is-upgrade", "--dry-run=server"])
        .args(["--namespace", &namespace.name, "--kubeconfig"])
        .arg(&namespace.control_plane.admin_kubeconfig)
        .args(values)
        .output()
        .expect("helm");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    output.status.success().then_some(()).ok_or(error)
}
