//! What an on-call person looks at first: whether runs start on time, who is the cause, since when, for whom, and
//! whether it is over. Details are below the first screen.

use super::{
    columns::INSTANT,
    details,
    model::{Dashboard, Panel, Row, lines, row, stat, table},
    surroundings::PAGE,
};
use crate::alerts;

/// Outcomes of runs that cronwheel or the API server lost.
const LOST: &str = r#"outcome=~"superseded|deadline_exceeded|missed|look_up_refused""#;
/// Answers of an API server that does not do what it is asked for, although the request is right.
const NO_SUCCESS: &str = r#"code=~"429|5..|none""#;

pub(super) fn dashboard() -> Dashboard {
    let first = [on_time(), causes(), since(), named(), clusters()];
    Dashboard {
        name: "fleet",
        title: "cronwheel / Fleet",
        description: "Do runs start on time? If not: is it us, the API server or a tenant, since when, for whom, and is it over?",
        rows: first.into_iter().chain(details::rows()).collect(),
    }
}

/// The starts within the objective, those that started at all, and the lost ones, in a window and by labels.
fn runs(window: &str, by: &str) -> [String; 3] {
    let sum = |series: &str| format!("sum{by} (increase({series}[{window}]))");
    [
        sum(r#"cronwheel_lateness_seconds_bucket{@, le=~"5(\\.0)?"}"#),
        sum("cronwheel_lateness_seconds_count{@}"),
        sum(&format!("cronwheel_instant_outcomes_total{{@, {LOST}}}")),
    ]
}

/// The share of the runs that started on time, as the alerts count it.
fn share_on_time(window: &str, by: &str) -> String {
    let [on_time, started, lost] = runs(window, by);
    format!("{on_time} / ({started} + {lost})")
}

/// The number of runs that started late or were lost.
fn late_or_lost(window: &str, by: &str) -> String {
    let [on_time, started, lost] = runs(window, by);
    format!("{started} + {lost} - {on_time}")
}

fn late_now(by: &str) -> String {
    format!(
        r#"sum{by} (cronwheel_cron_job_trouble{{@, kind="late"}} or cronwheel_cron_job_trouble_omitted{{@, kind="late"}})"#
    )
}

/// The share of requests with these codes in the last five minutes.
fn share_of_answers(codes: &str, by: &str) -> String {
    format!(
        "sum{by} (rate(cronwheel_api_requests_total{{@, {codes}}}[5m])) / \
         sum{by} (rate(cronwheel_api_requests_total{{@}}[5m]))"
    )
}

fn on_time() -> Row {
    let budget = alerts::budget();
    let fast = 1.0 - alerts::limit_of("CronwheelBudgetBurnsFast");
    row(
        "Do runs start on time, and is it over?",
        [
            stat(
                "On time",
                "percentunit",
                "Share of the runs that started within 5 s of their slot, over the time that is shown. Lost runs count as late. \
                 Green from the objective on, red where the alert CronwheelBudgetBurnsFast fires. If it is not green, go on with \
                 the next row.",
            )
            .width(6)
            .decimals(2)
            .runbook("CronwheelBudgetBurnsFast")
            .colors("red", [(fast, "orange"), (1.0 - budget, "green")])
            .query("on time", share_on_time("$__range", "")),
            stat(
                "Error budget left, 30 days",
                "percentunit",
                "Share of the late and lost runs of 30 days that the objective still allows. Below 0, the objective is missed. If \
                 Prometheus keeps less than 30 days, it is the budget of what it keeps. With little left, put off risky changes.",
            )
            .width(6)
            .decimals(1)
            .signed()
            .runbook("CronwheelBudgetBurnsSlowly")
            .colors("red", [(0.0, "orange"), (0.25, "green")])
            .query(
                "left",
                format!("1 - (1 - {}) / {budget}", share_on_time("30d", "")),
            ),
            stat(
                "Lost runs",
                "short",
                "Runs that cronwheel or the API server could not start before a later slot or their deadline, over the time that is \
                 shown. The page and cronwheel missed name them, and cronwheel backfill starts them.",
            )
            .decimals(0)
            .runbook("CronwheelBudgetBurnsFast")
            .colors("green", [(0.5, "red")])
            .query("lost", runs("$__range", "")[2].clone()),
            stat(
                "Late or lost, 5 min",
                "short",
                "Runs of the last five minutes that started late or were lost. 0 while On time is not green: it is over.",
            )
            .decimals(0)
            .runbook("CronwheelBudgetBurnsFast")
            .colors("green", [(0.5, "orange"), (4.5, "red")])
            .query("late or lost", late_or_lost("5m", "")),
            stat(
                "CronJobs late now",
                "short",
                "CronJobs with a due run whose Job has not been created, although Forbid does not hold it back. If Tenants: refused \
                 is not green, their Jobs may be refused. The table CronJobs in trouble names them.",
            )
            .decimals(0)
            .runbook("CronwheelCronJobInTrouble")
            .colors("green", [(1.0, "orange"), (10.0, "red")])
            .query("late", late_now("")),
        ],
    )
}

fn causes() -> Row {
    let [replicas, shards, clocks, permissions] = own_causes();
    let [throttled, unanswered] = causes_of_the_api_server();
    let [refused, trouble] = causes_of_tenants();
    row(
        "Is it us, the API server or a tenant?",
        [
            replicas,
            shards,
            clocks,
            permissions,
            throttled,
            unanswered,
            refused,
            trouble,
        ],
    )
}

fn own_causes() -> [Panel; 4] {
    [
        stat(
            "Us: replicas",
            "short",
            "Replicas that are scraped. With one, a crash is a pause of seconds. With none, look at the Pods and at the scrapes.",
        )
        .runbook("CronwheelAbsent")
        .colors("red", [(1.0, "orange"), (2.0, "green")])
        .query("replicas", "count(cronwheel_leader{@}) or vector(0)"),
        stat(
            "Us: no leader",
            "short",
            "Shards that no replica leads, in the cluster with the most. Their CronJobs start nothing. Above 0 for seconds after a \
             crash; for longer, the dashboard Shards and replicas has the reason.",
        )
        .runbook("CronwheelNoLeader")
        .colors("green", [(1.0, "red")])
        .query("shards", "max(cronwheel_shards_unowned{@})"),
        stat(
            "Us: clock alarms",
            "short",
            "Replicas that start nothing because their clock differs from the API server's. Repair the time service of their nodes.",
        )
        .runbook("CronwheelClockAlarm")
        .colors("green", [(1.0, "red")])
        .query("alarms", "sum(cronwheel_clock_alarm{@})"),
        stat(
            "Us: no permission",
            "short",
            "Permissions that the account lacks. The log names them and what does not work. Apply rbac.yaml.",
        )
        .runbook("CronwheelPermissionMissing")
        .colors("green", [(1.0, "red")])
        .query(
            "permissions",
            "sum(max by (verb, resource) (cronwheel_permissions_missing{@}))",
        ),
    ]
}

fn causes_of_the_api_server() -> [Panel; 2] {
    [
        stat(
            "API: throttled",
            "percentunit",
            "Share of the requests of the last five minutes that the API server answered with 429. In red, the alert fires: look at \
             FlowSchemas and priority levels.",
        )
        .colors("green", [(0.01, "orange")])
        .alert("CronwheelThrottled")
        .query("throttled", share_of_answers(r#"code="429""#, "")),
        stat(
            "API: failed",
            "percentunit",
            "Share of the requests of the last five minutes with an answer of 5xx or without one. The API server, a webhook or the \
             network is the cause: look there, not at cronwheel.",
        )
        .runbook("CronwheelBudgetBurnsFast")
        .colors("green", [(0.01, "orange"), (0.05, "red")])
        .query("failed", share_of_answers(r#"code=~"5..|none""#, "")),
    ]
}

fn causes_of_tenants() -> [Panel; 2] {
    [
        stat(
            "Tenants: refused",
            "percentunit",
            "Share of the CronJobs whose last Job the API server refused. A few: a quota or the Job itself, so tell the tenant. In \
             red: probably a policy or a webhook of the cluster.",
        )
        .colors("green", [(0.001, "yellow")])
        .alert("CronwheelManyCreatesRefused")
        .query(
            "refused",
            "sum(cronwheel_cron_jobs_refused{@}) / sum(cronwheel_cron_jobs_led{@})",
        ),
        stat(
            "Tenants: trouble",
            "short",
            "CronJobs that fail, have no success, are blocked or invalid, each kind counted. Their owners can repair them; the tables \
             below name them. Many at once have one cause.",
        )
        .runbook("CronwheelNamespaceInTrouble")
        .colors("green", [(1.0, "yellow")])
        .query(
            "in trouble",
            "sum(cronwheel_cron_job_trouble{@, kind!=\"late\"} or cronwheel_cron_job_trouble_omitted{@, kind!=\"late\"})",
        ),
    ]
}

fn since() -> Row {
    let [on_time, started, _] = runs("$__rate_interval", "");
    row(
        "Since when? Lines across all graphs: restarts, moves of shards, pages",
        [
            lines(
                "Late and lost runs",
                "short",
                "Runs that started late, and lost runs by reason, in each interval. superseded: a later slot came first. \
                 deadline_exceeded: the starting deadline passed. missed: missed-runs is skip. look_up_refused: a permission is \
                 missing. The first point above 0 is the beginning.",
            )
            .runbook("CronwheelBudgetBurnsFast")
            .query("late", format!("{started} - {on_time}"))
            .query(
                "{{outcome}}",
                format!("sum by (outcome) (increase(cronwheel_instant_outcomes_total{{@, {LOST}}}[$__rate_interval]))"),
            ),
            lines(
                "Us: part of the shards led",
                "short",
                "Part of the shards that the scraped replicas lead: 1 for each installation, 0 without a replica. Where it falls, \
                 CronJobs start nothing, or a replica was not scraped. If it falls before the late runs, cronwheel or its nodes are \
                 the cause, also when everything above is green again.",
            )
            .runbook("CronwheelNoLeader")
            .query("led", "sum(cronwheel_led_ratio{@}) or vector(0)"),
            lines(
                "Lateness",
                "s",
                "Time from a slot until the request for its Job is sent. Deliberate delays do not count. Above the line, runs miss the \
                 objective. If it rises without errors of the API server, look at the details of what waits.",
            )
            .colors("transparent", [(LATENESS_SECONDS, "red")])
            .runbook("CronwheelBudgetBurnsFast")
            .quantiles("cronwheel_lateness_seconds", ""),
            lines(
                "API server: answers without success",
                "reqps",
                "Requests a second that were throttled (429), failed (5xx) or got no answer (none). If these begin before the late \
                 runs, the API server is the cause.",
            )
            .runbook("CronwheelThrottled")
            .query(
                "{{code}}",
                format!("sum by (code) (rate(cronwheel_api_requests_total{{@, {NO_SUCCESS}}}[$__rate_interval]))"),
            ),
        ],
    )
}

/// The objective, which the chart replaces by `latenessSeconds`.
const LATENESS_SECONDS: f64 = 5.0;

fn named() -> Row {
    let page = format!("{PAGE}/cronjobs/${{__data.fields.Namespace}}/${{__data.fields.CronJob}}");
    let since = "cronwheel_cron_job_trouble_since_timestamp_seconds{@}";
    let n_cron_jobs = |selector: &str| {
        format!(
            "sum by (cluster, exported_namespace) (max by (cluster, exported_namespace, cronjob) \
             (cronwheel_cron_job_trouble{{{selector}}}))"
        )
    };
    row(
        "Which ones, since when?",
        [
            table(
                "Alerts that fire",
                "The alerts of the chart, the longest first, without those of single CronJobs and namespaces. Empty without the alerts \
                 of the chart. Begin with the earliest page: the others often follow from it.",
            )
            .width(8)
            .label("cluster", "Cluster")
            .label("alertname", "Alert")
            .link("Runbooks", alerts::runbooks())
            .label("severity", "Severity")
            .label("instance", "Replica")
            .column(
                "Since",
                INSTANT,
                "min by (cluster, alertname, severity, instance) (\
                 ALERTS_FOR_STATE{#, alertname=~\"Cronwheel.+\", alertname!~\"Cronwheel(CronJob|Namespace)InTrouble\"} \
                 and ignoring (alertstate) ALERTS{alertstate=\"firing\"}) * 1000",
            ),
            table(
                "Namespaces in trouble",
                "Namespaces with CronJobs in trouble, the longest first. Many that began at the same time have one cause: compare Since \
                 with the graphs. Trouble of days is the tenant's.",
            )
            .runbook("CronwheelNamespaceInTrouble")
            .width(7)
            .label("cluster", "Cluster")
            .label("exported_namespace", "Namespace")
            .column("Since", INSTANT, format!("min by (cluster, exported_namespace) ({since}) * 1000"))
            .column("CronJobs", "short", n_cron_jobs("@"))
            .cells("green", [(1.0, "yellow")])
            .column("Late", "short", n_cron_jobs("@, kind=\"late\""))
            .cells("green", [(1.0, "red")]),
            table(
                "CronJobs in trouble",
                "CronJobs in trouble, the longest first: at most 500, and namespaces take turns. late is a matter of cronwheel or the \
                 API server, the other kinds of the owner. The name leads to the page with every run and its reason.",
            )
            .runbook("CronwheelCronJobInTrouble")
            .width(9)
            .label("cluster", "Cluster")
            .label("exported_namespace", "Namespace")
            .label("cronjob", "CronJob")
            .link("Page of the CronJob", page)
            .label("kind", "Trouble")
            .column(
                "Since",
                INSTANT,
                format!("min by (cluster, exported_namespace, cronjob, kind) ({since}) * 1000"),
            ),
        ],
    )
}

fn clusters() -> Row {
    let by = " by (cluster)";
    row(
        "Which clusters?",
        [table(
            "Clusters",
            "Every cluster that was scraped in the time that is shown, the one with the earliest page first. A cluster without replicas \
             is not scraped any more: look at its Pods. Choose a cluster above to see it alone.",
        )
        .runbook("CronwheelAbsent")
        .label("cluster", "Cluster")
        .column("Lost runs", "short", runs("$__range", by)[2].clone())
        .cells("green", [(0.5, "red")])
        .column("On time", "percentunit", share_on_time("$__range", by))
        .cells(
            "red",
            [
                (1.0 - alerts::limit_of("CronwheelBudgetBurnsFast"), "orange"),
                (1.0 - alerts::budget(), "green"),
            ],
        )
        .column("Late or lost, 5 min", "short", late_or_lost("5m", by))
        .cells("green", [(0.5, "orange"), (4.5, "red")])
        .column("Late now", "short", late_now(by))
        .cells("green", [(1.0, "orange"), (10.0, "red")])
        .column("Replicas", "short", "count by (cluster) (cronwheel_leader{@})")
        .cells("red", [(1.0, "orange"), (2.0, "green")])
        .missing("none", "red")
        .column(
            "Shards without a leader",
            "short",
            "max by (cluster) (cronwheel_shards_unowned{@})",
        )
        .cells("green", [(1.0, "red")])
        .column("Throttled", "percentunit", share_of_answers(r#"code="429""#, by))
        .cells(
            "green",
            [(0.01, "orange"), (alerts::limit_of("CronwheelThrottled"), "red")],
        )
        .column(
            "Page since",
            INSTANT,
            "min by (cluster) (ALERTS_FOR_STATE{#, alertname=~\"Cronwheel.+\", severity=\"critical\"} \
             and ignoring (alertstate) ALERTS{alertstate=\"firing\"}) * 1000",
        )],
    )
}
