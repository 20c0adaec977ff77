//! The model determines which runs must exist and which may exist, from the actions of users, the disruptions, and the
//! times of Jobs. It uses arithmetic on instants, without the schedule parser and the controller.
//!
//! The model allows an action in case of doubt. During an obstruction and for some seconds afterwards, the actions of a
//! controller may be based on an earlier state.

mod account;
mod asked_runs;
mod catch_up;
mod deletions;
mod missed;
mod missing_reports;
mod obstructions;
mod permitted;
mod settled;
mod view;

use jiff::{SignedDuration, Timestamp};

pub(super) use self::settled::unsettled;
use self::{obstructions::Obstructions, view::View};
use super::{scenario::Scenario, world::World};

/// The maximum time in which a controller observes a change and acts, including lost messages and their retries.
const PATIENCE: SignedDuration = SignedDuration::from_secs(25);

/// The maximum time in which an unobstructed controller observes a change.
const OBSERVATION_DELAY_MAX: SignedDuration = SignedDuration::from_secs(3);

/// The maximum deviation of the clock of a controller from the clock of the API server. Beyond it, the controller
/// starts no run.
const SKEW: SignedDuration = SignedDuration::from_secs(2);

/// The maximum time that a request is in flight.
const IN_FLIGHT_MAX: SignedDuration = SignedDuration::from_secs(5);

/// A slot that was decided in time may start this late, regardless of its deadline (B-9.7 and its difference).
const LATENESS_ALLOWED: SignedDuration = SignedDuration::from_secs(10);

/// The context for the judgement of every CronJob.
struct Case<'a> {
    scenario: &'a Scenario,
    world: &'a World,
    obstructions: Obstructions,
    end: Timestamp,
}

/// Returns all violations.
pub(super) fn problems(scenario: &Scenario, world: &World, end: Timestamp) -> Vec<String> {
    let case = Case {
        scenario,
        world,
        obstructions: Obstructions::new(scenario, world),
        end,
    };
    let mut problems = Vec::new();
    let views = View::all(&case);
    account::judge(&case, &views, &mut problems);
    missing_reports::judge(&case, &mut problems);
    for view in &views {
        permitted::judge(&case, view, &mut problems);
        deletions::judge(&case, view, &mut problems);
        missed::judge(&case, view, &mut problems);
        asked_runs::judge(&case, view, &mut problems);
        settled::statuses(view, &mut problems);
    }
    problems
}
