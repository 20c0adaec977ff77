//! The progress of a load test: load, lateness and limits on a common time axis.

use super::model::{Dashboard, heatmap, lines, row};

pub(super) fn dashboard() -> Dashboard {
    Dashboard {
        name: "load_test",
        title: "cronwheel / Load test",
        description: "A load test while it runs: the load, how late starts are, and which limit is reached.",
        rows: vec![row(
            "Load",
            [
                lines("Load", "ops", "Runs that become due and Jobs that are created, a second. Equal while the limit is not reached.")
                    .query("due", "sum(rate(cronwheel_due_instants_total{@}[$__rate_interval]))")
                    .query(
                        "created",
                        "sum(rate(cronwheel_instant_outcomes_total{@, outcome=\"created\"}[$__rate_interval]))",
                    ),
                heatmap("Lateness", "s", "How many starts were how late. The objective is the limit of the test.").query(
                    "{{le}}",
                    "sum by (le) (increase(cronwheel_lateness_seconds_bucket{@}[$__rate_interval]))",
                ),
                lines(
                    "Waiting requests and those in flight",
                    "short",
                    "Creates that wait, requests in flight, and their limit. In flight at the limit: the API server is the bottleneck.",
                )
                .query("waiting", "sum(cronwheel_dispatch_backlog{@, lane=\"creates\"})")
                .query("in flight", "sum(cronwheel_dispatch_inflight{@})")
                .query("limit", "sum(cronwheel_dispatch_inflight_limit{@})"),
                lines("Time of a create", "s", "Time until the API server answers a create of a Job, at the median and the 99th percentile. If it rises with the load, the API server is the bottleneck.")
                    .query("p50", create(0.5))
                    .query("p99", create(0.99)),
                lines("Processor", "short", "Processor time of each replica, in cores. At a CPU limit, the replica is the bottleneck.").query(
                    "{{instance}}",
                    "rate(process_cpu_seconds_total{@}[$__rate_interval]) and on (job, instance) cronwheel_build_info{@}",
                ),
                lines("Memory", "bytes", "Resident memory of each replica. It follows the number of CronJobs and Jobs.").query(
                    "{{instance}}",
                    "process_resident_memory_bytes{@} and on (job, instance) cronwheel_build_info{@}",
                ),
            ],
        )],
    }
}

/// A quantile of the duration of creates.
fn create(quantile: f64) -> String {
    format!(
        "histogram_quantile({quantile}, sum by (le) (rate(cronwheel_api_request_duration_seconds_bucket{{@, \
         verb=\"create\", resource=\"jobs\"}}[$__rate_interval])))"
    )
}
