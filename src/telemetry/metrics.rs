//! Metrics: a struct of handles for each component, registered here. Labels have few values. Only the metric of
//! CronJobs in trouble names objects.

use jiff::Timestamp;
use prometheus::{
    Gauge, Histogram, IntCounter, IntGauge, Registry, TextEncoder, process_collector::ProcessCollector,
    proto::MetricFamily,
};

mod api_calls;
pub mod election_figures;
mod first_scrape;
mod other_controller_figures;
mod permission_figures;
mod register;
pub mod shard_figures;
pub mod table;
mod waiting_since;
pub mod watch_health;

pub use api_calls::{ApiCall, ApiMetrics};
pub use election_figures::ElectionFigures;
use first_scrape::FirstScrape;
use register::Register;
pub use register::gauge_value;
pub use shard_figures::ShardFigures;
pub use waiting_since::WaitingSince;
pub use watch_health::{WatchHealth, WatchHealths};

use crate::{
    controller::permissions::{FailureLog, MissingPermission},
    kube_api::{latest_value::LatestSender, other_controllers::OtherControllers},
};

/// The buckets of B-15.1, in seconds.
const CREATION_SKEW_BUCKETS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];

/// Fine around the target of a few milliseconds, up to an hour, so that a catch-up after a long outage differs from one
/// after a crash.
const LATENESS_BUCKETS: &[f64] = &[
    0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    60.0, 300.0, 3600.0,
];

const REQUEST_BUCKETS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

/// Fine around the target of a few milliseconds, up to a seal that waits for responses.
const HANDOVER_BUCKETS: &[f64] = &[
    0.002, 0.004, 0.006, 0.008, 0.012, 0.02, 0.035, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0,
];

const STATUS_AGE_BUCKETS: &[f64] = &[0.01, 0.1, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 60.0];

/// Metrics of the dispatcher.
#[derive(Clone, Debug)]
pub struct DispatchMetrics {
    /// From the slot of a created Job to its `creationTimestamp`, in seconds (B-15.1).
    pub creation_skew: Histogram,
    /// From the slot to the request that created its Job, in seconds.
    pub lateness: Histogram,
    /// Requests and their responses.
    pub api: ApiMetrics,
    /// Creates that wait.
    pub creates_waiting: IntGauge,
    /// Since when creates have waited without a pause.
    pub creates_waiting_since: WaitingSince,
    /// Requests that wait behind creates.
    pub background_waiting: IntGauge,
    /// Requests in flight.
    pub in_flight: IntGauge,
    /// The limit of requests in flight.
    pub in_flight_limit: IntGauge,
    /// Requests returned to the shard because the queue was full.
    pub overflows: IntCounter,
    /// Requests dropped because this replica does not lead their shard any more.
    pub fenced: IntCounter,
}

/// Metrics of the status batcher.
#[derive(Clone, Debug)]
pub struct StatusMetrics {
    /// Requests and their responses.
    pub api: ApiMetrics,
    /// Status writes that wait.
    pub pending: IntGauge,
    /// Since when the oldest of them has waited.
    pub oldest: WaitingSince,
    /// The time for which status writes waited, in seconds.
    pub age: Histogram,
    /// Status writes returned to the shard because too many waited.
    pub overflows: IntCounter,
    /// Status writes dropped because this replica does not lead their shard any more.
    pub fenced: IntCounter,
}

/// Metrics of the Event task.
#[derive(Clone, Debug)]
pub struct EventMetrics {
    /// Requests and their responses.
    pub api: ApiMetrics,
    /// New Events stored.
    pub created: IntCounter,
    /// Increments of the count of stored Events.
    pub raised: IntCounter,
    /// Events dropped because the budget was used up.
    pub dropped_over_budget: IntCounter,
    /// Events excluded by `--events`.
    pub dropped_filtered: IntCounter,
    /// Events dropped because their namespace is not managed, or not any more.
    pub dropped_not_managed: IntCounter,
    /// Events dropped because too many waited.
    pub dropped_queue_full: IntCounter,
    /// Events dropped because one CronJob had too many.
    pub dropped_too_many: IntCounter,
    /// Events dropped because the API server refused them or could not be reached.
    pub dropped_failed: IntCounter,
    /// Events dropped at shutdown.
    pub dropped_shutdown: IntCounter,
}

/// Metrics of the watches of one resource.
#[derive(Clone, Debug)]
pub struct WatchMetrics {
    /// The log of failed requests.
    pub failures: FailureLog,
    /// Objects that could not be decoded.
    pub undecodable: IntCounter,
    /// The CronJobs of managed namespaces that cannot be decoded, of all watches.
    pub cron_jobs_undecodable: IntGauge,
    /// Watches that failed.
    pub errors: IntCounter,
    /// Lists started.
    pub relists: IntCounter,
}

/// Metrics of the clock.
#[derive(Clone, Debug)]
pub struct ClockMetrics {
    /// Requests of the probe and their responses.
    pub api: ApiMetrics,
    /// This replica's clock minus the API server's, in seconds.
    pub skew: Gauge,
    /// 1 while the clock differs too much from the API server's, and no Job starts.
    pub alarm: IntGauge,
    /// Connections retired because their server's clock contradicts this replica's.
    pub retired_connections: IntCounter,
}

/// Metrics of the election.
#[derive(Clone, Debug)]
pub struct ElectionMetrics {
    /// Requests and their responses.
    pub api: ApiMetrics,
    /// The number of shards led.
    pub led: IntGauge,
    /// From the seal of a shard to the Lease that names another leader, in seconds.
    pub given: Histogram,
    /// From the Lease that names this replica until the shard acts, in seconds.
    pub taken: Histogram,
    /// Fences that passed.
    pub fences: IntCounter,
    /// Members evicted.
    pub evictions: IntCounter,
    /// Incarnations that ended while the process continued.
    pub rejoins: IntCounter,
}

/// The handles of all metrics, and their registry.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Registry,
    /// The dispatcher.
    pub dispatch: DispatchMetrics,
    /// The status batcher.
    pub status: StatusMetrics,
    /// The Event task.
    pub events: EventMetrics,
    /// The watch of CronJobs.
    pub cron_job_watch: WatchMetrics,
    /// The watch of Jobs.
    pub job_watch: WatchMetrics,
    /// The watch of the managed namespaces.
    pub namespace_watch: WatchMetrics,
    /// Metrics of the watches of calendars.
    pub calendar_watch: WatchMetrics,
    /// The clock.
    pub clock: ClockMetrics,
    /// The election.
    pub election: ElectionMetrics,
    /// The permissions that the service account lacks, published after each check.
    pub permissions: LatestSender<Vec<MissingPermission>>,
    /// The state of the election, published by its task; `None` without one.
    pub election_snapshot: LatestSender<Option<ElectionFigures>>,
    /// The state of the shards, published after each iteration of their task.
    pub shard: LatestSender<ShardFigures>,
    /// The health of every watch.
    pub watch_health: WatchHealths,
    /// The evidence of other controllers.
    pub other_controllers: OtherControllers,
    first_scrape: FirstScrape,
}

impl Metrics {
    /// Registers every metric in a new registry.
    pub fn register() -> Metrics {
        let registry = Registry::new();
        let register = Register(&registry);
        let api = register.api();
        let overflows = register.counters(&table::QUEUE_OVERFLOWS);
        let overflows_of = |queue: &str| overflows.with_label_values(&[queue]);
        let fenced = register.counters(&table::FENCED_REQUESTS);
        let fenced_of = |queue: &str| fenced.with_label_values(&[queue]);
        let versions = [env!("CARGO_PKG_VERSION"), crate::schedule::zone::tzdb_version()];
        register.gauges(&table::BUILD).with_label_values(&versions).set(1);
        let of_process = Box::new(ProcessCollector::for_self());
        registry.register(of_process).expect("no other metric has these names");
        let watches_of = register.watches(api.failures.clone());
        Metrics {
            dispatch: register.dispatch(api.clone(), overflows_of("dispatch"), fenced_of("dispatch")),
            status: register.status(api.clone(), overflows_of("status"), fenced_of("status")),
            events: register.events(api.clone()),
            cron_job_watch: watches_of("cronjobs"),
            job_watch: watches_of("jobs"),
            namespace_watch: watches_of("namespaces"),
            calendar_watch: watches_of("configmaps"),
            clock: ClockMetrics {
                api: api.clone(),
                skew: register.float_gauge(&table::CLOCK_SKEW),
                alarm: register.gauge(&table::CLOCK_ALARM),
                retired_connections: register.counter(&table::CLOCK_RETIRED_CONNECTIONS),
            },
            election: register.election(api),
            permissions: LatestSender::default(),
            election_snapshot: LatestSender::default(),
            shard: LatestSender::default(),
            watch_health: WatchHealths::default(),
            other_controllers: OtherControllers::default(),
            first_scrape: FirstScrape::default(),
            registry,
        }
    }

    /// Renders every metric in Prometheus' text format at this instant, and fails if one cannot be encoded.
    pub fn render(&self, now: Timestamp) -> Result<String, prometheus::Error> {
        TextEncoder::new().encode_to_string(&self.families(now))
    }

    /// Renders like [`Metrics::render`] for a Prometheus, which sees the runs before the first scrape as an increase.
    pub fn scrape(&self, now: Timestamp) -> Result<String, prometheus::Error> {
        let mut families = self.families(now);
        self.first_scrape.hold_back(&mut families, now);
        TextEncoder::new().encode_to_string(&families)
    }

    fn families(&self, now: Timestamp) -> Vec<MetricFamily> {
        let mut families = self.registry.gather();
        families.extend(self.published(now).gather());
        families.sort_by(|one, other| one.name().cmp(other.name()));
        families
    }

    /// The text of every metric, before any evidence of other controllers.
    #[cfg(test)]
    pub(crate) fn text(&self) -> String {
        self.render(Timestamp::UNIX_EPOCH).expect("every metric can be encoded")
    }

    /// Returns a registry with the metrics of the published states, for one scrape. Each state is read once, so its
    /// figures agree with each other. A series exists only while the state has a value for it.
    fn published(&self, now: Timestamp) -> Registry {
        let registry = Registry::new();
        let register = Register(&registry);
        // A copy, so that the task of the shards does not wait for the scrape.
        let shard = self.shard.borrow().clone();
        register.shard_figures(&shard);
        register.permission_figures(&self.permissions.borrow());
        if let Some(election) = &*self.election_snapshot.borrow() {
            register.election_figures(election);
        }
        register.watch_silence(&self.watch_health);
        register.waiting_since(&table::DISPATCH_BUSY, &self.dispatch.creates_waiting_since);
        register.waiting_since(&table::STATUS_OLDEST, &self.status.oldest);
        register.other_controllers(&self.other_controllers.active(now));
        registry
    }
}

impl Register<'_> {
    fn dispatch(&self, api: ApiMetrics, overflows: IntCounter, fenced: IntCounter) -> DispatchMetrics {
        let backlog = self.gauges(&table::DISPATCH_BACKLOG);
        DispatchMetrics {
            creation_skew: self.histogram(&table::JOB_CREATION_SKEW, CREATION_SKEW_BUCKETS),
            lateness: self.histogram(&table::LATENESS, LATENESS_BUCKETS),
            api,
            creates_waiting: backlog.with_label_values(&["creates"]),
            creates_waiting_since: WaitingSince::default(),
            background_waiting: backlog.with_label_values(&["background"]),
            in_flight: self.gauge(&table::DISPATCH_INFLIGHT),
            in_flight_limit: self.gauge(&table::DISPATCH_INFLIGHT_LIMIT),
            overflows,
            fenced,
        }
    }

    fn status(&self, api: ApiMetrics, overflows: IntCounter, fenced: IntCounter) -> StatusMetrics {
        StatusMetrics {
            api,
            pending: self.gauge(&table::STATUS_PENDING),
            oldest: WaitingSince::default(),
            age: self.histogram(&table::STATUS_AGE, STATUS_AGE_BUCKETS),
            overflows,
            fenced,
        }
    }

    fn election(&self, api: ApiMetrics) -> ElectionMetrics {
        let durations = self.histograms(&table::HANDOVER_DURATION, HANDOVER_BUCKETS);
        ElectionMetrics {
            api,
            led: self.gauge(&table::LEADER),
            given: durations.with_label_values(&["given"]),
            taken: durations.with_label_values(&["taken"]),
            fences: self.counter(&table::LEASE_FENCES),
            evictions: self.counter(&table::LEASE_EVICTIONS),
            rejoins: self.counter(&table::LEASE_REJOINS),
        }
    }

    fn events(&self, api: ApiMetrics) -> EventMetrics {
        let results = self.counters(&table::EVENTS);
        let result = |name: &str| results.with_label_values(&[name]);
        EventMetrics {
            api,
            created: result("created"),
            raised: result("raised"),
            dropped_over_budget: result("dropped_over_budget"),
            dropped_filtered: result("dropped_filtered"),
            dropped_not_managed: result("dropped_not_managed"),
            dropped_queue_full: result("dropped_queue_full"),
            dropped_too_many: result("dropped_too_many"),
            dropped_failed: result("dropped_failed"),
            dropped_shutdown: result("dropped_shutdown"),
        }
    }

    fn watches(&self, failures: FailureLog) -> impl Fn(&str) -> WatchMetrics + use<> {
        let undecodable = self.counters(&table::UNDECODABLE_OBJECTS);
        let cron_jobs_undecodable = self.gauge(&table::CRON_JOBS_UNDECODABLE);
        let errors = self.counters(&table::WATCH_ERRORS);
        let relists = self.counters(&table::RELISTS);
        move |resource: &str| WatchMetrics {
            failures: failures.clone(),
            undecodable: undecodable.with_label_values(&[resource]),
            cron_jobs_undecodable: cron_jobs_undecodable.clone(),
            errors: errors.with_label_values(&[resource]),
            relists: relists.with_label_values(&[resource]),
        }
    }

    fn api(&self) -> ApiMetrics {
        let durations = self.histograms(&table::API_REQUEST_DURATION, REQUEST_BUCKETS);
        ApiMetrics {
            requests: api_calls::begun_at_zero(self.counters(&table::API_REQUESTS)),
            durations: ApiCall::ALL.map(|call| durations.with_label_values(&call.labels())),
            failures: FailureLog::default(),
        }
    }
}

#[cfg(test)]
mod tests;
