//! `loadtest compare`: controllers in turn on the same load, judged by the audit log of the API server.

mod arguments;
mod column;
mod command;
mod contestant;
mod difference;
mod figures;
pub(crate) mod floor;
mod html;
mod output;
mod progress;
mod result;
mod rounds;
mod samples;
mod slo;
mod statistics;
mod table;
mod turn;

pub(crate) use arguments::CompareArguments;
pub(crate) use command::run;
