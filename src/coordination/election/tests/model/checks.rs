//! The checks: two concurrent leaders are unreachable, and if any one guard is disabled, a counterexample exists.

use stateright::{Checker, HasDiscoveries, Model};

use super::{ALL_FAULTS, Fault, Protocol};
use crate::coordination::election::Guards;

/// Checks all reachable states, and prints their number.
#[track_caller]
fn holds(protocol: Protocol) {
    let checker = protocol.checker().threads(2).spawn_dfs().join();
    eprintln!(
        "{} states, {} different",
        checker.state_count(),
        checker.unique_state_count()
    );
    checker.assert_properties();
}

/// Checks that a property fails, and prints the counterexample.
#[track_caller]
fn finds(protocol: Protocol, property: &'static str) {
    let stops = HasDiscoveries::AnyOf(std::iter::once(property).collect());
    let checker = protocol.checker().threads(2).finish_when(stops).spawn_dfs().join();
    let path = checker.discovery(property).map(stateright::Path::into_actions);
    eprintln!("{property}: {} states, {path:?}", checker.state_count());
    assert!(path.is_some(), "without the guard, {property:?} still holds");
}

#[test]
fn no_fault_leads_to_two_leaders() {
    let deep = std::env::var("CRONWHEEL_MODEL_FAULTS")
        .ok()
        .and_then(|budget| budget.parse().ok());
    holds(Protocol {
        has_orders: deep.is_none(),
        ..Protocol::new(deep.unwrap_or(1), ALL_FAULTS)
    });
}

/// Checks that two leaders are reachable without a guard, and that the same faults are harmless with it.
#[track_caller]
fn is_needed(guards: Guards, protocol: Protocol) {
    finds(
        Protocol {
            guards,
            ..protocol.clone()
        },
        "one leader",
    );
    holds(protocol);
}

#[test]
fn without_waiting_out_the_lease_duration_there_are_two_leaders() {
    let guards = Guards {
        wait_out_duration: false,
        ..Guards::ALL
    };
    is_needed(guards, Protocol::new(1, &[Fault::Cut(0)]));
}

#[test]
fn without_a_fence_from_the_send_time_there_are_two_leaders() {
    let guards = Guards {
        fence_from_send: false,
        ..Guards::ALL
    };
    let protocol = Protocol {
        faults_until: 12,
        ..Protocol::new(2, &[Fault::Slow(0), Fault::Cut(0)])
    };
    is_needed(guards, protocol);
}

#[test]
fn without_a_fence_from_the_view_there_are_two_leaders() {
    let guards = Guards {
        fence_from_view: false,
        ..Guards::ALL
    };
    is_needed(guards, Protocol::new(2, &[Fault::StallWatch(0), Fault::DeleteShard]));
}

/// A run that begins after the leader's requests have been stalled for seven seconds. They can arrive right after the
/// other replica has read its Lease.
fn delayed_run(faults: &[Fault]) -> Protocol {
    Protocol {
        former: Some((Fault::StallRequests(0), 7)),
        faults_until: 18,
        horizon: 20,
        ..Protocol::new(2, faults)
    }
}

#[test]
fn without_preconditions_there_are_two_leaders() {
    let protocol = delayed_run(&[Fault::Slow(1), Fault::StallWatch(0)]);
    finds(
        Protocol {
            has_preconditions: false,
            ..protocol.clone()
        },
        "one leader",
    );
    holds(protocol);
}

/// The precondition makes an eviction from an outdated view fail; the quorum read prevents it from being sent.
#[test]
fn without_the_quorum_read_evictions_are_blind() {
    let guards = Guards {
        quorum_read: false,
        ..Guards::ALL
    };
    let protocol = delayed_run(&[Fault::StallWatch(1)]);
    finds(
        Protocol {
            guards,
            ..protocol.clone()
        },
        "no eviction is blind",
    );
    holds(protocol);
}

#[test]
fn without_a_trusted_watch_an_outage_evicts_live_members() {
    let guards = Guards {
        trusted_watch: false,
        ..Guards::ALL
    };
    let protocol = Protocol::new(2, &[Fault::Outage, Fault::StallRequests(0)]);
    finds(
        Protocol {
            guards,
            ..protocol.clone()
        },
        "no member is evicted before it can renew",
    );
    holds(protocol);
}
