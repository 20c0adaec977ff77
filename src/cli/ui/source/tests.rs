//! The notices above the page, and views that are kept.

use super::*;
use crate::observe::{
    fleet::{Fleet, FleetConfig},
    observer::source::NotLive,
};

#[test]
fn banners_say_what_is_missing() {
    let berlin = Zone::load("Europe/Berlin").unwrap();
    let listed = Source {
        is_listed: true,
        ..Source::default()
    };
    assert_eq!(banners(&listed, &berlin), Vec::<String>::new());
    assert_eq!(banners(&Source::default(), &berlin).len(), 1, "not listed yet");
    let troubled = Source {
        not_live: Some(NotLive {
            since: "2026-11-27T21:04:10Z".parse().unwrap(),
            problem: "the API server cannot be reached".to_owned(),
        }),
        n_undecodable: 2,
        last_undecodable: Some("CronJob a/b: spec.suspend: invalid type".to_owned()),
        history_problems: vec!["The disk is full.".to_owned()],
        ..listed
    };
    let expected = [
        "Not live since 27 Nov 22:04:10 CET: the API server cannot be reached.",
        "2 times, an object had a field that cannot be decoded and counts as absent; last: CronJob a/b: spec.suspend: \
         invalid type.",
        "The disk is full.",
    ];
    assert_eq!(banners(&troubled, &berlin), expected);
}

#[test]
fn an_overview_is_computed_once_for_each_state_and_second() {
    let now: Timestamp = "2026-11-27T21:04:10Z".parse().unwrap();
    let fleet = Fleet::new(FleetConfig::of_slots(50), now);
    let (last, mut n_computed) = (Last::none(), 0);
    for state in [(1, 7), (1, 7), (2, 7), (2, 8)] {
        last.of(state, || {
            n_computed += 1;
            fleet.overview(now)
        });
    }
    assert_eq!(n_computed, 3);
}

#[test]
fn half_a_list_gives_no_advice_and_is_not_kept() {
    let now: Timestamp = "2026-11-27T21:04:10Z".parse().unwrap();
    let fleet = Fleet::new(FleetConfig::of_slots(50), now);
    let last = Last::none();
    let inputs = || AdviceInputs::of(&fleet);
    assert_eq!(advice_of(&last, false, now, inputs), []);
    assert!(last.0.lock().unwrap().is_none());
    advice_of(&last, true, now, inputs);
    assert!(last.0.lock().unwrap().is_some());
}
