//! The faults of `--faults`. They affect the controller alone, so that a person can watch it lose nothing.

use std::time::Duration;

use apisim::{Fault, Rule, Verb};

use crate::kube_api::http::USER_AGENT;

/// Probabilities per million requests or watch events. Together they affect a few percent of the controller's requests.
const RULES: [(Fault, u32); 7] = [
    (
        Fault::Delay {
            shortest: Duration::from_millis(10),
            longest: Duration::from_millis(300),
        },
        100_000,
    ),
    (Fault::InternalError, 10_000),
    (Fault::Unavailable, 10_000),
    (Fault::Throttle { retry_after_seconds: 1 }, 5_000),
    (Fault::DropBefore, 10_000),
    // The worst case: the request is executed, and its answer is lost.
    (Fault::DropAfter, 20_000),
    (Fault::CloseWatch, 2_000),
];

/// Returns the rules for the API server.
pub(super) fn rules() -> impl Iterator<Item = Rule> {
    RULES.into_iter().map(|(fault, per_million)| {
        let is_of_watches = fault == Fault::CloseWatch;
        Rule {
            client: USER_AGENT.split('/').next().map(str::to_owned),
            per_million,
            verbs: if is_of_watches { vec![Verb::Watch] } else { Vec::new() },
            ..Rule::new(fault)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_goes_wrong_for_anybody_but_the_controller() {
        for rule in rules() {
            assert_eq!(rule.client.as_deref(), Some("cronwheel"), "{rule:?}");
        }
    }

    #[test]
    fn most_requests_are_answered_well_and_at_once() {
        let n_bad: u32 = rules().map(|rule| rule.per_million).sum();
        assert!((50_000..250_000).contains(&n_bad), "{n_bad} of a million");
    }
}
