//! etcd is restored to earlier data, including versions, as by `etcdutl snapshot restore` without `--bump-revision`.

use std::{path::Path, process::Command};

use futures::future::join_all;
use jiff::SignedDuration;
use kube::api::DeleteParams;
use serde_json::json;
use testbed::Testbed;

use super::Namespace;
use crate::{controller::Controller, kubernetes::job_name};

/// The number of changes whose versions the restore reverts: more than API servers write on their own while they start.
const N_CHANGES: usize = 1000;

pub(super) async fn cron_job_restored_with_etcd_runs_after_a_restart(testbed: &mut Testbed, namespace: Namespace) {
    for (name, is_suspended) in [("back", false), ("kept", true)] {
        let cron_job = json!({"metadata": {"name": name}, "spec": {"suspend": is_suspended}});
        namespace.create_cron_job(json!({}), cron_job).await;
        namespace.set_last_run(name, namespace.minute(-1)).await;
    }
    let (data, snapshot) = (testbed.etcd_data(), testbed.etcd_data().with_extension("snapshot"));
    testbed.stop_api_server().expect("a stop");
    testbed.stop_etcd().expect("a stop");
    copy(&data, &snapshot);
    testbed.start_etcd().expect("etcd");
    testbed.start_api_server().expect("an API server");

    namespace.delete("CronJob", "back", DeleteParams::default()).await;
    let just_after = namespace.minute(0) + SignedDuration::from_secs(1);
    let controller = Controller::start_at(&namespace, just_after, &[]);
    controller.wait_until_ready().await;
    controller.wait_for_metric("cronwheel_cron_jobs", &[], |n| n == 1).await;
    for _ in 0..N_CHANGES / 20 {
        join_all((0..20).map(async |number: u32| {
            let drawn = format!("{number}-{}", jiff::Timestamp::now());
            let patch = json!({"metadata": {"annotations": {"changed": drawn}}});
            namespace.patch("CronJob", "kept", patch).await;
        }))
        .await;
    }

    testbed.kill_api_server().expect("a kill");
    testbed.kill_etcd().expect("a kill");
    std::fs::remove_dir_all(&data).expect("the data");
    copy(&snapshot, &data);
    testbed.start_etcd().expect("etcd");
    testbed.start_api_server().expect("an API server");

    let status = controller.wait_for_end().await;
    assert_eq!(status.code(), Some(1));
    let restarted = Controller::start_at(&namespace, just_after, &[]);
    restarted.wait_for_metric("cronwheel_cron_jobs", &[], |n| n == 2).await;
    namespace.wait_for_jobs(&[job_name("back", namespace.minute(0))]).await;
    restarted.terminate().await;
    std::fs::remove_dir_all(&snapshot).expect("the snapshot");
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.is_ok_and(|status| status.success()), "{}", from.display());
}
