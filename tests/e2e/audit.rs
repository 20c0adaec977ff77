//! The requests in the API server's audit log.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use jiff::Timestamp;
use serde_json::Value;

use super::kubernetes::{Namespace, wait};

/// The prefix of an object name in a final request. Once the log has this request, it also has all earlier ones.
const MARKER: &str = "audit-marker";

/// The requests in one namespace, in the order of the log.
pub(super) struct Audit {
    requests: Vec<Value>,
}

impl Audit {
    pub(super) async fn read(namespace: &Namespace) -> Audit {
        let marker = format!("{MARKER}-{}", Timestamp::now().as_millisecond());
        assert_eq!(namespace.find("Job", &marker).await, None);
        let path = namespace.control_plane.audit_log.as_ref().expect("an audit log");
        let mut requests = Vec::new();
        let is_complete = async || {
            let text = fs::read_to_string(path).expect("the audit log");
            // Skips truncated lines: lines being written now, and lines being written when the API server was killed.
            let lines = text.lines().filter(|line| line.contains(&namespace.name));
            let lines = lines.filter_map(|line| serde_json::from_str(line).ok());
            let is_here = |request: &Value| request["objectRef"]["namespace"] == *namespace.name;
            requests = lines.filter(is_here).collect();
            requests.iter().any(|request| request["objectRef"]["name"] == *marker)
        };
        assert!(wait(is_complete).await, "the audit log is behind");
        Audit { requests }
    }

    /// The times at which each Job was created, by name.
    pub(super) fn created_jobs(&self) -> BTreeMap<&str, Vec<Timestamp>> {
        let mut created: BTreeMap<&str, Vec<Timestamp>> = BTreeMap::new();
        for request in self.of(["create", "jobs"]) {
            if request["responseStatus"]["code"] == 201 {
                let name = request["objectRef"]["name"].as_str().expect("a name");
                created
                    .entry(name)
                    .or_default()
                    .push(time(request, "requestReceivedTimestamp"));
            }
        }
        created
    }

    /// The names of Jobs whose creates were forbidden.
    pub(super) fn refused_jobs(&self) -> BTreeSet<String> {
        let refused = self.of(["create", "jobs"]);
        let refused = refused.filter(|request| request["responseStatus"]["code"] == 403);
        let name = |request: &Value| Some(request["objectRef"]["name"].as_str()?.to_owned());
        refused.filter_map(name).collect()
    }

    /// Asserts that no Job was created twice. Also asserts that no Job was deleted, because a deleted Job could be
    /// created again under the same name.
    pub(super) fn assert_no_job_created_twice(&self) {
        assert_eq!(self.of(["delete", "jobs"]).next(), None);
        let created = self.created_jobs();
        let twice: Vec<_> = created.iter().filter(|(_, times)| times.len() > 1).collect();
        assert!(twice.is_empty() && !created.is_empty(), "{twice:?}");
    }

    /// The times at which requests with this verb and resource arrived, and the times of their 429 responses.
    pub(super) fn received_and_refused(&self, lane: [&str; 2]) -> (Vec<Timestamp>, Vec<Timestamp>) {
        let received = self.of(lane).map(|request| time(request, "requestReceivedTimestamp"));
        let refused = self
            .of(lane)
            .filter(|request| request["responseStatus"]["code"] == 429)
            .map(|request| time(request, "stageTimestamp"));
        (received.collect(), refused.collect())
    }

    /// The requests with this verb and resource.
    fn of(&self, [verb, resource]: [&str; 2]) -> impl Iterator<Item = &Value> {
        let requests = self.requests.iter();
        requests.filter(move |request| request["verb"] == *verb && request["objectRef"]["resource"] == *resource)
    }
}

fn time(request: &Value, member: &str) -> Timestamp {
    request[member].as_str().expect("a time").parse().expect("a time")
}
