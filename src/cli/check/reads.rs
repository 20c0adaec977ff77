//! Reads of the checks. A fact that cannot be read ends no command: the check says why.

use http::StatusCode;
use jiff::Timestamp;
use percent_encoding::utf8_percent_encode;
use serde_json::Value;

use super::{
    cluster::{self, DateAnswer},
    finding::{Finding, Unread},
};
use crate::{
    controller::clock::Clock,
    kube_api::{JsonApi, JsonError, paths::RESERVED},
};

/// The local clock, corrected by an answer of the API server. The times in objects are those of the cluster.
pub(super) struct ServerClock<'a> {
    clock: &'a Clock,
    answer: Option<DateAnswer>,
}

impl ServerClock<'_> {
    /// Reads `/version`, and the time of the API server.
    pub(super) async fn read<'a>(api: &JsonApi, clock: &'a Clock) -> (ServerClock<'a>, Result<Value, JsonError>) {
        let sent = clock.now();
        let version = api.get("/version").await;
        let received = clock.now();
        let date = version.as_ref().ok().and_then(|answer| answer.date);
        let answer = date.map(|date| DateAnswer { sent, received, date });
        (ServerClock { clock, answer }, version.map(|answer| answer.body))
    }

    /// The time of the API server; the local time if that is not known.
    pub(super) fn now(&self) -> Timestamp {
        let now = self.clock.now();
        self.answer.map_or(now, |answer| answer.corrected(now))
    }

    /// Judges the local clock.
    pub(super) fn finding(&self) -> Finding {
        cluster::clock(self.answer)
    }

    /// Says if the local clock is wrong.
    pub(super) fn is_off(&self) -> Option<Finding> {
        self.answer.is_some_and(DateAnswer::is_off).then(|| self.finding())
    }
}

/// The finding of a command that can read nothing: the read of the version failed for a reason that holds for every request.
pub(super) fn no_access(version: &Result<Value, JsonError>) -> Option<Finding> {
    let error = version.as_ref().err()?;
    Finding::without_access(&Unread::new("reach the API server", error))
}

/// Reads an object or a document; `None` if it does not exist. `what` is the verb, the resource and the place.
pub(super) async fn get(api: &JsonApi, path: &str, what: &str) -> Result<Option<Value>, Unread> {
    match api.get(path).await {
        Ok(answer) => Ok(Some(answer.body)),
        Err(error) if error.code() == Some(StatusCode::NOT_FOUND.as_u16()) => Ok(None),
        Err(error) => Err(Unread::new(what, &error)),
    }
}

/// Reads the items of a list; none if the resource is not served. Only short lists are read as a whole.
pub(super) async fn items(api: &JsonApi, path: &str, query: &str, what: &str) -> Result<Vec<Value>, Unread> {
    let mut items = Vec::new();
    let read = api.list(path, query, |page| items.extend(items_of(page))).await;
    match read {
        Err(error) if error.code() != Some(StatusCode::NOT_FOUND.as_u16()) => Err(Unread::new(what, &error)),
        Ok(()) | Err(_) => Ok(items),
    }
}

/// Returns the items of a page.
pub(super) fn items_of(mut page: Value) -> Vec<Value> {
    match page.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

/// Reads a collection of the group `batch` in all namespaces, or in these.
pub(super) async fn batch(
    api: &JsonApi,
    plural: &str,
    namespaces: &[String],
    mut take: impl FnMut(Value),
) -> Result<(), Unread> {
    const BATCH: &str = "/apis/batch/v1";
    let unread = |place: &str, error: &JsonError| Unread::new(format!("list {plural} in {place}"), error);
    if namespaces.is_empty() {
        let path = format!("{BATCH}/{plural}");
        let read = api.list(&path, "", take).await;
        return read.map_err(|error| unread("all namespaces", &error));
    }
    for namespace in namespaces {
        let path = format!("{BATCH}/namespaces/{namespace}/{plural}");
        let read = api.list(&path, "", &mut take).await;
        read.map_err(|error| unread(&format!("namespace {namespace}"), &error))?;
    }
    Ok(())
}

/// Reads all namespaces, or these, as far as they exist.
pub(super) async fn namespaces(api: &JsonApi, names: &[String]) -> Result<Vec<Value>, Unread> {
    const PATH: &str = "/api/v1/namespaces";
    if names.is_empty() {
        return items(api, PATH, "", "list namespaces").await;
    }
    let mut namespaces = Vec::new();
    for name in names {
        namespaces.extend(get(api, &format!("{PATH}/{name}"), "get namespaces").await?);
    }
    Ok(namespaces)
}

/// Returns a query parameter with its value escaped.
pub(super) fn parameter(name: &str, value: &str) -> String {
    format!("{name}={}", utf8_percent_encode(value, RESERVED))
}
