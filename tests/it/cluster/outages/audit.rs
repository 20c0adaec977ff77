//! What the API server says it was asked for, from its audit log.

use std::{collections::BTreeMap, fs};

use jiff::Timestamp;
use serde_json::Value;
use testbed::Testbed;

use crate::cluster::kubernetes::{Namespace, wait};

/// Asked for last, so that all that came before is in the log when it is.
const MARKER: &str = "asked-for-last";

/// The requests to one namespace, in the order of the log.
pub(super) struct Audit {
    requests: Vec<Value>,
}

impl Audit {
    pub(super) async fn read(testbed: &Testbed, namespace: &Namespace) -> Audit {
        assert_eq!(namespace.find("Job", MARKER).await, None);
        let path = testbed.audit_log_path().expect("an audit log");
        let mut requests = Vec::new();
        let is_complete = async || {
            let text = fs::read_to_string(&path).expect("the audit log");
            // A line that is being written, or was when the API server was killed, is none.
            let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
            let is_here = |request: &Value| request["objectRef"]["namespace"] == *namespace.name;
            requests = lines.filter(is_here).collect();
            requests.iter().any(|request| request["objectRef"]["name"] == MARKER)
        };
        assert!(wait(is_complete).await, "the audit log is behind");
        Audit { requests }
    }

    /// No Job was deleted, so one that is there is the only one that ever bore its name, unless it was created twice.
    pub(super) fn demand_no_job_twice(&self) {
        let mut n_created: BTreeMap<&str, u32> = BTreeMap::new();
        assert_eq!(self.of(["delete", "jobs"]).next(), None);
        for request in self.of(["create", "jobs"]) {
            if request["responseStatus"]["code"] == 201 {
                let name = request["objectRef"]["name"].as_str().expect("a name");
                *n_created.entry(name).or_default() += 1;
            }
        }
        let twice: Vec<_> = n_created.iter().filter(|(_, n)| **n > 1).collect();
        assert!(twice.is_empty() && !n_created.is_empty(), "{twice:?}");
    }

    /// When requests of this verb and resource came, and when those were answered that the API server had no time for.
    pub(super) fn received_and_refused(&self, lane: [&str; 2]) -> (Vec<Timestamp>, Vec<Timestamp>) {
        let time = |request: &Value, member: &str| -> Timestamp {
            request[member].as_str().expect("a time").parse().expect("a time")
        };
        let received = self.of(lane).map(|request| time(request, "requestReceivedTimestamp"));
        let refused = self
            .of(lane)
            .filter(|request| request["responseStatus"]["code"] == 429)
            .map(|request| time(request, "stageTimestamp"));
        (received.collect(), refused.collect())
    }

    fn of(&self, [verb, resource]: [&str; 2]) -> impl Iterator<Item = &Value> {
        let requests = self.requests.iter();
        requests.filter(move |request| request["verb"] == *verb && request["objectRef"]["resource"] == *resource)
    }
}
