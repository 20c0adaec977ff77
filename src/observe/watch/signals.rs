//! One watch of one kind in one scope, by `kube-runtime`'s watcher, as signals that name no object of the API.
//!
//! The watcher resumes after errors by itself, and does not say when. The client of a watch therefore counts the requests
//! for a watch that the API server has answered.

use std::time::Duration;

use futures::{
    StreamExt,
    stream::{BoxStream, unfold},
};
use http::{Request, Response};
use kube::{
    Api, Client,
    client::Body,
    runtime::{
        utils::{Backoff, ResetTimerBackoff},
        watcher::{self, Event, watcher},
    },
};
use tower::service_fn;

use super::{
    Object, Seen,
    calendar::CalendarContent,
    cron_job::CronJobContent,
    job::JobContent,
    namespace::NamespaceContent,
    slim::{Content, Slim},
};
use crate::{
    kube_api::{
        latest_value::{LatestReceiver, LatestSender},
        objects::classify::error_text,
    },
    schedule::{Zone, options::CALENDAR_LABEL},
    shard::Scope,
};

/// What a watch says.
#[derive(Clone, Debug)]
pub(in crate::observe) enum Signal {
    /// A list begins. The objects of the former one stay until it is complete.
    ListBegun,
    /// An object of the list.
    Listed(Seen),
    /// The list is complete: objects that were not in it are gone.
    ListDone,
    /// The API server has opened the watch.
    Opened,
    /// An object was created or changed.
    Applied(Seen),
    /// An object was deleted.
    Deleted(Seen),
    /// A request failed. It is repeated.
    Failed(Failure),
}

/// Why a list or a watch failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::observe) struct Failure {
    /// The answer of the API server, or the problem with the connection.
    pub(in crate::observe) text: String,
    /// Whether the account has not the permission.
    pub(in crate::observe) is_forbidden: bool,
}

/// Pauses after failures: as long as a restart takes, then twice as long, up to ten seconds.
const PAUSE_MIN: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// After this time without a failure, the pauses begin anew.
const PAUSE_RESET: Duration = Duration::from_mins(1);

/// The pause after a refusal of what the account need not be able to read.
pub(super) const REFUSAL_PAUSE: Duration = Duration::from_mins(1);

pub(super) struct Pauses {
    next: Duration,
}

impl Pauses {
    pub(super) fn new() -> ResetTimerBackoff<Pauses> {
        ResetTimerBackoff::new(Pauses { next: PAUSE_MIN }, PAUSE_RESET)
    }
}

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let pause = self.next;
        self.next = pause.saturating_mul(2).min(PAUSE_MAX);
        Some(pause)
    }
}

impl Backoff for Pauses {
    fn reset(&mut self) {
        self.next = PAUSE_MIN;
    }
}

/// Watches CronJobs. `relists` lets it list again.
pub(super) fn cron_jobs(
    client: Client,
    scope: &Scope,
    default_zone: Zone,
    relists: LatestReceiver<u64>,
) -> BoxStream<'static, Signal> {
    let object = move |cron_job: CronJobContent| Object::CronJob(Box::new(cron_job.into_facts(&default_zone)));
    signals((client, scope), watcher::Config::default(), relists, object)
}

/// Watches Jobs. `relists` lets it list again.
pub(super) fn jobs(client: Client, scope: &Scope, relists: LatestReceiver<u64>) -> BoxStream<'static, Signal> {
    let object = |JobContent(run)| Object::Run(Box::new(run));
    signals((client, scope), watcher::Config::default(), relists, object)
}

/// Watches all namespaces. `relists` lets it list again.
pub(super) fn namespaces(client: Client, relists: LatestReceiver<u64>) -> BoxStream<'static, Signal> {
    let object = |NamespaceContent(facts)| Object::Namespace(Box::new(facts));
    signals((client, &Scope::Cluster), watcher::Config::default(), relists, object)
}

/// Watches calendars. `relists` lets it list again.
pub(super) fn calendars(client: Client, scope: &Scope, relists: LatestReceiver<u64>) -> BoxStream<'static, Signal> {
    let config = watcher::Config::default().labels(&format!("{CALENDAR_LABEL}=true"));
    let object = |CalendarContent(facts)| Object::Calendar(Box::new(facts));
    signals((client, scope), config, relists, object)
}

fn signals<C: Content>(
    (client, scope): (Client, &Scope),
    config: watcher::Config,
    relists: LatestReceiver<u64>,
    object: impl Fn(C) -> Object + Send + Sync + 'static,
) -> BoxStream<'static, Signal> {
    let opened = LatestSender::new(0);
    let watch = Watch {
        opened: opened.subscribe(),
        api: api(counting(client, opened), scope),
        config,
        relists,
        pauses: Pauses::new(),
        pause: None,
        events: None,
    };
    unfold((watch, object), |(mut watch, object)| async move {
        let signal = watch.next(&object).await;
        Some((signal, (watch, object)))
    })
    .boxed()
}

fn api<C: Content>(client: Client, scope: &Scope) -> Api<Slim<C>> {
    match scope {
        Scope::Cluster => Api::all(client),
        Scope::Namespace(namespace) => Api::namespaced(client, namespace),
    }
}

/// Returns a client that counts the requests for a watch that were answered.
fn counting(client: Client, opened: LatestSender<u64>) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = service_fn(move |request: Request<Body>| {
        let (client, opened) = (client.clone(), opened.clone());
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        async move {
            let response: Response<Body> = client.send(request).await?;
            if is_watch && response.status().is_success() {
                opened.update(|n_opened| n_opened + 1);
            }
            Ok::<_, kube::Error>(response)
        }
    });
    Client::new(service, namespace)
}

type Events<C> = BoxStream<'static, watcher::Result<Event<Slim<C>>>>;

struct Watch<C: Content> {
    api: Api<Slim<C>>,
    config: watcher::Config,
    /// The number of requests for a watch that were answered.
    opened: LatestReceiver<u64>,
    relists: LatestReceiver<u64>,
    pauses: ResetTimerBackoff<Pauses>,
    /// The pause before the next request.
    pause: Option<Duration>,
    /// `None` before the first list, and before one that does not depend on what was there before.
    events: Option<Events<C>>,
}

impl<C: Content> Watch<C> {
    async fn next(&mut self, object: &(impl Fn(C) -> Object + Sync)) -> Signal {
        loop {
            if let Some(pause) = self.pause.take() {
                tokio::time::sleep(pause).await;
            }
            let events = self
                .events
                .get_or_insert_with(|| watcher(self.api.clone(), self.config.clone()).boxed());
            let event = tokio::select! {
                biased;
                () = self.relists.changed() => {
                    self.relists.see();
                    self.events = None;
                    continue;
                }
                event = events.next() => event,
                () = self.opened.changed() => {
                    self.opened.see();
                    return Signal::Opened;
                }
            };
            match event {
                Some(Ok(event)) => return signal(event, object),
                Some(Err(error)) => {
                    let failure = self.failure(&error);
                    let is_refusal = failure.is_forbidden && !C::IS_NEEDED;
                    self.pause = if is_refusal {
                        Some(REFUSAL_PAUSE)
                    } else {
                        self.pauses.next()
                    };
                    return Signal::Failed(failure);
                }
                // The watcher never ends.
                None => self.events = None,
            }
        }
    }

    /// After some errors, what the watcher knows is not to be continued: an event may be lost, or the objects of the
    /// scope are dropped while they may not be read.
    fn failure(&mut self, error: &watcher::Error) -> Failure {
        use watcher::Error::{InitialListFailed, NoResourceVersion, WatchError, WatchFailed, WatchStartFailed};
        let (text, code) = match error {
            InitialListFailed(error) | WatchStartFailed(error) | WatchFailed(error) => {
                if let kube::Error::SerdeError(_) = error {
                    self.events = None;
                }
                let code = if let kube::Error::Api(status) = error {
                    status.code
                } else {
                    0
                };
                (error_text(error), code)
            }
            WatchError(status) => (format!("{} ({})", status.message, status.code), status.code),
            NoResourceVersion => (error.to_string(), 0),
        };
        let is_forbidden = code == 403;
        if is_forbidden {
            self.events = None;
        }
        Failure { text, is_forbidden }
    }
}

fn signal<C: Content>(event: Event<Slim<C>>, object: &impl Fn(C) -> Object) -> Signal {
    match event {
        Event::Init => Signal::ListBegun,
        Event::InitApply(slim) => Signal::Listed(Seen::of(slim, object)),
        Event::InitDone => Signal::ListDone,
        Event::Apply(slim) => Signal::Applied(Seen::of(slim, object)),
        Event::Delete(slim) => Signal::Deleted(Seen::of(slim, object)),
    }
}
