//! Writing: bodies and options to the rules' verbs.

use http::{StatusCode, header};
use serde::Deserialize;
use serde_json::Value;

use super::{ApiService, Asked, answer::Answer, route::Verb};
use crate::{
    failure::Failure,
    registry::{DeleteOptions, Part, Patch, Propagation, Target, Written},
    resource::Resource,
    rules::{self, PatchKind},
    store::{Key, Table},
};

impl ApiService {
    pub(super) fn write(&self, asked: &Asked, body: &[u8]) -> Result<Answer, Failure> {
        let (target, part) = asked.call.target()?;
        let is_dry_run = asked.query.is_dry_run;
        let moment = self.api.shared.moment();
        let written = match asked.call.verb {
            Verb::Create => {
                let object = object(asked, target.resource, body)?;
                self.api
                    .shared
                    .state()
                    .registry
                    .create(target, object, is_dry_run, moment)?
            }
            Verb::Update => {
                let object = object(asked, target.resource, body)?;
                self.api
                    .shared
                    .state()
                    .registry
                    .update(target, part, object, is_dry_run, moment)?
            }
            Verb::Patch => self.patch(asked, target, part, body)?,
            Verb::Delete => {
                let options = delete_options(asked, body)?;
                self.api.shared.state().registry.delete(target, &options, moment)?
            }
            Verb::DeleteCollection => return self.delete_collection(asked, target, body),
            Verb::Document | Verb::Get | Verb::List | Verb::Watch => return Err(Failure::method_not_allowed()),
        };
        Ok(answer(target.resource, written))
    }

    fn patch(&self, asked: &Asked, target: Target<'_>, part: Part, body: &[u8]) -> Result<Written, Failure> {
        let kind = patch_kind(asked)?;
        let content = rules::patch(kind, body)?;
        let patch = Patch {
            kind,
            content: &content,
        };
        let moment = self.api.shared.moment();
        let mut state = self.api.shared.state();
        state
            .registry
            .patch(target, part, patch, asked.query.is_dry_run, moment)
    }

    fn delete_collection(&self, asked: &Asked, target: Target<'_>, body: &[u8]) -> Result<Answer, Failure> {
        let options = delete_options(asked, body)?;
        let selector = asked.query.selector(target.resource)?;
        let moment = self.api.shared.moment();
        let mut state = self.api.shared.state();
        let store = &state.registry.store;
        let version = store.version();
        let view = store.table(target.resource).view(version);
        let view = view.map_err(|_| Failure::expired("too old resource version"))?;
        let prefix = Table::prefix(target.namespace);
        let chosen: Vec<_> = view
            .range(&prefix, None)
            .filter(|object| selector.matches(object))
            .cloned()
            .collect();
        let keys: Vec<Key> = chosen.iter().map(|object| object.key.clone()).collect();
        state.registry.delete_all(target.resource, &keys, &options, moment);
        Ok(Answer::List(super::answer::List {
            resource: target.resource,
            version,
            continue_token: String::new(),
            n_remaining: None,
            items: chosen.iter().map(|object| object.json.clone()).collect(),
        }))
    }
}

fn answer(resource: Resource, written: Written) -> Answer {
    match written {
        Written::Created(json) => Answer::Object(StatusCode::CREATED, resource, json),
        Written::Stored(json) => Answer::Object(StatusCode::OK, resource, json),
        Written::Deleted(json) => Answer::Document(StatusCode::OK, "application/json", json),
    }
}

fn content_type(asked: &Asked) -> &str {
    let value = asked
        .headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    value.unwrap_or_default().split(';').next().unwrap_or_default().trim()
}

fn object(asked: &Asked, resource: Resource, body: &[u8]) -> Result<Value, Failure> {
    match content_type(asked) {
        "" | "application/json" | "*/*" => rules::object(resource, body),
        _ => Err(Failure::unsupported_media_type("application/json")),
    }
}

fn patch_kind(asked: &Asked) -> Result<PatchKind, Failure> {
    match content_type(asked) {
        "application/merge-patch+json" => Ok(PatchKind::Merge),
        "application/strategic-merge-patch+json" => Ok(PatchKind::StrategicMerge),
        "application/apply-patch+yaml" => Ok(PatchKind::Apply),
        _ => Err(Failure::unsupported_media_type(
            "application/merge-patch+json, application/apply-patch+yaml, application/strategic-merge-patch+json",
        )),
    }
}

/// `DeleteOptions`, as far as they are understood.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct DeleteBody {
    propagation_policy: Option<String>,
    orphan_dependents: Option<bool>,
    preconditions: Option<Preconditions>,
    dry_run: Option<Vec<String>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Preconditions {
    uid: Option<String>,
    resource_version: Option<String>,
}

fn delete_options(asked: &Asked, body: &[u8]) -> Result<DeleteOptions, Failure> {
    let body = if body.is_empty() {
        DeleteBody::default()
    } else {
        serde_json::from_slice(body)
            .map_err(|error| Failure::bad_request(format!("couldn't read the delete options: {error}")))?
    };
    let preconditions = body.preconditions.unwrap_or_default();
    let policy = body
        .propagation_policy
        .or_else(|| asked.query.propagation_policy.clone());
    let propagation = match (policy.as_deref(), body.orphan_dependents) {
        (Some("Foreground"), _) => Some(Propagation::Foreground),
        (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
        (Some("Background"), _) | (None, Some(false)) => Some(Propagation::Background),
        (None, None) => None,
        (Some(other), _) => {
            let message = format!(
                "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"{other}\": supported \
                 values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
            );
            return Err(Failure::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message));
        }
    };
    Ok(DeleteOptions {
        uid: preconditions.uid,
        resource_version: preconditions.resource_version,
        propagation,
        is_dry_run: asked.query.is_dry_run || body.dry_run.is_some_and(|names| names.iter().any(|name| name == "All")),
    })
}
