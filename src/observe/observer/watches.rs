//! The watches of all scopes, and in which order they begin.

use futures::{
    StreamExt, future,
    stream::{self, BoxStream, SelectAll},
};
use kube::Client;

use super::links::{LinkId, optional::OptionalId};
use crate::{
    kube_api::latest_value::{LatestReceiver, LatestSender},
    observe::{
        facts::{Kind, OptionalKind},
        watch::{self, signals::Signal},
    },
    schedule::Zone,
    shard::Scope,
};

/// Which watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WatchId {
    Needed(LinkId),
    Optional(OptionalId),
}

/// What the watches of a scope wait for.
pub(super) struct Gates {
    /// Whether the first list of namespaces has ended, or failed. Only then does that of CronJobs begin, so that these have
    /// their defaults.
    pub(super) namespaces_listed: LatestSender<bool>,
    /// The same for CronJobs, after which Jobs are listed: a Job takes several times the memory until its CronJob is known.
    pub(super) cron_jobs_listed: LatestSender<bool>,
    /// Whether any CronJob names a calendar.
    pub(super) calendars_needed: LatestSender<bool>,
}

impl Gates {
    fn closed() -> Gates {
        Gates {
            namespaces_listed: LatestSender::new(false),
            cron_jobs_listed: LatestSender::new(false),
            calendars_needed: LatestSender::new(false),
        }
    }
}

/// The watches.
pub(super) struct Watches {
    pub(super) signals: SelectAll<BoxStream<'static, (WatchId, Signal)>>,
    /// Each lets a watch list again.
    pub(super) relists: Vec<(WatchId, LatestSender<u64>)>,
    /// By the position of the scope.
    pub(super) gates: Vec<Gates>,
}

impl Watches {
    /// Prepares the watches; nothing is requested before the first signal is asked for.
    pub(super) fn new(client: &Client, scopes: &[Scope], default_zone: &Zone) -> Watches {
        let mut signals = SelectAll::new();
        let (mut relists, mut gates) = (Vec::new(), Vec::new());
        for (position, scope) in scopes.iter().enumerate() {
            let of_scope = Gates::closed();
            let mut push = |id: WatchId, watch: BoxStream<'static, Signal>, relist: LatestSender<u64>| {
                signals.push(watch.map(move |signal| (id, signal)).boxed());
                relists.push((id, relist));
            };
            for kind in Kind::ALL {
                let relist = LatestSender::new(0);
                let watch = watch::watch(client.clone(), (scope, kind), default_zone, relist.subscribe());
                let gate = match kind {
                    Kind::CronJob => &of_scope.namespaces_listed,
                    Kind::Job => &of_scope.cron_jobs_listed,
                };
                let id = WatchId::Needed(LinkId { scope: position, kind });
                push(id, begin_after(gate.subscribe(), watch), relist);
            }
            for kind in [OptionalKind::Namespace, OptionalKind::Calendar] {
                let relist = LatestSender::new(0);
                let watch = watch::optional_watch(client.clone(), (scope, kind), relist.subscribe());
                let watch = match kind {
                    OptionalKind::Namespace => watch,
                    OptionalKind::Calendar => begin_after(of_scope.calendars_needed.subscribe(), watch),
                };
                push(WatchId::Optional(OptionalId { scope: position, kind }), watch, relist);
            }
            gates.push(of_scope);
        }
        Watches {
            signals,
            relists,
            gates,
        }
    }
}

/// A stream that begins when the value is true.
fn begin_after<T: Send + 'static>(
    mut begin: LatestReceiver<bool>,
    stream: BoxStream<'static, T>,
) -> BoxStream<'static, T> {
    let begin = stream::once(async move { begin.wait_for(|is_begun| *is_begun).await });
    begin.filter_map(|()| future::ready(None)).chain(stream).boxed()
}
