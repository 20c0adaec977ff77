//! The watches: CronJobs and Jobs, of all namespaces or of some, over slim types. The account needs `get`, `list` and
//! `watch` on both kinds, and nothing else. Namespaces and calendars are read if it may read them.
//!
//! Read in this order: `slim` and `fields` for the form of received objects, `cron_job`, `job`, `namespace` and `calendar`
//! for their decoding, `signals` for one watch, `polling` for what stands in for one. A scope has one for each kind.

pub(in crate::observe) mod calendar;
pub(in crate::observe) mod cron_job;
pub(in crate::observe) mod fields;
pub(in crate::observe) mod job;
pub(in crate::observe) mod namespace;
pub(in crate::observe) mod polling;
pub(in crate::observe) mod signals;
pub(in crate::observe) mod slim;

use futures::stream::BoxStream;
use kube::Client;

use self::{
    fields::{Decoded, Problem},
    signals::Signal,
    slim::{Content, Slim},
};
use super::facts::{CalendarFacts, CronJobFacts, Kind, NamespaceFacts, OptionalKind, Run};
use crate::{
    kube_api::latest_value::LatestReceiver,
    schedule::Zone,
    shard::{Scope, Uid, panics::contain},
};

/// An object of interest.
#[derive(Clone, Debug)]
pub(in crate::observe) enum Object {
    CronJob(Box<CronJobFacts>),
    Run(Box<Run>),
    Namespace(Box<NamespaceFacts>),
    Calendar(Box<CalendarFacts>),
}

/// A received object.
#[derive(Clone, Debug)]
pub(in crate::observe) struct Seen {
    /// Its uid, also if the rest cannot be decoded.
    pub(in crate::observe) uid: Option<Uid>,
    /// What was decoded; `None` if nothing is of interest. An error means that the object cannot be decoded.
    pub(in crate::observe) object: Result<Option<Object>, ()>,
    /// What could not be decoded, with the object.
    pub(in crate::observe) problems: Vec<String>,
}

impl Seen {
    fn of<C: Content>(slim: Slim<C>, object: impl FnOnce(C) -> Object) -> Seen {
        let title = slim.title();
        let text = |Problem { field, text }: &Problem| format!("{} {title}: {field}: {text}", C::KIND);
        let Decoded { content, problems } = &slim.content;
        let mut texts: Vec<String> = problems.iter().chain(content.as_ref().err()).map(text).collect();
        let object = match slim.content.content {
            Ok(content) => contain(|| content.map(object)).map_err(|message| {
                texts.push(format!(
                    "{} {title}: cronwheel panicked, which is a fault of cronwheel: {message}",
                    C::KIND
                ));
            }),
            Err(_) => Err(()),
        };
        Seen {
            uid: slim.uid,
            object,
            problems: texts,
        }
    }
}

/// The signals of the watch of one kind in one scope.
pub(in crate::observe) fn watch(
    client: Client,
    (scope, kind): (&Scope, Kind),
    default_zone: &Zone,
    relists: LatestReceiver<u64>,
) -> BoxStream<'static, Signal> {
    match kind {
        Kind::CronJob => signals::cron_jobs(client, scope, default_zone.clone(), relists),
        Kind::Job => signals::jobs(client, scope, relists),
    }
}

/// The signals of the watch of one kind that the account need not be able to read. A single namespace is polled: a Role can
/// permit to get it, and not to watch it.
pub(in crate::observe) fn optional_watch(
    client: Client,
    (scope, kind): (&Scope, OptionalKind),
    relists: LatestReceiver<u64>,
) -> BoxStream<'static, Signal> {
    match (kind, scope) {
        (OptionalKind::Namespace, Scope::Cluster) => signals::namespaces(client, relists),
        (OptionalKind::Namespace, Scope::Namespace(name)) => polling::namespace(client, name, relists),
        (OptionalKind::Calendar, _) => signals::calendars(client, scope, relists),
    }
}

#[cfg(test)]
mod tests;
