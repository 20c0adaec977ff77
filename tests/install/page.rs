//! The page of a release: its Pod, its account, and who is answered.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{Ipv4Addr, TcpStream},
    os::unix::fs::PermissionsExt as _,
};

use serde_json::Value;

use super::{
    audit::Audit,
    cases::WANTED,
    cluster::{Cluster, is_wanted, wait_for},
    release::{CHART, NAMESPACE, name_of},
    tenant::{MINUTELY, TENANT},
};

const ACCOUNT: &str = "system:serviceaccount:cronwheel:cronwheel-ui";

/// The status line and the rest of an answer.
fn get(address: Ipv4Addr, path: &str, host: &str) -> (String, String) {
    let mut stream = TcpStream::connect((address, 8090)).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (status, rest) = answer.split_once("\r\n").unwrap();
    (status.to_owned(), rest.to_owned())
}

fn page_pod(cluster: &Cluster) -> Value {
    let mut pods = cluster.pods();
    pods.retain(|pod| pod["metadata"]["labels"]["app.kubernetes.io/name"] == "cronwheel-ui");
    assert_eq!(pods.len(), 1);
    pods.remove(0)
}

#[test]
fn page_of_a_release_shows_cron_jobs_and_only_reads() {
    if !is_wanted(WANTED) {
        return;
    }
    let cluster = Cluster::start();
    cluster.create_namespace();
    cluster.create_cron_jobs();
    let before = cluster.objects();
    // helm waits for the probes of the page.
    cluster.release("install", &[CHART, "--set=ui.enabled=true", "--set=replicaCount=1"]);
    cluster.wait_for_pods(2);
    let pod = page_pod(&cluster);
    assert_eq!(pod["status"]["containerStatuses"][0]["restartCount"], 0, "{pod}");
    let process = cluster.nodes.process(name_of(&pod)).unwrap();
    let host = format!("{}:8090", process.address);
    for cron_job in MINUTELY {
        let shown = format!("/cronjobs/{TENANT}/{cron_job}");
        wait_for("the CronJob on the page", || {
            let (status, page) = get(process.address, "/", &host);
            (status.contains(" 200 ") && page.contains(&shown)).then_some(())
        });
    }
    let service = format!("cronwheel-ui.{NAMESPACE}");
    for (host, status) in [
        (format!("{service}.svc:8090"), " 200 "),
        (format!("{service}:8090"), " 421 "),
        ("evil.example.com:8090".to_owned(), " 421 "),
    ] {
        let (found, _) = get(process.address, "/healthz", &host);
        assert!(found.contains(status), "{host}: {found}");
    }
    let file = format!("/proc/{}/root/history/runs.sqlite", process.pid);
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{file}");
    // The explanation reads one CronJob and its Jobs, and no Events.
    let (status, _) = get(
        process.address,
        &format!("/cronjobs/{TENANT}/{}?explain=yes", MINUTELY[0]),
        &host,
    );
    assert!(status.contains(" 200 "), "{status}");
    let audit = Audit::of_account(&cluster, ACCOUNT);
    let expected = [
        "get batch cronjobs",
        "get namespaces",
        "list batch cronjobs",
        "list batch jobs",
        "list namespaces",
    ];
    let mut used = audit.used_permissions();
    // A watch is logged when it ends. A Job is read if there is one by then.
    used.retain(|permission| !permission.starts_with("watch ") && permission != "get batch jobs");
    assert_eq!(used, expected.map(str::to_owned).into());
    audit.assert_nothing_forbidden();
    cluster.uninstall(&before);
}
