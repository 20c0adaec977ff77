//! The periods in which the model expects no actions of a controller, because none ran or a disruption went on.

use jiff::Timestamp;

use super::OBSERVATION_DELAY_MAX;
use crate::sim::{
    scenario::{Crash, Scenario},
    world::{Life, World},
};

/// Periods, each list in order and disjoint.
pub(super) struct Obstructions {
    spans: Vec<(Timestamp, Timestamp)>,
    /// Periods in which watches may lag: no controller runs, or a disruption affects the watches.
    late_watches: Vec<(Timestamp, Timestamp)>,
    /// Periods in which decided requests may wait to be sent, or watches may lag.
    late_requests: Vec<(Timestamp, Timestamp)>,
}

impl Obstructions {
    pub(super) fn new(scenario: &Scenario, world: &World) -> Obstructions {
        let mut spans: Vec<(Timestamp, Timestamp)> = Vec::new();
        let pairs = world.lives.windows(2).zip(&scenario.crashes);
        spans.extend(pairs.map(|(lives, crash): (&[Life], &Crash)| (crash.at, lives[1].from)));
        let mut late_watches = spans.clone();
        for disruption in &scenario.disruptions {
            let span = (disruption.from, disruption.until + disruption.recovery());
            if disruption.delays_requests() {
                spans.push(span);
            }
            if disruption.delays_watches() {
                late_watches.push(span);
            }
            if disruption.stops_new_controllers() {
                let begun = world.lives.iter().map(|life| life.from);
                let begun_wrong = begun.filter(|from| (disruption.from..disruption.until).contains(from));
                let waiting = begun_wrong.map(|from| (from, disruption.until + OBSERVATION_DELAY_MAX));
                // A controller with a wrong clock handles no event until its clock is right.
                spans.extend(waiting.clone());
                late_watches.extend(waiting);
            }
        }
        let late_requests = spans.iter().chain(&late_watches).copied().collect();
        Obstructions {
            spans: merged(spans),
            late_watches: merged(late_watches),
            late_requests: merged(late_requests),
        }
    }

    /// The periods of obstruction that touch this period.
    pub(super) fn within(&self, from: Timestamp, until: Timestamp) -> &[(Timestamp, Timestamp)] {
        touching(&self.spans, from, until)
    }

    /// The earliest state that a controller may have at an instant.
    pub(super) fn known_at(&self, at: Timestamp) -> Timestamp {
        observed_since(&self.late_watches, at)
    }

    /// The earliest state on which a delete at an instant may be based. The delete may have waited to be sent.
    pub(super) fn decided_at(&self, at: Timestamp) -> Timestamp {
        observed_since(&self.late_requests, at)
    }

    /// The earliest time from which on no watch lags behind a change.
    pub(super) fn observable_at(&self, at: Timestamp) -> Timestamp {
        self.known_by(at) - OBSERVATION_DELAY_MAX
    }

    /// The latest time at which a controller observes a change.
    pub(super) fn known_by(&self, at: Timestamp) -> Timestamp {
        let by = at + OBSERVATION_DELAY_MAX;
        touching(&self.late_watches, at, by)
            .last()
            .map_or(by, |span| by.max(span.1 + OBSERVATION_DELAY_MAX))
    }
}

fn observed_since(spans: &[(Timestamp, Timestamp)], at: Timestamp) -> Timestamp {
    let since = at - OBSERVATION_DELAY_MAX;
    touching(spans, since, at)
        .first()
        .map_or(since, |span| since.min(span.0 - OBSERVATION_DELAY_MAX))
}

/// Merges periods that are closer together than the observation delay.
fn merged(mut spans: Vec<(Timestamp, Timestamp)>) -> Vec<(Timestamp, Timestamp)> {
    spans.sort_unstable();
    let mut apart: Vec<(Timestamp, Timestamp)> = Vec::new();
    for span in spans {
        match apart.last_mut() {
            Some(last) if span.0 <= last.1 + OBSERVATION_DELAY_MAX => last.1 = last.1.max(span.1),
            Some(_) | None => apart.push(span),
        }
    }
    apart
}

/// The merged periods that touch this period.
fn touching(spans: &[(Timestamp, Timestamp)], from: Timestamp, until: Timestamp) -> &[(Timestamp, Timestamp)] {
    let begin = spans.partition_point(|span| span.1 < from);
    let end = spans.partition_point(|span| span.0 <= until);
    &spans[begin..end.max(begin)]
}
