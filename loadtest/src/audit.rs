//! The API server's audit log: every request of one user, with its time of arrival. The fairest measure of a
//! controller, since it is taken from outside and in the same way for each.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
};

use anyhow::Context as _;
use jiff::Timestamp;
use serde::Deserialize;

/// One request, answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Verb, such as `create`.
    pub(crate) verb: String,
    /// Resource, with its subresource where there is one: `cronjobs/status`.
    pub(crate) resource: String,
    /// Namespace of the object, empty where it has none.
    pub(crate) namespace: String,
    /// Name of the object, empty for a list.
    pub(crate) name: String,
    /// Status of the answer.
    pub(crate) code: u16,
    /// When it reached the API server, in whole microseconds.
    pub(crate) received: Timestamp,
    /// When it was answered.
    pub(crate) answered: Timestamp,
}

impl Request {
    /// Whether it changes something, or would have.
    pub(crate) fn is_write(&self) -> bool {
        matches!(
            self.verb.as_str(),
            "create" | "update" | "patch" | "delete" | "deletecollection"
        )
    }

    /// Whether it is about an Event.
    pub(crate) fn is_event(&self) -> bool {
        self.resource == "events"
    }

    /// Whether it made a Job.
    pub(crate) fn is_job_create(&self) -> bool {
        self.verb == "create" && self.resource == "jobs" && self.code == 201
    }

    /// Whether it may have made a Job all the same: a server that could not answer, as when the client was gone, logs a
    /// failure of its own, whatever was stored.
    pub(crate) fn is_unanswered_job_create(&self) -> bool {
        self.verb == "create" && self.resource == "jobs" && (self.code >= 500 || self.code == 0)
    }

    /// Whether it deleted a Job that there was.
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

/// Reads the requests of `username`, in the order of their answers. The last line may be cut off: it is left out.
pub(crate) fn read(path: &Path, username: &str) -> anyhow::Result<Vec<Request>> {
    let context = || format!("cannot read the audit log {}", path.display());
    let file = File::open(path).with_context(context)?;
    let mut requests = Vec::new();
    for line in BufReader::new(file).lines() {
        requests.extend(parse(&line.with_context(context)?, username));
    }
    Ok(requests)
}

/// None for a line that is about somebody else, about the begin of a watch, or not whole.
fn parse(line: &str, username: &str) -> Option<Request> {
    // Most lines belong to others, and this is much cheaper than to decode them.
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

/// Requests counted by verb and resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestCounts {
    /// Those that were accepted.
    pub(crate) accepted: BTreeMap<(String, String), u64>,
    /// Those that were not, by status too.
    pub(crate) refused: BTreeMap<(String, String, u16), u64>,
    /// Writes other than those of Events, accepted or not.
    pub(crate) n_writes: u64,
    /// Writes of Events, accepted or not.
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

    /// Jobs that were made.
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
    fn a_created_job_is_read_with_its_time_of_arrival() {
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
    fn others_the_begin_of_a_watch_and_cut_lines_are_left_out() {
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
    fn a_refused_create_is_a_write_that_made_no_job() {
        let request = parse(&line("ResponseComplete", USER, "create", JOB, 409), USER).unwrap();
        assert!(request.is_write() && !request.is_job_create());
    }

    #[test]
    fn requests_are_counted_by_verb_and_resource_and_events_apart() {
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
