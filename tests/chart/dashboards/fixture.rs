//! The samples of an installation in which every series of every metric grows at its own rate, and of programs that no
//! dashboard may count.

use std::fmt::Write as _;

use cronwheel::telemetry::metrics::table::{self, MetricKind, MetricSpec};

use crate::vector::{Labels, Vector};

/// The instant of the first sample, in seconds.
const BEGIN: i64 = 1_767_225_600;
/// Seconds between two samples.
const INTERVAL: usize = 30;
const N_SAMPLES: usize = 50;
/// The instant of the queries: half an interval after the second-last sample.
pub(super) const NOW: i64 = BEGIN + 48 * 30 + 15;
/// The window of graphs, in samples.
pub(super) const RATE_INTERVAL: usize = 8;
/// The window of stat panels, in samples.
pub(super) const RANGE: usize = 40;
/// The window of two minutes, in samples.
pub(super) const TWO_MINUTES: usize = 4;
/// The window of five minutes, in samples.
pub(super) const FIVE_MINUTES: usize = 10;
/// The window of a month, in samples: all that there are.
pub(super) const MONTH: usize = N_SAMPLES - 1;

/// Replaces Grafana's variables as Grafana would.
pub(super) fn substituted(expression: &str) -> String {
    let seconds = |n_samples: usize| format!("{}s", n_samples * INTERVAL);
    [
        ("$__rate_interval", &*seconds(RATE_INTERVAL)),
        ("$__range", &*seconds(RANGE)),
        ("$cluster", "east"),
        ("$job", "cronwheel|worker"),
        ("$instance", "10.0.0.1:8080|10.0.0.2:8080|10.0.0.9:9100"),
    ]
    .into_iter()
    .fold(expression.to_owned(), |text, (variable, value)| {
        text.replace(variable, value)
    })
}

/// A program that Prometheus scrapes.
struct Target {
    cluster: &'static str,
    job: &'static str,
    instance: &'static str,
    /// Whether it is a replica of cronwheel. Other programs only have metrics of processes.
    is_replica: bool,
    /// Whether the variables select it.
    is_selected: bool,
}

const fn target(cluster: &'static str, job: &'static str, instance: &'static str) -> Target {
    Target {
        cluster,
        job,
        instance,
        is_replica: true,
        is_selected: false,
    }
}

const fn selected(target: Target) -> Target {
    Target {
        is_selected: true,
        ..target
    }
}

const fn other_program(target: Target) -> Target {
    Target {
        is_replica: false,
        ..target
    }
}

/// Each target that is not selected, and each other program, differs from a selected replica in one label.
static TARGETS: [Target; 9] = [
    selected(target("east", "cronwheel", "10.0.0.1:8080")),
    selected(target("east", "cronwheel", "10.0.0.2:8080")),
    target("east", "cronwheel", "10.0.0.3:8080"),
    target("east", "canary", "10.0.0.1:8080"),
    target("west", "cronwheel", "10.0.0.1:8080"),
    target("west", "cronwheel", "10.0.0.2:8080"),
    // A replica with the job and instance of another program in the selected cluster.
    target("west", "cronwheel", "10.0.0.9:9100"),
    other_program(selected(target("east", "cronwheel", "10.0.0.9:9100"))),
    other_program(selected(target("east", "worker", "10.0.0.1:8080"))),
];

/// An alert, and since when it is active.
struct Alert {
    cluster: &'static str,
    name: &'static str,
    severity: &'static str,
    instance: &'static str,
    since: f64,
    is_firing: bool,
}

const fn alert(cluster: &'static str, name: &'static str, severity: &'static str, since: f64) -> Alert {
    Alert {
        cluster,
        name,
        severity,
        instance: "10.0.0.1:8080",
        since,
        is_firing: true,
    }
}

/// Two alerts of one name, one that is pending, one of another cluster, and some that a dashboard leaves out.
static ALERTS: [Alert; 8] = [
    alert("east", "CronwheelClockAlarm", "critical", 1_767_225_500.0),
    Alert {
        instance: "10.0.0.2:8080",
        ..alert("east", "CronwheelClockAlarm", "critical", 1_767_225_400.0)
    },
    alert("east", "CronwheelThrottled", "warning", 1_767_225_000.0),
    Alert {
        is_firing: false,
        ..alert("east", "CronwheelNoLeader", "critical", 1_767_224_000.0)
    },
    alert("west", "CronwheelNoLeader", "critical", 1_767_223_000.0),
    alert("east", "CronwheelCronJobInTrouble", "warning", 1_767_222_000.0),
    alert("east", "CronwheelNamespaceInTrouble", "warning", 1_767_222_000.0),
    alert("east", "EtcdDown", "critical", 1_767_221_000.0),
];

/// The series of Prometheus for an alert. Two Pods have it.
fn series_of_alert(alert: &Alert) -> Vec<Series> {
    let state = if alert.is_firing { "firing" } else { "pending" };
    let series = |name: &str, pod: &str, more: Option<(&str, &str)>, value: f64| {
        let labels = [
            ("__name__", name),
            ("cluster", alert.cluster),
            ("job", "cronwheel"),
            ("instance", alert.instance),
            ("alertname", alert.name),
            ("severity", alert.severity),
            ("pod", pod),
        ];
        let labels = labels.into_iter().chain(more);
        Series {
            labels: labels
                .map(|(label, value)| (label.to_owned(), value.to_owned()))
                .collect(),
            is_replica: false,
            is_selected: alert.cluster == "east",
            values: vec![value; N_SAMPLES],
        }
    };
    let of_pod = |(pod, later): (&str, f64)| {
        [
            series("ALERTS_FOR_STATE", pod, None, alert.since + later),
            series("ALERTS", pod, Some(("alertstate", state)), 1.0),
        ]
    };
    [("a", 0.0), ("b", 60.0)].into_iter().flat_map(of_pod).collect()
}

/// One series.
struct Series {
    labels: Labels,
    is_replica: bool,
    is_selected: bool,
    values: Vec<f64>,
}

pub(super) struct Fixture {
    series: Vec<Series>,
}

impl Fixture {
    pub(super) fn new() -> Fixture {
        let series = TARGETS.iter().flat_map(|target| {
            let specs = table::ALL
                .iter()
                .filter(move |spec| target.is_replica || spec.name.starts_with("process_"));
            specs.flat_map(move |spec| series_of(target, spec))
        });
        Fixture {
            series: series.chain(ALERTS.iter().flat_map(series_of_alert)).collect(),
        }
    }

    /// The samples in the format of `OpenMetrics`.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for series in &self.series {
            let labels = series.labels.iter().filter(|(label, _)| *label != "__name__");
            let labels: Vec<String> = labels.map(|(label, value)| format!("{label}=\"{value}\"")).collect();
            let name = format!("{}{{{}}}", series.labels["__name__"], labels.join(","));
            for (value, at) in series.values.iter().zip((BEGIN..).step_by(INTERVAL)) {
                writeln!(text, "{name} {value} {at}").unwrap();
            }
        }
        text + "# EOF\n"
    }

    /// The selected series of a metric.
    pub(super) fn of(&self, metric: &str) -> Selection<'_> {
        let selected = self.series.iter().filter(|series| series.is_selected);
        Selection(selected.filter(|series| series.labels["__name__"] == metric).collect())
    }
}

/// Some series.
pub(super) struct Selection<'f>(Vec<&'f Series>);

impl Selection<'_> {
    /// The series in which a label has one of these values.
    pub(super) fn with(mut self, label: &str, values: &[&str]) -> Self {
        self.0.retain(|series| values.contains(&series.labels[label].as_str()));
        self
    }

    /// The series of replicas of cronwheel.
    pub(super) fn of_replicas(mut self) -> Self {
        self.0.retain(|series| series.is_replica);
        self
    }

    /// The latest values.
    pub(super) fn now(&self) -> Vector {
        self.values(|values| *values.last().unwrap())
    }

    /// The growth per second in a window with this number of samples.
    pub(super) fn rate(&self, n_samples: usize) -> Vector {
        let seconds = f64::from(u32::try_from((n_samples - 1) * INTERVAL).unwrap());
        let rate = |values: &[f64]| (values[values.len() - 1] - values[values.len() - n_samples]) / seconds;
        self.values(rate).without_name()
    }

    /// The growth in a window with this number of samples.
    pub(super) fn increase(&self, n_samples: usize) -> Vector {
        let seconds = f64::from(u32::try_from(n_samples * INTERVAL).unwrap());
        self.rate(n_samples).map(|rate| rate * seconds)
    }

    /// The number of changes in a window with this number of samples.
    pub(super) fn changes(&self, n_samples: usize) -> Vector {
        let changed = |values: &[f64]| {
            let last = &values[values.len() - n_samples..];
            let n_changes = last
                .windows(2)
                .filter(|pair| pair[0].to_bits() != pair[1].to_bits())
                .count();
            f64::from(u32::try_from(n_changes).unwrap())
        };
        self.values(changed).without_name()
    }

    fn values(&self, of: impl Fn(&[f64]) -> f64) -> Vector {
        let until_now = |series: &Series| of(&series.values[..N_SAMPLES - 1]);
        let series = self.0.iter();
        series
            .map(|series| (series.labels.clone(), until_now(series)))
            .collect()
    }
}

/// The series that a program exports for a metric.
fn series_of(target: &Target, spec: &MetricSpec) -> Vec<Series> {
    let mut all: Vec<Labels> = vec![Labels::from(
        [
            ("__name__", spec.name),
            ("cluster", target.cluster),
            ("job", target.job),
            ("instance", target.instance),
            ("namespace", "kube-system"),
            ("pod", "cronwheel"),
        ]
        .map(|(label, value)| (label.to_owned(), value.to_owned())),
    )];
    for label in spec.labels {
        let name = if *label == "namespace" {
            "exported_namespace"
        } else {
            *label
        };
        let with = |labels: &Labels, value: &str| {
            let mut labels = labels.clone();
            labels.insert(name.to_owned(), value.to_owned());
            labels
        };
        all = all
            .iter()
            .flat_map(|labels| values_of(label).iter().map(move |value| with(labels, value)))
            .collect();
    }
    let series = all.into_iter().flat_map(|labels| match spec.kind {
        MetricKind::Counter | MetricKind::Gauge => vec![(labels.clone(), growing(&labels))],
        MetricKind::Histogram => histogram(&labels, spec.name),
    });
    // With the replicas that are not selected, the maximum would differ, and so would the earliest instant.
    let is_instant = spec.name.ends_with("_timestamp_seconds");
    let scale = match (target.is_selected, is_instant) {
        (true, _) => 1.0,
        (false, true) => 0.1,
        (false, false) => 10.0,
    };
    series
        .map(|(labels, values)| Series {
            labels,
            is_replica: target.is_replica,
            is_selected: target.is_selected,
            values: values.into_iter().map(|value| value * scale).collect(),
        })
        .collect()
}

/// The values that a label has.
fn values_of(label: &str) -> &'static [&'static str] {
    match label {
        "code" => &["201", "409", "429", "500", "none"],
        "cronjob" => &["backup", "report"],
        "evidence" => &["status_write", "foreign_job"],
        "kind" => &["blocked", "failing", "late"],
        "lane" => &["creates", "background"],
        "namespace" => &["shop", "bank"],
        "owner" => &["billing", ""],
        "outcome" => &[
            "missed",
            "created",
            "superseded",
            "deadline_exceeded",
            "look_up_refused",
            "suspended",
        ],
        "queue" => &["dispatch", "status"],
        "reason" => &["fenced", "unwilling"],
        "resource" => &["jobs", "cronjobs/status", "events"],
        "result" => &["posted", "dropped_filtered"],
        "side" => &["given", "taken"],
        "tzdb" => &["2026a"],
        "verb" => &["create", "update", "patch", "delete", "get"],
        "version" => &["1.0.0"],
        other => panic!("which values has {other}?"),
    }
}

/// The buckets, the count and the sum of a histogram. The last bucket remains empty.
fn histogram(labels: &Labels, name: &str) -> Vec<(Labels, Vec<f64>)> {
    let named = |ending: &str| {
        let mut labels = labels.clone();
        labels.insert("__name__".to_owned(), format!("{name}{ending}"));
        labels
    };
    let mut series = Vec::new();
    let mut count = vec![0.0; N_SAMPLES];
    for bound in ["0.5", "2.5", "5", "10", "+Inf"] {
        let mut labels = named("_bucket");
        labels.insert("le".to_owned(), bound.to_owned());
        if bound != "+Inf" {
            let own = growing(&labels);
            count = count.iter().zip(own).map(|(count, own)| count + own).collect();
        }
        series.push((labels, count.clone()));
    }
    series.push((named("_count"), count));
    series.push((named("_sum"), growing(&named("_sum"))));
    series
}

/// Values with increasing growth, which depends on the labels, so that windows of different lengths have different
/// rates.
fn growing(labels: &Labels) -> Vec<f64> {
    let text = format!("{labels:?}");
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let part = |shift: u32, n_values: u64| u32::try_from((hash >> shift) % n_values).unwrap();
    // Far above 0, because Prometheus extrapolates counters near 0 to their start.
    let (first, linear, square) = (5_000 + part(8, 997), 1 + part(24, 89), 1 + part(40, 13));
    let value = |step: u32| f64::from(first + linear * step + square * step * step);
    (0..u32::try_from(N_SAMPLES).unwrap()).map(value).collect()
}
