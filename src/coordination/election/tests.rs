//! Tests of the election: scenarios by fault number, a simulation of fleets from seeds, and a model check.

mod history;
mod model;
mod scenarios;
mod simulation;
mod stale_view;
mod store;
mod world;
