//! Decoding, defaulting, validation, patches and rendering of single Kubernetes objects as the API server does them: pure
//! functions over JSON, without storage and HTTP. `apisim` uses them to serve objects, and `cronwheel explain --check` to
//! check files.
//!
//! The steps for a new object: [`decoding::parse`] (or [`protobuf::parse`] and [`decoding::decode`]); the caller sets
//! namespace, name, uid and creation time; then [`defaulting::prepare_for_create`], [`defaulting::apply`] and
//! [`validation::create`]. The steps for a changed object: decoding, or [`patch`] and [`patch::decoded`]; then
//! [`defaulting::apply`], [`defaulting::prepare_for_update`] and [`validation::update`]. [`table`] renders rows for
//! `kubectl get`. [`discovery`] describes the served kinds. [`label_selector`] selects objects by their labels.
//!
//! Messages equal those of kube-apiserver 1.36, and a test compares whole responses. Known differences:
//! - Of Pod templates, rarely used fields are not validated: see `validation/pod.rs`.
//! - JSON syntax errors have the messages of serde. Duplicate members are not reported. An apply reports only the first
//!   unknown field.
//! - The value in `field is immutable` is the JSON of the API, not that of the server's internal types.
//! - [`patch`] records only applies in `managedFields`; `apisim` adds updates of specs and annotations. Ports are
//!   identified by number alone.
//! - A wrong type in a strategic merge patch is reported as in any other object.

pub mod decoding;
pub mod defaulting;
pub mod discovery;
mod fnv;
pub mod label_selector;
pub mod patch;
pub mod protobuf;
mod resource;
mod schema;
pub mod table;
pub mod times;
pub mod validation;

pub use resource::Resource;
