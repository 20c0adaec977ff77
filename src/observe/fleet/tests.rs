//! Tests of the fleet: scenarios of one CronJob as scripts, views, a restart, and random events against a model.

mod attention;
mod doubled;
mod ends;
mod given_up;
mod inherited;
mod losses;
mod model;
mod namespaces;
mod options;
mod releases;
mod restart;
mod scenarios;
mod script;
mod search;
mod unknowns;
mod views;
mod windows;
