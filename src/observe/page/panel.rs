//! Figures that a command adds to the page, such as the injected faults of `cronwheel dev`.

use maud::{Markup, html};

use super::{attention::cron_job_link, words};
use crate::observe::view::CronJobName;

/// A panel below the tiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panel {
    /// The title.
    pub title: &'static str,
    /// What the figures count, without a full stop.
    pub note: String,
    /// The figures, a line for each group.
    pub groups: Vec<FigureGroup>,
    /// Single cases behind the figures.
    pub findings: Vec<Finding>,
}

/// A line of figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FigureGroup {
    /// What is counted.
    pub name: &'static str,
    /// The figures.
    pub figures: Vec<Figure>,
}

/// A number with its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// The number.
    pub count: u64,
    /// What it counts.
    pub label: &'static str,
    /// Whether any number but zero is a fault of the controller.
    pub is_bad: bool,
}

/// A case about one CronJob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The CronJob.
    pub cron_job: CronJobName,
    /// What happened, without a full stop.
    pub text: String,
}

pub(super) fn section(panel: &Panel) -> Markup {
    html! {
        section.panel data-part="panel" {
            h2 { (panel.title) " " small { (panel.note) } }
            @for group in &panel.groups {
                ul.counts aria-label=(group.name) {
                    li { (group.name) }
                    @for figure in &group.figures {
                        li class=[(figure.is_bad && figure.count > 0).then_some("bad")] { b { (words::count(figure.count)) } " " (figure.label) }
                    }
                }
            }
            @if !panel.findings.is_empty() {
                ul { @for finding in &panel.findings { li { (cron_job_link(&finding.cron_job)) ": " (finding.text) } } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_listed_in_groups_and_faults_of_the_controller_stand_out() {
        let figure = |count, label, is_bad| Figure { count, label, is_bad };
        let panel = Panel {
            title: "This run",
            note: "since 10:00".to_owned(),
            groups: vec![FigureGroup {
                name: "Runs",
                figures: vec![
                    figure(1_440, "started", false),
                    figure(0, "missed", true),
                    figure(2, "doubled", true),
                ],
            }],
            findings: vec![Finding {
                cron_job: CronJobName {
                    namespace: "shop".into(),
                    name: "<b>".into(),
                },
                text: "doubled".to_owned(),
            }],
        };
        let html = section(&panel).into_string();
        for part in [
            "<h2>This run <small>since 10:00</small></h2>",
            "<ul class=\"counts\" aria-label=\"Runs\"><li>Runs</li>",
            "<li><b>1,440</b> started</li>",
            "<li><b>0</b> missed</li>",
            "<li class=\"bad\"><b>2</b> doubled</li>",
            "shop/<wbr>&lt;b&gt;</a>: doubled</li>",
        ] {
            assert!(html.contains(part), "{part:?} is not in {html}");
        }
    }
}
