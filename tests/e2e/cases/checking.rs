//! `explain --check` refuses the manifests that a real API server refuses, and names the same fields.

mod manifests;

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use serde_json::{Value, json};

use crate::{
    kubernetes::{Namespace, wait},
    random::{self, Random},
};

/// Manifests, of which some four fifths are broken.
const N_MANIFESTS: usize = 300;

/// The fields of a refusal. An empty set is an acceptance.
type Fields = BTreeSet<String>;

pub(super) async fn check_and_the_api_server_refuse_the_same(namespace: Namespace) {
    let mut random = Random::new(random::seed());
    let drawn: Vec<Value> = (0..N_MANIFESTS)
        .map(|number| manifests::draw(&mut random, number))
        .collect();
    let problems = check(&drawn, &[]);
    let mut findings = Vec::new();
    let mut n_refused = 0;
    for (manifest, problems) in drawn.iter().zip(&problems) {
        let ours: Fields = problems.iter().map(|problem| field_of(problem)).collect();
        let status = create(&namespace, manifest).await;
        n_refused += usize::from(status.is_some());
        if let Some(difference) = difference(&ours, status.as_ref()) {
            findings.push(format!("{manifest}\n{difference}\nours {problems:?}"));
        }
    }
    assert!(
        findings.is_empty(),
        "{} differ\n{}",
        findings.len(),
        findings.join("\n\n")
    );
    assert!(
        (N_MANIFESTS / 2..N_MANIFESTS).contains(&n_refused),
        "{n_refused} refused"
    );
}

/// Sends a create as a dry run. Returns the `Status` of a refusal.
async fn create(namespace: &Namespace, manifest: &Value) -> Option<Value> {
    let path = "/apis/batch/v1/namespaces/default/cronjobs?dryRun=All&fieldValidation=Strict";
    let request = http::Request::post(path)
        .header("Content-Type", "application/json")
        .body(manifest.to_string().into_bytes())
        .expect("a request");
    match namespace.control_plane.client.request::<Value>(request).await {
        Ok(_) => None,
        Err(kube::Error::Api(status)) => Some(serde_json::to_value(*status).expect("JSON")),
        Err(error) => panic!("{manifest}: {error}"),
    }
}

/// Returns the difference between the fields, if there is one.
fn difference(ours: &Fields, status: Option<&Value>) -> Option<String> {
    let Some(status) = status else {
        return (!ours.is_empty()).then(|| "the server accepts it".to_owned());
    };
    let message = status["message"].as_str().unwrap_or_default();
    let is_same = match status["code"].as_u64() {
        Some(422) => {
            let causes = status["details"]["causes"].as_array().into_iter().flatten();
            let theirs: Fields = causes
                .filter_map(|cause| Some(cause["field"].as_str()?.to_owned()))
                .collect();
            theirs == *ours
        }
        // The decoder reports the first wrong type, without positions and keys.
        Some(400) if let Some(path) = path_of_wrong_type(message) => {
            ours.iter().any(|field| without_positions(field) == path)
        }
        Some(400) if message.contains("strict decoding error") => {
            let theirs: Fields = message
                .split("unknown field \"")
                .skip(1)
                .filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()))
                .collect();
            theirs == *ours
        }
        // The error of a value, such as a quantity, names no field.
        Some(400) => !ours.is_empty(),
        _ => false,
    };
    (!is_same).then(|| format!("real {status}"))
}

/// `json: cannot unmarshal number into Go struct field EnvVar.spec.x.value of type string` is about `spec.x.value`.
fn path_of_wrong_type(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("Go struct field ")?;
    let (_, path) = rest.split_once(' ')?.0.split_once('.')?;
    Some(path)
}

fn without_positions(field: &str) -> String {
    let mut parts = field.split('[');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |path, part| {
        path + part.split_once(']').map_or("", |(_, rest)| rest)
    })
}

fn field_of(problem: &str) -> String {
    problem.split(": ").next().unwrap_or_default().to_owned()
}

/// Runs `--check` on manifests. Returns the problems of each.
fn check(manifests: &[Value], arguments: &[&str]) -> Vec<Vec<String>> {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": manifests});
    let path = std::env::temp_dir().join(format!(
        "cronwheel-check-{}-{}.json",
        std::process::id(),
        arguments.len()
    ));
    fs::write(&path, list.to_string()).expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_cronwheel"))
        .args(["explain", "--check", "-o", "json", "-f"])
        .arg(&path)
        .args(arguments)
        .output()
        .expect("a process");
    fs::remove_file(&path).expect("removed");
    let answers: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        answers.len(),
        manifests.len(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let problems = |answer: &Value| serde_json::from_value(answer["problems"].clone()).expect("texts");
    answers.iter().map(problems).collect()
}

/// With `--server`, the API server itself decides, and its admission too.
pub(super) async fn check_on_the_server_includes_its_admission(namespace: Namespace) {
    namespace.create_cron_job(json!({"run-for": "1s"}), json!({})).await;
    // The quota comes last: the usage of an object that is created before the quota's first status is counted minutes
    // later.
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none", "namespace": namespace.name},
        "spec": {"hard": {"count/cronjobs.batch": "0"}},
    });
    namespace.create(quota).await;
    let is_in_force = async || {
        let quota = namespace.find("ResourceQuota", "none").await.expect("it");
        quota["status"]["hard"]["count/cronjobs.batch"] == "0"
    };
    assert!(wait(is_in_force).await, "the quota is not in force");
    let in_namespace = |name: &str, changes: Value| {
        let mut manifest = manifests::valid(name);
        manifest["metadata"]["namespace"] = namespace.name.clone().into();
        for (member, value) in changes.as_object().into_iter().flatten() {
            manifest["spec"][member] = value.clone();
        }
        manifest
    };
    let manifests = [
        // It exists, so this is an update.
        in_namespace("hello", json!({})),
        in_namespace("hello", json!({"concurrencyPolicy": "forbid"})),
        in_namespace("other", json!({})),
    ];
    let kubeconfig = namespace.control_plane.admin_kubeconfig.clone();
    let problems = check(&manifests, &["--server", "--kubeconfig", text(&kubeconfig)]);
    assert!(problems[0].is_empty(), "{problems:?}");
    assert!(
        problems[1][0].starts_with("spec.concurrencyPolicy: Unsupported value: \"forbid\""),
        "{problems:?}"
    );
    assert!(problems[2][0].contains("exceeded quota: none"), "{problems:?}");
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}
