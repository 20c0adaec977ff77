//! The list of all CronJobs.

use maud::{Markup, html};

use super::{
    Heading,
    attention::cron_job_link,
    clock::Clock,
    query::{PageQuery, ROWS_PER_PAGE, instant_text},
    words,
};
use crate::{
    observe::{
        slot::Mark,
        view::{Next, Row, Rows, StateFilter},
    },
    schedule::ConcurrencyPolicy,
};

/// Namespaces that the search form suggests.
const SUGGESTED_MAX: usize = 100;

/// The search form, the filters, and a page of rows.
pub(super) fn section(rows: &Rows, query: &PageQuery, heading: &Heading, clock: &Clock) -> Markup {
    html! {
        section.panel #cronjobs {
            h2 data-part="count" { "All CronJobs " small role="status" { (shown(rows)) } }
            (form(query, &heading.namespaces))
            (filters(query, clock))
            div.scroll data-part="rows" tabindex="0" role="region" aria-label="All CronJobs" {
                @if rows.rows.is_empty() {
                    p.nothing { (nothing(rows, query, heading.is_listed)) }
                } @else {
                    (table(&rows.rows, clock))
                }
            }
            (pages(rows, query))
        }
    }
}

fn shown(rows: &Rows) -> String {
    let (n_matching, n_all) = (words::size(rows.n_matching), words::size(rows.n_all));
    if rows.n_matching == rows.n_all {
        n_all
    } else {
        format!("{n_matching} of {n_all} match")
    }
}

fn nothing(rows: &Rows, query: &PageQuery, is_listed: bool) -> Markup {
    html! {
        @if !is_listed {
            "The CronJobs are being listed."
        } @else if rows.n_all == 0 {
            "There are no CronJobs in the namespaces that this account may list."
        } @else if query.page_index > 0 && rows.n_matching > 0 {
            "This page is behind the last one. " a href=(query.with_page(0).list_url()) { "To the first page" }
        } @else if query.has_misunderstood_time() {
            "The time is not understood. Write it as “starts between 02:00 and 03:00”, with hours from 00:00 to 24:00. "
            a href="/#cronjobs" { "Show all" }
        } @else {
            "No CronJob matches. " a href="/#cronjobs" { "Show all" }
        }
    }
}

/// The search form. Without the script it is sent by Enter.
fn form(query: &PageQuery, namespaces: &[Box<str>]) -> Markup {
    let span = query
        .span
        .map(|(from, to)| [("from", instant_text(from)), ("to", instant_text(to))]);
    html! {
        form.search data-part="search" action="/#cronjobs" method="get" role="search" {
            label.text {
                span.hidden { "Search CronJobs" }
                input #q type="search" name="q" value=(query.text) maxlength="200" autocomplete="off" spellcheck="false"
                    placeholder="search name, label key=value, or “starts between 02:00 and 03:00”";
            }
            label {
                span.hidden { "Namespace" }
                input type="text" name="namespace" value=(query.namespace.as_deref().unwrap_or_default())
                    list="namespaces" placeholder="namespace" autocomplete="off" spellcheck="false";
            }
            datalist #namespaces {
                @for namespace in namespaces.iter().take(SUGGESTED_MAX) { option value=(namespace) {} }
            }
            @if let Some(state) = query.state {
                input type="hidden" name="state" value=(state.as_str());
            }
            @for (name, value) in span.into_iter().flatten() {
                input type="hidden" name=(name) value=(value);
            }
            button type="submit" { "Search" }
        }
    }
}

/// The filters by state, and those that are set.
fn filters(query: &PageQuery, clock: &Clock) -> Markup {
    let chip = |query: PageQuery, text: &str| {
        html! { a.chip.set href=(query.list_url()) title="Remove this filter" { (text) " ×" } }
    };
    html! {
        div.filters data-part="filters" {
            span.hidden { "States: " }
            @for state in StateFilter::ALL {
                @let is_set = query.state == Some(state);
                a.chip.set[is_set] href=(query.with_state((!is_set).then_some(state)).list_url())
                    aria-current=[is_set.then_some("true")] { (state.as_str()) @if is_set { " ×" } }
            }
            @if let Some(namespace) = &query.namespace {
                (chip(query.with_namespace(None), &format!("namespace {namespace}")))
            }
            @if let Some((from, to)) = query.span {
                @let text = format!("due {} to {}", clock.short(from, &clock.home), clock.short(to, &clock.home));
                (chip(query.with_span(None), &text))
            }
            @if query.is_filtered() {
                a.clear href="/#cronjobs" { "show all" }
            }
        }
    }
}

fn table(rows: &[Row], clock: &Clock) -> Markup {
    html! {
        table.list {
            thead {
                tr {
                    th scope="col" { "CronJob" }
                    th scope="col" { "Schedule" }
                    th scope="col" { "Last ten" }
                    th scope="col" { "Duration p50 · p95" }
                    th scope="col" { "Next run" }
                }
            }
            tbody {
                @for row in rows { (table_row(row, clock)) }
            }
        }
    }
}

fn table_row(row: &Row, clock: &Clock) -> Markup {
    html! {
        tr {
            th scope="row" { (cron_job_link(&row.cron_job)) }
            td {
                span title=(row.schedule) { (row.schedule_text) }
                small { (conditions(row)) }
            }
            td { (squares(&row.marks)) }
            td { (run_times(row)) }
            td { (next(row, clock)) }
        }
    }
}

/// The zone, the policy and the deadline, as far as they are not the default.
pub(super) fn conditions(row: &Row) -> String {
    let mut conditions = vec![row.zone.name().to_owned()];
    if row.concurrency_policy != ConcurrencyPolicy::Allow {
        conditions.push(row.concurrency_policy.as_str().to_owned());
    }
    if let Some(seconds) = row.starting_deadline_seconds {
        conditions.push(format!(
            "deadline {}",
            words::duration(jiff::SignedDuration::from_secs(seconds))
        ));
    }
    conditions.join(" · ")
}

/// The last slots as squares. Success is the plain form, so that most rows stay small.
fn squares(marks: &[Mark]) -> Markup {
    let text = words::marks(marks);
    html! {
        @if marks.is_empty() {
            span.dim { "no slot yet" }
        } @else {
            span.squares role="img" title=(text) {
                @for mark in marks {
                    @match mark {
                        Mark::Succeeded => i {},
                        Mark::NotObserved | Mark::Skipped | Mark::Running | Mark::Due | Mark::Late | Mark::Failed
                        | Mark::Lost => i.(mark.as_str()) {},
                    }
                }
            }
        }
    }
}

fn run_times(row: &Row) -> Markup {
    html! {
        @match (row.run_time_p50, row.run_time_p95) {
            (Some(p50), Some(p95)) => { (words::lateness(p50)) " · " (words::lateness(p95)) },
            (Some(only), None) | (None, Some(only)) => (words::lateness(only)),
            (None, None) => span.dim { "–" },
        }
    }
}

/// The next slot, or why there is none.
pub(super) fn next(row: &Row, clock: &Clock) -> Markup {
    html! {
        @match &row.next {
            Next::At(at) => { (clock.distance(*at)) small { (clock.time(*at, &row.zone)) } },
            Next::HeldBack(at) => { "held back" small { (clock.distance(*at)) } },
            Next::Suspended => span.dim { "suspended" },
            Next::Frozen(until) => { span.dim { "frozen" } small { "until " (clock.dated(*until, &row.zone)) } },
            Next::Deleting => span.dim { "being deleted" },
            Next::Never => span.dim { "never" },
        }
    }
}

fn pages(rows: &Rows, query: &PageQuery) -> Markup {
    let n_pages = rows.n_matching.div_ceil(ROWS_PER_PAGE);
    let first = query.page_index * ROWS_PER_PAGE + 1;
    let last = first + rows.rows.len().saturating_sub(1);
    html! {
        nav.pages data-part="pages" aria-label="Pages of the list" {
            @if n_pages > 1 && !rows.rows.is_empty() {
                @if query.page_index > 0 {
                    a rel="prev" href=(query.with_page(query.page_index - 1).list_url()) { "‹ previous" }
                }
                span.dim { (words::size(first)) " to " (words::size(last)) " of " (words::size(rows.n_matching)) }
                @if query.page_index + 1 < n_pages {
                    a rel="next" href=(query.with_page(query.page_index + 1).list_url()) { "next ›" }
                }
            }
        }
    }
}
