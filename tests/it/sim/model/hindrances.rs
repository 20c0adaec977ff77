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
    /// When watches may be behind: during the hindrances, and while each watch ends after one event.
    late_watches: Vec<(Timestamp, Timestamp)>,
}

impl Hindrances {
    pub(super) fn new(scenario: &Scenario, world: &World) -> Hindrances {
        let mut spans: Vec<(Timestamp, Timestamp)> = Vec::new();
        let pairs = world.lives.windows(2).zip(&scenario.crashes);
        spans.extend(pairs.map(|(lives, crash): (&[Life], &Crash)| (crash.at, lives[1].from)));
        for trouble in &scenario.troubles {
            if trouble.holds_up() {
                spans.push((trouble.from, trouble.until + trouble.recovery()));
            }
            if trouble.stops_beginners() {
                let begun = world.lives.iter().map(|life| life.from);
                let begun_wrong = begun.filter(|from| (trouble.from..trouble.until).contains(from));
                spans.extend(begun_wrong.map(|from| (from, trouble.until + NEWS)));
            }
        }
        let ending = scenario.troubles.iter().filter(|trouble| trouble.ends_watches());
        let ending = ending.map(|trouble| (trouble.from, trouble.until));
        let late_watches = spans.iter().copied().chain(ending).collect();
        Hindrances {
            spans: merged(spans),
            late_watches: merged(late_watches),
        }
    }

    /// Those that touch a stretch of time.
    pub(super) fn within(&self, from: Timestamp, until: Timestamp) -> &[(Timestamp, Timestamp)] {
        touching(&self.spans, from, until)
    }

    /// The instant of which a controller at `at` knows what was so, and since which it may not know what came.
    pub(super) fn known_at(&self, at: Timestamp) -> Timestamp {
        let since = at - NEWS;
        touching(&self.late_watches, since, at)
            .first()
            .map_or(since, |span| since.min(span.0 - NEWS))
    }

    /// When what comes at `at` is known at the latest.
    pub(super) fn known_by(&self, at: Timestamp) -> Timestamp {
        let by = at + NEWS;
        touching(&self.late_watches, at, by)
            .last()
            .map_or(by, |span| by.max(span.1 + NEWS))
    }
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
