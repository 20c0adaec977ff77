//! The leaders of the shards, the moves of shards between replicas, and the health of replicas.

use super::model::{Dashboard, Row, lines, row};

pub(super) fn dashboard() -> Dashboard {
    Dashboard {
        name: "shards",
        title: "cronwheel / Shards and replicas",
        description: "Is it us? Which replica leads how many shards, how shards move, and how each replica is.",
        rows: vec![leadership(), moves(), clocks(), watches(), processes()],
    }
}

fn leadership() -> Row {
    row(
        "Leadership",
        [
            lines("Shards led", "short", "Shards that each replica leads. Nearly equal while no replica comes or goes. If one stays at 0, the panel \
                 Replicas that take no shards has the reason.")
                .query("{{instance}}", "cronwheel_leader{@}"),
            lines(
                "CronJobs led",
                "short",
                "CronJobs of the shards that each replica leads. Their sum is what an autoscaler divides by the CronJobs per replica.",
            )
            .query("{{instance}}", "cronwheel_cron_jobs_led{@}"),
            lines(
                "Part of the shards led",
                "percentunit",
                "Part of the shards that the scraped replicas lead together. Below 1, a shard has no leader or a replica was not \
                 scraped: look at the two panels below.",
            )
            .query("all replicas", "sum(cronwheel_led_ratio{@})"),
            lines(
                "Shards without a leader",
                "short",
                "Shards without a leader, as a replica observes. Their CronJobs start nothing. If it stays above 0, look at the \
                 panels beside it.",
            )
            .runbook("CronwheelNoLeader")
            .query("without a leader", "max(cronwheel_shards_unowned{@})"),
            lines(
                "Longest time without a leader",
                "s",
                "How long a shard has been without a leader. Above 11 s, replicas cannot take it: look at their logs and \
                 permissions. Above the line, the alert fires.",
            )
            .alert("CronwheelNoLeader")
            .query("age", "max(cronwheel_shards_unowned_age_seconds{@})"),
            lines(
                "Replicas that take no shards",
                "short",
                "Replicas that take no shards, by reason. none: all take shards. The runbook has the remedy for each reason.",
            )
            .runbook("CronwheelReplicaTakesNoShards")
            .query(
                "{{reason}}",
                "sum by (reason) (cronwheel_takes_no_shards{@}) or label_replace(vector(0), \"reason\", \"none\", \"\", \"\")",
            ),
            lines(
                "Age of the last renewal",
                "s",
                "Time since the renewal that leadership is based on. At 7 s a replica stops acting: look at the latency of \
                 patches of Leases, and at CPU limits.",
            )
            .colors("transparent", [(7.0, "red")])
            .runbook("CronwheelFences")
            .query("{{instance}}", "cronwheel_lease_renew_age_seconds{@}"),
            lines(
                "Other controllers",
                "short",
                "1 for ten minutes after another controller, or another installation, wrote a status or created a Job of these CronJobs. Must be 0: the log and /readyz name the other one.",
            )
            .runbook("CronwheelOtherController")
            .query("{{evidence}}", "max by (evidence) (cronwheel_other_controller_active{@})"),
        ],
    )
}

fn moves() -> Row {
    row(
        "Moves of shards",
        [
            lines(
                "Handovers",
                "s",
                "given: from the seal until the Lease names the next leader. taken: from there until the replica acts. If it takes \
                 many seconds, look at the answers of the API server.",
            )
            .quantiles("cronwheel_handover_duration_seconds", "side"),
            lines(
                "Lost leadership",
                "ops",
                "Fences: replicas that stopped acting. Evictions: members whose Lease expired. Rejoins: replicas that \
                 returned as new members. Often: the API server is slow, or a CPU limit slows the replicas down.",
            )
            .runbook("CronwheelFences")
            .query("fences", "sum(rate(cronwheel_fences_total{@}[$__rate_interval]))")
            .query("evictions", "sum(rate(cronwheel_evictions_total{@}[$__rate_interval]))")
            .query("rejoins", "sum(rate(cronwheel_rejoins_total{@}[$__rate_interval]))"),
            lines(
                "Requests that were not sent",
                "ops",
                "Requests of shards that a replica no longer led. The next leader decides them again, so there is nothing to do.",
            )
            .query(
                "{{queue}}",
                "sum by (queue) (rate(cronwheel_fenced_requests_total{@}[$__rate_interval]))",
            ),
        ],
    )
}

fn clocks() -> Row {
    row(
        "Clocks",
        [
            lines(
                "Clock against the API server's",
                "s",
                "The clock of each replica minus that of the API server, to about half a second. One replica differs: repair the \
                 time service of its node. All differ: that of the API server.",
            )
            .signed()
            .query("{{instance}}", "cronwheel_clock_skew_seconds{@}"),
            lines(
                "Clock alarms",
                "short",
                "1 while a replica starts nothing because its clock differs from the API server's. Repair the clock.",
            )
            .runbook("CronwheelClockAlarm")
            .query("{{instance}}", "cronwheel_clock_alarm{@}"),
            lines(
                "Connections to API servers with another clock",
                "ops",
                "Connections that were replaced because the clock of their API server differs. Without a clock alarm, the clock of \
                 one API server is wrong: repair its time service.",
            )
            .query(
                "connections",
                "sum(rate(cronwheel_clock_retired_connections_total{@}[$__rate_interval]))",
            ),
        ],
    )
}

fn watches() -> Row {
    row(
        "Watches",
        [
            lines(
                "Silence of watches",
                "s",
                "Time since a watch last received something. A minute is normal; above the line the replica is not ready: look at \
                 the network and at load balancers that drop idle connections.",
            )
            .alert("CronwheelWatchSilent")
            .query("{{instance}} {{resource}}", "cronwheel_watch_silence_seconds{@}"),
            lines(
                "Failed watches",
                "ops",
                "Watches that failed and were reopened. Now and then is normal. A steady rise points to the network or to a \
                 permission.",
            )
            .query(
                "{{resource}}",
                "sum by (resource) (rate(cronwheel_watch_errors_total{@}[$__rate_interval]))",
            ),
            lines(
                "Complete lists",
                "ops",
                "Complete lists by resource. Each costs the API server much. A steady rise: watches fail and cannot resume.",
            )
            .query(
                "{{resource}}",
                "sum by (resource) (rate(cronwheel_relists_total{@}[$__rate_interval]))",
            ),
        ],
    )
}

fn processes() -> Row {
    row(
        "Processes",
        [
            lines("Processor", "short", "Processor time of each replica, in cores. At a CPU limit, remove the limit.").query(
                "{{instance}}",
                with_build("rate(process_cpu_seconds_total{@}[$__rate_interval])"),
            ),
            lines(
                "Memory",
                "bytes",
                "Resident memory of each replica, and its virtual memory. Near the memory limit, raise the limit.",
            )
            .runbook("CronwheelRestarts")
            .query("{{instance}}", with_build("process_resident_memory_bytes{@}"))
            .query("{{instance}} virtual", with_build("process_virtual_memory_bytes{@}")),
            lines(
                "File descriptors and threads",
                "short",
                "Open file descriptors and their limit, and threads. A steady rise is a leak: report it.",
            )
            .query("{{instance}} files", with_build("process_open_fds{@}"))
            .query("{{instance}} limit", with_build("process_max_fds{@}"))
            .query("{{instance}} threads", with_build("process_threads{@}")),
            lines(
                "Time since the start",
                "s",
                "How long each replica has run. A drop is a restart: kubectl describe pod has the reason.",
            )
            .runbook("CronwheelRestarts")
            .query(
                "{{instance}}",
                format!("time() - ({})", with_build("process_start_time_seconds{@}")),
            ),
            lines(
                "Versions",
                "short",
                "Replicas by version of cronwheel and of its time zone data. More than one line outside of a rollout: run one \
                 version.",
            )
            .query(
                "{{version}}, zones {{tzdb}}",
                "count by (version, tzdb) (cronwheel_build_info{@})",
            ),
        ],
    )
}

/// Selects processes of cronwheel, because other programs export process metrics too.
fn with_build(expression: &str) -> String {
    format!("{expression} and on (job, instance) cronwheel_build_info{{@}}")
}
