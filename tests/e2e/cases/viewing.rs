//! `cronwheel ui` and `cronwheel report` as processes, whose account may only get, list and watch CronJobs and Jobs in one
//! namespace.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
};

use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::{
    exchange,
    kubernetes::{Namespace, job_name, wait},
};

const NAME: &str = "viewer";

/// Creates the account that reads. Returns its kubeconfig.
pub(crate) async fn viewer(namespace: &Namespace) -> PathBuf {
    account(namespace, reading()).await
}

/// The rights of the account that reads.
pub(crate) fn reading() -> Value {
    json!([{"apiGroups": ["batch"], "resources": ["cronjobs", "jobs"], "verbs": ["get", "list", "watch"]}])
}

/// Creates the account, or gives it these rights. Returns its kubeconfig.
pub(crate) async fn account(namespace: &Namespace, rules: Value) -> PathBuf {
    let admin = &namespace.control_plane.admin_kubeconfig;
    let file = |extension: &str| admin.with_file_name(format!("{}.{extension}", namespace.name));
    let metadata = json!({"name": NAME, "namespace": namespace.name});
    let group = "rbac.authorization.k8s.io";
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {"apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": metadata, "rules": rules},
        {
            "apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": NAME},
            "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": namespace.name}],
        },
    ]});
    let objects_file = file("viewer.json");
    fs::write(&objects_file, objects.to_string()).expect("a file");
    namespace
        .kubectl(&["apply", "-f", objects_file.to_str().expect("a path")])
        .await;
    let token = namespace.kubectl(&["create", "token", NAME]).await;
    let text = fs::read_to_string(&namespace.control_plane.controller_kubeconfig).expect("a kubeconfig");
    let mut kubeconfig: Value = serde_json::from_str(&text).expect("JSON");
    kubeconfig["users"][0]["user"] = json!({"token": token.trim()});
    let path = file("viewer.kubeconfig");
    fs::write(&path, kubeconfig.to_string()).expect("a kubeconfig");
    path
}

pub(crate) fn command(name: &str, kubeconfig: &PathBuf, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cronwheel"));
    command.arg(name).arg("--kubeconfig").arg(kubeconfig).args(arguments);
    command.stdin(Stdio::null());
    command
}

pub(crate) async fn output(mut command: Command) -> Output {
    let ended = tokio::task::spawn_blocking(move || command.output());
    ended.await.expect("an end").expect("a process")
}

/// Runs `cronwheel report`. Returns its JSON.
pub(crate) async fn report(kubeconfig: &PathBuf, arguments: &[&str]) -> Value {
    let Output { status, stdout, stderr } = output(command("report", kubeconfig, arguments)).await;
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    serde_json::from_slice(&stdout).expect("JSON")
}

/// The page as a process.
pub(crate) struct Page {
    process: Child,
    /// Host and port.
    pub(crate) address: String,
}

impl Page {
    async fn start(kubeconfig: &PathBuf, arguments: &[&str]) -> Page {
        Page::start_with_history(kubeconfig, "none", arguments).await
    }

    /// Starts it on a free port. The history is a file or `none`.
    pub(crate) async fn start_with_history(kubeconfig: &PathBuf, history: &str, arguments: &[&str]) -> Page {
        let all = [&["--listen", "0", "--history", history], arguments].concat();
        let mut process = command("ui", kubeconfig, &all)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let stdout = process.stdout.take().expect("its output");
        let first_line = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            BufReader::new(stdout).read_line(&mut line).map(|_| line)
        });
        let line = first_line.await.expect("an end").expect("a line");
        let address = line.trim_end().rsplit("http://").next().unwrap_or_default().to_owned();
        assert!(address.starts_with("127.0.0.1:"), "{line:?}");
        Page { process, address }
    }

    pub(crate) async fn send(&self, method: &str, path: &str, host: &str) -> (u16, String) {
        let request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        exchange::send(&self.address, &request).await.expect("an answer")
    }

    async fn get(&self, path: &str) -> (u16, String) {
        self.send("GET", path, &self.address).await
    }

    /// Waits until the page at this path has these texts and none of the others.
    async fn wait_for(&self, path: &str, texts: &[&str], absent: &[&str]) {
        let mut last = String::new();
        let is_there = async || {
            last = self.get(path).await.1;
            texts.iter().all(|text| last.contains(text)) && !absent.iter().any(|text| last.contains(text))
        };
        let is_there = wait(is_there).await;
        assert!(is_there, "{path} has not {texts:?}, or has {absent:?}:\n{last}");
    }

    /// Kills the process as in a crash.
    pub(crate) fn kill(mut self) {
        self.process.kill().expect("a kill");
        self.process.wait().expect("an end");
    }

    pub(crate) async fn end(mut self) {
        testbed::terminate(&self.process).expect("a signal");
        let mut status = None;
        let has_ended = wait(async || {
            status = self.process.try_wait().expect("a status");
            status.is_some()
        });
        assert!(
            has_ended.await && status.is_some_and(|status| status.success()),
            "{status:?}"
        );
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts the run of a slot by hand: a Job with the name of the slot.
async fn start_run(namespace: &Namespace, cron_job: &str, number: i64) -> String {
    let name = job_name(cron_job, namespace.minute(number));
    let from = format!("--from=cronjob/{cron_job}");
    namespace.kubectl(&["create", "job", &name, &from]).await;
    name
}

fn is_complete(job: &Value) -> bool {
    let conditions = job["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Complete" && condition["status"] == "True")
}

pub(super) async fn page_shows_what_the_api_server_has(namespace: Namespace) {
    namespace.create_cron_job(json!({"run-for": "1s"}), json!({})).await;
    let first = start_run(&namespace, "hello", 0).await;
    let page = Page::start(&viewer(&namespace).await, &["-n", &namespace.name]).await;
    page.wait_for("/", &["hello", &namespace.name], &[]).await;

    let detail = format!("/cronjobs/{}/hello", namespace.name);
    let has_ended = wait(async || namespace.jobs().await.iter().all(is_complete)).await;
    assert!(has_ended, "the Job ends");
    page.wait_for(&detail, &[&first], &[]).await;
    let second = start_run(&namespace, "hello", -1).await;
    page.wait_for(&detail, &[&first, &second], &[]).await;

    let other = json!({"metadata": {"name": "second-one"}, "spec": {"suspend": true}});
    namespace.create_cron_job(json!({"run-for": "1s"}), other).await;
    page.wait_for("/", &["hello", "second-one"], &[]).await;
    namespace
        .delete("CronJob", "second-one", DeleteParams::background())
        .await;
    page.wait_for("/", &["hello"], &["second-one"]).await;
    page.end().await;
}

pub(super) async fn page_answers_only_reads_from_its_own_names(namespace: Namespace) {
    namespace.create_cron_job(json!({"run-for": "1s"}), json!({})).await;
    let viewer = viewer(&namespace).await;
    let page = Page::start(&viewer, &["-n", &namespace.name, "-n", "kube-system"]).await;
    // The account may not read the other namespace.
    page.wait_for("/", &["hello", "kube-system"], &[]).await;
    for (method, host, code) in [
        ("GET", &*page.address, 200),
        ("POST", &*page.address, 405),
        ("DELETE", &*page.address, 405),
        ("GET", "rebound.example.com", 421),
    ] {
        assert_eq!(page.send(method, "/", host).await.0, code, "{method} {host}");
    }
    let taken = command(
        "ui",
        &viewer,
        &["-n", &namespace.name, "--history", "none", "--listen", &page.address],
    );
    let taken = output(taken).await;
    let error = String::from_utf8_lossy(&taken.stderr).into_owned();
    assert!(
        !taken.status.success() && error.contains("another process has this port"),
        "{error}"
    );
    page.end().await;
}

pub(super) async fn account_of_one_namespace_is_told_to_name_it(namespace: Namespace) {
    namespace.create_cron_job(json!({"run-for": "1s"}), json!({})).await;
    let viewer = viewer(&namespace).await;
    for arguments in [&["ui", "--listen", "0", "--history", "none"][..], &["report"]] {
        let refused = output(command(arguments[0], &viewer, &arguments[1..])).await;
        let error = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success(), "{arguments:?}");
        assert!(
            error.contains("cannot read the CronJobs and Jobs of all namespaces"),
            "{error}"
        );
        assert!(error.contains("-n NAME"), "{error}");
    }
    let report = output(command("report", &viewer, &["-n", &namespace.name, "-o", "json"])).await;
    assert!(report.status.success(), "{}", String::from_utf8_lossy(&report.stderr));
    let report: Value = serde_json::from_slice(&report.stdout).expect("JSON");
    assert_eq!(report["nCronJobs"], 1, "{report}");
}
