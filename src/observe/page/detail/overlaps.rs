//! When the Jobs of a CronJob ran, and whether they overlapped.

use jiff::{SignedDuration, Timestamp};
use maud::{Markup, html};

use super::super::{clock::Clock, words};
use crate::{
    observe::{
        facts::{Run, RunResult},
        slot::{Slot, SlotOutcome},
    },
    schedule::Zone,
};

/// Runs that are drawn. More would be too thin to see.
const RUNS_MAX: usize = 20;
/// Lanes that are drawn. Further runs are in the last.
const LANES_MAX: usize = 8;
/// The width of the drawing, and the height of a lane.
const WIDTH: i64 = 1_000;
const LANE_HEIGHT: usize = 14;
const BAR_HEIGHT: usize = 10;
/// The least width of a bar.
const BAR_WIDTH_MIN: i64 = 3;

/// A run as a bar.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bar<'a> {
    start: Timestamp,
    end: Timestamp,
    job_name: &'a str,
    result: &'a RunResult,
    lane: usize,
}

/// The bars of the last runs, in as few lanes as are needed, and a sentence.
pub(super) fn chart(slots: &[Slot], other_runs: &[Run], zone: &Zone, clock: &Clock) -> Markup {
    let bars = bars(slots, other_runs, clock.now);
    let n_lanes = bars.iter().map(|bar| bar.lane + 1).max().unwrap_or_default();
    html! {
        @if let (Some(from), Some(to)) = (bars.iter().map(|bar| bar.start).min(), bars.iter().map(|bar| bar.end).max()) {
            @let height = n_lanes.min(LANES_MAX) * LANE_HEIGHT;
            svg.runs viewBox={ "0 0 " (WIDTH) " " (height) } preserveAspectRatio="none" width="100%" height=(height)
                role="img" aria-label=(sentence(n_lanes, bars.len()))
            {
                @for bar in &bars { (rect(bar, from, to, zone, clock)) }
            }
            p.axis { span { (clock.time(from, zone)) } span { (clock.time(to, zone)) } }
            p { (sentence(n_lanes, bars.len())) }
        } @else {
            p.nothing { "No Job is known." }
        }
    }
}

/// The last runs, the oldest first, each in the first lane that is free.
fn bars<'a>(slots: &'a [Slot], other_runs: &'a [Run], now: Timestamp) -> Vec<Bar<'a>> {
    let of_slots = slots.iter().filter_map(|slot| match &slot.outcome {
        SlotOutcome::Started {
            job_name,
            created,
            finished,
            result,
            ..
        } => Some((*created, *finished, job_name.as_ref(), result)),
        SlotOutcome::Open
        | SlotOutcome::Lost(_)
        | SlotOutcome::Skipped(_)
        | SlotOutcome::NotObserved
        | SlotOutcome::Undecided(_) => None,
    });
    let others = other_runs
        .iter()
        .map(|run| (run.created, run.finished, run.job_name.as_ref(), &run.result));
    let mut runs: Vec<_> = of_slots.chain(others).collect();
    runs.sort_by_key(|(created, _, job_name, _)| (*created, *job_name));
    let first = runs.len().saturating_sub(RUNS_MAX);
    let mut lane_ends: Vec<Timestamp> = Vec::new();
    let bars = runs[first..].iter().map(|(start, finished, job_name, result)| {
        let unseen_end = if **result == RunResult::Running { now } else { *start };
        let end = finished.unwrap_or(unseen_end).max(*start);
        let free = lane_ends.iter().position(|lane_end| lane_end <= start);
        let lane = free.unwrap_or(lane_ends.len());
        if free.is_some() {
            lane_ends[lane] = end;
        } else {
            lane_ends.push(end);
        }
        Bar {
            start: *start,
            end,
            job_name,
            result,
            lane,
        }
    });
    bars.collect()
}

fn rect(bar: &Bar<'_>, from: Timestamp, to: Timestamp, zone: &Zone, clock: &Clock) -> Markup {
    let length = to.duration_since(from).max(SignedDuration::from_secs(1)).as_secs();
    let place = |at: Timestamp| at.duration_since(from).as_secs() * (WIDTH - BAR_WIDTH_MIN) / length;
    let (x, end) = (place(bar.start), place(bar.end));
    let title = format!(
        "{}: {}, {} for {}",
        bar.job_name,
        clock.short(bar.start, zone),
        words::result_word(bar.result),
        words::lateness(bar.end.duration_since(bar.start)),
    );
    let class = match bar.result {
        RunResult::Running => "running",
        RunResult::Succeeded => "succeeded",
        RunResult::Failed(_) => "failed",
        RunResult::Deleted => "skipped",
        RunResult::Gone => "unknown",
    };
    html! {
        rect.(class) x=(x) width=((end - x).max(BAR_WIDTH_MIN)) y=(bar.lane.min(LANES_MAX - 1) * LANE_HEIGHT) height=(BAR_HEIGHT) {
            title { (title) }
        }
    }
}

fn sentence(n_lanes: usize, n_runs: usize) -> String {
    match n_lanes {
        0 | 1 if n_runs == 1 => "One run is known.".to_owned(),
        0 | 1 => format!("None of the last {n_runs} runs overlapped."),
        _ => format!("Of the last {n_runs} runs, up to {n_lanes} were under way at once."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::Uid;

    fn slot(at: i64, run_seconds: Option<i64>) -> Slot {
        let at = Timestamp::from_second(at).unwrap();
        let finished = run_seconds.map(|seconds| at.saturating_add(SignedDuration::from_secs(seconds)).unwrap());
        Slot {
            other_jobs: Vec::new(),
            at,
            held_until: None,
            outcome: SlotOutcome::Started {
                job_uid: Uid::new("u"),
                job_name: "j".into(),
                created: at,
                finished,
                result: finished.map_or(RunResult::Running, |_| RunResult::Succeeded),
                is_backfilled: false,
                replaced_by: None,
            },
            with_cronwheel: None,
        }
    }

    #[test]
    fn a_run_takes_the_first_free_lane() {
        let slots = [
            slot(0, Some(60)),
            slot(60, Some(90)),
            slot(120, Some(90)),
            slot(180, None),
        ];
        let now = Timestamp::from_second(200).unwrap();
        let lanes: Vec<usize> = bars(&slots, &[], now).iter().map(|bar| bar.lane).collect();
        assert_eq!(lanes, [0, 0, 1, 0]);
        assert_eq!(sentence(2, 4), "Of the last 4 runs, up to 2 were under way at once.");
        assert_eq!(sentence(1, 1), "One run is known.");
    }
}
