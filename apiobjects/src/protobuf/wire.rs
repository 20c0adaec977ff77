//! The wire format of protobuf: numbered fields and their payloads.

use jiff::Timestamp;
use serde_json::Value;

use super::ProtobufError;

/// The payload of a field.
#[derive(Clone, Copy)]
pub(super) enum Payload<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    /// Fixed length, which none of the served types uses.
    Fixed,
}

impl<'a> Payload<'a> {
    pub(super) fn bytes(self) -> Result<&'a [u8], ProtobufError> {
        match self {
            Payload::Bytes(bytes) => Ok(bytes),
            Payload::Varint(_) | Payload::Fixed => Err(ProtobufError::Malformed),
        }
    }

    pub(super) fn text(self) -> Result<String, ProtobufError> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| ProtobufError::Malformed)
    }

    pub(super) fn number(self) -> Result<i64, ProtobufError> {
        match self {
            Payload::Varint(number) => Ok(number.cast_signed()),
            Payload::Bytes(_) | Payload::Fixed => Err(ProtobufError::Malformed),
        }
    }
}

/// The fields of a message, in order.
pub(super) struct Message<'a> {
    rest: &'a [u8],
}

impl<'a> Message<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Message<'a> {
        Message { rest: bytes }
    }

    fn take(&mut self) -> Result<(u32, Payload<'a>), ProtobufError> {
        let tag = take_varint(&mut self.rest)?;
        let number = u32::try_from(tag >> 3).map_err(|_| ProtobufError::Malformed)?;
        let payload = match tag & 7 {
            0 => Payload::Varint(take_varint(&mut self.rest)?),
            1 => take_bytes(&mut self.rest, 8).map(|_| Payload::Fixed)?,
            2 => {
                let length = take_varint(&mut self.rest)?;
                let length = usize::try_from(length).map_err(|_| ProtobufError::Malformed)?;
                Payload::Bytes(take_bytes(&mut self.rest, length)?)
            }
            5 => take_bytes(&mut self.rest, 4).map(|_| Payload::Fixed)?,
            _ => return Err(ProtobufError::Malformed),
        };
        Ok((number, payload))
    }
}

impl<'a> Iterator for Message<'a> {
    type Item = Result<(u32, Payload<'a>), ProtobufError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.take();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

/// Reads a number of variable length and advances `rest`.
pub(super) fn take_varint(rest: &mut &[u8]) -> Result<u64, ProtobufError> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first().ok_or(ProtobufError::Malformed)?;
        *rest = after;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(ProtobufError::Malformed)
}

fn take_bytes<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], ProtobufError> {
    let (taken, after) = rest.split_at_checked(length).ok_or(ProtobufError::Malformed)?;
    *rest = after;
    Ok(taken)
}

/// Returns the text in the field with this number of a message. Empty if the field is missing.
pub(super) fn text_at(number: u32, bytes: &[u8]) -> Result<String, ProtobufError> {
    let mut text = String::new();
    for field in Message::new(bytes) {
        let (found, payload) = field?;
        if found == number {
            text = payload.text()?;
        }
    }
    Ok(text)
}

/// Formats a time of a message. Null if it was never set.
pub(super) fn time(bytes: &[u8], written: fn(Timestamp) -> String) -> Result<Value, ProtobufError> {
    let (mut seconds, mut nanoseconds) = (0, 0);
    for field in Message::new(bytes) {
        match field? {
            (1, payload) => seconds = payload.number()?,
            (2, payload) => nanoseconds = payload.number()?,
            _ => {}
        }
    }
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let nanoseconds = i32::try_from(nanoseconds).map_err(|_| ProtobufError::Malformed)?;
    let time = Timestamp::new(seconds, nanoseconds).map_err(|_| ProtobufError::Malformed)?;
    Ok(written(time).into())
}

/// Encodes bytes as base64 with padding.
pub(super) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place > chunk.len() { '=' } else { char::from(digit) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn bytes_become_base64() {
        let cases = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
        ];
        for (bytes, expected) in cases {
            assert_eq!(base64(bytes.as_bytes()), expected);
        }
    }
}
