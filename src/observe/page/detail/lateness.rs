//! The lateness of the last slots, a bar for each.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use maud::{Markup, html};

use super::super::{clock::Clock, words};
use crate::{
    observe::slot::{Mark, Slot, SlotOutcome},
    schedule::Zone,
};

/// Distance from bar to bar, width of a bar, and heights, in units of the drawing.
const PITCH: usize = 10;
const WIDTH: usize = 8;
const HEIGHT: u32 = 64;
const HEIGHT_MIN: u32 = 6;
/// The number of bars that fill the drawing.
const N_BARS: usize = 50;
/// A bar of this lateness is as high as the drawing, unless another is later.
const FULL_LATENESS: SignedDuration = SignedDuration::from_secs(30);

/// The bars, the oldest first, and a sentence.
pub(super) fn chart(slots: &[Slot], zone: &Zone, clock: &Clock) -> Markup {
    let latest = slots.iter().filter_map(Slot::lateness).max().unwrap_or_default();
    let full = latest.max(FULL_LATENESS);
    let width = slots.len().max(N_BARS) * PITCH;
    html! {
        @if let (Some(first), Some(last)) = (slots.first(), slots.last()) {
            svg.bars viewBox={ "0 0 " (width) " " (HEIGHT) } preserveAspectRatio="none" width="100%" height=(HEIGHT)
                role="img" aria-label=(sentence(slots, clock.now))
            {
                @for (index, slot) in slots.iter().enumerate() {
                    (bar(slot, index * PITCH, full, zone, clock))
                }
            }
            p.axis { span { (clock.time(first.at, zone)) } span { (clock.time(last.at, zone)) } }
            p { (sentence(slots, clock.now)) }
        } @else {
            p.nothing { "No slot was due yet." }
        }
    }
}

fn bar(slot: &Slot, x: usize, full: SignedDuration, zone: &Zone, clock: &Clock) -> Markup {
    let mark = slot.mark(clock.now);
    let height = match mark {
        Mark::Lost => HEIGHT,
        Mark::NotObserved | Mark::Skipped => HEIGHT_MIN * 2,
        Mark::Succeeded | Mark::Running | Mark::Due | Mark::Late | Mark::Failed => {
            let lateness = if slot.outcome == SlotOutcome::Open {
                clock.now.duration_since(slot.startable())
            } else {
                slot.lateness().unwrap_or_default()
            };
            height(lateness, full)
        }
    };
    html! {
        rect.(mark.as_str()) x=(x) y=(HEIGHT - height) width=(WIDTH) height=(height)
            fill=[(mark == Mark::Lost).then_some("url(#hatch)")]
        {
            title { (title(slot, mark, zone, clock)) }
        }
    }
}

/// The height of a bar. It grows with the logarithm: a second must be seen beside an hour.
fn height(lateness: SignedDuration, full: SignedDuration) -> u32 {
    let share = lateness.as_secs_f64().max(0.0).ln_1p() / full.as_secs_f64().ln_1p();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most the height of the drawing"
    )]
    let height = (f64::from(HEIGHT) * share.min(1.0)) as u32;
    height.max(HEIGHT_MIN)
}

fn title(slot: &Slot, mark: Mark, zone: &Zone, clock: &Clock) -> String {
    let mut parts = vec![words::outcome_word(slot, mark).to_owned()];
    parts.extend(
        slot.lateness()
            .map(|lateness| format!("lateness {}", words::lateness(lateness))),
    );
    parts.extend(
        slot.run_time()
            .map(|run_time| format!("ran {}", words::lateness(run_time))),
    );
    [&clock.short(slot.at, zone), ": ", &parts.join(", ")].concat()
}

/// The bars in words.
fn sentence(slots: &[Slot], now: Timestamp) -> String {
    let latest = slots.iter().filter_map(Slot::lateness).max();
    let latest = latest.map_or_else(
        || "none started".to_owned(),
        |latest| format!("the latest started {} after its slot", words::lateness(latest)),
    );
    let mut counts: BTreeMap<(Mark, &str), usize> = BTreeMap::new();
    for slot in slots {
        let mark = slot.mark(now);
        *counts.entry((mark, words::outcome_word(slot, mark))).or_default() += 1;
    }
    let counts = counts.iter().map(|((_, word), number)| format!("{number} {word}"));
    let counts: Vec<String> = counts.collect();
    format!("{}; {latest}.", counts.join(", "))
}
