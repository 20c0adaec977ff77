//! Determines which runs must exist and which may, from what users requested, which faults occurred and when Jobs ran.
//! It uses arithmetic on instants, without schedule parser and controller.
//!
//! Where the model cannot know, it allows. During an obstacle and for some seconds afterwards, a controller's actions
//! may be based on an earlier state.

mod account;
mod deletions;
mod hindrances;
mod missed;
mod permitted;
mod settled;
mod told;
mod view;

use jiff::{SignedDuration, Timestamp};

pub(super) use self::settled::unsettled;
use self::{hindrances::Hindrances, view::View};
use super::{scenario::Scenario, world::World};

/// The time that a controller has to notice and act, including lost messages and their retries.
const PATIENCE: SignedDuration = SignedDuration::from_secs(25);

/// The maximum time until an unobstructed controller knows the current state.
const NEWS: SignedDuration = SignedDuration::from_secs(3);

/// A controller whose clock deviates more from the API server's starts nothing.
const SKEW: SignedDuration = SignedDuration::from_secs(2);

/// The maximum time that a request is in flight.
const ON_THE_WAY: SignedDuration = SignedDuration::from_secs(5);

/// A slot that was started in time may be this late, whatever its deadline (B-9.7 and its difference).
const LATENESS_ALLOWED: SignedDuration = SignedDuration::from_secs(10);

/// The context in which every CronJob is judged.
struct Case<'a> {
    world: &'a World,
    hindrances: Hindrances,
    end: Timestamp,
}

/// Returns all violations.
pub(super) fn problems(scenario: &Scenario, world: &World, end: Timestamp) -> Vec<String> {
    let case = Case {
        world,
        hindrances: Hindrances::new(scenario, world),
        end,
    };
    let mut problems = Vec::new();
    let views = View::all(&case);
    account::judge(&case, &views, &mut problems);
    told::judge(&case, &mut problems);
    for view in &views {
        permitted::judge(&case, view, &mut problems);
        deletions::judge(&case, view, &mut problems);
        missed::judge(&case, view, &mut problems);
        settled::statuses(view, &mut problems);
    }
    problems
}
