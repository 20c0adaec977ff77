//! What the parts of the page show, and where their links lead.

use std::collections::BTreeSet;

use axum::http::StatusCode;

use super::{
    Answer, app, fixture, get,
    markup::{Element, elements, visible_text},
};

async fn elements_at(uri: &str) -> (Answer, Vec<Element>) {
    let answer = get(&app(fixture::small()), uri).await;
    assert_eq!(answer.status, StatusCode::OK, "{uri}: {}", visible_text(&answer.text));
    let elements = elements(&answer.text);
    (answer, elements)
}

fn count(elements: &[Element], is_wanted: impl Fn(&Element) -> bool) -> usize {
    elements.iter().filter(|element| is_wanted(element)).count()
}

#[tokio::test]
async fn the_page_has_all_parts_in_order() {
    let (answer, elements) = elements_at("/").await;
    let parts: Vec<&str> = elements
        .iter()
        .filter_map(|element| element.attribute("data-part"))
        .collect();
    let expected = [
        "header",
        "banners",
        "notes",
        "tiles",
        "strip",
        "attention",
        "advice",
        "count",
        "search",
        "filters",
        "rows",
        "pages",
    ];
    assert_eq!(parts, expected);
    assert_eq!(count(&elements, |element| element.has_class("tile")), 6);
    assert_eq!(count(&elements, |element| element.has_class("pill")), 6);
    assert_eq!(
        count(&elements, |element| element.attribute("scope") == Some("row")),
        100
    );
    assert!(
        answer
            .text
            .contains("<span class=\"squares\" role=\"img\" title=\"4 succeeded, 5 lost, 1 succeeded\">")
    );
    let text = visible_text(&answer.text);
    for sentence in [
        "run by kube-controller-manager, 12 s late, at its limit (9 Jobs a second for 58 s from 18:47) · history since 3 Nov",
        "as of 22:04:58 CET",
        "296 CronJobs, 4 suspended, 1 never",
        "7 late now, 120 in 24 h",
        "5 lost in 24 h",
        "1,840 due in the next hour",
        "peak Sat 02:00: 412 starts in one minute, 118 of them in data",
        "clocks of America/Invented go back 1 h at Sat 15:00 CET",
        "lost 5 runs: kube-controller-manager started nothing between 18:47 and 18:52",
        "every minute, 18:00–18:59America/New_York · Forbid · deadline 1 m",
        "held back1 h 44 m ago",
        "22 m · 31 m",
        "in 4 h 25 mSat 02:30 CET",
        "1 to 100 of 296",
    ] {
        assert!(text.contains(sentence), "{sentence:?} is not in {text}");
    }
}

#[tokio::test]
async fn the_state_in_the_address_selects_rows_and_is_kept_by_links() {
    let (_, elements) =
        elements_at("/?q=nightly&namespace=reports&state=lost&from=2026-11-28T01:00Z&to=2026-11-28T02:00Z").await;
    assert_eq!(count(&elements, |element| element.attribute("scope") == Some("row")), 1);
    let value = |name| {
        let input = elements.iter().find(|element| element.attribute("name") == Some(name));
        input.and_then(|input| input.attribute("value")).unwrap()
    };
    let values = ["q", "namespace", "state", "from", "to"].map(value);
    assert_eq!(
        values,
        ["nightly", "reports", "lost", "2026-11-28T01:00Z", "2026-11-28T02:00Z"]
    );
    let hrefs: BTreeSet<&str> = elements
        .iter()
        .filter_map(|element| element.attribute("href"))
        .collect();
    for href in [
        "/?q=nightly&namespace=reports&state=late&from=2026-11-28T01:00Z&to=2026-11-28T02:00Z#cronjobs",
        "/?q=nightly&namespace=reports&from=2026-11-28T01:00Z&to=2026-11-28T02:00Z#cronjobs",
        "/?q=nightly&state=lost&from=2026-11-28T01:00Z&to=2026-11-28T02:00Z#cronjobs",
        "/?q=nightly&namespace=reports&state=lost#cronjobs",
        "/?q=nightly&namespace=reports&state=lost&from=2026-11-28T00:00Z&to=2026-11-28T01:00Z#strip",
        "/?q=nightly&namespace=reports&state=lost&from=2026-11-28T01:05Z&to=2026-11-28T01:10Z",
    ] {
        assert!(hrefs.contains(href), "{href} is not in {hrefs:#?}");
    }
}

#[tokio::test]
async fn pages_follow_each_other() {
    let (answer, elements) = elements_at("/?page=3").await;
    assert_eq!(
        count(&elements, |element| element.attribute("scope") == Some("row")),
        96
    );
    assert!(visible_text(&answer.text).contains("201 to 296 of 296"));
    let relation = |name| elements.iter().find(|element| element.attribute("rel") == Some(name));
    assert_eq!(
        relation("prev").and_then(|link| link.attribute("href")),
        Some("/?page=2#cronjobs")
    );
    assert_eq!(relation("next"), None);
}

#[tokio::test]
async fn one_cron_job_has_its_slots_runs_and_commands() {
    let (answer, elements) = elements_at("/cronjobs/reports/nightly-close").await;
    let bars = |class| count(&elements, |element| element.name == "rect" && element.has_class(class));
    assert_eq!(
        (bars("lost"), bars("late"), bars("unknown"), bars("skipped")),
        (5, 2, 3, 2)
    );
    assert_eq!(
        count(&elements, |element| element.name == "th"
            && element.attribute("scope") == Some("row")),
        51
    );
    let text = visible_text(&answer.text);
    for sentence in [
        "Fri 27 Nov 16:24 ESTstarts 16:25 ESTin 20 m 02 s",
        "spread: starts 1m after each slot, in a window of 10m",
        "Warning: annotation cronwheel.dev/missed-runs is \"storage\"",
        "frozen until then: 3 runs before it do not start at their times; the latest run before it starts then",
        "clocks of America/New_York go forward 1 h",
        "the latest started 4 m 12 s after its slot",
        "Of the last 20 runs, up to 3 were under way at once.",
        "lost",
        "startingDeadlineSeconds passed before the controller started it",
        "held back",
        "kubectl --context prod -n reports logs job/job-29930220 --all-containers",
        "CronJob reports/nightly-close: storage",
        "cronwheel would have started the 5 lost slots",
        "app=storage",
        "starts no Job: Forbid, and the earlier Job still runs (B-10.3)",
    ] {
        assert!(text.contains(sentence), "{sentence:?} is not in {text}");
    }
    let (without, _) = elements_at("/cronjobs/reports/nightly-close?explain=no").await;
    assert!(!without.text.contains("<pre"));
}

#[tokio::test]
async fn every_link_leads_somewhere() {
    let app = app(fixture::small());
    let mut seen = BTreeSet::new();
    for start in [
        "/",
        "/?from=2026-11-28T01:00Z&to=2026-11-28T02:00Z",
        "/cronjobs/data/compact-eu",
    ] {
        let page = get(&app, start).await.text;
        let ids: BTreeSet<String> = elements(&page)
            .iter()
            .filter_map(|element| element.attribute("id").map(Into::into))
            .collect();
        for href in elements(&page).iter().filter_map(|element| element.attribute("href")) {
            let (path, anchor) = href.split_once('#').unwrap_or((href, ""));
            if path.is_empty() {
                assert!(ids.contains(anchor), "{href} on {start}");
            } else if seen.insert(href.to_owned()) {
                let known = !path.starts_with("/cronjobs/data/load-")
                    && !path.ends_with("/dunning")
                    && !path.ends_with("/import-prices");
                let expected = if known { StatusCode::OK } else { StatusCode::NOT_FOUND };
                let answer = get(&app, path).await;
                assert_eq!(answer.status, expected, "{href} on {start}");
                assert!(
                    anchor.is_empty() || answer.text.contains(&format!("id=\"{anchor}\"")),
                    "{href} on {start}"
                );
            }
        }
    }
    assert!(seen.len() > 150, "{} links", seen.len());
}

#[tokio::test]
async fn screen_readers_and_keyboards_find_their_way() {
    for uri in ["/", "/?state=lost", "/cronjobs/reports/nightly-close"] {
        let (_, elements) = elements_at(uri).await;
        for name in ["h1", "main", "header"] {
            assert_eq!(count(&elements, |element| element.name == name), 1, "{name} on {uri}");
        }
        for element in &elements {
            let has = |name| element.attribute(name).is_some();
            let is_fine = match element.name.as_str() {
                "html" => element.attribute("lang") == Some("en"),
                "th" => has("scope"),
                "nav" | "dialog" => has("aria-label"),
                "svg" => has("aria-label") && has("role") || has("aria-hidden"),
                "div" if element.has_class("scroll") => has("tabindex") && has("aria-label"),
                _ => true,
            };
            assert!(is_fine, "{element:?} on {uri}");
        }
        let skip = elements.iter().find(|element| element.has_class("skip")).unwrap();
        assert_eq!(skip.attribute("href"), Some("#main"));
    }
}

#[tokio::test]
async fn the_counts_of_cells_are_those_of_the_strip() {
    let answer = get(
        &app(fixture::small()),
        "/strip.json?from=2026-11-27T08:00Z&to=2026-11-27T20:00Z",
    )
    .await;
    let counts: serde_json::Value = serde_json::from_str(&answer.text).unwrap();
    assert_eq!(counts["cell_seconds"], 900);
    assert_eq!(counts["offsets"], serde_json::json!([[1_795_766_400, 3_600, "CET"]]));
    assert_eq!(counts["rows"][3]["namespace"], "platform");
    assert_eq!(counts["rows"][3]["cells"].as_array().unwrap().len(), 48);
    assert_eq!(counts["rows"][0]["cells"][15], serde_json::json!([5, 0, 0, 2]));
}

#[tokio::test]
async fn nothing_is_called_well_before_everything_is_listed() {
    let calm = [
        "Nothing known is wrong",
        "look harmless",
        "There are no CronJobs",
        "no Job of the last",
    ];
    for is_listed in [false, true] {
        let mut fleet = fixture::small();
        fleet.heading.is_listed = is_listed;
        fleet.rows.clear();
        fleet.overview.attention.clear();
        fleet.overview.advice.clear();
        fleet.overview.controllers.clear();
        let text = get(&app(fleet), "/").await.text;
        for sentence in calm {
            assert_eq!(text.contains(sentence), is_listed, "{sentence}");
        }
        assert_eq!(text.matches("ot known yet").count(), if is_listed { 0 } else { 3 });
        assert!(
            !text.contains("every CronJob ran on time"),
            "runs before the start may be unknown"
        );
    }
}
