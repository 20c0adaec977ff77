//! Renders a comparison as a self-contained HTML file with inline SVG charts.

mod chart;

use std::fmt::Write as _;

use self::chart::{Axis, Band, Chart, Line, Series};
use super::{
    column::Column,
    contestant::NAMES,
    result::{ComparisonResult, Turn},
    table::{environment_line, figure_rows, floor_lines, heading, no_verdict_line, threshold_line, warnings},
};

/// One colour per controller. Colour-blind readers can distinguish them too.
const COLOURS: [&str; 4] = ["#767676", "#d55e00", "#e69f00", "#0072b2"];

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:1000px;margin:2em auto;padding:0 1em;color:#222}\
h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}\
table{border-collapse:collapse;font-size:13px}td,th{padding:.25em .8em;border-bottom:1px solid #ddd;text-align:right}\
td:first-child,th:first-child{text-align:left}.scroll{overflow-x:auto}\
.met,.missed{margin:.15em 0}.met{color:#00704a}.missed,.warning{color:#b00020}svg{width:100%;height:auto;display:block;margin:.5em 0 1.5em}\
code{font-size:13px}svg text{font:12px system-ui,sans-serif;fill:#444}";

/// The whole page.
pub(super) fn page(result: &ComparisonResult) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>CronJob controllers compared</title><style>{STYLE}</style></head><body>\n\
         <h1>CronJob controllers compared</h1>\n<p>{}<br>{}</p>\n",
        escaped(&heading(result)),
        escaped(&environment_line(result))
    );
    if let Some(reason) = &result.incomplete {
        paragraph(&mut page, "warning", &format!("Incomplete: {reason}"));
    }
    add_thresholds(&mut page, result);
    if !result.has_verdict() {
        paragraph(&mut page, "", &no_verdict_line(result));
    }
    for warning in warnings(result) {
        paragraph(&mut page, "warning", &warning);
    }
    add_table(&mut page, result);
    add_charts(&mut page, result);
    add_controllers(&mut page, result);
    page.push_str("</body></html>\n");
    page
}

fn add_thresholds(page: &mut String, result: &ComparisonResult) {
    for verdict in result.slo.verdicts(result) {
        let class = if verdict.is_met() { "met" } else { "missed" };
        paragraph(page, class, &threshold_line(&verdict));
    }
}

fn add_table(page: &mut String, result: &ComparisonResult) {
    page.push_str("<h2>Medians and ranges over the rounds</h2>\n<div class=\"scroll\"><table>\n");
    for (position, row) in figure_rows(result).iter().enumerate() {
        let tag = if position == 0 { "th" } else { "td" };
        page.push_str("<tr>");
        for cell in row {
            push(page, format_args!("<{tag}>{}</{tag}>", escaped(cell)));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table></div>\n");
    if result.has_verdict() {
        paragraph(page, "", "~ the range overlaps with that of cronwheel");
    }
    for line in floor_lines(result) {
        paragraph(page, "", &line);
    }
}

fn add_charts(page: &mut String, result: &ComparisonResult) {
    for (title, chart) in [
        ("Creates over the minute", creates_chart(result)),
        ("Lateness, cumulative", lateness_chart(result)),
        ("Processor time over a turn", cpu_chart(result)),
        ("Memory over a turn", memory_chart(result)),
    ] {
        push(page, format_args!("<h2>{title}</h2>\n{}\n", chart.svg()));
    }
    paragraph(
        page,
        "",
        "Each line is one turn. A run that never started is late by the whole window. The bands are the phases of the \
         longest turn.",
    );
}

fn add_controllers(page: &mut String, result: &ComparisonResult) {
    page.push_str("<h2>Controllers</h2>\n<ul>\n");
    for controller in &result.controllers {
        push(
            page,
            format_args!(
                "<li>{}: {}, replicas: {}, <code>{}</code></li>\n",
                escaped(&controller.name),
                escaped(&controller.version),
                controller.replicas,
                escaped(&controller.flags.join(" "))
            ),
        );
    }
    push(
        page,
        format_args!(
            "</ul>\n<p>To run it again, from the root of the repository:</p>\n<p><code>{}</code></p>\n",
            escaped(&result.command.join(" "))
        ),
    );
}

/// One series per turn in the colour of its controller. Only the first series of each controller has a name.
fn series(result: &ComparisonResult, points: impl Fn(&Turn) -> Vec<(f64, f64)>) -> Vec<Series> {
    let mut all = Vec::new();
    for (position, controller) in result.controllers.iter().enumerate() {
        // The colour does not depend on which other controllers were measured.
        let known = NAMES.iter().position(|name| *name == controller.name);
        let colour = COLOURS[known.unwrap_or(position) % COLOURS.len()];
        for (number, turn) in result.turns_of(&controller.name).enumerate() {
            all.push(Series {
                name: (number == 0).then(|| controller.name.clone()),
                colour,
                points: points(turn),
            });
        }
    }
    all
}

fn creates_chart(result: &ComparisonResult) -> Chart {
    let points = |turn: &Turn| {
        // The last second has a width, too.
        let seconds = turn.creates_by_second.iter().chain(turn.creates_by_second.last());
        let points = seconds.zip(0_u32..);
        points.map(|(n, second)| (f64::from(second), f64::from(*n))).collect()
    };
    Chart {
        x: Axis::linear("seconds after the instant; 60 stands for 60 and more"),
        y: Axis::linear("Jobs created in a second, measured minutes summed"),
        series: series(result, points),
        lines: Vec::new(),
        bands: Vec::new(),
        is_stepped: true,
    }
}

fn lateness_chart(result: &ComparisonResult) -> Chart {
    let points = |turn: &Turn| {
        let curve = turn.lateness_curve.iter();
        // The API server shares the clock of this machine. A logarithmic axis has no 0.
        curve.map(|(share, ms)| (ms.max(0.1), share * 100.0)).collect()
    };
    let is_lateness = |column: Column| {
        matches!(
            column,
            Column::LatenessP50Ms | Column::LatenessP90Ms | Column::LatenessP99Ms | Column::LatenessP999Ms
        )
    };
    let thresholds = result.slo.thresholds.iter().filter(|one| is_lateness(one.column));
    let line = |one: &super::slo::Threshold| Line {
        name: one.name.clone(),
        x: one.at_most,
    };
    Chart {
        x: Axis::logarithmic("lateness, ms"),
        y: Axis::linear("share of runs, %"),
        series: series(result, points),
        lines: thresholds.map(line).collect(),
        bands: Vec::new(),
        is_stepped: false,
    }
}

fn cpu_chart(result: &ComparisonResult) -> Chart {
    let points = |turn: &Turn| {
        let pairs = turn.samples.windows(2);
        let rate = |pair: &[super::result::Sample]| {
            let seconds = (pair[1].second - pair[0].second).max(0.001);
            (pair[1].second, (pair[1].cpu_ms - pair[0].cpu_ms) / seconds)
        };
        pairs.map(rate).collect()
    };
    over_time(result, "processor time, ms per second", points)
}

fn memory_chart(result: &ComparisonResult) -> Chart {
    let points = |turn: &Turn| turn.samples.iter().map(|one| (one.second, one.memory_mib)).collect();
    over_time(result, "resident memory, MiB", points)
}

fn over_time(result: &ComparisonResult, title: &'static str, points: impl Fn(&Turn) -> Vec<(f64, f64)>) -> Chart {
    let end = |turn: &Turn| turn.phases.last().map_or(0.0, |phase| phase.end_second);
    let longest = result.turns.iter().max_by(|one, other| end(one).total_cmp(&end(other)));
    let phases = longest.map(|turn| turn.phases.as_slice()).unwrap_or_default();
    let band = |phase: &super::result::Phase| Band {
        name: phase.name.clone(),
        begin: phase.begin_second,
        end: phase.end_second,
    };
    Chart {
        x: Axis::linear("seconds after the first instant"),
        y: Axis::linear(title),
        series: series(result, points),
        lines: longest.into_iter().flat_map(marks).collect(),
        bands: phases.iter().map(band).collect(),
        is_stepped: false,
    }
}

/// The actions in a turn. Other turns had them at the same seconds.
fn marks(turn: &Turn) -> Vec<Line> {
    let line = |mark: &super::result::Mark| Line {
        name: mark.name.clone(),
        x: mark.second,
    };
    turn.marks.iter().map(line).collect()
}

fn paragraph(page: &mut String, class: &str, text: &str) {
    push(page, format_args!("<p class=\"{class}\">{}</p>\n", escaped(text)));
}

fn push(page: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = page.write_fmt(text);
}

/// Escapes text for HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
#[path = "html/tests.rs"]
mod tests;
