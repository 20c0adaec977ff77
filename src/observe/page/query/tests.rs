//! Tests of the state in the address.

use super::*;

fn now() -> Timestamp {
    "2026-11-27T21:04:58Z".parse().unwrap()
}

#[test]
fn an_address_is_parsed_and_written_back() {
    for url in [
        "/",
        "/?q=app%3Dshop+nightly",
        "/?namespace=data&state=lost",
        "/?q=a%26b&namespace=data&state=due&from=2026-11-28T01:00Z&to=2026-11-28T02:00:30Z&page=7",
    ] {
        let query = PageQuery::parse(url.trim_start_matches("/?").trim_start_matches('/'), now()).unwrap();
        let written = query.url();
        assert_eq!(written, url);
    }
    let empty = PageQuery::parse("q=&namespace=+&state=&from=&to=&page=", now());
    assert_eq!(empty, Ok(PageQuery::default()), "what a form sends without input");
}

#[test]
fn another_filter_begins_at_the_first_page() {
    let query = PageQuery::parse("q=a&page=3", now()).unwrap();
    assert_eq!(query.with_state(Some(StateFilter::Late)).url(), "/?q=a&state=late");
    assert_eq!(query.with_namespace(Some("data")).url(), "/?q=a&namespace=data");
    assert_eq!(query.with_page(4).url(), "/?q=a&page=5");
}

#[test]
fn the_search_text_can_name_a_time_of_day() {
    let berlin = Zone::load("Europe/Berlin").unwrap();
    let cases = [
        ("nightly", "nightly", None),
        (
            "starts between 02:00 and 03:00",
            "",
            Some(("2026-11-28T01:00:00Z", "2026-11-28T02:00:00Z")),
        ),
        (
            "data Starts between 22:00 and 23:00 x=y",
            "data x=y",
            Some(("2026-11-27T21:00:00Z", "2026-11-27T22:00:00Z")),
        ),
        (
            "starts between 21:30 and 02:00",
            "",
            Some(("2026-11-27T20:30:00Z", "2026-11-28T01:00:00Z")),
        ),
        (
            "starts  between 2:00 - 3:00",
            "",
            Some(("2026-11-28T01:00:00Z", "2026-11-28T02:00:00Z")),
        ),
        (
            "starts between 22:00 and 24:00",
            "",
            Some(("2026-11-27T21:00:00Z", "2026-11-27T23:00:00Z")),
        ),
        (
            "starts between 00:00 and 00:30",
            "",
            Some(("2026-11-27T23:00:00Z", "2026-11-27T23:30:00Z")),
        ),
        ("starts-between", "starts-between", None),
        ("nightly starts", "nightly starts", None),
    ];
    for (text, expected_text, span) in cases {
        let query = PageQuery {
            text: text.to_owned(),
            ..PageQuery::default()
        };
        let filter = query.filter(&berlin, now());
        let span = span.map(|(from, to): (&str, &str)| (from.parse().unwrap(), to.parse().unwrap()));
        assert_eq!(
            (filter.text.as_str(), filter.slots_between),
            (expected_text, span),
            "{text}"
        );
    }
}

#[test]
fn a_time_of_day_that_is_not_understood_is_said() {
    let is_misunderstood = |text: &str| {
        let query = PageQuery {
            text: text.to_owned(),
            ..PageQuery::default()
        };
        query.has_misunderstood_time()
    };
    for text in [
        "",
        "starts",
        "between",
        "starts between 02:00-03:00",
        "a starts between 2:00 and 3:00 b",
    ] {
        assert!(!is_misunderstood(text), "{text}");
    }
    for text in [
        "starts between 2 and 3",
        "starts between 08:00",
        "starts between 08:00 and",
        "starts between 08:00 and 25:00",
        "starts between 24:00 and 02:00",
        "data STARTS BETWEEN",
        "starts between 08:00 to 09:00",
    ] {
        assert!(is_misunderstood(text), "{text}");
    }
}

#[test]
fn the_strip_shows_a_day_back_and_a_day_ahead() {
    let (from, to) = PageQuery::default().strip_span(now());
    assert_eq!(
        (instant_text(from).as_str(), instant_text(to).as_str()),
        ("2026-11-26T21:00Z", "2026-11-28T21:00Z")
    );
}

#[test]
fn names_are_escaped_in_addresses() {
    let cron_job = CronJobName {
        namespace: "a/b".into(),
        name: "<c>?#%".into(),
    };
    assert_eq!(cron_job_url(&cron_job), "/cronjobs/a%2Fb/%3Cc%3E%3F%23%25");
    assert!(parse_cron_job("data", "compact-eu.v2").is_ok());
    for (namespace, name) in [
        ("", "a"),
        ("a.b", "a"),
        ("data", ""),
        ("data", "-a"),
        ("data", "a/b"),
        ("data", "Ä"),
    ] {
        assert!(parse_cron_job(namespace, name).is_err(), "{namespace}/{name}");
    }
}
