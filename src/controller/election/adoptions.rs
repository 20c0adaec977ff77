//! What follows from how a shard came to us.

use crate::{coordination::Adoption, shard::Entry};

/// What must be known before it is led.
pub(super) fn entry(adoption: &Adoption) -> Entry {
    match adoption {
        Adoption::HandedOver {
            written_through: Some(written_through),
            ..
        } => Entry::Watch(*written_through),
        Adoption::First
        | Adoption::HandedOver { .. }
        | Adoption::Released { .. }
        | Adoption::Crashed { .. }
        | Adoption::Recreated => Entry::List,
    }
}

/// Its name, for the log.
pub(super) fn name(adoption: &Adoption) -> &'static str {
    match adoption {
        Adoption::First => "first",
        Adoption::HandedOver { .. } => "handed over",
        Adoption::Released { .. } => "released",
        Adoption::Crashed { .. } => "crashed",
        Adoption::Recreated => "recreated",
    }
}
