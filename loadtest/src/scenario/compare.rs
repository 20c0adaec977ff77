//! `loadtest compare`: runs controllers in turn on the same load, and compares them by the audit log of the API server.

mod arguments;
mod column;
mod command;
mod contestant;
mod difference;
mod disturbed;
mod doubts;
mod failing_namespaces;
mod figures;
pub(crate) mod floor;
mod html;
mod output;
mod progress;
mod quote;
mod result;
mod rounds;
mod running;
mod samples;
mod scenario;
mod slo;
mod slow_tenant;
mod statistics;
mod table;
mod turn;

pub(crate) use arguments::CompareArguments;
pub(crate) use command::run;
pub(crate) use quote::{aims as quoted_aims, figures as quoted_figures, ratios as quoted_ratios};
