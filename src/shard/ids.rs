//! Identities, as small as possible: a cluster has hundreds of thousands of each.

use std::fmt;

/// The uid of a Kubernetes object: sixteen bytes for a UUID in canonical form, the text otherwise.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uid(UidForm);

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum UidForm {
    Uuid([u8; 16]),
    Text(Box<str>),
}

impl Uid {
    /// Creates a uid from the API server's text.
    pub fn new(text: &str) -> Uid {
        match parse_uuid(text) {
            Some(bytes) => Uid(UidForm::Uuid(bytes)),
            None => Uid(UidForm::Text(text.into())),
        }
    }

    /// Creates a uid from the bytes of a UUID.
    pub fn from_uuid_bytes(bytes: [u8; 16]) -> Uid {
        Uid(UidForm::Uuid(bytes))
    }

    /// The bytes of a UUID in canonical form; `None` for any other text.
    pub fn uuid_bytes(&self) -> Option<&[u8; 16]> {
        match &self.0 {
            UidForm::Uuid(bytes) => Some(bytes),
            UidForm::Text(_) => None,
        }
    }

    /// The bytes of the API server's text, without a heap allocation: the fastest input for a hash.
    pub fn ascii<'a>(&'a self, buffer: &'a mut [u8; UUID_LENGTH]) -> &'a [u8] {
        match &self.0 {
            UidForm::Text(text) => text.as_bytes(),
            UidForm::Uuid(bytes) => {
                *buffer = [b'-'; UUID_LENGTH];
                let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
                let places = buffer.iter_mut().enumerate().filter(|(place, _)| !is_hyphen(*place));
                for ((_, place), digit) in places.zip(digits) {
                    *place = if digit < 10 { b'0' + digit } else { b'a' + digit - 10 };
                }
                buffer
            }
        }
    }
}

/// Characters in a UUID.
pub const UUID_LENGTH: usize = 36;

/// Whether a UUID has a hyphen at this position.
fn is_hyphen(position: usize) -> bool {
    matches!(position, 8 | 13 | 18 | 23)
}

/// Parses only the canonical form (lower case, four hyphens), so that `Display` returns the same text.
fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let text = text.as_bytes();
    if text.len() != UUID_LENGTH {
        return None;
    }
    let mut bytes = [0u8; 16];
    let mut n_digits = 0usize;
    for (position, &character) in text.iter().enumerate() {
        if is_hyphen(position) {
            if character != b'-' {
                return None;
            }
            continue;
        }
        let digit = match character {
            b'0'..=b'9' => character - b'0',
            b'a'..=b'f' => character - b'a' + 10,
            _ => return None,
        };
        bytes[n_digits / 2] = bytes[n_digits / 2] << 4 | digit;
        n_digits += 1;
    }
    Some(bytes)
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            UidForm::Text(text) => f.write_str(text),
            UidForm::Uuid(_) => {
                let mut buffer = [0; UUID_LENGTH];
                // Hyphens and digits are valid UTF-8.
                f.write_str(std::str::from_utf8(self.ascii(&mut buffer)).unwrap_or_default())
            }
        }
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Namespace, name and uid of a CronJob, shared by all its orders.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CronJobIdentity {
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Its uid.
    pub uid: Uid,
}

/// A resource version. Since Kubernetes 1.35, versions of one resource compare as numbers; none is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceVersion(pub u64);

impl ResourceVersion {
    /// Parses the API server's text. A text that is not a number gives 0, the lowest version.
    pub fn read(text: &str) -> ResourceVersion {
        text.parse().map_or(ResourceVersion(0), ResourceVersion)
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uid_round_trips() {
        for text in [
            "0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0",
            "0B1C2D3E-4F50-6172-8394-A5B6C7D8E9F0",
            "0b1c2d3e4f5061728394a5b6c7d8e9f0",
            "0b1c2d3e-4f50-6172-8394-a5b6c7d8e9fé",
            "mirror-pod",
            "",
        ] {
            let uid = Uid::new(text);
            assert_eq!(uid.to_string(), text);
            assert_eq!(uid.ascii(&mut [0; UUID_LENGTH]), text.as_bytes());
            if let Some(bytes) = uid.uuid_bytes() {
                assert_eq!(Uid::from_uuid_bytes(*bytes), uid);
            }
        }
    }

    #[test]
    fn uuid_is_stored_inline() {
        assert!(std::mem::size_of::<Uid>() <= 24);
        assert!(matches!(
            Uid::new("0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0").0,
            UidForm::Uuid(_)
        ));
    }
}
