//! The channels and the tasks of a run: builds the channels, starts the tasks, and gives each task its ends.
//!
//! | Channel | Who writes | Who reads | Capacity | When it is full |
//! |---|---|---|---|---|
//! | inputs | watches | shard task | [`INPUTS_MAX`] | the watch waits |
//! | answers | dispatcher, status batcher | shard task | [`ANSWERS_MAX`] | the writer waits |
//! | [`DispatchQueue`] | shard task | dispatcher | 2^20 requests | the shard gets an answer at once: abandoned |
//! | [`StatusQueue`] | shard task | status batcher | 2^20 CronJobs | the shard gets an answer at once: failed |
//! | [`EventQueue`] | shard task, watches | Event task | 2^14 Events | the Event is dropped and counted |
//! | commands | election | shard task | [`COMMANDS_MAX`] | the election ends, and with it the process |
//! | reports | shard task | election | [`REPORTS_MAX`] | the shards keep them for the next iteration |
//! | version requests | shard task | version task | 1 | the shards ask later |
//! | version answers | version task | shard task | [`VERSION_ANSWERS_MAX`] | the version task waits |
//! | phase of the shutdown | [`supervise`](super::tasks::supervise) | all tasks | the latest value | never |
//! | leadership | election | all that send writes, shard task | the latest value | never |
//! | clock verdict, in [`Clock`] | clock task | election, dispatcher, shard task | the latest value | never |
//! | burst | dispatcher | status batcher, Event task | the latest value | never |
//! | number of fences | election | watches | the latest value | never |
//! | went back | election, watches | [`supervise`](super::tasks::supervise) | the latest value | never |
//! | managed namespaces | shard task | all that send writes, watches | the latest set | never |
//! | whether these are known | shard task | watches of CronJobs and Jobs | the latest value | never |
//! | relists | shard task | watches of CronJobs and Jobs | one number for each watch | never |
//! | states, in [`Metrics`] | shard task, election, permission task | endpoints, election | the latest values | never |

use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::{net::TcpListener, sync::mpsc};

use super::{
    Companion, Connections, Controller,
    clock::Clock,
    clock_task::ClockTask,
    credential_task::CredentialTask,
    dispatcher::{DispatchQueue, Dispatcher, DispatcherChannels},
    election::{ElectionChannels, ElectionTask, abandon_membership},
    event_task::{EventChannels, EventQueue, EventTask},
    permission_task::PermissionTask,
    policy_task::PolicyTask,
    recorded_client::recorded_client,
    settings::RunSettings,
    shard_task::{LifecycleChannels, ShardChannels, ShardTask},
    shutdown::{Phase, PhaseSender, phases},
    status_batcher::{StatusBatcher, StatusChannels, StatusQueue},
    tasks::Task,
    version_task::{VersionAnswer, VersionTask},
    watches::{ScopeRelists, Watches},
};
use crate::{
    coordination::Leadership,
    kube_api::{ApiClient, ApiServer, latest_value::LatestSender, leases::LeaseApi},
    shard::{Bucket, Input, ManagedNamespaces, Scope, ShardCommand, ShardReport, TermedAnswer, VersionRequest},
    telemetry::{admin::Admin, metrics::Metrics},
};

/// Capacity of the channel from the watches to the shard task. It holds one page of a list, so that decoding continues
/// while the shard task is busy; 8 MiB.
const INPUTS_MAX: usize = 512;

/// Capacity of the channel for answers to the shard task. It holds the answers of all requests that can be in flight,
/// so that no lane waits for the shard task.
const ANSWERS_MAX: usize = 1024;

/// Capacity of the channel for commands. Per shard: lead, seal, seal earlier and release, for the maximum number of
/// shards. Some more are for commands that concern many shards.
const COMMANDS_MAX: usize = 4 * Bucket::COUNT as usize + 16;

/// Capacity of the channel for reports to the election: per shard one that it is led and one that it is sealed.
const REPORTS_MAX: usize = 2 * Bucket::COUNT as usize;

/// Capacity of the channel for answers of the version task. A full channel delays only that task.
const VERSION_ANSWERS_MAX: usize = 4;

/// The channels and the state that the tasks of a run share.
pub(super) struct Session {
    settings: RunSettings,
    clock: Clock,
    connections: Connections,
    metrics: Metrics,
    pub(super) phases: PhaseSender,
    /// Whether the API server returned to an older history, as after a restore of etcd. That ends the run.
    pub(super) went_back: LatestSender<bool>,
    leadership: LatestSender<Leadership>,
    burst: LatestSender<bool>,
    /// The number of fences of this replica. A fence ends the requests of the watches.
    n_fences: LatestSender<u64>,
    /// The managed namespaces, which the shard task sets and every write reads.
    namespaces: ManagedNamespaces,
    /// Whether the managed namespaces are known, so that CronJobs can be listed.
    are_namespaces_known: LatestSender<bool>,
    /// The orders to the watches of each scope to list again.
    relists: Vec<ScopeRelists>,
}

impl Session {
    pub(super) fn new(controller: Controller) -> Session {
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
            phases: phases(),
            went_back: LatestSender::new(false),
            leadership: LatestSender::new(leadership),
            burst: LatestSender::new(false),
            n_fences: LatestSender::new(0),
            are_namespaces_known: LatestSender::new(namespaces.are_known()),
            namespaces,
            relists: settings.scopes.iter().cloned().map(ScopeRelists::new).collect(),
            settings,
            clock,
            connections,
            metrics,
        }
    }

    /// Starts all tasks. Companions start first because the API server may be one of them.
    pub(super) fn start_all(&self, companions: Vec<Companion>, endpoints: Option<TcpListener>) -> Vec<Task> {
        let (inputs_in, inputs) = mpsc::channel(INPUTS_MAX);
        let (answers_in, answers) = mpsc::channel(ANSWERS_MAX);
        let (commands_in, commands) = mpsc::channel(COMMANDS_MAX);
        let (reports_in, reports) = mpsc::channel(REPORTS_MAX);
        let (version_requests_in, version_requests) = mpsc::channel(1);
        let (version_answers_in, version_answers) = mpsc::channel(VERSION_ANSWERS_MAX);
        let dispatch = DispatchQueue::new(self.metrics.dispatch.clone());
        let statuses = StatusQueue::new(self.metrics.status.clone(), self.settings.status_flush_interval);
        let (events, event_task) = self.event_task();
        let shard = ShardChannels {
            inputs,
            answers,
            dispatch: dispatch.clone(),
            statuses: statuses.clone(),
            events: events.clone(),
            phase: self.phases.subscribe(),
            snapshot: self.metrics.shard.clone(),
            leadership: self.leadership.subscribe(),
            lifecycle: LifecycleChannels {
                commands,
                reports: reports_in,
                version_requests: version_requests_in,
                version_answers,
                relists: self.relists.clone(),
            },
            namespace_selector: self.settings.namespace_selector.clone(),
            are_namespaces_known: self.are_namespaces_known.clone(),
        };
        let mut tasks = Vec::new();
        for Companion { name, run } in companions {
            tasks.push(self.start_until(name, Phase::End, run));
        }
        tasks.extend(endpoints.map(|listener| self.start_admin(listener)));
        tasks.extend([
            self.start("events", Phase::FlushEvents, event_task.run()),
            self.start_election(commands_in, reports),
            self.start_versions(version_requests, version_answers_in),
            self.start_clock(),
            self.start_permissions(),
            self.start_dispatcher(dispatch, answers_in.clone()),
            self.start_status_batcher(statuses, answers_in),
            self.start_shard(shard),
        ]);
        tasks.extend(self.start_credentials());
        tasks.extend(self.start_policies());
        self.start_watches(inputs_in, events, &mut tasks);
        tasks
    }

    /// Gives up the membership after a task failed. No task of the process writes any more.
    pub(super) async fn abandon_membership(&self) {
        let figures = self.metrics.election_snapshot.borrow().clone();
        if let Some(figures) = figures {
            self.connections.writes.reset_connections();
            abandon_membership(&self.lease_api(), &figures.overview.identity, &self.clock).await;
        }
    }

    /// The API client for writes that first read the CronJob.
    fn reading_api(&self) -> ApiClient {
        let decoder = self.settings.decoder(self.metrics.other_controllers.clone());
        let api = self.connections.writes.clone().with_decoder(decoder);
        api.of_installation(&self.settings.membership.full_name())
    }

    fn lease_api(&self) -> LeaseApi {
        self.settings.membership.lease_api(self.connections.leases.clone())
    }

    fn event_task(&self) -> (EventQueue, EventTask) {
        let channels = EventChannels {
            phase: self.phases.subscribe(),
            burst: self.burst.subscribe(),
            leadership: self.leadership.subscribe(),
            budget: self.settings.events,
            namespaces: self.namespaces.clone(),
        };
        let (api, clock) = (self.connections.events.clone(), self.clock.clone());
        EventTask::new(api, clock, channels, self.metrics.events.clone())
    }

    fn start_admin(&self, listener: TcpListener) -> Task {
        let admin = Admin {
            metrics: self.metrics.clone(),
            clock: self.clock.clone(),
            phase: self.phases.subscribe(),
        };
        self.start("admin", Phase::End, admin.serve(listener))
    }

    fn start_election(&self, commands: mpsc::Sender<ShardCommand>, reports: mpsc::Receiver<ShardReport>) -> Task {
        let membership = &self.settings.membership;
        let channels = ElectionChannels {
            commands,
            reports,
            leadership: self.leadership.clone(),
            n_fences: self.n_fences.clone(),
            went_back: self.went_back.clone(),
            writes: self.connections.writes.clone(),
            missing_permissions: self.metrics.permissions.subscribe(),
            phase: self.phases.subscribe(),
            snapshot: self.metrics.election_snapshot.clone(),
            metrics: self.metrics.election.clone(),
        };
        let task = ElectionTask::new(
            membership.election(self.settings.of_member()),
            Arc::clone(&membership.incarnations),
            self.lease_api(),
            self.clock.clone(),
            channels,
        );
        self.start("election", Phase::HandOver, task.run())
    }

    fn start_versions(&self, requests: mpsc::Receiver<VersionRequest>, answers: mpsc::Sender<VersionAnswer>) -> Task {
        let task = VersionTask {
            client: self.connections.watches.clone(),
            answers,
            failures: self.metrics.dispatch.api.failures.clone(),
            clock: self.clock.clone(),
        };
        self.start_until("current versions", Phase::StopIntake, task.run(requests))
    }

    fn start_clock(&self) -> Task {
        let (api, metrics) = (self.connections.writes.clone(), self.metrics.clock.clone());
        let task = ClockTask::new(api, self.clock.clone(), metrics);
        self.start_until("clock", Phase::End, task.run())
    }

    fn start_permissions(&self) -> Task {
        let task = PermissionTask {
            // The connection of Events, to leave those of Jobs and Leases free.
            api: self.connections.events.clone(),
            scopes: self.settings.scopes.clone(),
            lease_scope: Scope::Namespace(self.settings.membership.namespace.clone().into()),
            selects_namespaces: self.settings.namespace_selector.is_some(),
            reads_calendars: self.settings.reads_calendars,
            policies: self.settings.built_in_policies.clone(),
            clock: self.clock.clone(),
            api_metrics: self.metrics.events.api.clone(),
            snapshot: self.metrics.permissions.clone(),
        };
        self.start_until("permissions", Phase::StopIntake, task.run())
    }

    fn start_dispatcher(&self, queue: Arc<DispatchQueue>, answers: mpsc::Sender<TermedAnswer>) -> Task {
        let channels = DispatcherChannels {
            queue,
            answers,
            leadership: self.leadership.subscribe(),
            phase: self.phases.subscribe(),
            burst: self.burst.clone(),
            namespaces: self.namespaces.clone(),
        };
        let (api, in_flight_max) = (self.reading_api(), self.settings.in_flight_max);
        let dispatcher = Dispatcher::new(api, self.clock.clone(), channels, in_flight_max);
        self.start("dispatcher", Phase::StopIntake, dispatcher.run())
    }

    fn start_status_batcher(&self, queue: Arc<StatusQueue>, answers: mpsc::Sender<TermedAnswer>) -> Task {
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

    fn start_shard(&self, channels: ShardChannels) -> Task {
        let now = self.clock.now();
        let shards = self
            .settings
            .shards(self.namespaces.clone(), self.clock.skew_max(), now);
        let task = ShardTask::new(shards, self.clock.clone(), now, channels);
        self.start("shard", Phase::EndShards, task.run())
    }

    /// Returns `None` if no policy is named.
    fn start_policies(&self) -> Option<Task> {
        let policies = self.settings.built_in_policies.clone();
        if policies.is_empty() {
            return None;
        }
        let task = PolicyTask {
            // The connection of Events, to leave those of Jobs and Leases free.
            api: self.connections.events.clone(),
            policies,
            clock: self.clock.clone(),
            api_metrics: self.metrics.events.api.clone(),
            other_controllers: self.metrics.other_controllers.clone(),
        };
        Some(self.start_until("policies", Phase::StopIntake, task.run()))
    }

    /// Returns `None` if the configuration names no files to read again.
    fn start_credentials(&self) -> Option<Task> {
        let task = CredentialTask {
            server: self.connections.api_server.clone().filter(ApiServer::has_files)?,
            clock: self.clock.clone(),
        };
        // Runs until the last request was sent.
        Some(self.start_until("credentials", Phase::End, task.run()))
    }

    /// Starts the watches: of namespaces if a selector selects them, of calendars if they are read, and of CronJobs and
    /// Jobs in each scope.
    fn start_watches(&self, inputs: mpsc::Sender<Input>, events: EventQueue, tasks: &mut Vec<Task>) {
        let watches = Watches {
            client: self.connections.watches.clone(),
            clock: self.clock.clone(),
            metrics: self.metrics.clone(),
            inputs,
            events,
            n_fences: self.n_fences.subscribe(),
            went_back: self.went_back.clone(),
            namespaces: self.namespaces.clone(),
            are_namespaces_known: self.are_namespaces_known.subscribe(),
        };
        let mut start = |name, watch: BoxFuture<'static, ()>| {
            tasks.push(self.start_until(name, Phase::StopIntake, watch));
        };
        if let Some(selector) = &self.settings.namespace_selector {
            start("namespace watch", watches.of_namespaces(selector.clone()));
        }
        for scope in self.settings.scopes.iter().filter(|_| self.settings.reads_calendars) {
            start("calendar watch", watches.of_calendars(scope.clone()));
        }
        let decoder = Arc::new(self.settings.decoder(self.metrics.other_controllers.clone()));
        for relists in &self.relists {
            start("CronJob watch", watches.of_cron_jobs(relists, Arc::clone(&decoder)));
            start("Job watch", watches.of_jobs(relists));
        }
    }

    /// Starts a task of this machine. The task makes no progress while a simulated machine is frozen.
    fn start(&self, name: &'static str, ends_in: Phase, task: impl Future<Output = ()> + Send + 'static) -> Task {
        let clock = self.clock.clone();
        Task::spawn(name, ends_in, async move { clock.run_with(task).await })
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
