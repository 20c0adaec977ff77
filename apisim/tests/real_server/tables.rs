//! Tables of what the other cases left behind.

use apisim::{
    Resource,
    objects::table::{self, IncludeObject},
};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::requests::{Server, path};

const TABLE: (&str, &str) = ("application/json", "application/json;as=Table;v=v1;g=meta.k8s.io");
/// A request takes less than this.
const N_SECONDS_MAX: i64 = 3;

/// Compares cells and columns, for every kind.
#[allow(clippy::disallowed_methods, reason = "a real server keeps real time")]
pub(crate) async fn compare(server: &Server, findings: &mut Vec<String>) {
    for resource in Resource::ALL {
        let url = format!("{}?includeObject=Object", path(resource));
        let now = Timestamp::now();
        let real = server.send("GET", &url, TABLE, "").await.body;
        let rows = real["rows"].as_array().expect("rows");
        assert!(!rows.is_empty(), "nothing to compare: {resource:?}");
        let objects: Vec<_> = rows.iter().map(|row| row["object"].clone()).collect();
        // The server's second may be the next one.
        let candidates: Vec<_> = (0..N_SECONDS_MAX)
            .map(|seconds| now + SignedDuration::from_secs(seconds))
            .map(|now| comparable(&table::render_with(resource, &objects, IncludeObject::Object, now)))
            .collect();
        let real = comparable(&real);
        if !candidates.contains(&real) {
            findings.push(format!("table of {resource:?}\nreal {real}\nours {}", candidates[0]));
        }
    }
}

/// Without descriptions, which are our own, and the list's version.
fn comparable(table: &Value) -> Value {
    let mut table = table.clone();
    table["metadata"] = Value::Null;
    for column in table["columnDefinitions"].as_array_mut().expect("columns") {
        column["description"] = Value::Null;
    }
    table
}
