//! The strip: runs of the past and starts of the future, by namespace and time.
//!
//! The cells of a row that look alike are one path. Its lines are as thick as the row, so that a cell costs a few bytes:
//! a fleet with forty namespaces has 7,680 cells.

mod cells;
mod ticks;

use jiff::{SignedDuration, Timestamp};
use maud::{Markup, html};

use self::ticks::Tick;
use super::{clock::Clock, query::PageQuery, words};
use crate::{
    observe::view::{ClockChange, Peak, Strip, StripRow},
    schedule::after,
};

/// Height of the labels above the rows, in pixels.
const TOP: usize = 22;
/// Height of the label below the rows.
const BOTTOM: usize = 20;
/// With more rows than this, rows are lower.
const HIGH_ROWS_MAX: usize = 12;
/// The width of a clock change in the strip.
const CLOCK_CHANGE: SignedDuration = SignedDuration::from_hours(1);

/// Positions in the strip.
pub(super) struct Scale<'a> {
    strip: &'a Strip,
    /// Distance from row to row, and height of a row, in pixels.
    pitch: usize,
    height: usize,
}

impl<'a> Scale<'a> {
    fn new(strip: &'a Strip) -> Scale<'a> {
        let is_high = strip.rows.len() <= HIGH_ROWS_MAX;
        let (pitch, height) = if is_high { (26, 22) } else { (17, 14) };
        Scale { strip, pitch, height }
    }

    fn rows_height(&self) -> usize {
        self.strip.rows.len() * self.pitch
    }

    /// The horizontal place of an instant, in percent, within the strip.
    #[expect(clippy::cast_precision_loss, reason = "a place on a screen")]
    fn percent(&self, at: Timestamp) -> f64 {
        let length = self.strip.to.duration_since(self.strip.from).as_secs().max(1);
        let offset = at.duration_since(self.strip.from).as_secs().clamp(0, length);
        offset as f64 * 100.0 / length as f64
    }

    fn contains(&self, at: Timestamp) -> bool {
        (self.strip.from..self.strip.to).contains(&at)
    }
}

/// The part of the page.
pub(super) fn section(strip: &Strip, query: &PageQuery, clock: &Clock) -> Markup {
    let scale = Scale::new(strip);
    html! {
        section.panel.strip #strip data-part="strip" {
            div.head {
                h2 { (title(strip, query, clock)) }
                (zoom_links(strip, query))
            }
            @if strip.rows.is_empty() {
                p.nothing { "No CronJob has a slot in this time." }
            } @else {
                div.frame.low[strip.rows.len() > HIGH_ROWS_MAX] {
                    ul.names aria-label="Namespaces" {
                        @for row in &strip.rows { (name(row, strip, query)) }
                    }
                    div.scroll tabindex="0" role="region" aria-label="Runs by namespace and time" {
                        (plot(&scale, query, clock))
                    }
                }
            }
            (foot(strip, query, clock))
        }
    }
}

fn title(strip: &Strip, query: &PageQuery, clock: &Clock) -> Markup {
    let cell = words::counted(strip.cell_minutes.into(), "minute");
    html! {
        @if query.span.is_none() {
            "48 hours " small { "24 h back by worst outcome, 24 h ahead by number of starts" }
        } @else {
            (clock.home_time(strip.from)) " to " (clock.home_time(strip.to)) " "
            (clock.abbreviation(strip.from, &clock.home)) " "
            small { "past by worst outcome, future by number of starts; a cell is " (cell) }
        }
    }
}

/// The links that move a zoomed strip.
fn zoom_links(strip: &Strip, query: &PageQuery) -> Markup {
    let length = strip.to.duration_since(strip.from);
    let moved = |by: SignedDuration| {
        let [from, to] = [strip.from, strip.to].map(|at| after(at, by));
        query.with_span(Some((from, to))).url() + "#strip"
    };
    html! {
        @if query.span.is_some() {
            nav.zoom aria-label="Time shown" {
                a href=(moved(-length)) { "‹ earlier" }
                a href=(moved(length)) { "later ›" }
                a.reset href=(query.with_span(None).url() + "#strip") { "48 hours" }
            }
        }
    }
}

/// The name of a row, a link to the CronJobs of the namespace. Its title sums the row up.
fn name(row: &StripRow, strip: &Strip, query: &PageQuery) -> Markup {
    let sum = sum_text(row, strip);
    html! {
        @match row.namespace.as_deref() {
            Some(namespace) => {
                @let is_current = query.namespace.as_deref() == Some(namespace);
                @let other = query.with_namespace((!is_current).then_some(namespace));
                li { a href=(other.list_url()) title=(sum) aria-current=[is_current.then_some("true")] { (namespace) } }
            },
            None => li { span title=(sum) { "others" } },
        }
    }
}

/// What happened and will happen in a row.
fn sum_text(row: &StripRow, strip: &Strip) -> String {
    let (mut n_runs, mut n_late, mut n_failed, mut n_lost, mut n_starts) = (0_u64, 0_u64, 0_u64, 0_u64, 0_u64);
    for (index, cell) in row.cells.iter().enumerate() {
        if cells::is_future(strip, index) {
            n_starts += u64::from(cell.n_runs);
        } else {
            n_runs += u64::from(cell.n_runs);
            n_late += u64::from(cell.n_late);
            n_failed += u64::from(cell.n_failed);
            n_lost += u64::from(cell.n_lost);
        }
    }
    let outcomes = [(n_late, "late"), (n_failed, "failed"), (n_lost, "lost")];
    let outcomes = outcomes.into_iter().filter(|(number, _)| *number > 0);
    let outcomes = outcomes.map(|(number, word)| format!("{} {word}", words::count(number)));
    let past: Vec<String> = [words::counted(n_runs, "run")].into_iter().chain(outcomes).collect();
    format!("{}; {} ahead", past.join(", "), words::counted(n_starts, "start"))
}

fn plot(scale: &Scale<'_>, query: &PageQuery, clock: &Clock) -> Markup {
    let strip = scale.strip;
    let now = clock.now;
    html! {
        svg.plot width="100%" height=(TOP + scale.rows_height() + BOTTOM) role="group"
            aria-label="Heatmap of runs; links zoom in"
            data-from=(strip.from.as_second()) data-to=(strip.to.as_second())
            data-top=(TOP) data-pitch=(scale.pitch)
        {
            (cells::rows(scale, query.namespace.as_deref()))
            (clock_changes(scale))
            @for tick in ticks::ticks(strip, clock) { (tick_link(scale, &tick, query)) }
            @if scale.contains(now) {
                @let x = format!("{:.2}%", scale.percent(now));
                @let is_right = scale.percent(now) > 90.0;
                line.now x1=(x) x2=(x) y1=(TOP - 4) y2=(TOP + scale.rows_height() + 2) {}
                text.now x=(x) y=(TOP + scale.rows_height() + 15) dx=(if is_right { "-4" } else { "4" })
                    text-anchor=(if is_right { "end" } else { "start" }) { "now " (clock.time_of_day(now)) }
            }
        }
    }
}

/// The label of a time and the link that zooms to it. Links without a label are for the mouse alone.
fn tick_link(scale: &Scale<'_>, tick: &Tick, query: &PageQuery) -> Markup {
    let (x, end) = (scale.percent(tick.from), scale.percent(tick.to));
    let href = query.with_span(Some((tick.from, tick.to))).url();
    let content = html! {
        rect x={ (format!("{x:.2}")) "%" } width={ (format!("{:.2}", end - x)) "%" } height=(TOP) {}
        @if tick.has_label {
            text x={ (format!("{x:.2}")) "%" } y="14" { (tick.label) }
        }
    };
    html! {
        @match (tick.can_zoom, tick.has_label) {
            (true, true) => a href=(href) aria-label={ "zoom to " (tick.label) } { (content) },
            (true, false) => a href=(href) tabindex="-1" aria-hidden="true" { (content) },
            (false, _) => g { (content) },
        }
    }
}

/// Hours in which clocks change, over the cells.
fn clock_changes(scale: &Scale<'_>) -> Markup {
    let height = scale.rows_height();
    html! {
        @for same_time in scale.strip.clock_changes.chunk_by(|a, b| a.at == b.at) {
            @let at = same_time[0].at;
            @if scale.contains(at) {
                @let x = scale.percent(at);
                @let end = scale.percent(after(at, CLOCK_CHANGE));
                rect.clock-change x={ (format!("{x:.2}")) "%" } width={ (format!("{:.2}", (end - x).max(0.4))) "%" }
                    y=(TOP - 2) height=(height + 2) fill="url(#clock-hatch)"
                {
                    title { (clock_sentence(same_time)) }
                }
            }
        }
    }
}

fn clock_sentence(changes: &[ClockChange]) -> String {
    let texts: Vec<String> = changes.iter().take(3).map(words::clock_change).collect();
    let rest = match changes.len() - texts.len() {
        0 => String::new(),
        n_more => format!(", and of {n_more} more zones"),
    };
    texts.join(", ") + &rest
}

/// The peak, the clock changes and the meaning of the colours, in words.
fn foot(strip: &Strip, query: &PageQuery, clock: &Clock) -> Markup {
    let shown = strip.clock_changes.chunk_by(|a, b| a.at == b.at);
    let shown = shown.filter(|changes| (strip.from..strip.to).contains(&changes[0].at));
    html! {
        div.foot {
            @if let Some(peak) = &strip.peak { p { (peak_sentence(peak, query, clock)) } }
            @for changes in shown {
                p { (clock_sentence(changes)) " at " (clock.home_time(changes[0].at)) " " (clock.abbreviation(changes[0].at, &clock.home)) }
            }
            (legend())
        }
    }
}

fn peak_sentence(peak: &Peak, query: &PageQuery, clock: &Clock) -> Markup {
    let hour_start = Timestamp::from_second(peak.at.as_second().div_euclid(3_600) * 3_600).unwrap_or(peak.at);
    let hour_end = after(hour_start, SignedDuration::from_hours(1));
    let href = query.with_span(Some((hour_start, hour_end))).url() + "#strip";
    let starts = words::counted(peak.n_starts, "start");
    html! {
        a href=(href) { "peak " (clock.home_time(peak.at)) } ": " (starts) " in one minute"
        @if peak.n_starts_in_namespace < peak.n_starts {
            ", " (words::count(peak.n_starts_in_namespace)) " of them in " (peak.namespace)
        } @else {
            ", all in " (peak.namespace)
        }
    }
}

fn legend() -> Markup {
    html! {
        p.legend aria-hidden="true" {
            @for (class, word) in [("ok", "on time"), ("late", "late"), ("failed", "failed"), ("lost", "lost"), ("ahead", "ahead")] {
                span { i.(class) {} (word) }
            }
        }
    }
}
