//! Layer 5, the shell: starts and joins every task. No other file of the controller spawns tasks.
//!
//! If a task ends before its phase of the shutdown, the process ends too: a restart is better than a controller without
//! one of its tasks.

use std::{net::SocketAddr, sync::Arc};

use futures::future::BoxFuture;
use tokio::{
    net::TcpListener,
    sync::{mpsc, watch},
    task::JoinError,
};

pub mod clock;
pub mod clock_task;
pub mod connections;
mod credential_task;
pub mod dispatcher;
pub mod election;
pub mod event_task;
mod fair_queue;
mod in_flight;
mod lane;
pub mod pacing;
pub mod permission_task;
pub mod permissions;
pub mod policy_task;
mod recorded_client;
mod recorded_send;
mod run_log;
pub mod settings;
pub mod shard_task;
mod sharing;
pub mod shutdown;
pub mod status_batcher;
mod tasks;
#[cfg(test)]
mod tests;
mod tokens;
pub mod version_task;
pub mod watch_task;
mod watches;

pub use self::connections::Connections;
use self::{
    clock::Clock,
    dispatcher::{DispatchQueue, Dispatcher, DispatcherChannels},
    event_task::{EventChannels, EventQueue, EventTask},
    recorded_client::recorded_client,
    settings::{CronJobMetrics, RunSettings},
    shard_task::{ShardChannels, ShardTask},
    shutdown::{Phase, PhaseSender, phases},
    status_batcher::{StatusBatcher, StatusChannels, StatusQueue},
    tasks::{Task, supervise},
    watches::ScopeRelists,
};
use crate::{
    coordination::Leadership,
    kube_api::{http::ConnectError, ordered_watch::OrderedSender},
    shard::{Calendars, HeldShards, ManagedNamespaces, TermedAnswer},
    telemetry::{admin::Admin, metrics::Metrics},
};

/// Capacity of the channel from the watches to the shard task. It holds one page of a list, so that decoding continues
/// while the shard task is busy; 8 MiB.
const INPUTS_MAX: usize = 512;

/// Capacity of the channel for answers to the shard task. It holds the answers of all requests that can be in flight,
/// so that no lane waits for the shard task.
const ANSWERS_MAX: usize = 1024;

/// Reasons why a run ends with an error.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// Signals cannot be received.
    #[error("cannot listen for signals")]
    Signals(#[source] std::io::Error),
    /// The address of the endpoints cannot be bound.
    #[error("--listen {address}: cannot listen there; give an address of this machine and a free port")]
    Listen {
        /// The configured address.
        address: SocketAddr,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The client configuration does not allow connections.
    #[error("cannot prepare connections to the API server")]
    Connect(#[from] ConnectError),
    /// A task ended before its phase of the shutdown.
    #[error("the {task} task ended unexpectedly")]
    TaskEnded {
        /// Name of the task.
        task: &'static str,
    },
    /// A task panicked.
    #[error("the {task} task failed")]
    TaskFailed {
        /// Name of the task.
        task: &'static str,
        /// The panic.
        source: JoinError,
    },
    /// The history of the API server went back, so the versions known to this process belong to another history. Leases,
    /// Jobs and statuses may be older than their cached copies, and the same version may stand for different content.
    /// Nothing is repaired piece by piece: a restart begins with empty state. Requests in flight are harmless: the name
    /// of the Job or the version of the status rejects a stale one.
    #[error(
        "the API server returned to an older history, as after a restore of etcd: a restart of this process lists \
         everything again"
    )]
    HistoryWentBack,
    /// A second signal arrived during the shutdown.
    #[error("{signal} while going down: ended at once")]
    Interrupted {
        /// Name of the signal.
        signal: &'static str,
    },
}

/// A task that runs beside the controller's tasks and ends after them. If it ends earlier, the run ends with an error.
pub struct Companion {
    /// Name of the task, for errors.
    pub name: &'static str,
    /// The task itself; it is dropped at the end of the shutdown.
    pub run: BoxFuture<'static, ()>,
}

/// Binds the address of the endpoints.
///
/// # Errors
///
/// [`RuntimeError::Listen`] if the address is not of this machine or the port is in use.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, RuntimeError> {
    TcpListener::bind(address)
        .await
        .map_err(|source| RuntimeError::Listen { address, source })
}

/// A controller that has not started.
pub struct Controller {
    /// Configuration of the run.
    pub settings: RunSettings,
    /// Clock of the process.
    pub clock: Clock,
    /// Connections to the API server.
    pub connections: Connections,
    /// Metrics of the process.
    pub metrics: Metrics,
}

impl Controller {
    /// Runs until `next_signal` returns a signal name or a task fails. A second signal ends the run at once. Serves the
    /// endpoints if a listener is given.
    ///
    /// # Errors
    ///
    /// [`RuntimeError`] if a task ends or fails before its phase, if the history of the API server goes back, or if a
    /// second signal interrupts the shutdown.
    pub async fn run(
        self,
        endpoints: Option<TcpListener>,
        companions: Vec<Companion>,
        next_signal: impl AsyncFnMut() -> &'static str,
    ) -> Result<(), RuntimeError> {
        if let Some(Ok(address)) = endpoints.as_ref().map(TcpListener::local_addr) {
            tracing::info!(%address, "serves /healthz, /readyz and /metrics");
        }
        let installation = self.settings.membership.full_name();
        self.metrics.other_controllers.begin(self.clock.now(), installation);
        let session = Session::new(self, phases());
        // Companions start first because the API server may be one of them.
        let mut tasks = session.spawn_companions(companions);
        tasks.extend(endpoints.map(|listener| session.spawn_admin(listener)));
        tasks.extend(session.spawn_tasks());
        let mut went_back = session.went_back.subscribe();
        let ended = supervise(tasks, &session.phases, &mut went_back, next_signal).await;
        if let Err(RuntimeError::TaskFailed { .. }) = &ended {
            Box::pin(session.abandon_membership()).await;
        }
        ended
    }
}

/// State that the tasks of a run share.
struct Session {
    settings: RunSettings,
    clock: Clock,
    connections: Connections,
    metrics: Metrics,
    phases: PhaseSender,
    leadership: watch::Sender<Leadership>,
    /// The orders to the watches of each scope to list again.
    relists: Vec<ScopeRelists>,
    burst: OrderedSender<bool>,
    /// The number of fences of this replica. A fence ends the requests of the watches.
    n_fences: OrderedSender<u64>,
    /// Whether the API server returned to an older history, as after a restore of etcd. That ends the run.
    went_back: OrderedSender<bool>,
    /// The managed namespaces, which the shard task sets and every write reads.
    namespaces: ManagedNamespaces,
    /// Whether the managed namespaces are known, so that CronJobs can be listed.
    are_namespaces_known: OrderedSender<bool>,
}

impl Session {
    fn new(controller: Controller, phases: PhaseSender) -> Session {
        let Controller {
            settings,
            clock,
            connections,
            metrics,
        } = controller;
        let leadership = Leadership::of_none_until(clock.boot(), 0, settings.membership.timing);
        let recorded = |client| recorded_client(client, clock.clone(), metrics.dispatch.api.clone());
        let connections = Connections {
            watches: recorded(connections.watches),
            leases: recorded(connections.leases),
            ..connections
        };
        let namespaces = settings.namespaces();
        metrics.other_controllers.observe_only(namespaces.clone());
        Session {
            are_namespaces_known: OrderedSender::new(namespaces.are_known()),
            namespaces,
            relists: settings.scopes.iter().cloned().map(ScopeRelists::new).collect(),
            settings,
            clock,
            connections,
            metrics,
            phases,
            went_back: OrderedSender::new(false),
            leadership: watch::Sender::new(leadership),
            burst: OrderedSender::new(false),
            n_fences: OrderedSender::new(0),
        }
    }

    /// Starts the tasks that hold state of the cluster.
    fn spawn_tasks(&self) -> Vec<Task> {
        let (inputs_in, inputs) = mpsc::channel(INPUTS_MAX);
        let (answers_in, answers) = mpsc::channel(ANSWERS_MAX);
        let dispatch = DispatchQueue::new(self.metrics.dispatch.clone());
        let statuses = StatusQueue::new(self.metrics.status.clone(), self.settings.status_flush_interval);
        let (events, event_task) = self.spawn_events();
        let (lifecycle, sharing_tasks) = self.spawn_sharing();
        let mut tasks = vec![
            self.spawn_clock(),
            self.spawn_permissions(),
            self.spawn_dispatcher(dispatch.clone(), answers_in.clone()),
            self.spawn_status_batcher(statuses.clone(), answers_in),
            event_task,
            self.spawn_shard(ShardChannels {
                inputs,
                answers,
                dispatch,
                statuses,
                events: events.clone(),
                phase: self.phases.subscribe(),
                snapshot: self.metrics.shard.clone(),
                leadership: self.leadership.subscribe(),
                lifecycle,
                namespace_selector: self.settings.namespace_selector.clone(),
                are_namespaces_known: self.are_namespaces_known.clone(),
            }),
        ];
        tasks.extend(sharing_tasks);
        tasks.extend(self.spawn_credentials());
        tasks.extend(self.spawn_policies());
        tasks.extend(self.spawn_namespace_watch(&inputs_in, &events));
        tasks.extend(self.spawn_calendar_watches(&inputs_in, &events));
        tasks.extend(self.spawn_watches(&inputs_in, &events));
        tasks
    }

    fn spawn_companions(&self, companions: Vec<Companion>) -> Vec<Task> {
        let spawn_one = |Companion { name, run }| self.start_until(name, Phase::End, run);
        companions.into_iter().map(spawn_one).collect()
    }

    fn spawn_admin(&self, listener: TcpListener) -> Task {
        let admin = Admin {
            metrics: self.metrics.clone(),
            clock: self.clock.clone(),
            phase: self.phases.subscribe(),
        };
        self.start("admin", Phase::End, admin.serve(listener))
    }

    fn spawn_dispatcher(&self, queue: Arc<DispatchQueue>, answers: mpsc::Sender<TermedAnswer>) -> Task {
        let channels = DispatcherChannels {
            queue,
            answers,
            leadership: self.leadership.subscribe(),
            phase: self.phases.subscribe(),
            burst: self.burst.clone(),
            namespaces: self.namespaces.clone(),
        };
        let dispatcher = Dispatcher::new(
            self.reading_api(),
            self.clock.clone(),
            channels,
            self.settings.in_flight_max,
        );
        self.start("dispatcher", Phase::StopIntake, dispatcher.run())
    }

    fn spawn_status_batcher(&self, queue: Arc<StatusQueue>, answers: mpsc::Sender<TermedAnswer>) -> Task {
        let channels = StatusChannels {
            queue,
            answers,
            leadership: self.leadership.subscribe(),
            phase: self.phases.subscribe(),
            burst: self.burst.subscribe(),
            namespaces: self.namespaces.clone(),
        };
        let batcher = StatusBatcher::new(self.reading_api(), self.clock.clone(), channels);
        self.start("status batcher", Phase::FlushStatuses, batcher.run())
    }

    fn spawn_events(&self) -> (EventQueue, Task) {
        let channels = EventChannels {
            phase: self.phases.subscribe(),
            burst: self.burst.subscribe(),
            leadership: self.leadership.subscribe(),
            budget: self.settings.events,
            namespaces: self.namespaces.clone(),
        };
        let (queue, task) = EventTask::new(
            self.connections.events.clone(),
            self.clock.clone(),
            channels,
            self.metrics.events.clone(),
        );
        (queue, self.start("events", Phase::FlushEvents, task.run()))
    }

    fn spawn_shard(&self, channels: ShardChannels) -> Task {
        let now = self.clock.now();
        let scopes = self.settings.scopes.clone();
        let clock_skew_max = self.clock.skew_max();
        let count = self.settings.membership.shard_count;
        let mut shards = HeldShards::new(count, scopes, clock_skew_max, now);
        let template_bytes_max = u64::from(self.settings.template_memory_mib) << 20;
        shards.template_memory().set_bytes_max(template_bytes_max);
        shards
            .catch_up_pace()
            .set_per_second(self.settings.missed_runs_per_second);
        shards.survey_cron_jobs(self.settings.cron_job_metrics == CronJobMetrics::Trouble);
        shards.manage_only(self.namespaces.clone());
        shards.log_runs(self.settings.log_runs.into());
        shards.freeze(self.settings.freeze.as_ref());
        if self.settings.reads_calendars {
            shards.read_calendars(Calendars::of_scopes(&self.settings.scopes));
        }
        let task = ShardTask::new(shards, self.clock.clone(), now, channels);
        self.start("shard", Phase::EndShards, task.run())
    }

    /// Starts a task of this machine. The task makes no progress while a simulated machine is frozen.
    fn start(&self, name: &'static str, ends_in: Phase, task: impl Future<Output = ()> + Send + 'static) -> Task {
        let clock = self.clock.clone();
        spawn(name, ends_in, async move { clock.run_with(task).await })
    }

    /// Starts a task of this machine that is dropped when a phase of the shutdown begins.
    fn start_until(&self, name: &'static str, phase: Phase, task: impl Future<Output = ()> + Send + 'static) -> Task {
        let mut phases = self.phases.subscribe();
        self.start(name, phase, async move {
            tokio::select! {
                biased;
                () = phases.reached(phase) => {}
                () = task => {}
            }
        })
    }
}

fn spawn(name: &'static str, ends_in: Phase, task: impl Future<Output = ()> + Send + 'static) -> Task {
    Task {
        name,
        ends_in,
        handle: tokio::spawn(task),
    }
}
