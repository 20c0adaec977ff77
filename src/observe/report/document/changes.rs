//! What would change with cronwheel, in words.

use super::{Block, paragraph, summary::counted};
use crate::observe::{
    report::{HeldEntry, Report, ShadowCounts, WithCronwheel},
    words::thousands,
};

pub(super) fn blocks(report: &Report) -> Vec<Block> {
    let WithCronwheel { lost, late, held } = &report.with_cronwheel;
    if lost.n_slots == 0 && late.n_slots == 0 && held.is_empty() {
        return vec![paragraph("Nothing: no run is known to be lost or late.")];
    }
    let mut points = Vec::new();
    points.extend(of_kind(lost, "lost"));
    points.extend(of_kind(late, "late"));
    points.extend(held.iter().map(of_rule));
    vec![
        paragraph(
            "For each slot, the decision of cronwheel's own code on the same facts. It starts a Job at its slot.",
        ),
        Block::List(points.into_iter().map(|point| (point, None)).collect()),
    ]
}

fn of_kind(counts: &ShadowCounts, kind: &str) -> Vec<String> {
    let ShadowCounts {
        n_slots,
        n_on_time,
        n_later,
        n_held: _,
        n_unknown,
    } = counts;
    let runs = counted(*n_slots, &format!("{kind} run"));
    let mut points = Vec::new();
    if *n_slots > 0 {
        points.push(format!(
            "Of {runs} cronwheel would have started {} on time.",
            thousands(*n_on_time)
        ));
    }
    if *n_later > 0 {
        points.push(format!(
            "{} would start late with cronwheel too: when the earlier Job ends.",
            counted(*n_later, &format!("{kind} run"))
        ));
    }
    if *n_unknown > 0 {
        points.push(format!(
            "For {} the facts of that time are not known.",
            counted(*n_unknown, &format!("{kind} run"))
        ));
    }
    points
}

fn of_rule(entry: &HeldEntry) -> String {
    let runs = match entry.outcome {
        "started" => counted(entry.n_slots, "run") + " on time",
        outcome => counted(entry.n_slots, &format!("{outcome} run")),
    };
    format!("{runs} would not start with cronwheel: {}.", entry.reason)
}
