//! One CronJob: a page of its own, which the script opens beside the list.

mod commands;
mod lateness;
mod overlaps;
mod slots;

use jiff::Timestamp;
use maud::{Markup, html};

use super::{
    Heading, PageSource,
    attention::pill,
    clock::Clock,
    frame::Frame,
    list::{conditions, next},
    words,
};
use crate::{
    observe::view::{ClockChange, CronJobName, Detail, Row},
    schedule::thaw::Thaw,
};

/// The whole page. `explained` is the text of `explain` or why there is none; `None` leaves the part out.
pub(super) fn page(
    source: &dyn PageSource,
    version: u64,
    detail: &Detail,
    explained: Option<&Result<String, String>>,
) -> Markup {
    let heading = source.heading();
    let clock = Clock::new(source.now(), heading.zone.clone());
    let title = format!("{}/{}", detail.row.cron_job.namespace, detail.row.cron_job.name);
    let content = html! {
        p.back { a href="/#cronjobs" { "‹ All CronJobs" } }
        article.detail #detail { (parts(detail, explained, &heading, &clock)) }
    };
    let frame = Frame {
        title: &title,
        heading: &heading,
        clock: &clock,
        version,
        summary: html! {},
    };
    frame.page(&content)
}

fn parts(detail: &Detail, explained: Option<&Result<String, String>>, heading: &Heading, clock: &Clock) -> Markup {
    let row = &detail.row;
    html! {
        section.panel.top data-part="top" { (top(detail, clock)) }
        div.two {
            section.panel data-part="lateness" {
                h2 { "Lateness " small { (last_slots(detail.slots.len())) } }
                (lateness::chart(&detail.slots, &row.zone, clock))
                h2 { "Overlaps " small { "when its Jobs ran" } }
                (overlaps::chart(&detail.slots, &detail.other_runs, &row.zone, clock))
            }
            section.panel data-part="next" {
                h2 { "Next runs " small { (row.zone.name()) } }
                (next_runs(detail, clock))
            }
        }
        div.two {
            section.panel #explain data-part=[explained.map(|_| "explain")] {
                h2 { "Explain " small { "what cronwheel would do now, and why" } }
                (explain_text(explained))
            }
            section.panel data-part="commands" {
                h2 { "Commands" }
                (commands::list(detail, heading.context.as_deref()))
                (labels(detail))
            }
        }
        (differences(&detail.differences))
        section.panel data-part="slots" {
            h2 { "Slots " small { "newest first" } }
            (slots::table(detail, clock))
        }
        (slots::other_runs(detail, clock))
    }
}

fn top(detail: &Detail, clock: &Clock) -> Markup {
    let row = &detail.row;
    html! {
        h2.title { (full_name(&row.cron_job)) }
        p.facts {
            span title=(row.schedule) { (row.schedule_text) } " · " code { (row.schedule) } " · " (conditions(row))
        }
        dl.figures {
            div { dt { "Next run" } dd { (next(row, clock)) } }
            div { dt { "Duration p50" } dd { (duration(row.run_time_p50)) } }
            div { dt { "Duration p95" } dd { (duration(row.run_time_p95)) } }
            div { dt { "Policy" } dd { (row.concurrency_policy.as_str()) } }
        }
        @if !detail.options.is_empty() || !detail.option_warnings.is_empty() {
            ul.options {
                @for sentence in &detail.options { li { (sentence) } }
                @for warning in &detail.option_warnings { li.warning { "Warning: " (warning) } }
            }
        }
        @for one in &detail.attention {
            p.trouble {
                (pill(one.trouble)) " " (one.reason)
                @if let Some(since) = one.since { span.dim { " · " (clock.age(since)) } }
            }
        }
    }
}

fn last_slots(n_slots: usize) -> String {
    match n_slots {
        0 | 1 => "of the last slot".to_owned(),
        n_slots => format!("of the last {n_slots} slots"),
    }
}

fn full_name(cron_job: &CronJobName) -> Markup {
    html! { (cron_job.namespace) "/" wbr; (cron_job.name) }
}

fn duration(duration: Option<jiff::SignedDuration>) -> String {
    duration.map_or_else(|| "–".to_owned(), words::lateness)
}

/// The next slots and the clock changes between them, in their order.
fn next_runs(detail: &Detail, clock: &Clock) -> Markup {
    let row = &detail.row;
    let mut last = clock.now;
    let mut entries: Vec<Markup> = detail
        .thaw
        .iter()
        .filter_map(|thaw| end_of_freeze(thaw, row, clock))
        .collect();
    for slot in &detail.next_slots {
        let at = &slot.at;
        let between = detail
            .clock_changes
            .iter()
            .filter(|change| last < change.at && change.at <= *at);
        entries.extend(between.map(|change| clock_change(change, row, clock)));
        entries.push(html! {
            li {
                (dated(*at, row, clock))
                @if slot.start != slot.at { span { "starts " (clock.time(slot.start, &row.zone)) } }
                span.dim { (clock.distance(slot.start)) }
            }
        });
        last = *at;
    }
    html! {
        @if entries.is_empty() {
            p.nothing { "None is due." }
        } @else {
            ol.next { @for entry in &entries { (entry) } }
        }
    }
}

/// The end of a freeze, if it holds slots back.
fn end_of_freeze(thaw: &Thaw, row: &Row, clock: &Clock) -> Option<Markup> {
    let sentence = thaw.sentence()?;
    Some(html! { li.freeze { (dated(thaw.until, row, clock)) span { "frozen until then: " (sentence) } } })
}

fn clock_change(change: &ClockChange, row: &Row, clock: &Clock) -> Markup {
    html! { li.clock-change { (dated(change.at, row, clock)) span { (words::clock_change(change)) } } }
}

/// An instant with its day, also if that is today.
fn dated(at: Timestamp, row: &Row, clock: &Clock) -> Markup {
    let text = clock.dated(at, &row.zone);
    html! {
        time.zoned datetime=(at.strftime("%Y-%m-%dT%H:%M:%SZ")) title=(clock.full(at, &row.zone)) { (text) }
    }
}

fn explain_text(explained: Option<&Result<String, String>>) -> Markup {
    html! {
        @match explained {
            Some(Ok(text)) => pre tabindex="0" role="region" aria-label="Explanation" {
                @for line in text.lines() { span { (line) "\n" } }
            },
            Some(Err(reason)) => p.nothing { "There is no explanation: " (reason) },
            None => {},
        }
    }
}

fn labels(detail: &Detail) -> Markup {
    html! {
        @if !detail.labels.is_empty() {
            h2 { "Labels" }
            ul.labels {
                @for (key, value) in &detail.labels {
                    @let label = format!("{key}={value}");
                    @let url = super::query::PageQuery { text: label.clone(), ..Default::default() }.list_url();
                    li { a href=(url) { (label) } }
                }
            }
        }
    }
}

fn differences(differences: &[String]) -> Markup {
    html! {
        @if !differences.is_empty() {
            section.panel data-part="differences" {
                h2 { "With cronwheel " small { "what would have been different" } }
                ul { @for difference in differences { li { (difference) } } }
            }
        }
    }
}
