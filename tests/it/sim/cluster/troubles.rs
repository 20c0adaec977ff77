//! Starts and ends faults.

use std::{collections::BTreeMap, time::Duration};

use apisim::{Fault, Resource, Rule, RuleId, Verb};
use jiff::{SignedDuration, Timestamp};

use super::{CONTROLLER, Cluster, WRITES};
use crate::sim::scenario::{Scenario, Trouble, TroubleKind};

/// The lag of the second API server during such a fault.
const BEHIND: Duration = Duration::from_secs(12);

impl Cluster {
    /// Plays the faults of a scenario, then waits forever.
    pub(in crate::sim) async fn play_troubles(&self, scenario: &Scenario) {
        let mut agenda: BTreeMap<(Timestamp, usize), &Trouble> = BTreeMap::new();
        for (number, trouble) in scenario.troubles.iter().enumerate() {
            agenda.insert((trouble.from, number), trouble);
        }
        let mut begun: BTreeMap<usize, Vec<RuleId>> = BTreeMap::new();
        while let Some(((at, number), trouble)) = agenda.pop_first() {
            self.stop_at(at).await;
            match begun.remove(&number) {
                None => {
                    begun.insert(number, self.begin(trouble.kind));
                    agenda.insert((trouble.until, number), trouble);
                }
                Some(rules) => {
                    for rule in rules {
                        self.api.faults().remove(rule);
                    }
                    self.end(trouble.kind);
                }
            }
        }
        std::future::pending::<()>().await;
    }

    fn begin(&self, kind: TroubleKind) -> Vec<RuleId> {
        if kind == TroubleKind::Behind {
            self.api.set_lag(1, BEHIND);
        } else if let TroubleKind::ClockStep { millis } = kind {
            self.controller_wall.step(SignedDuration::from_millis(millis));
        }
        let rules = rules(kind).into_iter().map(|rule| Rule {
            client: Some(CONTROLLER.to_owned()),
            ..rule
        });
        rules.map(|rule| self.api.faults().add(rule)).collect()
    }

    fn end(&self, kind: TroubleKind) {
        if kind == TroubleKind::Behind {
            self.api.set_lag(1, Duration::ZERO);
        } else if kind == TroubleKind::Outage {
            // A restarted server knows no earlier changes.
            self.api.compact();
        } else if let TroubleKind::ClockStep { millis } = kind {
            self.controller_wall.step(SignedDuration::from_millis(-millis));
        }
    }
}

fn rules(kind: TroubleKind) -> Vec<Rule> {
    let rule = |fault, per_million, verbs: &[Verb]| Rule {
        per_million,
        verbs: verbs.to_vec(),
        ..Rule::new(fault)
    };
    match kind {
        TroubleKind::Outage => vec![rule(Fault::Outage, 1_000_000, &[])],
        TroubleKind::Slow => {
            let delay = Fault::Delay {
                shortest: Duration::from_millis(300),
                longest: Duration::from_secs(4),
            };
            vec![rule(delay, 1_000_000, &[])]
        }
        TroubleKind::Throttled { retry_after_seconds } => {
            let verbs = [&[Verb::Document, Verb::Get], WRITES.as_slice()].concat();
            vec![rule(Fault::Throttle { retry_after_seconds }, 950_000, &verbs)]
        }
        TroubleKind::InternalErrors => vec![rule(Fault::InternalError, 600_000, &[])],
        TroubleKind::Unavailable => vec![rule(Fault::Unavailable, 600_000, &[])],
        TroubleKind::Denied => {
            let denied = Rule {
                resource: Some(Resource::Job),
                ..rule(Fault::Forbid("exceeded quota: jobs".to_owned()), 900_000, &WRITES)
            };
            vec![denied]
        }
        TroubleKind::Conflicts => vec![rule(Fault::Conflict, 700_000, &[Verb::Update])],
        TroubleKind::Expired => vec![
            rule(Fault::Expired, 500_000, &[Verb::List, Verb::Watch]),
            rule(Fault::CloseWatch, 500_000, &[]),
        ],
        TroubleKind::WatchesEnd => vec![rule(Fault::CloseWatch, 500_000, &[])],
        TroubleKind::WatchesStall => vec![rule(Fault::StallWatch, 1_000_000, &[])],
        TroubleKind::WatchesSlow => {
            let pause = Duration::from_millis(100);
            vec![rule(Fault::SlowWatch { pause }, 1_000_000, &[])]
        }
        TroubleKind::Behind | TroubleKind::ClockStep { .. } => Vec::new(),
    }
}
