//! A read-only view of the CronJobs of a cluster: what ran, what is late, failed or lost and why, and what is due.
//!
//! It uses no controller: it watches CronJobs and Jobs, and namespaces and calendars where it may, like any client, on any
//! cluster, beside any controller, and writes nothing to the cluster. Read in this order:
//!
//! - [`facts`]: the few fields of a CronJob and of a Job that the view needs.
//! - [`slot`]: what became of one slot.
//! - [`fleet`]: the synchronous index of all CronJobs; facts go in, views come out. Pure: `now` is an argument.
//! - [`forecast`]: the starts of the near future. Pure.
//! - [`view`]: what the page and the report show, as plain values.
//! - [`advice`]: what could be better, in sentences. [`words`]: numbers and times in the form that all of them use. Pure.
//! - `watch`: the watches of a cluster. [`observer`]: fills the fleet from them.
//! - [`history`]: keeps runs beyond the Jobs that the cluster keeps.
//! - [`missed`]: the slots without a Job, and the commands that start them. Pure.
//! - [`page`] and [`report`]: show the views.

pub mod advice;
pub mod facts;
pub mod fleet;
pub mod forecast;
pub mod history;
pub mod missed;
pub mod observer;
pub mod page;
pub mod report;
pub mod slot;
pub mod view;
mod watch;
pub mod words;

#[cfg(test)]
mod sample;
