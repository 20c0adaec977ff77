//! Tests of the calendars that replicas know.

use super::*;
use crate::schedule::Zone;

fn scope(name: &str) -> Scope {
    Scope::Namespace(name.into())
}

fn read(dates: &str) -> ReadCalendar {
    let calendar = Calendar::read([("dates", dates)].into_iter());
    calendar.map(Arc::new).map_err(Into::into)
}

fn applied(namespace: &str, name: &str, dates: &str) -> CalendarUpdate {
    CalendarUpdate::Applied {
        namespace: namespace.into(),
        name: name.into(),
        calendar: read(dates),
    }
}

fn of(names: &[(&str, &str)]) -> CalendarChange {
    let key = |(namespace, name): &(&str, &str)| ((*namespace).into(), (*name).into());
    CalendarChange::Of(names.iter().map(key).collect())
}

/// The problem of a CronJob of a namespace that names a calendar. `None` if it is known, or if nothing is known of it.
fn problem(calendars: &Calendars, namespace: &str, name: &str) -> Option<String> {
    let get = |annotation: &str| (annotation == "cronwheel.dev/not-on").then_some(name);
    let mut schedule = CronJobSchedule::new("0 * * * *", None, &Zone::utc()).with_options("hello", get, 0);
    calendars.resolve(namespace, &mut schedule);
    let invalid = &schedule.options().invalid;
    assert!(
        invalid.len() < 2
            && schedule.exclusion().is_none()
                == (schedule.options().not_on.is_none() || !invalid.is_empty() || !calendars.are_known_in(namespace))
    );
    invalid.first().map(ToString::to_string)
}

#[test]
fn the_calendars_of_a_scope_are_known_when_it_is_listed() {
    let calendars = Calendars::of_scopes(&[scope("a"), scope("b")]);
    calendars.apply(CalendarUpdate::ListBegun(scope("a")));
    assert_eq!(
        calendars.apply(applied("a", "holidays", "2026-12-25")),
        CalendarChange::Nothing
    );
    assert!(!calendars.are_known_in("a"));
    assert_eq!(
        problem(&calendars, "a", "missing"),
        None,
        "it may be in the list that is not complete"
    );
    let change = calendars.apply(CalendarUpdate::ListDone(scope("a")));
    assert!(change.concerns("a", "holidays") && !change.concerns("b", "holidays"));
    assert!(calendars.are_known_in("a") && !calendars.are_known_in("b"));
    assert_eq!(problem(&calendars, "a", "holidays"), None);
    assert!(problem(&calendars, "a", "missing").is_some());
    assert_eq!(problem(&calendars, "b", "holidays"), None);
    calendars.apply(CalendarUpdate::ListBegun(scope("b")));
    assert_eq!(
        calendars.apply(CalendarUpdate::ListDone(scope("b"))),
        CalendarChange::FirstList(scope("b"))
    );
    assert_eq!(
        problem(&calendars, "b", "holidays").unwrap(),
        "annotation cronwheel.dev/not-on is \"holidays\": the namespace has no ConfigMap of this name with the label \
         cronwheel.dev/calendar=true; create it, or add the label; the CronJob runs as without it"
    );
}

#[test]
fn a_list_removes_the_calendars_of_its_scope_that_it_does_not_have() {
    let calendars = Calendars::of_scopes(&[scope("a"), scope("b")]);
    for update in [
        applied("a", "old", "2026-12-25"),
        applied("a", "kept", "2026-12-25"),
        applied("b", "other", "2026-12-25"),
        CalendarUpdate::ListDone(scope("b")),
    ] {
        calendars.apply(update);
    }
    // This list ended without a beginning.
    calendars.apply(applied("b", "other", "2026-12-25"));
    calendars.apply(CalendarUpdate::ListBegun(scope("a")));
    assert_eq!(
        calendars.apply(applied("a", "kept", "2026-12-25")),
        CalendarChange::Nothing
    );
    assert_eq!(
        calendars.apply(CalendarUpdate::ListDone(scope("a"))),
        CalendarChange::FirstList(scope("a"))
    );
    assert!(problem(&calendars, "a", "old").is_some());
    assert_eq!(problem(&calendars, "a", "kept"), None);
    assert_eq!(problem(&calendars, "b", "other"), None);
    let removed = CalendarUpdate::Removed {
        namespace: "a".into(),
        name: "kept".into(),
    };
    assert_eq!(calendars.apply(removed), of(&[("a", "kept")]));
}

#[test]
fn without_the_right_to_read_calendars_the_problem_names_the_chart_value() {
    let calendars = Calendars::default();
    assert!(calendars.are_known_in("a"));
    assert_eq!(
        problem(&calendars, "a", "holidays").unwrap(),
        "annotation cronwheel.dev/not-on is \"holidays\": this installation reads no ConfigMaps; set the chart value \
         calendars.enabled, or --calendars of cronwheel run; the CronJob runs as without it"
    );
}

/// The lines of the longest calendar. They are every second day, so that no entries are merged.
fn long() -> String {
    let dates = (0..4_096).map(|n| crate::schedule::options::date_of(2 * n).to_string());
    dates.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_calendars_of_a_namespace_have_a_limit_together() {
    let calendars = Calendars::of_scopes(&[]);
    let long = long();
    for n in 0..16 {
        calendars.apply(applied("a", &format!("c{n}"), &long));
    }
    calendars.apply(applied("a", "more", "2026-12-25"));
    calendars.apply(applied("b", "more", "2026-12-25"));
    assert_eq!(problem(&calendars, "a", "c15"), None);
    assert!(
        problem(&calendars, "a", "more")
            .unwrap()
            .contains("have more than 65536 dates")
    );
    assert_eq!(problem(&calendars, "b", "more"), None);
}

#[test]
fn nobody_is_concerned_by_a_calendar_before_the_end_of_the_first_list() {
    let calendars = Calendars::of_scopes(&[scope("a")]);
    calendars.apply(CalendarUpdate::ListBegun(scope("a")));
    assert_eq!(
        calendars.apply(applied("a", "holidays", "2026-12-25")),
        CalendarChange::Nothing
    );
}

#[test]
fn the_number_of_calendars_of_a_namespace_has_a_limit() {
    let calendars = Calendars::of_scopes(&[]);
    for n in 0..=1_000 {
        calendars.apply(applied("a", &format!("c{n}"), if n % 2 == 0 { "" } else { "no date" }));
    }
    calendars.apply(applied("b", "more", "2026-12-25"));
    assert_eq!(problem(&calendars, "a", "c998"), None);
    assert!(
        problem(&calendars, "a", "c1000")
            .unwrap()
            .contains("the namespace has 1000 calendars, and no more are used")
    );
    assert_eq!(problem(&calendars, "b", "more"), None);
    // A known one may still change.
    calendars.apply(applied("a", "c999", "2026-12-25"));
    assert_eq!(problem(&calendars, "a", "c999"), None);
}

#[test]
fn the_calendars_of_all_namespaces_have_a_limit_together() {
    let calendars = Calendars::of_scopes(&[]);
    let long = read(&long());
    for n in 0..8 * 16 {
        calendars.apply(CalendarUpdate::Applied {
            namespace: format!("n{}", n % 8).into(),
            name: format!("c{}", n / 8).into(),
            calendar: long.clone(),
        });
    }
    calendars.apply(applied("a", "more", "2026-12-25"));
    assert!(
        problem(&calendars, "a", "more")
            .unwrap()
            .contains("the calendars of all namespaces have more than 524288 dates")
    );
    for update in [
        CalendarUpdate::Removed {
            namespace: "n0".into(),
            name: "c0".into(),
        },
        applied("a", "more", "2026-12-25"),
    ] {
        calendars.apply(update);
    }
    assert_eq!(problem(&calendars, "a", "more"), None);
}
