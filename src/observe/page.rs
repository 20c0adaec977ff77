//! The page of the view: server-rendered HTML over plain values. No route writes anything.
//!
//! - [`PageSource`]: what the page reads. It is the border to the fleet, so that tests invent one.
//! - `query`: the state of the page, which is in its address. `routes`: the answers. `guard`: who may ask.
//! - `overview`, `strip`, `attention`, `list`, `detail`: the parts of the page. `frame`: what surrounds them.
//! - `panel`: figures that a command adds.
//! - `clock` and `words`: times, durations and numbers as text.
//! - `events`: tells the script that something changed. The script then fetches the same address again.
//!
//! Data is never written as markup: `maud` escapes every value. Styles and the script are files of this server, so that
//! the Content-Security-Policy needs no exception.

mod attention;
mod clock;
mod detail;
mod events;
mod frame;
mod guard;
mod list;
mod overview;
mod panel;
mod query;
mod routes;
mod strip;
mod words;

use futures::future::BoxFuture;
use jiff::Timestamp;

pub use self::{
    guard::{AllowedHosts, HostError, allowed_hosts},
    panel::{Figure, FigureGroup, Finding, Panel},
    routes::router,
};
use super::view::{CronJobName, Detail, Filter, Overview, Rows, Strip};
use crate::{kube_api::latest_value::LatestReceiver, schedule::Zone};

/// What the page shows.
pub trait PageSource: Send + Sync + 'static {
    /// The state of the view itself.
    fn heading(&self) -> Heading;
    /// The tiles, the controllers, what needs attention, the advice.
    fn overview(&self) -> Overview;
    /// The heatmap between two instants. Cells are minutes if it spans at most three hours.
    fn strip(&self, from: Timestamp, to: Timestamp) -> Strip;
    /// A page of the list.
    fn rows(&self, filter: &Filter) -> Rows;
    /// One CronJob; `None` if it does not exist.
    fn detail(&self, cron_job: &CronJobName) -> Option<Detail>;
    /// The text of `cronwheel explain`, or why there is none.
    fn explain(&self, cron_job: &CronJobName) -> BoxFuture<'static, Result<String, String>>;
    /// The version of everything above. It changes with it.
    fn changes(&self) -> LatestReceiver<u64>;
    /// The present time.
    fn now(&self) -> Timestamp;
    /// Figures that the command adds to the page.
    fn panel(&self) -> Option<Panel> {
        None
    }
}

/// The state of the view itself, at the top of the page.
#[derive(Clone, Debug)]
pub struct Heading {
    /// The name of the cluster.
    pub cluster: String,
    /// The context of the kubeconfig, which commands to copy name.
    pub context: Option<String>,
    /// The zone of the times that belong to no CronJob.
    pub zone: Zone,
    /// Whether both watches are current.
    pub is_live: bool,
    /// Whether all CronJobs and Jobs were listed since the start. Until then, nothing is known to be well.
    pub is_listed: bool,
    /// What the reader must know about the view, such as a damaged history. Sentences.
    pub banners: Vec<String>,
    /// What is good to know, such as frozen namespaces. Sentences.
    pub notes: Vec<String>,
    /// Namespaces that the account may not read.
    pub unreadable_namespaces: Vec<Box<str>>,
    /// The namespaces with CronJobs, by name.
    pub namespaces: Vec<Box<str>>,
}

#[cfg(test)]
mod tests;
