//! Which runs must exist and which may, from what users asked for, what went wrong and when Jobs ran: arithmetic on
//! instants, no schedule parser, no controller.
//!
//! Where it cannot know, it allows: what a controller does while something is in its way, and for some seconds after, may
//! rest on what was so before.

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

/// What a controller is given to notice and to act, messages that get lost and their repetition included.
const PATIENCE: SignedDuration = SignedDuration::from_secs(25);

/// So soon what is so is known to a controller that nothing is in the way of.
const NEWS: SignedDuration = SignedDuration::from_secs(3);

/// A controller's clock is within this of the API server's, or it starts nothing.
const SKEW: SignedDuration = SignedDuration::from_secs(2);

/// The longest that a request is on its way.
const ON_THE_WAY: SignedDuration = SignedDuration::from_secs(5);

/// A slot that was held in time may be this late whatever its deadline says (B-9.7 and its difference).
const LATENESS_ALLOWED: SignedDuration = SignedDuration::from_secs(10);

/// What the judgement of every CronJob rests on.
struct Case<'a> {
    world: &'a World,
    hindrances: Hindrances,
    end: Timestamp,
}

/// Everything that is not as it must be.
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
