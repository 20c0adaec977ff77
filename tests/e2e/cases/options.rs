//! The annotations under `cronwheel.dev/` on CronJobs and namespaces.
//!
//! Slots of the past are missed slots: the cursor of each CronJob stands before them.

use std::{process::Command, rc::Rc, time::Duration};

use cronwheel::{
    schedule::{CronJobSchedule, Zone, options::Options},
    shard::hash::even_hash,
};
use jiff::{SignedDuration, Timestamp};
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::{
    account::Account,
    controller::Controller,
    kubernetes::{Namespace, job_name, merge, wait},
};

/// A Job that does not end.
fn hanging() -> Value {
    json!({"outcome": "hang", "run-for": "0s"})
}

/// The schedule of these minutes of the case.
fn schedule(namespace: &Namespace, minutes: &[i64]) -> String {
    let of_hour = |minute: &i64| (namespace.minute(*minute).as_second() / 60 % 60).to_string();
    let minutes: Vec<String> = minutes.iter().map(of_hour).collect();
    format!("{} * * * *", minutes.join(","))
}

/// A CronJob of these minutes with these options, whose cursor is before all of them.
async fn create(namespace: &Namespace, name: &str, minutes: &[i64], options: &[(&str, &str)], changes: Value) {
    let annotations = options
        .iter()
        .map(|(option, value)| (format!("cronwheel.dev/{option}"), json!(value)));
    let mut object = json!({
        "metadata": {"name": name, "annotations": annotations.collect::<serde_json::Map<_, _>>()},
        "spec": {"schedule": schedule(namespace, minutes), "successfulJobsHistoryLimit": 10},
    });
    merge(&mut object, changes);
    namespace.create_cron_job(hanging(), object).await;
    namespace.set_last_run(name, namespace.minute(minutes[0] - 1)).await;
}

/// The names of the Jobs of these CronJobs and minutes, as a list of Jobs has them.
fn names(namespace: &Namespace, expected: &[(&str, &[i64])]) -> Vec<String> {
    let of_one = |(name, minutes): &(&str, &[i64])| {
        let job_name = |minute: &i64| job_name(name, namespace.minute(*minute));
        minutes.iter().map(job_name).collect::<Vec<_>>()
    };
    let mut names: Vec<String> = expected.iter().flat_map(of_one).collect();
    names.sort();
    names
}

fn time(value: &Value) -> Timestamp {
    let text = value.as_str().unwrap_or_else(|| panic!("no time: {value}"));
    text.parse().expect("a time")
}

/// Asserts that each Job names the slot of its own name in its annotation.
fn assert_slots_are_nominal(jobs: &[Value]) {
    for job in jobs {
        let metadata = &job["metadata"];
        let slot = time(&metadata["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]);
        let cron_job = metadata["ownerReferences"][0]["name"].as_str().expect("an owner");
        assert_eq!(metadata["name"], job_name(cron_job, slot));
    }
}

/// The offset of a CronJob with this window, in whole seconds.
fn offset(cron_job: &Value, window: &str) -> SignedDuration {
    let uid = cron_job["metadata"]["uid"].as_str().expect("a uid");
    let schedule = CronJobSchedule::new("* * * * *", None, &Zone::utc());
    let get = |name: &str| (name == "cronwheel.dev/spread").then_some(window);
    let options = Options::read(get, schedule.parsed.as_ref().ok(), even_hash(uid.as_bytes()));
    assert_eq!(options.invalid, []);
    options.offset()
}

pub(super) async fn spread_starts_each_cron_job_at_its_own_offset(namespace: Namespace) {
    const CRON_JOBS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
    let mut offsets = Vec::new();
    for name in CRON_JOBS {
        let minutely = json!({"spec": {"schedule": "* * * * *"}});
        create(&namespace, name, &[1], &[("spread", "30s")], minutely).await;
        let cron_job = namespace.find("CronJob", name).await.expect("the CronJob");
        offsets.push(offset(&cron_job, "30s"));
    }
    let lead = SignedDuration::from_secs(4);
    let slot = Timestamp::now() + lead;
    let controller = Controller::start_at(&namespace, namespace.minute(1) - lead, &[]);
    let last = *offsets.iter().max().expect("an offset");
    tokio::time::sleep((lead + last).unsigned_abs()).await;
    let expected = CRON_JOBS.map(|name| (name, &[1][..]));
    namespace.wait_for_jobs(&names(&namespace, &expected)).await;
    let jobs = namespace.jobs().await;
    assert_slots_are_nominal(&jobs);
    for (job, offset) in jobs.iter().zip(&offsets) {
        // The API server's timestamps have whole seconds.
        let after_slot = time(&job["metadata"]["creationTimestamp"]).duration_since(slot);
        let late = after_slot - *offset;
        assert!(
            late > SignedDuration::from_secs(-1) && late < SignedDuration::from_secs(4),
            "{} has the offset {offset:#} and started {after_slot:#} after its slot",
            job["metadata"]["name"]
        );
    }
    let slot = namespace.minute(1).to_string();
    for name in CRON_JOBS {
        let is_stored = |status: &Value| status["lastScheduleTime"] == *slot;
        namespace
            .wait_for_status_of(name, "the slot is stored", is_stored)
            .await;
    }
    controller.wait_for_account(&[("created", 6)]).await;
    controller.terminate().await;
}

pub(super) async fn missed_runs_choose_what_starts_after_an_absence(namespace: Namespace) {
    const SLOTS: [i64; 4] = [-4, -3, -2, 0];
    let policy = |policy: &str| json!({"spec": {"concurrencyPolicy": policy}});
    let in_turn = json!({"spec": {"concurrencyPolicy": "Forbid", "jobTemplate": {"spec": {"template": {
        "metadata": {"annotations": {"outcome": "complete", "run-for": "1s"}},
    }}}}});
    let all = [("missed-runs", "all")];
    create(&namespace, "latest", &SLOTS, &[], json!({})).await;
    create(&namespace, "skip", &SLOTS, &[("missed-runs", "skip")], json!({})).await;
    create(&namespace, "all-2", &SLOTS, &[("missed-runs", "all 2")], json!({})).await;
    create(&namespace, "all", &SLOTS, &all, json!({})).await;
    create(&namespace, "replace", &SLOTS, &all, policy("Replace")).await;
    create(&namespace, "in-turn", &SLOTS, &all, in_turn).await;
    let controller = Controller::start_at(&namespace, namespace.minute(0) - SignedDuration::from_secs(8), &[]);
    let missed: [(&str, &[i64]); 6] = [
        ("latest", &[-2]),
        ("skip", &[]),
        ("all-2", &[-3, -2]),
        ("all", &[-4, -3, -2]),
        ("replace", &[-2]),
        ("in-turn", &[-4, -3, -2]),
    ];
    // Those of the next slot, too; Replace has ended the run before it.
    let expected = missed.map(|(name, slots)| match name {
        "replace" => (name, vec![0]),
        _ => (name, [slots, &[0]].concat()),
    });
    let expected: Vec<(&str, &[i64])> = expected.iter().map(|(name, slots)| (*name, &**slots)).collect();
    namespace.wait_for_jobs(&names(&namespace, &expected)).await;
    // Superseded: -4 and -3 of latest and replace, and -4 of all-2.
    let outcomes = [("created", 16), ("missed", 3), ("superseded", 5)];
    controller.wait_for_account(&outcomes).await;
    let jobs = namespace.jobs().await;
    assert_slots_are_nominal(&jobs);
    let in_turn: Vec<&Value> = jobs
        .iter()
        .filter(|job| job["metadata"]["ownerReferences"][0]["name"] == "in-turn")
        .collect();
    for pair in in_turn.windows(2) {
        let (end, next) = (
            &pair[0]["status"]["completionTime"],
            &pair[1]["metadata"]["creationTimestamp"],
        );
        assert!(time(end) <= time(next), "{end} {next}");
    }
    controller.terminate().await;
}

/// The first controller stores no status, and is killed between two missed runs.
pub(super) async fn killed_between_missed_runs_the_next_one_continues(namespace: Namespace) {
    const SLOTS: [i64; 8] = [-10, -9, -8, -7, -6, -5, -4, -3];
    create(&namespace, "hello", &SLOTS, &[("missed-runs", "all")], json!({})).await;
    let paced = ["--missed-runs-per-second", "1"];
    let start = |minute, arguments: &[&str]| Controller::start(&namespace, minute, &[&paced, arguments].concat());
    let first = start(0, &["--status-flush-interval", "60s"]);
    assert!(
        wait(async || namespace.jobs().await.len() >= 3).await,
        "missed runs start"
    );
    first.kill();
    let before = namespace.jobs().await;
    let n_before = before.len();
    let oldest = names(&namespace, &[("hello", &SLOTS[..n_before])]);
    assert_eq!(namespace.job_names().await, oldest, "the oldest first");
    assert!(n_before < SLOTS.len(), "the kill is between two of them");
    let second = start(1, &[]);
    namespace.wait_for_jobs(&names(&namespace, &[("hello", &SLOTS)])).await;
    let jobs = namespace.jobs().await;
    let uids = |jobs: &[Value]| {
        jobs.iter()
            .map(|job| job["metadata"]["uid"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(uids(&jobs)[..n_before], uids(&before), "no run is repeated");
    let created: Vec<Timestamp> = jobs
        .iter()
        .map(|job| time(&job["metadata"]["creationTimestamp"]))
        .collect();
    assert!(created.is_sorted(), "{created:?}");
    let slot = namespace.minute(-3).to_string();
    let is_stored = |status: &Value| status["lastScheduleTime"] == *slot;
    namespace.wait_for_status("the last slot is stored", is_stored).await;
    second.terminate().await;
}

pub(super) async fn on_resume_chooses_what_starts_after_a_suspension(namespace: Namespace) {
    const SLOTS: [i64; 3] = [-3, -2, 0];
    let suspended = || json!({"spec": {"suspend": true}});
    create(&namespace, "latest", &SLOTS, &[], suspended()).await;
    create(&namespace, "skip", &SLOTS, &[("on-resume", "skip")], suspended()).await;
    create(&namespace, "all-2", &SLOTS, &[("on-resume", "all 2")], suspended()).await;
    let controller = Controller::start_before(&namespace, 0);
    controller
        .wait_for_metric("cronwheel_instants_open", &[], |n_open| n_open == 3)
        .await;
    assert_eq!(namespace.job_names().await, Vec::<String>::new());
    for name in ["latest", "skip", "all-2"] {
        let resume = json!({"spec": {"suspend": false}});
        namespace.patch("CronJob", name, resume).await;
    }
    let expected = names(&namespace, &[("latest", &[0]), ("all-2", &[-2, 0])]);
    namespace.wait_for_jobs(&expected).await;
    controller
        .wait_for_metric("cronwheel_instants_open", &[], |n_open| n_open == 0)
        .await;
    assert_eq!(namespace.job_names().await, expected);
    assert_eq!(controller.n_started().await, 3);
    controller.terminate().await;
}

/// The label that selects the namespaces of the case.
const LABEL: &str = "e2e.cronwheel.dev/freezes";

/// Runs `cronwheel` with a kubeconfig of the case. Returns its output, or its error.
pub(super) async fn run(namespace: &Namespace, is_admin: bool, arguments: &[&str]) -> Result<String, String> {
    let control_plane = &namespace.control_plane;
    let kubeconfig = if is_admin {
        &control_plane.admin_kubeconfig
    } else {
        &control_plane.controller_kubeconfig
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_cronwheel"));
    command.args(arguments).arg("--kubeconfig").arg(kubeconfig);
    let ended = tokio::task::spawn_blocking(move || command.output()).await;
    let output = ended.expect("an end").expect("a process");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(text(&output.stderr))
    }
}

/// One namespace is frozen until an instant, the other until it is thawed.
pub(super) async fn a_freeze_holds_until_its_end_or_until_the_thaw(thawed: Namespace) {
    const SLOTS: [i64; 4] = [-3, -2, -1, 1];
    let timed = Namespace::create_for("frozen-until-an-instant", Rc::clone(&thawed.control_plane)).await;
    timed.count_minutes_as(&thawed);
    for namespace in [&thawed, &timed] {
        let labels = json!({"metadata": {"labels": {LABEL: "true"}}});
        namespace.patch("Namespace", &namespace.name, labels).await;
        create(namespace, "latest", &SLOTS, &[], json!({})).await;
        create(namespace, "skip", &SLOTS, &[("on-resume", "skip")], json!({})).await;
    }
    let end = (thawed.minute(1) + SignedDuration::from_secs(4)).to_string();
    for (namespace, until) in [(&thawed, "2h"), (&timed, &*end)] {
        let freeze = ["freeze", &namespace.name, "--until", until, "--reason", "migration"];
        let text = run(namespace, true, &freeze).await.expect("a freeze");
        assert!(
            text.contains(" is frozen until ") && text.contains(": migration\n"),
            "{text}"
        );
    }
    let leases = format!("--lease-namespace={}", thawed.name);
    let selector = format!("--namespace-selector={LABEL}=true");
    let controller = Controller::start_replica(&thawed, 1, &["--installation=freezes", &leases, &selector]);
    // The timed one ends by itself. Slots from before the controller are not counted.
    timed.wait_for_jobs(&names(&timed, &[("latest", &[1])])).await;
    controller
        .wait_for_metric("cronwheel_due_instants_total", &[], |n_due| n_due == 4)
        .await;
    assert_eq!(thawed.job_names().await, Vec::<String>::new());
    let text = run(&thawed, true, &["thaw", &thawed.name]).await.expect("a thaw");
    assert!(text.contains(" is no longer frozen"), "{text}");
    thawed.wait_for_jobs(&names(&thawed, &[("latest", &[1])])).await;
    controller.wait_for_account(&[("created", 2), ("frozen", 2)]).await;
    assert_eq!(timed.job_names().await, names(&timed, &[("latest", &[1])]));
    let text = run(&thawed, true, &["thaw", &thawed.name]).await.expect("an answer");
    let ended = format!("namespace {} is not frozen: its freeze ended at ", thawed.name);
    assert!(text.starts_with(&ended), "{text}");
    controller.terminate().await;

    // The controller's account may not freeze.
    let refused = run(&thawed, false, &["freeze", &thawed.name, "--until", "2h"])
        .await
        .unwrap_err();
    let expected = format!(
        "cannot freeze namespace {}; the account needs patch on namespaces",
        thawed.name
    );
    assert!(refused.contains(&expected), "{refused}");
    let refused = run(&thawed, true, &["thaw", "no-such-namespace"]).await.unwrap_err();
    assert!(
        refused.contains("cannot thaw namespace no-such-namespace; check its name"),
        "{refused}"
    );
}

pub(super) async fn pods_get_the_time_of_their_slot(namespace: Namespace) {
    let zone = json!({"spec": {"timeZone": "Asia/Tokyo"}});
    create(
        &namespace,
        "hello",
        &[0],
        &[("pass-scheduled-time", "true")],
        zone.clone(),
    )
    .await;
    create(&namespace, "other", &[0], &[], zone).await;
    let controller = Controller::start_before(&namespace, 0);
    let expected: [(&str, &[i64]); 2] = [("hello", &[0]), ("other", &[0])];
    namespace.wait_for_jobs(&names(&namespace, &expected)).await;
    let jobs = namespace.jobs().await;
    let of_job =
        |job: &Value| job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"].clone();
    let of_pods = |job: &Value| {
        let annotations = &job["spec"]["template"]["metadata"]["annotations"];
        assert_eq!(annotations["outcome"], "hang", "the template keeps its own");
        annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"].clone()
    };
    assert_eq!(time(&of_pods(&jobs[0])), namespace.minute(0));
    assert_eq!(of_pods(&jobs[0]), of_job(&jobs[0]));
    assert_eq!(of_pods(&jobs[1]), Value::Null);
    controller.terminate().await;
}

/// A calendar counts once the account may read ConfigMaps, and no longer when it is deleted.
pub(super) async fn a_calendar_excludes_its_dates(mut namespace: Namespace) {
    const ACCOUNT: &str = "candidate";
    let account = Account::create_for(&mut namespace).await;
    account.permit(&namespace).await;
    let calendar = json!({"metadata": {"annotations": {"cronwheel.dev/not-on": "holidays"}}});
    namespace.create_cron_job(hanging(), calendar).await;
    let date = |minute| namespace.minute(minute).strftime("%F").to_string();
    namespace
        .create(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "holidays", "labels": {"cronwheel.dev/calendar": "true"}},
            "data": {"dates": format!("{}..{} maintenance\n", date(0), date(24 * 60))},
        }))
        .await;
    let controller = Controller::start_before(&namespace, 0);
    namespace.wait_for_jobs(&[namespace.job_name(0)]).await;
    let message = namespace.wait_for_event_on("hello", "InvalidOption").await;
    assert!(message.contains("set the chart value calendars.enabled"), "{message}");
    controller.terminate().await;

    let subject = format!("--serviceaccount={}:{ACCOUNT}", namespace.name);
    for arguments in [
        &[
            "create",
            "role",
            "calendars",
            "--verb=list,watch",
            "--resource=configmaps",
        ] as &[_],
        &["create", "rolebinding", "calendars", "--role=calendars", &subject],
    ] {
        namespace.kubectl(arguments).await;
    }
    let controller = Controller::start(&namespace, 2, &["--calendars"]);
    let excluded = [("outcome", "excluded")];
    controller
        .wait_for_metric("cronwheel_instant_outcomes_total", &excluded, |n| n >= 1)
        .await;
    let is_missing = async || {
        let counts = namespace.event_counts("hello", "InvalidOption").await;
        counts
            .iter()
            .any(|(message, _)| message.contains("has no ConfigMap of this name"))
    };
    assert!(!is_missing().await);
    namespace.delete("ConfigMap", "holidays", DeleteParams::default()).await;
    assert!(wait(is_missing).await, "the deletion is not reported");
    assert_eq!(namespace.job_names().await, [namespace.job_name(0)]);
    controller.terminate().await;
}

pub(super) async fn an_invalid_option_is_reported_once_and_starts_at_the_slot(namespace: Namespace) {
    let invalid = json!({"metadata": {"annotations": {"cronwheel.dev/spread": "5m"}}});
    namespace.create_cron_job(hanging(), invalid).await;
    let controller = Controller::start_before(&namespace, 0);
    namespace.wait_for_jobs(&[namespace.job_name(0)]).await;
    let message = namespace.wait_for_event_on("hello", "InvalidOption").await;
    assert!(
        message.contains("annotation cronwheel.dev/spread is \"5m\": it is not shorter than 60 s"),
        "{message}"
    );
    // Writes of the status and other changes do not report it again.
    let slot = namespace.minute(0).to_string();
    let is_stored = |status: &Value| status["lastScheduleTime"] == *slot;
    namespace.wait_for_status("the slot is stored", is_stored).await;
    namespace.patch_cron_job(json!({"spec": {"suspend": true}})).await;
    // Long enough for an Event.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(namespace.event_counts("hello", "InvalidOption").await, [(message, 1)]);
    controller.terminate().await;
}
