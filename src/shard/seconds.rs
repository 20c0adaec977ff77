//! Instants of whole seconds, the resolution of the Kubernetes API.

use jiff::Timestamp;

/// An optional instant of whole seconds in eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seconds(i64);

impl Default for Seconds {
    /// No instant.
    fn default() -> Seconds {
        Seconds::new(None)
    }
}

impl Seconds {
    pub(crate) fn new(instant: Option<Timestamp>) -> Seconds {
        Seconds(instant.map_or(i64::MIN, Timestamp::as_second))
    }

    pub(crate) fn get(self) -> Option<Timestamp> {
        Timestamp::from_second(self.0).ok()
    }
}
