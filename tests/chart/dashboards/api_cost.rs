//! The load of cronwheel on the API server, and the responses of the API server.

use super::model::{Dashboard, lines, row, stat};

const WRITES: &str =
    r#"sum(rate(cronwheel_api_requests_total{@, verb=~"create|update|patch|delete"}[$__rate_interval]))"#;

pub(super) fn dashboard() -> Dashboard {
    Dashboard {
        name: "api_cost",
        title: "cronwheel / API cost",
        description: "What cronwheel costs the API server, and how the API server answers.",
        rows: vec![cost(), responses(), events()],
    }
}

fn cost() -> super::model::Row {
    row(
        "Cost",
        [
            stat(
                "Writes per run",
                "short",
                "Writes of all kinds for each created Job. About 4: the create, two statuses and a delete; Events apart.",
            )
            .query(
                "writes",
                "sum(increase(cronwheel_api_requests_total{@, verb=~\"create|update|patch|delete\", \
                 resource=~\"jobs|cronjobs/status\"}[$__range])) / \
                 sum(increase(cronwheel_instant_outcomes_total{@, outcome=\"created\"}[$__range]))",
            ),
            stat(
                "Processor time per run",
                "s",
                "Processor time of all replicas for each created Job.",
            )
            .query(
                "time",
                "sum(increase(process_cpu_seconds_total{@}[$__range]) and on (job, instance) cronwheel_build_info{@}) / \
                 sum(increase(cronwheel_instant_outcomes_total{@, outcome=\"created\"}[$__range]))",
            ),
            stat(
                "Throttled requests",
                "percentunit",
                "Share of the requests that the API server answered with 429, over the time that is shown.",
            )
            .query(
                "throttled",
                "sum(increase(cronwheel_api_requests_total{@, code=\"429\"}[$__range])) / \
                 sum(increase(cronwheel_api_requests_total{@}[$__range]))",
            ),
            lines("Requests by kind", "reqps", "Requests a second by verb and resource.").query(
                "{{verb}} {{resource}}",
                "sum by (verb, resource) (rate(cronwheel_api_requests_total{@}[$__rate_interval]))",
            ),
            lines("Writes", "reqps", "Requests a second that change something, of all kinds together.")
                .query("writes", WRITES),
        ],
    )
}

fn responses() -> super::model::Row {
    row(
        "Answers",
        [
            lines(
                "Answers by code",
                "reqps",
                "409 on statuses: another writer. 429: throttled. none: no answer, the network or the API server is down.",
            )
            .query("{{code}}", "sum by (code) (rate(cronwheel_api_requests_total{@}[$__rate_interval]))"),
            lines(
                "Time until the answer",
                "s",
                "Time from sending a request until its answer, by verb and resource.",
            )
            .quantiles("cronwheel_api_request_duration_seconds", "verb, resource"),
            lines(
                "Requests in flight",
                "short",
                "Requests about Jobs in flight, and their limit, which adapts to the answers.",
            )
            .query("in flight", "sum(cronwheel_dispatch_inflight{@})")
            .query("limit", "sum(cronwheel_dispatch_inflight_limit{@})"),
        ],
    )
}

fn events() -> super::model::Row {
    row(
        "Events",
        [
            lines("Events", "ops", "Events by result. Dropped Events lose no runs.").query(
                "{{result}}",
                "sum by (result) (rate(cronwheel_events_total{@}[$__rate_interval]))",
            ),
        ],
    )
}
