//! `cronwheel missed` and `cronwheel backfill` as processes: two minutes pass without a controller, and their Jobs are
//! created afterwards, also by a process that is killed in between.

use std::{path::PathBuf, process::Output, time::Duration};

use jiff::Timestamp;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::{
    account::permit_leases,
    block_on,
    cases::viewing::{account, command, output, reading, viewer},
    control_plane::{Purpose, share},
    controller::Controller,
    kubernetes::{ControlPlane, Namespace, wait},
};

const NAME: &str = "backfill::missed_slots_are_started_once";

/// Two slots, and two Jobs of ten seconds.
const DURATION_MAX: Duration = Duration::from_mins(4);

pub(super) fn trials() -> impl Iterator<Item = Trial> {
    let trial = Trial::test(NAME, || {
        share(Purpose::Cases, |access| {
            block_on(DURATION_MAX, async {
                let namespace = Namespace::create_for(NAME, ControlPlane::connect(access).await).await;
                permit_leases(&namespace).await;
                missed_slots_are_started_once(&namespace).await;
            });
        });
        Ok(())
    });
    [trial].into_iter()
}

/// Runs a command on the namespace. Returns its success, its output and its errors.
async fn run(name: &str, kubeconfig: &PathBuf, namespace: &Namespace, arguments: &[&str]) -> (bool, String, String) {
    let all = [&["-n", &namespace.name], arguments].concat();
    let Output { status, stdout, stderr } = output(command(name, kubeconfig, &all)).await;
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (status.success(), text(stdout), text(stderr))
}

async fn missed_slots_are_started_once(namespace: &Namespace) {
    namespace
        .create_cron_job(
            json!({"run-for": "10s"}),
            json!({"spec": {"concurrencyPolicy": "Forbid"}}),
        )
        .await;
    let slots = [0, 1].map(|number| namespace.minute(number));
    let names = [0, 1].map(|number| namespace.job_name(number));
    let readers = viewer(namespace).await;
    let passed = slots[1].duration_since(Timestamp::now()) + jiff::SignedDuration::from_secs(1);
    tokio::time::sleep(passed.unsigned_abs()).await;
    assert_missed(namespace, &readers, slots).await;

    let window = ["hello", "--from", &slots[0].to_string(), "--to", &slots[1].to_string()];
    let (is_fine, text, errors) = run("backfill", &readers, namespace, &window).await;
    assert!(
        !is_fine && errors.contains("the account needs create on jobs"),
        "{text}{errors}"
    );
    let dry_run = [&window[..], &["--dry-run"]].concat();
    let (is_fine, text, errors) = run("backfill", &readers, namespace, &dry_run).await;
    assert!(is_fine, "{errors}");
    assert_eq!(text.matches("would start hello-").count(), 2, "{text}");
    assert_eq!(namespace.jobs().await, Vec::<Value>::new());

    let mut rules = reading();
    let create = json!({"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create"]});
    rules.as_array_mut().expect("rules").push(create);
    let user = account(namespace, rules).await;
    kill_after_the_first_job(namespace, &user, &window, &names[0]).await;
    let (is_fine, text, errors) = run("backfill", &user, namespace, &window).await;
    assert!(is_fine, "{text}{errors}");
    assert!(text.contains(": 1 slot to start, 1 has a Job\n"), "{text}");
    assert!(text.ends_with("1 Job started: 1 succeeded\n"), "{text}");
    assert_jobs(namespace, slots, &names).await;

    let before = namespace.jobs().await;
    let (is_fine, text, errors) = run("backfill", &user, namespace, &window).await;
    assert!(is_fine, "{text}{errors}");
    assert!(text.ends_with(": 0 slots to start, 2 have a Job\n"), "{text}");
    assert_eq!(namespace.jobs().await, before);
    assert_controller_takes_them_over(namespace, &names).await;
}

/// The first slot is lost, and the second one is due.
async fn assert_missed(namespace: &Namespace, kubeconfig: &PathBuf, slots: [Timestamp; 2]) {
    let (is_fine, text, errors) = run("missed", kubeconfig, namespace, &["-o", "json"]).await;
    assert!(is_fine, "{errors}");
    let missed: Value = serde_json::from_str(&text).expect("JSON");
    let entries = missed["missed"].as_array().expect("entries");
    let found: Vec<(&Value, &Value)> = entries
        .iter()
        .map(|entry| (&entry["reason"], &entry["slots"]))
        .collect();
    let expected = [("NotStarted", slots[0]), ("Open", slots[1])].map(|(reason, slot)| (json!(reason), json!([slot])));
    assert_eq!(
        found,
        expected.iter().map(|(reason, slot)| (reason, slot)).collect::<Vec<_>>()
    );
    let (is_fine, text, errors) = run("missed", kubeconfig, namespace, &[]).await;
    assert!(is_fine, "{errors}");
    let last = text.lines().last().unwrap_or_default().trim();
    let expected = format!("cronwheel backfill hello -n {} --from {}", namespace.name, slots[0]);
    assert!(last.starts_with(&expected), "{text}");
}

/// Kills the process while its first Job runs. The second one does not exist then.
async fn kill_after_the_first_job(namespace: &Namespace, kubeconfig: &PathBuf, window: &[&str], name: &str) {
    let all = [&["-n", &namespace.name], window].concat();
    let mut process = command("backfill", kubeconfig, &all).spawn().expect("a process");
    let is_there = wait(async || !namespace.jobs().await.is_empty()).await;
    process.kill().expect("a kill");
    process.wait().expect("an end");
    assert!(is_there, "the first Job");
    assert_eq!(namespace.job_names().await, [name]);
}

/// The Jobs are those that the controller would have created, and ran one after the other.
async fn assert_jobs(namespace: &Namespace, slots: [Timestamp; 2], names: &[String; 2]) {
    let jobs = namespace.jobs().await;
    assert_eq!(namespace.job_names().await, *names);
    let uid = namespace.cron_job().await["metadata"]["uid"].clone();
    for (job, slot) in jobs.iter().zip(slots) {
        let metadata = &job["metadata"];
        let owner = &metadata["ownerReferences"][0];
        assert_eq!((&owner["uid"], &owner["controller"]), (&uid, &json!(true)));
        let scheduled = &metadata["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"];
        assert_eq!(*scheduled, json!(slot));
    }
    let time = |value: &Value| {
        value
            .as_str()
            .and_then(|text| text.parse::<Timestamp>().ok())
            .expect("a time")
    };
    let ended = time(&jobs[0]["status"]["completionTime"]);
    let created = time(&jobs[1]["metadata"]["creationTimestamp"]);
    assert!(ended <= created, "{ended} {created}");
}

/// Beside the controller, the Jobs cause no Warning, and history limits delete them.
async fn assert_controller_takes_them_over(namespace: &Namespace, names: &[String; 2]) {
    let limits = json!({"spec": {"suspend": true, "successfulJobsHistoryLimit": 1}});
    namespace.patch_cron_job(limits).await;
    let controller = Controller::start_before(namespace, 2);
    namespace.wait_for_jobs(&names[1..]).await;
    controller.terminate().await;
    assert_eq!(namespace.event_counts("hello", "UnexpectedJob").await, []);
}
