//! Groups, versions and kinds: one document each, and all in one document (aggregated discovery).

use serde_json::{Value, json};

use super::Document;
use crate::Resource;

const VERBS: [&str; 8] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];
const STATUS_VERBS: [&str; 3] = ["get", "patch", "update"];
/// The groups other than the core group, by name.
pub(super) const GROUPS: [&str; 2] = ["batch", "coordination.k8s.io"];
/// The versions of aggregated discovery: the parameters in the `Accept` header, the media type of the response, and the
/// version in the document.
const AGGREGATED: [(&str, &str, &str); 2] = [
    (
        "v=v2;as=APIGroupDiscoveryList",
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        "apidiscovery.k8s.io/v2",
    ),
    (
        "v=v2beta1;as=APIGroupDiscoveryList",
        "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
        "apidiscovery.k8s.io/v2beta1",
    ),
];

/// All groups under `/api` or `/apis` with their kinds, if the client accepts aggregated discovery.
pub(super) fn aggregated(path: &str, accept: &str) -> Option<Document> {
    let groups: &[&str] = match path {
        "/api" => &[""],
        "/apis" => &GROUPS,
        _ => return None,
    };
    let accept = accept.replace(' ', "");
    let (_, content_type, api_version) = AGGREGATED.iter().find(|(accepted, ..)| accept.contains(accepted))?;
    let items: Vec<_> = groups.iter().map(|group| aggregated_group(group)).collect();
    let body = json!({"kind": "APIGroupDiscoveryList", "apiVersion": api_version, "metadata": {}, "items": items});
    Some(Document { content_type, body })
}

/// The separate discovery documents.
pub(super) fn plain(path: &str) -> Option<Value> {
    match path {
        "/api" => Some(json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})),
        "/api/v1" => Some(resource_list("")),
        "/apis" => {
            let groups: Vec<_> = GROUPS.iter().map(|name| group(name)).collect();
            Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
        }
        _ => {
            let rest = path.strip_prefix("/apis/")?;
            let name = rest.strip_suffix("/v1").unwrap_or(rest);
            let name = GROUPS.into_iter().find(|group| *group == name)?;
            if rest != name {
                return Some(resource_list(name));
            }
            let mut document = group(name);
            document["kind"] = "APIGroup".into();
            document["apiVersion"] = "v1".into();
            Some(document)
        }
    }
}

/// The kinds of a group, without Pods: the server supports only empty lists of Pods.
pub(super) fn resources(group: &str) -> impl Iterator<Item = Resource> {
    let mut resources: Vec<_> = Resource::ALL
        .into_iter()
        .filter(|resource| resource.group() == group)
        .collect();
    resources.sort_unstable_by_key(|resource| resource.plural());
    resources.into_iter()
}

/// The verbs of a kind. Namespaces can only be deleted one at a time.
fn verbs(resource: Resource) -> Vec<&'static str> {
    let is_supported = |verb: &&str| resource.is_namespaced() || *verb != "deletecollection";
    VERBS.into_iter().filter(is_supported).collect()
}

fn group(name: &str) -> Value {
    let version = json!({"groupVersion": format!("{name}/v1"), "version": "v1"});
    json!({"name": name, "versions": [version], "preferredVersion": version})
}

fn resource_list(group: &str) -> Value {
    let group_version = if group.is_empty() {
        "v1".to_owned()
    } else {
        format!("{group}/v1")
    };
    let mut list = Vec::new();
    for resource in resources(group) {
        let mut entry = json!({
            "name": resource.plural(),
            "singularName": resource.singular(),
            "namespaced": resource.is_namespaced(),
            "kind": resource.kind(),
            "verbs": verbs(resource),
        });
        put_names(&mut entry, resource);
        list.push(entry);
        if resource.has_status() {
            list.push(json!({
                "name": format!("{}/status", resource.plural()),
                "singularName": "",
                "namespaced": resource.is_namespaced(),
                "kind": resource.kind(),
                "verbs": STATUS_VERBS,
            }));
        }
    }
    if group.is_empty() {
        list.push(
            json!({"name": "pods", "singularName": "pod", "namespaced": true, "kind": "Pod", "verbs": VERBS,
            "shortNames": ["po"]}),
        );
    }
    let mut document = json!({"kind": "APIResourceList", "groupVersion": group_version, "resources": list});
    // The document of the core group predates versioned documents.
    if !group.is_empty() {
        document["apiVersion"] = "v1".into();
    }
    document
}

fn aggregated_group(group: &str) -> Value {
    let mut resources: Vec<_> = resources(group).map(aggregated_resource).collect();
    if group.is_empty() {
        let kind = json!({"group": "", "version": "", "kind": "Pod"});
        resources.push(
            json!({"resource": "pods", "responseKind": kind, "scope": "Namespaced", "singularResource": "pod",
            "verbs": VERBS, "shortNames": ["po"]}),
        );
    }
    let metadata = if group.is_empty() {
        json!({})
    } else {
        json!({"name": group})
    };
    let version = json!({"version": "v1", "resources": resources, "freshness": "Current"});
    json!({"metadata": metadata, "versions": [version]})
}

fn aggregated_resource(resource: Resource) -> Value {
    let kind = json!({"group": "", "version": "", "kind": resource.kind()});
    let mut entry = json!({
        "resource": resource.plural(),
        "responseKind": kind,
        "scope": if resource.is_namespaced() { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular(),
        "verbs": verbs(resource),
    });
    put_names(&mut entry, resource);
    if resource.has_status() {
        entry["subresources"] = json!([{"subresource": "status", "responseKind": kind, "verbs": STATUS_VERBS}]);
    }
    entry
}

fn put_names(entry: &mut Value, resource: Resource) {
    for (member, names) in [
        ("shortNames", resource.short_names()),
        ("categories", resource.categories()),
    ] {
        if !names.is_empty() {
            entry[member] = json!(names);
        }
    }
}
