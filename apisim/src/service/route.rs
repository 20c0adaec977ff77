//! Maps paths and methods to calls.

use http::Method;
use percent_encoding::percent_decode_str;

use crate::{
    Resource,
    failure::Failure,
    registry::{Part, Target},
    verb::Verb,
};

/// The resource that a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// A document that is not an object: discovery, versions, health.
    Document(String),
    /// Access reviews.
    AccessReviews,
    /// The Pods of one namespace or of all. There are none.
    Pods,
    /// All objects of a kind, in one namespace or in all.
    Collection {
        resource: Resource,
        namespace: Option<String>,
    },
    /// One object, or its status.
    Object {
        resource: Resource,
        namespace: Option<String>,
        name: String,
        part: Part,
    },
}

/// A verb and the resource that it applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) verb: Verb,
    pub(super) route: Route,
}

impl Route {
    pub(super) fn parse(path: &str) -> Result<Route, Failure> {
        let decoded = percent_decode_str(path)
            .decode_utf8()
            .map_err(|_| Failure::no_such_path())?;
        let parts: Vec<&str> = decoded.split('/').filter(|part| !part.is_empty()).collect();
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] if !rest.is_empty() => ("", *version, rest),
            ["apis", group, version, rest @ ..] if !rest.is_empty() => (*group, *version, rest),
            _ => return Ok(Route::Document(format!("/{}", parts.join("/")))),
        };
        if group.is_empty() && matches!(rest, ["pods"] | ["namespaces", _, "pods"]) {
            return Ok(Route::Pods);
        }
        Route::in_group(group, version, rest).ok_or_else(|| {
            if rest.contains(&"pods") {
                Failure::no_pods()
            } else {
                Failure::no_such_path()
            }
        })
    }

    fn in_group(group: &str, version: &str, rest: &[&str]) -> Option<Route> {
        if (group, version, rest) == ("authorization.k8s.io", "v1", &["selfsubjectaccessreviews"]) {
            return Some(Route::AccessReviews);
        }
        let find = |plural: &str, is_namespaced: bool| {
            Resource::find(group, version, plural).filter(|resource| resource.is_namespaced() == is_namespaced)
        };
        let object = |resource: Resource, namespace: Option<&str>, name: &str, part: Part| Route::Object {
            resource,
            namespace: namespace.map(ToOwned::to_owned),
            name: name.to_owned(),
            part,
        };
        match *rest {
            ["namespaces"] => Some(Route::Collection {
                resource: find("namespaces", false)?,
                namespace: None,
            }),
            ["namespaces", name] => Some(object(find("namespaces", false)?, None, name, Part::Main)),
            ["namespaces", name, "status"] => Some(object(find("namespaces", false)?, None, name, Part::Status)),
            ["namespaces", namespace, plural] => Some(Route::Collection {
                resource: find(plural, true)?,
                namespace: Some(namespace.to_owned()),
            }),
            ["namespaces", namespace, plural, name] => {
                Some(object(find(plural, true)?, Some(namespace), name, Part::Main))
            }
            ["namespaces", namespace, plural, name, "status"] => {
                let resource = find(plural, true).filter(|resource| resource.has_status())?;
                Some(object(resource, Some(namespace), name, Part::Status))
            }
            [plural] => Some(Route::Collection {
                resource: find(plural, true)?,
                namespace: None,
            }),
            _ => None,
        }
    }

    pub(super) fn resource(&self) -> Option<Resource> {
        match self {
            Route::Document(_) | Route::AccessReviews | Route::Pods => None,
            Route::Collection { resource, .. } | Route::Object { resource, .. } => Some(*resource),
        }
    }
}

impl Call {
    pub(super) fn new(route: Route, method: &Method, is_watch: bool) -> Result<Call, Failure> {
        let is_addressed =
            |resource: Resource, namespace: &Option<String>| !resource.is_namespaced() || namespace.is_some();
        let verb = match (&route, method) {
            // A review is a POST, but it stores nothing.
            (Route::Document(_), &Method::GET) | (Route::AccessReviews, &Method::POST) => Verb::Document,
            (Route::Pods, &Method::GET) if !is_watch => Verb::Document,
            (Route::Pods, _) => return Err(Failure::no_pods()),
            (Route::Collection { .. }, &Method::GET) if is_watch => Verb::Watch,
            (Route::Collection { .. }, &Method::GET) => Verb::List,
            (Route::Collection { resource, namespace }, &Method::POST) if is_addressed(*resource, namespace) => {
                Verb::Create
            }
            (Route::Collection { resource, namespace }, &Method::DELETE)
                if is_addressed(*resource, namespace) && *resource != Resource::Namespace =>
            {
                Verb::DeleteCollection
            }
            (Route::Object { .. }, &Method::GET) => Verb::Get,
            (Route::Object { .. }, &Method::PUT) => Verb::Update,
            (Route::Object { .. }, &Method::PATCH) => Verb::Patch,
            (Route::Object { part: Part::Main, .. }, &Method::DELETE) => Verb::Delete,
            _ => return Err(Failure::method_not_allowed()),
        };
        Ok(Call { verb, route })
    }

    /// Returns the target: an object, or the kind and namespace of a new one.
    pub(super) fn target(&self) -> Result<(Target<'_>, Part), Failure> {
        match &self.route {
            Route::Document(_) | Route::AccessReviews | Route::Pods => Err(Failure::no_such_path()),
            Route::Collection { resource, namespace } => {
                let target = Target {
                    resource: *resource,
                    namespace: namespace.as_deref(),
                    name: "",
                    writer: "",
                };
                Ok((target, Part::Main))
            }
            Route::Object {
                resource,
                namespace,
                name,
                part,
            } => {
                let target = Target {
                    resource: *resource,
                    namespace: namespace.as_deref(),
                    name,
                    writer: "",
                };
                Ok((target, *part))
            }
        }
    }
}
