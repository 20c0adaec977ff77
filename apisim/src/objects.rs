//! What a Kubernetes API server does to one object, without storage and without HTTP: pure functions over JSON.
//!
//! A new object goes this way: [`decoding::parse`] (or [`protobuf::parse`] and [`decoding::decode`]); the caller gives it
//! namespace, name, uid and creation time; [`defaulting::prepare_for_create`], [`defaulting::apply`],
//! [`validation::create`]. A changed one: decoding, or [`patch`] and [`patch::decoded`]; [`defaulting::apply`],
//! [`defaulting::prepare_for_update`], [`validation::update`]. [`table`] prints, [`discovery`] says what there is.
//!
//! The words are those of kube-apiserver 1.36, and a test compares whole answers. Known differences:
//! - of pod templates only that is validated without which pods cannot run (no quantities against limits, no probes);
//! - errors of JSON syntax are told in serde's words, members that are there twice are not told, and of several unknown
//!   fields an apply tells the first;
//! - the value in `field is immutable` is the API's JSON, not that of the server's own types;
//! - `managedFields` records applies alone, so other writes neither own nor conflict; ports are told apart by number;
//! - a wrong type in a strategic merge patch is told as in any other object.

pub mod decoding;
pub mod defaulting;
pub mod discovery;
pub mod patch;
pub mod protobuf;
mod schema;
pub mod table;
pub mod validation;
