//! Layer 3, adapters: Kubernetes bytes to records, orders to requests, answers to outcomes.
//!
//! [`decode`], [`encode`], [`classify`] and [`events`] are pure; [`connection`], [`access`], [`api`], [`leases`] and [`watch`] talk to the API server.
//! [`watched`] holds values that tasks wait for: this is the lowest layer that waits.
//! Objects of the bulk are never typed: what we do not know we pass on as the bytes that came.

pub mod decode;
pub mod encode;

pub mod bounded_pages;
pub mod classify;
pub mod connection;

pub mod access;
pub mod api;
pub mod events;
pub mod history;
pub mod kept;
pub mod leases;
pub mod lists;
pub mod selection;
pub mod shown;
pub mod watch;
pub mod watched;

pub use api::{Answered, ClusterApi};
pub use classify::{Answer, CronJobOutcome, EventOutcome, LabelOutcome};
pub use connection::{ApiServer, WriteConnections, lease_client, watch_client};
pub use decode::{DecodeError, Decoder, SlimCronJob, SlimJob};
pub use events::{EventAction, EventAggregator};
pub use leases::{LeaseApi, LeaseError, LeaseEvent, LeaseList, LeaseReply, OwnerPod};
pub use watch::WatchItem;
