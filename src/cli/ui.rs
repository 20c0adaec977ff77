//! The `ui` command: the page of the read-only view, on any cluster and beside any controller.

pub(super) mod past;
pub(super) mod server_clock;
pub(super) mod source;

use std::{
    ffi::OsString,
    io::{self, Write},
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use clap::{Args, value_parser};
use kube::Client;
use tokio::net::TcpListener;

use self::{
    server_clock::ServerClock,
    source::{ClusterHeading, FleetSource},
};
use super::{
    args::values::{parse_listen_here, parse_namespace, parse_zone},
    config::scopes,
    error::CommandError,
};
use crate::{
    controller::clock::Clock,
    kube_api::ApiServer,
    observe::{
        observer::{Observed, Observer, Settings},
        page::{allowed_hosts, router},
    },
    schedule::Zone,
    shard::Scope,
    telemetry::admin::connections::{ConnectionLimits, Connections},
};

/// The slots that the page shows of one CronJob.
pub(super) const SLOTS_MAX: usize = 50;

/// A browser has up to six connections, and live updates have at most a hundred. A browser opens those again by itself when
/// their connection ends.
pub(super) const CONNECTION_LIMITS: ConnectionLimits = ConnectionLimits {
    n_open_max: 256,
    life_max: Duration::from_hours(1),
};

/// How often files with credentials are read again.
const CREDENTIAL_INTERVAL: Duration = Duration::from_secs(10);

/// More than anybody looks back.
const HISTORY_DAYS_MAX: u32 = 3_660;

/// Serves a page with the CronJobs of a cluster: what ran, what is late, failed or lost and why, and what is due.
///
/// It only reads: the account needs get, list and watch on cronjobs and jobs. With the same on
/// namespaces and configmaps, it knows freezes, defaults of namespaces and calendars.
#[derive(Args, Debug)]
pub struct UiArgs {
    /// The cluster, and what of it is shown.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Address and port of the page; port 0 selects a free one. A port alone stands for 127.0.0.1. There is no login:
    /// everyone who reaches an address beyond loopback sees the page
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8090", value_parser = parse_listen_here)]
    listen: SocketAddr,
    /// Host name by which browsers may reach the page, also with its port; can be repeated. Addresses of this machine are
    /// allowed anyway, and other names are refused, which protects against DNS rebinding
    #[arg(long = "allowed-host", value_name = "HOST")]
    allowed_hosts: Vec<String>,
    /// File that keeps runs beyond the Jobs that the cluster keeps, or none. Default: a file for each cluster in the state
    /// directory of the user, such as ~/.local/state/cronwheel
    #[arg(long, value_name = "FILE|none")]
    history: Option<OsString>,
    /// How many days the history keeps
    #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = value_parser!(u32).range(1..=i64::from(HISTORY_DAYS_MAX)))]
    history_days: u32,
}

/// What `ui`, `report` and `missed` read.
#[derive(Args, Debug)]
pub struct SourceArgs {
    /// Kubeconfig file. Default: the service account in a Pod, otherwise KUBECONFIG or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig. Default: the current context
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Name of the cluster in the title. Default: the context of the kubeconfig; in a Pod, the address of the API server
    #[arg(long, value_name = "NAME")]
    pub cluster_name: Option<String>,
    /// Namespace to show; can be repeated. Default: all namespaces
    #[arg(short, long = "namespace", value_name = "NAME", value_parser = parse_namespace)]
    namespaces: Vec<String>,
    /// Time zone of CronJobs without spec.timeZone, as their controller has it, e.g. Europe/Berlin
    #[arg(long, value_name = "ZONE", default_value = "UTC", value_parser = parse_zone)]
    pub(super) default_time_zone: Zone,
}

impl SourceArgs {
    /// The namespaces as scopes.
    pub(super) fn scopes(&self) -> Vec<Scope> {
        scopes(&self.namespaces)
    }
}

/// What the page is about.
pub struct Cluster {
    /// The client of the watches and of `explain`.
    pub client: Client,
    /// The name for people.
    pub name: String,
    /// The context of the kubeconfig, for commands to copy; `None` in a Pod.
    pub context: Option<String>,
    /// The address of the API server.
    pub address: String,
    /// The files with credentials, which are read again; `None` for a client without such files.
    pub credentials: Option<ApiServer>,
}

/// Serves the page until `end` is done. The address goes to `output`, and notes go to `notes`, one per line.
///
/// # Errors
///
/// [`CommandError`] if the address cannot be used, or if the account may not list all namespaces.
pub async fn run(
    args: &UiArgs,
    mut cluster: Cluster,
    clock: Clock,
    end: impl Future<Output = ()>,
    mut output: impl Write,
    mut notes: impl Write,
) -> Result<(), CommandError> {
    let listener = listen(args.listen).await?;
    let address = listener
        .local_addr()
        .map_err(|error| cannot_listen(args.listen, error))?;
    let hosts = allowed_hosts(address, &args.allowed_hosts)
        .map_err(|error| CommandError::from(format!("--allowed-host: {error}")))?;
    let clock = ServerClock::new(clock);
    cluster.client = clock.listening(cluster.client);
    let now = {
        let clock = clock.clone();
        move || clock.now()
    };
    let (fleet, keeper) = past::load(
        (args.history.as_ref(), args.history_days),
        &cluster,
        &args.source.scopes(),
        now(),
    );
    let observed = Observed::new(fleet);
    let settings = Settings {
        client: cluster.client.clone(),
        scopes: args.source.scopes(),
        default_zone: args.source.default_time_zone.clone(),
        now,
    };
    let task = Observer::new(settings, observed.clone(), keeper);
    writeln!(output, "CronJobs of {}: http://{address}", cluster.name)
        .and_then(|()| output.flush())
        .map_err(CommandError::Write)?;
    if let Some(note) = exposure(address) {
        // Standard error may be closed.
        let _ = writeln!(notes, "cronwheel: note: {note}");
    }
    let heading = ClusterHeading {
        name: cluster.name,
        context: cluster.context,
        client: cluster.client,
    };
    let source = FleetSource::new(observed, heading, args.source.default_time_zone.clone(), clock);
    let mut connections = Connections::new(router(Arc::new(source), hosts), CONNECTION_LIMITS);
    tokio::select! {
        biased;
        observed = task.run(end) => Ok(observed?),
        never = connections.serve(listener) => match never {},
        () = refresh(cluster.credentials) => Ok(()),
    }
}

/// Reads the files with credentials again, for ever. The token of a Pod changes every hour. If a file cannot be read, the
/// last one is used, and the page says when the API server no longer accepts it.
async fn refresh(credentials: Option<ApiServer>) {
    let Some(server) = credentials.filter(ApiServer::has_files) else {
        return std::future::pending().await;
    };
    loop {
        tokio::time::sleep(CREDENTIAL_INTERVAL).await;
        let _ = server.refresh_token().await;
        let _ = server.refresh_certificates().await;
    }
}

/// What an address beyond this machine exposes.
fn exposure(address: SocketAddr) -> Option<&'static str> {
    let is_exposed = !address.ip().is_loopback();
    is_exposed.then_some(
        "anyone who reaches this address sees the names, schedules and labels of all CronJobs; there is no login",
    )
}

async fn listen(address: SocketAddr) -> Result<TcpListener, CommandError> {
    TcpListener::bind(address)
        .await
        .map_err(|error| cannot_listen(address, error))
}

fn cannot_listen(address: SocketAddr, error: io::Error) -> CommandError {
    let fix = if error.kind() == io::ErrorKind::AddrInUse {
        "another process has this port; give a free one, such as --listen 8091, or 0 for any"
    } else if error.kind() == io::ErrorKind::PermissionDenied {
        "this user may not have this port; give one from 1024 on, such as --listen 8090"
    } else {
        "cannot listen there; give an address of this machine and a free port"
    };
    CommandError::caused(format!("--listen {address}: {fix}"), error)
}

#[cfg(test)]
mod tests;
