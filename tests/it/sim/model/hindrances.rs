//! The periods in which no controller was reliable, because none ran or an obstacle existed.

use jiff::Timestamp;

use super::NEWS;
use crate::sim::{
    scenario::{Crash, Scenario},
    world::{Life, World},
};

/// Periods, in order and disjoint.
pub(super) struct Hindrances {
    spans: Vec<(Timestamp, Timestamp)>,
    /// Periods in which watches may be behind: while no controller runs, and while a fault affects its watches.
    late_watches: Vec<(Timestamp, Timestamp)>,
    /// Periods in which decided requests may wait to be sent, or watches may be behind.
    held_up: Vec<(Timestamp, Timestamp)>,
}

impl Hindrances {
    pub(super) fn new(scenario: &Scenario, world: &World) -> Hindrances {
        let mut spans: Vec<(Timestamp, Timestamp)> = Vec::new();
        let pairs = world.lives.windows(2).zip(&scenario.crashes);
        spans.extend(pairs.map(|(lives, crash): (&[Life], &Crash)| (crash.at, lives[1].from)));
        let mut late_watches = spans.clone();
        for trouble in &scenario.troubles {
            let span = (trouble.from, trouble.until + trouble.recovery());
            if trouble.holds_up() {
                spans.push(span);
            }
            if trouble.delays_watches() {
                late_watches.push(span);
            }
            if trouble.stops_beginners() {
                let begun = world.lives.iter().map(|life| life.from);
                let begun_wrong = begun.filter(|from| (trouble.from..trouble.until).contains(from));
                let waiting = begun_wrong.map(|from| (from, trouble.until + NEWS));
                // A controller with a wrong clock handles no event until its clock is right.
                spans.extend(waiting.clone());
                late_watches.extend(waiting);
            }
        }
        let held_up = spans.iter().chain(&late_watches).copied().collect();
        Hindrances {
            spans: merged(spans),
            late_watches: merged(late_watches),
            held_up: merged(held_up),
        }
    }

    /// The periods that touch this one.
    pub(super) fn within(&self, from: Timestamp, until: Timestamp) -> &[(Timestamp, Timestamp)] {
        touching(&self.spans, from, until)
    }

    /// Since when a controller at `at` may not know the state.
    pub(super) fn known_at(&self, at: Timestamp) -> Timestamp {
        begin_of_news(&self.late_watches, at)
    }

    /// The time whose state a delete at `at` may be based on. The delete may have waited to be sent.
    pub(super) fn decided_at(&self, at: Timestamp) -> Timestamp {
        begin_of_news(&self.held_up, at)
    }

    /// When a change at `at` is known at the latest.
    pub(super) fn known_by(&self, at: Timestamp) -> Timestamp {
        let by = at + NEWS;
        touching(&self.late_watches, at, by)
            .last()
            .map_or(by, |span| by.max(span.1 + NEWS))
    }
}

fn begin_of_news(spans: &[(Timestamp, Timestamp)], at: Timestamp) -> Timestamp {
    let since = at - NEWS;
    touching(spans, since, at)
        .first()
        .map_or(since, |span| since.min(span.0 - NEWS))
}

/// Merges periods that are closer together than the time that news take.
fn merged(mut spans: Vec<(Timestamp, Timestamp)>) -> Vec<(Timestamp, Timestamp)> {
    spans.sort_unstable();
    let mut apart: Vec<(Timestamp, Timestamp)> = Vec::new();
    for span in spans {
        match apart.last_mut() {
            Some(last) if span.0 <= last.1 + NEWS => last.1 = last.1.max(span.1),
            Some(_) | None => apart.push(span),
        }
    }
    apart
}

/// The merged periods that touch this one.
fn touching(spans: &[(Timestamp, Timestamp)], from: Timestamp, until: Timestamp) -> &[(Timestamp, Timestamp)] {
    let begin = spans.partition_point(|span| span.1 < from);
    let end = spans.partition_point(|span| span.0 <= until);
    &spans[begin..end.max(begin)]
}
