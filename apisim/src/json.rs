//! Serialization of JSON values into bodies.

use bytes::Bytes;
use serde_json::Value;

/// Initial capacity. Most objects fit, so the buffer seldom grows.
pub(crate) const SIZE_USUAL_BYTES: usize = 2048;

/// Serializes a value, without spare capacity.
pub(crate) fn to_json(value: &Value) -> Bytes {
    let mut text = Vec::with_capacity(SIZE_USUAL_BYTES);
    // Writing a value to memory does not fail.
    let _written = serde_json::to_writer(&mut text, value);
    text.into_boxed_slice().into()
}
