//! Compares the discovery documents of the served groups.

use apisim::objects::discovery::{self, Reply};
use serde_json::Value;

use crate::requests::Server;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Compares the parts of the documents that both servers have.
pub(crate) async fn compare(server: &Server, findings: &mut Vec<String>) {
    for (path, accept) in [
        ("/apis/batch", "application/json"),
        ("/apis/batch/v1", "application/json"),
        ("/apis/coordination.k8s.io/v1", "application/json"),
        ("/api/v1", "application/json"),
        ("/api", AGGREGATED),
        ("/apis", AGGREGATED),
    ] {
        let real = server.send("GET", path, ("", accept), "").await.body;
        let Some(Reply::Document(ours)) = discovery::reply(path, accept) else {
            panic!("no {path}")
        };
        let ours = without_pods(ours.body);
        let real = restricted(real, &ours);
        if real != ours {
            findings.push(format!("discovery at {path}\nreal {real}\nours {ours}"));
        }
    }
}

/// Removes Pods. Discovery lists them so that clients can report that there are none.
fn without_pods(mut ours: Value) -> Value {
    for (pointer, name) in [("/resources", "name"), ("/items/0/versions/0/resources", "resource")] {
        if let Some(resources) = ours.pointer_mut(pointer).and_then(Value::as_array_mut) {
            resources.retain(|resource| resource[name] != "pods");
        }
    }
    ours
}

/// Reduces a document of the real server to the elements of our document.
fn restricted(real: Value, ours: &Value) -> Value {
    match (real, ours) {
        (Value::Object(mut members), Value::Object(ours)) => {
            members.remove("storageVersionHash");
            let restricted = members.into_iter().map(|(name, value)| {
                let value = restricted(value, ours.get(&name).unwrap_or(&Value::Null));
                (name, value)
            });
            Value::Object(restricted.collect())
        }
        (Value::Array(elements), Value::Array(ours)) => {
            let named = |element: &Value| {
                let names = ["/resource", "/name", "/metadata/name", "/subresource", "/version"];
                names.iter().find_map(|name| element.pointer(name).cloned())
            };
            let mut kept = Vec::new();
            for element in elements {
                let other = ours.iter().find(|other| named(other) == named(&element));
                match other {
                    Some(other) => kept.push(restricted(element, other)),
                    None if named(&element).is_none() => kept.push(element),
                    None => {}
                }
            }
            Value::Array(kept)
        }
        (other, _) => other,
    }
}
