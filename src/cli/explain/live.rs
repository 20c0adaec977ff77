//! Reads the objects of a cluster: the CronJob, the Jobs of its namespace, and Jobs of other namespaces that its active
//! list names.

use std::collections::BTreeSet;

use http::Request;
use kube::Client;
use percent_encoding::{PercentEncode, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde_json::{Value, value::RawValue};

use super::{
    objects::{Document, Objects, Origin},
    parse_name,
};
use crate::{
    cli::error::CommandError,
    kube_api::{objects::classify::error_text, page_sizes::PAGE_SIZE, paths::RESERVED},
};

/// Maximum number of pages of one list: more Jobs than an API server can hold.
const PAGES_MAX: usize = 10_000;

/// Reads the CronJob, all Jobs of its namespace, and the others of its active list.
pub(super) async fn fetch(client: &Client, namespace: &str, name: &str) -> Result<Objects, CommandError> {
    let mut objects = Objects::new(Origin::Cluster);
    let base = base(namespace);
    let path = format!("{base}/cronjobs/{}", escaped(name));
    let failed = |error| fetch_error("CronJob", namespace, name, &error);
    let text: Box<RawValue> = get(client, &path).await.map_err(failed)?;
    let cron_job = Document::of_json(text.get());
    let cron_job = cron_job.map_err(|error| failed(kube::Error::SerdeError(error)))?;
    let elsewhere = entries_elsewhere(&cron_job.value, namespace);
    objects.take(&path, cron_job, Some("CronJob"))?;
    let jobs = format!("{base}/jobs?limit={PAGE_SIZE}");
    let mut next = Some(jobs.clone());
    for _ in 0..PAGES_MAX {
        let Some(path) = next else { break };
        let failed = |error| fetch_error("Jobs of", namespace, name, &error);
        let value: Value = get(client, &path).await.map_err(failed)?;
        let token = value.pointer("/metadata/continue");
        let token = token.and_then(Value::as_str).unwrap_or_default();
        next = (!token.is_empty()).then(|| format!("{jobs}&continue={}", escaped(token)));
        objects.take(&path, Document { value, text: None }, Some("JobList"))?;
    }
    for (namespace, name) in elsewhere {
        let path = format!("{}/jobs/{}", self::base(&namespace), escaped(&name));
        match get(client, &path).await {
            Ok(value) => objects.take(&path, Document { value, text: None }, Some("Job"))?,
            Err(error) if code(&error) == Some(404) => {}
            Err(error) => return Err(fetch_error("Job", &namespace, &name, &error)),
        }
    }
    Ok(objects)
}

fn base(namespace: &str) -> String {
    format!("/apis/batch/v1/namespaces/{}", escaped(namespace))
}

/// Returns namespace and name of the Jobs in the active list that are not in the CronJob's namespace (B-5.4).
fn entries_elsewhere(cron_job: &Value, namespace: &str) -> BTreeSet<(String, String)> {
    let entries = cron_job.pointer("/status/active").and_then(Value::as_array);
    let elsewhere = entries.into_iter().flatten().filter_map(|entry| {
        let member = |member: &str| parse_name(entry.get(member)?.as_str()?).ok();
        Some((member("namespace")?, member("name")?))
    });
    elsewhere.filter(|(of_entry, _)| of_entry != namespace).collect()
}

async fn get<T: DeserializeOwned>(client: &Client, path: &str) -> Result<T, kube::Error> {
    let request = Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
    client.request(request).await
}

/// Returns the HTTP status of a refusal.
fn code(error: &kube::Error) -> Option<u16> {
    if let kube::Error::Api(status) = error {
        Some(status.code)
    } else {
        None
    }
}

fn fetch_error(what: &str, namespace: &str, name: &str, error: &kube::Error) -> CommandError {
    let text = error_text(error);
    match code(error) {
        Some(404) => {
            format!("CronJob {namespace}/{name} is not in the cluster; check the name and give the namespace by -n")
        }
        Some(403) => format!(
            "cannot get the {what} {namespace}/{name}: {text}; the account needs get on cronjobs, get and list on jobs"
        ),
        _ => format!("cannot get the {what} {namespace}/{name}: {text}"),
    }
    .into()
}

/// Escapes a segment of a path or a value of a query.
fn escaped(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, RESERVED)
}
