//! Compares the decoded protobuf of the objects from the other cases with their JSON.

use apisim::{
    Resource,
    objects::{
        decoding::{self, FieldValidation},
        protobuf,
    },
};
use serde_json::Value;

use crate::requests::{Server, path};

/// Compares the two encodings of each object.
pub(crate) async fn compare(server: &Server, findings: &mut Vec<String>) {
    for resource in Resource::ALL {
        let list = server
            .send("GET", &path(resource), ("application/json", "application/json"), "")
            .await
            .body;
        let items = list["items"].as_array().expect("items");
        assert!(!items.is_empty(), "nothing to compare: {resource:?}");
        for item in items {
            let url = format!("{}/{}", path(resource), item["metadata"]["name"].as_str().unwrap());
            let bytes = server
                .send_for_bytes("GET", &url, ("", protobuf::CONTENT_TYPE), "")
                .await
                .1;
            let members = protobuf::parse(resource, &bytes).expect("valid protobuf");
            let read = decoding::decode(resource, members, FieldValidation::Strict)
                .expect("a valid object")
                .object;
            let mut item = item.clone();
            item["kind"] = resource.kind().into();
            item["apiVersion"] = resource.api_version().into();
            if without_nulls(&read) != without_nulls(&item) {
                findings.push(format!("protobuf of {url}\nreal {item}\nours {read}"));
            }
        }
    }
}

/// Removes top-level nulls, because the server writes some of them only for single objects.
fn without_nulls(object: &Value) -> Value {
    let members = object.as_object().expect("an object").iter();
    members
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}
