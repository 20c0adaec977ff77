//! Options that need more of the cluster than the CronJob, in `cronwheel dev`: a freeze of a namespace, and a calendar.

use std::process::Command;

use k8s_openapi::api::{
    batch::v1::{CronJob, Job},
    core::v1::ConfigMap,
};
use kube::{
    Api, Client,
    api::{ListParams, PostParams},
};
use rustix::process::Signal;
use serde_json::json;

use super::{Dev, Folder, page, ticking, wait_for_complete_job};

/// The frozen namespace, one of those that a new cluster has.
const FROZEN: &str = "kube-public";

/// Runs a command of cronwheel. Returns what it prints.
fn cronwheel(folder: &Folder, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cronwheel"));
    command.args(arguments).arg("--kubeconfig").arg(folder.kubeconfig());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

async fn create(client: &Client, namespace: &str, cron_job: &CronJob) {
    let cron_jobs: Api<CronJob> = Api::namespaced(client.clone(), namespace);
    cron_jobs.create(&PostParams::default(), cron_job).await.unwrap();
}

async fn has_jobs(client: &Client, namespace: &str, cron_job: &str) -> bool {
    let jobs: Api<Job> = Api::namespaced(client.clone(), namespace);
    let jobs = jobs.list(&ListParams::default()).await.unwrap();
    jobs.iter()
        .flat_map(|job| job.metadata.owner_references.iter().flatten())
        .any(|owner| owner.name == cron_job)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_freeze_and_a_calendar_have_an_effect() {
    let folder = Folder::new("options");
    let dev = Dev::start(&folder, &["--port", "0"]);
    let client = dev.client(&folder).await;
    let every_day = json!({
        "metadata": {"name": "every-day", "labels": {"cronwheel.dev/calendar": "true"}},
        "data": {"dates": "2020-01-01..2099-12-31"},
    });
    let every_day: ConfigMap = serde_json::from_value(every_day).unwrap();
    let config_maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    config_maps.create(&PostParams::default(), &every_day).await.unwrap();
    let freeze = cronwheel(&folder, &["freeze", FROZEN, "--until", "1h"]);
    assert!(!freeze.contains("note:"), "the replica follows it: {freeze}");

    let mut excluded = ticking();
    excluded.metadata.name = Some("excluded".to_owned());
    let not_on = ("cronwheel.dev/not-on".to_owned(), "every-day".to_owned());
    excluded.metadata.annotations = Some([not_on].into());
    create(&client, "default", &excluded).await;
    create(&client, FROZEN, &ticking()).await;
    create(&client, "default", &ticking()).await;
    let job = wait_for_complete_job(&client, "default").await;
    assert_eq!(job.metadata.owner_references.unwrap()[0].name, "tick");
    assert!(!has_jobs(&client, "default", "excluded").await);
    assert!(!has_jobs(&client, FROZEN, "tick").await);
    let text = page::text(dev.page).await;
    for name in ["default/excluded", "kube-public/tick"] {
        assert!(!text.contains(&format!("{name}: the run of")), "{text}");
    }

    cronwheel(&folder, &["thaw", FROZEN]);
    wait_for_complete_job(&client, FROZEN).await;
    dev.end(Signal::TERM);
}
