//! `ApiClient`: the paths, verbs, bodies and headers of requests, and the handling of responses.

use std::{sync::Arc, time::Duration};

use cronwheel::{
    coordination::{Stamp, WriteLimits},
    kube_api::{Answer, Answered, ApiClient, EventOutcome, http::WriteConnections},
    shard::{
        CreateOutcome, CronJobIdentity, CronJobStatus, DeleteOutcome, JobCreate, JobDelete, JobLookUp, JobTemplate,
        LookUpOutcome, ReadOutcome, ResourceVersion, ShardId, ShardTerm, StatusOutcome, StatusWrite, Term, Uid,
    },
};
use jiff::Timestamp;
use serde_json::json;

use super::{Script, status};

fn api(script: &Script) -> ApiClient {
    ApiClient::new(WriteConnections::from_clients(vec![script.client()]))
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn cron_job() -> Arc<CronJobIdentity> {
    Arc::new(CronJobIdentity {
        namespace: "shop".into(),
        name: "backup".into(),
        uid: Uid::new("c1"),
    })
}

fn order() -> JobCreate {
    JobCreate {
        run_token: None,
        cron_job: cron_job(),
        name: "backup-29600000".into(),
        slot: time("2026-04-12T09:20:00Z"),
        start: time("2026-04-12T09:20:00Z"),
        scheduled_timestamp: "2026-04-12T11:20:00+02:00".into(),
        template: Arc::new(JobTemplate {
            body: r#"{"n":,"c":,"s":}"#.into(),
            splice_offsets: [5, 10, 15],
            pod_splice_offset: None,
            ttl_seconds_after_finished: None,
            had_reserved_annotations: false,
        }),
        wanted_by: time("2026-04-12T09:21:00Z"),
        expires_at: None,
        store_by: None,
        n_attempts_before: 0,
        is_on_time: true,
        late_from: None,
    }
}

fn delete(name: &str) -> JobDelete {
    JobDelete {
        cron_job: cron_job(),
        namespace: "shop".into(),
        name: name.into(),
        uid: Uid::new("j1"),
        is_for_replace: false,
    }
}

fn look_up() -> JobLookUp {
    JobLookUp {
        cron_job: cron_job(),
        namespace: "shop".into(),
        name: "backup-29600000".into(),
        listed_uid: None,
    }
}

fn status_write() -> StatusWrite {
    StatusWrite {
        cron_job: cron_job(),
        resource_version: ResourceVersion(7),
        retained_metadata: Arc::new(r#","labels":{"a":"b"}"#.into()),
        status: CronJobStatus {
            last_schedule_time: Some(time("2026-04-12T09:20:00Z")),
            ..CronJobStatus::default()
        },
        is_urgent: true,
    }
}

fn stored(name: &str) -> String {
    json!({"metadata": {"name": name, "namespace": "shop", "uid": "j1", "resourceVersion": "812",
        "creationTimestamp": "2026-04-12T09:20:01Z"}, "spec": {}, "status": {}})
    .to_string()
}

#[tokio::test]
async fn create_posts_the_spliced_job() {
    let script = Script::default().respond_with(
        201,
        &[("date", "Sun, 12 Apr 2026 09:20:01 GMT")],
        stored("backup-29600000"),
    );
    let answered = api(&script).create_job(&order()).await;
    assert_eq!(
        answered,
        Answered {
            answer: Answer::Outcome(CreateOutcome::Created {
                uid: Uid::new("j1"),
                resource_version: "812".into(),
                created: time("2026-04-12T09:20:01Z"),
            }),
            code: Some(201),
            server_date: Some(time("2026-04-12T09:20:01Z").into()),
            not_permitted: None,
            fenced_over: None,
        }
    );
    let received = script.only();
    assert_eq!(received.line(), "POST /apis/batch/v1/namespaces/shop/jobs");
    assert_eq!(received.header("content-type"), "application/json");
    assert_eq!(received.header("accept"), "application/json");
    assert_eq!(
        received.header("user-agent"),
        format!("cronwheel/{}", env!("CARGO_PKG_VERSION"))
    );
    assert_eq!(
        received.body,
        r#"{"n":"backup-29600000","c":"2026-04-12T09:20:00Z","s":"2026-04-12T11:20:00+02:00"}"#
    );
}

/// The limits of a write.
fn limits() -> WriteLimits {
    WriteLimits {
        life: Duration::from_secs(5),
        stamp: Stamp {
            shard_term: ShardTerm {
                shard: ShardId(0),
                term: Term(1),
            },
            incarnation: 1,
            create_before: Some(time("2026-04-12T09:20:07Z")),
        },
    }
}

const FENCED: &str = "jobs.batch \"backup-29600000\" is forbidden: ValidatingAdmissionPolicy 'cronwheel-fence' with binding \
                      'cronwheel-fence' denied request: it came at 2026-04-12T09:20:09Z and was to be created by \
                      2026-04-12T09:20:07Z: another replica may lead its shard";

#[tokio::test(start_paused = true)]
async fn fenced_create_names_the_connection_to_avoid() {
    let wrong_clock = Script::default().respond(403, status(403, "Forbidden", FENCED));
    let right_clock = Script::default().respond(201, stored("backup-29600000"));
    let clients = vec![wrong_clock.client(), right_clock.client()];
    let api = ApiClient::new(WriteConnections::from_clients(clients)).with_limits(&limits());
    let refused = api.create_job(&order()).await;
    assert!(
        matches!(refused.answer, Answer::Outcome(CreateOutcome::Failed { .. })),
        "{refused:?}"
    );
    let answered = api.avoiding(refused.fenced_over.unwrap()).create_job(&order()).await;
    assert!(
        matches!(answered.answer, Answer::Outcome(CreateOutcome::Created { .. })),
        "{answered:?}"
    );
    assert_eq!(wrong_clock.only().body, right_clock.only().body);
}

#[tokio::test(start_paused = true)]
async fn create_denied_by_another_policy_is_not_fenced() {
    let other = FENCED.replace("cronwheel-fence", "limits");
    let script = Script::default().respond(403, status(403, "Forbidden", &other));
    let answered = api(&script).with_limits(&limits()).create_job(&order()).await;
    assert_eq!(answered.fenced_over, None);
}

#[tokio::test]
async fn a_job_is_deleted_by_name_and_uid() {
    let script = Script::default().respond(200, stored("backup-1"));
    let answered = api(&script).delete_job(&delete("backup-1")).await;
    assert_eq!(answered.answer, Answer::Outcome(DeleteOutcome::Deleted));
    let received = script.only();
    assert_eq!(received.line(), "DELETE /apis/batch/v1/namespaces/shop/jobs/backup-1");
    assert_eq!(received.json()["preconditions"]["uid"], "j1");
    assert_eq!(received.json()["propagationPolicy"], "Background");
}

#[tokio::test]
async fn object_name_is_escaped_in_the_path() {
    let script = Script::default().respond(404, "");
    let answered = api(&script).delete_job(&delete("../ä?x#")).await;
    assert_eq!(answered.answer, Answer::Outcome(DeleteOutcome::Gone));
    assert_eq!(
        script.only().line(),
        "DELETE /apis/batch/v1/namespaces/shop/jobs/..%2F%C3%A4%3Fx%23"
    );
}

#[tokio::test]
async fn a_job_is_looked_up_by_name() {
    let script = Script::default().respond(200, stored("backup-29600000"));
    let answered = api(&script).look_up_job(&look_up()).await;
    let Answer::Outcome(LookUpOutcome::Found(record)) = answered.answer else {
        panic!("{answered:?}");
    };
    assert_eq!((&*record.name, record.controller), ("backup-29600000", None));
    let received = script.only();
    assert_eq!(
        received.line(),
        "GET /apis/batch/v1/namespaces/shop/jobs/backup-29600000"
    );
    assert!(received.body.is_empty());
}

#[tokio::test]
async fn status_write_carries_the_observed_resource_version() {
    let script = Script::default().respond(200, stored("backup"));
    let answered = api(&script).write_status(&status_write()).await;
    assert_eq!(
        answered.answer,
        Answer::Outcome(StatusOutcome::Stored {
            resource_version: ResourceVersion(812)
        })
    );
    let received = script.only();
    assert_eq!(
        received.line(),
        "PUT /apis/batch/v1/namespaces/shop/cronjobs/backup/status"
    );
    assert_eq!(
        received.json(),
        json!({"apiVersion": "batch/v1", "kind": "CronJob",
            "metadata": {"name": "backup", "namespace": "shop", "uid": "c1", "resourceVersion": "7", "labels": {"a": "b"}},
            "status": {"lastScheduleTime": "2026-04-12T09:20:00Z"}})
    );
}

#[tokio::test]
async fn events_are_posted_and_patched() {
    let script = Script::default()
        .respond(201, "{}")
        .respond(404, status(404, "NotFound", "gone"));
    let api = self::api(&script);
    let posted = api.post_event("shop", br#"{"a":1}"#.to_vec()).await;
    assert_eq!(posted.answer, Answer::Outcome(EventOutcome::Stored));
    let patched = api.patch_event("shop", "backup.18ad", br#"{"count":2}"#.to_vec()).await;
    assert_eq!(patched.answer, Answer::Outcome(EventOutcome::Gone));
    let received = script.received.lock().unwrap();
    assert_eq!(received[0].line(), "POST /api/v1/namespaces/shop/events");
    assert_eq!(received[0].header("content-type"), "application/json");
    assert_eq!(received[1].line(), "PATCH /api/v1/namespaces/shop/events/backup.18ad");
    assert_eq!(received[1].header("content-type"), "application/merge-patch+json");
    assert_eq!(received[1].json(), json!({"count": 2}));
}

#[tokio::test]
async fn probe_reads_the_server_date_from_any_response() {
    for code in [200, 403, 503] {
        let script = Script::default().respond_with(code, &[("date", "Sun, 12 Apr 2026 09:20:01 GMT")], "");
        let answered = api(&script).probe().await;
        assert_eq!(answered.answer, Answer::Outcome(()));
        assert_eq!(answered.server_date, Some(time("2026-04-12T09:20:01Z").into()));
        assert_eq!(script.only().line(), "GET /version");
    }
}

#[tokio::test]
async fn throttled_create_returns_retry_after() {
    let script = Script::default().respond_with(429, &[("retry-after", "3")], "Too many requests");
    let answered = api(&script).create_job(&order()).await;
    assert_eq!(
        answered.answer,
        Answer::Throttled {
            retry_after: Some(Duration::from_secs(3)),
            message: "Too many requests".into(),
        }
    );
    assert_eq!(answered.code, Some(429));
    assert_eq!(script.lines().len(), 1, "the client does not retry");
}

#[tokio::test]
async fn already_exists_carries_the_message_of_the_server() {
    let message = r#"jobs.batch "backup-29600000" already exists"#;
    let script = Script::default().respond(409, status(409, "AlreadyExists", message));
    let answered = api(&script).create_job(&order()).await;
    let expected = CreateOutcome::AlreadyExists {
        message: message.into(),
    };
    assert_eq!(answered.answer, Answer::Outcome(expected));
}

#[tokio::test(start_paused = true)]
async fn unanswered_request_times_out() {
    let script = Script::default();
    let answered = api(&script).create_job(&order()).await;
    assert_eq!(
        answered,
        Answered {
            answer: Answer::Outcome(CreateOutcome::Unanswered {
                message: "no answer within 35 seconds".into(),
                is_unreachable: false,
            }),
            code: None,
            server_date: None,
            not_permitted: None,
            fenced_over: None,
        }
    );
}

#[tokio::test]
async fn oversized_response_fails_only_its_request() {
    let script = Script::default()
        .respond(201, "x".repeat((4 << 20) + 1))
        .respond(201, stored("backup-29600000"));
    let api = self::api(&script);
    let answered = api.create_job(&order()).await;
    assert!(
        matches!(answered.answer, Answer::Outcome(CreateOutcome::Unanswered { .. })),
        "{answered:?}"
    );
    let answered = api.create_job(&order()).await;
    assert!(
        matches!(answered.answer, Answer::Outcome(CreateOutcome::Created { .. })),
        "{answered:?}"
    );
    // Responses with CronJobs have a higher size limit. A response above the limit does not affect other requests.
    let annotation = "<".repeat(5 << 20);
    let object = json!({"metadata": {"name": "backup", "namespace": "shop", "uid": "u", "resourceVersion": "7",
        "creationTimestamp": "2026-11-01T12:00:00Z",
        "annotations": {"long": annotation}}, "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {}}}});
    let script = Script::default()
        .respond(200, object.to_string())
        .respond(200, "x".repeat((10 << 20) + 1))
        .respond(200, object.to_string());
    let api = self::api(&script);
    for is_read in [true, false, true] {
        let cron_job = order().cron_job;
        let answered = api.read_cron_job(&cron_job).await;
        let Answer::Outcome(outcome) = &answered.answer else {
            panic!("{answered:?}");
        };
        let (found, message) = match outcome {
            ReadOutcome::Found(_) => (true, ""),
            ReadOutcome::Failed { message, .. } => (false, message.as_str()),
            ReadOutcome::Gone | ReadOutcome::NotPermitted { .. } | ReadOutcome::Abandoned => panic!("{outcome:?}"),
        };
        assert_eq!((found, message.contains("too long")), (is_read, !is_read), "{message}");
    }
}

#[tokio::test]
async fn request_that_cannot_be_built_is_not_sent() {
    let script = Script::default();
    let name = "n".repeat(70_000);
    let answered = api(&script).delete_job(&delete(&name)).await;
    let Answer::Outcome(DeleteOutcome::Failed { message, .. }) = answered.answer else {
        panic!("{answered:?}");
    };
    assert!(message.starts_with("the request cannot be built"), "{message}");
    assert!(script.lines().is_empty());
}

#[tokio::test]
async fn transport_error_returns_unavailable() {
    let service = tower::service_fn(|_: http::Request<kube::client::Body>| async {
        Err::<http::Response<kube::client::Body>, _>(std::io::Error::other("connection refused"))
    });
    let api = ApiClient::new(WriteConnections::from_clients(vec![kube::Client::new(
        service, "default",
    )]));
    let answered = api.write_status(&status_write()).await;
    assert_eq!(
        answered.answer,
        Answer::Unavailable {
            retry_after: None,
            message: "the API server cannot be reached: ServiceError: connection refused".into(),
            is_unreachable: true,
        }
    );
}
