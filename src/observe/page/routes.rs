//! The routes, and what they answer.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Path, RawQuery, State},
    http::{HeaderName, StatusCode, header},
    middleware,
    response::{Html, IntoResponse, Response, Sse, sse::KeepAlive},
    routing::get,
};
use maud::{Markup, html};
use serde::Serialize;
use tokio::{sync::Semaphore, time::timeout};

use super::{
    AllowedHosts, PageSource,
    clock::Clock,
    detail, events,
    frame::{self, Frame},
    guard, overview,
    query::{self, PageQuery, QueryError},
};
use crate::observe::view::{CronJobName, Strip};

/// The text of `explain` needs the API server, which may not answer. The page does not wait longer for it.
const EXPLAIN_WAIT_MAX: Duration = Duration::from_secs(5);
/// The texts of `explain` that are computed at a time. Each takes a few requests to the API server.
const EXPLAIN_PLACES: usize = 2;
/// Addresses of assets have a hash of their content, so that a browser can keep them.
const ASSET_CACHE: &str = "private, max-age=86400";

/// What the handlers use.
#[derive(Clone)]
struct PageState {
    source: Arc<dyn PageSource>,
    event_places: Arc<Semaphore>,
    explain_places: Arc<Semaphore>,
}

/// The page and what belongs to it.
pub fn router(source: Arc<dyn PageSource>, hosts: AllowedHosts) -> Router {
    let state = PageState {
        source,
        event_places: events::places(),
        explain_places: Arc::new(Semaphore::new(EXPLAIN_PLACES)),
    };
    Router::new()
        .route("/", get(all))
        .route("/cronjobs/{namespace}/{name}", get(cron_job))
        .route("/strip.json", get(strip_json))
        .route("/events", get(version_events))
        .route("/healthz", get(async || "ok\n"))
        .route(
            "/style.css",
            get(async || asset("text/css; charset=utf-8", frame::STYLE)),
        )
        .route(
            "/script.js",
            get(async || asset("text/javascript; charset=utf-8", frame::SCRIPT)),
        )
        .route("/favicon.svg", get(async || asset("image/svg+xml", frame::ICON)))
        .fallback(unknown_page)
        .with_state(state)
        .layer(middleware::from_fn_with_state(Arc::new(hosts), guard::guard))
}

async fn all(State(state): State<PageState>, RawQuery(query): RawQuery) -> Response {
    let source = state.source.as_ref();
    match PageQuery::parse(&query.unwrap_or_default(), source.now()) {
        Ok(query) => page(StatusCode::OK, overview::page(source, &query)),
        Err(error) => bad_request(source, &error),
    }
}

async fn cron_job(
    State(state): State<PageState>,
    Path((namespace, name)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Response {
    let source = state.source.as_ref();
    let cron_job = match query::parse_cron_job(&namespace, &name) {
        Ok(cron_job) => cron_job,
        Err(error) => return bad_request(source, &error),
    };
    let with_explain = match query::parse_explain(&query.unwrap_or_default()) {
        Ok(with_explain) => with_explain,
        Err(error) => return bad_request(source, &error),
    };
    if source.detail(&cron_job).is_none() {
        return unknown_cron_job(source, &cron_job);
    }
    let explained = if with_explain {
        Some(explain(&state, &cron_job).await)
    } else {
        None
    };
    // The CronJob may have changed meanwhile; the version and the rest of the page must be of one time.
    let version = source.changes().get();
    match source.detail(&cron_job) {
        Some(detail) => page(
            StatusCode::OK,
            detail::page(source, version, &detail, explained.as_ref()),
        ),
        None => unknown_cron_job(source, &cron_job),
    }
}

/// The text of `explain`, or why there is none.
async fn explain(state: &PageState, cron_job: &CronJobName) -> Result<String, String> {
    let explained = async {
        // The semaphore is never closed.
        let _place = state.explain_places.acquire().await;
        state.source.explain(cron_job).await
    };
    let seconds = EXPLAIN_WAIT_MAX.as_secs();
    let explained = timeout(EXPLAIN_WAIT_MAX, explained).await;
    explained.unwrap_or_else(|_| Err(format!("the API server did not answer within {seconds} seconds")))
}

/// The counts of the cells, for the script's tooltips. They would double the size of the page.
#[derive(Serialize)]
struct StripCounts<'a> {
    from: i64,
    cell_seconds: u32,
    /// Since when the home zone has an offset from UTC, in seconds, and its name.
    offsets: Vec<(i64, i32, String)>,
    rows: Vec<RowCounts<'a>>,
}

#[derive(Serialize)]
struct RowCounts<'a> {
    namespace: Option<&'a str>,
    /// Runs, then the late, the failed and the lost, unless these three are zero.
    cells: Vec<Vec<u32>>,
}

async fn strip_json(State(state): State<PageState>, RawQuery(query): RawQuery) -> Response {
    let source = state.source.as_ref();
    let now = source.now();
    let query = match PageQuery::parse(&query.unwrap_or_default(), now) {
        Ok(query) => query,
        Err(error) => return (StatusCode::BAD_REQUEST, error.to_string() + "\n").into_response(),
    };
    let (from, to) = query.strip_span(now);
    let strip = source.strip(from, to);
    let clock = Clock::new(now, source.heading().zone);
    match serde_json::to_string(&strip_counts(&strip, &clock)) {
        Ok(text) => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

fn strip_counts<'a>(strip: &'a Strip, clock: &Clock) -> StripCounts<'a> {
    let rows = strip.rows.iter().map(|row| RowCounts {
        namespace: row.namespace.as_deref(),
        cells: row
            .cells
            .iter()
            .map(|cell| match [cell.n_runs, cell.n_late, cell.n_failed, cell.n_lost] {
                [n_runs, 0, 0, 0] => vec![n_runs],
                counts => counts.to_vec(),
            })
            .collect(),
    });
    StripCounts {
        from: strip.from.as_second(),
        cell_seconds: strip.cell_minutes * 60,
        offsets: clock.offsets(strip.from, strip.to),
        rows: rows.collect(),
    }
}

async fn version_events(State(state): State<PageState>) -> Response {
    let Ok(place) = state.event_places.try_acquire_owned() else {
        let text = "Too many pages are open: no further one gets live updates. Reload to see what changed.\n";
        return (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
    };
    let versions = events::versions(state.source.changes(), place);
    let events = Sse::new(versions).keep_alive(KeepAlive::new().interval(events::KEEP_ALIVE));
    // A proxy must not collect events.
    ([("x-accel-buffering", "no")], events).into_response()
}

fn asset(content_type: &'static str, text: &'static str) -> ([(HeaderName, &'static str); 2], &'static str) {
    let headers = [
        (header::CONTENT_TYPE, content_type),
        (header::CACHE_CONTROL, ASSET_CACHE),
    ];
    (headers, text)
}

async fn unknown_page(State(state): State<PageState>) -> Response {
    let what = html! { "There is no such page." };
    message(state.source.as_ref(), StatusCode::NOT_FOUND, "Not found", &what)
}

fn unknown_cron_job(source: &dyn PageSource, cron_job: &CronJobName) -> Response {
    let what = html! {
        "There is no CronJob " b { (cron_job.namespace) "/" (cron_job.name) } ", or this view may not read its namespace."
    };
    message(source, StatusCode::NOT_FOUND, "Not found", &what)
}

fn bad_request(source: &dyn PageSource, error: &QueryError) -> Response {
    let what = html! { b { (error.field) } " " (error.problem) ". " (error.fix) "." };
    message(source, StatusCode::BAD_REQUEST, "The address is not understood", &what)
}

fn message(source: &dyn PageSource, status: StatusCode, title: &str, what: &Markup) -> Response {
    let heading = source.heading();
    let clock = Clock::new(source.now(), heading.zone.clone());
    let content = html! {
        section.panel.message {
            h2 { (title) }
            p { (what) }
            p { a href="/" { "All CronJobs" } }
        }
    };
    let frame = Frame {
        title,
        heading: &heading,
        clock: &clock,
        version: source.changes().get(),
        summary: html! {},
    };
    page(status, frame.page(&content))
}

fn page(status: StatusCode, markup: Markup) -> Response {
    (status, Html(markup.into_string())).into_response()
}
