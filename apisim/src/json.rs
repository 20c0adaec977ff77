//! Values as the bytes of a body.

use bytes::Bytes;
use serde_json::Value;

/// Most objects fit, so that their text does not grow in steps.
pub(crate) const SIZE_USUAL_BYTES: usize = 2048;

/// The text of a value, with no room to grow kept.
pub(crate) fn to_json(value: &Value) -> Bytes {
    let mut text = Vec::with_capacity(SIZE_USUAL_BYTES);
    // Writing a value to memory does not fail.
    let _written = serde_json::to_writer(&mut text, value);
    text.into_boxed_slice().into()
}
