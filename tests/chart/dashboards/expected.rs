//! The expected values of the panels, computed from the samples of the fixture without Prometheus.

use super::fixture::{FIVE_MINUTES, Fixture, MONTH, NOW, RANGE, RATE_INTERVAL, TWO_MINUTES};
use crate::vector::{Labels, Vector};

const LATENESS: &str = "cronwheel_lateness_seconds";
const OUTCOMES: &str = "cronwheel_instant_outcomes_total";
const REQUESTS: &str = "cronwheel_api_requests_total";
const CPU: &str = "process_cpu_seconds_total";
const LOST: [&str; 4] = ["superseded", "deadline_exceeded", "missed", "look_up_refused"];
const WRITES: [&str; 4] = ["create", "update", "patch", "delete"];

/// The expected results of the queries of a panel, in their order.
pub(super) fn of(fixture: &Fixture, dashboard: &str, panel: &str) -> Vec<Vector> {
    let samples = Samples(fixture);
    let answers = match dashboard {
        "fleet" => samples.fleet(panel),
        "shards" => samples.shards(panel),
        "api_cost" => samples.api_cost(panel),
        "load_test" => samples.load_test(panel),
        other => panic!("what must {other} show?"),
    };
    answers.unwrap_or_else(|| panic!("what must {dashboard} / {panel} show?"))
}

/// The expected result of the query of an annotation.
pub(super) fn of_annotation(fixture: &Fixture, name: &str) -> Vector {
    let samples = Samples(fixture);
    match name {
        "Restarts" => in_milliseconds(samples.process("process_start_time_seconds").without_name()),
        "Shards move" => fixture.of("cronwheel_leader").changes(TWO_MINUTES).sum(&[]),
        "Pages" => {
            let firing = fixture.of("ALERTS").with("alertstate", &["firing"]);
            let pages = firing.with("alertname", &["CronwheelClockAlarm"]);
            pages.now().sum(&["alertname"])
        }
        other => panic!("what must {other} show?"),
    }
}

fn in_milliseconds(seconds: Vector) -> Vector {
    seconds.map(|seconds| seconds * 1000.0)
}

struct Samples<'f>(&'f Fixture);

impl Samples<'_> {
    /// The latest values.
    fn each(&self, metric: &str) -> Vector {
        self.0.of(metric).now()
    }

    /// The latest values of processes of cronwheel.
    fn process(&self, metric: &str) -> Vector {
        self.0.of(metric).of_replicas().now()
    }

    fn processor(&self) -> Vector {
        self.0.of(CPU).of_replicas().rate(RATE_INTERVAL)
    }

    fn sum(&self, metric: &str) -> Vector {
        self.each(metric).sum(&[])
    }

    fn max(&self, metric: &str) -> Vector {
        self.each(metric).max(&[])
    }

    /// The growth per second of all series together, or of those with the same labels.
    fn rate(&self, metric: &str, by: &[&str]) -> Vector {
        self.0.of(metric).rate(RATE_INTERVAL).sum(by)
    }

    /// The median and the 99th percentile of a histogram, or of each with the same labels.
    fn quantiles(&self, histogram: &str, by: &[&str]) -> Vec<Vector> {
        let buckets = self.rate(&format!("{histogram}_bucket"), &[&["le"][..], by].concat());
        [0.5, 0.99].map(|quantile| buckets.quantile(quantile)).into()
    }

    fn lateness_of_all_starts(&self) -> Vector {
        self.0
            .of(&format!("{LATENESS}_bucket"))
            .increase(RATE_INTERVAL)
            .sum(&["le"])
    }

    fn trouble(&self, kinds: &[&str]) -> Vector {
        self.0.of("cronwheel_cron_job_trouble").with("kind", kinds).now()
    }

    /// The CronJobs in trouble of these kinds, also those without a series.
    fn n_in_trouble(&self, kinds: &[&str], by: &[&str]) -> Vector {
        let omitted = self
            .0
            .of("cronwheel_cron_job_trouble_omitted")
            .with("kind", kinds)
            .now();
        self.trouble(kinds).and_also(omitted).sum(by)
    }

    /// The beginnings of troubles, in milliseconds.
    fn trouble_since(&self, by: &[&str]) -> Vector {
        let since = self.each("cronwheel_cron_job_trouble_since_timestamp_seconds");
        in_milliseconds(since.min(by))
    }

    fn on_time(&self, n_samples: usize, by: &[&str]) -> Vector {
        let buckets = self.0.of(&format!("{LATENESS}_bucket")).with("le", &["5"]);
        buckets.increase(n_samples).sum(by)
    }

    fn started(&self, n_samples: usize, by: &[&str]) -> Vector {
        self.0.of(&format!("{LATENESS}_count")).increase(n_samples).sum(by)
    }

    fn lost(&self, n_samples: usize, by: &[&str]) -> Vector {
        self.0.of(OUTCOMES).with("outcome", &LOST).increase(n_samples).sum(by)
    }

    fn share_on_time(&self, n_samples: usize, by: &[&str]) -> Vector {
        let runs = self.started(n_samples, by).plus(&self.lost(n_samples, by));
        self.on_time(n_samples, by).divided_by(&runs)
    }

    fn late_or_lost(&self, n_samples: usize, by: &[&str]) -> Vector {
        let runs = self.started(n_samples, by).plus(&self.lost(n_samples, by));
        runs.minus(&self.on_time(n_samples, by))
    }

    fn share_of_answers(&self, codes: &[&str], by: &[&str]) -> Vector {
        let all = self.0.of(REQUESTS).rate(FIVE_MINUTES).sum(by);
        let these = self.0.of(REQUESTS).with("code", codes).rate(FIVE_MINUTES);
        these.sum(by).divided_by(&all)
    }

    /// Since when the alerts fire that are not left out.
    fn alerts_since(&self, names: &[&str], by: &[&str]) -> Vector {
        let since = self.0.of("ALERTS_FOR_STATE").with("alertname", names).now();
        in_milliseconds(since.min(by))
    }

    fn fleet(&self, panel: &str) -> Option<Vec<Vector>> {
        let cluster = &["cluster"][..];
        Some(match panel {
            "On time" => vec![self.share_on_time(RANGE, &[])],
            "Error budget left, 30 days" => {
                let late = self.share_on_time(MONTH, &[]).map(|on_time| 1.0 - on_time);
                vec![late.map(|late| 1.0 - late / 0.001)]
            }
            "Lost runs" => vec![self.lost(RANGE, &[])],
            "Late or lost, 5 min" => vec![self.late_or_lost(FIVE_MINUTES, &[])],
            "CronJobs late now" => vec![self.n_in_trouble(&["late"], &[])],
            "Us: replicas" => vec![self.each("cronwheel_leader").count(&[])],
            "Us: no leader" => vec![self.max("cronwheel_shards_unowned")],
            "Us: clock alarms" => vec![self.sum("cronwheel_clock_alarm")],
            "Us: no permission" => {
                let missing = self.each("cronwheel_permissions_missing");
                vec![missing.max(&["verb", "resource"]).sum(&[])]
            }
            "API: throttled" => vec![self.share_of_answers(&["429"], &[])],
            "API: failed" => vec![self.share_of_answers(&["500", "none"], &[])],
            "Tenants: refused" => {
                let refused = self.sum("cronwheel_cron_jobs_refused");
                vec![refused.divided_by(&self.sum("cronwheel_cron_jobs_led"))]
            }
            "Tenants: trouble" => vec![self.n_in_trouble(&["blocked", "failing"], &[])],
            "Late and lost runs" => {
                let late = self
                    .started(RATE_INTERVAL, &[])
                    .minus(&self.on_time(RATE_INTERVAL, &[]));
                vec![late, self.lost(RATE_INTERVAL, &["outcome"])]
            }
            "Us: part of the shards led" => vec![self.sum("cronwheel_led_ratio")],
            "Lateness" => self.quantiles(LATENESS, &[]),
            "API server: answers without success" => {
                let failed = self.0.of(REQUESTS).with("code", &["429", "500", "none"]);
                vec![failed.rate(RATE_INTERVAL).sum(&["code"])]
            }
            "Clusters" => vec![
                self.lost(RANGE, cluster),
                self.share_on_time(RANGE, cluster),
                self.late_or_lost(FIVE_MINUTES, cluster),
                self.n_in_trouble(&["late"], cluster),
                self.each("cronwheel_leader").count(cluster),
                self.each("cronwheel_shards_unowned").max(cluster),
                self.share_of_answers(&["429"], cluster),
                self.alerts_since(&["CronwheelClockAlarm"], cluster),
            ],
            _ => return self.named(panel).or_else(|| self.details(panel)),
        })
    }

    fn named(&self, panel: &str) -> Option<Vec<Vector>> {
        let namespace = &["cluster", "exported_namespace"][..];
        let n_cron_jobs = |kinds: &[&str]| {
            let each = self.trouble(kinds).max(&["cluster", "exported_namespace", "cronjob"]);
            each.sum(namespace)
        };
        Some(match panel {
            "Alerts that fire" => {
                let names = ["CronwheelClockAlarm", "CronwheelThrottled"];
                vec![self.alerts_since(&names, &["cluster", "alertname", "severity", "instance"])]
            }
            "Namespaces in trouble" => vec![
                self.trouble_since(namespace),
                n_cron_jobs(&["blocked", "failing", "late"]),
                n_cron_jobs(&["late"]),
            ],
            "CronJobs in trouble" => {
                vec![self.trouble_since(&["cluster", "exported_namespace", "cronjob", "kind"])]
            }
            _ => return None,
        })
    }

    fn details(&self, panel: &str) -> Option<Vec<Vector>> {
        Some(match panel {
            "Lateness of all starts" => vec![self.lateness_of_all_starts()],
            "Creation skew" => self.quantiles("cronjob_controller_job_creation_skew_duration_seconds", &[]),
            "Runs that become due" => vec![self.rate("cronwheel_due_instants_total", &[])],
            "Outcomes" => vec![self.rate(OUTCOMES, &["outcome"])],
            "Open runs" => vec![self.sum("cronwheel_instants_open")],
            "CronJobs in trouble, by kind" => vec![self.n_in_trouble(&["blocked", "failing", "late"], &["kind"])],
            "Backlog of requests" => vec![self.each("cronwheel_dispatch_backlog").sum(&["lane"])],
            "Statuses that wait" => vec![self.sum("cronwheel_status_pending")],
            "How long creates wait" => vec![self.max("cronwheel_dispatch_busy_seconds")],
            "How long statuses wait" => vec![self.max("cronwheel_status_oldest_seconds")],
            "Age of statuses" => self.quantiles("cronwheel_status_age_seconds", &[]),
            "Refused creates" => vec![
                self.sum("cronwheel_cron_jobs_refused"),
                self.max("cronwheel_namespaces_refused"),
            ],
            "Full queues" => vec![self.rate("cronwheel_queue_overflows_total", &["queue"])],
            "Objects that cannot be decoded" => vec![
                self.rate("cronwheel_undecodable_objects_total", &["resource"]),
                self.rate("cronwheel_panics_total", &[]),
            ],
            "CronJobs that cronwheel cannot handle" => vec![
                self.max("cronwheel_cron_jobs_undecodable"),
                self.max("cronwheel_cron_jobs_panicked"),
            ],
            "Jobs that no run explains" => vec![
                self.rate("cronwheel_unexpected_jobs_total", &[]),
                self.rate("cronwheel_runs_asked_for_total", &["result"]),
            ],
            "CronJobs and Jobs" => vec![
                self.max("cronwheel_cron_jobs"),
                self.max("cronwheel_jobs"),
                self.sum("cronwheel_wheel_entries"),
                self.max("cronwheel_managed_namespaces"),
            ],
            "Memory of templates" => vec![self.each("cronwheel_template_bytes")],
            "Templates that do not fit" => vec![self.max("cronwheel_templates_not_kept")],
            _ => return None,
        })
    }

    fn shards(&self, panel: &str) -> Option<Vec<Vector>> {
        let rates = |metrics: &[&str]| metrics.iter().map(|metric| self.rate(metric, &[])).collect();
        Some(match panel {
            "Shards led" => vec![self.each("cronwheel_leader")],
            "CronJobs led" => vec![self.each("cronwheel_cron_jobs_led")],
            "Part of the shards led" => vec![self.sum("cronwheel_led_ratio")],
            "Shards without a leader" => vec![self.max("cronwheel_shards_unowned")],
            "Longest time without a leader" => vec![self.max("cronwheel_shards_unowned_age_seconds")],
            "Replicas that take no shards" => {
                let none = Labels::from([("reason".to_owned(), "none".to_owned())]);
                let reasons = self.each("cronwheel_takes_no_shards").sum(&["reason"]);
                vec![reasons.and_also(Vector::from([(none, 0.0)]))]
            }
            "Age of the last renewal" => vec![self.each("cronwheel_lease_renew_age_seconds")],
            "Other controllers" => vec![self.each("cronwheel_other_controller_active").max(&["evidence"])],
            "Handovers" => self.quantiles("cronwheel_handover_duration_seconds", &["side"]),
            "Lost leadership" => rates(&[
                "cronwheel_fences_total",
                "cronwheel_evictions_total",
                "cronwheel_rejoins_total",
            ]),
            "Requests that were not sent" => vec![self.rate("cronwheel_fenced_requests_total", &["queue"])],
            "Clock against the API server's" => vec![self.each("cronwheel_clock_skew_seconds")],
            "Clock alarms" => vec![self.each("cronwheel_clock_alarm")],
            "Connections to API servers with another clock" => rates(&["cronwheel_clock_retired_connections_total"]),
            "Silence of watches" => vec![self.each("cronwheel_watch_silence_seconds")],
            "Failed watches" => vec![self.rate("cronwheel_watch_errors_total", &["resource"])],
            "Complete lists" => vec![self.rate("cronwheel_relists_total", &["resource"])],
            _ => return self.processes(panel),
        })
    }

    fn processes(&self, panel: &str) -> Option<Vec<Vector>> {
        let each = |metrics: &[&str]| metrics.iter().map(|metric| self.process(metric)).collect();
        Some(match panel {
            "Processor" => vec![self.processor()],
            "Memory" => each(&["process_resident_memory_bytes", "process_virtual_memory_bytes"]),
            "File descriptors and threads" => each(&["process_open_fds", "process_max_fds", "process_threads"]),
            "Time since the start" => {
                let now = f64::from(u32::try_from(NOW).unwrap());
                let started = self.process("process_start_time_seconds").without_name();
                vec![started.map(|started| now - started)]
            }
            "Versions" => vec![self.each("cronwheel_build_info").count(&["version", "tzdb"])],
            _ => return None,
        })
    }

    fn api_cost(&self, panel: &str) -> Option<Vec<Vector>> {
        let per_run = |cost: Vector| {
            let runs = self.0.of(OUTCOMES).with("outcome", &["created"]);
            vec![cost.divided_by(&runs.increase(RANGE).sum(&[]))]
        };
        Some(match panel {
            "Writes per run" => {
                let writes = self.0.of(REQUESTS).with("verb", &WRITES);
                let writes = writes.with("resource", &["jobs", "cronjobs/status"]);
                per_run(writes.increase(RANGE).sum(&[]))
            }
            "Processor time per run" => per_run(self.0.of(CPU).of_replicas().increase(RANGE).sum(&[])),
            "Throttled requests" => {
                let throttled = self.0.of(REQUESTS).with("code", &["429"]);
                let all = self.0.of(REQUESTS).increase(RANGE).sum(&[]);
                vec![throttled.increase(RANGE).sum(&[]).divided_by(&all)]
            }
            "Requests by kind" => vec![self.rate(REQUESTS, &["verb", "resource"])],
            "Writes" => {
                let writes = self.0.of(REQUESTS).with("verb", &WRITES);
                vec![writes.rate(RATE_INTERVAL).sum(&[])]
            }
            "Answers by code" => vec![self.rate(REQUESTS, &["code"])],
            "Time until the answer" => self.quantiles("cronwheel_api_request_duration_seconds", &["verb", "resource"]),
            "Requests in flight" => vec![
                self.sum("cronwheel_dispatch_inflight"),
                self.sum("cronwheel_dispatch_inflight_limit"),
            ],
            "Events" => vec![self.rate("cronwheel_events_total", &["result"])],
            _ => return None,
        })
    }

    fn load_test(&self, panel: &str) -> Option<Vec<Vector>> {
        Some(match panel {
            "Load" => {
                let created = self.0.of(OUTCOMES).with("outcome", &["created"]);
                vec![
                    self.rate("cronwheel_due_instants_total", &[]),
                    created.rate(RATE_INTERVAL).sum(&[]),
                ]
            }
            "Lateness" => vec![self.lateness_of_all_starts()],
            "Waiting requests and those in flight" => {
                let waiting = self.0.of("cronwheel_dispatch_backlog").with("lane", &["creates"]);
                vec![
                    waiting.now().sum(&[]),
                    self.sum("cronwheel_dispatch_inflight"),
                    self.sum("cronwheel_dispatch_inflight_limit"),
                ]
            }
            "Time of a create" => {
                let buckets = self.0.of("cronwheel_api_request_duration_seconds_bucket");
                let creates = buckets.with("verb", &["create"]).with("resource", &["jobs"]);
                let creates = creates.rate(RATE_INTERVAL).sum(&["le"]);
                [0.5, 0.99].map(|quantile| creates.quantile(quantile)).into()
            }
            "Processor" => vec![self.processor()],
            "Memory" => vec![self.process("process_resident_memory_bytes")],
            _ => return None,
        })
    }
}
