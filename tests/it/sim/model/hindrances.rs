//! When no controller could be relied upon: none was there, or something was in its way.

use jiff::Timestamp;

use super::NEWS;
use crate::sim::{
    scenario::{Crash, Scenario},
    world::{Life, World},
};

/// Stretches of time, in order and apart from each other.
pub(super) struct Hindrances {
    spans: Vec<(Timestamp, Timestamp)>,
    /// When watches may be behind: while no controller is there, and while something is in the way of its watches.
    late_watches: Vec<(Timestamp, Timestamp)>,
    /// When what was decided may wait to be sent, or watches may be behind.
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
                spans.extend(begun_wrong.map(|from| (from, trouble.until + NEWS)));
            }
        }
        let held_up = spans.iter().chain(&late_watches).copied().collect();
        Hindrances {
            spans: merged(spans),
            late_watches: merged(late_watches),
            held_up: merged(held_up),
        }
    }

    /// Those that touch a stretch of time.
    pub(super) fn within(&self, from: Timestamp, until: Timestamp) -> &[(Timestamp, Timestamp)] {
        touching(&self.spans, from, until)
    }

    /// The instant of which a controller at `at` knows what was so, and since which it may not know what came.
    pub(super) fn known_at(&self, at: Timestamp) -> Timestamp {
        begin_of_news(&self.late_watches, at)
    }

    /// The instant of whose knowledge a delete at `at` may have been decided: it may have waited to be sent.
    pub(super) fn decided_at(&self, at: Timestamp) -> Timestamp {
        begin_of_news(&self.held_up, at)
    }

    /// When what comes at `at` is known at the latest.
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

/// Spans that are closer to each other than news take become one.
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

/// Those of the merged spans that touch a stretch of time.
fn touching(spans: &[(Timestamp, Timestamp)], from: Timestamp, until: Timestamp) -> &[(Timestamp, Timestamp)] {
    let begin = spans.partition_point(|span| span.1 < from);
    let end = spans.partition_point(|span| span.0 <= until);
    &spans[begin..end.max(begin)]
}
