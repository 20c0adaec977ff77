//! The `dev` command: an in-memory API server on a loopback port, a runner for its Jobs, the real controller as a client
//! of it, and the page of `cronwheel ui`, in one process. It is for trying cronwheel with `kubectl` and without a
//! cluster.
//!
//! Invariant: however the process ends, except by SIGKILL, the ports are released and the kubeconfig is removed, unless
//! somebody changed it.

mod audit;
mod board;
mod ending;
mod faults;
mod figures;
mod filling;
mod guide;
mod kubeconfig;
mod last_minute;
mod lateness;
mod output;
mod page;
mod population;
mod snapshot;
mod view;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use apisim::{Api, Checks, JobRunner, JobRunnerOptions, Options, Server, WallClock, check_annotations};
use clap::{Args, value_parser};
use futures::{FutureExt, future::pending};
use http::uri::InvalidUri;
use jiff::SignedDuration;
use kube::{Client, Config};
use tokio::{net::TcpListener, sync::Notify};

use self::{
    ending::Ending,
    faults::Injection,
    guide::Guide,
    kubeconfig::KubeconfigFile,
    output::Output,
    page::Page,
    view::{SharedBoard, View},
};
use super::{
    args::values::{parse_listen_here, parse_run_time},
    config::random_number,
    error::CommandError,
};
use crate::{
    controller::{
        Companion, Connections, Controller, RuntimeError, bind,
        clock::Clock,
        event_task::EventBudget,
        settings::{CronJobMetrics, LogRuns, Membership, RunSettings},
    },
    coordination::{InstallationName, PROTOCOL_VERSION, Timing},
    explain::api_checks::CHECKS,
    kube_api::NamespaceSelector,
    schedule::Zone,
    shard::{MISSED_RUNS_PER_SECOND_DEFAULT, Scope, ShardCount, TemplateMemory},
    telemetry::{
        logging::{self, LogFormat, LogLevel},
        metrics::Metrics,
    },
};

/// The port next to that of a Kubernetes API server, which is not registered.
const PORT: u16 = 6440;

/// Ten times as many as the largest clusters have; they take 8 GB.
const CRON_JOBS_MAX: i64 = 1_000_000;

/// The client name of the controller. It has a separate port, so faults affect no other client.
const CONTROLLER: &str = "controller";

/// The namespace of the controller's Leases, where `cronwheel shards` looks for them by default.
const LEASE_NAMESPACE: &str = "kube-system";

/// The default duration of a Job, long enough to observe it with kubectl.
const RUN_FOR: std::ops::Range<Duration> = Duration::from_secs(2)..Duration::from_secs(5);

/// The tolerance against the API server's clock, which is the same clock.
const SKEW_MAX: SignedDuration = SignedDuration::from_secs(2);

/// The default of `run`.
const STATUS_FLUSH_INTERVAL: Duration = Duration::from_secs(1);
const IN_FLIGHT_MAX: u32 = 128;

/// Runs everything in one process, without a cluster: an API server in memory for kubectl, Jobs that end, the
/// controller, and the page of `cronwheel ui`. All options have an effect, also on namespaces and with calendars.
#[derive(Clone, Debug, Args)]
pub struct DevArgs {
    /// Port of the API server on 127.0.0.1; 0 selects a free one
    #[arg(long, value_name = "PORT", default_value_t = PORT)]
    port: u16,

    /// Port of the page on 127.0.0.1; 0 selects a free one. Default: 6441, or a free one if that is taken
    #[arg(long, value_name = "PORT")]
    page_port: Option<u16>,

    /// Kubeconfig file to write; it is removed at the end, unless it was changed
    #[arg(long, value_name = "FILE", default_value = "cronwheel-dev.kubeconfig")]
    kubeconfig: PathBuf,

    /// Number of CronJobs to create at the start, at most a million, with varied schedules, policies, time zones and
    /// Jobs, in namespaces of their own
    #[arg(long, value_name = "COUNT", default_value_t = 0, value_parser = value_parser!(u32).range(..=CRON_JOBS_MAX))]
    cronjobs: u32,

    /// Seed of those CronJobs and of the duration and outcome of Jobs
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// Inject faults into the requests of the controller alone, drawn from the seed: lost and slow answers, lost
    /// requests, errors, broken watches. The page and the output count them, and
    /// the runs that they cost
    #[arg(long)]
    faults: bool,

    /// How long to run. Default: until Ctrl-C
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_run_time)]
    run_for: Option<Duration>,

    /// Address and port of /healthz, /readyz and /metrics; port 0 selects a free one. A port alone stands for 127.0.0.1
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0", value_parser = parse_listen_here)]
    listen: SocketAddr,

    /// Minimum level of the log, which goes to standard error
    #[arg(long, value_enum, default_value_t)]
    log_level: LogLevel,
}

/// Runs until a signal or the end of its time. Requires a multi-threaded tokio runtime.
///
/// # Errors
///
/// [`CommandError`] if a port, the kubeconfig or the output cannot be used, or if the controller fails.
pub async fn run(args: &DevArgs) -> Result<(), CommandError> {
    let output_is_gone = Arc::new(Notify::new());
    let mut ending = Ending::listen(args.run_for, Arc::clone(&output_is_gone)).map_err(RuntimeError::Signals)?;
    let clock = Clock::system(SignedDuration::ZERO, SKEW_MAX);
    let api = api(args, clock.clone());
    let server = listen(args.port, &api, "user").await?;
    let page_listener = page::listen(args.page_port).await?;
    let controllers_server = listen(0, &api, CONTROLLER).await?;
    let endpoints = bind(args.listen).await?;
    let connections = Connections::open(&config(controllers_server.address())?)
        .await
        .map_err(RuntimeError::Connect)?;
    let kubeconfig = KubeconfigFile::write(&args.kubeconfig, server.address())?;
    let output = Output::begin(output_is_gone).map_err(CommandError::Write)?;
    logging::start_to(LogFormat::Text, args.log_level, output.clone());
    print_guide(args, &server, [&page_listener, &endpoints], &output).map_err(CommandError::Write)?;
    let injection = args.faults.then(|| Injection::begin(&api));
    let shared_board = Arc::new(SharedBoard::begin(clock.clone(), injection, args.cronjobs));
    let page = Page::new(in_process(&api, "page"), clock.clone(), Arc::clone(&shared_board));
    let view = View {
        output: output.clone(),
        client: in_process(&api, "view"),
        shared_board: Arc::clone(&shared_board),
    };
    let controller = Controller {
        settings: settings(),
        clock,
        connections,
        metrics: Metrics::register(),
    };
    let mut companions = companions(args.seed, &api, [server, controllers_server], view, &controller.metrics);
    companions.push(companion("page", page.serve(page_listener)));
    let next_signal = async || {
        let reason = ending.next().await;
        shared_board.end();
        reason
    };
    let outcome = controller.run(Some(endpoints), companions, next_signal).await;
    // Before the last line, which may wait for its reader.
    drop(kubeconfig);
    output.end(shared_board.snapshot().totals_line()).await;
    Ok(outcome?)
}

/// Prints the addresses, and what to try.
fn print_guide(
    args: &DevArgs,
    server: &Server,
    [page, endpoints]: [&TcpListener; 2],
    output: &Output,
) -> io::Result<()> {
    let program = std::env::args().next();
    let guide = Guide {
        page: format!("http://{}", page.local_addr()?),
        api_server: format!("http://{}", server.address()),
        metrics: format!("http://{}/metrics", endpoints.local_addr()?),
        program: program.as_deref().unwrap_or("cronwheel"),
        kubeconfig: &args.kubeconfig,
        is_filled: args.cronjobs > 0,
    };
    for line in guide.lines() {
        output.line(line);
    }
    Ok(())
}

fn api(args: &DevArgs, clock: Clock) -> Api {
    let mut options = Options {
        seed: args.seed,
        checks: Checks {
            admission: check_annotations,
            ..CHECKS
        },
        ..Options::default()
    };
    if args.cronjobs > 0 {
        options.namespaces.extend(population::namespaces().map(str::to_owned));
    }
    // The raw clock: a clock behind the guard could not show a step to the guard.
    Api::new(options, WallClock::new(move || clock.wall()))
}

/// Serves the API to one client, so that its faults affect no other.
async fn listen(port: u16, api: &Api, client: &str) -> Result<Server, CommandError> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    Server::bind(address, api.client(client)).await.map_err(|error| {
        let fix = "give another port, or 0 for any that is free";
        CommandError::caused(
            format!("--port {port}: the API server cannot listen there; {fix}"),
            error,
        )
    })
}

/// Returns the controller's connection to the API server, through a port like any client.
fn config(address: SocketAddr) -> Result<Config, CommandError> {
    let uri = format!("http://{address}")
        .parse()
        .map_err(|error: InvalidUri| CommandError::caused("cannot connect to the API server of dev", error))?;
    let mut config = Config::new(uri);
    config.proxy_url = None;
    Ok(config)
}

fn in_process(api: &Api, name: &str) -> Client {
    Client::new(api.client(name), "default")
}

fn settings() -> RunSettings {
    RunSettings {
        scopes: vec![Scope::Cluster],
        // So that freezes and defaults of namespaces have an effect.
        namespace_selector: Some(NamespaceSelector::every()),
        default_zone: Zone::utc(),
        status_flush_interval: STATUS_FLUSH_INTERVAL,
        membership: membership(),
        in_flight_max: IN_FLIGHT_MAX,
        template_memory_mib: TemplateMemory::MIB_DEFAULT,
        missed_runs_per_second: MISSED_RUNS_PER_SECOND_DEFAULT,
        freeze: None,
        reads_calendars: true,
        built_in_policies: Vec::new(),
        events: EventBudget::default(),
        cron_job_metrics: CronJobMetrics::default(),
        trouble_label: None,
        log_runs: LogRuns::default(),
    }
}

/// The only member of its installation. Nothing outlives the process, so its identity can be a constant.
fn membership() -> Membership {
    Membership {
        installation: InstallationName::default(),
        namespace: LEASE_NAMESPACE.into(),
        pod_name: "cronwheel-dev".into(),
        pod_uid: "dev".into(),
        owner: None,
        revision: "".into(),
        shard_count: ShardCount::default(),
        protocol: PROTOCOL_VERSION,
        timing: Timing::DEFAULT,
        incarnations: Arc::new(random_number),
    }
}

fn companions(seed: u64, api: &Api, servers: [Server; 2], view: View, metrics: &Metrics) -> Vec<Companion> {
    let job_lives = JobRunnerOptions {
        seed,
        run_for: RUN_FOR,
        ..JobRunnerOptions::default()
    };
    let n_to_fill = Arc::clone(&view.shared_board.n_to_fill);
    let filling = filling::fill(in_process(api, "filling"), seed, n_to_fill);
    let servers = servers.map(|server| companion("API server", server.run(pending())));
    let mut companions = Vec::from(servers);
    companions.extend([
        companion("Job runner", JobRunner::new(api.clone(), job_lives).run()),
        companion("view", view.run(metrics.clone())),
        companion("filling", filling.then(|()| pending())),
    ]);
    companions
}

fn companion(name: &'static str, run: impl Future<Output = ()> + Send + 'static) -> Companion {
    Companion { name, run: run.boxed() }
}
