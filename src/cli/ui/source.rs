//! What the page reads: views of the fleet, the state of the watches, and the text of `explain`.

use std::sync::{Mutex, PoisonError};

use futures::{FutureExt, future::BoxFuture};
use jiff::Timestamp;
use kube::Client;

use crate::{
    cli::{explain, ui::server_clock::ServerClock},
    kube_api::{latest_value::LatestReceiver, objects::classify::error_text},
    observe::{
        advice::AdviceInputs,
        observer::{Observed, source::Source},
        page::{Heading, PageSource},
        view::{Advice, CronJobName, Detail, Filter, Overview, Rows, Strip},
        words::frozen_text,
    },
    schedule::Zone,
};

/// Namespaces with a row of their own in the strip.
const STRIP_ROWS_MAX: usize = 12;

/// The source of the page.
pub(in crate::cli) struct FleetSource {
    pub(in crate::cli) observed: Observed,
    cluster: ClusterHeading,
    default_zone: Zone,
    clock: ServerClock,
    /// By the minute.
    advice: Last<i64, Vec<Advice>>,
    /// By the version of the fleet and the second. Many open pages ask for the same one.
    overview: Last<(u64, i64), Overview>,
}

/// What the page says of its cluster, and how it reads more.
pub(in crate::cli) struct ClusterHeading {
    pub(in crate::cli) name: String,
    /// The context of the kubeconfig, for commands to copy.
    pub(in crate::cli) context: Option<String>,
    /// For `explain`, which reads one CronJob and its Jobs again.
    pub(in crate::cli) client: Client,
}

/// The last value that was computed, with its key.
struct Last<K, V>(Mutex<Option<(K, V)>>);

impl<K: PartialEq, V: Clone> Last<K, V> {
    fn none() -> Last<K, V> {
        Last(Mutex::new(None))
    }

    /// Returns the value of a key, which `compute` makes if the last one has another key.
    fn of(&self, key: K, compute: impl FnOnce() -> V) -> V {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((of, value)) if *of == key => value.clone(),
            Some(_) | None => {
                let value = compute();
                *last = Some((key, value.clone()));
                value
            }
        }
    }
}

impl FleetSource {
    pub(in crate::cli) fn new(
        observed: Observed,
        cluster: ClusterHeading,
        default_zone: Zone,
        clock: ServerClock,
    ) -> FleetSource {
        FleetSource {
            observed,
            cluster,
            default_zone,
            clock,
            advice: Last::none(),
            overview: Last::none(),
        }
    }
}

impl PageSource for FleetSource {
    fn heading(&self) -> Heading {
        let source = self.observed.source();
        let fleet = self.observed.fleet();
        Heading {
            cluster: self.cluster.name.clone(),
            context: self.cluster.context.clone(),
            zone: self.default_zone.clone(),
            is_live: source.is_listed && source.not_live.is_none(),
            is_listed: source.is_listed,
            banners: self
                .clock
                .banner("this page")
                .into_iter()
                .chain(banners(&source, &self.default_zone))
                .chain(fleet.limits_reached())
                .collect(),
            notes: frozen_text(&fleet.frozen_namespaces(self.now()))
                .into_iter()
                .chain(source.notes)
                .collect(),
            unreadable_namespaces: source.unreadable.into_iter().map(|one| one.namespace).collect(),
            namespaces: fleet.namespaces(),
        }
    }

    fn overview(&self) -> Overview {
        let (now, is_listed) = (self.now(), self.observed.source().is_listed);
        let fleet = self.observed.fleet();
        let mut overview = self
            .overview
            .of((fleet.version(), now.as_second()), || fleet.overview(now));
        drop(fleet);
        overview.advice = advice_of(&self.advice, is_listed, now, || {
            AdviceInputs::of(&self.observed.fleet())
        });
        overview
    }

    fn strip(&self, from: Timestamp, to: Timestamp) -> Strip {
        self.observed.fleet().strip(from, to, STRIP_ROWS_MAX, self.now())
    }

    fn rows(&self, filter: &Filter) -> Rows {
        self.observed.fleet().rows(filter, self.now())
    }

    fn detail(&self, cron_job: &CronJobName) -> Option<Detail> {
        self.observed.fleet().detail(cron_job, self.now())
    }

    fn explain(&self, cron_job: &CronJobName) -> BoxFuture<'static, Result<String, String>> {
        let (client, zone, clock) = (
            self.cluster.client.clone(),
            self.default_zone.clone(),
            self.clock.clone(),
        );
        let job_names = self.observed.fleet().kept_job_names(cron_job).unwrap_or_default();
        let CronJobName { namespace, name } = cron_job.clone();
        async move {
            let text = explain::text_of_live(&client, (&namespace, &name), &job_names, &zone, || clock.now()).await;
            text.map_err(|error| error_text(&error))
        }
        .boxed()
    }

    fn changes(&self) -> LatestReceiver<u64> {
        self.observed.version()
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

/// The advice of this minute: it costs more than the other views and changes slowly, so the fleet is locked only while
/// `inputs` reads it. Half a list gives none.
fn advice_of(
    last: &Last<i64, Vec<Advice>>,
    is_listed: bool,
    now: Timestamp,
    inputs: impl FnOnce() -> AdviceInputs,
) -> Vec<Advice> {
    if !is_listed {
        return Vec::new();
    }
    last.of(now.as_second().div_euclid(60), || inputs().advice(now))
}

/// What the reader must know about the view.
fn banners(source: &Source, zone: &Zone) -> Vec<String> {
    let mut banners = Vec::new();
    if let Some(not_live) = &source.not_live {
        let since = not_live.since.to_zoned(zone.to_jiff()).strftime("%-d %b %H:%M:%S %Z");
        banners.push(format!("Not live since {since}: {}.", not_live.problem));
    } else if !source.is_listed {
        banners.push("The CronJobs and Jobs are being listed.".to_owned());
    }
    if let Some(last) = &source.last_undecodable {
        banners.push(format!(
            "{} times, an object had a field that cannot be decoded and counts as absent; last: {last}.",
            source.n_undecodable
        ));
    }
    banners.extend(source.history_problems.iter().cloned());
    banners
}

#[cfg(test)]
mod tests;
