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
pub mod label_task;
mod lane;
mod latest_proof;
pub mod list_task;
pub mod overlap_task;
pub mod pacing;
pub mod permission_task;
pub mod permissions;
mod recorded_client;
mod recorded_send;
mod sessions;
pub mod settings;
pub mod shard_task;
mod sharing;
pub mod shutdown;
pub mod status_batcher;
mod tasks;
#[cfg(test)]
mod tests;
mod tokens;
pub mod watch_task;
mod watches;

use self::{
    clock::Clock,
    dispatcher::{DispatchQueue, Dispatcher, DispatcherChannels},
    event_task::{EventChannels, EventQueue, EventTask},
    recorded_client::recorded_client,
    settings::{CronJobMetrics, RunSettings},
    shard_task::{ShardChannels, ShardTask},
    shutdown::{Phase, PhaseSender},
    status_batcher::{StatusBatcher, StatusChannels, StatusQueue},
    tasks::Task,
};
pub use self::{connections::Connections, sessions::Controller};
use crate::{
    coordination::{JobsLabelled, Leadership},
    kube_api::{
        http::ConnectError,
        ordered_watch::OrderedSender,
        watch::{cron_job_cache::CACHE_BYTES_MAX, delivered_versions::DeliveredVersions},
    },
    shard::{BootInstant, HeldShards, Input, Scope, ShardSet, held_shards::WHOLE},
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
    /// A second signal arrived during the shutdown.
    #[error("{signal} while going down: ended at once")]
    Interrupted {
        /// Name of the signal.
        signal: &'static str,
    },
}

/// A task that runs beside the controller's tasks and outlasts them. If it ends earlier, the run ends with an error.
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

/// State that the tasks of one session share.
struct Session {
    settings: RunSettings,
    clock: Clock,
    connections: Connections,
    metrics: Metrics,
    phases: PhaseSender,
    leadership: watch::Sender<Leadership>,
    /// The shards that this replica holds, where CronJobs are shared with other replicas.
    held_shards: OrderedSender<ShardSet>,
    /// The versions that the watches of each scope have delivered, where CronJobs are shared. The scopes divide the
    /// memory of the CronJob cache.
    delivered: Vec<DeliveredVersions>,
    burst: OrderedSender<bool>,
    /// The proofs of this replica that every Job of a CronJob has its label.
    proofs: OrderedSender<Option<JobsLabelled>>,
    /// The latest such proof of any replica.
    latest_proof: OrderedSender<Option<JobsLabelled>>,
    /// The instant of the next eviction of a member, unless its Lease is renewed.
    next_eviction: OrderedSender<Option<BootInstant>>,
    /// The number of fences of this replica. A fence ends the requests of the watches.
    n_fences: OrderedSender<u64>,
    /// Whether the API server returned to an older history, as after a restore of etcd. That ends this session.
    went_back: OrderedSender<bool>,
}

impl Session {
    fn new(controller: Controller, phases: PhaseSender) -> Session {
        let Controller {
            settings,
            clock,
            connections,
            metrics,
        } = controller;
        let leadership = match &settings.membership {
            Some(membership) if membership.is_alone => Leadership::of_one_until(WHOLE, clock.boot()),
            Some(membership) => Leadership::of_none_until(clock.boot(), 0, membership.timing),
            None => Leadership::of_one(WHOLE),
        };
        let recorded = |client| recorded_client(client, clock.clone(), metrics.dispatch.api.clone());
        let connections = Connections {
            watches: recorded(connections.watches),
            leases: recorded(connections.leases),
            ..connections
        };
        metrics.election.led.set(i64::from(leadership.until().is_none()));
        let delivered = settings.sharing().map_or_else(Vec::new, |membership| {
            let bytes_max = CACHE_BYTES_MAX / settings.scopes.len().max(1);
            let begin = |scope: &Scope| DeliveredVersions::new(scope.clone(), membership.shard_count, bytes_max);
            settings.scopes.iter().map(begin).collect()
        });
        Session {
            delivered,
            settings,
            clock,
            connections,
            metrics,
            phases,
            went_back: OrderedSender::new(false),
            leadership: watch::Sender::new(leadership),
            held_shards: OrderedSender::new(ShardSet::EMPTY),
            burst: OrderedSender::new(false),
            proofs: OrderedSender::new(None),
            latest_proof: OrderedSender::new(None),
            next_eviction: OrderedSender::new(None),
            n_fences: OrderedSender::new(0),
        }
    }

    /// Starts the tasks of one session, which hold state of the cluster.
    fn spawn_session(&self) -> Vec<Task> {
        let (inputs_in, inputs) = mpsc::channel(INPUTS_MAX);
        let (answers_in, answers) = mpsc::channel(ANSWERS_MAX);
        let dispatch = DispatchQueue::new(self.metrics.dispatch.clone());
        let statuses = StatusQueue::new(self.metrics.status.clone(), self.settings.status_flush_interval);
        let (events, event_task) = self.spawn_events();
        let (lifecycle, sharing_tasks) = self.spawn_sharing().unzip();
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
            }),
        ];
        tasks.extend(sharing_tasks.into_iter().flatten());
        tasks.extend(self.spawn_announcement());
        tasks.extend(self.spawn_overlaps());
        tasks.extend(self.spawn_credentials());
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

    fn spawn_dispatcher(&self, queue: Arc<DispatchQueue>, answers: mpsc::Sender<Input>) -> Task {
        let channels = DispatcherChannels {
            queue,
            answers,
            leadership: self.leadership.subscribe(),
            phase: self.phases.subscribe(),
            burst: self.burst.clone(),
        };
        let dispatcher = Dispatcher::new(
            self.reading_api(),
            self.clock.clone(),
            channels,
            self.settings.in_flight_max,
        );
        self.start("dispatcher", Phase::StopIntake, dispatcher.run())
    }

    fn spawn_status_batcher(&self, queue: Arc<StatusQueue>, answers: mpsc::Sender<Input>) -> Task {
        let channels = StatusChannels {
            queue,
            answers,
            leadership: self.leadership.subscribe(),
            phase: self.phases.subscribe(),
            burst: self.burst.subscribe(),
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
        let mut shards = match self.settings.sharing() {
            None => HeldShards::whole(scopes, clock_skew_max, now),
            Some(membership) => HeldShards::new(Some(membership.shard_count), scopes, clock_skew_max),
        };
        let template_bytes_max = u64::from(self.settings.template_memory_mib) << 20;
        shards.template_memory().set_bytes_max(template_bytes_max);
        shards.survey_cron_jobs(self.settings.cron_job_metrics == CronJobMetrics::Trouble);
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
