//! The page of `cronwheel ui`, with the figures of `dev` on it. Its history is in memory only.

use std::{
    future::pending,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use axum::Router;
use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::Client;
use tokio::net::TcpListener;

use super::{audit::Problem, snapshot::Snapshot, view::SharedBoard};
use crate::{
    cli::{
        error::CommandError,
        ui::{
            CONNECTION_LIMITS, SLOTS_MAX,
            server_clock::ServerClock,
            source::{ClusterHeading, FleetSource},
        },
    },
    controller::clock::Clock,
    kube_api::latest_value::LatestReceiver,
    observe::{
        fleet::{Fleet, FleetConfig},
        observer::{NoHistory, Observed, Observer, Settings},
        page::{Figure, FigureGroup, Finding, Heading, PageSource, Panel, allowed_hosts, router},
        view::{CronJobName, Detail, Filter, Overview, Rows, Strip},
        words::instant_text,
    },
    schedule::Zone,
    shard::Scope,
    telemetry::admin::connections::Connections,
};

/// The port next to that of the API server.
const PORT: u16 = 6441;

/// The name of the cluster on the page.
const CLUSTER: &str = "cronwheel dev";

/// Listens on the port of `--page-port`. Without it, on the usual port, or on a free one if that is taken.
///
/// # Errors
///
/// [`CommandError`] if the given port cannot be used.
pub(super) async fn listen(port: Option<u16>) -> Result<TcpListener, CommandError> {
    let bind = async |port| TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await;
    let listener = match bind(port.unwrap_or(PORT)).await {
        Err(error) if port.is_none() && error.kind() == io::ErrorKind::AddrInUse => bind(0).await,
        listener => listener,
    };
    listener.map_err(|error| {
        let port = port.unwrap_or(PORT);
        let fix = "give another port, or 0 for any that is free";
        CommandError::caused(
            format!("--page-port {port}: the page cannot listen there; {fix}"),
            error,
        )
    })
}

/// The page, which does not observe yet.
pub(super) struct Page {
    source: Arc<DevSource>,
    client: Client,
    clock: Clock,
}

impl Page {
    pub(super) fn new(client: Client, clock: Clock, shared_board: Arc<SharedBoard>) -> Page {
        let fleet = Fleet::new(FleetConfig::of_slots(SLOTS_MAX), clock.wall());
        let cluster = ClusterHeading {
            name: CLUSTER.to_owned(),
            context: None,
            client: client.clone(),
        };
        let fleet = FleetSource::new(
            Observed::new(fleet),
            cluster,
            Zone::utc(),
            ServerClock::new(clock.clone()),
        );
        let source = Arc::new(DevSource { fleet, shared_board });
        Page { source, client, clock }
    }

    /// Serves the page until it is dropped.
    pub(super) async fn serve(self, listener: TcpListener) {
        let served = async {
            let router = self.router(listener.local_addr()?)?;
            let mut connections = Connections::new(router, CONNECTION_LIMITS);
            io::Result::Ok(connections.serve(listener).await)
        };
        let problem = tokio::select! {
            served = served => served.err().map(|error| error.to_string()),
            observed = self.observer().run(pending()) => observed.err().map(|error| error.to_string()),
            () = self.pass_changes_on() => None,
        };
        tracing::error!(problem, "the page cannot be served any more");
    }

    fn router(&self, address: SocketAddr) -> io::Result<Router> {
        let hosts = allowed_hosts(address, &[]).map_err(io::Error::other)?;
        Ok(router(Arc::clone(&self.source) as Arc<dyn PageSource>, hosts))
    }

    fn observer(&self) -> Observer<impl Fn() -> Timestamp, NoHistory> {
        let clock = self.clock.clone();
        let settings = Settings {
            client: self.client.clone(),
            scopes: vec![Scope::Cluster],
            default_zone: Zone::utc(),
            now: move || clock.wall(),
        };
        Observer::new(settings, self.source.fleet.observed.clone(), NoHistory)
    }

    /// A change of the fleet changes the page.
    async fn pass_changes_on(&self) {
        let mut versions = self.source.fleet.observed.version();
        loop {
            versions.changed().await;
            versions.see();
            self.source.shared_board.note_change();
        }
    }
}

/// What the page of `ui` reads, and the figures of `dev`.
struct DevSource {
    fleet: FleetSource,
    shared_board: Arc<SharedBoard>,
}

impl PageSource for DevSource {
    fn heading(&self) -> Heading {
        let mut heading = self.fleet.heading();
        heading
            .banners
            .extend(filling_banner(self.shared_board.snapshot().n_to_fill));
        heading
    }

    fn overview(&self) -> Overview {
        self.fleet.overview()
    }

    fn strip(&self, from: Timestamp, to: Timestamp) -> Strip {
        self.fleet.strip(from, to)
    }

    fn rows(&self, filter: &Filter) -> Rows {
        self.fleet.rows(filter)
    }

    fn detail(&self, cron_job: &CronJobName) -> Option<Detail> {
        self.fleet.detail(cron_job)
    }

    fn explain(&self, cron_job: &CronJobName) -> BoxFuture<'static, Result<String, String>> {
        self.fleet.explain(cron_job)
    }

    fn changes(&self) -> LatestReceiver<u64> {
        self.shared_board.changes()
    }

    fn now(&self) -> Timestamp {
        self.fleet.now()
    }

    fn panel(&self) -> Option<Panel> {
        Some(panel(&self.shared_board.snapshot()))
    }
}

fn filling_banner(n_to_fill: u32) -> Option<String> {
    (n_to_fill > 0).then(|| format!("Number of CronJobs of --cronjobs that are still to be created: {n_to_fill}."))
}

/// The figures that the totals have, and the cases behind them.
fn panel(snapshot: &Snapshot) -> Panel {
    let figure = |count, label, is_bad| Figure { count, label, is_bad };
    let runs = &snapshot.figures.runs;
    let runs = FigureGroup {
        name: "Runs",
        figures: vec![
            figure(runs.started, "started", false),
            figure(runs.held_back, "held back", false),
            figure(runs.waiting, "waiting", false),
            figure(runs.missed, "missed", true),
            figure(runs.doubled, "doubled", true),
        ],
    };
    let faults = snapshot.faults.map(|faults| FigureGroup {
        name: "Injected faults",
        figures: std::iter::once(figure(faults.total(), "in all", false))
            .chain(faults.kinds().map(|(name, count)| figure(count, name, false)))
            .collect(),
    });
    let findings = snapshot.figures.findings.iter().map(|finding| {
        let what = match finding.problem {
            Problem::Missed => "missed",
            Problem::Doubled => "doubled",
        };
        Finding {
            cron_job: CronJobName {
                namespace: finding.cron_job.namespace.to_string().into(),
                name: finding.cron_job.name.to_string().into(),
            },
            text: format!("the run of {} was {what}", instant_text(finding.slot)),
        }
    });
    Panel {
        title: "This run of cronwheel dev",
        note: format!(
            "since {}, counted from the objects on the API server",
            instant_text(snapshot.begun)
        ),
        groups: std::iter::once(runs).chain(faults).collect(),
        findings: findings.collect(),
    }
}

#[cfg(test)]
mod tests;
