//! Reads the API server's audit log: every request of one user, with its time of arrival. It is the fairest measure of
//! a controller, because it is external and the same for each controller.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
};

use anyhow::Context as _;
use jiff::Timestamp;
use serde::Deserialize;

/// A completed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// The verb, such as `create`.
    pub(crate) verb: String,
    /// The resource, with its subresource if it has one: `cronjobs/status`.
    pub(crate) resource: String,
    /// The namespace of the object. Empty if it has none.
    pub(crate) namespace: String,
    /// The name of the object. Empty for a list.
    pub(crate) name: String,
    /// The status code of the response.
    pub(crate) code: u16,
    /// When the request reached the API server, in whole microseconds.
    pub(crate) received: Timestamp,
    /// When the response was sent.
    pub(crate) answered: Timestamp,
}

impl Request {
    /// Whether the request is a write, successful or not.
    pub(crate) fn is_write(&self) -> bool {
        matches!(
            self.verb.as_str(),
            "create" | "update" | "patch" | "delete" | "deletecollection"
        )
    }

    /// Whether the request concerns an Event.
    pub(crate) fn is_event(&self) -> bool {
        self.resource == "events"
    }

    /// Whether the request created a Job.
    pub(crate) fn is_job_create(&self) -> bool {
        self.verb == "create" && self.resource == "jobs" && self.code == 201
    }

    /// Whether the request may have created a Job despite an error. A server that cannot send the response, for example
    /// because the client is gone, logs an error whether or not it has stored the Job.
    pub(crate) fn is_unanswered_job_create(&self) -> bool {
        self.verb == "create" && self.resource == "jobs" && (self.code >= 500 || self.code == 0)
    }

    /// Whether the request is a status write of a CronJob that met a conflict.
    pub(crate) fn is_status_conflict(&self) -> bool {
        self.is_write() && self.resource == "cronjobs/status" && self.code == 409
    }

    /// Whether the request deleted an existing Job.
    pub(crate) fn is_job_delete(&self) -> bool {
        self.verb == "delete" && self.resource == "jobs" && self.code == 200
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AuditEvent {
    stage: String,
    verb: String,
    user: User,
    object_ref: Option<ObjectRef>,
    response_status: Option<ResponseStatus>,
    request_received_timestamp: Timestamp,
    stage_timestamp: Timestamp,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

#[derive(Deserialize)]
struct ObjectRef {
    resource: String,
    #[serde(default)]
    subresource: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct ResponseStatus {
    #[serde(default)]
    code: u16,
}

/// Reads the requests of `username`, in the order of their responses. Skips a truncated last line.
pub(crate) fn read(path: &Path, username: &str) -> anyhow::Result<Vec<Request>> {
    let context = || format!("cannot read the audit log {}", path.display());
    let file = File::open(path).with_context(context)?;
    let mut requests = Vec::new();
    for line in BufReader::new(file).lines() {
        requests.extend(parse(&line.with_context(context)?, username));
    }
    Ok(requests)
}

/// Returns `None` for lines about other users or the start of a watch, and for truncated lines.
fn parse(line: &str, username: &str) -> Option<Request> {
    // Most lines are about other users, and this check is much cheaper than decoding them.
    if !line.contains(username) {
        return None;
    }
    let event: AuditEvent = serde_json::from_str(line).ok()?;
    if event.stage != "ResponseComplete" || event.user.username != username {
        return None;
    }
    let object = event.object_ref?;
    let resource = match object.subresource.as_str() {
        "" => object.resource,
        subresource => format!("{}/{subresource}", object.resource),
    };
    Some(Request {
        verb: event.verb,
        resource,
        namespace: object.namespace,
        name: object.name,
        code: event.response_status.map_or(0, |status| status.code),
        received: event.request_received_timestamp,
        answered: event.stage_timestamp,
    })
}

/// Request counts by verb and resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestCounts {
    /// Successful requests.
    pub(crate) accepted: BTreeMap<(String, String), u64>,
    /// Failed requests, also by status code.
    pub(crate) refused: BTreeMap<(String, String, u16), u64>,
    /// Writes of other objects than Events, successful or not.
    pub(crate) n_writes: u64,
    /// Writes of Events, successful or not.
    pub(crate) n_event_writes: u64,
}

impl RequestCounts {
    /// Counts requests.
    pub(crate) fn of<'a>(requests: impl IntoIterator<Item = &'a Request>) -> RequestCounts {
        let mut counts = RequestCounts::default();
        for request in requests {
            let (verb, resource) = (request.verb.clone(), request.resource.clone());
            if request.code < 400 {
                *counts.accepted.entry((verb, resource)).or_default() += 1;
            } else {
                *counts.refused.entry((verb, resource, request.code)).or_default() += 1;
            }
            if request.is_event() && request.is_write() {
                counts.n_event_writes += 1;
            } else if request.is_write() {
                counts.n_writes += 1;
            }
        }
        counts
    }

    /// The number of Jobs created.
    pub(crate) fn n_job_creates(&self) -> u64 {
        self.accepted
            .get(&("create".to_owned(), "jobs".to_owned()))
            .copied()
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: &str = "system:serviceaccount:kube-system:cronwheel";

    fn line(stage: &str, user: &str, verb: &str, object: &str, code: u16) -> String {
        format!(
            r#"{{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"a","stage":"{stage}","requestURI":"/x","verb":"{verb}","user":{{"username":"{user}","groups":["g"]}},"sourceIPs":["127.0.0.1"],"userAgent":"x","objectRef":{object},"responseStatus":{{"metadata":{{}},"code":{code}}},"requestReceivedTimestamp":"2026-11-21T10:36:00.001534Z","stageTimestamp":"2026-11-21T10:36:00.005000Z","annotations":{{}}}}"#
        )
    }

    const JOB: &str =
        r#"{"resource":"jobs","namespace":"load-0","name":"load-00000-29925276","apiGroup":"batch","apiVersion":"v1"}"#;
    const STATUS: &str = r#"{"resource":"cronjobs","namespace":"load-0","name":"load-00000","apiGroup":"batch","apiVersion":"v1","subresource":"status"}"#;
    const EVENT: &str = r#"{"resource":"events","namespace":"load-0","name":"load-00000.1","apiVersion":"v1"}"#;

    #[test]
    fn created_job_is_parsed_with_its_arrival_time() {
        let request = parse(&line("ResponseComplete", USER, "create", JOB, 201), USER).unwrap();
        assert!(request.is_job_create() && request.is_write() && !request.is_event());
        assert_eq!(
            (request.namespace.as_str(), request.name.as_str()),
            ("load-0", "load-00000-29925276")
        );
        assert_eq!(request.received.as_microsecond(), 1_795_257_360_001_534);
        assert_eq!(request.answered.as_microsecond(), 1_795_257_360_005_000);
    }

    #[test]
    fn other_users_watch_starts_and_truncated_lines_are_skipped() {
        let whole = line("ResponseComplete", USER, "create", JOB, 201);
        let check = |line: &str| assert_eq!(parse(line, USER), None, "{line}");
        check(&line("ResponseComplete", "admin", "create", JOB, 201));
        check(&line(
            "ResponseComplete",
            "system:serviceaccount:kube-system:cronwheel2",
            "create",
            JOB,
            201,
        ));
        check(&line("ResponseStarted", USER, "watch", JOB, 200));
        check(&whole[..whole.len() - 20]);
        check("");
    }

    #[test]
    fn refused_create_counts_only_as_a_write() {
        let request = parse(&line("ResponseComplete", USER, "create", JOB, 409), USER).unwrap();
        assert!(request.is_write() && !request.is_job_create());
    }

    #[test]
    fn requests_are_counted_by_verb_and_resource() {
        let lines = [
            line("ResponseComplete", USER, "create", JOB, 201),
            line("ResponseComplete", USER, "create", JOB, 409),
            line("ResponseComplete", USER, "update", STATUS, 200),
            line("ResponseComplete", USER, "update", STATUS, 200),
            line("ResponseComplete", USER, "create", EVENT, 201),
            line("ResponseComplete", USER, "list", JOB, 200),
        ];
        let requests: Vec<_> = lines.iter().filter_map(|line| parse(line, USER)).collect();
        let counts = RequestCounts::of(&requests);
        let accepted = |verb: &str, resource: &str| counts.accepted.get(&(verb.into(), resource.into())).copied();
        assert_eq!(accepted("create", "jobs"), Some(1));
        assert_eq!(accepted("update", "cronjobs/status"), Some(2));
        assert_eq!(accepted("create", "events"), Some(1));
        assert_eq!(accepted("list", "jobs"), Some(1));
        assert_eq!(counts.refused.get(&("create".into(), "jobs".into(), 409)), Some(&1));
        assert_eq!(
            (counts.n_writes, counts.n_event_writes, counts.n_job_creates()),
            (4, 1, 1)
        );
    }
}
