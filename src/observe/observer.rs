//! The task that fills the fleet from the watches, and hands what happened to the history.
//!
//! It owns no task of its own: the command joins it with the page. The lock of the fleet is held for one chunk of signals
//! or one view, never across an await.

mod keeper;
mod links;
mod orders;
pub mod source;
mod watches;

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{
    StreamExt,
    stream::{BoxStream, ReadyChunks, SelectAll},
};
use jiff::{SignedDuration, Timestamp};
use kube::Client;

pub use self::keeper::{Keeper, NoHistory};
use self::{
    links::{Links, optional::OptionalLinks},
    orders::{obey, obey_optional},
    source::Source,
    watches::{Gates, WatchId, Watches},
};
use super::{
    facts::{Kind, OptionalKind, Record},
    fleet::Fleet,
    watch::signals::Signal,
};
use crate::{
    kube_api::latest_value::{LatestReceiver, LatestSender},
    schedule::{Zone, after},
    shard::Scope,
};

/// Maximum number of signals between two moments at which a view can be taken.
const CHUNK_MAX: usize = 256;

/// The longest sleep: the history has the time of the last second, the wall clock may be set, and the machine may sleep.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// The shortest sleep, so that many CronJobs that are due at different milliseconds do not keep the task awake.
const SLEEP_MIN: Duration = Duration::from_millis(20);

/// A longer time between two steps means that the machine or the process was stopped, and that the connections may be
/// dead.
const GAP_MIN: SignedDuration = SignedDuration::from_secs(60);

/// The interval of writes to the history.
const KEEP_INTERVAL: SignedDuration = SignedDuration::from_secs(1);

/// Why nothing can be observed.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// The account may not list all namespaces.
    #[error(
        "cannot read the CronJobs and Jobs of all namespaces: {0}; give the namespaces that the account may read, each by \
         -n NAME, or grant it get, list and watch on cronjobs and jobs by a ClusterRole"
    )]
    Forbidden(String),
    /// The account may not list any of the given namespaces.
    #[error(
        "cannot read any of the namespaces: {0}; grant the account get, list and watch on cronjobs and jobs in one of them"
    )]
    NothingReadable(String),
    /// The API server does not answer, or answers with an error.
    #[error("cannot list CronJobs and Jobs: {0}")]
    Failed(String),
}

/// What was observed, for those who show it. Clones share it.
#[derive(Clone)]
pub struct Observed(Arc<Shared>);

struct Shared {
    fleet: Mutex<Fleet>,
    source: Mutex<Source>,
    /// Changes with every change of the two.
    version: LatestSender<u64>,
}

impl Observed {
    /// Takes a fleet, in which the history is loaded already.
    pub fn new(fleet: Fleet) -> Observed {
        Observed(Arc::new(Shared {
            fleet: Mutex::new(fleet),
            source: Mutex::new(Source::default()),
            version: LatestSender::new(0),
        }))
    }

    /// Locks the fleet, to take a view. Not to be held across an await.
    pub fn fleet(&self) -> MutexGuard<'_, Fleet> {
        self.0.fleet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state of the source.
    pub fn source(&self) -> Source {
        self.0.source.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Receives a number that changes whenever a view may have changed.
    pub fn version(&self) -> LatestReceiver<u64> {
        self.0.version.subscribe()
    }

    fn set_source(&self, source: Source) -> bool {
        let mut current = self.0.source.lock().unwrap_or_else(PoisonError::into_inner);
        let is_changed = *current != source;
        *current = source;
        is_changed
    }
}

/// What is observed, and by which clock.
pub struct Settings<N> {
    /// The client of all watches.
    pub client: Client,
    /// The scopes: the cluster, or some namespaces.
    pub scopes: Vec<Scope>,
    /// The time zone of schedules that name none.
    pub default_zone: Zone,
    /// The clock.
    pub now: N,
}

/// The task.
pub struct Observer<N, K> {
    now: N,
    observed: Observed,
    keeper: K,
    signals: ReadyChunks<SelectAll<BoxStream<'static, (WatchId, Signal)>>>,
    links: Links,
    optional_links: OptionalLinks,
    relists: Vec<(WatchId, LatestSender<u64>)>,
    gates: Vec<Gates>,
    /// The last step.
    stepped: Timestamp,
    is_current: bool,
    /// The version of the fleet at the last step.
    fleet_version: u64,
    records: Vec<Record>,
    kept: Timestamp,
}

impl<N: Fn() -> Timestamp, K: Keeper> Observer<N, K> {
    /// Prepares the watches; nothing is requested before the first step.
    pub fn new(settings: Settings<N>, observed: Observed, keeper: K) -> Observer<N, K> {
        let Settings {
            client,
            scopes,
            default_zone,
            now,
        } = settings;
        observed.fleet().set_scopes(&scopes);
        let Watches {
            signals,
            relists,
            gates,
        } = Watches::new(&client, &scopes, &default_zone);
        let begun = now();
        Observer {
            now,
            observed,
            keeper,
            signals: signals.ready_chunks(CHUNK_MAX),
            links: Links::new(&scopes),
            optional_links: OptionalLinks::new(&scopes),
            relists,
            gates,
            stepped: begun,
            is_current: false,
            fleet_version: 0,
            records: Vec::new(),
            kept: begun,
        }
    }

    /// Observes until the future is done.
    ///
    /// # Errors
    ///
    /// [`ObserveError::Forbidden`] if the account may not list all namespaces and was to. All other failures pass.
    pub async fn run(mut self, end: impl Future<Output = ()>) -> Result<(), ObserveError> {
        let ended = tokio::select! {
            biased;
            () = end => Ok(()),
            failed = self.steps() => failed.map(|never| match never {}),
        };
        self.keep((self.now)());
        ended
    }

    /// Ends only with an error.
    async fn steps(&mut self) -> Result<Infallible, ObserveError> {
        loop {
            self.step().await?;
        }
    }

    /// Observes until everything that may be read was listed once.
    ///
    /// # Errors
    ///
    /// Any failure except for the missing permission on some of the namespaces.
    pub async fn list(mut self) -> Result<(), ObserveError> {
        while !self.is_complete() {
            self.step().await?;
            if let Some((_, failure)) = self.links.failure() {
                return Err(ObserveError::Failed(failure.to_owned()));
            }
        }
        let unreadable = self.links.unreadable();
        if unreadable.len() == self.links.n_scopes() {
            let problems: Vec<String> = unreadable.into_iter().map(|one| one.problem).collect();
            return Err(ObserveError::NothingReadable(problems.join("; ")));
        }
        Ok(())
    }

    /// Whether everything was listed that can be.
    fn is_complete(&self) -> bool {
        let needs_calendars = self.observed.fleet().needs_calendars();
        let optional = &self.optional_links;
        self.links.is_complete()
            && optional.is_settled(OptionalKind::Namespace)
            && (!needs_calendars || optional.is_settled(OptionalKind::Calendar))
    }

    /// Waits for signals or for the next due moment, and brings the fleet up to date.
    async fn step(&mut self) -> Result<(), ObserveError> {
        let wait = self.wait();
        let signals = tokio::select! {
            biased;
            signals = self.signals.next() => signals.unwrap_or_default(),
            () = tokio::time::sleep(wait) => Vec::new(),
        };
        let now = (self.now)();
        if now.duration_since(self.stepped) >= GAP_MIN {
            // What happened meanwhile was not seen.
            self.observed.fleet().set_watches_current(false, self.stepped);
            self.is_current = false;
            self.links.relist_all();
            let optional = self.relists.iter().filter(|(id, _)| matches!(id, WatchId::Optional(_)));
            optional.for_each(|(_, relist)| relist.update(|n_relists| n_relists + 1));
        }
        self.stepped = now;
        self.take(signals, now);
        for id in self.links.take_relists() {
            let relists = self.relists.iter().filter(|(of, _)| *of == WatchId::Needed(id));
            relists.for_each(|(_, relist)| relist.update(|n_relists| n_relists + 1));
        }
        self.settle(now);
        match self.links.refusal() {
            Some(refusal) => Err(ObserveError::Forbidden(refusal.to_owned())),
            None => Ok(()),
        }
    }

    /// The time until something is due without a signal.
    fn wait(&self) -> Duration {
        let now = (self.now)();
        let keep = after(self.kept, KEEP_INTERVAL);
        // During a list, the fleet is judged once a second.
        let wakeup = if self.is_current {
            self.observed.fleet().next_wakeup()
        } else {
            None
        };
        let due = [wakeup, self.links.next_change(now), Some(keep)];
        let due = due.into_iter().flatten().min();
        let wait = due.map(|due| Duration::try_from(due.duration_since(now)).unwrap_or_default());
        wait.unwrap_or(SLEEP_MAX).clamp(SLEEP_MIN, SLEEP_MAX)
    }

    fn take(&mut self, signals: Vec<(WatchId, Signal)>, now: Timestamp) {
        let mut fleet = self.observed.fleet();
        for (id, signal) in signals {
            let is_list_over = matches!(signal, Signal::ListDone | Signal::Failed(_));
            match id {
                WatchId::Needed(id) => {
                    if id.kind == Kind::CronJob && is_list_over {
                        self.gates[id.scope].cron_jobs_listed.set(true);
                    }
                    let order = self.links.take(id, signal, now);
                    obey(&mut fleet, order, (id.kind, self.links.namespace(id.scope)), now);
                }
                WatchId::Optional(id) => {
                    let order = self.optional_links.take(id, signal);
                    obey_optional(&mut fleet, order, (id.kind, self.links.namespace(id.scope)), now);
                    if id.kind == OptionalKind::Namespace && is_list_over {
                        self.gates[id.scope].namespaces_listed.set(true);
                    }
                }
            }
        }
        if fleet.needs_calendars() {
            for gates in &self.gates {
                gates.calendars_needed.set(true);
            }
        }
    }

    /// Passes on what the signals and the time have changed.
    fn settle(&mut self, now: Timestamp) {
        let is_current = self.links.is_current(now);
        let mut fleet = self.observed.fleet();
        if is_current != self.is_current {
            fleet.set_watches_current(is_current, now);
            self.is_current = is_current;
        }
        // Also after the clock was set back.
        let is_kept_due = now.duration_since(self.kept).abs() >= KEEP_INTERVAL;
        if self.is_current || is_kept_due {
            fleet.advance(now);
        }
        self.records.append(&mut fleet.take_records());
        let (fleet_version, needs_calendars) = (fleet.version(), fleet.needs_calendars());
        drop(fleet);
        if is_kept_due {
            self.keep(now);
        }
        let (n_undecodable, last_undecodable) = self.links.problems();
        let source = Source {
            is_listed: self.links.is_complete(),
            not_live: self.links.not_live(now),
            unreadable: self.links.unreadable(),
            n_undecodable,
            last_undecodable: last_undecodable.map(str::to_owned),
            notes: self.optional_links.notes(needs_calendars),
            history_problems: self.keeper.problems(),
        };
        if self.observed.set_source(source) || fleet_version != self.fleet_version {
            self.fleet_version = fleet_version;
            self.observed.0.version.update(|version| version + 1);
        }
    }

    fn keep(&mut self, now: Timestamp) {
        self.kept = now;
        self.keeper.keep(std::mem::take(&mut self.records), now);
    }
}
