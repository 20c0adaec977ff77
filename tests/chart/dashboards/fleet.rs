//! The lateness of Jobs, and the outcomes of runs without a Job.

use super::model::{Dashboard, heatmap, lines, row, stat};

/// Outcomes of runs that cronwheel or the API server lost.
const LOST: &str = r#"outcome=~"superseded|deadline_exceeded|look_up_refused""#;

pub(super) fn dashboard() -> Dashboard {
    Dashboard {
        name: "fleet",
        title: "cronwheel / Fleet",
        description: "Are Jobs on time, and if not, why?",
        rows: vec![on_time(), outcomes(), trouble(), waiting(), errors(), objects()],
    }
}

fn on_time() -> super::model::Row {
    let lost = format!("sum(increase(cronwheel_instant_outcomes_total{{@, {LOST}}}[$__range]))");
    row(
        "Are Jobs on time?",
        [
            stat(
                "Punctual starts",
                "percentunit",
                "Share of the starts within 5 s of their slot, over the time that is shown. The objective is 99.9 %.",
            )
            .query(
                "punctual",
                "sum(increase(cronwheel_lateness_seconds_bucket{@, le=~\"5(\\\\.0)?\"}[$__range])) / \
                 sum(increase(cronwheel_lateness_seconds_count{@}[$__range]))",
            ),
            stat(
                "Lost runs",
                "short",
                "Runs that cronwheel or the API server could not start before a later slot or their deadline, over the \
                 time that is shown.",
            )
            .query("lost", lost),
            stat("Replicas", "short", "Replicas that are scraped.").query("replicas", "count(cronwheel_leader{@})"),
            stat(
                "Shards without a leader",
                "short",
                "Shards that no replica leads. Their CronJobs start nothing. Above 0 for seconds after a crash.",
            )
            .query("shards", "max(cronwheel_shards_unowned{@})"),
            stat(
                "Clock alarms",
                "short",
                "Replicas whose clock differs from the API server's. They start nothing.",
            )
            .query("alarms", "sum(cronwheel_clock_alarm{@})"),
            stat(
                "Missing permissions",
                "short",
                "Permissions that the account lacks. The log names them.",
            )
            .query(
                "permissions",
                "sum(max by (verb, resource) (cronwheel_permissions_missing{@}))",
            ),
            lines(
                "Lateness",
                "s",
                "Time from a slot until the request for its Job is sent. Deliberate delays do not count.",
            )
            .quantiles("cronwheel_lateness_seconds", ""),
            heatmap(
                "Lateness of all starts",
                "s",
                "How many starts were how late. Bursts at :00 show as columns.",
            )
            .query(
                "{{le}}",
                "sum by (le) (increase(cronwheel_lateness_seconds_bucket{@}[$__rate_interval]))",
            ),
            lines(
                "Creation skew",
                "s",
                "Time from a slot to the creationTimestamp of its Job, as the built-in controller measures it.",
            )
            .quantiles("cronjob_controller_job_creation_skew_duration_seconds", ""),
        ],
    )
}

fn outcomes() -> super::model::Row {
    row(
        "What becomes of due runs",
        [
            lines("Runs that become due", "ops", "Due runs a second. Follows the schedules of the cluster.")
                .query("due", "sum(rate(cronwheel_due_instants_total{@}[$__rate_interval]))"),
            lines(
                "Outcomes",
                "ops",
                "How due runs ended. Everything but created and adopted is a run without a Job.",
            )
            .query(
                "{{outcome}}",
                "sum by (outcome) (rate(cronwheel_instant_outcomes_total{@}[$__rate_interval]))",
            ),
            lines(
                "Open runs",
                "short",
                "Due runs that have not ended: ordered, retried, or held back by a running Job. Falls after each burst.",
            )
            .query("open", "sum(cronwheel_instants_open{@})"),
        ],
    )
}

fn trouble() -> super::model::Row {
    row(
        "CronJobs in trouble",
        [
            lines(
                "CronJobs in trouble, by kind",
                "short",
                "CronJobs that fail, are late, without success, blocked or invalid. Those without a series of their own \
                 count too.",
            )
            .query(
                "{{kind}}",
                "sum by (kind) (cronwheel_cron_job_trouble{@} or cronwheel_cron_job_trouble_omitted{@})",
            ),
            lines(
                "Which CronJobs",
                "short",
                "One line for each CronJob in trouble and each kind. At most 500 are named, and namespaces take turns.",
            )
            .query(
                "{{exported_namespace}}/{{cronjob}} {{kind}}",
                "max by (exported_namespace, cronjob, kind) (cronwheel_cron_job_trouble{@})",
            ),
        ],
    )
}

fn waiting() -> super::model::Row {
    row(
        "What waits",
        [
            lines(
                "Backlog of requests",
                "short",
                "Requests about Jobs that wait to be sent, by lane. It should fall to 0 between bursts.",
            )
            .query("{{lane}}", "sum by (lane) (cronwheel_dispatch_backlog{@})"),
            lines(
                "Statuses that wait",
                "short",
                "Status writes that wait behind creates. No run depends on them.",
            )
            .query("waiting", "sum(cronwheel_status_pending{@})"),
            lines(
                "How long it waits",
                "s",
                "Time for which creates have waited without a pause, and the age of the oldest status. Both fall to 0 after \
                 a burst.",
            )
            .query("creates", "max(cronwheel_dispatch_busy_seconds{@})")
            .query("statuses", "max(cronwheel_status_oldest_seconds{@})"),
            lines(
                "Age of statuses",
                "s",
                "Time from the first change in a status until it is written.",
            )
            .quantiles("cronwheel_status_age_seconds", ""),
        ],
    )
}

fn errors() -> super::model::Row {
    row(
        "Errors",
        [
            lines(
                "Refused creates",
                "short",
                "CronJobs whose last create the API server refused, and the least number of their namespaces.",
            )
            .query("CronJobs", "sum(cronwheel_cron_jobs_refused{@})")
            .query("namespaces", "max(cronwheel_namespaces_refused{@})"),
            lines(
                "Full queues",
                "ops",
                "Requests that found their queue full and are retried later, by queue.",
            )
            .query(
                "{{queue}}",
                "sum by (queue) (rate(cronwheel_queue_overflows_total{@}[$__rate_interval]))",
            ),
            lines(
                "Objects that cannot be decoded",
                "ops",
                "Received objects that could not be decoded, and panics on CronJobs. Events name the field or the CronJob.",
            )
            .query(
                "{{resource}}",
                "sum by (resource) (rate(cronwheel_undecodable_objects_total{@}[$__rate_interval]))",
            )
            .query("panics", "sum(rate(cronwheel_panics_total{@}[$__rate_interval]))"),
            lines(
                "Jobs that no run explains",
                "ops",
                "Jobs of CronJobs that were not started for a slot, such as manual runs.",
            )
            .query(
                "Jobs",
                "sum(rate(cronwheel_unexpected_jobs_total{@}[$__rate_interval]))",
            )
            .query(
                "asked for: {{result}}",
                "sum by (result) (rate(cronwheel_runs_asked_for_total{@}[$__rate_interval]))",
            ),
        ],
    )
}

fn objects() -> super::model::Row {
    row(
        "Objects in memory",
        [
            lines(
                "CronJobs and Jobs",
                "short",
                "Objects in memory, those of all replicas together.",
            )
            .query("CronJobs", "sum(cronwheel_cron_jobs{@})")
            .query("Jobs", "sum(cronwheel_jobs{@})")
            .query("armed timers", "sum(cronwheel_wheel_entries{@})")
            .query("managed namespaces", "max(cronwheel_managed_namespaces{@})"),
            lines(
                "Memory of templates",
                "bytes",
                "Memory for templates and metadata of CronJobs. --max-template-memory bounds it for each replica.",
            )
            .query("{{instance}}", "cronwheel_template_bytes{@}"),
            lines(
                "Templates that do not fit",
                "short",
                "CronJobs whose template is not in memory. Each of their runs needs one more request.",
            )
            .query("CronJobs", "sum(cronwheel_templates_not_kept{@})"),
        ],
    )
}
