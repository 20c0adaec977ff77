//! The Job runner in virtual time.

use std::time::Duration;

use crate::requests::{request, send};
use apisim::{Api, ApiService, Checks, JobRunner, JobRunnerOptions, Options, WallClock, check_annotations};
use serde_json::{Value, json};

const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";

fn begin(options: JobRunnerOptions) -> ApiService {
    let api = Api::new(
        Options::default(),
        WallClock::starting_at("2026-01-02T03:04:05Z".parse().unwrap()),
    );
    tokio::spawn(JobRunner::new(api.clone(), options).run());
    api.client("a")
}

async fn create(client: &ApiService, name: &str, annotations: Value, spec: Value) {
    let template = json!({"metadata": {"annotations": annotations},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "work", "image": "work"}]}});
    let mut job = json!({"metadata": {"name": name}, "spec": {"template": template}});
    for (member, value) in spec.as_object().into_iter().flatten() {
        job["spec"][member] = value.clone();
    }
    let (code, response) = request(client, "POST", JOBS, &job).await;
    assert_eq!(code, 201, "{response}");
}

/// Waits, then returns the condition types and the status of a Job. Returns `None` if the Job does not exist.
async fn after(client: &ApiService, seconds: u64, name: &str) -> Option<(Vec<String>, Value)> {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let (code, job) = request(client, "GET", &format!("{JOBS}/{name}"), &Value::Null).await;
    let conditions = job["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let kinds = conditions
        .iter()
        .map(|condition| condition["type"].as_str().unwrap().to_owned())
        .collect();
    (code == 200).then(|| (kinds, job["status"].clone()))
}

#[tokio::test(start_paused = true)]
async fn job_runs_succeeds_and_is_deleted_after_its_ttl() {
    let client = begin(JobRunnerOptions::default());
    create(
        &client,
        "a",
        json!({"run-for": "90s"}),
        json!({"ttlSecondsAfterFinished": 10}),
    )
    .await;
    let (kinds, status) = after(&client, 1, "a").await.unwrap();
    assert_eq!(
        (kinds.len(), &status["active"], &status["startTime"]),
        (0, &json!(1), &json!("2026-01-02T03:04:05Z"))
    );
    let (kinds, status) = after(&client, 90, "a").await.unwrap();
    assert_eq!(kinds, ["SuccessCriteriaMet", "Complete"]);
    assert_eq!(
        (&status["succeeded"], &status["completionTime"]),
        (&json!(1), &json!("2026-01-02T03:05:35Z"))
    );
    assert_eq!(status["active"], Value::Null);
    assert_eq!(after(&client, 10, "a").await, None);
}

#[tokio::test(start_paused = true)]
async fn jobs_fail_hang_stay_suspended_and_exceed_their_deadline() {
    let client = begin(JobRunnerOptions::default());
    create(&client, "fails", json!({"outcome": "fail"}), json!({})).await;
    create(&client, "hangs", json!({"outcome": "hang"}), json!({})).await;
    create(
        &client,
        "late",
        json!({"run-for": "1h"}),
        json!({"activeDeadlineSeconds": 30}),
    )
    .await;
    create(&client, "waits", json!({}), json!({"suspend": true})).await;
    let (kinds, status) = after(&client, 60, "fails").await.unwrap();
    assert_eq!(
        (kinds, &status["failed"]),
        (vec!["FailureTarget".to_owned(), "Failed".to_owned()], &json!(1))
    );
    assert_eq!(status["completionTime"], Value::Null);
    let (kinds, status) = after(&client, 0, "late").await.unwrap();
    assert_eq!(
        (kinds.len(), &status["conditions"][1]["reason"]),
        (2, &json!("DeadlineExceeded"))
    );
    let (kinds, status) = after(&client, 86_400, "hangs").await.unwrap();
    assert_eq!((kinds.len(), &status["active"]), (0, &json!(1)));
    assert_eq!(after(&client, 0, "waits").await.unwrap().1["startTime"], Value::Null);
    let resume = json!({"spec": {"suspend": false}});
    request(&client, "PATCH", &format!("{JOBS}/waits"), &resume).await;
    assert_eq!(
        after(&client, 2, "waits").await.unwrap().0,
        ["SuccessCriteriaMet", "Complete"]
    );
}

#[tokio::test(start_paused = true)]
async fn outcomes_without_annotations_are_drawn_at_random() {
    let options = JobRunnerOptions {
        seed: 3,
        run_for: Duration::from_secs(1)..Duration::from_secs(100),
        fails_per_million: 500_000,
        ..JobRunnerOptions::default()
    };
    let client = begin(options);
    let mut outcomes = Vec::new();
    for at in 0..40 {
        create(&client, &format!("j-{at}"), json!({}), json!({})).await;
    }
    for at in 0..40 {
        let wait = if at == 0 { 101 } else { 0 };
        outcomes.push(after(&client, wait, &format!("j-{at}")).await.unwrap().0[1].clone());
    }
    let n_failed = outcomes.iter().filter(|kind| *kind == "Failed").count();
    assert!((8..32).contains(&n_failed), "{n_failed} of 40 failed");
}

#[tokio::test(start_paused = true)]
async fn admission_refuses_unknown_annotation_values() {
    let checks = Checks {
        admission: check_annotations,
        ..Checks::default()
    };
    let options = Options {
        checks,
        ..Options::default()
    };
    let clock = WallClock::starting_at("2026-01-02T03:04:05Z".parse().unwrap());
    let client = Api::new(options, clock).client("a");
    let template = json!({"metadata": {"annotations": {"outcome": "explode"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "work", "image": "work"}]}});
    let mut job = json!({"metadata": {"name": "a"}, "spec": {"template": template}});
    let (code, response) = request(&client, "POST", JOBS, &job).await;
    let expected = "jobs.batch \"a\" is forbidden: spec.template.metadata.annotations[outcome]: \"explode\" is not one of \
                    succeed, fail and hang";
    assert_eq!((code, response["message"].as_str()), (403, Some(expected)));
    job["spec"]["template"]["metadata"]["annotations"]["outcome"] = "fail".into();
    let cron_job = json!({"metadata": {"name": "a"}, "spec": {"schedule": "* * * * *", "jobTemplate": job}});
    let cron_jobs = JOBS.replace("jobs", "cronjobs");
    assert_eq!(request(&client, "POST", &cron_jobs, &cron_job).await.0, 201);
    let annotations = json!({"metadata": {"annotations": {"run-for": "soon"}}});
    let patch = json!({"spec": {"jobTemplate": {"spec": {"template": annotations}}}});
    let (code, response) = request(&client, "PATCH", &format!("{cron_jobs}/a"), &patch).await;
    let expected = "cronjobs.batch \"a\" is forbidden: spec.jobTemplate.spec.template.metadata.annotations[run-for]: \
                    \"soon\" is not a duration such as 90s or 1h30m";
    assert_eq!((code, response["message"].as_str()), (403, Some(expected)));
}

#[tokio::test(start_paused = true)]
async fn pod_lists_are_empty_with_a_warning() {
    const NO_PODS: &str =
        "there are no Pods: this API server simulates Jobs, so no container runs and there are no logs";
    let client = begin(JobRunnerOptions::default());
    for path in ["/api/v1/pods", "/api/v1/namespaces/default/pods?labelSelector=a"] {
        let response = send(&client, "GET", path, &Value::Null).await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        assert_eq!(response.headers()["warning"], format!("299 - {NO_PODS:?}"), "{path}");
        let (_, list) = request(&client, "GET", path, &Value::Null).await;
        assert_eq!(
            (&list["kind"], &list["items"]),
            (&json!("PodList"), &json!([])),
            "{path}"
        );
    }
    for (method, path) in [
        ("GET", "/api/v1/pods?watch=1"),
        ("GET", "/api/v1/namespaces/default/pods/a"),
        ("GET", "/api/v1/namespaces/default/pods/a/log"),
        ("POST", "/api/v1/namespaces/default/pods"),
    ] {
        let (code, response) = request(&client, method, path, &Value::Null).await;
        assert_eq!(
            (code, response["message"].as_str()),
            (404, Some(NO_PODS)),
            "{method} {path}"
        );
    }
}
