//! What a Kubernetes API server does to one object, without storage and without HTTP: pure functions over JSON.
//!
//! An object goes through them in this order: [`decoding`] (or [`protobuf`]), then the caller gives it name, uid and
//! creation time, [`defaulting`], [`validation`]. [`patch`] makes a new object of an old one; it then goes the same way.
//! The words are those of kube-apiserver 1.36; a case on a real one compares them.

pub mod decoding;
pub mod defaulting;
pub mod patch;
pub mod protobuf;
mod schema;
pub mod table;
pub mod validation;
