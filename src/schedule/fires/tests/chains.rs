//! Compares the computed last member of a chain with a walk over all its members.

use super::{sample::Random, *};

/// The maximum number of members walked, for example the minutes of two days or the nights of eight years.
const MEMBERS_MAX: usize = 3_000;

/// Walks the chain once and checks its last member at many instants, most of them near zone changes and members.
fn check_chain(text: &str, zone: &Zone, earliest: i64, random: &mut Random) {
    let spec = spec(text);
    let mut members = Vec::new();
    let mut at = earliest;
    while members.len() < MEMBERS_MAX
        && let Some(next) = next_of_spec(&spec, zone, at).filter(|next| *next < earliest + 12 * 366 * 86_400)
    {
        members.push(next);
        at = next;
    }
    // The chain is unknown beyond the walked part.
    let end = if members.len() < MEMBERS_MAX {
        earliest + 12 * 366 * 86_400
    } else {
        at
    };
    for _ in 0..60 {
        let now = match random.between(0, 2) {
            0 => random.between(earliest, end - 1),
            1 => sample::instant(random, zone),
            _ => random.pick(&members.iter().chain([&earliest]).collect::<Vec<_>>()) + random.between(-60, 60),
        };
        if now >= end || now < earliest {
            continue;
        }
        let expected = members[..members.partition_point(|member| *member <= now)]
            .last()
            .copied();
        let got = chain::last_until(&spec, zone, earliest, now);
        assert_eq!(
            got, expected,
            "{text} in {zone:?} from {earliest} until {now}; {random}"
        );
    }
}

#[test]
fn last_member_matches_the_walked_chain() {
    let mut random = Random::new(0x5eed_0003);
    for _ in 0..120 {
        let text = sample::schedule_text(&mut random);
        let zone = sample::zone(&mut random);
        let earliest = sample::instant(&mut random, &zone);
        check_chain(&text, &zone, earliest, &mut random);
    }
}

/// Chains of some thousand members over years, so that whole spans are skipped.
#[test]
fn last_member_matches_the_walked_chain_over_years() {
    let mut random = Random::new(0x5eed_0004);
    let texts = [
        "0 */6 * * *",
        "30 2 * * *",
        "0 0 * * *",
        "15 0,1,2,23 * * *",
        "0 12 * * 5",
        "0 0,1 * * 0",
        "30 0 1 * *",
        "0 0 1,15 * 1",
        "0 0 31 * *",
        "0 */8 * 1-11 *",
        "0 0 * 3,10 *",
        "0 0,12 1-7 */3 *",
        "0 0 29 2 *",
        "0 0 1 1 *",
    ];
    for text in texts {
        for _ in 0..3 {
            let zone = sample::zone(&mut random);
            let earliest = sample::instant(&mut random, &zone);
            check_chain(text, &zone, earliest, &mut random);
        }
    }
}

#[test]
fn a_chain_without_activations_has_no_last_member() {
    for text in ["0 0 30 2 *", ", * * * *", "* * , * ,"] {
        for name in ["UTC", "America/New_York"] {
            assert_eq!(
                chain::last_until(&spec(text), &zone(name), 0, 1_800_000_000),
                None,
                "{text} in {name}"
            );
        }
    }
    let daily = spec("0 0 * * *");
    assert_eq!(chain::last_until(&daily, &zone("UTC"), 0, 86_399), None);
    assert_eq!(chain::last_until(&daily, &zone("UTC"), 0, 86_400), Some(86_400));
    assert_eq!(chain::last_until(&daily, &zone("UTC"), 86_400, 0), None);
}

#[test]
fn a_chain_ends_where_the_library_finds_no_further_activation_b_8_4() {
    let (leap_days, utc) = (spec("0 0 29 2 *"), zone("UTC"));
    let (from, to) = (
        at("2090-01-01T00:00:00Z").as_second(),
        at("2110-01-01T00:00:00Z").as_second(),
    );
    assert_eq!(
        chain::last_until(&leap_days, &utc, from, to),
        Some(at("2096-02-29T00:00:00Z").as_second())
    );
}

/// With one step per activation, each case would take seconds to hours.
#[test]
fn last_member_of_a_long_chain_is_found_quickly() {
    let now = at("2026-03-29T03:00:30Z").as_second();
    for (text, name) in [
        ("* * * * *", "Europe/Berlin"),
        ("* 1-23 * * *", "Europe/Berlin"),
        ("* * * * 0,6", "Africa/Cairo"),
        ("* * * 1-11 *", "America/Nuuk"),
        ("* * 1 1 *", "America/Nuuk"),
        ("*/7 * * * *", "Australia/Lord_Howe"),
    ] {
        let (spec, zone) = (spec(text), zone(name));
        for earliest in [now - 20 * 366 * 86_400, 0, Timestamp::MIN.as_second()] {
            let last = chain::last_until(&spec, &zone, earliest, now).unwrap();
            assert!(
                last <= now && next_of_spec(&spec, &zone, last) > Some(now),
                "{text} in {name} from {earliest}"
            );
        }
    }
}
