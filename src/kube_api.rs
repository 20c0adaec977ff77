//! Layer 4, adapters: Kubernetes bytes to records, orders to requests, answers to outcomes.
//!
//! [`objects`] and [`events`] are pure. [`http`] holds the connections, and `exchange` sends one request over them.
//! [`client`] has the calls about CronJobs, Jobs and Events, [`leases`] those about Leases, and [`watch`] lists and
//! watches. [`json_api`] serves commands that read other objects. [`latest_value`] holds values that tasks wait for; the layers below never wait.
//! Most objects are not decoded into typed structs. Fields that cronwheel does not know are passed on unchanged.

pub mod access_review;
pub mod admission;
pub mod client;
pub mod events;
mod exchange;
pub mod http;
pub mod json_api;
pub mod latest_value;
pub mod leases;
pub mod namespace_selector;
pub mod objects;
pub mod other_controllers;
pub mod page_sizes;
pub(crate) mod paths;
pub mod retry;
pub mod watch;

pub use client::{Answered, ApiClient};
pub use events::{EventAction, EventAggregator};
pub use exchange::ExchangeError;
pub use http::{ApiServer, WriteConnections, lease_client, watch_client};
pub use json_api::{JsonAnswer, JsonApi, JsonError};
pub use leases::{LeaseApi, LeaseError, LeaseEvent, LeaseReply, OwnerPod};
pub use namespace_selector::NamespaceSelector;
pub use objects::{
    classify::{Answer, EventOutcome},
    decode::{DecodeError, Decoder, ReceivedJob},
};
pub use watch::WatchItem;
