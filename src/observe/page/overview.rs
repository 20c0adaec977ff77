//! The page with all CronJobs: its order, its summary and its tiles.

use maud::{Markup, html};

use super::{Heading, PageSource, attention, clock::Clock, frame::Frame, list, panel, query::PageQuery, strip, words};
use crate::observe::{
    slot::LATE_AFTER,
    view::{BusyTime, ControllerActivity, Overview, StateFilter, Tiles},
};

/// Clients that are named in the summary.
const NAMED_MAX: usize = 3;

/// The whole page.
pub(super) fn page(source: &dyn PageSource, query: &PageQuery) -> Markup {
    // Read first: what changes while the page is rendered comes with the next version.
    let version = source.changes().get();
    let heading = source.heading();
    let overview = source.overview();
    let clock = Clock::new(overview.now, heading.zone.clone());
    let (from, to) = query.strip_span(overview.now);
    let strip = source.strip(from, to);
    let rows = source.rows(&query.filter(&heading.zone, overview.now));
    let content = html! {
        (tiles(overview.tiles, query))
        @if let Some(panel) = source.panel() { (panel::section(&panel)) }
        (strip::section(&strip, query, &clock))
        div.two {
            (attention::section(&overview.attention, heading.is_listed, &clock))
            (attention::advice(&overview.advice, heading.is_listed))
        }
        (list::section(&rows, query, &heading, &clock))
    };
    let frame = Frame {
        title: "CronJobs",
        heading: &heading,
        clock: &clock,
        version,
        summary: summary(&heading, &overview, &clock),
    };
    frame.page(&content)
}

/// Who creates the Jobs, and since when runs are known.
fn summary(heading: &Heading, overview: &Overview, clock: &Clock) -> Markup {
    let named = overview.controllers.iter().take(NAMED_MAX);
    let n_more = overview.controllers.len().saturating_sub(NAMED_MAX);
    html! {
        @if overview.controllers.is_empty() {
            @if heading.is_listed { "no Job of the last 24 h is known" } @else { "who creates the Jobs is not known yet" }
        } @else {
            "run by "
            @for (index, controller) in named.enumerate() {
                @if index > 0 { ", " }
                (activity(controller, clock))
            }
            @if n_more > 0 { " and " (n_more) " more" }
        }
        @if let Some(since) = overview.known_since {
            " · history since " time datetime=(since.strftime("%Y-%m-%dT%H:%M:%SZ")) title=(clock.full(since, &clock.home)) {
                (clock.day(since))
            }
        }
    }
}

fn activity(controller: &ControllerActivity, clock: &Clock) -> Markup {
    let last = clock.full(controller.last, &clock.home);
    let title = format!(
        "{} in 24 h, the last on {last}",
        words::counted(controller.n_jobs, "Job")
    );
    html! {
        span title=(title) { (controller.creator.as_str()) }
        @if let Some(lateness) = controller.lateness_p50.filter(|lateness| *lateness > LATE_AFTER) {
            ", " span.late-text title="median of the last hour" { (words::duration(lateness)) " late" }
        }
        @if let Some(busy) = controller.busy_time { (limit(busy, clock)) }
    }
}

fn limit(busy: BusyTime, clock: &Clock) -> Markup {
    let title = "the longest time of the last hour in which each second had new Jobs, at a steady rate";
    html! {
        ", " span.late-text title=(title) { "at its limit" } " ("
        (words::counted(busy.jobs_per_second, "Job")) " a second for " (words::duration(busy.duration))
        " from " (clock.home_time(busy.from)) ")"
    }
}

/// The figures, each a link to what it counts.
fn tiles(tiles: Tiles, query: &PageQuery) -> Markup {
    let late = match tiles.n_late {
        0 => "late now".to_owned(),
        n_late => format!("late now, {} in 24 h", words::count(n_late)),
    };
    let size = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    let tile = |number: u64, label: &str, tone: &str, state: Option<StateFilter>| {
        let is_current = state.is_some() && query.state == state;
        html! {
            a.tile.(if number > 0 { tone } else { "plain" })
                href=(PageQuery::default().with_state(state).list_url())
                aria-current=[is_current.then_some("true")]
            {
                b { (words::count(number)) } " " span { (label) }
            }
        }
    };
    html! {
        nav.tiles data-part="tiles" aria-label="Figures" {
            (tile(size(tiles.n_cron_jobs), &cron_jobs_label(tiles), "plain", None))
            (tile(size(tiles.n_cron_jobs_running), &running_label(tiles), "plain", Some(StateFilter::Running)))
            (tile(size(tiles.n_late_now), &late, "warn", Some(StateFilter::Late)))
            (tile(tiles.n_failed, "failed in 24 h", "bad", Some(StateFilter::Failed)))
            (tile(tiles.n_lost, "lost in 24 h", "bad", Some(StateFilter::Lost)))
            (tile(tiles.n_due_next_hour, "due in the next hour", "plain", Some(StateFilter::Due)))
        }
    }
}

/// The tile counts the CronJobs that it lists; several Jobs of one may run.
fn running_label(tiles: Tiles) -> String {
    if tiles.n_running == tiles.n_cron_jobs_running {
        "running".to_owned()
    } else {
        format!("running, {} Jobs", words::size(tiles.n_running))
    }
}

fn cron_jobs_label(tiles: Tiles) -> String {
    let noun = if tiles.n_cron_jobs == 1 { "CronJob" } else { "CronJobs" };
    let states = [(tiles.n_suspended, "suspended"), (tiles.n_never, "never")];
    let states = states.into_iter().filter(|(number, _)| *number > 0);
    let states = states.map(|(number, word)| format!("{} {word}", words::size(number)));
    [noun.to_owned()]
        .into_iter()
        .chain(states)
        .collect::<Vec<_>>()
        .join(", ")
}
