//! The load of cronwheel on the API server, and the responses of the API server.

use super::model::{Dashboard, lines, row, stat};

const WRITES: &str =
    r#"sum(rate(cronwheel_api_requests_total{@, verb=~"create|update|patch|delete"}[$__rate_interval]))"#;

pub(super) fn dashboard() -> Dashboard {
    Dashboard {
        name: "api_cost",
        title: "cronwheel / API cost",
        description: "Is it the API server? What cronwheel costs it, and how it answers.",
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
                "Writes of all kinds for each created Job. About 4: the create, two statuses and a delete; Events apart. Much more: \
                 look at the answers by code for writes that are repeated.",
            )
            .colors("green", [(6.0, "orange"), (12.0, "red")])
            .query(
                "writes",
                "sum(increase(cronwheel_api_requests_total{@, verb=~\"create|update|patch|delete\", \
                 resource=~\"jobs|cronjobs/status\"}[$__range])) / \
                 sum(increase(cronwheel_instant_outcomes_total{@, outcome=\"created\"}[$__range]))",
            ),
            stat(
                "Processor time per run",
                "s",
                "Processor time of all replicas for each created Job. Some milliseconds. Much more with few runs is normal: idle \
                 replicas need some too.",
            )
            .colors("green", [(0.1, "orange"), (1.0, "red")])
            .query(
                "time",
                "sum(increase(process_cpu_seconds_total{@}[$__range]) and on (job, instance) cronwheel_build_info{@}) / \
                 sum(increase(cronwheel_instant_outcomes_total{@, outcome=\"created\"}[$__range]))",
            ),
            stat(
                "Throttled requests",
                "percentunit",
                "Share of the requests that the API server answered with 429, over the time that is shown. In red, look at \
                 FlowSchemas and priority levels.",
            )
            .colors("green", [(0.01, "orange")])
            .alert("CronwheelThrottled")
            .query(
                "throttled",
                "sum(increase(cronwheel_api_requests_total{@, code=\"429\"}[$__range])) / \
                 sum(increase(cronwheel_api_requests_total{@}[$__range]))",
            ),
            lines(
                "Requests by kind",
                "reqps",
                "Requests a second by verb and resource. Creates follow the schedules; many lists point to watches that fail.",
            )
            .query(
                "{{verb}} {{resource}}",
                "sum by (verb, resource) (rate(cronwheel_api_requests_total{@}[$__rate_interval]))",
            ),
            lines(
                "Writes",
                "reqps",
                "Requests a second that change something, of all kinds together: what etcd has to store. Spread schedules if the \
                 peaks are too high for it.",
            )
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
                "409 on statuses: another writer. 429: throttled. 403: a permission is missing. none: no answer, the network or the \
                 API server is down.",
            )
            .runbook("CronwheelThrottled")
            .query("{{code}}", "sum by (code) (rate(cronwheel_api_requests_total{@}[$__rate_interval]))"),
            lines(
                "Time until the answer",
                "s",
                "Time from sending a request until its answer, by verb and resource. If only creates of Jobs are slow, look for slow \
                 admission webhooks.",
            )
            .quantiles("cronwheel_api_request_duration_seconds", "verb, resource"),
            lines(
                "Requests in flight",
                "short",
                "Requests about Jobs in flight, and their limit, which adapts to the answers. At the limit for long: the API server is \
                 the bottleneck. A limit at its minimum: it throttles.",
            )
            .runbook("CronwheelBacklogStays")
            .query("in flight", "sum(cronwheel_dispatch_inflight{@})")
            .query("limit", "sum(cronwheel_dispatch_inflight_limit{@})"),
        ],
    )
}

fn events() -> super::model::Row {
    row(
        "Events",
        [lines(
            "Events",
            "ops",
            "Events by result. Dropped Events lose no runs; raise --max-events-per-second if too many are dropped.",
        )
        .query(
            "{{result}}",
            "sum by (result) (rate(cronwheel_events_total{@}[$__rate_interval]))",
        )],
    )
}
