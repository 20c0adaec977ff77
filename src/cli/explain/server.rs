//! `--check --server`: the refusals of the API server itself, by a dry run of each CronJob, which includes admission.

use apiobjects::validation::FieldError;
use http::{Method, Request};
use kube::{Client, core::Status};
use serde_json::Value;

use super::live::{base, escaped};
use crate::{
    cli::error::CommandError,
    explain::{
        objects::{Objects, name_of},
        refusals,
    },
    kube_api::objects::classify::{error_text, is_not_permitted},
};

const DRY_RUN: &str = "dryRun=All&fieldValidation=Strict&fieldManager=cronwheel";

/// Returns the refusals of each CronJob. `namespace` is that of objects that name none.
pub(super) async fn refusals(
    client: &Client,
    objects: &Objects,
    namespace: &str,
) -> Result<Vec<Vec<String>>, CommandError> {
    let mut all = Vec::new();
    for cron_job in objects.cron_jobs() {
        let of_kind = refusals::of_kind(cron_job);
        all.push(if of_kind.is_empty() {
            of_cron_job(client, cron_job, namespace).await?
        } else {
            of_kind
        });
    }
    Ok(all)
}

async fn of_cron_job(client: &Client, value: &Value, namespace: &str) -> Result<Vec<String>, CommandError> {
    let mut body = value.clone();
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        for member in ["resourceVersion", "uid", "managedFields"] {
            metadata.remove(member);
        }
    }
    let namespace = body["metadata"]["namespace"]
        .as_str()
        .filter(|own| !own.is_empty())
        .unwrap_or(namespace);
    let collection = format!("{}/cronjobs", base(namespace));
    let path = format!("{collection}/{}", escaped(name_of(value)));
    let existing = match name_of(value) {
        // Its name will be generated.
        "" => None,
        _ => match send(client, Method::GET, &path, &Value::Null).await? {
            Ok(existing) => Some(existing),
            Err(status) if status.code == 404 => None,
            Err(status) => return of_status(&status, value),
        },
    };
    let answer = match existing {
        Some(existing) => {
            body["metadata"]["resourceVersion"] = existing["metadata"]["resourceVersion"].clone();
            send(client, Method::PUT, &format!("{path}?{DRY_RUN}"), &body).await?
        }
        None => send(client, Method::POST, &format!("{collection}?{DRY_RUN}"), &body).await?,
    };
    answer.map_or_else(|status| of_status(&status, value), |_| Ok(Vec::new()))
}

/// Sends a request. The inner result is the answer or the refusal of the API server.
async fn send(
    client: &Client,
    method: Method,
    path: &str,
    body: &Value,
) -> Result<Result<Value, Box<Status>>, CommandError> {
    let failed = |error: kube::Error| CommandError::from(format!("cannot ask the API server: {}", error_text(&error)));
    let bytes = if body.is_null() {
        Vec::new()
    } else {
        body.to_string().into_bytes()
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("Content-Type", "application/json")
        .body(bytes)
        .map_err(|error| failed(kube::Error::HttpError(error)))?;
    match client.request(request).await {
        Ok(answer) => Ok(Ok(answer)),
        Err(kube::Error::Api(status)) => Ok(Err(status)),
        Err(error) => Err(failed(error)),
    }
}

fn of_status(status: &Status, value: &Value) -> Result<Vec<String>, CommandError> {
    let message = &status.message;
    if is_not_permitted(status.code, message) {
        return Err(format!(
            "the API server does not permit the dry run: {message}; give the account get, create and update on cronjobs"
        )
        .into());
    }
    let causes = status.details.as_ref().map_or(&[][..], |details| &details.causes);
    // A policy that denies has a cause without a field.
    if status.code != 422 || causes.iter().all(|cause| cause.field.is_empty()) {
        return Ok(vec![message.clone()]);
    }
    let mut refusals = Vec::new();
    for cause in causes {
        let error = FieldError {
            reason: if cause.reason == "FieldValueRequired" {
                "FieldValueRequired"
            } else {
                "FieldValueInvalid"
            },
            field: cause.field.clone(),
            message: cause.message.clone(),
        };
        let refusal = refusals::text(&error, value);
        if !refusals.contains(&refusal) {
            refusals.push(refusal);
        }
    }
    Ok(refusals)
}
