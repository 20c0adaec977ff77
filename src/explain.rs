//! Beside layer 5: objects in, the answer in plain words out. Pure: `now` is an argument.
//!
//! It predicts the actions of the controller for a CronJob, with the reasons: it feeds the objects to a shard and
//! reports the requested actions instead of executing them. The command and the page show the same text.
//! Of [`kube_api`](crate::kube_api) it uses the objects alone.
//!
//! Read in this order:
//!
//! - [`objects`]: text or JSON to objects. `world`: all objects that exist, with the values that a server would add.
//! - `trial`: runs one CronJob through a shard. `recorded`: what the Events of a cluster say about a late slot.
//! - `explanation` and `reason`: the result, before it is written by `text`, `json` or `check`.
//! - [`Survey`]: the same for all CronJobs of a cluster.
//! - [`calendar`], [`advice`] and [`refusals`]: activations in words, corrections, and what an API server refuses.

pub mod advice;
mod annotations;
mod answer;
pub mod api_checks;
pub mod calendar;
mod calendars;
mod check;
mod error;
mod explanation;
mod json;
mod misplaced;
mod namespaces;
pub mod never;
pub mod objects;
mod reason;
mod recorded;
pub mod refusals;
mod rule;
pub mod runs;
mod survey;
mod text;
mod trial;
mod world;
mod yaml;

pub use self::{
    annotations::{Annotated, annotation_remedies},
    answer::{Answer, Question, answer, text_of},
    error::ExplainError,
    namespaces::GivenNamespaces,
    reason::{Decision, Meaning, reasons},
    rule::rule_text,
    survey::{Outlook, Survey},
    trial::AssumedCreate,
};
