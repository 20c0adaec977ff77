//! Kubernetes objects as bytes: decoded to records, encoded from orders, answers sorted into outcomes. Pure.

pub mod classify;
pub mod decode;
pub mod encode;
