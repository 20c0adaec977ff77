//! Executes a parsed command line. Except for `dev`, the only place that writes to standard output.

use std::io::{self, IsTerminal as _};

use clap::CommandFactory;
use clap_complete::{Generator as _, Shell};
use jiff::SignedDuration;

use super::{
    args::{Cli, Command},
    backfill::{self, BackfillArgs, Console},
    check::{self, CheckArgs},
    config::{RunConfig, kube_config, named_kube_config},
    error::CommandError,
    explain::{self, ExplainArgs},
    freeze::{self, FreezeArgs, ThawArgs},
    missed::{self, MissedArgs},
    next,
    report::{self, ReportArgs},
    run_args::RunArgs,
    shards::{self, ShardsArgs},
    trigger::{self, TriggerArgs},
    ui::{self, Cluster, SourceArgs, UiArgs},
};
use crate::{
    controller::{Connections, Controller, RuntimeError, bind, clock::Clock, shutdown::Signals},
    kube_api::{ApiClient, ApiServer, JsonApi, WriteConnections, lease_client, watch_client},
    telemetry::metrics::Metrics,
    telemetry::{logging, panic_log},
};

/// Executes a command line. A closed standard output ends a command without an error.
pub fn execute(cli: Cli) -> Result<(), CommandError> {
    match perform(cli.command) {
        Err(error) if error.is_closed_output() => Ok(()),
        result => result,
    }
}

fn perform(command: Command) -> Result<(), CommandError> {
    match command {
        Command::Run(args) => run(&args),
        #[cfg(feature = "dev")]
        Command::Dev(args) => dev(&args),
        Command::Next(args) => {
            let now = Clock::system(SignedDuration::ZERO, SignedDuration::ZERO).now();
            next::run(args, now, io::stdin().lock(), io::stdout().lock())
        }
        Command::Explain(args) => explain(&args),
        Command::Check(args) => check(&args),
        Command::Shards(args) => shards(&args),
        Command::Ui(args) => ui(&args),
        Command::Report(args) => report(&args),
        Command::Missed(args) => missed(&args),
        Command::Backfill(args) => backfill(&args),
        Command::Trigger(args) => trigger(&args),
        Command::Freeze(args) => freeze(&args),
        Command::Thaw(args) => thaw(&args),
        Command::Completions { shell } => completions(shell, &mut io::stdout()).map_err(CommandError::Write),
        Command::Man { command } => man_page(command.as_deref(), &mut io::stdout()).map_err(CommandError::Write),
    }
}

/// Prints the completion script of a shell. `clap_complete::generate` would panic if the output cannot be written.
fn completions(shell: Shell, output: &mut impl io::Write) -> io::Result<()> {
    let mut command = Cli::command();
    command.set_bin_name("cronwheel");
    command.build();
    shell.try_generate(&command, output)
}

/// Prints the man page of cronwheel, or of one command.
fn man_page(command: Option<&str>, output: &mut impl io::Write) -> io::Result<()> {
    let mut all = Cli::command();
    all.build();
    let one = command.and_then(|name| all.find_subcommand(name)).cloned();
    clap_mangen::Man::new(one.unwrap_or(all)).render(output)
}

fn explain(args: &ExplainArgs) -> Result<(), CommandError> {
    let clock = Clock::system(SignedDuration::ZERO, SignedDuration::ZERO);
    // Not locked: a worker thread that panics writes to standard error.
    let (output, notes) = (io::stdout(), io::stderr());
    let name = args.name_in_cluster()?;
    if name.is_none() && !args.asks_server() {
        return explain::run(args, clock.now(), io::stdin().lock(), output, notes);
    }
    on_threads(async {
        let config = kube_config(args.kubeconfig.as_deref(), args.context.as_deref()).await?;
        let namespace = args.namespace.as_deref().unwrap_or(&config.default_namespace);
        let server = ApiServer::open(&config).await.map_err(RuntimeError::Connect)?;
        let client = watch_client(&server).map_err(RuntimeError::Connect)?;
        let now = || clock.now();
        match name {
            Some(name) => explain::run_live(args, &client, (namespace, name), now, output, notes).await,
            None => explain::run_on_server(args, (&client, namespace), now, io::stdin(), output, notes).await,
        }
    })
}

fn check(args: &CheckArgs) -> Result<(), CommandError> {
    on_threads(async {
        let config = kube_config(args.kubeconfig.as_deref(), args.context.as_deref()).await?;
        let server = ApiServer::open(&config).await.map_err(RuntimeError::Connect)?;
        let sources = check::Sources {
            client: watch_client(&server).map_err(RuntimeError::Connect)?,
            leases: lease_client(&server).map_err(RuntimeError::Connect)?,
            lease_namespaces: shards::namespaces(args.lease_namespace.as_deref(), &config.default_namespace),
        };
        let clock = Clock::system(SignedDuration::ZERO, SignedDuration::ZERO);
        let is_terminal = io::stdout().is_terminal();
        // Listened for from here on, so that a signal during the first requests is not lost.
        let signals = args.writes().then(Signals::listen).transpose();
        let mut signals = signals.map_err(RuntimeError::Signals)?;
        let interrupted = async {
            match &mut signals {
                Some(signals) => drop(signals.next().await),
                None => std::future::pending().await,
            }
        };
        check::run(args, sources, &clock, interrupted, io::stdout(), is_terminal).await
    })
}

fn shards(args: &ShardsArgs) -> Result<(), CommandError> {
    on_threads(async {
        let config = kube_config(args.kubeconfig.as_deref(), args.context.as_deref()).await?;
        let server = ApiServer::open(&config).await.map_err(RuntimeError::Connect)?;
        let sources = shards::Sources {
            leases: lease_client(&server).map_err(RuntimeError::Connect)?,
            cron_jobs: watch_client(&server).map_err(RuntimeError::Connect)?,
            namespaces: shards::namespaces(args.lease_namespace.as_deref(), &config.default_namespace),
        };
        let clock = Clock::system(SignedDuration::ZERO, SignedDuration::ZERO);
        shards::run(args, sources, &clock, io::stdout(), io::stderr()).await
    })
}

fn ui(args: &UiArgs) -> Result<(), CommandError> {
    on_threads(async {
        // Listened for from here on, so that a signal during the start is not lost.
        let mut signals = Signals::listen().map_err(RuntimeError::Signals)?;
        let end = async { _ = signals.next().await };
        let cluster = cluster(&args.source).await?;
        let clock = Clock::system(SignedDuration::ZERO, SignedDuration::ZERO);
        ui::run(args, cluster, clock, end, io::stdout(), io::stderr()).await
    })
}

fn report(args: &ReportArgs) -> Result<(), CommandError> {
    on_threads(async {
        let cluster = cluster(&args.source).await?;
        let clock = Clock::system(SignedDuration::ZERO, SignedDuration::ZERO);
        report::run(args, cluster, &clock, io::stdout(), io::stderr()).await
    })
}

fn missed(args: &MissedArgs) -> Result<(), CommandError> {
    on_threads(async {
        let cluster = cluster(&args.source).await?;
        let clock = Clock::system(SignedDuration::ZERO, SignedDuration::ZERO);
        missed::run(args, cluster, &clock, io::stdout(), io::stderr()).await
    })
}

fn backfill(args: &BackfillArgs) -> Result<(), CommandError> {
    on_threads(async {
        let (config, context) = named_kube_config(args.kubeconfig.as_deref(), args.context.as_deref()).await?;
        let server = ApiServer::open(&config).await.map_err(RuntimeError::Connect)?;
        let connections = WriteConnections::connect(&server, 1).map_err(RuntimeError::Connect)?;
        let sources = backfill::Sources {
            writes: ApiClient::new(connections),
            namespaces: JsonApi::new(watch_client(&server).map_err(RuntimeError::Connect)?),
            cluster: cluster_of(&config, context, args.cluster_name.as_deref(), server)?,
            namespace: config.default_namespace,
        };
        let clock = Clock::system(SignedDuration::ZERO, SignedDuration::ZERO);
        let console = Console::new(io::stdout(), io::stdout().is_terminal());
        let console = if io::stdin().is_terminal() {
            console.with_answers(io::stdin().lock())
        } else {
            console
        };
        let listen = || {
            let mut signals = Signals::listen().map_err(RuntimeError::Signals)?;
            Ok(async move { _ = signals.next().await })
        };
        backfill::run(args, sources, &clock, listen, console, io::stderr()).await
    })
}

fn trigger(args: &TriggerArgs) -> Result<(), CommandError> {
    on_threads(async {
        let config = kube_config(args.kubeconfig.as_deref(), args.context.as_deref()).await?;
        let server = ApiServer::open(&config).await.map_err(RuntimeError::Connect)?;
        let api = JsonApi::new(watch_client(&server).map_err(RuntimeError::Connect)?);
        trigger::run(args, &api, &config.default_namespace, io::stdout()).await
    })
}

fn freeze(args: &FreezeArgs) -> Result<(), CommandError> {
    on_threads(async {
        let config = kube_config(args.target.kubeconfig.as_deref(), args.target.context.as_deref()).await?;
        let server = ApiServer::open(&config).await.map_err(RuntimeError::Connect)?;
        let api = JsonApi::new(watch_client(&server).map_err(RuntimeError::Connect)?);
        let leases = freeze::Leases {
            client: lease_client(&server).map_err(RuntimeError::Connect)?,
            namespaces: shards::namespaces(args.lease_namespace.as_deref(), &config.default_namespace),
        };
        let clock = Clock::system(SignedDuration::ZERO, SignedDuration::ZERO);
        freeze::freeze(args, &api, &leases, clock.now(), io::stdout(), io::stderr()).await
    })
}

fn thaw(args: &ThawArgs) -> Result<(), CommandError> {
    on_threads(async {
        let config = kube_config(args.target.kubeconfig.as_deref(), args.target.context.as_deref()).await?;
        let server = ApiServer::open(&config).await.map_err(RuntimeError::Connect)?;
        let api = JsonApi::new(watch_client(&server).map_err(RuntimeError::Connect)?);
        let clock = Clock::system(SignedDuration::ZERO, SignedDuration::ZERO);
        freeze::thaw(args, &api, || clock.now(), io::stdout()).await
    })
}

/// The cluster of a command that only reads.
async fn cluster(args: &SourceArgs) -> Result<Cluster, CommandError> {
    let (config, context) = named_kube_config(args.kubeconfig.as_deref(), args.context.as_deref()).await?;
    let server = ApiServer::open(&config).await.map_err(RuntimeError::Connect)?;
    cluster_of(&config, context, args.cluster_name.as_deref(), server)
}

fn cluster_of(
    config: &kube::Config,
    context: Option<String>,
    cluster_name: Option<&str>,
    server: ApiServer,
) -> Result<Cluster, CommandError> {
    let name = cluster_name.map(str::to_owned).or_else(|| context.clone());
    let name = name.or_else(|| config.cluster_url.host().map(str::to_owned));
    Ok(Cluster {
        client: watch_client(&server).map_err(RuntimeError::Connect)?,
        name: name.unwrap_or_default(),
        context,
        address: config.cluster_url.to_string(),
        credentials: Some(server),
    })
}

fn run(args: &RunArgs) -> Result<(), CommandError> {
    logging::start(args.log_format, args.log_level);
    panic_log::start();
    on_threads(async {
        let config = RunConfig::load(args).await?;
        config.log(args);
        Ok(run_until_signal(args, config).await?)
    })
}

async fn run_until_signal(args: &RunArgs, config: RunConfig) -> Result<(), RuntimeError> {
    let mut signals = Signals::listen().map_err(RuntimeError::Signals)?;
    let controller = Controller {
        clock: Clock::system(args.clock_offset, args.max_clock_skew),
        connections: Connections::open(&config.kube).await?,
        metrics: Metrics::register(),
        settings: config.settings,
    };
    let endpoints = bind(args.listen).await?;
    let next_signal = async || signals.next().await;
    controller.run(Some(endpoints), Vec::new(), next_signal).await
}

#[cfg(feature = "dev")]
fn dev(args: &super::dev::DevArgs) -> Result<(), CommandError> {
    on_threads(super::dev::run(args))
}

fn on_threads(task: impl Future<Output = Result<(), CommandError>>) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandError::caused("cannot start the async runtime", error))?;
    let result = runtime.block_on(task);
    // Tasks that still run were left on purpose.
    runtime.shutdown_background();
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(command: Option<&str>) -> String {
        let mut page = Vec::new();
        man_page(command, &mut page).unwrap();
        String::from_utf8(page).unwrap()
    }

    #[test]
    fn man_pages_are_rendered() {
        let all = page(None);
        assert!(
            all.contains(".TH cronwheel 1") && all.contains("cronwheel\\-shards(1)"),
            "{all}"
        );
        let one = page(Some("shards"));
        assert!(
            one.contains(".TH cronwheel-shards 1") && one.contains("List replicas, shards and their leaders"),
            "{one}"
        );
        assert!(one.contains("\\-\\-installation"), "{one}");
    }
}
