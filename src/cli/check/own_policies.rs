//! Admission policies of an account that may not list them, such as that of the replicas: it may get those of its release.
//! The rights of the account have their names.

use std::collections::BTreeSet;

use percent_encoding::utf8_percent_encode;
use serde_json::{Value, json};

use super::{cluster::ADMISSION, reads::get};
use crate::kube_api::{JsonApi, paths::RESERVED};

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
const GROUP: &str = "admissionregistration.k8s.io";

/// Reads the objects of a resource that the account may get, as far as they exist. `None` if its rights name none, or cannot
/// be read. `namespace` is any in which it has rights: the policies have none.
pub(super) async fn read(api: &JsonApi, plural: &str, namespace: &str) -> Option<Vec<Value>> {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": namespace},
    });
    let review = api.create(REVIEWS, &review).await.ok()?.body;
    let names = names(&review, plural);
    let mut objects = Vec::new();
    for name in &names {
        let path = format!("{ADMISSION}/{plural}/{}", utf8_percent_encode(name, RESERVED));
        objects.extend(get(api, &path, &format!("get {plural}.{GROUP}")).await.ok()?);
    }
    (!names.is_empty()).then_some(objects)
}

/// The names of the objects of a resource in the rules that permit to get them.
fn names(review: &Value, plural: &str) -> BTreeSet<String> {
    let rules = review.pointer("/status/resourceRules").and_then(Value::as_array);
    let has = |list: &Value, item: &str| {
        list.as_array()
            .is_some_and(|items| items.iter().any(|found| found == item))
    };
    let rules = rules
        .into_iter()
        .flatten()
        .filter(|rule| has(&rule["apiGroups"], GROUP) && has(&rule["resources"], plural) && has(&rule["verbs"], "get"));
    let names = rules.flat_map(|rule| rule["resourceNames"].as_array().into_iter().flatten());
    names.filter_map(|name| Some(name.as_str()?.to_owned())).collect()
}
