//! Tests of configurations that are refused at the start, and of the error messages.

use std::path::PathBuf;

use clap::Parser;

use super::*;
use crate::cli::args::{Cli, Command};

const KUBECONFIG: &str = r#"
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:6443"}}]
users: [{name: u, user: {}}]
contexts: [{name: blue, context: {cluster: c, user: u}}, {name: green, context: {cluster: gone, user: u}}]
current-context: blue
"#;

/// A file that is removed when the test ends.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> File {
        let path = std::env::temp_dir().join(format!("cronwheel-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        File(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn parse(arguments: &[&str]) -> RunArgs {
    let line = ["cronwheel", "run"].into_iter().chain(arguments.iter().copied());
    let Command::Run(args) = Cli::try_parse_from(line).unwrap().command else {
        panic!("not a run")
    };
    args
}

async fn load(arguments: &[&str]) -> Result<RunConfig, CommandError> {
    RunConfig::load(&parse(arguments)).await
}

#[tokio::test]
async fn kubeconfig_and_context_select_the_api_server() {
    let file = File::new("good", KUBECONFIG);
    let path = file.0.to_str().unwrap();
    for arguments in [
        vec!["--kubeconfig", path],
        vec!["--kubeconfig", path, "--context", "blue"],
    ] {
        let config = load(&arguments).await.unwrap();
        assert_eq!(config.kube.cluster_url.to_string(), "https://127.0.0.1:6443/");
    }
}

#[tokio::test]
async fn a_wrong_kubeconfig_or_context_is_reported_with_a_remedy() {
    let good = File::new("contexts", KUBECONFIG);
    let bad = File::new("bad", "contexts: 3");
    let empty = File::new("empty", "contexts: []");
    let [good, bad, empty] = [&good, &bad, &empty].map(|file| file.0.to_str().unwrap());
    for (arguments, expected) in [
        (
            vec!["--kubeconfig", "/does/not/exist"],
            "--kubeconfig /does/not/exist: cannot be used",
        ),
        (vec!["--kubeconfig", bad], "cannot be used; give a kubeconfig"),
        (
            vec!["--kubeconfig", good, "--context", "red"],
            "--context red: not in the kubeconfig; it has blue, green",
        ),
        (
            vec!["--kubeconfig", empty, "--context", "red"],
            "--context red: not in the kubeconfig; it has none",
        ),
        (
            vec!["--kubeconfig", good, "--context", "green"],
            "check its cluster and its user",
        ),
    ] {
        let error = load(&arguments).await.err().unwrap().to_string();
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}

#[test]
fn in_pod_needs_a_service_host_and_a_token() {
    let token = File::new("token", "t0ken");
    let nowhere = Path::new("/does/not/exist");
    let check = |host: Option<&str>, token: &Path, expected: Option<&str>| {
        let variable = |name: &str| (name == "KUBERNETES_SERVICE_HOST").then(|| host.map(OsString::from))?;
        assert_eq!(not_in_pod(variable, token).as_deref(), expected, "{host:?} {token:?}");
    };
    check(Some("10.0.0.1"), &token.0, None);
    check(Some("10.0.0.1"), nowhere, Some("there is no token at /does/not/exist"));
    check(Some(""), &token.0, Some("KUBERNETES_SERVICE_HOST is not set"));
    check(None, &token.0, Some("KUBERNETES_SERVICE_HOST is not set"));
}

#[test]
fn error_without_an_api_server_lists_what_was_tried() {
    let check = |kubeconfig: Option<&str>, place: &str| {
        let not_in_pod = not_in_pod(|_| None, Path::new(TOKEN_FILE)).unwrap();
        let error = no_api_server(&not_in_pod, &kubeconfig_place(kubeconfig.map(OsString::from)));
        let expected = format!(
            "cannot find an API server: no service account of a Pod, since KUBERNETES_SERVICE_HOST is not set, and no \
             kubeconfig in {place}; give --kubeconfig FILE, or run in a Pod with a service account"
        );
        assert_eq!(error, expected);
    };
    check(None, "~/.kube/config (KUBECONFIG is not set)");
    check(Some(""), "~/.kube/config (KUBECONFIG is not set)");
    check(Some("/a:/b"), "KUBECONFIG=/a:/b");
}

#[tokio::test]
async fn each_namespace_is_watched_once() {
    let file = File::new("scopes", KUBECONFIG);
    let path = file.0.to_str().unwrap();
    let all = load(&["--kubeconfig", path]).await.unwrap();
    assert_eq!(all.settings.scopes, [Scope::Cluster]);
    let some = load(&[
        "--kubeconfig",
        path,
        "--namespace",
        "b",
        "--namespace",
        "a",
        "--namespace",
        "b",
    ])
    .await
    .unwrap();
    assert_eq!(
        some.settings.scopes,
        [Scope::Namespace("a".into()), Scope::Namespace("b".into())]
    );
}

#[tokio::test]
async fn inline_ca_data_precedes_the_ca_file() {
    const CA: &str = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let ca = File::new("ca.crt", CA);
    let path = ca.0.display();
    let inline = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, CA);
    for (name, cluster, expected) in [
        ("ca-file", format!("certificate-authority: {path}"), Some(ca.0.clone())),
        (
            "ca-inline",
            format!("certificate-authority: {path}, certificate-authority-data: {inline}"),
            None,
        ),
        ("ca-none", "server: https://127.0.0.1".to_owned(), None),
    ] {
        let text = KUBECONFIG.replace(
            "server: \"https://127.0.0.1:6443\"",
            &format!("server: \"https://127.0.0.1\", {cluster}"),
        );
        let text = text.replace("server: \"https://127.0.0.1\", server:", "server:");
        let file = File::new(name, &text);
        let config = load(&["--kubeconfig", file.0.to_str().unwrap()]).await.unwrap();
        assert_eq!(config.kube.root_cert_file, expected, "{name}");
        assert_eq!(config.kube.root_cert.is_some(), name != "ca-none");
    }
}

#[tokio::test]
async fn the_start_line_describes_sharding() {
    let file = File::new("start", KUBECONFIG);
    let path = file.0.to_str().unwrap();
    let sharing = async |arguments: &[&str]| {
        let args = parse(&[&["--kubeconfig", path, "--pod-name=a"], arguments].concat());
        let config = RunConfig::load(&args).await.unwrap();
        sharing_text(&config.settings.membership)
    };
    let expected = "a of installation team, 256 shards, Leases in kube-system";
    let arguments = ["--installation=team", "--lease-namespace=kube-system"];
    assert_eq!(sharing(&arguments).await, expected);
}
