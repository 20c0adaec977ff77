//! The objects of a cluster: the CronJob that is asked about, and the Jobs of its namespace. Nothing is written.

use http::Request;
use kube::Client;
use serde_json::Value;

use super::{
    ExplainError,
    objects::{Document, Objects},
};

/// Jobs in one answer, as `kubectl` asks for them.
const PAGE_OBJECTS: usize = 500;

/// Pages of one list: more Jobs than the API server can hold.
const PAGES_MAX: usize = 10_000;

/// Fetches the CronJob and all Jobs of its namespace.
pub(super) async fn fetch(client: &Client, namespace: &str, name: &str) -> Result<Objects, ExplainError> {
    let mut objects = Objects::default();
    let base = base(namespace);
    let path = format!("{base}/cronjobs/{}", escaped(name));
    let text = get(client, &path)
        .await
        .map_err(|error| fetch_error("CronJob", namespace, name, error))?;
    let cron_job = parse(&text).map_err(|error| fetch_error("CronJob", namespace, name, error))?;
    objects.take(&path, cron_job, Some("CronJob"))?;
    let jobs = format!("{base}/jobs?limit={PAGE_OBJECTS}");
    let mut next = Some(jobs.clone());
    for _ in 0..PAGES_MAX {
        let Some(path) = next else { break };
        let failed = |error| fetch_error("Jobs of", namespace, name, error);
        let text = get(client, &path).await.map_err(failed)?;
        let page = parse(&text).map_err(failed)?;
        let token = page.value.pointer("/metadata/continue");
        let token = token.and_then(Value::as_str).unwrap_or_default();
        next = (!token.is_empty()).then(|| format!("{jobs}&continue={}", escaped(token)));
        objects.take(&path, page, Some("JobList"))?;
    }
    Ok(objects)
}

fn base(namespace: &str) -> String {
    format!("/apis/batch/v1/namespaces/{}", escaped(namespace))
}

/// Gets an object as it is, so that what our bindings do not know is kept.
async fn get(client: &Client, path: &str) -> Result<String, GetError> {
    Ok(client.request_text(Request::get(path).body(Vec::new())?).await?)
}

fn parse(text: &str) -> Result<Document<'_>, GetError> {
    Ok(Document::of_json(text)?)
}

/// Why an object cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum GetError {
    /// Its path is none.
    #[error("the request cannot be built")]
    Request(#[from] http::Error),
    /// The API server does not give it.
    #[error(transparent)]
    Api(#[from] kube::Error),
    /// The answer is not JSON.
    #[error("the answer is no JSON")]
    Json(#[from] serde_json::Error),
}

impl GetError {
    fn is_not_found(&self) -> bool {
        matches!(self, GetError::Api(kube::Error::Api(status)) if status.code == 404)
    }
}

fn fetch_error(what: &'static str, namespace: &str, name: &str, error: GetError) -> ExplainError {
    if error.is_not_found() {
        return ExplainError::NotFound {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
    }
    ExplainError::Fetch {
        what,
        name: format!("{namespace}/{name}"),
        error: Box::new(error),
    }
}

/// A token as part of a query.
fn escaped(token: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    let escape = |byte: u8| {
        if is_plain(byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    token.bytes().map(escape).collect()
}
