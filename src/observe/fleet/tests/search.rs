//! The search, and the spans of the strip.

use super::script::{World, at, facts};
use crate::observe::view::Filter;

#[test]
fn the_search_takes_any_case() {
    let mut facts = facts();
    facts.labels = [("app".into(), "Bill".into())].into_iter().collect();
    let mut world = World::new(facts, 50);
    world.play("10:00:30 watch");
    let n_matching = |text: &str| {
        let filter = Filter {
            text: text.to_owned(),
            limit: 9,
            ..Filter::default()
        };
        world.fleet.rows(&filter, world.now).n_matching
    };
    for (text, expected) in [
        ("BILL", 1),
        ("Shop/bi", 1),
        ("shop/Bi", 1),
        ("other", 0),
        ("app=Bill", 1),
        // Labels have a case.
        ("app=bill", 0),
    ] {
        assert_eq!(n_matching(text), expected, "{text}");
    }
}

#[test]
fn a_span_lists_what_starts_or_was_due_in_it() {
    let n_matching = |world: &World, (from, to): (&str, &str)| {
        let filter = Filter {
            slots_between: Some((at(from), at(to))),
            limit: 9,
            ..Filter::default()
        };
        world.fleet.rows(&filter, world.now).n_matching
    };
    let mut world = World::new(facts(), 50);
    world.facts.created = at("09:30");
    world.play("10:00:30 watch\n10:02:30 wait");
    let (before, past, future) = (("09:00", "09:20"), ("10:01", "10:02"), ("10:30", "10:40"));
    assert_eq!([before, past, future].map(|span| n_matching(&world, span)), [0, 1, 1]);
    assert_eq!(n_matching(&world, ("09:00", "09:40")), 1);
    // Suspended: nothing starts, and what was due before stays.
    world.play("10:02:30 suspend\n10:05:30 wait");
    assert_eq!(
        [past, ("10:04", "10:05"), future].map(|span| n_matching(&world, span)),
        [1, 0, 0]
    );
}
