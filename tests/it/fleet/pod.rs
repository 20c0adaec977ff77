//! A Pod of the fleet: a machine, a connection to the API server, and the process in it, if any.

use std::{
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use apisim::{Api, WallClock};
use cronwheel::{
    controller::{
        Connections, Controller, RuntimeError,
        clock::{Clock, SimulatedWall},
        event_task::EventBudget,
        settings::{CronJobMetrics, LogRuns, Membership, RunSettings},
        shutdown::phases,
    },
    coordination::{InstallationName, Timing},
    kube_api::{ApiClient, WriteConnections, latest_value::LatestSender},
    schedule::Zone,
    shard::{Scope, ShardCount, ShardPhase, TemplateMemory},
    telemetry::{
        admin::Admin,
        metrics::{ElectionFigures, Metrics},
    },
};
use kube::Client;
use tokio::task::JoinHandle;

use super::{
    connection::{Balanced, Connection},
    records::{Holder, Records},
};

/// API servers on the shared store.
pub(super) const N_FRONT_ENDS: usize = 3;

/// The namespace of all objects.
pub(super) const NAMESPACE: &str = "default";

pub(super) struct Pod {
    pub(super) name: String,
    /// The name and uid of the Pod.
    pub(super) identity: (String, String),
    /// The wall clock of its machine.
    pub(super) wall: SimulatedWall,
    pub(super) is_cut: LatestSender<bool>,
    /// The number of outages in which its open watches of CronJobs and Jobs were lost without an error.
    pub(super) n_lost_watches: LatestSender<u64>,
    /// The API server of its watches.
    pub(super) front_end: usize,
    /// The API server of its watches of CronJobs and Jobs, if different.
    pub(super) object_watches_at: Option<usize>,
    /// The initial API server of each connection for its writes. If empty, the process does not distinguish
    /// connections.
    pub(super) write_connections_at: Vec<usize>,
    pub(super) revision: String,
    pub(super) default_zone: Zone,
    pub(super) shard_count: ShardCount,
    /// Its version of the protocol.
    pub(super) protocol: u16,
    /// The number of creates until its process is frozen. 0 means never.
    pub(super) freeze_at_create: Arc<AtomicU64>,
    /// Whether its next Lease write panics. Applies once.
    pub(super) fail_lease_task: Arc<AtomicBool>,
    /// The delay of responses to its Lease writes, in milliseconds.
    pub(super) lease_response_delay_millis: Arc<AtomicU64>,
    pub(super) process: Option<Process>,
}

pub(super) struct Process {
    pub(super) number: u64,
    pub(super) metrics: Metrics,
    clock: Clock,
    terminate: LatestSender<bool>,
    run: JoinHandle<Result<(), RuntimeError>>,
}

impl Pod {
    /// Starts a process, whose lives are numbered from `first_life`.
    pub(super) fn start(
        &mut self,
        number: u64,
        first_life: u64,
        api: &Api,
        clock: &WallClock,
        records: &Arc<Mutex<Records>>,
    ) {
        assert!(self.process.is_none(), "{} already runs", self.name);
        let connection = Connection {
            api: api.clone(),
            clock: clock.clone(),
            service: api.client(&self.name),
            process: number,
            machine: self.wall.clone(),
            is_cut: self.is_cut.clone(),
            n_lost_watches: self.n_lost_watches.clone(),
            freeze_at_create: Arc::clone(&self.freeze_at_create),
            fail_lease_task: Arc::clone(&self.fail_lease_task),
            lease_response_delay_millis: Arc::clone(&self.lease_response_delay_millis),
            records: Arc::clone(records),
            balanced: None,
        };
        let at_front_end = Connection {
            service: connection.service.clone().at_front_end(self.front_end),
            ..connection.clone()
        };
        let watches = Connection {
            service: match self.object_watches_at {
                Some(at) => connection.service.clone().at_front_end(at),
                None => at_front_end.service.clone(),
            },
            ..at_front_end.clone()
        };
        let client = || Client::new(connection.clone(), NAMESPACE);
        let connections = Connections {
            writes: ApiClient::new(self.write_connections(&connection)),
            events: ApiClient::new(WriteConnections::from_clients(vec![client()])),
            watches: Client::new(watches, NAMESPACE),
            leases: Client::new(at_front_end, NAMESPACE),
            api_server: None,
        };
        let (settings, metrics) = (self.settings(number, first_life), Metrics::register());
        let (clock, terminate) = (Clock::of_simulated(self.wall.clone()), LatestSender::new(false));
        let (wall, process_metrics, process_clock) = (self.wall.clone(), metrics.clone(), clock.clone());
        let mut termination = Some(terminate.subscribe());
        let next_signal = async move || {
            match termination.take() {
                Some(mut termination) => {
                    termination.wait_for(|is_requested| *is_requested).await;
                }
                None => pending().await,
            }
            "SIGTERM"
        };
        let run = async move {
            let controller = Controller {
                settings,
                clock,
                connections,
                metrics,
            };
            Box::pin(wall.run(controller.run(None, Vec::new(), next_signal))).await
        };
        self.process = Some(Process {
            number,
            metrics: process_metrics,
            clock: process_clock,
            terminate,
            run: tokio::task::spawn_local(run),
        });
    }

    fn write_connections(&self, connection: &Connection) -> WriteConnections {
        if self.write_connections_at.is_empty() {
            return WriteConnections::from_clients(vec![Client::new(connection.clone(), NAMESPACE)]);
        }
        let balanced = self.write_connections_at.iter().map(|at| {
            let connection = Connection {
                balanced: Some(Arc::new(Mutex::new(Balanced::new(*at, N_FRONT_ENDS)))),
                ..connection.clone()
            };
            Client::new(connection, NAMESPACE)
        });
        WriteConnections::from_clients(balanced.collect())
    }

    fn settings(&self, number: u64, first_life: u64) -> RunSettings {
        let lives = AtomicU64::new(first_life);
        let incarnations = move || {
            let life = lives.fetch_add(1, Ordering::Relaxed);
            Holder { process: number, life }.incarnation()
        };
        let membership = Membership {
            installation: InstallationName::default(),
            namespace: NAMESPACE.into(),
            pod_name: self.identity.0.as_str().into(),
            pod_uid: self.identity.1.as_str().into(),
            owner: None,
            revision: self.revision.as_str().into(),
            shard_count: self.shard_count,
            protocol: self.protocol,
            timing: Timing::DEFAULT,
            incarnations: Arc::new(incarnations),
        };
        RunSettings {
            scopes: vec![Scope::Cluster],
            namespace_selector: None,
            default_zone: self.default_zone.clone(),
            status_flush_interval: Duration::from_secs(1),
            in_flight_max: 128,
            template_memory_mib: TemplateMemory::MIB_DEFAULT,
            missed_runs_per_second: 5,
            freeze: None,
            reads_calendars: false,
            built_in_policies: Vec::new(),
            events: EventBudget::default(),
            cron_job_metrics: CronJobMetrics::default(),
            trouble_label: None,
            log_runs: LogRuns::default(),
            membership,
        }
    }
}

impl Process {
    pub(super) fn terminate(&self) {
        self.terminate.set(true);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.run.is_finished()
    }

    /// Waits until the process has ended. Returns its result.
    pub(super) async fn ended(self) -> Result<(), RuntimeError> {
        self.run.await.unwrap_or_else(|error| panic!("a run: {error}"))
    }

    /// Kills the process like SIGKILL: no task of the process runs afterwards.
    pub(super) async fn kill(self) {
        assert_eq!(
            self.metrics.shard.borrow().n_panics,
            0,
            "no scenario makes cronwheel panic"
        );
        self.run.abort();
        let _ = self.run.await;
    }

    /// The HTTP endpoints, which tests call directly.
    pub(super) fn admin(&self) -> Admin {
        Admin {
            metrics: self.metrics.clone(),
            clock: self.clock.clone(),
            phase: phases().subscribe(),
        }
    }

    /// The reason in its metrics why the process takes no shards.
    pub(super) fn takes_no_shards(&self) -> Option<String> {
        let reason = self.metric(r#"cronwheel_takes_no_shards{reason=""#)?;
        Some(reason.strip_suffix(r#""} 1"#).unwrap().to_owned())
    }

    /// The rest of the first line in its metrics that begins with this text.
    pub(super) fn metric(&self, prefix: &str) -> Option<String> {
        let text = self.metrics.render(self.clock.now()).unwrap();
        let rest = text.lines().find_map(|line| line.strip_prefix(prefix))?;
        Some(rest.to_owned())
    }

    /// The published election state of the process.
    pub(super) fn figures(&self) -> Option<ElectionFigures> {
        self.metrics.election_snapshot.borrow().clone()
    }

    /// The shards for which the process would act at this instant.
    pub(super) fn acts_on(&self) -> Vec<u16> {
        let Some(figures) = self.figures().filter(|_| !self.has_ended()) else {
            return Vec::new();
        };
        let overview = figures.overview;
        let now = figures.clock.boot();
        if overview.act_until.is_none_or(|until| until <= now) {
            return Vec::new();
        }
        let led = overview.led.into_iter();
        led.filter(|(_, (_, phase))| *phase != ShardPhase::Sealed)
            .map(|(shard, _)| shard.0)
            .collect()
    }
}
