//! The details of the dashboard Fleet, below the first screen.

use super::model::{Row, heatmap, lines, row};

pub(super) fn rows() -> [Row; 4] {
    [outcomes(), waiting(), errors(), objects()]
}

fn outcomes() -> Row {
    row(
        "Details: what becomes of due runs",
        [
            lines(
                "Runs that become due",
                "ops",
                "Due runs a second. Follows the schedules of the cluster. If it falls to 0, look for shards without a leader.",
            )
            .query("due", "sum(rate(cronwheel_due_instants_total{@}[$__rate_interval]))"),
            lines(
                "Outcomes",
                "ops",
                "How due runs ended. Everything but created and adopted is a run without a Job; the Events of the CronJobs have the \
                 reasons.",
            )
            .query(
                "{{outcome}}",
                "sum by (outcome) (rate(cronwheel_instant_outcomes_total{@}[$__rate_interval]))",
            ),
            lines(
                "Open runs",
                "short",
                "Due runs that have not ended: ordered, retried, or held back by a running Job. Falls after each burst. If it only \
                 rises, look at Outcomes and at what waits.",
            )
            .query("open", "sum(cronwheel_instants_open{@})"),
            heatmap(
                "Lateness of all starts",
                "s",
                "How many starts were how late. Bursts at :00 show as columns: spread their schedules if they are too late.",
            )
            .query(
                "{{le}}",
                "sum by (le) (increase(cronwheel_lateness_seconds_bucket{@}[$__rate_interval]))",
            ),
            lines(
                "Creation skew",
                "s",
                "Time from a slot to the creationTimestamp of its Job, as the built-in controller measures it. What it has more than \
                 Lateness is time in the API server.",
            )
            .quantiles("cronjob_controller_job_creation_skew_duration_seconds", ""),
            lines(
                "CronJobs in trouble, by kind",
                "short",
                "CronJobs that fail, are late, without success, blocked or invalid. Those without a series of their own count too. A \
                 sudden rise of many has one cause: an image registry, a quota, a webhook.",
            )
            .runbook("CronwheelManyCronJobsInTrouble")
            .query(
                "{{kind}}",
                "sum by (kind) (cronwheel_cron_job_trouble{@} or cronwheel_cron_job_trouble_omitted{@})",
            ),
        ],
    )
}

fn waiting() -> Row {
    row(
        "Details: what waits",
        [
            lines(
                "Backlog of requests",
                "short",
                "Requests about Jobs that wait to be sent, by lane. It should fall to 0 between bursts. If it stays, the API server \
                 accepts fewer Jobs than are due.",
            )
            .runbook("CronwheelBacklogStays")
            .query("{{lane}}", "sum by (lane) (cronwheel_dispatch_backlog{@})"),
            lines(
                "How long creates wait",
                "s",
                "Time for which creates have waited without a pause. It falls to 0 after a burst. Above the line, the alert fires: look \
                 for slow webhooks and for throttling.",
            )
            .alert("CronwheelBacklogStays")
            .query("creates", "max(cronwheel_dispatch_busy_seconds{@})"),
            lines(
                "Statuses that wait",
                "short",
                "Status writes that wait behind creates. No run depends on them. If they stay, look at the answers of the API server.",
            )
            .runbook("CronwheelStatusesWait")
            .query("waiting", "sum(cronwheel_status_pending{@})"),
            lines(
                "How long statuses wait",
                "s",
                "The age of the oldest status that waits. Above the line, the alert fires: users see an old lastScheduleTime.",
            )
            .alert("CronwheelStatusesWait")
            .query("statuses", "max(cronwheel_status_oldest_seconds{@})"),
            lines(
                "Age of statuses",
                "s",
                "Time from the first change in a status until it is written. Above a few seconds, statuses wait behind creates.",
            )
            .quantiles("cronwheel_status_age_seconds", ""),
        ],
    )
}

fn errors() -> Row {
    row(
        "Details: errors",
        [
            lines(
                "Refused creates",
                "short",
                "CronJobs whose last create the API server refused, and the least number of their namespaces. One namespace: a quota or \
                 the Job itself. Many: a policy or a webhook of the cluster.",
            )
            .runbook("CronwheelManyCreatesRefused")
            .query("CronJobs", "sum(cronwheel_cron_jobs_refused{@})")
            .query("namespaces", "max(cronwheel_namespaces_refused{@})"),
            lines(
                "Full queues",
                "ops",
                "Requests that found their queue full and are retried later, by queue. More CronJobs than one replica can serve, or a \
                 long outage of the API server.",
            )
            .query(
                "{{queue}}",
                "sum by (queue) (rate(cronwheel_queue_overflows_total{@}[$__rate_interval]))",
            ),
            lines(
                "Objects that cannot be decoded",
                "ops",
                "Received objects that could not be decoded, and panics on CronJobs. Events name the field or the CronJob: correct the \
                 field, report the panic.",
            )
            .runbook("CronwheelUndecodableObjects")
            .query(
                "{{resource}}",
                "sum by (resource) (rate(cronwheel_undecodable_objects_total{@}[$__rate_interval]))",
            )
            .query("panics", "sum(rate(cronwheel_panics_total{@}[$__rate_interval]))"),
            lines(
                "CronJobs that cronwheel cannot handle",
                "short",
                "CronJobs that cannot be decoded, and those on which cronwheel panicked, until they change. Most of them start \
                 nothing. The Events UndecodableCronJob and InternalError name them.",
            )
            .runbook("CronwheelPanics")
            .query("not decoded", "max(cronwheel_cron_jobs_undecodable{@})")
            .query("panicked", "max(cronwheel_cron_jobs_panicked{@})"),
            lines(
                "Jobs that no run explains",
                "ops",
                "Jobs of CronJobs that were not started for a slot, such as manual runs. If nobody starts any, find out who creates them.",
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

fn objects() -> Row {
    row(
        "Details: objects in memory",
        [
            lines(
                "CronJobs and Jobs",
                "short",
                "CronJobs and Jobs that a replica keeps in memory: each keeps all. Armed timers are those of all replicas together. Jobs \
                 that only rise lack history limits or ttlSecondsAfterFinished.",
            )
            .query("CronJobs", "max(cronwheel_cron_jobs{@})")
            .query("Jobs", "max(cronwheel_jobs{@})")
            .query("armed timers", "sum(cronwheel_wheel_entries{@})")
            .query("managed namespaces", "max(cronwheel_managed_namespaces{@})"),
            lines(
                "Memory of templates",
                "bytes",
                "Memory for templates and metadata of CronJobs. --max-template-memory bounds it for each replica: raise it with the \
                 memory limit.",
            )
            .query("{{instance}}", "cronwheel_template_bytes{@}"),
            lines(
                "Templates that do not fit",
                "short",
                "CronJobs whose template is not in the memory of a replica. Each of their runs needs one more request. Events TemplateNotKept name them.",
            )
            .runbook("CronwheelTemplatesNotKept")
            .query("CronJobs", "max(cronwheel_templates_not_kept{@})"),
        ],
    )
}
