//! Starts and ends disruptions.

use std::{collections::BTreeMap, time::Duration};

use apisim::{Fault, Resource, Rule, RuleId, Verb};
use jiff::{SignedDuration, Timestamp};

use super::{CONTROLLER, Cluster, WRITES};
use crate::sim::scenario::{Disruption, DisruptionKind, Scenario};

/// The lag of the second API server during `DisruptionKind::Behind`.
const BEHIND: Duration = Duration::from_secs(12);

impl Cluster {
    /// Plays the disruptions of a scenario, then waits forever.
    pub(in crate::sim) async fn play_disruptions(&self, scenario: &Scenario) {
        let mut agenda: BTreeMap<(Timestamp, usize), &Disruption> = BTreeMap::new();
        for (number, disruption) in scenario.disruptions.iter().enumerate() {
            agenda.insert((disruption.from, number), disruption);
        }
        let mut begun: BTreeMap<usize, Vec<RuleId>> = BTreeMap::new();
        while let Some(((at, number), disruption)) = agenda.pop_first() {
            self.stop_at(at).await;
            match begun.remove(&number) {
                None => {
                    begun.insert(number, self.begin(disruption.kind));
                    agenda.insert((disruption.until, number), disruption);
                }
                Some(rules) => {
                    for rule in rules {
                        self.api.faults().remove(rule);
                    }
                    self.end(disruption.kind);
                }
            }
        }
        std::future::pending::<()>().await;
    }

    fn begin(&self, kind: DisruptionKind) -> Vec<RuleId> {
        if kind == DisruptionKind::Behind {
            self.api.set_lag(1, BEHIND);
        } else if let DisruptionKind::ClockStep { millis } = kind {
            self.controller_wall.step(SignedDuration::from_millis(millis));
        }
        let rules = rules(kind).into_iter().map(|rule| Rule {
            client: Some(CONTROLLER.to_owned()),
            ..rule
        });
        rules.map(|rule| self.api.faults().add(rule)).collect()
    }

    fn end(&self, kind: DisruptionKind) {
        if kind == DisruptionKind::Behind {
            self.api.set_lag(1, Duration::ZERO);
        } else if kind == DisruptionKind::Outage {
            // A restarted server knows no earlier changes.
            self.api.compact();
        } else if let DisruptionKind::ClockStep { millis } = kind {
            self.controller_wall.step(SignedDuration::from_millis(-millis));
        }
    }
}

fn rules(kind: DisruptionKind) -> Vec<Rule> {
    let rule = |fault, per_million, verbs: &[Verb]| Rule {
        per_million,
        verbs: verbs.to_vec(),
        ..Rule::new(fault)
    };
    match kind {
        DisruptionKind::Outage => vec![rule(Fault::Outage, 1_000_000, &[])],
        DisruptionKind::Slow => {
            let delay = Fault::Delay {
                shortest: Duration::from_millis(300),
                longest: Duration::from_secs(4),
            };
            vec![rule(delay, 1_000_000, &[])]
        }
        DisruptionKind::Throttled { retry_after_seconds } => {
            let verbs = [&[Verb::Document, Verb::Get], WRITES.as_slice()].concat();
            vec![rule(Fault::Throttle { retry_after_seconds }, 950_000, &verbs)]
        }
        DisruptionKind::InternalErrors => vec![rule(Fault::InternalError, 600_000, &[])],
        DisruptionKind::Unavailable => vec![rule(Fault::Unavailable, 600_000, &[])],
        DisruptionKind::Denied => {
            let denied = Rule {
                resource: Some(Resource::Job),
                ..rule(Fault::Forbid("exceeded quota: jobs".to_owned()), 900_000, &WRITES)
            };
            vec![denied]
        }
        DisruptionKind::Conflicts => vec![rule(Fault::Conflict, 700_000, &[Verb::Update])],
        DisruptionKind::Expired => vec![
            rule(Fault::Expired, 500_000, &[Verb::List, Verb::Watch]),
            rule(Fault::CloseWatch, 500_000, &[]),
        ],
        DisruptionKind::WatchesEnd => vec![rule(Fault::CloseWatch, 500_000, &[])],
        DisruptionKind::WatchesStall => vec![rule(Fault::StallWatch, 1_000_000, &[])],
        DisruptionKind::WatchesSlow => {
            let pause = Duration::from_millis(100);
            vec![rule(Fault::SlowWatch { pause }, 1_000_000, &[])]
        }
        DisruptionKind::Behind | DisruptionKind::ClockStep { .. } => Vec::new(),
    }
}
