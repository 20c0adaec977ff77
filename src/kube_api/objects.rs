//! Kubernetes objects as bytes: decoded to records, encoded from orders, answers classified as outcomes. Pure.

pub mod classify;
pub mod decode;
pub mod encode;
pub mod resumption;
