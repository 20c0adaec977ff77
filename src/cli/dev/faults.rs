//! The faults of `--faults`. They affect only the controller, so that `kubectl` works as usual.

use std::{fmt, time::Duration};

use apisim::{Api, Fault, Faults, Rule, RuleId, Verb};

use super::CONTROLLER;
use crate::observe::words::thousands;

/// A kind of fault as totals name it: one, and several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind(&'static str, &'static str);

const LOST_ANSWER: Kind = Kind("lost answer", "lost answers");
const BROKEN_WATCH: Kind = Kind("broken watch", "broken watches");
const LOST_REQUEST: Kind = Kind("lost request", "lost requests");
const ERROR: Kind = Kind("error", "errors");
const SLOW_ANSWER: Kind = Kind("slow answer", "slow answers");

/// The kinds of faults, in the order of the totals.
const KINDS: [Kind; 5] = [LOST_ANSWER, BROKEN_WATCH, LOST_REQUEST, ERROR, SLOW_ANSWER];

/// Probabilities per million requests or watch events. Together they affect a fifth of the controller's requests.
const RULES: [(Kind, Fault, u32); 7] = [
    (
        SLOW_ANSWER,
        Fault::Delay {
            shortest: Duration::from_millis(10),
            longest: Duration::from_millis(300),
        },
        100_000,
    ),
    (ERROR, Fault::InternalError, 10_000),
    (ERROR, Fault::Unavailable, 10_000),
    (ERROR, Fault::Throttle { retry_after_seconds: 1 }, 5_000),
    (LOST_REQUEST, Fault::DropBefore, 20_000),
    // The worst case: the request is executed, and its answer is lost.
    (LOST_ANSWER, Fault::DropAfter, 40_000),
    (BROKEN_WATCH, Fault::CloseWatch, 10_000),
];

/// The faults that an API server injects.
pub(super) struct Injection {
    faults: Faults,
    rules: Vec<(Kind, RuleId)>,
}

/// Number of injected faults of each kind, in the order of [`KINDS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FaultCounts([u64; KINDS.len()]);

impl Injection {
    /// Begins to inject faults into the requests of the controller.
    pub(super) fn begin(api: &Api) -> Injection {
        let faults = api.faults().clone();
        let add = |(kind, fault, per_million): (Kind, Fault, u32)| (kind, faults.add(rule(fault, per_million)));
        let rules = RULES.into_iter().map(add).collect();
        Injection { faults, rules }
    }

    pub(super) fn counts(&self) -> FaultCounts {
        let count_of = |kind: Kind| {
            let rules = self.rules.iter().filter(|(of_rule, _)| *of_rule == kind);
            rules.map(|(_, id)| self.faults.count(*id)).sum()
        };
        FaultCounts(KINDS.map(count_of))
    }
}

fn rule(fault: Fault, per_million: u32) -> Rule {
    let is_of_watches = fault == Fault::CloseWatch;
    Rule {
        client: Some(CONTROLLER.to_owned()),
        per_million,
        verbs: if is_of_watches { vec![Verb::Watch] } else { Vec::new() },
        ..Rule::new(fault)
    }
}

impl FaultCounts {
    pub(super) fn total(self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns the number of each kind with its name.
    pub(super) fn kinds(self) -> impl Iterator<Item = (&'static str, u64)> {
        let name = |Kind(one, several): Kind, count| if count == 1 { one } else { several };
        KINDS
            .into_iter()
            .zip(self.0)
            .map(move |(kind, count)| (name(kind, count), count))
    }

    /// Returns the number of all faults: `107 faults`.
    pub(super) fn total_text(self) -> String {
        let total = self.total();
        let plural = if total == 1 { "" } else { "s" };
        format!("{} fault{plural}", thousands(total))
    }
}

/// `107 faults: 31 lost answers, 22 broken watches`.
impl fmt::Display for FaultCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.total_text())?;
        let mut separator = ": ";
        for (name, count) in self.kinds().filter(|(_, count)| *count > 0) {
            write!(f, "{separator}{} {name}", thousands(count))?;
            separator = ", ";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use apisim::{Options, WallClock};
    use http::Request;
    use kube::client::Body;
    use tower::ServiceExt as _;

    use super::*;

    async fn n_failures(api: &Api, client: &str) -> usize {
        let mut n_failures = 0;
        for _ in 0..200 {
            let request = Request::get("/api/v1/namespaces/default").body(Body::empty()).unwrap();
            let answer = api.client(client).oneshot(request).await;
            n_failures += usize::from(!answer.is_ok_and(|answer| answer.status().is_success()));
        }
        n_failures
    }

    #[tokio::test(start_paused = true)]
    async fn faults_hit_only_the_controller_and_are_counted() {
        let clock = WallClock::starting_at("2026-05-05T10:00:00Z".parse().unwrap());
        let api = Api::new(Options::default(), clock);
        let injection = Injection::begin(&api);
        assert_eq!(injection.counts().to_string(), "0 faults");
        assert_eq!(n_failures(&api, "cronwheel").await, 0);
        assert_eq!(injection.counts(), FaultCounts::default());
        let n_failures = n_failures(&api, CONTROLLER).await;
        let FaultCounts([n_lost_answers, 0, n_lost_requests, n_errors, n_slow]) = injection.counts() else {
            panic!("a watch was closed");
        };
        assert!(n_failures > 0 && n_slow > 0);
        assert_eq!(n_lost_answers + n_lost_requests + n_errors, n_failures as u64);
    }

    #[test]
    fn fault_counts_are_listed_by_kind() {
        for (counts, expected) in [
            ([0, 0, 0, 0, 1], "1 fault: 1 slow answer"),
            (
                [31, 22, 4, 1_020, 30],
                "1,107 faults: 31 lost answers, 22 broken watches, 4 lost requests, 1,020 errors, 30 slow answers",
            ),
        ] {
            assert_eq!(FaultCounts(counts).to_string(), expected);
        }
    }
}
