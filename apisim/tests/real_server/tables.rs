//! Compares Tables of the objects from the other cases.

use apisim::{
    Resource,
    objects::table::{self, IncludeObject},
};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::requests::{Server, path};

const TABLE: (&str, &str) = ("application/json", "application/json;as=Table;v=v1;g=meta.k8s.io");
/// The maximum duration of a request.
const N_SECONDS_MAX: i64 = 3;

/// Compares cells and columns for every kind.
#[allow(clippy::disallowed_methods, reason = "the real server uses real time")]
pub(crate) async fn compare(server: &Server, findings: &mut Vec<String>) {
    for resource in Resource::ALL {
        let url = format!("{}?includeObject=Object", path(resource));
        let now = Timestamp::now();
        let real = server.send("GET", &url, TABLE, "").await.body;
        let rows = real["rows"].as_array().expect("rows");
        assert!(!rows.is_empty(), "nothing to compare: {resource:?}");
        let objects: Vec<_> = rows.iter().map(|row| row["object"].clone()).collect();
        // The server may have rendered the ages up to this many seconds later.
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

/// Removes the column descriptions, which differ, and the metadata of the list.
fn comparable(table: &Value) -> Value {
    let mut table = table.clone();
    table["metadata"] = Value::Null;
    for column in table["columnDefinitions"].as_array_mut().expect("columns") {
        column["description"] = Value::Null;
    }
    table
}
