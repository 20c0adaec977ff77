//! Reads the objects of a cluster: the CronJob, its namespace and its calendar, the Jobs of its namespace, and Jobs of other
//! namespaces that its active list names. For the page, only the Jobs that it names.

use std::collections::BTreeSet;

use futures::{StreamExt, TryStreamExt, stream};
use http::Request;
use kube::Client;
use percent_encoding::{PercentEncode, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde_json::{Value, value::RawValue};

use super::parse_name;
use crate::{
    cli::error::CommandError,
    explain::objects::{Document, Objects, Origin},
    kube_api::{objects::classify::error_text, page_sizes::PAGE_SIZE, paths::RESERVED},
    schedule::options::OptionName,
};

/// Maximum number of pages of one list: more Jobs than an API server can hold.
const PAGES_MAX: usize = 10_000;

/// Maximum number of Jobs that are read one by one.
const NAMED_JOBS_MAX: usize = 40;

/// Number of Jobs that are read at a time.
const NAMED_JOBS_IN_FLIGHT_MAX: usize = 4;

/// Reads the CronJob and these Jobs of its namespace, as far as they still exist, its namespace and its calendar. The page
/// does not read all Jobs of the namespace again for each visitor.
pub(super) async fn fetch_named(
    client: &Client,
    (namespace, name): (&str, &str),
    job_names: &[Box<str>],
) -> Result<Objects, CommandError> {
    let refusal = |what: &str| {
        CommandError::from(format!(
            "the CronJob {what}; run cronwheel explain -n {namespace} {name}"
        ))
    };
    if job_names.len() > NAMED_JOBS_MAX {
        return Err(refusal(&format!(
            "has more than {NAMED_JOBS_MAX} Jobs, too many for the page"
        )));
    }
    let mut objects = Objects::new(Origin::Cluster);
    let (path, text) = get_cron_job(client, namespace, name).await?;
    let cron_job = parsed(&text, namespace, name)?;
    if !entries_elsewhere(&cron_job.value, namespace).is_empty() {
        return Err(refusal(
            "names active Jobs of another namespace, which the page does not read",
        ));
    }
    let calendar = calendar_name(&cron_job.value);
    objects.take(&path, cron_job, Some("CronJob"));
    take_namespace(client, namespace, &mut objects).await;
    take_calendar(client, namespace, calendar.as_deref(), &mut objects).await;
    let jobs = job_names.iter().map(|job_name| get_job(client, namespace, job_name));
    // Collected first: a closure in the stream would be bound to one lifetime.
    let jobs: Vec<_> = jobs.collect();
    let jobs: Vec<_> = stream::iter(jobs)
        .buffered(NAMED_JOBS_IN_FLIGHT_MAX)
        .try_collect()
        .await?;
    for (path, value) in jobs.into_iter().flatten() {
        objects.take(&path, Document { value, text: None }, Some("Job"));
    }
    Ok(objects)
}

/// Reads the CronJob, all Jobs of its namespace, and the others of its active list.
pub(super) async fn fetch(client: &Client, namespace: &str, name: &str) -> Result<Objects, CommandError> {
    let mut objects = Objects::new(Origin::Cluster);
    let (path, text) = get_cron_job(client, namespace, name).await?;
    let cron_job = parsed(&text, namespace, name)?;
    let elsewhere = entries_elsewhere(&cron_job.value, namespace);
    let uid = cron_job.value["metadata"]["uid"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let calendar = calendar_name(&cron_job.value);
    objects.take(&path, cron_job, Some("CronJob"));
    let jobs = format!("{}/jobs?limit={PAGE_SIZE}", base(namespace));
    let mut next = Some(jobs.clone());
    for _ in 0..PAGES_MAX {
        let Some(path) = next else { break };
        let failed = |error| fetch_error("Jobs of", namespace, name, &error);
        let value: Value = get(client, &path).await.map_err(failed)?;
        let token = value.pointer("/metadata/continue");
        let token = token.and_then(Value::as_str).unwrap_or_default();
        next = (!token.is_empty()).then(|| format!("{jobs}&continue={}", escaped(token)));
        objects.take(&path, Document { value, text: None }, Some("JobList"));
    }
    take_events(client, (namespace, name), &uid, &mut objects).await;
    take_namespace(client, namespace, &mut objects).await;
    take_calendar(client, namespace, calendar.as_deref(), &mut objects).await;
    for (namespace, name) in elsewhere {
        if let Some((path, value)) = get_job(client, &namespace, &name).await? {
            objects.take(&path, Document { value, text: None }, Some("Job"));
        }
    }
    Ok(objects)
}

/// Returns the path and the text of the CronJob.
async fn get_cron_job(client: &Client, namespace: &str, name: &str) -> Result<(String, Box<RawValue>), CommandError> {
    let path = format!("{}/cronjobs/{}", base(namespace), escaped(name));
    match get(client, &path).await {
        Ok(text) => Ok((path, text)),
        Err(error) => Err(fetch_error("CronJob", namespace, name, &error)),
    }
}

fn parsed<'a>(text: &'a RawValue, namespace: &str, name: &str) -> Result<Document<'a>, CommandError> {
    let failed = |error| fetch_error("CronJob", namespace, name, &kube::Error::SerdeError(error));
    Document::of_json(text.get()).map_err(failed)
}

/// Returns a Job with its path; `None` if it does not exist.
async fn get_job(client: &Client, namespace: &str, name: &str) -> Result<Option<(String, Value)>, CommandError> {
    let path = format!("{}/jobs/{}", base(namespace), escaped(name));
    match get(client, &path).await {
        Ok(job) => Ok(Some((path, job))),
        Err(error) if code(&error) == Some(404) => Ok(None),
        Err(error) => Err(fetch_error("Job", namespace, name, &error)),
    }
}

pub(super) fn base(namespace: &str) -> String {
    format!("/apis/batch/v1/namespaces/{}", escaped(namespace))
}

/// Reads the Events of the CronJob. Without them the answer says less.
async fn take_events(client: &Client, (namespace, name): (&str, &str), uid: &str, objects: &mut Objects) {
    let selector = format!("involvedObject.kind=CronJob,involvedObject.name={name}");
    let path = format!(
        "/api/v1/namespaces/{}/events?limit={PAGE_SIZE}&fieldSelector={}",
        escaped(namespace),
        escaped(&selector)
    );
    match get::<Value>(client, &path).await {
        Ok(list) => objects.take_events(list["items"].as_array().map_or(&[], Vec::as_slice), uid),
        Err(error) => {
            objects.take_events(&[], uid);
            objects.notes.push(format!(
                "cannot list the Events of CronJob {namespace}/{name}: {}; the account needs list on events",
                error_text(&error)
            ));
        }
    }
}

/// The calendar that a CronJob names.
fn calendar_name(cron_job: &Value) -> Option<String> {
    let annotations = cron_job.pointer("/metadata/annotations")?;
    let name = annotations.get(OptionName::NotOn.annotation())?.as_str()?;
    Some(name.trim().to_owned())
}

/// Reads the namespace, which may have a freeze and defaults. Without it the answer says less.
async fn take_namespace(client: &Client, namespace: &str, objects: &mut Objects) {
    let path = format!("/api/v1/namespaces/{}", escaped(namespace));
    match get::<Value>(client, &path).await {
        Ok(value) => objects.take_namespace(&value),
        Err(error) if code(&error) == Some(404) => {}
        Err(error) => objects.notes.push(format!(
            "cannot get the namespace {namespace}: {}; its freeze and its defaults are not known, the account needs get on \
             namespaces",
            error_text(&error)
        )),
    }
}

/// Reads the ConfigMap that the CronJob names in its annotation `not-on`. Without it the answer says less.
async fn take_calendar(client: &Client, namespace: &str, name: Option<&str>, objects: &mut Objects) {
    let Some(name) = name.filter(|name| parse_name(name).is_ok() && *name != "none") else {
        return;
    };
    let path = format!("/api/v1/namespaces/{}/configmaps/{}", escaped(namespace), escaped(name));
    match get::<Value>(client, &path).await {
        Ok(value) => objects.take(&path, Document { value, text: None }, None),
        Err(error) if code(&error) == Some(404) => objects.note_missing_calendar(namespace, name),
        Err(error) => objects.notes.push(format!(
            "cannot get the ConfigMap {namespace}/{name}: {}; the account needs get on configmaps",
            error_text(&error)
        )),
    }
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
pub(super) fn escaped(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, RESERVED)
}
