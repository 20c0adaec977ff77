//! The page of `cronwheel dev`.

use std::net::SocketAddr;

use k8s_openapi::api::batch::v1::{CronJob, Job};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use rustix::process::Signal;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use super::{Dev, Folder, PATIENCE, ticking, wait_for_complete_job};

/// Returns the text of the page, without its tags.
pub(super) async fn text(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let parts = answer.split('<');
    parts
        .map(|part| part.split_once('>').map_or(part, |(_, text)| text))
        .collect()
}

/// Returns the number before a label.
#[track_caller]
pub(super) fn figure(text: &str, label: &str) -> u64 {
    let (before, _) = text
        .split_once(&format!(" {label}"))
        .unwrap_or_else(|| panic!("{label:?} is not in {text}"));
    let digits = before
        .rsplit(|character: char| !character.is_ascii_digit())
        .next()
        .unwrap();
    digits
        .parse()
        .unwrap_or_else(|error| panic!("{label:?}: {error} in {text}"))
}

/// Waits until the CronJob is suspended and nothing is due any more. Each read is a real exchange.
async fn settled(address: SocketAddr) -> [u64; 5] {
    let labels = ["started", "held back", "waiting", "missed", "doubled"];
    loop {
        let text = text(address).await;
        let figures = labels.map(|label| figure(&text, label));
        let [.., n_waiting, _, n_doubled] = figures;
        if n_waiting == 0 && n_doubled == 1 && text.contains("CronJob, 1 suspended") {
            return figures;
        }
    }
}

/// Creates another Job for the slot of a Job.
async fn double(client: &Client, job: &Job) {
    let mut twin = job.clone();
    let metadata = &job.metadata;
    twin.metadata = serde_json::from_value(json!({
        "name": "twin",
        "annotations": metadata.annotations,
        "ownerReferences": metadata.owner_references,
    }))
    .unwrap();
    twin.status = None;
    let spec = twin.spec.as_mut().unwrap();
    spec.selector = None;
    spec.template.metadata.as_mut().unwrap().labels = None;
    let jobs: Api<Job> = Api::default_namespaced(client.clone());
    jobs.create(&PostParams::default(), &twin).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn figures_of_the_page_are_those_of_the_totals() {
    let folder = Folder::new("page");
    let dev = Dev::start(&folder, &["--port", "0", "--page-port", "0"]);
    let client = dev.client(&folder).await;
    let cron_jobs: Api<CronJob> = Api::default_namespaced(client.clone());
    cron_jobs.create(&PostParams::default(), &ticking()).await.unwrap();
    let job = wait_for_complete_job(&client, "default").await;
    let suspended = Patch::Merge(json!({"spec": {"suspend": true}}));
    cron_jobs
        .patch("tick", &PatchParams::default(), &suspended)
        .await
        .unwrap();
    double(&client, &job).await;
    let figures = timeout(PATIENCE, settled(dev.page)).await.expect("a quiet page");
    let [n_started, n_held_back, _, n_missed, _] = figures;
    assert!(n_started >= 1, "{figures:?}");
    let shown = text(dev.page).await;
    assert!(shown.contains("CronJobs of cronwheel dev"), "{shown}");
    assert!(
        shown.contains("default/tick: the run of ") && shown.contains(" was doubled"),
        "{shown}"
    );
    let lines = dev.end(Signal::INT);
    let held_back = match n_held_back {
        0 => String::new(),
        n_held_back => format!(", {n_held_back} held back"),
    };
    let expected = format!(": runs {n_started} started{held_back}, {n_missed} missed, 1 doubled");
    assert!(
        lines.last().unwrap().ends_with(&expected),
        "{lines:?} without {expected:?}"
    );
}
