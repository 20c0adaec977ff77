//! Writes: passes bodies and options to the registry.

use http::{StatusCode, header};
use serde::Deserialize;
use serde_json::Value;

use super::{
    ApiService, ParsedRequest,
    reply::{List, Reply},
};
use crate::{
    Resource,
    content::{self, BodyForm, Patch},
    failure::Failure,
    objects::{
        decoding::Decoded,
        patch::{self, PatchForm},
        protobuf,
        validation::FieldError,
    },
    registry::{DeleteOptions, Moment, Outcome, Part, Propagation, Target, Written},
    store::{Key, Table},
    verb::Verb,
};

impl ApiService {
    pub(super) fn write(&self, request: &ParsedRequest, body: &[u8]) -> Result<Reply, Failure> {
        let (target, part) = request.call.target()?;
        let target = Target {
            writer: request.writer(),
            ..target
        };
        let is_dry_run = request.query.is_dry_run(options_of(request.call.verb))?;
        let moment = self.api.shared.moment(request.front_end);
        let written = match request.call.verb {
            Verb::Create => {
                let Decoded { object, warnings } = object(request, target.resource, body)?;
                let moment = Moment {
                    wall: request.created.unwrap_or(moment.wall),
                    ..moment
                };
                let mut state = self.api.shared.state();
                let written = state.registry.create(target, object, is_dry_run, moment)?;
                written.with_earlier_warnings(warnings)
            }
            Verb::Update => {
                let Decoded { object, warnings } = object(request, target.resource, body)?;
                let mut state = self.api.shared.state();
                let written = state.registry.update(target, part, object, is_dry_run, moment)?;
                written.with_earlier_warnings(warnings)
            }
            Verb::Patch => self.patch(request, target, part, body, is_dry_run)?,
            Verb::Delete => {
                let options = delete_options(request, body)?;
                self.api.shared.state().registry.delete(target, &options, moment)?
            }
            Verb::DeleteCollection => return self.delete_collection(request, target, body),
            Verb::Document | Verb::Get | Verb::List | Verb::Watch => return Err(Failure::method_not_allowed()),
        };
        Ok(reply(target.resource, written))
    }

    fn patch(
        &self,
        request: &ParsedRequest,
        target: Target<'_>,
        part: Part,
        body: &[u8],
        is_dry_run: bool,
    ) -> Result<Written, Failure> {
        let accepted = || Failure::unsupported_media_type(&PatchForm::CONTENT_TYPES.join(", "));
        let form = PatchForm::parse(content_type(request)).ok_or_else(accepted)?;
        let manager = &request.query.field_manager;
        check_manager(form, manager, request.query.is_forced.is_some())?;
        let content = patch::parse(form, body)?;
        let writer = if form == PatchForm::Apply { "" } else { target.writer };
        let target = Target { writer, ..target };
        let patch = Patch {
            form,
            content: &content,
            manager,
            is_forced: request.query.is_forced == Some(true),
            validation: request.query.field_validation(options_of(request.call.verb))?,
        };
        let moment = self.api.shared.moment(request.front_end);
        let mut state = self.api.shared.state();
        state.registry.patch(target, part, &patch, is_dry_run, moment)
    }

    fn delete_collection(&self, request: &ParsedRequest, target: Target<'_>, body: &[u8]) -> Result<Reply, Failure> {
        let options = delete_options(request, body)?;
        let selector = request.query.selector(target.resource)?;
        let moment = self.api.shared.moment(request.front_end);
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
        Ok(Reply::List(List {
            resource: target.resource,
            version,
            continue_token: String::new(),
            n_remaining: None,
            items: chosen.iter().map(|object| object.json()).collect(),
        }))
    }
}

impl ParsedRequest {
    /// The field manager of an update: the client, unless the request names another.
    fn writer(&self) -> &str {
        match &*self.query.field_manager {
            "" => &self.client,
            manager => manager,
        }
    }
}

fn reply(resource: Resource, written: Written) -> Reply {
    let Written {
        outcome,
        json,
        warnings,
    } = written;
    match outcome {
        Outcome::Created => Reply::Object(StatusCode::CREATED, resource, json, warnings),
        Outcome::Stored => Reply::Object(StatusCode::OK, resource, json, warnings),
        Outcome::Deleted => Reply::Document(StatusCode::OK, "application/json", json),
    }
}

fn content_type(request: &ParsedRequest) -> &str {
    let value = request
        .headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    value.unwrap_or_default().split(';').next().unwrap_or_default().trim()
}

fn body_form(request: &ParsedRequest) -> Result<BodyForm, Failure> {
    let accepted = "application/json, application/vnd.kubernetes.protobuf";
    BodyForm::parse(content_type(request)).ok_or_else(|| Failure::unsupported_media_type(accepted))
}

/// The kind of the options of a verb.
fn options_of(verb: Verb) -> &'static str {
    match verb {
        Verb::Create => "CreateOptions",
        Verb::Update => "UpdateOptions",
        Verb::Patch => "PatchOptions",
        Verb::Delete | Verb::DeleteCollection => "DeleteOptions",
        Verb::Document | Verb::Get | Verb::List | Verb::Watch => "ListOptions",
    }
}

pub(super) fn object(request: &ParsedRequest, resource: Resource, body: &[u8]) -> Result<Decoded, Failure> {
    let validation = request.query.field_validation(options_of(request.call.verb))?;
    content::object(resource, body_form(request)?, body, validation)
}

/// An apply requires a field manager, and only an apply may force.
fn check_manager(form: PatchForm, manager: &str, has_force: bool) -> Result<(), Failure> {
    let is_apply = form == PatchForm::Apply;
    let (field, reason, message) = match (is_apply, has_force) {
        (true, _) if manager.is_empty() => (
            "fieldManager",
            "FieldValueRequired",
            "Required value: is required for apply patch",
        ),
        (false, true) => (
            "force",
            "FieldValueForbidden",
            "Forbidden: may not be specified for non-apply patch",
        ),
        (true | false, _) => return Ok(()),
    };
    let error = FieldError {
        reason,
        field: field.to_owned(),
        message: message.to_owned(),
    };
    Err(Failure::invalid_options("PatchOptions", &[error]))
}

/// The supported fields of `DeleteOptions`. Deletions are immediate, so only the type of the grace period is checked.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct DeleteBody {
    propagation_policy: Option<String>,
    orphan_dependents: Option<bool>,
    preconditions: Option<Preconditions>,
    dry_run: Option<Vec<String>>,
    #[serde(rename = "gracePeriodSeconds")]
    _grace_period_seconds: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Preconditions {
    uid: Option<String>,
    resource_version: Option<String>,
}

impl DeleteBody {
    fn read(request: &ParsedRequest, body: &[u8]) -> Result<DeleteBody, Failure> {
        if body.is_empty() {
            return Ok(DeleteBody::default());
        }
        let read = match body_form(request)? {
            BodyForm::Json => serde_json::from_slice(body),
            BodyForm::Protobuf => {
                let members = protobuf::parse_delete_options(body)?;
                serde_json::from_value(Value::Object(members))
            }
        };
        read.map_err(|error| Failure::bad_request(format!("couldn't read the delete options: {error}")))
    }
}

fn delete_options(request: &ParsedRequest, body: &[u8]) -> Result<DeleteOptions, Failure> {
    let body = DeleteBody::read(request, body)?;
    let preconditions = body.preconditions.unwrap_or_default();
    let policy = body
        .propagation_policy
        .or_else(|| request.query.propagation_policy.clone());
    let propagation = match (policy.as_deref(), body.orphan_dependents) {
        (Some("Foreground"), _) => Some(Propagation::Foreground),
        (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
        (Some("Background"), _) | (None, Some(false)) => Some(Propagation::Background),
        (None, None) => None,
        (Some(other), _) => {
            let error = FieldError {
                reason: "FieldValueNotSupported",
                field: "propagationPolicy".to_owned(),
                message: format!(
                    "Unsupported value: {other:?}: supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
                ),
            };
            return Err(Failure::invalid_options("DeleteOptions", &[error]));
        }
    };
    Ok(DeleteOptions {
        uid: preconditions.uid,
        resource_version: preconditions.resource_version,
        propagation,
        is_dry_run: request.query.is_dry_run("DeleteOptions")?
            || body.dry_run.is_some_and(|names| names.iter().any(|name| name == "All")),
    })
}
