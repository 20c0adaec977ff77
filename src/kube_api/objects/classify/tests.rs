//! Tests of the classification of bodies that kube-apiserver sends.

use serde_json::json;

use super::*;
use crate::shard::Uid;

fn answer(status: u16, body: impl Into<Bytes>) -> RawAnswer {
    RawAnswer {
        status: StatusCode::from_u16(status).unwrap(),
        retry_after: None,
        server_date: None,
        body: body.into(),
    }
}

/// A `Status` as kube-apiserver writes it.
fn refusal(code: u16, reason: &str, message: &str, details: &serde_json::Value) -> RawAnswer {
    let body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "details": details, "code": code});
    answer(code, body.to_string())
}

fn outcome<T: std::fmt::Debug>(answer: Answer<T>) -> T {
    match answer {
        Answer::Outcome(outcome) => outcome,
        other @ (Answer::Throttled { .. } | Answer::Unavailable { .. }) => panic!("{other:?}"),
    }
}

fn job_details() -> serde_json::Value {
    json!({"name": "backup-1", "group": "batch", "kind": "jobs"})
}

const EXISTS: &str = r#"jobs.batch "backup-1" already exists"#;
const QUOTA: &str = r#"jobs.batch "backup-1" is forbidden: exceeded quota: q, requested: count/jobs.batch=1, used: count/jobs.batch=5, limited: count/jobs.batch=5"#;
const QUOTA_CONFLICT: &str = r#"Operation cannot be fulfilled on resourcequotas "q": the object has been modified; please apply your changes to the latest version and try again"#;
const TERMINATING: &str = r#"jobs.batch "backup-1" is forbidden: unable to create new content in namespace shop because it is being terminated"#;
const INVALID: &str = r#"Job.batch "backup-1" is invalid: spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never""#;
const DENIED: &str = r#"admission webhook "policy.example.com" denied the request: no"#;
const POLICY_DENIED: &str = r#"jobs.batch "backup-1" is forbidden: ValidatingAdmissionPolicy 'limits' with binding 'limits' denied request: no"#;
const TIMEOUT: &str = "Timeout: request did not complete within requested timeout - context deadline exceeded";
const RBAC: &str = r#"jobs.batch is forbidden: User "system:serviceaccount:cronwheel:cronwheel" cannot create resource "jobs" in API group "batch" in the namespace "shop""#;
const NO_NAMESPACE: &str = r#"namespaces "shop" not found"#;
const UNCOMPLETED: &str = "Internal error occurred: failed calling webhook \"policy.example.com\": failed to call webhook: Post \"https://policy.default.svc:443/?timeout=10s\": context deadline exceeded";
const DELETE_UID: &str = r#"Operation cannot be fulfilled on Job.batch "backup-1": the UID in the precondition (a) does not match the UID in record (b). The object might have been deleted and then recreated"#;
const STATUS_UID: &str = r#"Operation cannot be fulfilled on cronjobs.batch "backup": StorageError: invalid object, Code: 4, Key: /registry/cronjobs/shop/backup, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: a, UID in object meta: b"#;
const MODIFIED: &str = r#"Operation cannot be fulfilled on cronjobs.batch "backup": the object has been modified; please apply your changes to the latest version and try again"#;

#[test]
fn a_created_job_has_its_uid_version_and_creation_time() {
    let body = json!({"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "backup-1", "namespace": "shop",
        "uid": "u1", "resourceVersion": "812", "generation": 1, "creationTimestamp": "2026-04-12T09:20:00Z",
        "managedFields": [{"manager": "cronwheel", "fieldsV1": {"f:spec": {}}}]}, "spec": {"parallelism": 1}, "status": {}});
    for status in [201, 200, 202] {
        assert_eq!(
            outcome(create(&answer(status, body.to_string()))),
            CreateOutcome::Created {
                uid: Uid::new("u1"),
                resource_version: "812".into(),
                created: "2026-04-12T09:20:00Z".parse().unwrap(),
            }
        );
    }
}

fn check_create(answer: &RawAnswer, expected: CreateOutcome) {
    let mut outcome = outcome(create(answer));
    if let CreateOutcome::Failed { status, .. } = &mut outcome {
        let is_of_server = status.is_none_or(|status| status == answer.status.as_u16());
        assert!(is_of_server, "{status:?}");
        *status = None;
    }
    assert_eq!(outcome, expected);
}

fn failed(message: &str) -> CreateOutcome {
    CreateOutcome::Failed {
        message: message.into(),
        status: None,
        retry_after: None,
    }
}

fn refused(message: &str) -> CreateOutcome {
    CreateOutcome::Invalid {
        message: message.into(),
    }
}

#[test]
fn failed_creates_are_classified() {
    // B-12.2 to B-12.4
    let details = job_details();
    check_create(
        &refusal(409, "AlreadyExists", EXISTS, &details),
        CreateOutcome::AlreadyExists { message: EXISTS.into() },
    );
    check_create(
        &refusal(409, "Conflict", QUOTA_CONFLICT, &details),
        failed(QUOTA_CONFLICT),
    );
    let causes = json!({"name": "backup-1", "group": "batch", "kind": "jobs", "causes": [
        {"reason": "NamespaceTerminating", "message": "namespace shop is being terminated", "field": "metadata.namespace"}]});
    check_create(
        &refusal(403, "Forbidden", TERMINATING, &causes),
        CreateOutcome::NamespaceTerminating,
    );
    check_create(&refusal(403, "Forbidden", QUOTA, &details), failed(QUOTA));
    check_create(
        &refusal(403, "Forbidden", RBAC, &json!({"group": "batch", "kind": "jobs"})),
        CreateOutcome::NotPermitted { message: RBAC.into() },
    );
    // An admission webhook can quote the message of the authorizer.
    let quoted = format!("admission webhook \"a.example.com\" denied the request: {RBAC}");
    check_create(&refusal(403, "Forbidden", &quoted, &details), failed(&quoted));
    check_create(
        &answer(
            403,
            json!({"kind": "Status", "message": DENIED, "code": 403}).to_string(),
        ),
        failed(DENIED),
    );
    check_create(
        &refusal(401, "Unauthorized", "Unauthorized", &json!(null)),
        CreateOutcome::NotPermitted {
            message: "Unauthorized".into(),
        },
    );
    check_create(
        &refusal(
            404,
            "NotFound",
            NO_NAMESPACE,
            &json!({"name": "shop", "kind": "namespaces"}),
        ),
        failed(NO_NAMESPACE),
    );
    check_create(
        &refusal(
            500,
            "InternalError",
            UNCOMPLETED,
            &json!({"causes": [{"message": "x"}]}),
        ),
        failed(UNCOMPLETED),
    );
    check_create(
        &refusal(500, "ServerTimeout", "come back", &json!({"retryAfterSeconds": 2})),
        CreateOutcome::Failed {
            message: "come back".into(),
            status: None,
            retry_after: Some(Duration::from_secs(2)),
        },
    );
}

#[test]
fn a_denial_by_admission_is_a_retryable_failure() {
    // B-12.3
    for code in [400, 403, 422, 429, 500, 503, 504] {
        let body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": DENIED, "code": code});
        let denied = answer(code, body.to_string());
        check_create(&denied, failed(DENIED));
        let is_kept =
            matches!(outcome(create(&denied)), CreateOutcome::Failed { status: Some(status), .. } if status == code);
        assert!(is_kept, "{code}");
    }
    let details = job_details();
    check_create(&refusal(422, "Invalid", DENIED, &details), failed(DENIED));
    check_create(&refusal(400, "BadRequest", DENIED, &details), failed(DENIED));
    check_create(&refusal(413, "RequestEntityTooLarge", DENIED, &details), failed(DENIED));
    check_create(&refusal(422, "Invalid", POLICY_DENIED, &details), failed(POLICY_DENIED));
    check_create(
        &refusal(403, "Forbidden", POLICY_DENIED, &details),
        failed(POLICY_DENIED),
    );
    let long = format!("{}{POLICY_DENIED}", "x".repeat(MESSAGE_MAX_BYTES));
    assert!(matches!(
        outcome(create(&refusal(422, "Invalid", &long, &details))),
        CreateOutcome::Failed { .. }
    ));
    check_create(&refusal(422, "", INVALID, &details), failed(INVALID));
    check_create(
        &answer(400, "400 Bad Request: malformed Host header"),
        failed("400 Bad Request: malformed Host header"),
    );
}

#[test]
fn a_timeout_status_does_not_pause_the_lane() {
    fn check<T: std::fmt::Debug + PartialEq>(classify: fn(&RawAnswer) -> Answer<T>, expected: T) {
        let timeout = refusal(504, "Timeout", TIMEOUT, &json!({"retryAfterSeconds": 2}));
        assert_eq!(classify(&timeout), Answer::Outcome(expected));
    }
    let (message, retry_after) = (|| TIMEOUT.to_owned(), Some(Duration::from_secs(2)));
    // The Job may have been created nevertheless.
    check(create, CreateOutcome::unanswered(message(), None));
    check(
        delete,
        DeleteOutcome::Failed {
            message: message(),
            retry_after,
        },
    );
    check(
        look_up,
        LookUpOutcome::Failed {
            message: message(),
            retry_after,
        },
    );
    check(
        status_write,
        StatusOutcome::Failed {
            message: message(),
            retry_after,
        },
    );
    check(event, EventOutcome::Unanswered);
}

#[test]
fn an_invalid_job_is_refused() {
    let invalid = json!({"name": "backup-1", "group": "batch", "kind": "Job", "causes": [
        {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.template.spec.restartPolicy"}]});
    check_create(&refusal(422, "Invalid", INVALID, &invalid), refused(INVALID));
    check_create(&refusal(400, "BadRequest", "bad", &json!(null)), refused("bad"));
    let too_large = "Request entity too large: limit is 3145728";
    check_create(
        &refusal(413, "RequestEntityTooLarge", too_large, &json!(null)),
        refused(too_large),
    );
}

#[test]
fn throttled_and_unavailable_answers_are_recognized() {
    fn check<T: std::fmt::Debug + PartialEq>(classify: fn(&RawAnswer) -> Answer<T>) {
        let mut too_many = answer(429, "Too many requests, please try again later.\n");
        too_many.retry_after = Some(Duration::from_secs(1));
        assert_eq!(
            classify(&too_many),
            Answer::Throttled {
                retry_after: Some(Duration::from_secs(1)),
                message: "Too many requests, please try again later.".into(),
            }
        );
        let details = json!({"retryAfterSeconds": 7});
        assert_eq!(
            classify(&refusal(429, "TooManyRequests", "slow down", &details)),
            Answer::Throttled {
                retry_after: Some(Duration::from_secs(7)),
                message: "slow down".into(),
            }
        );
        for code in [502, 503, 504] {
            assert_eq!(
                classify(&answer(code, "")),
                Answer::Unavailable {
                    retry_after: None,
                    message: format!("the server answered with status {code}"),
                    is_unreachable: code != 504,
                }
            );
        }
        let no_endpoint = refusal(503, "ServiceUnavailable", "no endpoints available", &json!({}));
        assert_eq!(
            classify(&no_endpoint),
            Answer::Unavailable {
                retry_after: None,
                message: "no endpoints available".into(),
                is_unreachable: true,
            }
        );
    }
    check(create);
    check(delete);
    check(look_up);
    check(status_write);
    check(event);
}

#[test]
fn retry_after_header_precedes_retry_after_seconds() {
    let mut answer = refusal(429, "TooManyRequests", "m", &json!({"retryAfterSeconds": 7}));
    answer.retry_after = Some(Duration::from_secs(3));
    assert!(matches!(create(&answer), Answer::Throttled { retry_after: Some(time), .. } if time.as_secs() == 3));
}

#[test]
fn a_long_retry_after_is_capped() {
    for seconds in [61, 86_400, u64::MAX] {
        let details = json!({"retryAfterSeconds": seconds});
        let mut answer = refusal(500, "ServerTimeout", "m", &details);
        let expected = CreateOutcome::Failed {
            message: "m".into(),
            status: None,
            retry_after: Some(RETRY_AFTER_MAX),
        };
        check_create(&answer, expected.clone());
        answer.retry_after = Some(Duration::from_secs(seconds));
        check_create(&answer, expected);
        answer.status = StatusCode::TOO_MANY_REQUESTS;
        assert!(
            matches!(create(&answer), Answer::Throttled { retry_after, .. } if retry_after == Some(RETRY_AFTER_MAX))
        );
    }
}

#[test]
fn a_delete_is_deleted_gone_or_failed() {
    // B-4.4, B-4.5
    fn check(answer: &RawAnswer, expected: DeleteOutcome) {
        assert_eq!(outcome(delete(answer)), expected);
    }
    let details = job_details();
    check(&refusal(200, "", "", &details), DeleteOutcome::Deleted);
    check(&answer(200, "not even JSON"), DeleteOutcome::Deleted);
    check(&answer(202, "{}"), DeleteOutcome::Deleted);
    check(
        &refusal(404, "NotFound", r#"jobs.batch "backup-1" not found"#, &details),
        DeleteOutcome::Gone,
    );
    check(&refusal(409, "Conflict", DELETE_UID, &details), DeleteOutcome::Gone);
    check(&refusal(409, "Conflict", STATUS_UID, &details), DeleteOutcome::Gone);
    let failed = |message: &str| DeleteOutcome::Failed {
        message: message.into(),
        retry_after: None,
    };
    check(&refusal(409, "Conflict", MODIFIED, &details), failed(MODIFIED));
    check(&refusal(403, "Forbidden", RBAC, &details), failed(RBAC));
    check(&refusal(500, "InternalError", "x", &details), failed("x"));
}

#[test]
fn a_look_up_is_found_gone_failed_or_not_permitted() {
    // B-5.4, B-12.3
    let job = r#"{"metadata":{"name":"backup-1","namespace":"shop","uid":"u1","resourceVersion":"7",
        "ownerReferences":[{"kind":"CronJob","uid":"c1","controller":true}]},"status":{}}"#;
    let LookUpOutcome::Found(record) = outcome(look_up(&answer(200, job))) else {
        panic!("not found");
    };
    assert_eq!(
        (&record.uid, &record.controller),
        (&Uid::new("u1"), &Some(Uid::new("c1")))
    );
    let unreadable = job.replace(r#""7""#, r#""x""#);
    assert_eq!(
        outcome(look_up(&answer(200, unreadable))),
        LookUpOutcome::Failed {
            message: r#"Job shop/backup-1 cannot be decoded: metadata.resourceVersion: "x" is no number"#.into(),
            retry_after: None,
        }
    );
    let not_found = refusal(404, "NotFound", r#"jobs.batch "backup-1" not found"#, &job_details());
    assert_eq!(outcome(look_up(&not_found)), LookUpOutcome::Gone);
    let refused = LookUpOutcome::NotPermitted { message: RBAC.into() };
    assert_eq!(outcome(look_up(&refusal(403, "Forbidden", RBAC, &json!({})))), refused);
}

#[test]
fn a_status_write_is_stored_conflict_gone_or_failed() {
    // B-13
    fn check(answer: &RawAnswer, expected: StatusOutcome) {
        assert_eq!(outcome(status_write(answer)), expected);
    }
    let details = json!({"name": "backup", "group": "batch", "kind": "cronjobs"});
    let stored =
        json!({"metadata": {"uid": "u", "resourceVersion": "813", "creationTimestamp": "2026-04-12T09:20:00Z"}});
    check(
        &answer(200, stored.to_string()),
        StatusOutcome::Stored {
            resource_version: ResourceVersion(813),
        },
    );
    check(&refusal(409, "Conflict", MODIFIED, &details), StatusOutcome::Conflict);
    check(&refusal(409, "Conflict", STATUS_UID, &details), StatusOutcome::Gone);
    check(
        &refusal(404, "NotFound", r#"cronjobs.batch "backup" not found"#, &details),
        StatusOutcome::Gone,
    );
    let failed = StatusOutcome::Failed {
        message: INVALID.into(),
        retry_after: None,
    };
    check(&refusal(422, "Invalid", INVALID, &details), failed);
}

#[test]
fn an_event_write_is_stored_exists_gone_or_rejected() {
    fn check(answer: &RawAnswer, expected: EventOutcome) {
        assert_eq!(outcome(event(answer)), expected);
    }
    let details = json!({"kind": "events"});
    check(&answer(201, "{}"), EventOutcome::Stored);
    check(&answer(200, ""), EventOutcome::Stored);
    check(
        &refusal(404, "NotFound", r#"events "backup.18ad" not found"#, &details),
        EventOutcome::Gone,
    );
    check(
        &refusal(409, "AlreadyExists", r#"events "backup.18ad" already exists"#, &details),
        EventOutcome::Exists,
    );
    check(&refusal(409, "Conflict", MODIFIED, &details), EventOutcome::Gone);
    check(&refusal(403, "Forbidden", RBAC, &details), EventOutcome::Rejected);
}

#[test]
fn an_unreadable_success_counts_as_unavailable() {
    for body in [
        "",
        "{}",
        "<html>",
        r#"{"metadata":{"uid":"u","resourceVersion":"1","creationTimestamp":"x"}}"#,
    ] {
        assert_eq!(
            create(&answer(201, body)),
            Answer::Unavailable {
                retry_after: None,
                message: "the answer with status 201 cannot be read".into(),
                is_unreachable: false,
            }
        );
    }
}

#[test]
fn messages_of_the_api_server_are_bounded() {
    for body in ["é".repeat(4000), json!({"message": "é".repeat(4000)}).to_string()] {
        let CreateOutcome::Failed { message, .. } = outcome(create(&answer(500, body))) else {
            panic!("not failed");
        };
        assert!(
            message.len() <= MESSAGE_MAX_BYTES && message.len() > 1000,
            "{}",
            message.len()
        );
    }
    for body in ["{\"kind\":\"Status\"}", "{\"message\":7}", "  "] {
        let CreateOutcome::Failed { message, .. } = outcome(create(&answer(500, body))) else {
            panic!("not failed");
        };
        assert_eq!(message, "the server answered with status 500");
    }
}

#[test]
fn error_text_has_each_source_once() {
    #[derive(Debug, thiserror::Error)]
    #[error("no answer: {source}")]
    struct Outer {
        source: Inner,
    }
    #[derive(Debug, thiserror::Error)]
    #[error("connection refused")]
    struct Inner(#[source] std::io::Error);
    let error = Outer {
        source: Inner(std::io::Error::other("os error 111")),
    };
    assert_eq!(error_text(&error), "no answer: connection refused: os error 111");
}

#[test]
fn an_etcd_timeout_leaves_a_create_unanswered() {
    for message in [
        "etcdserver: request timed out",
        "rpc error: code = Unavailable desc = error reading from server: read tcp 127.0.0.1:53006->127.0.0.1:2379: \
         read: connection reset by peer",
    ] {
        let doubt = refusal(500, "", message, &json!({}));
        let message = message.to_owned();
        assert_eq!(outcome(create(&doubt)), CreateOutcome::unanswered(message, None));
    }
    // A failed webhook call is reported before the object is stored.
    let called = "Internal error occurred: failed calling webhook \"a\": rpc error: code = Unavailable desc = no";
    let certain = refusal(500, "InternalError", called, &json!({}));
    let message = called.to_owned();
    let failed = CreateOutcome::Failed {
        message,
        status: Some(500),
        retry_after: None,
    };
    assert_eq!(outcome(create(&certain)), failed);
}
